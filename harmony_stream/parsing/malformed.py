"""Faults as events: from a token, or the reading of a header, to `Malformed`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harmony_stream.parsing.items import Item, Piece, quote_item, shortened
from harmony_stream.parsing.states import WORD_FAULTS, State, expected_in
from harmony_stream.values.events import ErrorFields, Malformed
from harmony_stream.values.faults import FaultKind
from harmony_stream.values.header_words import Section
from harmony_stream.values.read_header import Opening
from harmony_stream.vocabulary import FormattingToken

if TYPE_CHECKING:
    from harmony_stream.parsing.header_buffer import HeaderBuffer
    from harmony_stream.parsing.header_tokens import Fault, HeaderReading, LeftText
    from harmony_stream.vocabulary import Vocabulary

_EXPECTED = {state: expected_in(state) for state in State}
# An attribute of an enumeration's member takes 100 ns, and a broken stream may have a million.
_NAMES = {state: state.value for state in State}
_STATE_OF_SECTION = {section: State(section.value) for section in Section}
# Each left-over word is in one of these, which is at the first of its words.
_OF_LEFT_WORDS = (FaultKind.UNKNOWN_ROLE, FaultKind.UNPARSED_HEADER_TEXT)


def error_fields(
    vocabulary: Vocabulary,
    kind: FaultKind,
    position: int | None,
    item: Item | None,
    state: State,
    header: str = "",
    word: str = "",
) -> ErrorFields:
    """Return the fields of a `HarmonyParseError`.

    Args:
        vocabulary: the meaning of the tokens.
        kind: the fault.
        position: where it is; None: where its event starts.
        item: the token or the text at fault; None for the end of the stream.
        state: the state in which it came.
        header: the unfinished header, as errors quote it.
        word: the word of a header at fault, or "".
    """
    return (
        kind,
        position,
        item if isinstance(item, int) else None,
        word or ("" if item is None else quote_item(vocabulary, item)),
        _NAMES[state],
        header,
        WORD_FAULTS.get(kind) or _EXPECTED[state],
    )


# Of tokens that have no meaning there are endlessly many.
_MOST_FAULTS = 1000


class _Faults(dict[tuple[FaultKind, Item | None, State], ErrorFields]):
    """The fields of faults outside of headers, where nothing but the position differs."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._vocabulary = vocabulary

    def __missing__(self, fault: tuple[FaultKind, Item | None, State]) -> ErrorFields:
        kind, item, state = fault
        if len(self) >= _MOST_FAULTS:
            self.clear()
        self[fault] = fields = error_fields(self._vocabulary, kind, None, item, state)
        return fields


def fault_of_token(
    vocabulary: Vocabulary, kind: FaultKind, piece: Piece, state: State
) -> Malformed:
    """Return the fault of one token or of the end of the stream, where no header is open."""
    return Malformed(
        vocabulary.table(_Faults)[kind, piece.item, state], "", piece.start, piece.stop
    )


def header_faults(
    buffer: HeaderBuffer, reading: HeaderReading, end: Piece
) -> tuple[list[Malformed], list[Malformed]]:
    """Return the faults of a header that `end` ended: the one with left-over words, and the others.

    The former comes before the message, since its text belongs to none. The one fault of an implied
    header is that it came.
    """
    if not reading.faults and buffer.opening is not Opening.IMPLIED:
        return [], []
    left = [word for word in reading.left if buffer.stops[word.last] > 0]
    if buffer.opening is Opening.IMPLIED:
        coming = expected_start(buffer, end)
        return ([_with_left(coming, buffer, left)], []) if left else ([], fed([coming]))
    header = buffer.text()
    found = [_header_fault(buffer, fault, end, header) for fault in reading.faults]
    if not left:
        return [], fed(found)
    number = max(
        number
        for number, fault in enumerate(reading.faults)
        if fault.kind in _OF_LEFT_WORDS and (fault.item, fault.offset) <= left[0][:2]
    )
    return [_with_left(found.pop(number), buffer, left)], fed(found)


def _with_left(fault: Malformed, buffer: HeaderBuffer, left: list[LeftText]) -> Malformed:
    """Return the fault with the left-over words that were fed, and their span."""
    first, last = left[0], left[-1]
    text = "".join(word.text for word in left).lstrip()
    start, stop = buffer.position(first.first, first.offset), buffer.stops[last.last]
    if not isinstance(buffer.items[last.last], int):
        stop = buffer.position(last.last, last.width)
    return Malformed(fault._error, text, start, stop)


def _header_fault(buffer: HeaderBuffer, fault: Fault, end: Piece, header: str) -> Malformed:
    items, vocabulary = buffer.items, buffer.vocabulary
    item: Item | None
    if fault.item == len(items):
        item, start, stop = end.item, end.start, end.stop
    elif fault.item < 0:
        item = vocabulary.special_tokens[FormattingToken.START]
        start, stop = buffer.start, buffer.first
    else:
        item, stop = items[fault.item], buffer.stops[fault.item]
        start = buffer.position(fault.item, fault.offset)
    state, word = _STATE_OF_SECTION[fault.section], shortened(fault.text)
    error = error_fields(vocabulary, fault.kind, start, item, state, header, word)
    return Malformed(error, "", start, stop)


def expected_start(buffer: HeaderBuffer, end: Piece) -> Malformed:
    """Return the fault of an implied header, at its first item, or at the token that closed it."""
    items = [*buffer.fed()] or [*zip(buffer.items, buffer.stops, strict=True)]
    item, stop = items[0] if items else (end.item, end.stop)
    kind, text = FaultKind.EXPECTED_START, buffer.text()
    error = error_fields(buffer.vocabulary, kind, buffer.first, item, State.EXPECT_START, text)
    return Malformed(error, "", buffer.first, stop)


def fed(faults: list[Malformed]) -> list[Malformed]:
    """Return the faults of what was fed: those of the prompt are nobody's business."""
    return [fault for fault in faults if fault.stop > 0]
