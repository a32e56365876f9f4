"""`harmony-stream check`: counts malformed outputs in token logs."""

from __future__ import annotations

import argparse
import heapq
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import attrs

from harmony_stream.adapters.arguments import ARGUMENTS_NOT_JSON, NOT_JSON
from harmony_stream.commands.arguments import NOTES, add_arguments
from harmony_stream.commands.counts import Counts
from harmony_stream.commands.exit_status import ExitStatus
from harmony_stream.commands.results import results
from harmony_stream.commands.terminal import visible
from harmony_stream.logs.batch import events_of
from harmony_stream.logs.write import header_of, place_of, rows_of
from harmony_stream.values.events import EndKind, Malformed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harmony_stream.logs.record import LogRecord
    from harmony_stream.logs.work import Batch

_EXAMPLES = """\
examples:
  harmony-stream check completions.jsonl
  harmony-stream check --ids choices.0.token_ids --json responses.jsonl.gz | jq .kinds
  harmony-stream check --jobs 2 rollouts/*.parquet

A record is malformed if it breaks the format, if the arguments of a complete tool call are not the
expected JSON, or if it cannot be read. Truncated messages and unknown channels are counted
separately. A last line that is cut off counts as none of these.

exit status: 0 if no record is malformed; 1 if one is; 2 for a log or an argument that cannot be
used; 130 after Ctrl-C.
"""
_WORST = 10


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = commands.add_parser(
        "check",
        help="count malformed outputs in token logs, by kind of fault",
        description=f"Count the faults of the outputs in token logs.\n\n{NOTES}",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object as output")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check the logs and return the exit status."""
    findings = sum(results(arguments, find), Findings())
    print(json.dumps(findings.to_dict()) if arguments.json else "\n".join(_report(findings)))
    return ExitStatus.FAULTS if findings.malformed or findings.unreadable else ExitStatus.OK


# -- Counting --------------------------------------------------------------------------------------


@attrs.frozen
class Bad:
    """A malformed record.

    Attributes:
        place: source, record and choice.
        faults: the number of its faults.
        reason: the first of them, in words.
    """

    place: dict[str, Any]
    faults: int
    reason: str


@attrs.define
class Findings(Counts):
    """Counts; all but messages, calls and tokens are numbers of records.

    Attributes:
        kinds: malformed records by kind of fault; one with several kinds counts for each.
        unknown_channels: messages by name of the channel.
        worst: the malformed records with the most faults, worst first.
    """

    records: int = 0
    unreadable: int = 0
    cut: int = 0
    empty: int = 0
    malformed: int = 0
    truncated: int = 0
    tokens: int = 0
    messages: int = 0
    tool_calls: int = 0
    tool_calls_incomplete: int = 0
    kinds: Counter[str] = attrs.field(factory=Counter)
    unknown_channels: Counter[str] = attrs.field(factory=Counter)
    worst: list[Bad] = attrs.field(factory=list)

    def __add__(self, other: Findings) -> Findings:
        total = super().__add__(other)
        total.worst = _worst(total.worst)
        return total

    @property
    def rate(self) -> float:
        """The share of records that are malformed or cannot be read."""
        return (self.malformed + self.unreadable) / max(1, self.records + self.unreadable)

    def to_dict(self) -> dict[str, Any]:
        """Return values for JSON, the most frequent counts first."""
        return attrs.asdict(self) | {
            "rate": self.rate,
            "kinds": dict(self.kinds.most_common()),
            "unknown_channels": dict(self.unknown_channels.most_common()),
            "worst": [
                bad.place | {"faults": bad.faults, "reason": bad.reason} for bad in self.worst
            ],
        }


def _worst(bad: Iterable[Bad]) -> list[Bad]:
    # nlargest is stable: of equals, the first in the log comes first.
    return heapq.nlargest(_WORST, bad, key=lambda each: each.faults)


def find(batch: Batch) -> Findings:
    """Return the findings of a batch."""
    cut = sum(error.is_cut for error in batch.errors)
    lengths = [len(record.completion) for record in batch.records]
    findings = Findings(
        records=len(lengths),
        unreadable=len(batch.errors) - cut,
        cut=cut,
        empty=lengths.count(0),
        tokens=sum(lengths),
    )
    faults: dict[int, list[str]] = {}
    truncated: set[int] = set()
    for row in rows_of(batch):
        faults.setdefault(row["row"], []).extend(row["faults"])
        if row["index"] is not None:
            _count(findings, row)
        if row["end"] == EndKind.TRUNCATED:
            truncated.add(row["row"])
    findings.truncated = len(truncated)
    _take_in(findings, batch.records, {row: kinds for row, kinds in faults.items() if kinds})
    return findings


def _count(findings: Findings, row: dict[str, Any]) -> None:
    header = header_of(row)
    findings.messages += 1
    if header.is_tool_call:
        findings.tool_calls += 1
        findings.tool_calls_incomplete += not row["complete"]
    if header.channel is not None and not header.is_known_channel:
        findings.unknown_channels[header.channel] += 1


def _take_in(findings: Findings, records: list[LogRecord], faults: dict[int, list[str]]) -> None:
    """Count malformed records and keep the worst."""
    findings.malformed = len(faults)
    for kinds in faults.values():
        findings.kinds.update(list(dict.fromkeys(kinds)))
    worst = heapq.nlargest(_WORST, faults, key=lambda row: len(faults[row]))
    findings.worst = [
        Bad(place_of(records[row]), len(faults[row]), _reason(records[row], faults[row][0]))
        for row in worst
    ]


def _reason(record: LogRecord, kind: str) -> str:
    if kind == ARGUMENTS_NOT_JSON:
        return NOT_JSON
    events = events_of(record.completion)
    return next(str(event.error) for event in events if isinstance(event, Malformed))


# -- Report ----------------------------------------------------------------------------------------


def _report(findings: Findings) -> Iterator[str]:
    total = findings.records + findings.unreadable
    yield f"{total:,} records, {findings.messages:,} messages, {findings.tokens:,} tokens"
    yield _line("malformed", findings.malformed, total)
    for kind, count in findings.kinds.most_common():
        yield _line(f"  {kind}", count, total)
    for name in ("unreadable", "truncated", "empty"):
        yield _line(name, getattr(findings, name), total)
    calls, incomplete = findings.tool_calls, findings.tool_calls_incomplete
    yield f"{'tool calls':26}{calls:10,}  of which incomplete: {incomplete:,}"
    for channel, count in findings.unknown_channels.most_common(_WORST):
        yield f"{'unknown channel':26}{count:10,}  {visible(channel)}"
    if findings.worst:
        yield "\nworst records"
    for bad in findings.worst:
        place = f"{bad.place['source']}: record {bad.place['record']}, choice {bad.place['choice']}"
        yield visible(f"  {place}: {bad.faults} x: {bad.reason}")


def _line(name: str, count: int, total: int) -> str:
    return f"{name:26}{count:10,}  {count / max(1, total):7.2%}"
