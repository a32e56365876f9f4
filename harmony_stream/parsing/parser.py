"""`EventParser`: tokens in, typed events out, one token at a time.

`states.py` says what happens in which state, and `machine.py` does it. Here are the ways in:
checks, strictness, and two fast paths on top of the machine, which know content only. `feed`
answers from a table of texts; `feed_many` joins the bytes of a whole run of tokens.
"""

from __future__ import annotations

import operator
from array import array
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

import attrs

from harmony_stream.parsing.items import Item, Piece, piece_of
from harmony_stream.parsing.machine import CONTENT, Machine
from harmony_stream.parsing.marked_text import MarkedText
from harmony_stream.parsing.states import State, TokenKind
from harmony_stream.parsing.utf8_buffer import unfinished_bytes
from harmony_stream.values.events import (
    ContentDelta,
    Event,
    HarmonyParseError,
    Malformed,
    MessageStart,
    extend_joining,
    join_deltas,
)
from harmony_stream.values.messages import Role
from harmony_stream.vocabulary import FormattingToken, Vocabulary

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator

    from harmony_stream.values.header import Header


_new = object.__new__

_NO_TEXTS: dict[int, str] = {}
_NO_BYTES: list[bytes | None] = []

# Of marked text, this many characters count as one token of a header.
_CHARACTERS_A_TOKEN = 8

# `feed_many` looks tokens up block by block, so that memory does not grow with the input.
_BLOCK = 4096


class EventParser:
    """A state machine that turns the tokens of a stream into typed events.

    Events follow the grammar
    ``(Malformed | MessageStart (ContentDelta | Malformed)* MessageEnd)*``.
    Not for several threads at once; `copy` and pickle work at any point (a pickle holds the
    vocabulary by reference if it is the default, else by value).

    Args:
        role: the author of the header that the prompt opened: with `"assistant"` (the default) the
            prompt ended with `<|start|>assistant`. None for a full stream, which begins at
            `<|start|>`.
        strict: raise the first fault as a `HarmonyParseError`. Without it, a fault becomes a
            `Malformed` event, and no sequence of tokens raises.
        vocabulary: the meaning of the tokens (default: o200k_harmony).
        max_header_tokens: a header longer than that is broken off, and its left-over words become
            content. Marked text counts 8 characters as one token.

    Raises:
        TypeError: `max_header_tokens` is not an integer.
        ValueError: `max_header_tokens` is less than 1, or the role is not one of the five.

    The format guide, "Message format", describes what comes in; `states.py`, what is done with it.

    >>> parser = EventParser()
    >>> for token in [200005, 17196, 200008, 12194, 200002]:
    ...     for event in parser.feed(token):
    ...         print(type(event).__name__, event.channel, event.start, event.stop)
    MessageStart final 0 3
    ContentDelta final 3 4
    MessageEnd final 4 5
    >>> parser.close()
    ()
    """

    __slots__ = (
        "_closed",
        "_header",
        "_index",
        "_input",
        "_machine",
        "_marked_text",
        "_max_header_tokens",
        "_origin",
        "_parts",
        "_position",
        "_ready",
        "_strict",
        "_vocabulary",
    )

    def __init__(
        self,
        role: Role | str | None = Role.ASSISTANT,
        *,
        strict: bool = False,
        vocabulary: Vocabulary | None = None,
        max_header_tokens: int = 64,
    ) -> None:
        self._strict = strict
        self._max_header_tokens = limit = _limit(max_header_tokens)
        self._vocabulary = vocabulary or Vocabulary.default()
        # A parser made by `after` goes back to this on reset; others begin again.
        self._origin: Machine | None = None
        given = None if role is None else Role(role)
        self._begin(Machine(self._vocabulary, given, None, limit))

    def _begin(self, machine: Machine) -> None:
        self._machine = machine
        self._position = 0
        self._closed = False
        # A parser takes tokens or marked text, not both: the first thing fed decides.
        self._input: type[int] | type[str] | None = None
        self._marked_text: MarkedText | None = None
        self._refresh()

    @classmethod
    def after(
        cls,
        prompt_tokens: Iterable[SupportsIndex],
        *,
        strict: bool = False,
        vocabulary: Vocabulary | None = None,
        max_header_tokens: int = 64,
    ) -> Self:
        """Return a parser that continues where a prompt ends, also inside a header or content.

        It emits nothing of the prompt. If that ends inside content, the first event is a
        `MessageStart` with an empty span. Positions and indexes count from the first token fed
        and its message.

        >>> parser = EventParser.after([200006, 173781, 200005, 35644, 200008])
        >>> [event.to_dict()["type"] for event in parser.feed(12194)]
        ['message_start', 'content_delta']
        """
        parser = cls(None, vocabulary=vocabulary, max_header_tokens=max_header_tokens)
        parser.feed_many(prompt_tokens)
        parser._strict = strict
        parser._machine.begin_here(follows_tokens=parser._position > 0)
        parser._origin = parser._machine.copy()
        parser._begin(parser._machine)
        return parser

    def __repr__(self) -> str:
        return f"<EventParser in {self.state} at position {self._position}>"

    # -- A life -----------------------------------------------------------------------------------

    def reset(self) -> None:
        """Forget everything that was fed."""
        if self._origin is None:
            self._begin(self._machine.fresh(self._max_header_tokens))
        else:
            self._begin(self._origin.copy())

    def copy(self) -> Self:
        """Return a parser in the same state, which goes its own way from here.

        Attributes that a subclass adds go with it; as with `copy.copy` they are not copied.
        """
        twin = type(self).__new__(type(self))
        twin.__setstate__(self.__getstate__())
        return twin

    __copy__ = copy

    def __getstate__(self) -> dict[str, Any]:
        added = [name for name in _slots(type(self)) if hasattr(self, name)]
        return {
            **getattr(self, "__dict__", {}),
            **{name: getattr(self, name) for name in added},
            **self._own_state(),
        }

    def _own_state(self) -> dict[str, Any]:
        """Return the state, from which the tables of the fast paths follow."""
        return {
            **{name: getattr(self, name) for name in _OWN},
            "_machine": self._machine.copy(),
            "_marked_text": self._marked_text and self._marked_text.copy(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._refresh()

    # -- What is known ----------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The place in the format that the parser has reached."""
        return self._machine.state

    @property
    def position(self) -> int:
        """The number of tokens that were fed (characters, or bytes, of marked text)."""
        return self._position

    @property
    def header(self) -> Header | None:
        """The header of the current message as far as it is known; None between messages."""
        return self._machine.header_so_far()

    # -- Feeding ----------------------------------------------------------------------------------

    def feed(self, token: SupportsIndex) -> tuple[Event, ...]:
        """Take one token; return the events that follow from it: usually zero or one.

        Raises:
            HarmonyParseError: a fault, in strict mode.
            TypeError: the token is not an integer.
            ValueError: it is negative; or the parser was closed, or took marked text before.

        >>> parser = EventParser(role=None)
        >>> parser.feed(200006), parser.feed(1428), parser.feed(200008)[0].role.value
        ((), (), 'user')
        """
        # Most tokens by far are whole characters of content. The type is checked because a dict
        # answers for 5.0 as for 5. The event is filled in here: 140 ns, where its constructor
        # takes 300, of 400 for all.
        if type(token) is int:
            text = self._ready.get(token)
            if text is not None:
                delta: Any = _new(ContentDelta)
                delta.header = self._header
                delta.index = self._index
                delta.text = text
                delta.start = start = self._position
                delta.stop = self._position = start + 1
                return (delta,)
            # Next come parts of characters: half of all tokens of emoji.
            if 0 <= token < len(self._parts):
                data = self._parts[token]
                if data is not None:
                    return self._feed_content(data, 1)
        self._refuse_if_closed()
        number = _token_id(token)
        self._take(int)
        data = self._bytes_of(number) if self._machine.is_in_content else None
        if data is not None:
            return self._feed_content(data, 1)
        return tuple(self._checked([], self._feed_item(number, 1)))

    def feed_many(self, tokens: Iterable[SupportsIndex]) -> list[Event]:
        """Take tokens; return adjacent text of one message as one delta. The fast way for chunks.

        Raises as `feed` does. The tokens are checked before anything changes. In strict mode the
        tokens after a fault are not taken.

        >>> events = EventParser().feed_many([200005, 17196, 200008, 12194, 2375])
        >>> [event.to_dict()["type"] for event in events]
        ['message_start', 'content_delta']
        """
        self._refuse_if_closed()
        ids = _token_ids(tokens)
        self._take(int)
        events: list[Event] = []
        for first in range(0, len(ids), _BLOCK):
            self._feed_block(ids[first : first + _BLOCK], events)
        return events

    def feed_text(self, text: str | bytes) -> list[Event]:
        """Take marked text, in which special tokens are spelled out; it may be cut anywhere.

        Only for text in which the engine itself wrote the markers. Text from users may spell out
        markers too, and they would be taken for real ones: feed the token ids if there are any.
        Text that can still become a marker is held back until that is decided.

        Raises:
            HarmonyParseError: a fault, in strict mode.
            ValueError: the parser was closed, or took tokens (or the other kind of text) before.

        >>> parser = EventParser()
        >>> [e.to_dict()["type"] for e in parser.feed_text("<|channel|>final<|message|>Hi <|retu")]
        ['message_start', 'content_delta']
        >>> [e.to_dict()["type"] for e in parser.feed_text("rn|>")]
        ['message_end']
        """
        self._refuse_if_closed()
        marked_text = self._marked_text or MarkedText(self._vocabulary, text)
        items = marked_text.cut(text)
        self._take(str)
        self._marked_text = marked_text
        events: list[Event] = []
        try:
            for item, width in items:
                extend_joining(events, self._checked(events, self._feed_item(item, width)))
        except HarmonyParseError:
            marked_text.forget()  # the text after the fault was not taken
            raise
        return events

    def close(self) -> tuple[Event, ...]:
        """End the stream; return the last events. A second call returns `()`.

        Raises:
            HarmonyParseError: a fault, in strict mode. The parser is closed all the same.

        >>> parser = EventParser()
        >>> events = parser.feed_many([200005, 17196, 200008, 12194])
        >>> [event.end for event in parser.close()]
        [<EndKind.TRUNCATED: 'truncated'>]
        """
        if self._closed:
            return ()
        events: list[Event] = []
        if self._marked_text is not None:
            for item, width in self._marked_text.rest():
                events += self._feed_item(item, width)
        end = Piece(TokenKind.END_OF_STREAM, None, b"", self._position, self._position)
        events += self._machine.step(end)
        self._closed = True
        self._refresh()
        return tuple(self._checked([], join_deltas(events)))

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise ValueError("the stream was closed: reset() the parser before feeding more")

    def _take(self, kind: type[int] | type[str]) -> None:
        if self._input is None:
            self._input = kind
            if kind is str:
                self._machine.limit_headers(self._max_header_tokens * _CHARACTERS_A_TOKEN)
        elif self._input is not kind:
            raise ValueError("a parser takes tokens or marked text, not both: reset() it first")

    def _feed_item(self, item: Item, width: int) -> list[Event]:
        start = self._position
        self._position = stop = start + width
        events = self._machine.step(piece_of(self._vocabulary, item, start, stop))
        if events:
            self._refresh()
        return events

    def _bytes_of(self, token: int) -> bytes | None:
        """Return the bytes of an ordinary token, None for another one."""
        table = self._vocabulary.token_bytes
        known = table[token] if token < len(table) else None
        return known or self._vocabulary.lookup(token)

    def _feed_content(self, data: bytes, count: int) -> tuple[Event, ...]:
        start = self._position
        self._position = stop = start + count
        events = self._machine.delta(data, start, stop)
        self._ready = _NO_TEXTS if self._machine.characters.held else self._vocabulary.texts
        return events

    def _refresh(self) -> None:
        """Open or shut the fast paths of `feed`: inside content; the first with no bytes held."""
        machine = self._machine
        # Copied, so that the fast path reads no attribute of an attribute.
        self._header, self._index = machine.header, machine.index
        # `is_in_content`, less the call: this runs three times a message.
        is_in_content = machine.state is CONTENT and machine.is_announced
        is_open = is_in_content and self._input is int and not self._closed
        self._parts = self._vocabulary.token_bytes if is_open else _NO_BYTES
        self._ready = (
            self._vocabulary.texts if is_open and not machine.characters.held else _NO_TEXTS
        )

    def _checked(self, before: list[Event], events: list[Event]) -> list[Event]:
        """Return the events of one step; in strict mode, raise the first fault among them."""
        for event in events if self._strict else ():
            if isinstance(event, Malformed):
                others = [other for other in events if other is not event]
                raise attrs.evolve(event.error, events=tuple(join_deltas(before + others)))
        return events

    def _feed_block(self, ids: list[int], events: list[Event]) -> None:
        datas = self._look_up(ids)
        done = 0
        while done < len(ids):
            if self._parts and datas[done] is None and self._is_ordinary(ids[done]):
                datas = self._look_up_all(ids)  # tokens that were never seen before
            if self._parts and datas[done] is not None:
                stop = _index_of_none(datas, done)
                extend_joining(events, self._feed_run(datas[done:stop]))  # type: ignore[arg-type]
                done = stop
            elif start := self._start_as_before(ids, done):
                events.append(start)
                done += start.stop - start.start
            else:
                step = self._feed_item(operator.index(ids[done]), 1)
                extend_joining(events, self._checked(events, step))
                done += 1

    def _feed_run(self, datas: tuple[bytes, ...]) -> tuple[Event, ...]:
        """Take a run of content at once."""
        characters = self._machine.characters
        before, data = characters.held, b"".join(datas)
        events = self._feed_content(data, len(datas))
        if events and characters.held:
            # Tokens at the end that finish no character are not part of the text before them.
            count = _unfinished_tokens(datas, before + data, len(characters.held))
            delta: Any = events[0]
            delta.stop -= count
            characters.mark -= count
        return events

    def _start_as_before(self, ids: list[int], first: int) -> MessageStart | None:
        """Start a message whose whole header is in the block, provided that it has no fault."""
        special = self._vocabulary.special_tokens
        if ids[first] != special[FormattingToken.START]:
            return None
        try:
            limit = first + 2 + self._max_header_tokens
            last = ids.index(special[FormattingToken.MESSAGE], first, limit)
        except ValueError:
            return None
        items = tuple(map(operator.index, ids[first + 1 : last]))
        if ids[first] in items:  # of many starts, only the last is worth a look
            return None
        stop = self._position + last + 1 - first
        event = self._machine.start_at_once(items, self._position, stop)
        if event is not None:
            self._position = stop
            self._refresh()
        return event

    def _is_ordinary(self, given: SupportsIndex) -> bool:
        token = operator.index(given)
        is_special = self._vocabulary.is_special_token(token)
        return not is_special and self._bytes_of(token) is not None

    def _look_up(self, ids: list[int]) -> tuple[bytes | None, ...]:
        """Return the bytes of ordinary tokens seen before, None for others.

        `itemgetter`, `index` and `join` stay in C: 40-50 ns a token for any script. (Joining texts
        instead of bytes would lose on emoji, where half of the tokens are parts of characters.)
        """
        try:
            datas: tuple[bytes | None, ...] = itemgetter(*ids, 0)(self._vocabulary.token_bytes)
        except IndexError:
            return self._look_up_all(ids)
        return datas[:-1]

    def _look_up_all(self, ids: list[int]) -> tuple[bytes | None, ...]:
        return tuple(self._bytes_of(operator.index(token)) for token in ids)


# The attributes that make a parser's state; the tables of the fast paths follow from them.
_OWN = tuple({*EventParser.__slots__} - {"_ready", "_parts", "_header", "_index"})


def _slots(kind: type) -> list[str]:
    """Return the slots that subclasses of the parser add."""
    added = kind.__mro__[: kind.__mro__.index(EventParser)]
    slots = [each.__dict__.get("__slots__", ()) for each in added]
    names = [name for each in slots for name in ([each] if isinstance(each, str) else each)]
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def _limit(max_header_tokens: SupportsIndex) -> int:
    try:
        limit = operator.index(max_header_tokens)
    except TypeError:
        reason = f"max_header_tokens is {max_header_tokens!r}, which is not an integer"
        raise TypeError(f"{reason}; give a number of tokens, 1 or more") from None
    if limit < 1:
        raise ValueError(f"max_header_tokens is {limit}; give a number of tokens, 1 or more")
    return limit


def _token_id(token: SupportsIndex) -> int:
    if isinstance(token, str | bytes):
        raise TypeError("a token is an integer: feed_text() takes marked text")
    number = operator.index(token)
    if number < 0:
        raise ValueError(f"token {number} is negative: token ids count from 0")
    return number


def _token_ids(tokens: Iterable[SupportsIndex]) -> list[int]:
    """Return the tokens, checked: by `array` in C (5-8 ns each) if they fit there.

    They may still be integers of other kinds, which serve as indexes; where they are more than
    that, `operator.index` makes plain ones of them.
    """
    if isinstance(tokens, str | bytes):
        raise TypeError("tokens are integers: feed_text() takes marked text")
    ids: list[Any] = tokens if isinstance(tokens, list) else list(tokens)
    try:
        array("Q", ids)
    except (OverflowError, TypeError):
        return list(map(_token_id, ids))
    return ids


def _unfinished_tokens(datas: tuple[bytes, ...], data: bytes, held: int) -> int:
    """Return the number of tokens at the end that gave no text when they came.

    Args:
        datas: the bytes of the tokens.
        data: all bytes, with those that were held before them.
        held: the number of bytes at the end that are held now.
    """
    count, left = 0, held
    while left and len(datas[-1 - count]) <= left:
        left -= len(datas[-1 - count])
        count += 1
    # The first of them did, if it showed that the bytes before it would not become a character.
    is_proof = left == 0 and unfinished_bytes(data[:-held]) > 0
    return count - is_proof


def _index_of_none(datas: tuple[bytes | None, ...], first: int) -> int:
    try:
        return datas.index(None, first)
    except ValueError:
        return len(datas)


def iter_events(
    tokens: Iterable[SupportsIndex],
    role: Role | str | None = Role.ASSISTANT,
    *,
    strict: bool = False,
    vocabulary: Vocabulary | None = None,
) -> Iterator[Event]:
    """Yield the events of tokens as they come, to the end of the stream; see `EventParser`.

    >>> [type(event).__name__ for event in iter_events([200005, 17196, 200008, 13225])]
    ['MessageStart', 'ContentDelta', 'MessageEnd']
    """
    parser = EventParser(role, strict=strict, vocabulary=vocabulary)
    for token in tokens:
        yield from parser.feed(token)
    yield from parser.close()


async def aiter_events(
    tokens: AsyncIterable[SupportsIndex],
    role: Role | str | None = Role.ASSISTANT,
    *,
    strict: bool = False,
    vocabulary: Vocabulary | None = None,
) -> AsyncIterator[Event]:
    """Yield the events of tokens that come asynchronously; see `EventParser`.

    >>> import asyncio
    >>> async def main():
    ...     async def engine():
    ...         for token in [200005, 17196, 200008, 13225]:
    ...             yield token
    ...     return [type(event).__name__ async for event in aiter_events(engine())]
    >>> asyncio.run(main())
    ['MessageStart', 'ContentDelta', 'MessageEnd']
    """
    parser = EventParser(role, strict=strict, vocabulary=vocabulary)
    async for token in tokens:
        for event in parser.feed(token):
            yield event
    for event in parser.close():
        yield event
