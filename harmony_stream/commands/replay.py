"""`harmony-stream replay`: shows a token log as the stream that it was."""

from __future__ import annotations

import argparse
import json
import sys
import time
from itertools import chain
from typing import TYPE_CHECKING

from harmony_stream.adapters.arguments import NOT_JSON
from harmony_stream.commands.arguments import LOG_HELP, add_options, options_of, selection, speed
from harmony_stream.commands.exit_status import ExitStatus
from harmony_stream.commands.inputs import CommandError, name_of, refuse_own_output, source_of
from harmony_stream.commands.screen import Arguments, Screen
from harmony_stream.commands.terminal import complain
from harmony_stream.logs import LogError, LogRecord, is_whole, read_log, select
from harmony_stream.parsing.parser import iter_events
from harmony_stream.values.events import Event, Malformed
from harmony_stream.values.messages import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harmony_stream.logs.readers.source import LogSource

_WHOLE_STREAM = "none"

_REPLAY = """\
Show a token log as the stream that it was: author and channel of each message, reasoning dimmed,
tool calls with name and arguments, faults with their position, and complete calls whose arguments
are not the expected JSON.

FILE holds token ids: a JSON array, ids with white space between them, lines of JSON with the ids in
a field such as token_ids, a capture of server-sent events (vLLM, SGLang, llama.cpp), .npy, .npz,
Parquet or Arrow; gzip and zstd are decompressed. Each record is a stream of its own. The format and
the place of the ids are detected, unless --format and --ids name them.

A record that begins with <|start|> is a full stream. Any other is a completion, sampled after a
prompt that ends with <|start|>assistant; --role overrides this.
"""
_NOTES = """\
examples:
  harmony-stream replay examples/tool_call.json
  harmony-stream replay --speed 30 examples/emoji_and_cjk.json
  harmony-stream replay --events examples/malformed.txt | head
  harmony-stream replay --record 3,10-12 examples/batch.jsonl
  echo 200005 17196 200008 13225 200002 | harmony-stream replay -

Colours need a terminal and rich, which comes with harmony-stream[cli]; without them, or if NO_COLOR
is set, the stream is shown as plain text. Characters that control a terminal, turn the direction of
text or are invisible are escaped as \\x1b or \\u200f. Content is indented by two columns.

--events prints the events of the parser and nothing else; arguments that are not JSON are reported
on standard error.

If a record cannot be read, nothing of the log is shown. A last line that is cut off, as in a log
that is still being written, is reported and skipped.

exit status: 0 if the log could be read, with or without faults: breaches of the format, and
arguments that are not JSON; 1 if it has faults and --fail-on-fault is given; 2 if a file or an
argument cannot be used, and nothing is shown, or if the output cannot be written; 130 after Ctrl-C;
141 if the reader of the output went away.
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
    replay.add_argument("file", metavar="FILE", help=LOG_HELP)
    replay.add_argument("--events", action="store_true", help="one JSON event a line as output")
    replay.add_argument(
        "--speed",
        type=speed,
        metavar="TOKENS_PER_SECOND",
        help="tokens per second (default: as fast as possible)",
    )
    replay.add_argument(
        "--role",
        choices=[*(role.value for role in Role), _WHOLE_STREAM],
        help="role that ends the prompt; 'none' if the log starts at <|start|>",
    )
    replay.add_argument(
        "--fail-on-fault",
        action="store_true",
        help="exit status 1 if anything breaks the format, or if arguments are not JSON",
    )
    replay.add_argument(
        "--record", type=selection, metavar="N,M-K", help="records to show, from 1 (default: all)"
    )
    add_options(replay)
    replay.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Replay the log and return the exit status."""
    refuse_own_output("-", [arguments.file])
    play = _print_events if arguments.events else Screen(sys.stdout).play
    faults = 0
    records = _records(arguments)
    first, second = next(records), next(records, None)
    for record in chain(filter(None, (first, second)), records):
        ids = list(record.completion)
        tokens = _paced(ids, arguments.speed) if arguments.speed else ids
        events = iter_events(tokens, _role(record, arguments.role))
        faults += play(record.place if second else "", len(ids), events)
    return ExitStatus.FAULTS if faults and arguments.fail_on_fault else ExitStatus.OK


def _records(arguments: argparse.Namespace) -> Iterator[LogRecord]:
    """Return the records to show, at least one; all are read once before the first is shown.

    A last line that is cut off is reported and left out.

    Raises:
        LogError: a record cannot be read.
        CommandError: no record is there, or none is chosen.
    """
    source = source_of(arguments.file)
    errors: list[LogError] = []
    records = _read(source, arguments, errors.append)
    kept = records if isinstance(source, str) else list(records)
    number = sum(1 for _ in kept)
    for error in errors:
        if not (error.is_cut and number):
            raise error
        complain(error)
    if not number:
        chosen = f"no record matches --record {arguments.record}"
        raise CommandError(
            f"{name_of(arguments.file)}: {chosen if arguments.record else 'no records'}"
        )
    return _read(source, arguments, errors.append) if isinstance(source, str) else iter(kept)


def _read(
    source: LogSource, arguments: argparse.Namespace, report: Callable[[LogError], None]
) -> Iterator[LogRecord]:
    records = read_log(source, options_of(arguments), report=report)
    return select(records, arguments.record) if arguments.record else records


def _role(record: LogRecord, wanted: str | None) -> str | None:
    if wanted is not None:
        return None if wanted == _WHOLE_STREAM else wanted
    return None if is_whole(record.completion) else Role.ASSISTANT


def _paced(tokens: Iterable[int], speed: float) -> Iterator[int]:
    begin = time.monotonic()
    for place, token in enumerate(tokens):
        sys.stdout.flush()  # show all that is known before the wait
        time.sleep(max(0.0, begin + place / speed - time.monotonic()))
        yield token


def _print_events(title: str, tokens: int, events: Iterable[Event]) -> int:
    faults = 0
    arguments = Arguments()
    for event in events:
        # ASCII cannot disturb a terminal or fail to be encoded.
        print(json.dumps(event.to_dict()))
        faults += isinstance(event, Malformed)
        if arguments.lack_json(event):  # not an event of the parser
            faults += 1
            complain(f"{title and title + ': '}token {event.start}: {NOT_JSON}")
    return faults
