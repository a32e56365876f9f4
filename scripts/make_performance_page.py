"""Write the tables and the plot of docs/performance.md from the result of `python -m benchmarks`.

    python scripts/make_performance_page.py [--check]

In the README and the documents, a table is between `<!-- figures: ROW -->` and
`<!-- end of figures -->`. In a sentence a figure is followed by `<!-- is: ROW, RATIO -->`, where
RATIO may be `WAY / WAY`, a mean over all cases, or `WAY / WAY, CASE`. Such a sentence may round: it
is wrong if the figure is more than a quarter away. With `--check` nothing is written; the exit
status is 1 if a table or a sentence does not say what was measured.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from html import escape
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "cpython-3.11.json"
PLOT = ROOT / "docs" / "performance.svg"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_TABLE = re.compile(r"(<!-- figures: (.+?) -->\n).*?(<!-- end of figures -->)", re.DOTALL)
_CLAIM = re.compile(r"([\d.,]+)([^\d<]*)<!-- is: ([^,]+), ([^,]+?)(?:, (.+?))? -->")
TOLERANCE = 0.25

Result = dict[str, Any]


# -- Tables --


def tables_of(text: str, result: Result) -> str:
    """Return a page with the tables of a result."""
    return _TABLE.sub(
        lambda found: found[1] + "\n" + table(found[2], result) + "\n" + found[3], text
    )


def table(name: str, result: Result) -> str:
    """Return the table of a row, or the sentence about the machine."""
    if name == "about":
        return _about(result["about"])
    row = result["rows"][name]
    lines = _by_case(row) if len(row["cases"]) > 1 else _by_way(row)
    return f"{row['measures']}\n\n" + "\n".join(lines) + "\n"


def _about(about: Result) -> str:
    return (
        f"Measured on {about['date']} at commit {about['commit']} with {about['python']}, on"
        f" {about['system']}, {about['processor']}, {about['cores']} cores that others use as well;"
        f" {about['rounds']} rounds.\n"
    )


def _by_case(row: Result) -> list[str]:
    """Return a line for each case: medians, then ratios."""
    first = next(iter(row["cases"].values()))
    ways, ratios = list(first["figures"]), list(first["ratios"])
    heads = [row["unit"], *ways, *ratios]
    lines = [_line(heads), _line(["---", *["---:"] * (len(heads) - 1)])]
    for case, found in row["cases"].items():
        figures = [_number(found["figures"][way][row["unit"]]["median"]) for way in ways]
        lines.append(_line([case, *figures, *map(_ratio, found["ratios"].values())]))
    if ratios:
        means = [f"{_mean(row, name):.1f}" for name in ratios]
        lines.append(_line(["*mean*", *[""] * len(ways), *means]))
    return lines


def _by_way(row: Result) -> list[str]:
    """Return a line for each way: the medians of all units; then the ratios as a sentence."""
    (found,) = row["cases"].values()
    units = list(dict.fromkeys(unit for each in found["figures"].values() for unit in each))
    lines = [_line(["", *units]), _line(["---", *["---:"] * len(units)])]
    for way, figures in found["figures"].items():
        cells = [_number(figures[unit]["median"]) if unit in figures else "" for unit in units]
        lines.append(_line([way, *cells]))
    ratios = "; ".join(f"{name}: {_ratio(spread)}" for name, spread in found["ratios"].items())
    return [*lines, "", f"{ratios}."] if ratios else lines


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(figure: float) -> str:
    if figure >= 100:
        return f"{figure:,.0f}"
    return f"{figure:.3g}"


def _ratio(spread: Result) -> str:
    low, high = spread["quartiles"]
    return f"{_number(spread['median'])} ({_number(low)}-{_number(high)})"


def _mean(row: Result, ratio: str) -> float:
    """Return the geometric mean over the cases."""
    medians = [found["ratios"][ratio]["median"] for found in row["cases"].values()]
    return geometric_mean(medians)


# -- Sentences --


def wrong_claims(text: str, result: Result) -> Iterator[str]:
    """Yield a sentence for each figure of a page that is too far from the measured one."""
    for number, _, row, ratio, case in _CLAIM.findall(text):
        found = result["rows"][row]
        measured = found["cases"][case]["ratios"][ratio]["median"] if case else _mean(found, ratio)
        claimed = float(number.rstrip(".,").replace(",", ""))
        if abs(claimed / measured - 1) > TOLERANCE:
            yield f"{claimed:g} is given for {row}, {ratio} {case}: measured {measured:.3g}"


# -- The plot --

# What the plot shows: a text, a row and a ratio.
BARS = [
    ("tokens one by one, events read", "per-token", "openai-harmony 0.0.8 / feed"),
    ("the drop-in, one by one, polled", "drop-in", "openai-harmony 0.0.8 / drop-in"),
    ("tokens to bytes of Chat Completions", "polling", "openai-harmony 0.0.8 / writer"),
    ("whole completions to messages", "bulk", "openai-harmony 0.0.8 / parse"),
    ("logs, from Arrow", "logs", "wheel in bulk / Arrow"),
    ("a conversation to tokens", "render-openai", "openai-harmony 0.0.8 / new"),
    ("... with cached messages", "render-openai", "openai-harmony 0.0.8 / cached"),
    ("the next turn of an agent", "next-turn-openai", "openai-harmony 0.0.8 / Transcript"),
    ("import, and first completion", "start", "openai-harmony 0.0.8 / ours"),
]
_LEFT, _RIGHT, _TOP, _STEP = 270, 700, 46, 26
_TICKS = (1, 2, 5, 10, 20, 50, 100, 200)


def plot(result: Result) -> str:
    """Return an SVG: a dot for the mean of each row, and a line from its worst to its best case."""
    bottom = _TOP + _STEP * len(BARS)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {bottom + 14}"'
        ' font-family="sans-serif" font-size="13">',
        f'<rect width="760" height="{bottom + 14}" fill="white"/>',
        '<text x="12" y="18" font-weight="bold">Times as fast as openai-harmony 0.0.8</text>',
        *(_tick(tick, bottom) for tick in _TICKS),
        *(_bar(_TOP + _STEP * n, *bar, result) for n, bar in enumerate(BARS)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _x(ratio: float) -> float:
    return round(_LEFT + (_RIGHT - _LEFT) * math.log(max(ratio, 0.8)) / math.log(_TICKS[-1]), 1)


def _tick(tick: int, bottom: int) -> str:
    x = _x(tick)
    return (
        f'<line x1="{x}" y1="{_TOP - 10}" x2="{x}" y2="{bottom}" stroke="#ddd"/>'
        f'<text x="{x}" y="{_TOP - 14}" text-anchor="middle" fill="#666">{tick}</text>'
    )


def _bar(top: int, label: str, name: str, ratio: str, result: Result) -> str:
    row = result["rows"][name]
    medians = [found["ratios"][ratio]["median"] for found in row["cases"].values()]
    mean, y = _mean(row, ratio), top + _STEP // 2
    return (
        f'<text x="{_LEFT - 12}" y="{y + 4}" text-anchor="end">{escape(label)}</text>'
        f'<line x1="{_x(min(medians))}" y1="{y}" x2="{_x(max(medians))}" y2="{y}"'
        ' stroke="#7aa6d6" stroke-width="5" stroke-linecap="round"/>'
        f'<circle cx="{_x(mean)}" cy="{y}" r="6" fill="#1f5fa8"/>'
        f'<text x="{_x(max(medians)) + 12}" y="{y + 4}" fill="#1f5fa8">{mean:.1f}</text>'
    )


# -- The command --


def _written(result: Result) -> dict[Path, str]:
    pages = {page: tables_of(page.read_text("utf-8"), result) for page in PAGES}
    return {**pages, PLOT: plot(result)}


def _check(made: dict[Path, str], result: Result) -> list[str]:
    wrong = [
        f"{path.relative_to(ROOT)}: not made from the result; run scripts/make_performance_page.py"
        for path, text in made.items()
        if not path.exists() or path.read_text("utf-8") != text
    ]
    for path, text in made.items():
        wrong += [f"{path.relative_to(ROOT)}: {claim}" for claim in wrong_claims(text, result)]
    return wrong


def main() -> int:
    """Write the pages and the plot, or check them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; status 1 if something differs"
    )
    is_check = parser.parse_args().check
    result = json.loads(RESULT.read_text("utf-8"))
    made = _written(result)
    if not is_check:
        for path, text in made.items():
            path.write_text(text, "utf-8")
    wrong = _check(made, result)
    print("\n".join(wrong), end="\n" if wrong else "")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
