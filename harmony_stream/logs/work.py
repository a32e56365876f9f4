"""Work on parts of logs, in this process or in several, with results in order."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from harmony_stream.errors import HarmonyError
from harmony_stream.logs.batch import parse_batch
from harmony_stream.logs.record import Item, LogError, LogRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harmony_stream.logs.columns import Columns

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")

# Tokens that are parsed at once: enough to make it cheap, few enough to hold.
_TOKENS = 1 << 18
# The cost of a record beside its tokens, in tokens.
_RECORD = 32
# Parts that wait for each process, so that none is idle.
_WAITING = 2


class WorkerError(HarmonyError):
    """A worker process died, perhaps killed for lack of memory."""


@attrs.frozen
class Batch:
    """Some records, parsed.

    Attributes:
        records: the records, which `columns["row"]` counts.
        columns: the result of `parse_batch`.
        errors: the errors for what could not be read, in order.
    """

    records: list[LogRecord]
    columns: Columns
    errors: list[LogError]


def batches(items: Iterable[Item], *, strict: bool) -> Iterator[Batch]:
    """Parse items in groups of a handy size.

    Raises:
        LogError: an item is an error, and `strict` is true.

    >>> list(batches([], strict=False))
    []
    """
    records: list[LogRecord] = []
    errors: list[LogError] = []
    tokens = 0
    for item in items:
        if isinstance(item, LogRecord):
            records.append(item)
            tokens += _RECORD + len(item.completion)
        elif strict:
            raise item
        else:
            errors.append(item)
        if tokens + 100 * len(errors) >= _TOKENS:
            yield _batch(records, errors)
            records, errors, tokens = [], [], 0
    if records or errors:
        yield _batch(records, errors)


def _batch(records: list[LogRecord], errors: list[LogError]) -> Batch:
    return Batch(records, parse_batch([record.completion for record in records]), errors)


def in_order(
    function: Callable[[_Given], _Made], given: Iterable[_Given], jobs: int
) -> Iterator[_Made]:
    """Return the results of a function, in order; arguments are taken only as they are needed.

    Args:
        function: called in the workers; with several jobs it must pickle, like its argument and
            its result.
        given: the arguments, read in this process.
        jobs: the number of processes; 1 for this one alone.

    Raises:
        WorkerError: a process died.

    >>> list(in_order(abs, [-1, -2], jobs=1))
    [1, 2]
    """
    if jobs == 1:
        yield from map(function, given)
        return
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _begin_worker)
    waiting: deque[Future[_Made]] = deque()
    try:
        for each in given:
            waiting.append(_submit(pool, function, each))
            if len(waiting) > _WAITING * jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise WorkerError("a worker process died; was it killed for lack of memory?") from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _submit(
    pool: ProcessPoolExecutor, function: Callable[[_Given], _Made], given: _Given
) -> Future[_Made]:
    """Submit one call; where a process has just died, the pool may not know it yet.

    Raises:
        BrokenProcessPool: the pool cannot take the call.
        OSError: a process cannot be started.
    """
    try:
        return pool.submit(function, given)
    except OSError as error:
        if error.errno is not None:  # of the system: too many open files
            raise
        # "handle is closed", by the thread that found the process dead
        raise BrokenProcessPool(str(error)) from error


def _begin_worker() -> None:
    """Leave the signals of a terminal to the first process, and end when that ends."""
    for each in (signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGINT)):  # not on Windows
        signal.signal(each, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    threading.Thread(target=_end_with, args=(parent, os._exit), daemon=True).start()


def _end_with(parent: Any, end: Callable[[int], object]) -> None:  # noqa: ANN401 - a process
    """End after the first process: if it is killed, the workers would wait for work for ever."""
    if parent is not None:
        parent.join()
        end(1)
