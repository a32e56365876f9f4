"""What the commands on token logs share: arguments, progress, reports, and work in processes."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import attrs

from harmony_stream.commands.terminal import complain
from harmony_stream.errors import HarmonyError
from harmony_stream.logs import FORMATS, LogError, ReadOptions
from harmony_stream.logs.read import read_parts
from harmony_stream.logs.readers.source import size_of
from harmony_stream.logs.work import Batch, batches, in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harmony_stream.logs.parts import LogPart
    from harmony_stream.logs.readers.source import LogSource

WELL, MALFORMED, TROUBLE = 0, 1, 2

# More of one kind would hide what else there is to see.
_MOST_REPORTS = 20

NOTES = """\
LOG is a file of token ids, or - for standard input: JSON, lines of JSON, a capture of server-sent
events (vLLM, SGLang, llama.cpp), .npy, .npz, Parquet, Arrow, or plain ids; gzip and zstd are
undone. The format and the place of the ids in it are found by looking, or told. A record that
cannot be read is reported, and the others are read; so is a last line that is cut off.
"""

_Value = TypeVar("_Value")


# -- Arguments -------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that say which logs to read, and how."""
    parser.add_argument("logs", metavar="LOG", nargs="+", help="a token log; - for standard input")
    add_options(parser)
    parser.add_argument(
        "--stop-on-error", action="store_true", help="stop at the first record that cannot be read"
    )
    parser.add_argument(
        "--jobs", type=jobs, default=1, metavar="N", help="work in so many processes (1)"
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that say what need not be found by looking."""
    parser.add_argument("--format", choices=FORMATS, help="the format of the logs")
    parser.add_argument(
        "--ids",
        metavar="PATH",
        help="where the ids stand: a field (choices.0.token_ids), column or array",
    )
    parser.add_argument(
        "--lengths", metavar="PATH", help="in the same way, how many ids of a padded row count"
    )
    parser.add_argument("--pad-id", type=int, metavar="ID", help="what rows are padded with")
    parser.add_argument(
        "--max-record-bytes",
        type=record_bytes,
        default=ReadOptions().max_record_bytes,
        metavar="N",
        help="refuse longer records, which bounds memory (268435456)",
    )


def options_of(arguments: argparse.Namespace) -> ReadOptions:
    """What was said of the log."""
    return ReadOptions(
        arguments.format,
        arguments.ids,
        arguments.lengths,
        arguments.pad_id,
        arguments.max_record_bytes,
    )


def record_bytes(text: str) -> int:
    """How long a record may be; argparse calls it by this name."""
    try:
        return ReadOptions(max_record_bytes=int(text)).max_record_bytes
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a number of bytes from 1 on") from None


def jobs(text: str) -> int:
    """How many processes; argparse calls it by this name."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 on")
    return value


# -- Work ------------------------------------------------------------------------------------------


@attrs.frozen
class _Part(Generic[_Value]):
    """What was made of a part."""

    values: list[_Value]
    errors: list[LogError]
    tokens: int


def _handle(make: Callable[[Batch], _Value], strict: bool, part: LogPart) -> _Part[_Value]:
    """Read and parse a part, in whatever process."""
    values: list[_Value] = []
    errors: list[LogError] = []
    tokens = 0
    for batch in batches(part.items(), strict=strict):
        values.append(make(batch))
        errors += batch.errors
        tokens += sum(len(record.completion) for record in batch.records)
    return _Part(values, errors, tokens)


def results(arguments: argparse.Namespace, make: Callable[[Batch], _Value]) -> Iterator[_Value]:
    """What `make`, which pickles, makes of each batch of all logs, in order.

    What cannot be read is reported on standard error.

    Raises:
        HarmonyError: a log cannot be read, or a record with `--stop-on-error`; or a process died.
    """
    handle = partial(_handle, make, arguments.stop_on_error)
    reports = 0
    with progress_on(sys.stderr, list(map(place_of, arguments.logs))) as progress:
        for part in in_order(handle, _parts(arguments, progress), arguments.jobs):
            for error in part.errors:
                reports += 1
                if reports <= _MOST_REPORTS:
                    complain(error)
            progress.add(part.tokens)
            yield from part.values
    if reports > _MOST_REPORTS:
        complain(f"and {reports - _MOST_REPORTS} records more that cannot be read")


def place_of(log: str) -> LogSource:
    """The file, or standard input for `-`."""
    return open(0, "rb", closefd=False) if log == "-" else log


def _parts(arguments: argparse.Namespace, progress: Progress) -> Iterator[LogPart]:
    options = options_of(arguments)
    done = 0
    for log in arguments.logs:
        place = place_of(log)
        yield from read_parts(place, options, partial(progress.move, done))
        done += size_of(place) or 0


def guarded(run: Callable[[], int]) -> int:
    """Run a command; an error that can be foreseen becomes a sentence and the status 2."""
    try:
        return run()
    except BrokenPipeError:
        raise
    except HarmonyError as error:
        complain(error)
    except OSError as error:
        complain(f"{error.filename or 'the output'}: {error.strerror or error}")
    return TROUBLE


# -- Progress --------------------------------------------------------------------------------------


class Progress:
    """Progress that nobody sees."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def move(self, before: int, position: int) -> None:
        """So many bytes were read, of the logs before this one and of this one."""

    def add(self, tokens: int) -> None:
        """So many tokens more were parsed."""


class _Bar(Progress):
    """A bar of rich, with the rate and the time left."""

    def __init__(self, out: Any, total: int | None) -> None:  # noqa: ANN401 - a text stream
        from rich.console import Console  # an extra, and slow to import
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(file=out),
            transient=True,
        )
        self._task = self._bar.add_task("", total=total, rate="")
        self._tokens = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def move(self, before: int, position: int) -> None:
        self._bar.update(self._task, completed=before + position)

    def add(self, tokens: int) -> None:
        self._tokens += tokens
        seconds = self._bar.tasks[0].elapsed or 1e-9
        self._bar.update(self._task, rate=f"{self._tokens / seconds:,.0f} tokens/s")


def progress_on(out: Any, places: list[LogSource]) -> Progress:  # noqa: ANN401 - a text stream
    """A bar, if somebody watches and rich is installed."""
    if not out.isatty():
        return Progress()
    sizes = [size_of(place) for place in places]
    try:
        return _Bar(out, None if None in sizes else sum(size or 0 for size in sizes))
    except ImportError:
        return Progress()
