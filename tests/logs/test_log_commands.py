"""The commands check, stats and convert, as a user runs them."""

import contextlib
import gzip
import io
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from log_command import COMMAND, main
from log_shapes import (
    ANSWER,
    CALL,
    FIRST,
    PROMPT,
    ROWS,
    SECOND,
    THINKING,
    TURN,
    arrow_stream,
    big_log,
    lines,
    npy,
    npz,
    padded,
    parquet,
    ray_table,
    sglang_events,
    sse,
    vllm_completion,
)
from strategies import events_of, examples, streams, tokens_of

import harmony_stream
from harmony_stream import Message
from harmony_stream.commands import check, convert
from harmony_stream.commands.screen import Screen
from harmony_stream.logs import batch, parse_batch, read_log, to_arrow, work
from harmony_stream.logs.readers import json_lines as text

BROKEN = tokens_of("<|channel|>final<|channel|>analysis json<|message|>a<|start|>assistant")
BAD_CALL = tokens_of(CALL.replace("}", ""))
PYTHON = tokens_of("<|channel|>analysis to=python code<|message|>1 +<|call|>")
PLAIN_CALL = tokens_of("<|channel|>commentary to=functions.moor<|message|>{<|call|>")
CUT = FIRST[:-1]
CUT_CALL = SECOND[:-3]
ODD = tokens_of("<|channel|>final\x1b?<|message|>a<|return|>")


@pytest.fixture
def log(tmp_path):
    """A function that makes a log of some completions, or bytes."""

    def make(*rows, name="log.jsonl"):
        path = tmp_path / name
        path.write_bytes(b"".join(r if isinstance(r, bytes) else lines([{"ids": r}]) for r in rows))
        return path

    return make


# -- check -----------------------------------------------------------------------------------------


def findings(capsys, *words):
    status = main(["check", "--json", *words])
    return status, json.loads(capsys.readouterr().out)


def test_a_log_in_which_all_is_well_has_status_0(log, capsys):
    status, found = findings(capsys, log(FIRST, SECOND, PYTHON))

    assert status == 0
    assert found == {
        "records": 3,
        "unreadable": 0,
        "cut": 0,
        "empty": 0,
        "malformed": 0,
        "truncated": 0,
        "tokens": len(FIRST) + len(SECOND) + len(PYTHON),
        "messages": 4,
        "tool_calls": 2,
        "tool_calls_incomplete": 0,
        "kinds": {},
        "unknown_channels": {},
        "worst": [],
        "rate": 0.0,
    }


def test_kinds_are_in_the_order_in_which_they_were_found(log, capsys):
    faults = tokens_of("stray<|channel|>final to= x y<|message|>Yes<|channel|><|message|>No<|end|>")
    _, found = findings(capsys, log(faults))
    kinds = [kind for row in parse_batch([faults])["faults"] for kind in row]
    assert list(found["kinds"]) == list(dict.fromkeys(kinds))
    assert len(found["kinds"]) > 2


@pytest.mark.parametrize(
    ("row", "status", "counts"),
    [
        (BROKEN, 1, {"malformed": 1, "rate": 0.5, "truncated": 0}),
        (BAD_CALL, 1, {"malformed": 1, "kinds": {"arguments_not_json": 1}}),
        (PLAIN_CALL, 1, {"malformed": 1, "kinds": {"arguments_not_json": 1}}),
        (b"{}\n", 1, {"malformed": 0, "unreadable": 1, "records": 1, "rate": 0.5}),
        (CUT, 0, {"truncated": 1, "tool_calls_incomplete": 0}),
        (CUT_CALL, 0, {"truncated": 1, "tool_calls_incomplete": 1, "malformed": 0}),
        (ODD, 0, {"unknown_channels": {"final\x1b?": 1}}),
        ([], 0, {"empty": 1, "records": 2}),
        (b'{"ids": [5', 0, {"cut": 1, "unreadable": 0, "records": 1}),
        (tokens_of("<|end|> well<|start|>"), 1, {"malformed": 1, "messages": 2}),
        ([5], 1, {"malformed": 1, "kinds": {"truncated_in_header": 1}}),
    ],
    ids=[
        *("broken", "a bad call", "a bad plain call", "unreadable", "truncated", "a cut call"),
        *("an odd channel", "an empty record", "a cut line", "stray text", "text only"),
    ],
)
def test_each_kind_of_finding_is_counted(log, capsys, row, status, counts):
    found_status, found = findings(capsys, log(FIRST, row))

    assert found_status == status
    assert {name: found[name] for name in counts} == counts


def test_the_worst_records_come_first_with_the_first_fault_in_words(log, capsys):
    path = log(BAD_CALL, *[[5]] * 12, BROKEN, name="a\x1b.jsonl")
    _, found = findings(capsys, path)

    assert len(found["worst"]) == 10
    assert found["worst"][0] == {
        "source": str(path),
        "record": 14,
        "choice": 0,
        "faults": 2,
        "reason": found["worst"][0]["reason"],
    }
    assert "a second channel" in found["worst"][0]["reason"]
    assert found["worst"][1]["reason"] == "the arguments of a tool call are not JSON"
    assert [bad["record"] for bad in found["worst"][2:]] == list(range(2, 10))


def test_a_report_for_people_cannot_colour_the_terminal(log, capsys):
    status = main(["check", log(BROKEN, ODD, SECOND, b"x\n", name="a\x1b.jsonl")])

    out, error = capsys.readouterr()
    assert status == 1
    assert "\x1b" not in out + error
    assert out.splitlines()[:2] == [
        f"4 records, 3 messages, {len(BROKEN) + len(ODD) + len(SECOND)} tokens",
        "malformed                          1   25.00%",
    ]
    assert "unknown channel                    1  final\\x1b?" in out.splitlines()
    assert "a\\x1b.jsonl: record 1, choice 0: 2 x: a second channel" in out
    assert error.endswith("a\\x1b.jsonl: line 4: not JSON: Expecting value\n")


# -- stats -----------------------------------------------------------------------------------------


def test_tokens_are_counted_by_channel_and_calls_by_name(log, capsys):
    whole = tokens_of("<|start|>user<|message|>Hi<|end|>" + TURN + ANSWER)
    stray = tokens_of("<|end|> well <|start|>")

    status = main(["stats", log(FIRST, SECOND, CUT_CALL, whole, stray, lines([vllm_completion()]))])

    reasoning = len(tokens_of(THINKING)) - 4
    answer = len(tokens_of(ANSWER)) - 4
    total = 2 * len(FIRST) + 2 * len(SECOND) + len(CUT_CALL) + len(whole) + len(stray)
    out = capsys.readouterr().out.splitlines()
    assert status == 0
    assert out[0] == f"7 records, 9 messages, {total} tokens"
    assert out[1] == f"prompts: {2 * len(PROMPT)} tokens"
    shown = {line[:26].strip(): line[26:].split() for line in out if line.startswith("  ")}
    shown = {name: values for name, values in shown.items() if values}
    assert shown["final"][0] == str(3 * answer)
    assert shown["analysis"][0] == str(2 * reasoning)
    assert shown["(user)"][0] == "1"
    assert shown["(outside of messages)"][0] == str(len(stray) - 2)
    assert shown["functions.moor"] == ["3", "incomplete:", "1"]
    assert shown["all"][-1] == str(len(FIRST))
    assert shown["reasoning"] == ["0", str(reasoning), str(reasoning), str(reasoning)]
    parts = [int(shown[name][0]) for name in shown if shown[name][-1].endswith("%")]
    assert sum(parts) == total


def test_lengths_are_shown_as_a_histogram(log, capsys):
    main(["stats", log([], FIRST, FIRST, SECOND, CUT_CALL)])

    assert capsys.readouterr().out.splitlines()[-6:] == [
        "       0-0              1  " + "#" * 10,
        "       1-1              0",
        "       2-3              0",
        "       4-7              0",
        "       8-15             0",
        "      16-31             4  " + "#" * 40,
    ]


def test_statistics_of_nothing_are_short(log, capsys):
    status = main(["stats", log(b"{}\n")])

    assert status == 1
    assert capsys.readouterr().out.startswith("0 records, 0 messages, 0 tokens\n")


# -- convert ---------------------------------------------------------------------------------------


def converted(path, shape, *words, jobs=1):
    target = path.parent / "out"
    status = main(["convert", "--to", shape, "-o", target, "--jobs", jobs, *words, path])
    assert status == 0
    return target


def json_lines(path):
    return list(map(json.loads, path.read_text("ascii").splitlines()))


ALL = [FIRST, SECOND, BROKEN, CUT, ODD, [], [5], PYTHON]


@pytest.mark.parametrize("jobs", [1, 2])
def test_events_are_those_of_the_parser(log, jobs, monkeypatch):
    monkeypatch.setattr(text, "_BLOCK", 100)
    path = log(*ALL)

    found = json_lines(converted(path, "events", jobs=jobs))

    place = {"source": str(path), "choice": 0}
    assert found == [
        {"source": str(path), "record": n, "choice": 0} | event.to_dict()
        for n, row in enumerate(ALL, 1)
        for event in harmony_stream.join_deltas(events_of(row))
    ]
    assert all(line.items() >= place.items() for line in found)


@pytest.mark.parametrize("jobs", [1, 2])
def test_messages_come_back_as_messages(log, jobs, monkeypatch):
    monkeypatch.setattr(text, "_BLOCK", 100)

    found = json_lines(converted(log(*ALL), "messages", jobs=jobs))

    for number, row in enumerate(ALL, 1):
        completion = harmony_stream.parse(row)
        mine = [line for line in found if line["record"] == number]
        said = [line for line in mine if line["type"] == "message"]
        assert tuple(map(Message.from_dict, said)) == completion.messages
        assert [(line["end"], line["complete"]) for line in said] == [
            (end.end, end.complete) for end in completion.ends
        ]
        assert sum(len(line["faults"]) for line in mine) == len(completion.faults)


def test_what_stands_outside_of_messages_is_a_line_too(log):
    (_, line) = json_lines(
        converted(log(FIRST[:9], tokens_of("<|end|> well<|start|>")), "messages")
    )

    assert line == {
        "source": line["source"],
        "record": 2,
        "choice": 0,
        "type": "outside",
        "content": [{"type": "text", "text": " well"}],
        "start": 1,
        "stop": 2,
        "faults": ["expected_start"],
    }


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_table_holds_what_parse_batch_gives(log, jobs, monkeypatch):
    monkeypatch.setattr(text, "_BLOCK", 100)

    found = pq.read_table(converted(log(*ALL), "parquet", jobs=jobs))

    wanted = to_arrow(parse_batch(ALL))
    assert found.column_names == ["source", "record", "choice", *wanted.column_names[1:]]
    assert found.select(wanted.column_names[1:]).equals(wanted.drop_columns("row"))
    assert found["record"].to_pylist() == [row + 1 for row in wanted["row"].to_pylist()]


def test_a_table_of_a_capture_is_that_of_its_completions(log):
    capture = log(sse(sglang_events()), name="a.sse")

    found = pq.read_table(converted(capture, "parquet"))

    assert found["text"].to_pylist() == parse_batch([FIRST])["text"]


def test_chat_has_thinking_calls_and_answers(log):
    conversation = tokens_of(
        "<|start|>user<|message|>Moor it.<|end|>"
        + TURN
        + THINKING
        + TURN
        + "<|channel|>commentary<|message|>I moor it.<|end|>"
        + TURN
        + CALL
        + "<|start|>functions.moor to=assistant<|channel|>commentary<|message|>ok<|end|>"
        + "<|start|>functions.other to=assistant<|channel|>commentary<|message|>no<|end|>"
        + TURN
        + ANSWER
    )
    first, second, third = json_lines(converted(log(conversation, CUT, []), "chat"))

    assert first["messages"] == [
        {"role": "user", "content": "Moor it."},
        {
            "role": "assistant",
            "content": "I moor it.",
            "thinking": "The tide is out.",
            "tool_calls": [
                {
                    "id": "call_0",
                    "type": "function",
                    "function": {"name": "moor", "arguments": '{"berth": 4}'},
                }
            ],
        },
        {"role": "tool", "content": "ok", "name": "moor", "tool_call_id": "call_0"},
        {"role": "tool", "content": "no", "name": "other"},
        {"role": "assistant", "content": "Three boats are in. ⛵"},
    ]
    assert (first["complete"], first["faults"]) == (True, [])
    assert (second["complete"], second["messages"][0]["thinking"]) == (False, "The tide is out.")
    assert (third["record"], third["messages"], third["complete"]) == (3, [], False)


def test_in_chat_an_answer_never_grows_by_what_was_sampled_after_return(log):
    tokens = tokens_of(ANSWER + TURN + ANSWER)
    [record] = json_lines(converted(log(tokens), "chat"))
    answer = {"role": "assistant", "content": "Three boats are in. ⛵"}
    assert record["messages"] == [answer, answer]


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("<|channel|>commentary to=functions.f<|message|> <|call|>", "{}"),
        ("<|channel|>commentary to=functions.f <|constrain|>json<|message|><|call|>", "{}"),
        ("<|channel|>commentary to=functions.f code<|message|> <|call|>", " "),
        ("<|channel|>commentary to=functions.f<|message|> ", " "),  # cut off
    ],
)
def test_in_chat_a_complete_call_without_arguments_has_an_empty_object(log, call, arguments):
    [record] = json_lines(converted(log(tokens_of(call)), "chat"))
    assert record["messages"][0]["tool_calls"][0]["function"]["arguments"] == arguments


def test_chat_keeps_the_texts_of_messages_apart(log):
    preamble = "<|channel|>commentary<|message|>I moor it.<|end|>"
    empty = "<|channel|>commentary<|message|><|end|>"
    tokens = tokens_of(THINKING + TURN + preamble + TURN + empty + TURN + THINKING + TURN + ANSWER)
    [record] = json_lines(converted(log(tokens), "chat"))

    [message] = record["messages"]
    assert message["content"] == "I moor it.\n\nThree boats are in. ⛵"
    assert message["thinking"] == "The tide is out.\n\nThe tide is out."


def test_standard_input_and_output_are_files_too(tmp_path):
    done = subprocess.run(
        [*COMMAND, "convert", "--to", "chat", "-o", "-", "-"],
        input=lines([FIRST]),
        capture_output=True,
        check=True,
    )

    assert json.loads(done.stdout)["messages"][0]["content"] == "Three boats are in. ⛵"
    assert json.loads(done.stdout)["source"] == "<stdin>"


def test_lines_on_standard_output_are_those_of_a_file(log, capsysbinary):
    path = log(FIRST)
    main(["convert", "--to", "events", "-o", "-", path])

    assert capsysbinary.readouterr().out == converted(path, "events").read_bytes()


def test_a_record_that_cannot_be_read_is_left_out_with_status_1(log, capsys):
    path = log(FIRST, b"x\n", SECOND)
    status = main(["convert", "--to", "chat", "-o", path.parent / "out", path])

    assert (status, len(json_lines(path.parent / "out"))) == (1, 2)
    assert capsys.readouterr().err.endswith("line 2: not JSON: Expecting value\n")


def test_a_line_that_is_cut_is_no_failure(log, capsys):
    path = log(FIRST, b'{"ids": [5')
    status = main(["convert", "--to", "chat", "-o", path.parent / "out", path])

    assert status == 0
    assert capsys.readouterr().err.endswith("log.jsonl: line 2: the last line is cut off\n")


@pytest.mark.parametrize("shape", ["messages", "chat", "parquet"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_arguments_that_are_no_json_are_problems(log, shape, jobs):
    target = converted(log(FIRST, BAD_CALL, PLAIN_CALL, CUT_CALL, PYTHON), shape, jobs=jobs)

    table = pq.read_table(target).to_pylist() if shape == "parquet" else json_lines(target)
    found = {line["record"]: line["faults"] for line in table}
    bad = ["arguments_not_json"]
    assert found == {1: [], 2: bad, 3: bad, 4: [], 5: []}


rows_of_logs = streams.map(lambda row: [min(token, 2**32 - 1) for token in row])
rows_of_logs |= st.sampled_from([BAD_CALL, PLAIN_CALL, CUT_CALL])


@given(st.lists(rows_of_logs, min_size=1, max_size=3))
@examples(50)
def test_every_command_tells_the_same_problems(rows):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        path.write_bytes(lines([{"ids": row} for row in rows]))
        told = [line["faults"] for line in json_lines(converted(path, "messages"))]
        chats = [line["faults"] for line in json_lines(converted(path, "chat"))]
        (found,) = map(check.find, work.batches(read_log(path), strict=True))
    shown = sum(Screen(io.StringIO()).play("", len(row), batch.events_of(row)) for row in rows)

    assert found.malformed == sum(map(bool, chats))
    assert sum(map(len, told)) == sum(map(len, chats)) == shown


# -- Where convert writes --------------------------------------------------------------------------

OWN_NAMES = ["log.jsonl", "./log.jsonl", "folder/../log.jsonl", "hard", "soft", "chain", "HERE"]


@pytest.fixture
def names(log, monkeypatch):
    """A log with many names, in the working folder."""
    path = log(FIRST, SECOND)
    monkeypatch.chdir(path.parent)
    os.mkdir("folder")
    os.link("log.jsonl", "hard")
    os.symlink("log.jsonl", "soft")
    os.symlink("soft", "chain")
    return path


@pytest.mark.parametrize("shape", ["events", "messages", "chat", "parquet"])
@pytest.mark.parametrize("output", OWN_NAMES)
def test_a_log_is_never_its_own_output(names, capsys, output, shape):
    output = output.replace("HERE", str(names))
    before, files = names.read_bytes(), sorted(os.listdir())

    for logs in (["log.jsonl"], ["missing", "hard"], ["chain", "log.jsonl"]):
        assert main(["convert", "--to", shape, "-o", output, *logs]) == 2

        named = next(log for log in logs if log != "missing")
        reason = f"{output}: the output is the same file as the log {named}; name another"
        assert capsys.readouterr() == ("", f"harmony-stream: {reason}\n")
        assert (names.read_bytes(), sorted(os.listdir())) == (before, files)


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_a_compressed_log_is_not_its_own_output_either(log, compress):
    path = log(compress(lines([{"ids": FIRST}])))
    before = path.read_bytes()

    assert main(["convert", "--to", "chat", "-o", path, path]) == 2
    assert path.read_bytes() == before


SHELL = [
    ('-o log.jsonl - < log.jsonl', "log.jsonl: the output is the same file as the log <stdin>"),
    ('-o hard - < log.jsonl', "hard: the output is the same file as the log <stdin>"),
    ('-o - log.jsonl >> log.jsonl', "<stdout>: the output is the same file as the log log.jsonl"),
    ('-o - - < log.jsonl >> hard', "<stdout>: the output is the same file as the log <stdin>"),
    ('-o /dev/fd/3 soft 3>> hard', "/dev/fd/3: the output is the same file as the log soft"),
    ('-o log.jsonl /dev/fd/3 3< hard', "log.jsonl: the output is the same file as the log /dev/"),
]  # fmt: skip


def in_shell(words, **options):
    command = " ".join(map(shlex.quote, COMMAND)) + " convert --to chat " + words
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, **options)


@pytest.mark.parametrize(("words", "reason"), SHELL)
def test_what_a_shell_redirects_is_known_as_well(names, words, reason):
    before = names.read_bytes()
    done = in_shell(words)

    assert (done.returncode, done.stdout, names.read_bytes()) == (2, "", before)
    assert done.stderr.startswith(f"harmony-stream: {reason}")


def test_a_log_may_go_where_another_copy_of_it_is(names):
    os.symlink("copy", "link")
    for output in ("link", "copy", "link"):
        assert main(["convert", "--to", "chat", "-o", output, "log.jsonl"]) == 0
    assert len(json_lines(Path("copy"))) == 2
    assert os.readlink("link") == "copy"


@pytest.mark.parametrize("shape", ["events", "messages", "chat", "parquet"])
def test_an_output_may_be_a_fifo_or_a_descriptor(log, tmp_path, shape):
    path, fifo, shown = log(FIRST, SECOND), tmp_path / "fifo", tmp_path / "shown"
    wanted = converted(path, shape).read_bytes()
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    assert main(["convert", "--to", shape, "-o", fifo, path]) == 0
    assert os.read(reader, 1 << 16) == wanted
    os.close(reader)
    with shown.open("wb", buffering=0) as out:
        out.write(b"head ")
        assert main(["convert", "--to", shape, "-o", f"/proc/self/fd/{out.fileno()}", path]) == 0
        out.write(b" tail")
    assert shown.read_bytes() == b"head " + wanted + b" tail"
    assert fifo.is_fifo()


def test_an_output_keeps_its_mode_and_a_new_one_has_that_of_the_umask(log):
    path = log(FIRST)
    target = path.with_name("out")
    target.touch(0o600)
    assert converted(path, "chat").stat().st_mode & 0o777 == 0o600
    target.unlink()
    mask = os.umask(0)
    os.umask(mask)
    assert converted(path, "chat").stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_conversion_that_is_told_to_end_leaves_nothing_behind(log, monkeypatch, number):
    path = log(FIRST)
    monkeypatch.setattr(convert, "results", lambda *_: signal.raise_signal(number))

    with pytest.raises(SystemExit) as caught:
        main(["convert", "--to", "chat", "-o", path.with_name("out"), path])

    assert caught.value.code == 128 + number
    assert os.listdir(path.parent) == ["log.jsonl"]
    assert signal.getsignal(number) is signal.SIG_DFL


def test_signals_that_others_handle_stay_theirs(log, monkeypatch):
    monkeypatch.setattr(convert, "results", lambda *_: signal.raise_signal(signal.SIGHUP) or [])
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        converted(log(FIRST), "chat")
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_conversion_may_run_in_a_thread(log):
    with ThreadPoolExecutor() as pool:
        found = pool.submit(converted, log(FIRST), "chat").result()
    assert len(json_lines(found)) == 1


# -- What they share -------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("words", [["check"], ["stats"], ["convert", "--to", "chat", "-o", "OUT"]])
def test_the_strict_mode_stops_with_status_2_and_writes_nothing(log, capsys, words, jobs):
    path = log(FIRST, b"x\n", SECOND)
    words = [str(path.parent / "out") if word == "OUT" else word for word in words]

    status = main([*words, "--stop-on-error", "--jobs", jobs, path])

    out, error = capsys.readouterr()
    assert (status, out) == (2, "")
    assert error == f"harmony-stream: {path}: line 2: not JSON: Expecting value\n"
    assert os.listdir(path.parent) == ["log.jsonl"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["check", "/nowhere/log"], "/nowhere/log: No such file or directory"),
        (["stats", "/"], "/: Is a directory"),
        (["convert", "--to", "chat", "-o", "/nowhere/out", "LOG"], "/nowhere/out: No such file"),
        (["convert", "--to", "parquet", "-o", "-", "LOG"], "Parquet does not go to standard out"),
        (["check", "--format", "parquet", "LOG"], "LOG: "),
        (["check", "--format", "npz", "LOG"], "LOG: File is not a zip file"),
    ],
)
def test_what_cannot_be_used_is_one_sentence_and_status_2(log, capsys, words, error):
    path = str(log(FIRST))

    status = main([path if word == "LOG" else word for word in words])

    out, found = capsys.readouterr()
    assert (status, out, found.count("\n")) == (2, "", 1)
    assert found.startswith("harmony-stream: " + error.replace("LOG", path))


@pytest.mark.parametrize("words", [["check"], ["check", "--jobs", "0", "x"], ["convert", "x"]])
def test_wrong_arguments_have_status_2(capsys, words):
    with pytest.raises(SystemExit) as caught:
        main(words)

    assert (caught.value.code, "usage: harmony-stream" in capsys.readouterr().err) == (2, True)


@pytest.mark.parametrize("command", ["check", "stats", "convert"])
def test_the_help_has_examples_and_tells_the_exit_status(capsys, command):
    with pytest.raises(SystemExit):
        main([command, "--help"])

    out = capsys.readouterr().out
    assert f"examples:\n  harmony-stream {command} " in out
    assert "exit status: 0 if" in out
    assert "130 after Ctrl-C" in out


def test_places_of_ids_lengths_and_pads_may_be_told(log, capsys):
    arrays = log(npz(a=padded(pad=7), n=[len(row) for row in ROWS]), name="a.npz")

    for words in (["--lengths", "n"], ["--pad-id", "7"]):
        assert findings(capsys, "--ids", "a", *words, arrays)[1]["tokens"] == sum(map(len, ROWS))


def test_several_logs_are_taken_in_order(log, capsys):
    logs = [log(FIRST, name="b"), log(parquet(ray_table([BROKEN])), name="a")]
    _, found = findings(capsys, *logs)

    assert (found["records"], found["worst"][0]["source"]) == (2, str(logs[1]))


@pytest.mark.parametrize("rows", [1, 3])
def test_row_groups_are_read_where_they_are_parsed(log, capsys, rows):
    table = pa.concat_tables([ray_table()] * 4)
    path = log(parquet(table, row_group_size=rows), name="a.parquet")

    assert findings(capsys, "--jobs", "2", path) == findings(capsys, path)
    assert [record.number for record in read_log(path)] == list(range(1, 9))


def test_an_array_without_rows_has_nothing_to_replay(log, capsys):
    path = log(npy(np.zeros((0, 5), int)), name="a.npy")
    assert main(["replay", path]) == 2
    assert capsys.readouterr().err == f"harmony-stream: {path}: no records\n"


# -- Logs that hold nothing, and logs that break off -----------------------------------------------

NOTHING = {
    "no bytes": b"",
    "white space": b" \n",
    "gzip": gzip.compress(b""),
    "a capture of comments": b": ping\n\n",
}
WORDS = [["check"], ["stats"], *(["convert", "--to", to] for to in ("events", "chat", "parquet"))]


def run(words, path, *more):
    output = ["-o", path.parent / "out"] if words[0] == "convert" else []
    return main([*words, *output, *more, path])


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
@pytest.mark.parametrize("data", NOTHING.values(), ids=NOTHING)
def test_a_log_that_holds_nothing_is_0_records_to_each_command(log, capsys, words, data):
    path = log(data)

    assert run(words, path) == 0

    out, error = capsys.readouterr()
    assert error == f"harmony-stream: {path}: empty, expected token ids\n"
    assert not out or out.startswith("0 records, 0 messages, 0 tokens\n")


@pytest.mark.parametrize("words", WORDS[:2], ids=" ".join)
@pytest.mark.parametrize("data", [b"[]", b"[[]]", b'{"ids": []}\n'])
def test_an_empty_list_is_1_record_to_each_command(log, capsys, words, data):
    assert run(words, log(data)) == 0
    assert capsys.readouterr().out.startswith("1 records, 0 messages, 0 tokens\n")


HALF = json.dumps([FIRST, SECOND] * 50).encode()
HALF = HALF[: len(HALF) // 2]
BREAKS_OFF = {
    "half a document": HALF,
    "half a document in gzip": gzip.compress(HALF),
    "half of a gzip": gzip.compress(json.dumps([FIRST, SECOND] * 50).encode())[:-40],
    "an object on one line": json.dumps(vllm_completion()).encode()[:-20],
    "an object on many lines": json.dumps(vllm_completion(), indent=1).encode()[:-20],
    "an array on one line": json.dumps(FIRST).encode()[:-9],
    "an array file": npy(padded())[:-8],
    "batches": arrow_stream(ray_table())[:-8],
    "half a compressed line log": gzip.compress(lines([{"ids": FIRST}]))[:-20],
    "half an event": sse(sglang_events())[:40],
}


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
@pytest.mark.parametrize("data", BREAKS_OFF.values(), ids=BREAKS_OFF)
def test_a_log_that_breaks_off_is_no_success_and_no_output_looks_whole(log, capsys, words, data):
    path = log(data)

    status = run(words, path)

    assert status == (2 if words[0] == "convert" else 1)
    assert re.search("cut off|lost its end", capsys.readouterr().err)
    assert os.listdir(path.parent) == ["log.jsonl"]


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
@pytest.mark.parametrize(
    "data", [lines([FIRST, SECOND])[:-9], sse(sglang_events())[:-90], gzip.compress(
        lines([FIRST] * 3))[:-9]], ids=["lines", "events", "compressed lines"]
)  # fmt: skip
def test_a_log_that_grows_may_end_anywhere_and_it_is_said(log, capsys, words, data):
    assert run(words, log(data)) == 0
    assert "cut off" in capsys.readouterr().err


def test_the_limit_of_a_record_may_be_told(log, capsys):
    path = log(FIRST, [5])

    assert run(["check"], path, "--max-record-bytes", "50") == 1
    assert "line 1: longer than 50 bytes; if that is intended, raise" in capsys.readouterr().err
    for wrong in ("0", "x"):
        with pytest.raises(SystemExit):
            run(["check"], path, "--max-record-bytes", wrong)
        assert f"{wrong} is not a positive number of bytes" in capsys.readouterr().err


# -- Progress --------------------------------------------------------------------------------------


def on_a_terminal(words, hide_rich=False):
    """What standard error shows if it is a terminal, and what came on standard output."""
    begin = "import sys; sys.modules['rich'] = None; " if hide_rich else ""
    source = f"{begin}from log_command import main; main({list(map(str, words))})"
    leader, follower = pty.openpty()
    shown: list[bytes] = []
    # Read while it is written: a terminal takes a few kilobytes, then the program waits.
    reader = threading.Thread(target=lambda: shown.extend(parts_of(leader)))
    reader.start()
    done = subprocess.run(
        [sys.executable, "-c", source],
        stdout=subprocess.PIPE,
        stderr=follower,
        check=True,
        stdin=subprocess.DEVNULL,
        cwd=Path(__file__).parent,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "99"},
    )
    os.close(follower)
    reader.join()
    os.close(leader)
    return b"".join(shown).decode(), done.stdout.decode()


def parts_of(descriptor):
    with contextlib.suppress(OSError):  # the other end is closed
        while part := os.read(descriptor, 65536):
            yield part


def test_a_terminal_shows_progress_with_rate_and_time_left(tmp_path):
    path = big_log(tmp_path / "log.jsonl", 300_000)

    shown, out = on_a_terminal(["check", path])

    assert "tokens/s" in shown
    assert "100%" in shown
    assert "tokens/s" not in out


def test_without_rich_a_terminal_shows_nothing(tmp_path):
    path = big_log(tmp_path / "log.jsonl", 1000)

    assert on_a_terminal(["check", path], hide_rich=True)[0] == ""


def test_elsewhere_progress_is_quiet(tmp_path):
    done = subprocess.run(
        [*COMMAND, "check", big_log(tmp_path / "log.jsonl", 1000)], capture_output=True, check=True
    )

    assert done.stderr == b""
