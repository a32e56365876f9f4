"""The command: what it shows, what it refuses, and how it ends."""

import contextlib
import errno
import io
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, streams

from harmony_stream import LoadError, Vocabulary, cli, iter_events
from harmony_stream.commands import replay as replay_command
from harmony_stream.commands.exit_status import ExitStatus
from harmony_stream.commands.screen import Screen

START, CHANNEL, MESSAGE, END, RETURN, CALL = 200006, 200005, 200008, 200007, 200002, 200012
FINAL, ANALYSIS, COMMENTARY, ASSISTANT = 17196, 35644, 12606, 173781
UNKNOWN = 300000


def ids(marked_text):
    return Vocabulary.default().tiktoken_encoding.encode(marked_text, allowed_special="all")


def final(text):
    return ids(f"<|channel|>final<|message|>{text}<|return|>")


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def log(tmp_path):
    """Writes a log, of ids or of any content, and gives its path."""

    def write(content):
        if isinstance(content, list):
            content = json.dumps(content)
        path = tmp_path / "log"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


@pytest.fixture
def replay(log, capsys):
    """Replays a log that went well; gives what was shown."""

    def run(content, *options):
        status = cli.main(["replay", log(content), *options])
        captured = capsys.readouterr()
        assert (status, captured.err) == (0, "")
        return captured.out

    return run


@pytest.fixture
def stdin(tmp_path):
    """Lets a text be the standard input of this process."""
    saved = os.dup(0)

    def put(content):
        path = tmp_path / "stdin"
        path.write_bytes(content)
        with path.open("rb") as file:
            os.dup2(file.fileno(), 0)

    yield put
    os.dup2(saved, 0)
    os.close(saved)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def on_terminal(path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    with contextlib.redirect_stdout(terminal):
        assert cli.main(["replay", path]) == 0
    return terminal.getvalue()


# -- What is shown --

SHOWN = {
    "<|channel|>analysis<|message|>Hm.<|end|>"
    "<|start|>assistant<|channel|>final<|message|>Yes.<|return|>": """\
assistant analysis | reasoning
  Hm.
-- end

assistant final | answer
  Yes.
-- return
""",
    "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>": """\
assistant commentary | tool call functions.f (json)
  {}
-- call
""",
    "<|channel|>commentary to=functions.f<|message|>{": """\
assistant commentary | tool call functions.f
  {
-- truncated: the stream ends here; the call is incomplete and must not be executed
""",
    '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a":<|call|>': """\
assistant commentary | tool call functions.f (json)
  {"a":
!! arguments_not_json: the arguments of a tool call are not JSON
-- call
""",
    "<|channel|>analysis to=python code<|message|>1 +<|call|>": """\
assistant analysis | tool call python (code)
  1 +
-- call
""",
    "<|channel|>commentary<|message|>First\n\n\tthen\n<|end|>": """\
assistant commentary | preamble
  First

  \tthen
-- end
""",
    "<|channel|>analysis to=assistant<|message|>Note.<|end|>": """\
assistant analysis | reasoning to assistant
  Note.
-- end
""",
    "<|start|>user:Ada<|message|>Hi<|end|>"
    "<|start|>functions.f to=assistant<|channel|>commentary<|message|>1<|end|>": """\
user:Ada
  Hi
-- end

tool:functions.f commentary | tool result to assistant
  1
-- end
""",
    "<|channel|>final<|message|>One<|start|>assistant<|channel|>final<|message|>two<|return|>": """\
assistant final | answer
  One
!! missing_end: token 200006 ('<|start|>') at position 4 inside the content of a message; \
expected <|end|>, <|return|>, <|call|>, <|endoftext|> or text first
-- implicit: the next message begins without an end of this one

assistant final | answer
  two
-- return
""",
    "<|start|>user to=f<|start|>user<|message|>Hi<|end|>": """\
!! unexpected_start: token 200006 ('<|start|>') at position 4 inside a header, \
header text so far: 'user to=f'; expected <|channel|>, <|constrain|>, <|message|> or text
!! text outside any message: 'user to=f'

user
  Hi
-- end
""",
}


@pytest.mark.parametrize("marked_text", SHOWN)
def test_a_stream_is_shown_as_it_arose(marked_text, replay):
    shown = replay(ids(marked_text)).rpartition("\n\n")[0]  # less the summary
    assert f"{shown}\n" == SHOWN[marked_text]


BAD_CALL = ids("<|channel|>commentary to=functions.f<|message|>{<|call|>")
SUMMARIES = [
    (BAD_CALL, f"{len(BAD_CALL)} tokens, 1 message, 1 fault"),
    (BAD_CALL[:-1], f"{len(BAD_CALL) - 1} tokens, 1 message, 0 faults"),
    ([*BAD_CALL, UNKNOWN], f"{len(BAD_CALL) + 1} tokens, 1 message, 2 faults"),
    ([], "0 tokens, 0 messages, 0 faults"),
    ([MESSAGE], "1 token, 1 message, 0 faults"),
    ([CHANNEL, FINAL, MESSAGE, START, ASSISTANT, MESSAGE], "6 tokens, 2 messages, 1 fault"),
    (
        [CHANNEL, FINAL, MESSAGE, CHANNEL, CHANNEL, FINAL, MESSAGE],
        "7 tokens, 2 messages, 2 faults",
    ),
]


@pytest.mark.parametrize(("tokens", "summary"), SUMMARIES)
def test_a_stream_is_summed_up_at_its_end(tokens, summary, replay):
    assert replay(tokens).splitlines()[-1] == summary


CONTENT = {
    "\x1b[31mred\x1b[0m\x07": "\\x1b[31mred\\x1b[0m\\x07",
    "over\rwritten\b\x7f": "over\\x0dwritten\\x08\\x7f",
    "\x9b2J\u202edrawkcab\u2066": "\\x9b2J\\u202edrawkcab\\u2066",
    "a\u2028b\x0bc\x85d": "a\\u2028b\\x0bc\\x85d",
    "[bold]x[/bold] :smile: [/]": "[bold]x[/bold] :smile: [/]",
    "日本 👩🏽‍🍳 é\u00a0\u3000\t.": "日本 👩🏽‍🍳 é\u00a0\u3000\t.",
    "a\u200fb\u061cc\u200bd\ufeffe": "a\\u200fb\\u061cc\\u200bd\\ufeffe",
    "\u00ad\u180e\u2060\U000e0041.": "\\xad\\u180e\\u2060\\U000e0041.",
    "👩\u200d": "👩\\u200d",
    "👩\u200d\nb": "👩\\u200d\n  b",
    "\n-- return\n\nuser\nHi": "\n  -- return\n\n  user\n  Hi",
}


@pytest.mark.parametrize("text", CONTENT)
def test_content_is_data(text, replay):
    lead = "" if text.startswith("\n") else "  "
    assert replay(final(text)).startswith(
        f"assistant final | answer\n{lead}{CONTENT[text]}\n-- return\n"
    )


@pytest.mark.parametrize("text", [text for text in CONTENT if "\x1b" not in text])
def test_content_is_data_on_a_terminal_too(text, log, monkeypatch):
    shown = on_terminal(log(final(text)), monkeypatch)
    assert all(line in shown for line in CONTENT[text].split("\n"))


def test_control_characters_in_a_header_are_shown_visibly(replay):
    tokens = [CHANNEL, *ids("a\x1b[2Jb"), MESSAGE, RETURN]
    assert "\x1b" not in replay(tokens)


def test_text_that_the_output_cannot_encode_is_escaped(log):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with contextlib.redirect_stdout(out):
        assert cli.main(["replay", log(final("né"))]) == 0
    assert b"n\\xe9" in out.buffer.getvalue()


# -- Shapes --

TOKENS = final("Hi")
WORDS = " ".join(map(str, TOKENS))
ONE_STREAM = {
    "array": json.dumps(TOKENS),
    "array in lines": json.dumps(TOKENS, indent=1),
    "words": WORDS,
    "words in lines": WORDS.replace(" ", "\r\n"),
    "byte order mark": "\ufeff" + WORDS,
    "leading white space": f" \n {WORDS}\n\n",
}


@pytest.mark.parametrize("shape", ONE_STREAM)
def test_ids_may_be_an_array_or_words(shape, replay):
    assert replay(ONE_STREAM[shape]).startswith("assistant final | answer\n  Hi\n-- return\n")


@pytest.mark.parametrize("field", ["token_ids", "tokens", "completion_ids"])
def test_each_json_line_is_a_stream_of_its_own(field, replay):
    line = json.dumps({"id": "a\u2028b", field: TOKENS}, ensure_ascii=False)
    shown = replay(f"{line}\r\n\n{line}")
    stream = "\n\nassistant final | answer\n  Hi\n-- return\n\n5 tokens, 1 message, 0 faults\n"
    assert shown == f"== line 1 =={stream}\n== line 3 =={stream}"


def test_the_ids_of_the_completion_count_before_tokens_of_any_kind(replay):
    record = {"tokens": ["Hi"], "completion_ids": TOKENS}
    assert "  Hi\n" in replay(json.dumps(record))


def test_a_dash_is_standard_input(stdin, capsys):
    stdin(WORDS.encode())
    assert cli.main(["replay", "-"]) == 0
    assert "  Hi\n" in capsys.readouterr().out


# -- What is refused --

ID = "a token id, an integer from 0 to 4294967295"
WORD = "a token id was expected, an integer from 0 to 4294967295"
FORMATS = "which is not a known format; expected ids, json, jsonl, sse, npy, npz, parquet, arrow"
REFUSED = {
    b"": "empty, expected token ids",
    b" \n\t ": "empty, expected token ids",
    b"1 2\n3 \xff": f'line 2: "\\\\xff" where {WORD}',
    b"\xff\xfe1\x00": "begins with b'\\xff\\xfe1\\x00', is text in UTF-16 or UTF-32, or not text; "
    "save it as UTF-8",
    b"1 2\n-5": f'line 2: "-5" where {WORD}',
    b"1\n\n2.0": f'line 3: "2.0" where {WORD}',
    b"1_000": f'line 1: "1_000" where {WORD}',
    b"4294967296": f'line 1: "4294967296" where {WORD}',
    b"9" * 5000: f'line 1: "{"9" * 39}... where {WORD}',
    b"1 2\n[3]": f'line 2: "[3]" where {WORD}',
    b"\x1b[2J": f"begins with b'\\x1b[2J', {FORMATS}",
    b"[1, 2, -3]": f"line 1: item 2 of the completion is -3, expected {ID}",
    b"\n[true]": f"line 2: item 0 of the completion is true, expected {ID}",
    b"[1, null]": f"line 1: item 1 of the completion is null, expected {ID}",
    b"[1, [2]]": f"line 1: item 1 of the completion is an array, expected {ID}",
    b'[1, "2"]': f'line 1: item 1 of the completion is "2", expected {ID}',
    b"[1, NaN]": f"line 1: item 1 of the completion is NaN, expected {ID}",
    b"[1, 4294967296]": f"line 1: item 1 of the completion is 4294967296, expected {ID}",
    b"[" + b"9" * 5000 + b"]": "line 1: a number with too many digits",
    b"[" * 100_000: "line 1, column 2: JSON that is nested too deeply; what follows cannot be read",
    b"\n[\n1,\n2,\n\n3.5]": (
        f"row 1, which begins in line 2: item 2 of the completion is 3.5, expected {ID}"
    ),
    b"[1,\n2,": "line 2, column 3: not JSON: it is cut off; what follows cannot be read",
    b'{"token_ids": [1, 2': "line 1: the log is cut off before its first line ends",
    b'{"tokens": [1]}\r\n{"tokens": [1, [2]]}': (
        f"line 2: item 1 of the completion is an array, expected {ID}"
    ),
    b'{"tokens": [1]}\n{"tokens": [-1]}\n{"tokens": [1]}': (
        f"line 2: item 0 of the completion is -1, expected {ID}"
    ),
}


@pytest.mark.parametrize("content", REFUSED, ids=lambda content: repr(content[:40]))
def test_a_bad_log_is_refused_as_a_whole_with_file_line_and_reason(content, log, capsys):
    path = log(content)
    assert cli.main(["replay", path]) == 2
    assert capsys.readouterr() == ("", f"harmony-stream: {path}: {REFUSED[content]}\n")


def test_a_last_line_that_is_cut_off_is_reported_and_left_out(log, capsys):
    path = log(json.dumps({"token_ids": TOKENS}) + '\n{"token_ids": [1, 2')
    assert cli.main(["replay", path]) == 0
    captured = capsys.readouterr()
    assert captured.err == f"harmony-stream: {path}: line 2: the last line is cut off\n"
    assert (
        captured.out
        == "assistant final | answer\n  Hi\n-- return\n\n5 tokens, 1 message, 0 faults\n"
    )


def test_records_can_be_chosen(replay):
    lines = "\n".join(json.dumps({"token_ids": final(word)}) for word in ("a", "b", "c"))
    shown = replay(lines, "--record", "1,3")
    assert [line for line in shown.splitlines() if line.startswith("=")] == [
        "== line 1 ==",
        "== line 3 ==",
    ]


def test_a_record_that_is_not_there_is_told(log, capsys):
    path = log(TOKENS)
    assert cli.main(["replay", path, "--record", "5"]) == 2
    expected = f"harmony-stream: {path}: no record matches --record 5\n"
    assert capsys.readouterr() == ("", expected)


def test_a_choice_of_records_that_is_none_is_refused(log, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["replay", log(TOKENS), "--record", "3-1"])
    assert caught.value.code == 2
    assert "expected numbers from 1, such as 3,10-20" in capsys.readouterr().err


def test_bad_standard_input_is_refused_in_the_same_way(stdin, capsys):
    stdin(b"1 2 x")
    assert cli.main(["replay", "-"]) == 2
    assert capsys.readouterr().err.startswith('harmony-stream: <stdin>: line 1: "x" where')


@pytest.mark.parametrize(
    ("name", "reason"), [("", "Is a directory"), ("no\nfile", "No such file or directory")]
)
def test_a_file_that_cannot_be_opened_is_refused_in_one_line(name, reason, tmp_path, capsys):
    assert cli.main(["replay", str(tmp_path / name)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].endswith(f": {reason}")


@pytest.mark.parametrize("speed", ["0", "-1", "nan", "inf", "fast", "1e-9"])
def test_a_speed_is_a_sensible_number(speed, log, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["replay", log(TOKENS), "--speed", speed])
    assert caught.value.code == 2
    assert "argument --speed" in capsys.readouterr().err


def test_a_damaged_vocabulary_is_told_in_one_line(log, capsys, monkeypatch):
    def fail(*args):
        raise LoadError("o200k_harmony.bin", "the data of the library are damaged")

    monkeypatch.setattr(replay_command, "iter_events", fail)
    assert cli.main(["replay", log(TOKENS)]) == 2
    expected = "vocabulary o200k_harmony.bin: the data of the library are damaged"
    assert capsys.readouterr().err == f"harmony-stream: {expected}\n"


# -- Options --


@pytest.mark.parametrize("options", [(), ("--speed", "1e6")])
def test_events_are_printed_as_json_one_a_line(options, replay):
    tokens = [*final("né 👩🏽‍🍳 \x1b\x7f\x9b"), UNKNOWN]
    printed = replay(tokens, "--events", *options)
    assert printed.isascii()
    assert not set(map(chr, range(0x20))) - {"\n"} & set(printed)
    expected = [event.to_dict() for event in iter_events(tokens)]
    assert [json.loads(line) for line in printed.splitlines()] == expected


def test_a_log_is_played_in_time_and_flushed_before_each_wait(log, monkeypatch):
    out, now, seen = io.StringIO(), [100.0], []
    out.flush = lambda: seen.append((now[0], "Hi" in out.getvalue()))
    monkeypatch.setattr(replay_command.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(
        replay_command.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds)
    )
    with contextlib.redirect_stdout(out):
        cli.main(["replay", log(TOKENS), "--speed", "4"])
    # The text, the fourth token, is there before the fifth one is awaited.
    assert seen[:5] == [(100, False), (100, False), (100.25, False), (100.5, False), (100.75, True)]


ROLES = [
    ([START, 1428, MESSAGE, 12194, END], (), "user\n"),
    ([199998, START, 1428, MESSAGE, 12194, END], (), "user\n"),
    ([START, ASSISTANT, CHANNEL, FINAL, MESSAGE, 12194], (), "assistant final | answer\n"),
    ([CHANNEL, FINAL, MESSAGE, 12194], (), "assistant final | answer\n"),
    ([MESSAGE, 12194, END], ("--role", "user"), "user\n"),
    ([12194], ("--role", "none"), "assistant | answer\n!! expected_start"),
]


@pytest.mark.parametrize(("tokens", "options", "beginning"), ROLES)
def test_a_log_is_a_completion_or_a_whole_stream(tokens, options, beginning, replay):
    assert replay(tokens, *options).startswith(beginning)


FAULTS = [(TOKENS, 0), ([*TOKENS, UNKNOWN], 1), (BAD_CALL, 1), (BAD_CALL[:-1], 0)]


@pytest.mark.parametrize("view", [(), ("--events",), ("--speed", "1e6")])
@pytest.mark.parametrize(("tokens", "status"), FAULTS)
def test_faults_can_be_made_a_failure(tokens, status, view, log):
    assert cli.main(["replay", log(tokens), "--fail-on-fault", *view]) == status
    assert cli.main(["replay", log(tokens), *view]) == 0


def test_arguments_that_are_no_json_are_told_beside_the_events_of_the_parser(log, capsys):
    calls = [BAD_CALL, TOKENS, BAD_CALL]
    path = log("\n".join(json.dumps({"ids": tokens}) for tokens in calls))
    assert cli.main(["replay", "--events", path]) == 0
    captured = capsys.readouterr()
    expected = [event.to_dict() for tokens in calls for event in iter_events(tokens)]
    assert [json.loads(line) for line in captured.out.splitlines()] == expected
    reason = f"token {len(BAD_CALL) - 1}: the arguments of a tool call are not JSON"
    assert captured.err == "".join(f"harmony-stream: line {n}: {reason}\n" for n in (1, 3))


@given(streams | st.just(BAD_CALL), st.booleans())
@examples(100)
def test_both_views_of_a_log_count_the_same_problems(tokens, is_whole):
    events = list(iter_events(tokens, None if is_whole else "assistant"))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        shown = Screen(io.StringIO()).play("", len(tokens), events)
        printed = replay_command._print_events("", len(tokens), events)
    assert shown == printed


@pytest.mark.parametrize("command", ["replay", "check", "stats", "convert"])
def test_nothing_but_the_parser_is_strict(command, log, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main([command, "--strict", log(TOKENS)])
    assert caught.value.code == 2
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    shown = capsys.readouterr().out
    assert "--strict" not in shown
    assert ("--fail-on-fault" in shown, "--stop-on-error" in shown) == (
        command == "replay",
        command != "replay",
    )


HIDDEN = "\x1b[2J\u200f\u061c\u200b\ufeff\u202e\u2066\xad\U000e0041"
SPELLED = "\\x1b[2J\\u200f\\u061c\\u200b\\ufeff\\u202e\\u2066\\xad\\U000e0041"
COMPLAINTS = [
    ["replay", f"/nowhere/{HIDDEN}"],
    ["replay", f"/nowhere/{HIDDEN}", "--format", f"{HIDDEN}"],
    ["replay", f"/nowhere/{HIDDEN}", f"--{HIDDEN}"],
    ["replay", f"/nowhere/{HIDDEN}", "--record", f"{HIDDEN}"],
    ["check", f"/nowhere/{HIDDEN}"],
    ["stats", f"/nowhere/{HIDDEN}"],
    ["convert", "--to", "chat", "-o", f"/nowhere/{HIDDEN}", "/nowhere/log"],
    ["render", f"/nowhere/{HIDDEN}"],
    ["tools", f"/nowhere/{HIDDEN}"],
    ["serve", f"/nowhere/{HIDDEN}"],
]


@pytest.mark.parametrize("words", COMPLAINTS, ids=lambda words: words[0])
def test_no_complaint_can_hide_anything_or_move_the_cursor(words, capsys):
    with contextlib.suppress(SystemExit):
        assert cli.main(words) == 2
    error = capsys.readouterr().err
    assert SPELLED in error
    assert error.replace("\n", "").isprintable()


@pytest.mark.parametrize("arguments", [["--help"], ["replay", "--help"]])
def test_help_exists(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 0
    assert "replay" in capsys.readouterr().out


def test_version_is_that_of_the_distribution(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"harmony-stream {metadata.version('harmony-stream')}\n"


def test_the_command_works_from_a_checkout_that_is_not_installed(replay, monkeypatch):
    def fail(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(cli.metadata, "version", fail)
    assert "  Hi\n" in replay(TOKENS)


# -- Colours --


def test_a_terminal_shows_channels_in_colours_and_thinking_dimmed(log, monkeypatch):
    thinking = ids("<|channel|>analysis<|message|>Hm.\nSo<|end|><|start|>assistant")
    shown = on_terminal(log([*thinking, *final("Yes")]), monkeypatch)
    assert "\x1b[35massistant analysis | reasoning\x1b[0m\n" in shown
    assert "\x1b[2;3m  Hm\x1b[0m" in shown
    assert "\x1b[1;32massistant final | answer\x1b[0m\n  Yes\n" in shown


@pytest.mark.parametrize("variable", [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_refused(variable, log, monkeypatch, replay):
    path = log(TOKENS)
    plain = replay(TOKENS)
    terminal = Terminal()
    monkeypatch.setenv(*variable)
    with contextlib.redirect_stdout(terminal):
        cli.main(["replay", path])
    assert terminal.getvalue() == plain


def test_a_terminal_without_rich_shows_plain_text(log, monkeypatch, replay):
    plain = replay(TOKENS)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert on_terminal(log(TOKENS), monkeypatch) == plain


# -- Ends --


def test_an_interrupt_ends_the_line_and_the_command(log, monkeypatch, capsys):
    def interrupted(tokens, role):
        yield from list(iter_events(tokens, role))[:2]
        raise KeyboardInterrupt

    monkeypatch.setattr(replay_command, "iter_events", interrupted)
    assert cli.main(["replay", log(TOKENS)]) == 130
    assert capsys.readouterr() == ("assistant final | answer\n  Hi\n", "")


def test_a_broken_pipe_ends_the_command_quietly(log, capsys):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as out, contextlib.redirect_stdout(out):
        assert cli.main(["replay", log(TOKENS)]) == 141
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_told_in_one_line(log, capsys):
    with open("/dev/full", "w") as out, contextlib.redirect_stdout(out):
        assert cli.main(["replay", log(TOKENS)]) == 2
    expected = "harmony-stream: cannot write the output: No space left on device\n"
    assert capsys.readouterr().err == expected


COMMANDS_THAT_PRINT = [["replay"], ["check"], ["stats"], ["convert", "--to", "chat", "-o", "-"]]


@pytest.mark.parametrize("words", COMMANDS_THAT_PRINT)
def test_a_closed_standard_output_is_output_that_cannot_be_written(words, log, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main([*words, log(TOKENS)]) == 2
    with contextlib.suppress(OSError):
        sys.stdout.close()
    assert "the output: Bad file descriptor\n" in capsys.readouterr().err


def test_who_prints_nothing_needs_no_standard_output(log, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdout", None)
    out = tmp_path / "out"
    assert cli.main(["convert", "--to", "chat", "-o", str(out), log(TOKENS)]) == 0
    sys.stdout.close()
    assert out.exists()


@pytest.mark.parametrize("words", COMMANDS_THAT_PRINT)
def test_a_closed_standard_error_changes_nothing(words, log, monkeypatch, capsys):
    cli.main([*words, log(TOKENS)])
    expected = capsys.readouterr().out
    monkeypatch.setattr(sys, "stderr", None)
    assert cli.main([*words, log(TOKENS)]) == 0
    sys.stderr.close()
    assert capsys.readouterr().out == expected


def test_the_module_is_the_command(monkeypatch, log, capsys):
    monkeypatch.setattr(sys, "argv", ["harmony_stream", "replay", log(TOKENS)])
    with pytest.raises(SystemExit) as caught:
        runpy.run_module("harmony_stream", run_name="__main__")
    assert caught.value.code == 0


def test_importing_the_module_runs_nothing(capsys):
    runpy.run_module("harmony_stream.__main__", run_name="harmony_stream.__main__")
    assert capsys.readouterr().out == ""


# -- As a process --

COMMANDS = [
    [sys.executable, "-W", "error", "-m", "harmony_stream"],
    [str(Path(sys.executable).with_name("harmony-stream"))],
]


@pytest.mark.parametrize("command", COMMANDS, ids=["module", "script"])
def test_the_command_reads_standard_input_and_writes_plain_text(command):
    done = subprocess.run(
        [*command, "replay", "-"], input=WORDS.encode(), capture_output=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"assistant final | answer\n  Hi\n")


def test_a_log_that_standard_output_is_the_same_file_as_is_refused(tmp_path, capfd):
    log = tmp_path / "log.json"
    log.write_text("[200008]")
    before, into = os.dup(1), os.open(log, os.O_RDWR | os.O_APPEND)
    os.dup2(into, 1)
    try:
        assert cli.main(["replay", str(log)]) == 2
    finally:
        os.dup2(before, 1)
        os.close(before)
        os.close(into)
    assert log.read_text() == "[200008]"
    assert "the same file as the log" in capfd.readouterr().err


@pytest.mark.parametrize("words", ["log >> log", "- < log >> log", "--events ./log >> log"])
def test_a_log_is_not_replayed_into_itself(words, log, tmp_path):
    path = log(TOKENS)
    before = Path(path).read_bytes()
    command = f"'{sys.executable}' -m harmony_stream replay {words}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, Path(path).read_bytes()) == (2, before)
    assert done.stderr.startswith(
        "harmony-stream: <stdout>: the output is the same file as the log"
    )


def test_a_reader_that_goes_away_is_no_error(log):
    script = f"set -o pipefail; '{COMMANDS[1][0]}' replay --events {log(TOKENS * 5000)} | head -1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (141, b"")
    assert json.loads(done.stdout)["type"] == "message_start"


def test_an_interrupted_replay_ends_quietly_with_its_usual_status(log):
    command = [
        *COMMANDS[0],
        "replay",
        "--speed",
        "1",
        log([CHANNEL, FINAL, MESSAGE, *[12194] * 99]),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"assistant final | answer\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == b""


def test_text_reaches_a_terminal_before_its_line_ends(log):
    master, slave = pytest.importorskip("pty").openpty()
    command = [
        *COMMANDS[0],
        "replay",
        "--speed",
        "10",
        log([CHANNEL, FINAL, MESSAGE, 12194, *[2375] * 99]),
    ]
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(command, stdout=slave, stderr=slave, env=environment) as process:
        os.close(slave)
        seen, deadline = b"", time.monotonic() + 60
        while b"  Hi" not in seen and time.monotonic() < deadline:
            seen += os.read(master, 1000)
        process.terminate()
    os.close(master)
    assert b"answer\x1b[0m\r\n  Hi" in seen
    assert b"\n" not in seen.partition(b"  Hi")[2]


def test_a_command_that_writes_to_a_pipe_never_loads_rich(log):
    script = (
        f"import sys; from harmony_stream import cli; cli.main(['replay', {log(TOKENS)!r}]); "
        "assert not {'rich', 'tiktoken'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=60)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
        (FileNotFoundError(errno.ENOENT, "No such file", "a.json"), "a.json: No such file"),
        (FileNotFoundError(errno.ENOENT, "No such file", ""), "'': No such file"),
    ],
)
def test_an_error_of_the_system_is_not_told_as_one_of_the_output(error, sentence, capsys):
    def fail():
        raise error

    assert cli._status_of(fail) == ExitStatus.TROUBLE
    assert capsys.readouterr().err == f"harmony-stream: {sentence}\n"
