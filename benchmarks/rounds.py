"""Measuring all ways of a row by turns, in one run.

Machines are shared and their speed drifts, so a figure alone says little. Each round runs every
way once, in a new order, and ratios compare two ways of one round.
"""

from __future__ import annotations

import math
import random
import statistics
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.rows import Row, Way
    from benchmarks.workers import Workers

_SCALES = {"ns": 1e9, "us": 1e6, "ms": 1e3}


class WaysDisagreeError(Exception):
    """Two ways of a row do not do the same, so that their times cannot be compared."""


@attrs.frozen
class Effort:
    """How long to measure.

    Attributes:
        rounds: the number of rounds.
        seconds: the least time that a job of a round takes; short jobs are repeated.
    """

    rounds: int = 25
    seconds: float = 0.02


@attrs.frozen
class Spread:
    """The figures of all rounds, with their median, quartiles and extremes."""

    rounds: list[float]
    median: float
    quartiles: tuple[float, float]
    least: float
    most: float

    @classmethod
    def of(cls, rounds: list[float]) -> Spread:
        """Return the spread of figures, each with four digits."""
        low, middle, high = (
            statistics.quantiles(rounds, n=4, method="inclusive") if len(rounds) > 1 else rounds * 3
        )
        digits = [_short(figure) for figure in rounds]
        quartiles = (_short(low), _short(high))
        return cls(digits, _short(middle), quartiles, min(digits), max(digits))


def _short(figure: float) -> float:
    return float(f"{figure:.4g}")


@attrs.frozen
class CaseResult:
    """What was measured of one case of a row: figures by way and unit, and ratios."""

    figures: dict[str, dict[str, Spread]]
    ratios: dict[str, Spread]


def measure_row(
    row: Row, effort: Effort, workers: Workers, report: Callable[[str], None]
) -> dict[str, CaseResult]:
    """Measure a row; *report* receives the case and the round that begin."""
    found = {}
    for case, options in row.cases.items():
        report(f"{row.name} {case}".strip())
        for way in row.ways:
            workers.ask(way.library, "forget")
        _prepare(row, options, workers)
        found[case] = _measure_case(row, effort, workers)
    return found


def _prepare(row: Row, options: Mapping[str, Any], workers: Workers) -> None:
    said: dict[str, str] = {}
    for way in row.ways:
        job = [way.name, way.job, {**options, **way.options}]
        digest = workers.ask(way.library, "prepare", *job)["says"]
        if digest is not None:
            said[way.name] = digest
    if len(set(said.values())) > 1:
        raise WaysDisagreeError(f"{row.name} {dict(options)}: results differ: {said}")


Round = dict[str, dict[str, float]]
"""The figures of one round, by way and unit."""


def _measure_case(row: Row, effort: Effort, workers: Workers) -> CaseResult:
    repeats = {way.name: _repeats(way, effort, workers) for way in row.ways}
    count = min(effort.rounds, row.most_rounds or effort.rounds)
    rounds = [_measure_round(row, repeats, workers) for _ in range(count)]
    figures = {way.name: _figures(rounds, way.name) for way in row.ways}
    ratios = {
        f"{over} / {under}": _ratio(rounds, row.unit, over, under) for over, under in row.ratios
    }
    return CaseResult(figures, ratios)


def _figures(rounds: list[Round], way: str) -> dict[str, Spread]:
    return {unit: Spread.of([found[way][unit] for found in rounds]) for unit in rounds[0][way]}


def _ratio(rounds: list[Round], unit: str, over: str, under: str) -> Spread:
    return Spread.of([found[over][unit] / found[under][unit] for found in rounds])


def _repeats(way: Way, effort: Effort, workers: Workers) -> int:
    """Return the number of runs that take long enough, after a warm-up."""
    seconds: float = workers.ask(way.library, "warm", way.name)["seconds"]
    return math.ceil(effort.seconds / max(seconds, 1e-6))


def _measure_round(row: Row, repeats: Mapping[str, int], workers: Workers) -> Round:
    found = {}
    for way in random.sample(row.ways, len(row.ways)):
        answer = workers.ask(way.library, "measure", way.name, repeats[way.name])
        found[way.name] = answer.get("figures") or {
            row.unit: _SCALES[row.unit[:2]] * answer["seconds"] / answer["units"]
        }
    return found
