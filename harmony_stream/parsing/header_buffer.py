"""The items of the header that is being fed, until it ends and is read."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from harmony_stream.parsing.header_tokens import HeaderReading, read_header_tokens
from harmony_stream.parsing.items import (
    Item,
    Piece,
    kind_and_data,
    piece_of,
    plain_text_of,
    quote,
)
from harmony_stream.values.read_header import Opening

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harmony_stream.values.messages import Role
    from harmony_stream.vocabulary import Vocabulary


class HeaderBuffer:
    """Keeps the items of one header after the other, and knows the place of each.

    Attributes:
        vocabulary: the meaning of the tokens.
        limit: the greatest length of a header: in tokens; in characters or bytes if the items are
            marked text.
        opening: how the header began.
        given: role and name that count if the header spells none.
        start: where the header begins.
        first: where its first item begins.
        items: tokens, or stretches of marked text. What the prompt holds of them ends at 0.
        stops: where each of them ends.
    """

    __slots__ = (
        "_is_in_pieces",
        "_length",
        "first",
        "given",
        "items",
        "limit",
        "opening",
        "start",
        "stops",
        "vocabulary",
    )

    def __init__(self, vocabulary: Vocabulary, limit: int) -> None:
        self.vocabulary = vocabulary
        self.limit = limit
        self.open(Opening.IMPLIED, (None, None), 0, 0)

    def open(
        self, opening: Opening, given: tuple[Role | None, str | None], start: int, first: int
    ) -> None:
        """Forget the header before, and begin another one."""
        self.opening = opening
        self.given = given
        self.start = start
        self.first = first
        self.items: list[Item] = []
        self.stops: list[int] = []
        self._length = 0
        # True if marked text among the items is in more pieces than it should be.
        self._is_in_pieces = False

    def copy(self) -> HeaderBuffer:
        """Return a buffer that holds the same, in lists of its own."""
        twin = HeaderBuffer.__new__(HeaderBuffer)
        for name in HeaderBuffer.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.items, twin.stops = list(self.items), list(self.stops)
        return twin

    def begin_here(self) -> None:
        """Count from here: what is kept so far is part of the prompt."""
        self.start = self.first = 0
        self.stops = [0] * len(self.items)

    def begin_after(self, piece: Piece) -> None:
        """Leave a piece out that comes before all items."""
        self.start = self.first = piece.stop

    def append(self, piece: Piece) -> None:
        """Keep a piece."""
        item = piece.item
        assert item is not None
        self._length += piece.stop - piece.start
        if self.items and isinstance(item, str | bytes) and type(self.items[-1]) is type(item):
            self._is_in_pieces = True
        self.items.append(item)
        self.stops.append(piece.stop)

    @property
    def room(self) -> int:
        """The length that the header may still grow by."""
        return self.limit - self._length

    # -- The meaning --

    def read(self, *, closed: bool) -> HeaderReading:
        """Read the header; `closed` says that `<|message|>` ended it."""
        if self._is_in_pieces:
            self._join_pieces()
        items = tuple(self.items)
        return read_header_tokens(self.vocabulary, items, self.opening, *self.given, closed)

    def _join_pieces(self) -> None:
        """Join marked text: where it was cut must not matter.

        Once, when the header is read: a long header in short pieces costs what one piece does.
        """
        pairs = zip(self.items, self.stops, strict=True)
        self.items, self.stops, self._is_in_pieces = [], [], False
        for kind, group in groupby(pairs, lambda pair: type(pair[0])):
            found: Any = list(group)
            if kind is not int:
                found = [(kind().join(piece for piece, _ in found), found[-1][1])]
            self.items += (item for item, _ in found)
            self.stops += (stop for _, stop in found)

    def text(self) -> str:
        """Return the header as errors quote it, special tokens spelled out."""
        return quote(self.vocabulary, self.items) if self.items else ""

    def plain_text(self) -> str:
        """Return the text of the header without special tokens and without the prompt's part."""
        return plain_text_of(self.vocabulary, (item for item, _ in self.fed()))

    # -- Places --

    def fed(self) -> Iterator[tuple[Item, int]]:
        """Yield the items that are not part of the prompt, each with its end."""
        pairs = zip(self.items, self.stops, strict=True)
        return ((item, stop) for item, stop in pairs if stop > 0)

    def position(self, number: int, skipped: int) -> int:
        """Return the position of a byte of an item; of a token, which is not cut, its start."""
        start = self.stops[number - 1] if number else self.first
        return max(0, start + self._width(number, skipped))

    def _width(self, number: int, skipped: int) -> int:
        """Return how far `skipped` bytes reach into an item."""
        if not skipped or isinstance(self.items[number], int):
            return 0
        head = kind_and_data(self.vocabulary, self.items[number])[1][:skipped]
        return len(head.decode()) if isinstance(self.items[number], str) else skipped

    def pieces_from(self, number: int, skipped: int) -> Iterator[Piece]:
        """Yield the rest of the items as pieces, from a byte of one of them on."""
        starts = [self.first, *self.stops]
        for left in range(number, len(self.items)):
            piece = piece_of(self.vocabulary, self.items[left], starts[left], self.stops[left])
            if left == number:
                start = self.position(number, skipped)
                piece = piece._replace(data=piece.data[skipped:], start=start)
            yield piece
