"""Records of a log chosen by their numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harmony_stream.logs.record import LogRecord


@attrs.frozen
class Selection:
    """Numbers of the chosen lines, rows or streams of a log.

    Attributes:
        spans: first and last numbers, both included.

    >>> chosen = Selection.parse("3,10-20")
    >>> 15 in chosen, 4 in chosen, str(chosen)
    (True, False, '3,10-20')
    """

    spans: tuple[tuple[int, int], ...]

    @classmethod
    def parse(cls, text: str) -> Selection:
        """Read numbers and spans of numbers, separated by commas.

        Raises:
            ValueError: the text is something else, or a span ends before it begins.
        """
        spans = []
        for part in text.split(","):
            found = re.fullmatch(r"\s*([0-9]{1,18})\s*(?:-\s*([0-9]{1,18})\s*)?", part)
            first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
            if not 1 <= first <= last:
                raise ValueError(
                    f"{text!r} is not a selection; expected numbers from 1, such as 3,10-20"
                )
            spans.append((first, last))
        return cls(tuple(spans))

    def __contains__(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self.spans)

    def __str__(self) -> str:
        spans = (f"{first}-{last}" if first < last else str(first) for first, last in self.spans)
        return ",".join(spans)

    @property
    def last(self) -> int:
        """The greatest number."""
        return max(last for _, last in self.spans)


def select(records: Iterable[LogRecord], selection: Selection) -> Iterator[LogRecord]:
    """Return the chosen records, all choices of each; nothing after the last one is read.

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
