"""Results of commands on token logs, computed in one process or in several."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

import attrs

from harmony_stream.commands.arguments import options_of
from harmony_stream.commands.inputs import source_of
from harmony_stream.commands.progress import progress_on
from harmony_stream.commands.terminal import complain
from harmony_stream.logs.read import read_parts
from harmony_stream.logs.readers.source import size_of
from harmony_stream.logs.work import Batch, batches, in_order

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from harmony_stream.commands.progress import Progress
    from harmony_stream.logs import LogError
    from harmony_stream.logs.parts import LogPart

# More reports would bury the result.
_MOST_REPORTS = 20

_Value = TypeVar("_Value")


@attrs.frozen
class _Part(Generic[_Value]):
    """The results of one part of a log."""

    values: list[_Value]
    errors: list[LogError]
    tokens: int


def _handle(make: Callable[[Batch], _Value], strict: bool, part: LogPart) -> _Part[_Value]:
    """Read and parse a part, in any process."""
    values: list[_Value] = []
    errors: list[LogError] = []
    tokens = 0
    for batch in batches(part.items(), strict=strict):
        values.append(make(batch))
        errors += batch.errors
        tokens += sum(len(record.completion) for record in batch.records)
    return _Part(values, errors, tokens)


def results(arguments: argparse.Namespace, make: Callable[[Batch], _Value]) -> Iterator[_Value]:
    """Return what `make` returns for each batch of all logs, in order.

    Records that cannot be read are reported on standard error.

    Args:
        arguments: as `add_arguments` declares them.
        make: called in the worker processes; it must pickle.

    Raises:
        HarmonyError: a log cannot be read, or a record with `--stop-on-error`; or a process died.
    """
    handle = partial(_handle, make, arguments.stop_on_error)
    reports = 0
    with progress_on(sys.stderr, list(map(source_of, arguments.logs))) as progress:
        for part in in_order(handle, _parts(arguments, progress), arguments.jobs):
            for error in part.errors:
                reports += 1
                if reports <= _MOST_REPORTS:
                    complain(error)
            progress.add(part.tokens)
            yield from part.values
    if reports > _MOST_REPORTS:
        complain(f"and {reports - _MOST_REPORTS} more records that cannot be read")


def _parts(arguments: argparse.Namespace, progress: Progress) -> Iterator[LogPart]:
    options = options_of(arguments)
    done = 0
    for log in arguments.logs:
        source = source_of(log)
        yield from read_parts(source, options, partial(progress.move, done))
        done += size_of(source) or 0
