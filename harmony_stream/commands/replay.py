"""`harmony-stream replay`: show a token log as the stream that it was."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from itertools import chain
from typing import TYPE_CHECKING

from harmony_stream.adapters.arguments import NOT_JSON
from harmony_stream.commands.inputs import UnreadableError, name_of, own_output
from harmony_stream.commands.screen import Arguments, Screen
from harmony_stream.commands.terminal import complain
from harmony_stream.commands.token_logs import add_options, options_of, place_of
from harmony_stream.logs import LogError, LogRecord, Selection, is_whole, read_log, select
from harmony_stream.parsing.parser import iter_events
from harmony_stream.values.events import Event, Malformed
from harmony_stream.values.messages import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harmony_stream.logs.readers.source import LogSource

_FAULTS = 1
_WHOLE_STREAM = "none"
_SLOWEST = 0.001

_REPLAY = """\
Show a token log as the stream that it was: who speaks on which channel, the thinking dimmed, tool
calls with name and arguments, what breaks the format, with its position, and complete calls whose
arguments are not the JSON that they should be.

FILE holds token ids: a JSON array, ids with white space between them, lines of JSON with the ids in
a field such as token_ids, a capture of server-sent events (vLLM, SGLang, llama.cpp), .npy, .npz,
Parquet or Arrow; gzip and zstd are undone. Each record of it is a stream of its own. The format and
the place of the ids are found by looking, or told.

A log that begins with <|start|> is taken for a whole stream, another one for a completion: what was
sampled after a prompt that ends with <|start|>assistant. --role says otherwise.
"""
_NOTES = """\
examples:
  harmony-stream replay examples/tool_call.json
  harmony-stream replay --speed 30 examples/emoji_and_cjk.json
  harmony-stream replay --events examples/malformed.txt | head
  harmony-stream replay --record 3,10-12 examples/batch.jsonl
  echo 200005 17196 200008 13225 200002 | harmony-stream replay -

Colours need a terminal and rich, which comes with harmony-stream[cli]; without them, or where
NO_COLOR is set, the same is shown as plain text. Characters of the text that control a terminal,
turn its direction or are invisible are written as \\x1b or \\u200f, and content is set in by two
columns.

--events prints what the parser emits and nothing else; arguments that are not JSON are told on
standard error.

A log with a record that cannot be read is refused as a whole, but for a last line that is cut off,
as in a log that is still being written: that one is reported and left out.

exit status: 0 if the log could be read, also if what it says has faults: breaks the format, or
calls a tool with arguments that are not JSON; 1 if it does and --fail-on-fault is given; 2 for a
file or an argument that cannot be used, of which nothing is shown, and for output that cannot be
written; 130 after Ctrl-C; 141 if the reader of the output went away.
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
        type=speed,
        metavar="TOKENS_PER_SECOND",
        help="play in time; without it, all is shown at once",
    )
    replay.add_argument(
        "--role",
        choices=[*(role.value for role in Role), _WHOLE_STREAM],
        help="whose header the prompt opened; none: the log is a whole stream",
    )
    replay.add_argument(
        "--fail-on-fault",
        action="store_true",
        help="exit with status 1 if anything breaks the format, or arguments are not JSON",
    )
    replay.add_argument(
        "--record", type=selection, metavar="N,M-K", help="show these records only, from 1"
    )
    add_options(replay)
    replay.set_defaults(run=run)


def speed(text: str) -> float:
    """Tokens a second; argparse calls it by this name."""
    value = float(text)
    if not _SLOWEST <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number from {_SLOWEST} on")
    return value


def selection(text: str) -> Selection:
    """The records that are chosen."""
    try:
        return Selection.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def run(arguments: argparse.Namespace) -> int:
    """Replay the log; give the exit status."""
    if refusal := own_output("-", [arguments.file]):
        raise UnreadableError(refusal)
    play = _print_events if arguments.events else Screen(sys.stdout).play
    faults = 0
    records = _records(arguments)
    first, second = next(records, None), next(records, None)
    if first is None:
        raise UnreadableError(f"{name_of(arguments.file)}: there is no such record in it")
    for record in chain(filter(None, (first, second)), records):
        ids = list(record.completion)
        tokens = _paced(ids, arguments.speed) if arguments.speed else ids
        events = iter_events(tokens, _role(record, arguments.role))
        faults += play(record.place if second else "", len(ids), events)
    return _FAULTS if faults and arguments.fail_on_fault else 0


def _records(arguments: argparse.Namespace) -> Iterator[LogRecord]:
    """The records to be shown; before the first one is, all are read once.

    Raises:
        LogError: a record cannot be read. A line that is not yet whole is reported, and left out.
    """
    place = place_of(arguments.file)
    errors: list[LogError] = []
    records = _read(place, arguments, errors.append)
    kept = records if isinstance(place, str) else list(records)
    number = sum(1 for _ in kept)
    for error in errors:
        if not (error.is_cut and number):
            raise error
        complain(error)
    return _read(place, arguments, errors.append) if isinstance(place, str) else iter(kept)


def _read(
    place: LogSource, arguments: argparse.Namespace, report: Callable[[LogError], None]
) -> Iterator[LogRecord]:
    records = read_log(place, options_of(arguments), report=report)
    return select(records, arguments.record) if arguments.record else records


def _role(record: LogRecord, wanted: str | None) -> str | None:
    if wanted is not None:
        return None if wanted == _WHOLE_STREAM else wanted
    return None if is_whole(record.completion) else Role.ASSISTANT


def _paced(tokens: Iterable[int], speed: float) -> Iterator[int]:
    begin = time.monotonic()
    for place, token in enumerate(tokens):
        sys.stdout.flush()  # all that is known is seen while the next token is awaited
        time.sleep(max(0.0, begin + place / speed - time.monotonic()))
        yield token


def _print_events(title: str, tokens: int, events: Iterable[Event]) -> int:
    faults = 0
    arguments = Arguments()
    for event in events:
        # In ASCII, so that nothing in it can disturb a terminal or fail to be encoded.
        print(json.dumps(event.to_dict()))
        faults += isinstance(event, Malformed)
        if arguments.lack_json(event):  # which is no event of the parser
            faults += 1
            complain(f"{title and title + ': '}token {event.start}: {NOT_JSON}")
    return faults
