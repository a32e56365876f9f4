"""Parts of a log, small enough to hold: read in turn, or passed to other processes.

A part pickles. If the format allows it, the part does the work of reading (`LinesPart`,
`RowGroupPart`), in the process that it is passed to; otherwise it holds what was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harmony_stream.logs.record import Item

# Tokens in a group of records that one process reads and another one parses: about this many.
_TOKENS = 1 << 17
# The cost of a record beside its tokens, in tokens: all records of a log may be empty.
_RECORD = 32


class LogPart(Protocol):
    """A part of a log."""

    def items(self) -> Iterator[Item]:
        """Return its records, and errors for what could not be read, in order."""


@attrs.frozen
class RecordsPart:
    """Records that are already read."""

    read: tuple[Item, ...]

    def items(self) -> Iterator[Item]:
        """Return the records."""
        return iter(self.read)


def group(items: Iterable[Item]) -> Iterator[RecordsPart]:
    """Group records in parts of a handy size.

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
