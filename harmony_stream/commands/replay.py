"""`harmony-stream replay`: show a token log as the stream that it was."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from typing import TYPE_CHECKING

from harmony_stream.commands.inputs import UnreadableError, name_of, read_bytes
from harmony_stream.commands.screen import Screen
from harmony_stream.messages import Role
from harmony_stream.parsing.events import Event, Malformed
from harmony_stream.parsing.parser import iter_events
from harmony_stream.token_log import Record, TokenLogError, parse_log
from harmony_stream.vocabulary import FormattingToken, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PROBLEMS = 1
_WHOLE_STREAM = "none"
_SLOWEST = 0.001

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


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
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
    replay.set_defaults(run=run)


def _speed(text: str) -> float:
    speed = float(text)
    if not _SLOWEST <= speed < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number from {_SLOWEST} on")
    return speed


def run(arguments: argparse.Namespace) -> int:
    """Replay the log; give the exit status."""
    records = _load(arguments.file)
    play = _print_events if arguments.events else Screen(sys.stdout).play
    problems = 0
    for record in records:
        tokens = _paced(record.tokens, arguments.speed) if arguments.speed else record.tokens
        title = "" if record.line is None else f"line {record.line}"
        events = iter_events(tokens, _role(record.tokens, arguments.role))
        problems += play(title, len(record.tokens), events)
    return _PROBLEMS if problems and arguments.strict else 0


def _load(path: str) -> list[Record]:
    try:
        return parse_log(read_bytes(path))
    except TokenLogError as error:
        raise UnreadableError(f"{name_of(path)}:{error.line}: {error.reason}") from error


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


def _print_events(title: str, tokens: int, events: Iterable[Event]) -> int:
    problems = 0
    for event in events:
        # In ASCII, so that nothing in it can disturb a terminal or fail to be encoded.
        print(json.dumps(event.to_dict()))
        problems += isinstance(event, Malformed)
    return problems
