"""The machine: what is done with one token, as the table in `states.py` has it.

`Machine.step` takes one piece, looks up its cell, and calls the method of the cell's action. It
always repairs, and reports faults as `Malformed` events; `EventParser` makes errors of them.
"""

from __future__ import annotations

from codecs import utf_8_decode
from typing import TYPE_CHECKING, Any

from harmony_stream.parsing.header_buffer import HeaderBuffer
from harmony_stream.parsing.header_tokens import HeaderReading, read_header_tokens
from harmony_stream.parsing.items import Piece, piece_of
from harmony_stream.parsing.malformed import (
    error_fields,
    expected_start,
    fault_of_token,
    fed,
    header_faults,
)
from harmony_stream.parsing.states import (
    TABLE,
    WORD_FAULTS,
    Action,
    Cell,
    Condition,
    State,
    TokenKind,
)
from harmony_stream.parsing.utf8_buffer import Utf8Buffer, unfinished_bytes
from harmony_stream.values.events import (
    ContentDelta,
    EndKind,
    Event,
    Malformed,
    MessageEnd,
    MessageStart,
    join_deltas,
)
from harmony_stream.values.faults import FaultKind
from harmony_stream.values.messages import Role
from harmony_stream.values.read_header import Opening
from harmony_stream.vocabulary import FormattingToken, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

    from harmony_stream.values.header import Header

# Bound once: compared with by identity for each token.
CONTENT = State.CONTENT
EXPECT_START = State.EXPECT_START
ROLE = State.ROLE
_START = Opening.START
_PROMPT = Opening.PROMPT
_IMPLIED = Opening.IMPLIED

_new = object.__new__

_END_KINDS = {
    TokenKind.END: EndKind.END,
    TokenKind.RETURN: EndKind.RETURN,
    TokenKind.CALL: EndKind.CALL,
    TokenKind.END_OF_TEXT: EndKind.END_OF_TEXT,
    TokenKind.END_OF_STREAM: EndKind.TRUNCATED,
}
_REAL_ENDS = (EndKind.END, EndKind.RETURN, EndKind.CALL)


class Machine:
    """The state of a stream, and one method for each action of the table.

    Attributes:
        state: the state.
        header: the header of the message whose content is fed.
        index: the number of messages before the current one.
        characters: holds the bytes of an unfinished character, in content and in white space.
        is_announced: False while the start of the message is in the prompt, and not yet emitted.
        follows_tokens: True if a prompt came before the first token that is fed.
    """

    __slots__ = (
        "_buffer",
        "_given",
        "_header_is_closed",
        "_vocabulary",
        "characters",
        "follows_tokens",
        "header",
        "index",
        "is_announced",
        "state",
    )

    def __init__(
        self, vocabulary: Vocabulary, role: Role | None, name: str | None, max_header_length: int
    ) -> None:
        self._vocabulary = vocabulary
        # The author of the header that the prompt opened; None if it opened none.
        self._given = (role, name)
        self.follows_tokens = False
        self.header: Header | None = None
        self._header_is_closed = False
        self.is_announced = True
        self.index = 0
        self.characters = Utf8Buffer()
        self._buffer = HeaderBuffer(vocabulary, max_header_length)
        if role is None:
            self._expect_start(0)
        else:
            self._open(_PROMPT, 0, 0)

    @property
    def is_in_content(self) -> bool:
        """True if tokens are content of a message whose start was emitted."""
        return self.state is CONTENT and self.is_announced

    def copy(self) -> Machine:
        """Return a machine in the same state, with buffers of its own."""
        twin = Machine.__new__(Machine)
        for name in Machine.__slots__:
            setattr(twin, name, getattr(self, name))
        twin._buffer, twin.characters = self._buffer.copy(), self.characters.copy()
        return twin

    def fresh(self, max_header_length: int) -> Machine:
        """Return a machine that has been fed nothing, for the same prompt."""
        return Machine(self._vocabulary, *self._given, max_header_length)

    def limit_headers(self, max_header_length: int) -> None:
        """Set the greatest length of a header: in characters or bytes of marked text."""
        self._buffer.limit = max_header_length

    def header_so_far(self) -> Header | None:
        """Return the header of the current message as far as it is known; None between messages."""
        if self.state is CONTENT:
            return self.header
        return None if self.state is EXPECT_START else self._buffer.read(closed=True).header

    def begin_here(self, *, follows_tokens: bool) -> None:
        """Count from here, as if nothing had been fed before: what was fed is the prompt."""
        self.follows_tokens = follows_tokens
        self.index = self.characters.mark = 0
        self._buffer.begin_here()
        self.is_announced = self.state is not CONTENT
        self._given = (Role.ASSISTANT, None)
        is_in_role = self.state is State.ROLE and bool(self._buffer.items)
        if is_in_role and (reading := self._buffer.read(closed=True)).is_bare:
            # The usual end of a prompt, `<|start|>assistant`, is the same as a given role.
            self.follows_tokens = False
            self._given = (reading.header.role, reading.header.name)
            self._open(_PROMPT, 0, 0)

    # -- Headers as a whole -----------------------------------------------------------------------

    @property
    def given(self) -> tuple[Role | None, str | None]:
        """The author that the prompt gives: role and name."""
        return self._given

    def next_opening(self) -> Opening | None:
        """Return what opens the next header; None if something of that was fed, or in content."""
        if self._buffer.items:
            return None
        if self.state is EXPECT_START:
            return _START
        return _PROMPT if self.state is ROLE and self._buffer.opening is _PROMPT else None

    def read_at_once(self, tokens: tuple[int, ...]) -> HeaderReading:
        """Read what comes next as a header, with the `<|start|>` that opens it, if one does."""
        role, name = self._given
        items, opening = (tokens, _PROMPT) if self.state is ROLE else (tokens[1:], _START)
        return read_header_tokens(self._vocabulary, items, opening, role, name, True)

    def start_at_once(self, header: Header, start: int, stop: int) -> MessageStart:
        """Start a message by its whole header; nothing was fed of it before."""
        if self.state is EXPECT_START:
            self._buffer.start = start
        return self._start_message(header, stop, closed=True)

    def last_header(self) -> tuple[Opening, tuple[int, ...]] | None:
        """Return what opened the header that was read last, and its tokens, less `<|message|>`.

        None if the prompt holds the `<|start|>`, or something else opened it: the same tokens may
        mean something else there.
        """
        buffer = self._buffer
        items: Any = tuple(buffer.items)
        if buffer.opening is _PROMPT:
            return _PROMPT, items
        if buffer.opening is _START and buffer.first > 0:
            return _START, (self._vocabulary.special_tokens[FormattingToken.START], *items)
        return None

    def standing(self) -> tuple[object, ...] | None:
        """Return what a step depends on besides its piece; None if steps may make that longer.

        Before the very first token there is more to it: see `Condition.VERY_START`.
        """
        if self.characters.held or (self._buffer.items and self.state is not CONTENT):
            return None
        return self.state, self._buffer.opening, self.index, self.is_announced

    def step(self, piece: Piece) -> list[Event]:
        """Do what the table says about this piece in this state."""
        if self.state is EXPECT_START and self._buffer.items and piece.kind is not TokenKind.TEXT:
            self._take_for_text()  # the character is not finished, so it was not white space
        if not self.is_announced:
            return self._announce() + self.step(piece)
        cell = TABLE[self.state][piece.kind]
        if cell.unless and _CONDITIONS[cell.unless.condition](self, piece):
            cell = cell.unless.cell
        elif cell.action is Action.KEEP and piece.stop - piece.start > self._buffer.room:
            return self._break_off_at_limit(piece)
        return _METHODS[cell.action](self, piece, cell)

    def _skip(self, piece: Piece, cell: Cell) -> list[Event]:
        self._buffer.begin_after(piece)
        return []

    def _is_very_start(self, piece: Piece) -> bool:
        if piece.start > 0 or self.follows_tokens or not isinstance(piece.item, int):
            return False
        token = self._vocabulary.formatting_tokens.get(piece.item)
        return token is FormattingToken.START_OF_TEXT

    # -- Between messages -------------------------------------------------------------------------

    def _expect_start(self, position: int) -> None:
        self._buffer.open(_IMPLIED, self._given, position, position)
        self.state = EXPECT_START

    def _wait(self, piece: Piece, cell: Cell) -> list[Event]:
        """Skip white space; hold the bytes of an unfinished character, which may be some or not."""
        if self._is_ascii_space(piece):
            return []
        piece, self.characters.held = self._after_blank(piece)
        self.state = EXPECT_START
        if self.characters.held:
            self._buffer.append(piece)
        return []

    def _imply(self, piece: Piece, cell: Cell) -> list[Event]:
        piece, _ = self._after_blank(piece)
        self._take_for_text()
        if piece.kind is TokenKind.TEXT:
            return self.step(piece)
        # A marker that opens a header is in it, also where the limit is shorter than a marker.
        inner = TABLE[State.ROLE][piece.kind]
        return _METHODS[inner.action](self, piece, inner)

    def _take_for_text(self) -> None:
        """Take what is kept so far for the text of a header that nothing opened."""
        self.characters.held = b""
        self.state = State.ROLE

    def _is_white_space(self, piece: Piece) -> bool:
        if self._is_ascii_space(piece):
            return True
        text, _ = utf_8_decode(self.characters.held + piece.data, "replace", False)
        return not text.lstrip()

    def _is_ascii_space(self, piece: Piece) -> bool:
        # The usual case, a third faster: nothing needs to be decoded, cut or held.
        return not self.characters.held and piece.data.isspace()

    def _after_blank(self, piece: Piece) -> tuple[Piece, bytes]:
        """Begin an implied header after white space; return the piece from there, and its bytes."""
        held = self.characters.held
        text, _ = utf_8_decode(held + piece.data, "replace", False)
        blank = text[: len(text) - len(text.lstrip())]
        width = len(blank.encode())
        data = (held + piece.data)[width:]
        if blank and isinstance(piece.item, str | bytes):  # a token cannot be cut
            is_text = isinstance(piece.item, str)
            _, piece = self._cut(piece, len(blank) if is_text else width - len(held))
        if blank or not self._buffer.items:
            self._open(_IMPLIED, piece.start, piece.start)
        return piece, data

    # -- In a header ------------------------------------------------------------------------------

    def _open(self, opening: Opening, start: int, first: int) -> None:
        """Open a header that begins at `start`, and whose first item will begin at `first`."""
        self.state = State.ROLE
        self._buffer.open(opening, self._given, start, first)

    def _open_at(self, piece: Piece, cell: Cell) -> list[Event]:
        self._open(_START, piece.start, piece.stop)
        return []

    def _repeat(self, piece: Piece, cell: Cell) -> list[Event]:
        self._open(Opening.REPEATED, piece.start, piece.stop)
        return []

    def _repeats_prompt(self, piece: Piece) -> bool:
        buffer = self._buffer
        is_untouched = buffer.opening is _PROMPT and buffer.read(closed=False).is_bare
        return is_untouched and not buffer.plain_text().strip()

    def _keep(self, piece: Piece, cell: Cell) -> list[Event]:
        self._buffer.append(piece)
        self.state = cell.next
        return []

    def _close_header(self, piece: Piece, cell: Cell) -> list[Event]:
        reading = self._buffer.read(closed=True)
        before, after = header_faults(self._buffer, reading, piece)
        return [*before, self._start_message(reading.header, piece.stop, closed=True), *after]

    def _start_message(self, header: Header, stop: int, *, closed: bool) -> MessageStart:
        self.header = header
        self._header_is_closed = closed
        self.state = CONTENT
        return MessageStart(header, self.index, self._buffer.start, stop)

    def _drop(self, piece: Piece, cell: Cell) -> list[Event]:
        self._expect_start(piece.stop)
        return []

    def _says_role_only(self, piece: Piece) -> bool:
        # In an implied header it is a word that somebody wrote where `<|start|>` was expected.
        buffer = self._buffer
        return buffer.opening is not _IMPLIED and buffer.read(closed=False).is_bare

    def _break_off(self, piece: Piece, cell: Cell) -> list[Event]:
        reading = self._buffer.read(closed=False)
        is_truncated = piece.kind is TokenKind.END_OF_STREAM
        if reading.is_bare or (is_truncated and reading.rest is None):
            events = self._abandon(reading, piece, cell)
            self._expect_start(piece.stop)
            return events
        return self._begin_content(reading, piece, _fault_of(cell)) + self.step(piece)

    def _abandon(self, reading: HeaderReading, piece: Piece, cell: Cell) -> list[Event]:
        """Report the text of a header that becomes no message."""
        buffer = self._buffer
        text = buffer.plain_text()
        span = (buffer.start, piece.start) if text else (piece.start, piece.stop)
        if buffer.opening is _IMPLIED:
            fault = expected_start(buffer, piece)
            return [*fed([Malformed(fault._error, text, *span) if text else fault])]
        error = Malformed(self._fault(_fault_of(cell), piece)._error, text, *span)
        of_tokens = tuple(fault for fault in reading.faults if fault.kind not in WORD_FAULTS)
        _, faults = header_faults(buffer, reading._replace(faults=of_tokens), piece)
        return [*faults, error]

    def _begin_content(self, reading: HeaderReading, piece: Piece, kind: FaultKind) -> list[Event]:
        """Start a message whose header `<|message|>` did not close: left-over words are content."""
        buffer = self._buffer
        number, skipped = reading.rest or (len(buffer.items), 0)
        stop = buffer.position(number, skipped)
        _, faults = header_faults(buffer, reading, piece)
        if buffer.opening is not _IMPLIED:
            faults.append(self._fault(kind, piece))
        content = list(buffer.pieces_from(number, skipped))
        start = self._start_message(reading.header, stop, closed=False)
        events: list[Event] = [start, *faults]
        for rest in content:
            events += [event for event in self.step(rest) if _is_fed(event)]
        return join_deltas(events)

    def _break_off_at_limit(self, piece: Piece) -> list[Event]:
        room = self._buffer.room
        if room > 0 and isinstance(piece.item, str | bytes):
            # Where marked text is cut must not matter: it fills the header up to the limit.
            head, tail = self._cut(piece, room)
            return self.step(head) + self.step(tail)
        reading = self._buffer.read(closed=False)
        is_text = isinstance(piece.item, str | bytes)
        at_fault = self._cut(piece, 1)[0] if is_text else piece
        events = self._begin_content(reading, at_fault, FaultKind.MISSING_MESSAGE)
        return events + self.step(piece)

    def _cut(self, piece: Piece, width: int) -> tuple[Piece, Piece]:
        """Cut marked text in two."""
        assert isinstance(piece.item, str | bytes)
        place, vocabulary = piece.start + width, self._vocabulary
        head = piece_of(vocabulary, piece.item[:width], piece.start, place)
        return head, piece_of(vocabulary, piece.item[width:], place, piece.stop)

    def _reopen(self, piece: Piece, cell: Cell) -> list[Event]:
        if not self._buffer.items and self._buffer.opening is not _IMPLIED:
            return self._ignore(piece, cell) + self._open_at(piece, cell)
        reading = self._buffer.read(closed=False)
        if reading.rest is None or self._is_stray(reading.header):
            return self._abandon(reading, piece, cell) + self._open_at(piece, cell)
        events = self._begin_content(reading, piece, _fault_of(cell))
        if self.state is not CONTENT:  # a marker among the left-over words opened another header
            return events + self.step(piece)
        events += self._end_message(EndKind.IMPLICIT, piece.start, piece.start)
        return join_deltas(events) + self._open_at(piece, cell)

    def _is_stray(self, header: Header) -> bool:
        """Return whether this is plain text between messages: no marker makes it a message."""
        fields = (header.channel, header.recipient, header.content_type)
        return self._buffer.opening is _IMPLIED and fields == (None, None, None)

    # -- In content -------------------------------------------------------------------------------

    def _announce(self) -> list[Event]:
        """Emit the start of a message that is in the prompt."""
        self.is_announced = True
        assert self.header is not None
        return [MessageStart(self.header, self.index, 0, 0)]

    def _delta_of(self, piece: Piece, cell: Cell) -> list[Event]:
        if not isinstance(piece.item, bytes):
            return [*self.delta(piece.data, piece.start, piece.stop)]
        # Where marked text is cut must not matter: each byte has a place of its own.
        width = len(piece.data) - unfinished_bytes(piece.data)
        events: list[Event] = []
        if width:
            events += self.delta(piece.data[:width], piece.start, piece.start + width)
        for place in range(width, len(piece.data)):
            start = piece.start + place
            events += self.delta(piece.data[place : place + 1], start, start + 1)
        return join_deltas(events)

    def delta(self, data: bytes, start: int, stop: int) -> tuple[ContentDelta, ...]:
        """Emit the characters that are whole."""
        text, start = self.characters.take(data, start, stop)
        if not text:
            return ()
        delta: Any = _new(ContentDelta)  # filled in by hand: 140 ns, by the constructor 300
        delta.header = self.header
        delta.index = self.index
        delta.text = text
        delta.start = start
        delta.stop = stop
        return (delta,)

    def _content(self, text: str, start: int, stop: int) -> ContentDelta:
        assert self.header is not None
        return ContentDelta(self.header, self.index, text, start, stop)

    def _flush(self, stop: int) -> list[Event]:
        """Give up on an unfinished character."""
        mark, text = self.characters.mark, self.characters.flush()
        return [self._content(text, mark, stop)] if text and stop > 0 else []

    def _ignore(self, piece: Piece, cell: Cell) -> list[Event]:
        events = self._flush(piece.start) if self.characters.held else []
        events.append(self._fault(_fault_of(cell), piece))
        return events

    def _replace(self, piece: Piece, cell: Cell) -> list[Event]:
        fault = self._fault(_fault_of(cell), piece)
        text = self._content("\ufffd", piece.start, piece.stop)
        if not self.characters.held:
            return [text, fault]
        return [*join_deltas([*self._flush(piece.start), text]), fault]

    def _finish(self, piece: Piece, cell: Cell) -> list[Event]:
        return self._end_message(_END_KINDS[piece.kind], piece.start, piece.stop)

    def _end_message(self, end: EndKind, start: int, stop: int) -> list[Event]:
        assert self.header is not None
        complete = self._header_is_closed and end in _REAL_ENDS
        events = self._flush(start) if self.characters.held else []
        events.append(MessageEnd(self.header, self.index, end, complete, start, stop))
        self.index += 1
        self._expect_start(stop)
        return events

    def _next(self, piece: Piece, cell: Cell) -> list[Event]:
        assert self.header is not None
        author = (self.header.role, self.header.name)
        fault = self._fault(_fault_of(cell), piece)
        events = [*self._flush(piece.start), fault]
        events += self._end_message(EndKind.IMPLICIT, piece.start, piece.start)
        if piece.kind is TokenKind.START:
            return events + self._open_at(piece, cell)
        self._buffer.open(Opening.CONTINUED, author, piece.start, piece.start)
        return events + self._keep(piece, cell)

    def _fault(self, kind: FaultKind, piece: Piece) -> Malformed:
        buffer, vocabulary = self._buffer, self._vocabulary
        if self.state is CONTENT or not buffer.items:
            return fault_of_token(vocabulary, kind, piece, self.state)
        header = buffer.text()
        error = error_fields(vocabulary, kind, piece.start, piece.item, self.state, header)
        return Malformed(error, "", piece.start, piece.stop)


def _is_fed(event: Event) -> bool:
    """Return whether an event is of what was fed: of a prompt, no text and no fault is emitted."""
    return event.stop > 0 or isinstance(event, MessageStart | MessageEnd)


def _fault_of(cell: Cell) -> FaultKind:
    assert cell.fault is not None
    return cell.fault


_CONDITIONS: dict[Condition, Callable[[Machine, Piece], bool]] = {
    Condition.WHITE_SPACE: Machine._is_white_space,
    Condition.VERY_START: Machine._is_very_start,
    Condition.BARE_ROLE: Machine._says_role_only,
    Condition.REPEATED_PROMPT: Machine._repeats_prompt,
}
_METHODS: dict[Action, Callable[[Machine, Piece, Cell], list[Event]]] = {
    Action.SKIP: Machine._skip,
    Action.WAIT: Machine._wait,
    Action.IMPLY: Machine._imply,
    Action.OPEN: Machine._open_at,
    Action.REPEAT: Machine._repeat,
    Action.KEEP: Machine._keep,
    Action.CLOSE: Machine._close_header,
    Action.DROP: Machine._drop,
    Action.BREAK_OFF: Machine._break_off,
    Action.REOPEN: Machine._reopen,
    Action.DELTA: Machine._delta_of,
    Action.IGNORE: Machine._ignore,
    Action.REPLACE: Machine._replace,
    Action.FINISH: Machine._finish,
    Action.NEXT: Machine._next,
}
