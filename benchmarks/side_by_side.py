"""Timing of several ways to do one job, in one run, by turns.

Machines are shared and their speed drifts, so a figure alone says little. Each round runs every
way once, in a new order; minima and medians of the rounds are printed, and ratios of them.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Timing(NamedTuple):
    """Seconds for one run: the least, and the median of all rounds."""

    minimum: float
    median: float


def time_by_turns(jobs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Timing]:
    """Run each job once a round, in a shuffled order, after one warm-up."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    order = list(jobs)
    for job in jobs.values():
        job()
    gc.collect()
    gc.disable()
    for _ in range(rounds):
        random.shuffle(order)
        for name in order:
            begin = time.perf_counter()
            jobs[name]()
            seconds[name].append(time.perf_counter() - begin)
    gc.enable()
    return {name: Timing(min(each), statistics.median(each)) for name, each in seconds.items()}


def ratio(slow: Timing, fast: Timing) -> str:
    """How many times as fast: by the minima, and by the medians."""
    return f"{slow.minimum / fast.minimum:6.1f} x {slow.median / fast.median:6.1f} x"
