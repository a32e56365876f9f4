"""`harmony-stream stats`: counts tokens by channel, and tool calls by name."""

from __future__ import annotations

import argparse
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import attrs

from harmony_stream.commands.arguments import NOTES, add_arguments
from harmony_stream.commands.counts import Counts
from harmony_stream.commands.exit_status import ExitStatus
from harmony_stream.commands.results import results
from harmony_stream.commands.terminal import visible
from harmony_stream.logs.write import header_of, rows_of
from harmony_stream.values.messages import Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harmony_stream.logs.work import Batch

_EXAMPLES = """\
examples:
  harmony-stream stats completions.jsonl
  harmony-stream stats --jobs 2 --ids generated_tokens rollouts/*.parquet
  zcat capture.sse.gz | harmony-stream stats -

Tokens of content are counted by channel, or by role if the assistant did not write the message.
Overhead is all other tokens: headers, and the tokens that end messages.

exit status: 0 if all records could be read; 1 if one could not; 2 for a log or an argument that
cannot be used; 130 after Ctrl-C.
"""
_WIDTH = 40
_PERCENTILES = (50, 90, 99, 100)
_MOST_NAMES = 20


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = commands.add_parser(
        "stats",
        help="count tokens by channel, and tool calls by name",
        description=f"Count tokens by channel, and tool calls by name, in token logs.\n\n{NOTES}",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Count and return the exit status."""
    tally = sum(results(arguments, count), Tally())
    print("\n".join(_report(tally)))
    return ExitStatus.FAULTS if tally.unreadable else ExitStatus.OK


# -- Counting --------------------------------------------------------------------------------------


@attrs.define
class Tally(Counts):
    """Counts of records, messages, tool calls and tokens.

    Attributes:
        tokens: tokens of completions: overhead and all content.
        content: tokens of content, by channel or role.
        calls: tool calls by name; `incomplete`: those that did not end.
        lengths: completions by number of tokens; `reasoning`: by tokens of reasoning.
    """

    records: int = 0
    unreadable: int = 0
    messages: int = 0
    prompts: int = 0
    tokens: int = 0
    content: Counter[str] = attrs.field(factory=Counter)
    calls: Counter[str] = attrs.field(factory=Counter)
    incomplete: Counter[str] = attrs.field(factory=Counter)
    lengths: Counter[int] = attrs.field(factory=Counter)
    reasoning: Counter[int] = attrs.field(factory=Counter)

    @property
    def overhead(self) -> int:
        """Tokens that are not content."""
        return self.tokens - sum(self.content.values())


def count(batch: Batch) -> Tally:
    """Return the counts of a batch."""
    lengths = [len(record.completion) for record in batch.records]
    tally = Tally(
        records=len(lengths),
        unreadable=sum(not error.is_cut for error in batch.errors),
        prompts=sum(len(record.prompt or ()) for record in batch.records),
        tokens=sum(lengths),
        lengths=Counter(lengths),
    )
    reasoning = [0] * len(lengths)
    for row in rows_of(batch):
        if row["index"] is None:
            tally.content["(outside of messages)"] += row["content_tokens"]
        else:
            reasoning[row["row"]] += _count(tally, row)
    tally.reasoning = Counter(reasoning)
    return tally


def _count(tally: Tally, row: dict[str, Any]) -> int:
    """Count a message and return its tokens of reasoning."""
    header, tokens = header_of(row), row["content_tokens"]
    tally.messages += 1
    if header.role is Role.ASSISTANT:
        tally.content[header.channel or "(no channel)"] += tokens
    else:
        tally.content[f"({header.role.value})"] += tokens
    if header.is_tool_call:
        tally.calls[str(header.recipient)] += 1
        tally.incomplete[str(header.recipient)] += not row["complete"]
    return tokens if header.is_reasoning else 0


# -- Report ----------------------------------------------------------------------------------------


def _report(tally: Tally) -> Iterator[str]:
    yield f"{tally.records:,} records, {tally.messages:,} messages, {tally.tokens:,} tokens"
    if tally.prompts:
        yield f"prompts: {tally.prompts:,} tokens"
    yield "\ntokens by channel"
    for channel, tokens in tally.content.most_common(_MOST_NAMES):
        yield _part(channel, tokens, tally.tokens)
    yield _part("headers and ends", tally.overhead, tally.tokens)
    if tally.calls:
        yield "\ntool calls"
    for name, calls in tally.calls.most_common(_MOST_NAMES):
        broken = tally.incomplete[name]
        yield f"  {visible(name):24}{calls:14,}" + (f"  incomplete: {broken:,}" if broken else "")
    if tally.records:
        yield from _lengths(tally)


def _part(name: str, tokens: int, total: int) -> str:
    return f"  {visible(name):24}{tokens:14,}  {tokens / max(1, total):7.2%}"


def _lengths(tally: Tally) -> Iterator[str]:
    names = ("median", *(f"{share} %" for share in _PERCENTILES[1:-1]), "longest")
    yield "\n" + f"{'tokens a record':26}" + "".join(f"{name:>14}" for name in names)
    for name, lengths in (("all", tally.lengths), ("reasoning", tally.reasoning)):
        places = (f"{percentile(lengths, share):14,}" for share in _PERCENTILES)
        yield f"  {name:24}" + "".join(places)
    yield "\nrecords by tokens"
    yield from histogram(tally.lengths)


def percentile(counts: Counter[int], share: int) -> int:
    """Return the least value that `share` percent of all values do not exceed.

    It is one of the values, never interpolated.

    >>> percentile(Counter([1, 2, 3, 10]), 50), percentile(Counter([1, 2, 3, 10]), 100)
    (2, 10)
    """
    values = sorted(counts)
    wanted = counts.total() * share / 100
    reached = accumulate(counts[value] for value in values)
    return next(value for value, count in zip(values, reached, strict=True) if count >= wanted)


def histogram(counts: Counter[int]) -> Iterator[str]:
    r"""Return one bar for each power of two.

    >>> print(*histogram(Counter([5, 6, 9])), sep="\n")
           4-7              2  ########################################
           8-15             1  ####################
    """
    bars: Counter[int] = Counter()
    for value, number in counts.items():
        bars[value.bit_length()] += number
    for bits in range(min(bars), max(bars) + 1):
        first, last = (1 << bits) >> 1, (1 << bits) - 1
        bar = "#" * -(-_WIDTH * bars[bits] // max(bars.values()))
        yield f"  {first:6}-{last:<6}{bars[bits]:10,}  {bar}".rstrip()
