"""The tokens of a header, read when it ends: their meaning, and which of them is at fault.

The bridge between tokens and `harmony_stream.values.read_header`, which knows text only: it makes
the runs of text that a header is read from, and finds the token of each place in them again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import lru_cache, partial
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from harmony_stream.parsing.items import Item, kind_and_data
from harmony_stream.parsing.states import TokenKind
from harmony_stream.values.faults import FaultKind
from harmony_stream.values.header_words import Run, Section
from harmony_stream.values.read_header import HeaderFault, LeftWord, Opening, read_header

if TYPE_CHECKING:
    from collections.abc import Callable

    from harmony_stream.values.header import Header
    from harmony_stream.values.messages import Role
    from harmony_stream.vocabulary import Vocabulary

_SECTION_OF_MARKER = {
    TokenKind.CHANNEL: Section.CHANNEL,
    TokenKind.CONSTRAIN: Section.CONSTRAIN,
}


class Fault(NamedTuple):
    """A fault of a header.

    Attributes:
        kind: the breach of the format.
        item: the ordinal of the item at fault; the number of items is the token that ended the
            header, -1 the one that began it.
        offset: bytes of that item before the fault.
        section: the section that the fault is in.
        text: the header word at fault, or "".
    """

    kind: FaultKind
    item: int
    offset: int
    section: Section
    text: str = ""


class LeftText(NamedTuple):
    """A left-over word of a header, and the white space before it.

    Attributes:
        first, last: the items in which it begins and ends.
        offset: bytes of the first item before the word.
        width: bytes of the last item up to the end of the word.
        text: the white space and the word.
    """

    first: int
    offset: int
    last: int
    width: int
    text: str


class HeaderReading(NamedTuple):
    """The meaning of the items of a header.

    Attributes:
        header: its fields.
        faults: the breaches of the format, in the order of the items.
        rest: of a header that `<|message|>` did not close: the item in which the content begins,
            and the bytes of that item before it; or None.
        is_bare: True if it holds nothing but its role.
        left: the words that are part of no field.
    """

    header: Header
    faults: tuple[Fault, ...]
    rest: tuple[int, int] | None
    is_bare: bool
    left: tuple[LeftText, ...]


class _Stretch(NamedTuple):
    """The items of one run: the first, and the bytes of each."""

    section: Section
    opens: bool
    first: int
    pieces: list[bytes]

    def run(self) -> Run:
        data = b"".join(self.pieces)
        return Run(self.section, data.decode("utf-8", "surrogateescape"), self.opens)


class _Map:
    """Finds the item of a character in a run; its tables make each look-up a short one."""

    def __init__(self, stretch: _Stretch, run: Run) -> None:
        self._first = stretch.first
        self._starts = list(accumulate(map(len, stretch.pieces), initial=0))
        # Of each character the byte with which it begins; ASCII needs no table.
        widths = map(_width_of, run.text)
        self._bytes = (
            range(len(run.text) + 1) if run.text.isascii() else list(accumulate(widths, initial=0))
        )

    def locate(self, offset: int) -> tuple[int, int]:
        """Return the item in which a character begins, and the bytes of it before the character."""
        if offset < 0:
            return self._first - 1, 0
        position = self._bytes[offset]
        item = bisect_right(self._starts, position, hi=len(self._starts) - 1) - 1
        return self._first + item, position - self._starts[item]

    def locate_end(self, offset: int) -> tuple[int, int]:
        """Return the item in which the character before a place ends, and its bytes up to there."""
        position = self._bytes[offset]
        item = bisect_left(self._starts, position) - 1
        return self._first + item, position - self._starts[item]


def _width_of(character: str) -> int:
    return len(character.encode("utf-8", "surrogateescape"))


def read_header_tokens(
    vocabulary: Vocabulary,
    items: tuple[Item, ...],
    opening: Opening,
    role: Role | None,
    name: str | None,
    closed: bool,
) -> HeaderReading:
    """Read the items of a header; see `read_header` for the other arguments."""
    return vocabulary.table(_cached_reader)(items, opening, role, name, closed)


def _cached_reader(vocabulary: Vocabulary) -> Callable[..., HeaderReading]:
    # Streams repeat their headers: a look-up costs a tenth of a reading (10-19 us). Bounded,
    # since the words of a header may be anything.
    return lru_cache(maxsize=512)(partial(_read, vocabulary))


def _read(
    vocabulary: Vocabulary,
    items: tuple[Item, ...],
    opening: Opening,
    role: Role | None,
    name: str | None,
    closed: bool,
) -> HeaderReading:
    stretches, faults = _cut_into_stretches(vocabulary, items)
    runs = [stretch.run() for stretch in stretches]
    maps = list(map(_Map, stretches, runs))
    reading = read_header(runs, opening, role, name, closed=closed)
    faults += [_locate(maps, runs, fault, len(items)) for fault in reading.faults]
    faults += _broken_bytes(maps, runs)
    rest = None
    if reading.rest is not None:
        rest = maps[reading.rest.run].locate(reading.rest.offset)
        faults = [fault for fault in faults if (fault.item, fault.offset) < rest]
    faults.sort(key=lambda fault: (fault.item, fault.offset))
    left = tuple(_locate_left(maps, word) for word in reading.left)
    return HeaderReading(reading.header, tuple(faults), rest, reading.is_bare, left)


def _locate_left(maps: list[_Map], word: LeftWord) -> LeftText:
    first = maps[word.place.run].locate(word.place.offset)
    return LeftText(*first, *maps[word.end.run].locate_end(word.end.offset), word.text)


def _cut_into_stretches(
    vocabulary: Vocabulary, items: tuple[Item, ...]
) -> tuple[list[_Stretch], list[Fault]]:
    """Return the runs of a header, and the faults of single tokens in it."""
    stretches = [_Stretch(Section.ROLE, True, 0, [])]
    faults: list[Fault] = []
    for number, item in enumerate(items):
        kind, data = kind_and_data(vocabulary, item)
        last = stretches[-1]
        if kind is TokenKind.TEXT or kind is TokenKind.UNKNOWN:
            last.pieces.append(data)
        elif section := _SECTION_OF_MARKER.get(kind):
            stretches.append(_Stretch(section, True, number + 1, []))
        else:
            faults.append(Fault(FaultKind.UNEXPECTED_MARKER, number, 0, last.section))
            stretches.append(_Stretch(last.section, False, number + 1, []))
        if kind is TokenKind.UNKNOWN:
            faults.append(Fault(FaultKind.UNKNOWN_TOKEN, number, 0, last.section))
    return stretches, faults


def _locate(maps: list[_Map], runs: list[Run], fault: HeaderFault, count: int) -> Fault:
    place = fault.place
    if place.run == len(runs):
        return Fault(fault.kind, count, 0, runs[-1].section, fault.text)
    item, offset = maps[place.run].locate(place.offset)
    return Fault(fault.kind, item, offset, runs[place.run].section, fault.text)


def _broken_bytes(maps: list[_Map], runs: list[Run]) -> list[Fault]:
    """Return one fault for each run that is not UTF-8, at the first byte that is not."""
    faults = []
    for finder, run in zip(maps, runs, strict=True):
        offset = next((at for at, char in enumerate(run.text) if "\udc80" <= char <= "\udcff"), -1)
        if offset >= 0:
            faults.append(
                Fault(FaultKind.INVALID_UTF8_IN_HEADER, *finder.locate(offset), run.section)
            )
    return faults
