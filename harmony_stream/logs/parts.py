"""Pieces of a log, small enough to hold: what is read in turn, or handed to other processes.

A part pickles. Where a format allows it, the work of reading is in the part (`LinesPart`,
`RowGroupPart`), so that it is done where the part goes; otherwise it holds what was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harmony_stream.logs.record import Item

# Records read by one process and handled by another go in groups of about so many tokens.
_TOKENS = 1 << 17
# What a record takes beside its tokens, counted in these: a log may hold nothing but empty ones.
_RECORD = 32


class LogPart(Protocol):
    """A piece of a log."""

    def items(self) -> Iterator[Item]:
        """Its records, and what could not be read, in order."""


@attrs.frozen
class RecordsPart:
    """Records that were read already."""

    read: tuple[Item, ...]

    def items(self) -> Iterator[Item]:
        """The records."""
        return iter(self.read)


def group(items: Iterable[Item]) -> Iterator[RecordsPart]:
    """Records in parts of a handy size.

    >>> list(group([]))
    []
    """
    held: list[Item] = []
    tokens = 0
    for item in items:
        held.append(item)
        tokens += 1000 if isinstance(item, Exception) else _RECORD + len(item.completion)
        if tokens >= _TOKENS:
            yield RecordsPart(tuple(held))
            held, tokens = [], 0
    if held:
        yield RecordsPart(tuple(held))
