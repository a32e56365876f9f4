r"""The command `harmony-stream`: look at recorded streams.

What a log says is data: nothing in it can colour the terminal, move its cursor, or pass for a
heading, since control characters are shown as `\x1b` and content is set in by two columns.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections import Counter
from functools import cache
from importlib import metadata
from io import TextIOWrapper
from typing import TYPE_CHECKING, TextIO

import attrs

from harmony_stream.errors import HarmonyError
from harmony_stream.messages import Role
from harmony_stream.parsing.events import (
    ContentDelta,
    EndKind,
    Event,
    Malformed,
    MessageEnd,
    MessageStart,
)
from harmony_stream.parsing.parser import iter_events
from harmony_stream.token_log import Record, TokenLogError, parse_log
from harmony_stream.vocabulary import FormattingToken, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from harmony_stream.header import Header

_PROBLEMS, _TROUBLE, _INTERRUPTED, _BROKEN_PIPE = 1, 2, 128 + 2, 128 + 13
_WHOLE_STREAM = "none"
_SLOWEST = 0.001

_DESCRIPTION = "Look at recorded streams of the harmony format, which the gpt-oss models write."
_REPLAY = """\
Show a token log as the stream that it was: who speaks on which channel, the thinking dimmed, tool
calls with name and arguments, and what breaks the format, with its position.

FILE holds token ids: a JSON array, ids with white space between them, or JSON objects, one a line,
with the ids in a field token_ids, completion_ids or tokens. Each such line is a stream of its own.

A log that begins with <|start|> is taken for a whole stream, another one for a completion: what was
sampled after a prompt that ends with <|start|>assistant. --role says otherwise.
"""
_NOTES = """\
examples:
  harmony-stream replay examples/tool_call.json
  harmony-stream replay --speed 30 examples/emoji_and_cjk.json
  harmony-stream replay --events examples/malformed.txt | head
  echo 200005 17196 200008 13225 200002 | harmony-stream replay -

Colours need a terminal and rich, which comes with harmony-stream[cli]; without them, or where
NO_COLOR is set, the same is shown as plain text. Control characters of the text are written as
\\x1b, and content is set in by two columns.

exit status: 0 if the log could be read, also if what it says breaks the format; 1 if it does and
--strict is given; 2 for a file or an argument that cannot be used, of which nothing is shown, and
for output that cannot be written; 130 after Ctrl-C.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and give its exit status.

    Args:
        argv: the arguments; those of the process if none are given.

    Raises:
        SystemExit: as argparse does, after `--help`, `--version` or wrong arguments.
    """
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115  # None if it was closed
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # no text is refused
    try:
        try:
            arguments = _arguments().parse_args(argv)
            return _replay(arguments)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        _abandon_output()
        return _BROKEN_PIPE
    except OSError as error:
        _abandon_output()
        return _complain(f"cannot write the output: {error.strerror}")
    except (HarmonyError, _UnreadableError) as error:
        return _complain(str(error))


def _complain(reason: str) -> int:
    print(f"harmony-stream: {reason.translate(_VISIBLE_LINE)}", file=sys.stderr)
    return _TROUBLE


def _abandon_output() -> None:
    """Let what is still buffered go nowhere, since Python flushes once more when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# -- Arguments --


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("harmony-stream", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"%(prog)s {_version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    replay = commands.add_parser(
        "replay",
        help="show a token log as the stream that it was",
        description=_REPLAY,
        epilog=_NOTES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    replay.add_argument("file", metavar="FILE", help="a token log; - for standard input")
    replay.add_argument("--events", action="store_true", help="print one JSON event a line")
    replay.add_argument(
        "--speed",
        type=_speed,
        metavar="TOKENS_PER_SECOND",
        help="play in time; without it, all is shown at once",
    )
    replay.add_argument(
        "--role",
        choices=[*(role.value for role in Role), _WHOLE_STREAM],
        help="whose header the prompt opened; none: the log is a whole stream",
    )
    replay.add_argument(
        "--strict", action="store_true", help="exit with status 1 if anything breaks the format"
    )
    return parser


def _version() -> str:
    try:
        return metadata.version("harmony-stream")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _speed(text: str) -> float:
    speed = float(text)
    if not _SLOWEST <= speed < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number from {_SLOWEST} on")
    return speed


# -- Replay --


def _replay(arguments: argparse.Namespace) -> int:
    records = _load(arguments.file)
    play = _print_events if arguments.events else _Screen(sys.stdout).play
    problems = 0
    for record in records:
        tokens = _paced(record.tokens, arguments.speed) if arguments.speed else record.tokens
        problems += play(record, iter_events(tokens, _role(record.tokens, arguments.role)))
    return _PROBLEMS if problems and arguments.strict else 0


class _UnreadableError(Exception):
    """A sentence that names the file and says why it cannot be used."""


def _load(path: str) -> list[Record]:
    is_stdin = path == "-"
    name = "<stdin>" if is_stdin else path
    try:
        with open(0 if is_stdin else path, "rb", closefd=not is_stdin) as file:
            return parse_log(file.read())
    except OSError as error:
        raise _UnreadableError(f"{name}: {error.strerror}") from error
    except TokenLogError as error:
        raise _UnreadableError(f"{name}:{error.line}: {error.reason}") from error


def _role(tokens: list[int], wanted: str | None) -> str | None:
    if wanted is not None:
        return None if wanted == _WHOLE_STREAM else wanted
    kind = Vocabulary.default().formatting_tokens.get(tokens[0]) if tokens else None
    is_whole = kind in (FormattingToken.START, FormattingToken.START_OF_TEXT)
    return None if is_whole else Role.ASSISTANT


def _paced(tokens: Iterable[int], speed: float) -> Iterator[int]:
    begin = time.monotonic()
    for place, token in enumerate(tokens):
        sys.stdout.flush()  # all that is known is seen while the next token is awaited
        time.sleep(max(0.0, begin + place / speed - time.monotonic()))
        yield token


def _print_events(record: Record, events: Iterable[Event]) -> int:
    problems = 0
    for event in events:
        # In ASCII, so that nothing in it can disturb a terminal or fail to be encoded.
        print(json.dumps(event.to_dict()))
        problems += isinstance(event, Malformed)
    return problems


# -- The screen --

# What moves a terminal's cursor or colours it, breaks lines, or turns the direction of text.
_UNSAFE = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F))
_UNSAFE_ISOLATES = range(0x2066, 0x206A)


def _spell(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


_VISIBLE_LINE = {code: _spell(code) for code in (*_UNSAFE, *_UNSAFE_ISOLATES)}
_VISIBLE = {code: text for code, text in _VISIBLE_LINE.items() if chr(code) not in "\n\t"}


@attrs.frozen
class _Look:
    """How a kind of message is shown: its name, and the styles of its heading and content."""

    label: str
    heading: str
    content: str


_THINKING = _Look("thinking", "magenta", "dim italic")
_PREAMBLE = _Look("preamble", "bold cyan", "cyan")
_CALL = _Look("tool call", "bold yellow", "yellow")
_ANSWER = _Look("answer", "bold green", "none")
_RESULT = _Look("tool result", "bold blue", "blue")
_INPUT = _Look("", "bold", "none")
_QUIET, _ALARM, _RULE = "dim", "bold red", "bold reverse"


def _look_of(header: Header) -> _Look:
    if header.role is not Role.ASSISTANT:
        return _RESULT if header.role is Role.TOOL else _INPUT
    if header.is_tool_call:
        return _CALL
    if header.is_reasoning:
        return _THINKING
    return _PREAMBLE if header.channel == "commentary" else _ANSWER


def _heading(header: Header, look: _Look) -> str:
    author = header.role.value if header.name is None else f"{header.role.value}:{header.name}"
    place = filter(None, (author, header.channel))
    recipient = header.recipient
    if recipient is not None and not header.is_tool_call:
        recipient = f"to {recipient}"
    data_type = header.data_type and f"({header.data_type})"
    purpose = filter(None, (look.label, recipient, data_type))
    return " | ".join(filter(None, (" ".join(place), " ".join(purpose))))


_ENDINGS = {
    EndKind.TRUNCATED: "truncated: the stream ends here",
    EndKind.IMPLICIT: "implicit: the next message begins without an end of this one",
}


def _ending(event: MessageEnd) -> str:
    ending = _ENDINGS.get(event.end, event.end.value)
    is_lost = _is_lost_call(event)
    return f"{ending}; the call is incomplete and must not be executed" if is_lost else ending


def _is_lost_call(event: MessageEnd) -> bool:
    return event.header.is_tool_call and not event.complete


class _Screen:
    """Shows streams to a person, each piece of text as soon as it is known."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._codes = _style_codes(out)
        self._is_at_margin = True
        self._is_first = True

    def play(self, record: Record, events: Iterable[Event]) -> int:
        """Show one stream to its end; give the number of its problems."""
        if record.line is not None:
            self._line(f"== line {record.line} ==", _RULE, gap=True)
        counts: Counter[type[Event]] = Counter()
        try:
            for event in events:
                counts[type(event)] += 1
                self._show(event)
        finally:
            self._to_margin()  # also if the user breaks off
        problems = counts[Malformed]
        summary = _summary(len(record.tokens), counts[MessageStart], problems)
        self._line(summary, _ALARM if problems else _QUIET, gap=True)
        return problems

    def _show(self, event: Event) -> None:
        if isinstance(event, ContentDelta):
            self._content(event.text, _look_of(event.header).content)
        elif isinstance(event, MessageStart):
            look = _look_of(event.header)
            self._line(_heading(event.header, look), look.heading, gap=True)
        elif isinstance(event, MessageEnd):
            self._line(f"-- {_ending(event)}", _ALARM if _is_lost_call(event) else _QUIET)
        else:
            self._line(f"!! {event.error.kind}: {event.error}", _ALARM)
            if event.text:
                self._line(f"!! text outside any message: {event.text!r}", _ALARM)

    def _content(self, text: str, style: str) -> None:
        # No other line breaks than \n are left after the translation.
        for line in text.translate(_VISIBLE).splitlines(keepends=True):
            is_set_in = self._is_at_margin and line != "\n"
            self._write(f"  {line}" if is_set_in else line, style)
            self._is_at_margin = line.endswith("\n")

    def _line(self, text: str, style: str, *, gap: bool = False) -> None:
        self._to_margin()
        if gap and not self._is_first:
            self._out.write("\n")
        self._is_first = False
        self._write(text.translate(_VISIBLE_LINE), style)
        self._out.write("\n")

    def _to_margin(self) -> None:
        if not self._is_at_margin:
            self._out.write("\n")
        self._is_at_margin = True

    def _write(self, text: str, style: str) -> None:
        before, after = self._codes(style)
        self._out.write(f"{before}{text}{after}")


def _summary(tokens: int, messages: int, problems: int) -> str:
    counted = ((tokens, "token"), (messages, "message"), (problems, "problem"))
    return ", ".join(f"{number} {noun}{'s' * (number != 1)}" for number, noun in counted)


def _plain(style: str) -> tuple[str, str]:
    return "", ""


def _style_codes(out: TextIO) -> Callable[[str], tuple[str, str]]:
    """What to write before and after text in a style; nothing where plain text is due."""
    is_wanted = out.isatty() or os.environ.get("FORCE_COLOR")
    if os.environ.get("NO_COLOR") or not is_wanted:
        return _plain
    try:
        from rich.console import Console  # an extra, and slow to import
        from rich.text import Text
    except ImportError:
        return _plain
    console = Console(file=out)

    @cache
    def codes(style: str) -> tuple[str, str]:
        # Taken once from rich, which knows what the terminal can do: to let it print each piece
        # would cost more than parsing, and it would expand tabs.
        with console.capture() as capture:
            console.print(Text("x", style), end="")
        before, _, after = capture.get().partition("x")
        return before, after

    return codes
