"""`harmony-stream check`: which outputs of a log break the format, and how."""

from __future__ import annotations

import argparse
import heapq
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import attrs

from harmony_stream.adapters.arguments import ARGUMENTS_NOT_JSON, NOT_JSON
from harmony_stream.commands.terminal import visible
from harmony_stream.commands.token_logs import (
    MALFORMED,
    NOTES,
    WELL,
    add_arguments,
    guarded,
    results,
)
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

A record is malformed if it breaks the format, if a complete tool call's arguments are not the JSON
that they should be, or if it cannot be read. Truncated messages and unknown channels are counted
beside that. A last line that is cut off is none of these.

exit status: 0 if no record is malformed; 1 if one is; 2 for a log or an argument that cannot be
used; 130 after Ctrl-C.
"""
_WORST = 10


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = commands.add_parser(
        "check",
        help="tell which outputs of token logs are malformed, and how",
        description=f"Count what is wrong with the outputs in token logs.\n\n{NOTES}",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check the logs; give the exit status."""
    return guarded(lambda: _check(arguments))


def _check(arguments: argparse.Namespace) -> int:
    findings = Findings()
    for found in results(arguments, find):
        findings.add(found)
    if arguments.json:
        print(json.dumps(findings.to_dict()))
    else:
        print("\n".join(_report(findings)))
    return MALFORMED if findings.malformed or findings.unreadable else WELL


# -- Counting --------------------------------------------------------------------------------------


@attrs.frozen
class Bad:
    """A malformed record.

    Attributes:
        place: source, record and choice.
        faults: how many faults it has.
        reason: the first of them, in words.
    """

    place: dict[str, Any]
    faults: int
    reason: str


@attrs.define
class Findings:
    """What was counted; all but messages, calls and tokens are numbers of records.

    Attributes:
        kinds: malformed records by kind of fault; one that has several is in each.
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

    def add(self, other: Findings) -> None:
        """Take in what was found in what follows."""
        for field in attrs.fields(Findings):
            mine, more = getattr(self, field.name), getattr(other, field.name)
            setattr(self, field.name, mine + more)
        self.worst = _worst(self.worst)

    @property
    def rate(self) -> float:
        """Which part of all records is malformed or cannot be read."""
        return (self.malformed + self.unreadable) / max(1, self.records + self.unreadable)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values, counts of the most frequent first."""
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
    """What there is to find in a batch."""
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
    """Count malformed records, and keep the worst."""
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


# -- Telling ---------------------------------------------------------------------------------------


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
