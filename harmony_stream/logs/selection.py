"""Some records out of a log, by their numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harmony_stream.logs.record import LogRecord


@attrs.frozen
class Selection:
    """Numbers of records: which lines, rows or streams of a log are wanted.

    Attributes:
        spans: first and last numbers, both included.

    >>> 15 in Selection.parse("3,10-20"), 4 in Selection.parse("3,10-20")
    (True, False)
    """

    spans: tuple[tuple[int, int], ...]

    @classmethod
    def parse(cls, text: str) -> Selection:
        """Numbers and spans of them, with commas between.

        Raises:
            ValueError: something else, or a span that ends before it begins.
        """
        spans = []
        for part in text.split(","):
            found = re.fullmatch(r"\s*([0-9]{1,18})\s*(?:-\s*([0-9]{1,18})\s*)?", part)
            first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
            if not 1 <= first <= last:
                raise ValueError(
                    f"{text!r} is no selection: expected numbers from 1, such as 3,10-20"
                )
            spans.append((first, last))
        return cls(tuple(spans))

    def __contains__(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self.spans)

    @property
    def last(self) -> int:
        """The greatest number."""
        return max(last for _, last in self.spans)


def select(records: Iterable[LogRecord], selection: Selection) -> Iterator[LogRecord]:
    """The records that are wanted, all choices of each; the log is read no further than needed.

    >>> from harmony_stream.logs.record import LogRecord, ids_of
    >>> records = [LogRecord(ids_of([n], ""), "a", n, "line") for n in range(1, 9)]
    >>> [record.number for record in select(records, Selection.parse("2,4-5"))]
    [2, 4, 5]
    """
    for record in records:
        if record.number > selection.last:
            return
        if record.number in selection:
            yield record
