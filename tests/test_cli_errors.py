"""How each command fails: with its status, and exactly one complaint that names file and reason."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-m", "harmony_stream"]
PROMPTS = Path(__file__).parent.parent / "examples" / "prompts"
LINE = json.dumps({"ids": [200005, 17196, 200008, 13225, 200002]})
LONG_LOG = f"{LINE}\n".encode() * 20_000  # much more than a pipe holds

# How each command is called; IN is its input.
CALLS = {
    "replay": "replay IN",
    "check": "check IN",
    "stats": "stats IN",
    "convert": "convert --to chat -o - IN",
    "to file": "convert --to chat -o out IN",
    "to Parquet": "convert --to parquet -o out IN",
    "render": "render IN",
    "tools": "tools IN",
    "serve": "serve IN",
}
READ_LOGS = ["replay", "check", "stats", "convert", "to file", "to Parquet", "serve"]
PRINT = ["replay", "check", "stats", "convert", "render", "tools"]
CAN_STOP = ["check", "stats", "convert", "to file", "to Parquet"]

# What follows the call in a shell; IN is a good input unless it is named here.
SITUATIONS = {
    "input is missing": ("missing", ""),
    "input is a directory": ("folder", ""),
    "standard input is closed": ("-", "<&-"),
    "record is unreadable": ("--stop-on-error bad.jsonl", ""),
    "folder of output is missing": ("good.jsonl -o nowhere/out", ""),
    "output is full": ("good.jsonl -o /dev/full", ""),
    "output is an input": ("good.jsonl -o good.jsonl", ""),
    "standard output is full": ("", "> /dev/full"),
    "standard output is closed": ("", ">&-"),
    "both outputs are closed": ("", ">&- 2>&-"),
    "reader has gone": ("", "| true"),
    "standard error is closed": ("", "2>&-"),
    "standard error is full": ("", "2> /dev/full"),
    "complaint cannot be printed": ("missing", "2>&-"),
    "complaint does not fit": ("missing", "2> /dev/full"),
}

# commands, situation, exit status, complaint
FAILURES = [
    (CALLS, "input is missing", 2, "missing: No such file or directory"),
    (CALLS, "input is a directory", 2, "folder: Is a directory"),
    (["replay", "check", "tools", "serve"], "standard input is closed", 2,
     "<stdin>: Bad file descriptor"),
    (CAN_STOP, "record is unreadable", 2, "bad.jsonl: line 2: not JSON: Expecting value"),
    (["to file", "to Parquet"], "folder of output is missing", 2,
     "nowhere/out: No such file or directory"),
    (["to file", "to Parquet"], "output is full", 2, "/dev/full: No space left on device"),
    (["to file"], "output is an input", 2,
     "good.jsonl: the output is the same file as the log good.jsonl; name another"),
    (PRINT, "standard output is full", 2, "cannot write the output: No space left on device"),
    (PRINT, "standard output is closed", 2, "cannot write the output: Bad file descriptor"),
    (PRINT, "both outputs are closed", 2, ""),
    (PRINT, "reader has gone", 141, ""),
    (PRINT, "standard error is closed", 0, ""),
    (["check", "convert"], "standard error is full", 0, ""),
    (CALLS, "complaint cannot be printed", 2, ""),
    (["check", "convert", "render"], "complaint does not fit", 2, ""),
]  # fmt: skip
ROWS = [
    (command, situation, status, complaint)
    for commands, situation, status, complaint in FAILURES
    for command in commands
]


@pytest.fixture
def folder(tmp_path):
    """A working folder with inputs."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "good.jsonl").write_text(f"{LINE}\n")
    (tmp_path / "bad.jsonl").write_text(f"{LINE}\nx\n")
    for name in ("conversation.json", "schemas.json"):
        shutil.copy(PROMPTS / name, tmp_path)
    return tmp_path


def in_shell(words, folder):
    script = f"set -o pipefail; {shlex.join(PROGRAM)} {words}"
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=60
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize(("command", "situation", "status", "complaint"), ROWS)
def test_a_failure_has_its_status_and_one_complaint(folder, command, situation, status, complaint):
    given, redirection = SITUATIONS[situation]
    good = {"render": "conversation.json", "tools": "schemas.json"}.get(command, "good.jsonl")
    done = in_shell(f"{CALLS[command]} {redirection}".replace("IN", given or good), folder)
    expected = f"harmony-stream: {complaint}\n" if complaint else ""
    assert (done.returncode, done.stderr) == (status, expected)


@pytest.mark.parametrize("words", ["replay --events", "convert --to events -o -"])
def test_a_reader_that_stops_early_ends_the_command_without_a_complaint(folder, words):
    (folder / "long.jsonl").write_bytes(LONG_LOG)
    done = in_shell(f"{words} long.jsonl | head -c 1", folder)
    assert (done.returncode, done.stdout, done.stderr) == (141, "{", "")


def test_two_failures_are_two_complaints(folder):
    done = in_shell("check bad.jsonl > /dev/full", folder)
    assert (done.returncode, done.stderr) == (
        2,
        "harmony-stream: bad.jsonl: line 2: not JSON: Expecting value\n"
        "harmony-stream: cannot write the output: No space left on device\n",
    )


# -- While a command works -------------------------------------------------------------------------


@contextlib.contextmanager
def at_work(folder, *words):
    """A command that reads a log from a pipe and has begun."""
    with subprocess.Popen(
        [*PROGRAM, *words, "-"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            process.stdin.write(LONG_LOG)
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


WORK = [["check"], ["stats"], ["convert", "--to", "parquet", "-o", "out"], ["replay"]]


@pytest.mark.parametrize("words", WORK, ids=lambda words: words[0])
def test_an_interrupt_ends_a_command_without_a_complaint(folder, words):
    with at_work(folder, *words) as process:
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, error = process.communicate(timeout=60)
    assert (process.returncode, out, error) == (130, b"", b"")
    assert not (folder / "out").exists()


# Workers import the program again, and die in what they were to do.
DYING = """\
import os, signal, sys
from harmony_stream import cli
from harmony_stream.commands import check, convert, stats

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    check.find = stats.count = convert._made = die
    sys.exit(cli.main())
"""


@pytest.mark.parametrize("command", ["check", "stats", "to file"])
def test_a_worker_that_dies_is_one_complaint(folder, command):
    (folder / "dying.py").write_text(DYING)
    words = CALLS[command].replace("IN", "good.jsonl").split()
    done = subprocess.run(
        [sys.executable, "dying.py", *words, "--jobs", "2"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    complaint = "harmony-stream: a worker process died; was it killed for lack of memory?\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", complaint)
    assert not (folder / "out").exists()
