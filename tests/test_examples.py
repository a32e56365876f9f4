"""The files in `examples/`: they are what the script makes, and they run as they stand."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from harmony_stream import Vocabulary, parse
from harmony_stream.logs import read_log

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
MADE = runpy.run_path(str(ROOT / "scripts" / "make_examples.py"))
LOGS = MADE["logs"]()

# What the format guide prints as the tokens of a completion.
GUIDE_TOKENS = [
    *(200005, 35644, 200008, 1844, 31064, 25, 392, 4827, 382, 220, 17, 659, 220, 17, 16842, 12295),
    *(81645, 13, 51441, 6052, 13, 200007, 200006, 173781, 200005, 17196, 200008, 17, 659, 220, 17),
    *(314, 220, 19, 13, 200002),
]

# For each program, lines that it prints.
PROGRAMS = {
    "per_token_callback.py": [
        "1. train",
        '-> functions.book_seat({"class": 2, "window": true})',
    ],
    "async_streaming.py": [
        "two_plus_two: '2'",
        "two_plus_two: return, thought 62 characters",
        'tool_call: calls functions.get_tides with {"harbour": "Saint-Malo", "day": "2025-10-09"}',
    ],
}


def tokens_of(name):
    return list(next(read_log(str(EXAMPLES / name))).completion)


def test_the_committed_logs_are_what_the_script_writes(monkeypatch, tmp_path):
    monkeypatch.setitem(MADE["main"].__globals__, "TARGET", tmp_path)
    MADE["main"]()
    written = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    committed = {
        p.name: p.read_bytes()
        for p in EXAMPLES.iterdir()
        if p.suffix in (".json", ".txt", ".jsonl")
    }
    assert written == committed


def test_two_plus_two_is_the_token_list_of_the_format_guide():
    assert tokens_of("two_plus_two.json") == GUIDE_TOKENS


def test_some_tokens_of_the_emoji_log_are_parts_of_characters():
    vocabulary = Vocabulary.default()
    pieces = map(vocabulary.decode_single_token_bytes, tokens_of("emoji_and_cjk.json"))
    assert any("\N{REPLACEMENT CHARACTER}" in piece.decode(errors="replace") for piece in pieces)


@pytest.mark.parametrize("name", sorted(LOGS.keys() - {"malformed.txt"}))
def test_all_logs_but_one_are_well_formed(name):
    for record in read_log(str(EXAMPLES / name)):
        role = None if name == "conversation.json" else "assistant"
        assert not parse(record.completion, role=role).faults


def test_the_malformed_log_shows_seven_faults_of_different_kinds():
    kinds = [fault.error.kind for fault in parse(tokens_of("malformed.txt")).faults]
    assert len(kinds) == len(set(kinds)) == 7


def test_every_program_is_listed_here():
    needs_an_engine = {"replay_on_ray.py"}  # tests/logs/test_log_engines.py runs it
    programs = {path.name for path in EXAMPLES.glob("*.py")}
    assert programs - needs_an_engine == PROGRAMS.keys()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_as_it_stands(name, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert set(PROGRAMS[name]) <= set(done.stdout.splitlines())


@pytest.mark.parametrize("name", LOGS)
def test_every_log_replays(name):
    command = [sys.executable, "-m", "harmony_stream", "replay", EXAMPLES / name]
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b" tokens, " in done.stdout.splitlines()[-1]
