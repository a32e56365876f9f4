"""Measure this library beside the wheels that it replaces.

Each row is measured by turns in one run, so that its ratios hold on a machine that others use as
well. Figures are medians of the rounds. Tables go to standard output, progress to standard error.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from benchmarks.report import about, dump, row_as_dict, text_of
from benchmarks.rounds import Effort, WaysDisagreeError, measure_row
from benchmarks.rows import ROWS, Row
from benchmarks.workers import JobError, Vocabularies, Workers, missing_libraries

if TYPE_CHECKING:
    from collections.abc import Sequence

_EXAMPLES = """\
examples:
  python -m benchmarks                          all rows, in about 20 minutes
  python -m benchmarks --list                   what the rows measure
  python -m benchmarks --rows per-token wire    two rows
  python -m benchmarks --quick                  all rows, with figures that mean little
  python -m benchmarks --out result.json        and write all figures as JSON

Install the library with the extra `all`. The wheels have environments of their own: run
scripts/setup_reference_wheels.py first.
"""
_QUICK = Effort(rounds=2, seconds=0.001)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", nargs="+", choices=ROWS, metavar="NAME", help="rows [all]")
    parser.add_argument("--list", action="store_true", help="list the rows, and measure nothing")
    parser.add_argument("--rounds", type=_positive, help="number of rounds [25, or 2 if quick]")
    parser.add_argument(
        "--quick", action="store_true", help="short rounds of one small case of each row"
    )
    parser.add_argument("--out", type=_new_file, metavar="FILE", help="JSON file for the result")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def _new_file(text: str) -> Path:
    # Not only after the measuring, which takes long.
    if not Path(text).parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: there is no such folder")
    return Path(text)


def _chosen(names: Sequence[str] | None, quick: bool) -> list[Row]:
    rows = [ROWS[name] for name in names or ROWS]
    return [row.quick() for row in rows] if quick else rows


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _measure(rows: list[Row], effort: Effort) -> dict[str, Any]:
    found = {}
    with Vocabularies() as folder:
        for row in rows:
            # New processes for each row, so that a row's figures do not depend on the rows before.
            with Workers(folder) as workers:
                cases = measure_row(row, effort, workers, _progress)
            print(text_of(row, cases), flush=True)
            found[row.name] = row_as_dict(row, cases)
    return found


def _effort(rounds: int | None, quick: bool) -> Effort:
    effort = _QUICK if quick else Effort(rounds=25)
    return effort if rounds is None else attrs.evolve(effort, rounds=rounds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = _arguments().parse_args(arguments)
    rows = _chosen(options.rows, options.quick)
    if options.list:
        print("\n".join(f"{row.name:17} {row.measures}" for row in rows))
        return 0
    if missing := missing_libraries(rows):
        _progress(f"not installed: {', '.join(missing)}; run scripts/setup_reference_wheels.py")
        return 2
    effort = _effort(options.rounds, options.quick)
    try:
        result = {"about": about(effort), "rows": _measure(rows, effort)}
    except (KeyboardInterrupt, JobError, WaysDisagreeError) as error:
        is_interrupt = isinstance(error, KeyboardInterrupt)
        _progress("interrupted" if is_interrupt else str(error))
        return 130 if is_interrupt else 1
    if options.out:
        options.out.write_text(dump(result) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
