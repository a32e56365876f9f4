"""Work to be measured, as a worker runs it. Only the standard library: wheels run it as well."""

from __future__ import annotations

import gc
import time
import tracemalloc
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Job(NamedTuple):
    """Work that the worker times.

    Attributes:
        run: does the work once. Everything that it needs was made before.
        units: the number of tokens, messages or faults that one run takes.
        says: the result in a form that is equal for all ways to do the same, or None.
    """

    run: Callable[[], object]
    units: int = 1
    says: object = None


class Measured(NamedTuple):
    """Work that measures itself, because CPU time is not the figure or not the only one.

    Attributes:
        run: does the work and returns its figures by unit.
        says: see `Job`.
    """

    run: Callable[[], dict[str, float]]
    says: object = None


def cpu_seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the CPU seconds of one run, on average, without the garbage collector."""
    gc.collect()
    gc.disable()
    begin = time.process_time()
    for _ in range(repeats):
        work()
    seconds = time.process_time() - begin
    gc.enable()
    return seconds / repeats


def bytes_of(make: Callable[[], object], count: int) -> dict[str, float]:
    """Return the bytes of each of the objects that *make* returns together; of Python's memory."""
    make()  # what all share is there before
    gc.collect()
    tracemalloc.start()
    kept = make()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del kept
    return {"bytes": size / count}
