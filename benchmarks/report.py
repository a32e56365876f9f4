"""What a run found, as JSON and as text."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

import attrs

from benchmarks.workers import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.rounds import CaseResult, Effort, Spread
    from benchmarks.rows import Row


def about(effort: Effort) -> dict[str, Any]:
    """Return where and when a run was made."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "version": version("harmony-stream"),
        "commit": _commit(),
        "rounds": effort.rounds,
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(": ")[2]
    return platform.processor()


def _commit() -> str | None:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def row_as_dict(row: Row, cases: Mapping[str, CaseResult]) -> dict[str, Any]:
    """Return the results of a row for JSON."""
    return {
        "measures": row.measures,
        "unit": row.unit,
        "cases": {case: attrs.asdict(found) for case, found in cases.items()},
    }


def dump(value: object, indent: str = "") -> str:
    """Return JSON with the figures of one way on a line, so that results can be compared."""
    if not isinstance(value, dict) or not any(isinstance(each, dict) for each in value.values()):
        return json.dumps(value, ensure_ascii=False)
    deeper = indent + " "
    lines = (f"{deeper}{json.dumps(key)}: {dump(each, deeper)}" for key, each in value.items())
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


# -- Text --


def text_of(row: Row, cases: Mapping[str, CaseResult]) -> str:
    """Return the table of a row: figures of each case, then ratios with their spread."""
    lines = [f"\n{row.name}: {row.measures}"]
    for case, found in cases.items():
        lines += [f"  {case}"] if case else []
        lines += [f"    {way:28} {_figures(units)}" for way, units in found.figures.items()]
        lines += [f"    {name:48} {_ratio(spread)}" for name, spread in found.ratios.items()]
    if len(cases) > 1:
        lines += [_over_cases(over, under, cases) for over, under in row.ratios]
    return "\n".join(lines)


def _figures(units: Mapping[str, Spread]) -> str:
    return ", ".join(f"{spread.median:10,.5g} {unit}" for unit, spread in units.items())


def _ratio(spread: Spread) -> str:
    low, high = spread.quartiles
    return (
        f"{spread.median:6.2f} x  (quartiles {low:.2f}-{high:.2f},"
        f" all {spread.least:.2f}-{spread.most:.2f})"
    )


def _over_cases(over: str, under: str, cases: Mapping[str, CaseResult]) -> str:
    name = f"{over} / {under}"
    medians = {case: found.ratios[name].median for case, found in cases.items()}
    mean = geometric_mean(medians.values())
    least, most = min(medians, key=medians.__getitem__), max(medians, key=medians.__getitem__)
    return (
        f"  mean {name}: {mean:.2f} x,"
        f" from {medians[least]:.2f} ({least}) to {medians[most]:.2f} ({most})"
    )
