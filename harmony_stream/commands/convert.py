"""`harmony-stream convert`: writes token logs as events, messages, chat, or a table."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from contextlib import contextmanager
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from harmony_stream.commands.arguments import NOTES, add_arguments
from harmony_stream.commands.exit_status import ExitStatus
from harmony_stream.commands.inputs import CommandError, refuse_own_output
from harmony_stream.commands.results import results
from harmony_stream.logs.write import LINES, message_schema, message_table
from harmony_stream.support.extras import need
from harmony_stream.support.files import writing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harmony_stream.logs.work import Batch

_PARQUET = "parquet"
_EXAMPLES = """\
examples:
  harmony-stream convert --to messages -o messages.jsonl completions.jsonl
  harmony-stream convert --to parquet -o messages.parquet --jobs 2 rollouts/*.jsonl.zst
  harmony-stream convert --to events -o - capture.sse | head

  events    one event a line, as the parser emits them, adjacent text joined
  messages  one message a line, with its span, its end and its faults
  parquet   messages as a table, one row a message
  chat      one record a line: chat messages with reasoning (key: thinking) and tool calls

Each line or row names its log and record. Faults are what breaks the format, and arguments_not_json
for a complete call whose arguments are not the expected JSON.

A file takes its name when all of it is written. If the conversion fails, the name keeps its old
content, or stays free. Symbolic links are followed. A device, a FIFO or /dev/stdout is written
directly. A log cannot be its own output.

exit status: 0 if all records were converted; 1 if one could not be read and was skipped; 2 if a
log, an output or an argument cannot be used, or if a log ends too early; 130 after Ctrl-C; 141 if
the reader of the output went away; 143 after SIGTERM.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = commands.add_parser(
        "convert",
        help="write token logs as events, messages, chat or Parquet",
        description=f"Write the content of token logs in another format.\n\n{NOTES}",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    parser.add_argument(
        "--to", required=True, choices=[*LINES, _PARQUET], help="format of the output"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="output file; - for standard output"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Convert the logs and return the exit status."""
    with _ending_in_order():
        return _convert(arguments)


def _convert(arguments: argparse.Namespace) -> int:
    if arguments.to == _PARQUET and arguments.output == "-":
        raise CommandError("Parquet does not go to standard output: name a file")
    refuse_own_output(arguments.output, arguments.logs)
    make = message_table if arguments.to == _PARQUET else LINES[arguments.to]
    left_out = 0
    with _output(arguments.output) as file, _writer(arguments.to, file) as write:
        for errors, made in results(arguments, partial(_made, make)):
            write(made)
            left_out += errors
    return ExitStatus.FAULTS if left_out else ExitStatus.OK


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let signals that end the process remove the part file, as Ctrl-C does."""
    signals = []
    if threading.current_thread() is threading.main_thread():  # no other may set handlers
        ends = {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}  # not on Windows
        signals = [each for each in ends if signal.getsignal(each) is signal.SIG_DFL]
    for each in signals:
        signal.signal(each, _end)
    try:
        yield
    finally:
        for each in signals:
            signal.signal(each, signal.SIG_DFL)


def _end(number: int, _: object) -> None:
    sys.exit(128 + number)


def _made(make: Any, batch: Batch) -> tuple[int, Any]:  # noqa: ANN401 - bytes or a table
    """Return the number of records that could not be read, and the output for the others.

    Raises:
        LogError: the log ends too early, so that the output would only look complete.
    """
    for error in batch.errors:
        if error.ends_log:
            raise error
    return sum(not error.is_cut for error in batch.errors), make(batch)


@contextmanager
def _output(path: str) -> Iterator[IO[bytes]]:
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with writing(path) as file:
            yield file


@contextmanager
def _writer(shape: str, file: IO[bytes]) -> Iterator[Any]:
    if shape == _PARQUET:
        with need("pyarrow.parquet").ParquetWriter(file, message_schema()) as writer:
            yield writer.write_table
    else:
        yield file.write
