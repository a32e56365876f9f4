"""The machine: what is done with one token, as the table in `states.py` has it.

`Machine.step` takes one piece, looks up its cell, and calls the method of the cell's action. It
always repairs, and reports faults as `Malformed` events; `EventParser` makes errors of them.
"""

from __future__ import annotations

from codecs import utf_8_decode
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from harmony_stream.parsing.header_tokens import (
    Fault,
    HeaderReading,
    Item,
    LeftText,
    kind_and_data,
    plain_text_of,
    quote,
    read_header_tokens,
    shortened,
)
from harmony_stream.parsing.states import (
    TABLE,
    WORD_FAULTS,
    Action,
    Cell,
    State,
    TokenKind,
    expected_in,
)
from harmony_stream.values.events import (
    ContentDelta,
    EndKind,
    ErrorFields,
    Event,
    FaultKind,
    Malformed,
    MessageEnd,
    MessageStart,
    join_deltas,
)
from harmony_stream.values.header_words import Section
from harmony_stream.values.messages import Role
from harmony_stream.values.read_header import Opening
from harmony_stream.vocabulary import FormattingToken, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

    from harmony_stream.values.header import Header

# Bound once: compared with by identity for each token.
CONTENT = State.CONTENT
EXPECT_START = State.EXPECT_START

_START = Opening.START

_new = object.__new__

_END_KINDS = {
    TokenKind.END: EndKind.END,
    TokenKind.RETURN: EndKind.RETURN,
    TokenKind.CALL: EndKind.CALL,
    TokenKind.END_OF_TEXT: EndKind.END_OF_TEXT,
    TokenKind.END_OF_STREAM: EndKind.TRUNCATED,
}
_REAL_ENDS = (EndKind.END, EndKind.RETURN, EndKind.CALL)
_EXPECTED = {state: expected_in(state) for state in State}
_STATE_OF_SECTION = {section: State(section.value) for section in Section}


class Piece(NamedTuple):
    """One thing fed: a token, a stretch of marked text, or (None) the end of the stream."""

    kind: TokenKind
    item: Item | None
    data: bytes
    start: int
    stop: int


class Machine:
    """The state of a stream, and one method for each action of the table."""

    __slots__ = (
        "_first",
        "_given",
        "_header_given",
        "_header_is_closed",
        "_is_in_pieces",
        "_items",
        "_length",
        "_mark",
        "_opening",
        "_start",
        "_stops",
        "_vocabulary",
        "follows_tokens",
        "header",
        "held",
        "index",
        "is_announced",
        "max_header_length",
        "state",
    )

    _items: list[Item]
    _stops: list[int]

    def __init__(
        self, vocabulary: Vocabulary, role: Role | None, name: str | None, max_header_length: int
    ) -> None:
        self._vocabulary = vocabulary
        # Whose header the prompt opened; None if it opened none.
        self._given = (role, name)
        # Whether tokens of a prompt came before the first that is fed.
        self.follows_tokens = False
        # In tokens; in characters or bytes if the items are marked text.
        self.max_header_length = max_header_length
        # Of the current message: its header, whether `<|message|>` closed it, and whether its
        # start was emitted (it was not if it stands in the prompt).
        self.header: Header | None = None
        self._header_is_closed = False
        self.is_announced = True
        self.index = 0
        # Bytes of an unfinished character, and where the text that is not yet emitted begins.
        self.held = b""
        self._mark = 0
        if role is None:
            self._expect_start(0)
        else:
            self._open(Opening.PROMPT, 0, 0)

    @property
    def is_in_content(self) -> bool:
        """Whether tokens are content of a message whose start was emitted."""
        return self.state is CONTENT and self.is_announced

    def copy(self) -> Machine:
        """A machine in the same state, with lists of its own."""
        twin = Machine.__new__(Machine)
        for name in Machine.__slots__:
            setattr(twin, name, getattr(self, name))
        twin._items, twin._stops = list(self._items), list(self._stops)
        return twin

    def fresh(self, max_header_length: int) -> Machine:
        """A machine that has been fed nothing, for the same prompt."""
        return Machine(self._vocabulary, *self._given, max_header_length)

    def header_so_far(self) -> Header | None:
        """The header of the current message as far as it is known; None between messages."""
        if self.state is CONTENT:
            return self.header
        return None if self.state is EXPECT_START else self.read_header(closed=True).header

    def begin_here(self, *, follows_tokens: bool) -> None:
        """Count from here, as if nothing had been fed before: what was fed is the prompt."""
        self.follows_tokens = follows_tokens
        self.index = self._start = self._first = self._mark = 0
        self._stops = [0] * len(self._items)
        self.is_announced = self.state is not CONTENT
        self._given = (Role.ASSISTANT, None)
        is_in_role = self.state is State.ROLE and bool(self._items)
        if is_in_role and (told := self.read_header(closed=True)).is_bare:
            # The usual end of a prompt, `<|start|>assistant`, is the same as a given role.
            self.follows_tokens = False
            self._given = (told.header.role, told.header.name)
            self._open(Opening.PROMPT, 0, 0)

    def start_at_once(self, items: tuple[Item, ...], start: int, stop: int) -> MessageStart | None:
        """Start a message by all items of its header, if nothing was fed of it, and it is sound.

        A look-up in the cache of headers: 2 us, where feeding them one by one takes 15.
        """
        if self.state is not EXPECT_START or self._items:
            return None
        role, name = self._given
        reading = read_header_tokens(self._vocabulary, items, _START, role, name, True)
        if reading.faults:
            return None
        self._start = start
        return self.start_message(reading.header, stop, closed=True)

    def step(self, piece: Piece) -> list[Event]:
        """Do what the table says about this piece in this state."""
        if self.state is EXPECT_START and self._items and piece.kind is not TokenKind.TEXT:
            self._imply()  # the bytes of an unfinished character are text after all
        cell = TABLE[self.state][piece.kind]
        if cell.action is Action.KEEP and self._is_too_long_with(piece):
            return self._break_off_at_limit(piece)
        if not self.is_announced:
            return self._announce() + self.step(piece)
        return _METHODS[cell.action](self, piece, cell)

    def piece(self, item: Item, start: int, stop: int) -> Piece:
        kind, data = kind_and_data(self._vocabulary, item)
        return Piece(kind, item, data, start, stop)

    def _skip(self, piece: Piece, cell: Cell) -> list[Event]:
        return []

    # -- Between messages -------------------------------------------------------------------------

    def _expect_start(self, position: int) -> None:
        self._open(Opening.IMPLIED, position, position)
        self.state = EXPECT_START

    def _wait(self, piece: Piece, cell: Cell) -> list[Event]:
        """White space is no fault, and it takes whole characters to know it for white space."""
        data = self.held + piece.data
        text, used = utf_8_decode(data, "replace", False)
        blank = text[: len(text) - len(text.lstrip())]
        piece = self._without_blank(piece, blank)
        if blank or not self._items:
            self._open(Opening.IMPLIED, piece.start, piece.start)
            self.state = EXPECT_START
        if text != blank:
            self._imply()
            return self.step(piece)
        self.held = data[used:]
        if self.held:
            self._append(piece)
        return []

    def _without_blank(self, piece: Piece, blank: str) -> Piece:
        """Marked text without the white space in front of it; a token cannot be cut."""
        if isinstance(piece.item, str) and blank:
            return self.piece(piece.item[len(blank) :], piece.start + len(blank), piece.stop)
        if isinstance(piece.item, bytes) and blank:
            width = len(blank.encode()) - len(self.held)
            return self.piece(piece.item[width:], piece.start + width, piece.stop)
        return piece

    def _imply(self) -> None:
        """What was kept so far is the text of a header that nothing opened."""
        self.held = b""
        self.state = State.ROLE

    def _imply_for(self, piece: Piece, cell: Cell) -> list[Event]:
        self._open(Opening.IMPLIED, piece.start, piece.start)
        inner = TABLE[State.ROLE][piece.kind]
        return _METHODS[inner.action](self, piece, inner)

    # -- In a header ------------------------------------------------------------------------------

    def _open(self, opening: Opening, start: int, first: int) -> None:
        """Open a header that begins at `start`, and whose first item will begin at `first`."""
        self.state = State.ROLE
        self._opening = opening
        self._header_given = self._given
        self._start = start
        self._first = first
        self._items = []
        self._stops = []
        self._length = 0
        # Whether marked text among the items is in more pieces than it should be.
        self._is_in_pieces = False

    def _open_at(self, piece: Piece, cell: Cell) -> list[Event]:
        self._open(Opening.START, piece.start, piece.stop)
        return []

    def _append(self, piece: Piece) -> None:
        item = piece.item
        assert item is not None
        self._length += piece.stop - piece.start
        if self._items and isinstance(item, str | bytes) and type(self._items[-1]) is type(item):
            self._is_in_pieces = True
        self._items.append(item)
        self._stops.append(piece.stop)

    def _join_pieces(self) -> None:
        """Where marked text is cut must not matter: what belongs together is judged together.

        Joined once, when it is judged: a long header in short pieces costs what one piece does.
        """
        items, stops = self._items, self._stops
        self._items, self._stops, self._is_in_pieces = [], [], False
        for kind, group in groupby(zip(items, stops, strict=True), lambda pair: type(pair[0])):
            found: Any = list(group)
            if kind is not int:
                found = [(kind().join(piece for piece, _ in found), found[-1][1])]
            self._items += (item for item, _ in found)
            self._stops += (stop for _, stop in found)

    def _keep(self, piece: Piece, cell: Cell) -> list[Event]:
        if not self._items and self._is_very_start(piece):
            self._start = self._first = piece.stop
            return []
        self._append(piece)
        self.state = cell.next
        return []

    def _is_very_start(self, piece: Piece) -> bool:
        """Whether this is `<|startoftext|>` before anything else."""
        if piece.start > 0 or self.follows_tokens or not isinstance(piece.item, int):
            return False
        token = self._vocabulary.formatting_tokens.get(piece.item)
        return token is FormattingToken.START_OF_TEXT

    def read_header(self, *, closed: bool) -> HeaderReading:
        if self._is_in_pieces:
            self._join_pieces()
        given, items = self._header_given, tuple(self._items)
        return read_header_tokens(self._vocabulary, items, self._opening, *given, closed)

    def _close_header(self, piece: Piece, cell: Cell) -> list[Event]:
        reading = self.read_header(closed=True)
        before, behind = self._faults(reading, piece)
        return [*before, self.start_message(reading.header, piece.stop, closed=True), *behind]

    def start_message(self, header: Header, stop: int, *, closed: bool) -> MessageStart:
        self.header = header
        self._header_is_closed = closed
        self.state = CONTENT
        return MessageStart(header, self.index, self._start, stop)

    def _break_off(self, piece: Piece, cell: Cell) -> list[Event]:
        reading = self.read_header(closed=False)
        is_truncated = piece.kind is TokenKind.END_OF_STREAM
        if reading.is_bare or (is_truncated and reading.rest is None):
            harmless = reading.is_bare and self._opening is not Opening.IMPLIED
            events = [] if harmless else self._abandon(reading, piece, cell)
            self._expect_start(piece.stop)
            return events
        return self._begin_content(reading, piece, _fault_of(cell)) + self.step(piece)

    def _abandon(self, reading: HeaderReading, piece: Piece, cell: Cell) -> list[Event]:
        """Report the text of a header that becomes no message."""
        text = self._plain_text()
        span = (self._start, piece.start) if text else (piece.start, piece.stop)
        if self._opening is Opening.IMPLIED:
            fault = self._expected_start(piece)
            return _fed([Malformed(fault._error, text, *span) if text else fault])
        of_tokens = tuple(fault for fault in reading.faults if fault.kind not in WORD_FAULTS)
        error = Malformed(self._error(_fault_of(cell), piece), text, *span)
        if not of_tokens:
            return [error]
        return [*self._faults(reading._replace(faults=of_tokens), piece)[1], error]

    def _plain_text(self) -> str:
        """The text of the header so far, less what a prompt holds of it."""
        if not self._items:
            return ""
        fed = [item for item, stop in zip(self._items, self._stops, strict=True) if stop > 0]
        return plain_text_of(self._vocabulary, fed)

    def _begin_content(self, reading: HeaderReading, piece: Piece, kind: FaultKind) -> list[Event]:
        """Start a message whose header `<|message|>` did not close: left-over words are content."""
        items, stops = self._items, self._stops
        number, skipped = reading.rest or (len(items), 0)
        stop = self._place(number, skipped)
        _, faults = self._faults(reading, piece)
        if self._opening is not Opening.IMPLIED:
            faults.append(Malformed(self._error(kind, piece), "", piece.start, piece.stop))
        events = [self.start_message(reading.header, stop, closed=False), *faults]
        starts = [self._first, *stops]
        for left in range(number, len(items)):
            rest = self.piece(items[left], starts[left], stops[left])
            if left == number:
                rest = rest._replace(data=rest.data[skipped:], start=stop)
            events += filter(_is_fed, self.step(rest))
        return join_deltas(events)

    def _width(self, items: list[Item], number: int, skipped: int) -> int:
        """How far `skipped` bytes reach into an item: nowhere in a token, which is not cut."""
        if not skipped or isinstance(items[number], int):
            return 0
        head = kind_and_data(self._vocabulary, items[number])[1][:skipped]
        return len(head.decode()) if isinstance(items[number], str) else skipped

    def _is_too_long_with(self, piece: Piece) -> bool:
        return self._length + piece.stop - piece.start > self.max_header_length

    def _break_off_at_limit(self, piece: Piece) -> list[Event]:
        room = self.max_header_length - self._length
        if room > 0 and isinstance(piece.item, str | bytes):
            # Where marked text is cut must not matter: it fills the header up to the limit.
            head = self.piece(piece.item[:room], piece.start, piece.start + room)
            tail = self.piece(piece.item[room:], piece.start + room, piece.stop)
            return self.step(head) + self.step(tail)
        reading = self.read_header(closed=False)
        at_fault = piece
        if isinstance(piece.item, str | bytes):
            at_fault = self.piece(piece.item[:1], piece.start, piece.start + 1)
        events = self._begin_content(reading, at_fault, FaultKind.MISSING_MESSAGE)
        return events + self.step(piece)

    def _reopen(self, piece: Piece, cell: Cell) -> list[Event]:
        reading = self.read_header(closed=False)
        if self._opening is Opening.PROMPT and reading.is_bare and not self._plain_text().strip():
            self._open(Opening.REPEATED, piece.start, piece.stop)
            return []
        if reading.rest is None or self._is_stray(reading.header):
            return self._abandon(reading, piece, cell) + self._open_at(piece, cell)
        events = self._begin_content(reading, piece, _fault_of(cell))
        if self.state is not CONTENT:  # a marker among the left-over words opened another header
            return events + self.step(piece)
        events += self._end_message(EndKind.IMPLICIT, piece.start, piece.start)
        return join_deltas(events) + self._open_at(piece, cell)

    def _is_stray(self, header: Header) -> bool:
        """Whether this is plain text between messages, which no marker makes a message of."""
        fields = (header.channel, header.recipient, header.content_type)
        return self._opening is Opening.IMPLIED and fields == (None, None, None)

    # -- In content -------------------------------------------------------------------------------

    def _announce(self) -> list[Event]:
        """Emit the start of a message that stands in the prompt."""
        self.is_announced = True
        assert self.header is not None
        return [MessageStart(self.header, self.index, 0, 0)]

    def _delta_of(self, piece: Piece, cell: Cell) -> list[Event]:
        return self.delta(piece.data, piece.start, piece.stop)

    def delta(self, data: bytes, start: int, stop: int) -> list[Event]:
        """Emit the whole characters; hold the bytes of an unfinished one."""
        if self.held:
            data, start = self.held + data, self._mark
        text, used = utf_8_decode(data, "replace", False)
        self.held = data[used:]
        self._mark = stop if text else start
        return [self._content(text, start, stop)] if text else []

    def _content(self, text: str, start: int, stop: int) -> ContentDelta:
        delta: Any = _new(
            ContentDelta
        )  # filled in by hand: 140 ns, where the constructor takes 300
        delta.header = self.header
        delta.index = self.index
        delta.text = text
        delta.start = start
        delta.stop = stop
        return delta  # type: ignore[no-any-return]

    def _flush(self, stop: int) -> list[Event]:
        """Give up on an unfinished character."""
        if not self.held:
            return []
        text = self.held.decode("utf-8", "replace")
        self.held = b""
        return list(filter(_is_fed, [self._content(text, self._mark, stop)]))

    def _ignore(self, piece: Piece, cell: Cell) -> list[Event]:
        if self.state is EXPECT_START and self._is_very_start(piece):
            return []
        error = self._error(_fault_of(cell), piece)
        return [*self._flush(piece.start), Malformed(error, "", piece.start, piece.stop)]

    def _replace(self, piece: Piece, cell: Cell) -> list[Event]:
        error = self._error(_fault_of(cell), piece)
        text = [*self._flush(piece.start), self._content("\ufffd", piece.start, piece.stop)]
        return [*join_deltas(text), Malformed(error, "", piece.start, piece.stop)]

    def _finish(self, piece: Piece, cell: Cell) -> list[Event]:
        return self._end_message(_END_KINDS[piece.kind], piece.start, piece.stop)

    def _end_message(self, end: EndKind, start: int, stop: int) -> list[Event]:
        assert self.header is not None
        complete = self._header_is_closed and end in _REAL_ENDS
        events = self._flush(start)
        events.append(MessageEnd(self.header, self.index, end, complete, start, stop))
        self.index += 1
        self._expect_start(stop)
        return events

    def _next(self, piece: Piece, cell: Cell) -> list[Event]:
        assert self.header is not None
        role, name = self.header.role, self.header.name
        fault = Malformed(self._error(_fault_of(cell), piece), "", piece.start, piece.stop)
        events = [*self._flush(piece.start), fault]
        events += self._end_message(EndKind.IMPLICIT, piece.start, piece.start)
        if piece.kind is TokenKind.START:
            return events + self._open_at(piece, cell)
        self._open(Opening.CONTINUED, piece.start, piece.start)
        self._header_given = (role, name)
        return events + self._keep(piece, cell)

    # -- Faults -----------------------------------------------------------------------------------

    def _faults(self, reading: HeaderReading, end: Piece) -> tuple[list[Event], list[Event]]:
        """The faults of a header that `end` ended: the one with left-over words, and the others.

        The former comes before the message, since its text belongs to none. An implied header has
        its coming as its one fault.
        """
        if not reading.faults and self._opening is not Opening.IMPLIED:
            return [], []
        left = [word for word in reading.left if self._stops[word.last] > 0]
        if self._opening is Opening.IMPLIED:
            coming = self._expected_start(end)
            return ([self._with_left(coming, left)], []) if left else ([], _fed([coming]))
        header = self._header_text()
        found = [self._header_fault(fault, end, header) for fault in reading.faults]
        if not left:
            return [], _fed([*found])
        number = max(
            number
            for number, fault in enumerate(reading.faults)
            if fault.kind in _OF_LEFT_WORDS and (fault.item, fault.offset) <= left[0][:2]
        )
        return [self._with_left(found.pop(number), left)], _fed([*found])

    def _with_left(self, fault: Malformed, left: list[LeftText]) -> Malformed:
        """The fault with the left-over words that were fed, and their span."""
        first, last = left[0], left[-1]
        text = "".join(word.text for word in left).lstrip()
        start, stop = self._place(first.first, first.offset), self._stops[last.last]
        if not isinstance(self._items[last.last], int):
            stop = self._place(last.last, last.width)
        return Malformed(fault._error, text, start, stop)

    def _place(self, number: int, skipped: int) -> int:
        """The position of a byte of an item; in a token, which is not cut, that of the token."""
        start = self._stops[number - 1] if number else self._first
        return max(0, start + self._width(self._items, number, skipped))

    def _header_fault(self, fault: Fault, end: Piece, header: str) -> Malformed:
        items = self._items
        item: Item | None
        if fault.item == len(items):
            item, start, stop = end.item, end.start, end.stop
        elif fault.item < 0:
            item = self._vocabulary.special_tokens[FormattingToken.START]
            start, stop = self._start, self._first
        else:
            item, stop = items[fault.item], self._stops[fault.item]
            start = self._place(fault.item, fault.offset)
        state = _STATE_OF_SECTION[fault.section]
        error = self._make_error(fault.kind, start, item, shortened(fault.text), state, header)
        return Malformed(error, "", start, stop)

    def _expected_start(self, end: Piece) -> Malformed:
        """The fault of an implied header, at its first item, or at the token that closed it."""
        items: list[tuple[Item | None, int]] = list(zip(self._items, self._stops, strict=True))
        fed = [pair for pair in items if pair[1] > 0]
        item, stop = (fed or items or [(end.item, end.stop)])[0]
        error = self._make_error(
            FaultKind.EXPECTED_START, self._first, item, "", EXPECT_START, self._header_text()
        )
        return Malformed(error, "", self._first, stop)

    def _error(self, kind: FaultKind, piece: Piece) -> ErrorFields:
        header = "" if self.state is CONTENT else self._header_text()
        return self._make_error(kind, piece.start, piece.item, "", self.state, header)

    def _make_error(
        self,
        kind: FaultKind,
        position: int,
        item: Item | None,
        word: str,
        state: State,
        header: str,
    ) -> ErrorFields:
        return (
            kind,
            position,
            item if isinstance(item, int) else None,
            word or ("" if item is None else quote(self._vocabulary, (item,))),
            state.value,
            header,
            WORD_FAULTS.get(kind) or _EXPECTED[state],
        )

    def _header_text(self) -> str:
        return quote(self._vocabulary, self._items) if self._items else ""


# Each left-over word is in one of these, which stands where the first of its words does.
_OF_LEFT_WORDS = (FaultKind.UNKNOWN_ROLE, FaultKind.UNPARSED_HEADER_TEXT)


def _fed(events: list[Event]) -> list[Event]:
    return list(filter(_is_fed, events))


def _is_fed(event: Event) -> bool:
    """Whether an event is of what was fed: of a prompt, no text and no fault is emitted."""
    return event.stop > 0 or isinstance(event, MessageStart | MessageEnd)


def _fault_of(cell: Cell) -> FaultKind:
    assert cell.fault is not None
    return cell.fault


_METHODS: dict[Action, Callable[[Machine, Piece, Cell], list[Event]]] = {
    Action.SKIP: Machine._skip,
    Action.WAIT: Machine._wait,
    Action.IMPLY: Machine._imply_for,
    Action.OPEN: Machine._open_at,
    Action.KEEP: Machine._keep,
    Action.CLOSE: Machine._close_header,
    Action.BREAK_OFF: Machine._break_off,
    Action.REOPEN: Machine._reopen,
    Action.DELTA: Machine._delta_of,
    Action.IGNORE: Machine._ignore,
    Action.REPLACE: Machine._replace,
    Action.FINISH: Machine._finish,
    Action.NEXT: Machine._next,
}
