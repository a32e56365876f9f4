"""`EventParser`: tokens in, typed events out, one token at a time.

`states.py` says what happens in which state, and `machine.py` does it. Here are the ways in:
checks, strictness, and the fast paths on top of the machine. In content, `feed` and short steps of
`feed_many` answer from a table of texts, or of steps where bytes are held, and a longer `feed_many`
joins the bytes of a whole run of tokens. Headers that came before are found again.
"""

from __future__ import annotations

import operator
from array import array
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

import attrs

from harmony_stream.parsing.character_steps import NO_STEPS, CharacterSteps, Steps
from harmony_stream.parsing.items import Item, Piece, piece_of, tokens_of
from harmony_stream.parsing.known_headers import NOWHERE, Node, Root, known_headers
from harmony_stream.parsing.machine import CONTENT, Machine
from harmony_stream.parsing.states import State, TokenKind
from harmony_stream.parsing.utf8_buffer import unfinished_bytes
from harmony_stream.values.events import (
    ContentDelta,
    Event,
    HarmonyParseError,
    Malformed,
    MessageStart,
    copies,
    extend_joining,
    join_deltas,
)
from harmony_stream.values.messages import Role
from harmony_stream.values.read_header import Opening
from harmony_stream.vocabulary import FormattingToken, Vocabulary

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator

    from harmony_stream.parsing.marked_text import MarkedText
    from harmony_stream.values.header import Header


_new = object.__new__
_MESSAGE = TokenKind.MESSAGE
_TEXT = TokenKind.TEXT

# Of marked text, this many characters count as one token of a header.
_CHARACTERS_A_TOKEN = 8

# `feed_many` looks tokens up block by block, so that memory does not grow with the input.
_BLOCK = 4096
# Up to here it takes content token by token, as `feed` does, but makes one event.
_FEW = 8


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
            content. Marked text counts 8 characters as one token. Headers of calls have up to 16
            tokens. A limit below that breaks usual headers off, also before the name of their
            channel, and the text of such a message is visible.

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
        "_character_steps",
        "_closed",
        "_header",
        "_index",
        "_input",
        "_is_in_content",
        "_known_headers",
        "_machine",
        "_marked_text",
        "_max_header_tokens",
        "_node",
        "_origin",
        "_position",
        "_steps",
        "_strict",
        "_texts",
        "_tokens",
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
        self._find_tables()

    def _find_tables(self) -> None:
        """Find what parsers share, and what the fast paths look up."""
        vocabulary, limit = self._vocabulary, self._max_header_tokens
        self._tokens = tokens_of(vocabulary)
        self._character_steps = vocabulary.table(CharacterSteps)
        self._texts: list[str | None]
        self._steps: Steps
        self._known_headers = known_headers(vocabulary, *self._machine.given, limit)
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
        parser._settle()
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
        self._settle()
        return {
            **{name: getattr(self, name) for name in _OWN},
            "_machine": self._machine.copy(),
            "_marked_text": self._marked_text and self._marked_text.copy(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._find_tables()

    # -- What is known ----------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The place in the format that the parser has reached."""
        return self._node.state if self._node.length else self._machine.state

    @property
    def position(self) -> int:
        """The number of tokens that were fed (characters, or bytes, of marked text)."""
        return self._position

    @property
    def header(self) -> Header | None:
        """The header of the current message as far as it is known; None between messages."""
        node = self._node
        if not node.length:
            return self._machine.header_so_far()
        if node.so_far is None:
            node.so_far = self._machine.read_at_once(node.tokens()).header
        return node.so_far

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
        # Most tokens by far are whole characters of content; next come parts of characters. The
        # event is filled in by hand: 140 ns, where its constructor takes 300, of 400 for all.
        try:  # a float is no index; a negative number is one, from the end
            text = self._texts[token]
            if token < 0:  # type: ignore[operator]
                text = None
        except (IndexError, TypeError):
            return self._feed_slowly(token)
        start = self._position
        stop = start + 1
        if text is None:
            try:
                step = self._steps.get(token)  # type: ignore[call-overload]
            except TypeError:  # other kinds of integers need not have a hash
                return self._feed_slowly(token)
            if step is None:
                return self._feed_slowly(token)
            text, width, self._steps, self._texts = step
            if text is None:
                self._position = stop
                return ()
            start = stop - width
        delta: Any = _new(ContentDelta)
        delta.header = self._header
        delta.index = self._index
        delta.text = text
        delta.start = start
        delta.stop = self._position = stop
        return (delta,)

    def _feed_slowly(self, token: SupportsIndex) -> tuple[Event, ...]:
        node = self._node.get(token) if type(token) is int else None
        if node is not None:
            return self._follow(node)
        self._refuse_if_closed()
        number = _token_id(token)
        self._settle()
        self._take(int)
        data = self._bytes_of(number) if self._is_in_content else None
        if data is not None:
            return self._feed_character(number, data)
        return tuple(self._checked([], self._feed_token(number)))

    def feed_many(self, tokens: Iterable[SupportsIndex]) -> list[Event]:
        """Take tokens; return adjacent text of one message as one delta. The fast way for chunks.

        Raises as `feed` does. The tokens are checked before anything changes. In strict mode the
        tokens after a fault are not taken.

        >>> events = EventParser().feed_many([200005, 17196, 200008, 12194, 2375])
        >>> [event.to_dict()["type"] for event in events]
        ['message_start', 'content_delta']
        """
        if self._closed:
            self._refuse_if_closed()
        ids: list[Any] = tokens if type(tokens) is list else _listed(tokens)
        if len(ids) == 1:
            # Not `self.feed`, which a subclass may have made of this method.
            found = EventParser.feed(self, ids[0])
            return [*found] if len(found) < 2 else join_deltas(found)
        if self._is_in_content and len(ids) <= _FEW:
            few = self._feed_few(ids)
            if few is not None:
                return few
        ids = _checked_ids(ids)
        self._settle()
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
        self._settle()
        # Most programs feed tokens only; the import takes 1 ms of 80.
        from harmony_stream.parsing.marked_text import MarkedText

        marked_text = self._marked_text or MarkedText(self._vocabulary, text)
        items = marked_text.cut(text)
        self._take(str)
        self._marked_text = marked_text
        events: list[Event] = []
        try:
            for item, width in items:
                step = self._feed_marked_text(item, width)
                extend_joining(events, self._checked(events, step))
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
        self._settle()
        events: list[Event] = []
        if self._marked_text is not None:
            for item, width in self._marked_text.rest():
                events += self._feed_marked_text(item, width)
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
                self._refresh()  # the fast paths take tokens only
        elif self._input is not kind:
            raise ValueError("a parser takes tokens or marked text, not both: reset() it first")

    # -- Content ----------------------------------------------------------------------------------

    def _feed_few(self, tokens: list[Any]) -> list[Event] | None:
        """Take a few tokens as `feed` does; None if one is not content or not known yet.

        The state is changed at the end, so that the tokens are taken all or not at all. In steps of
        one, this takes a fifth of the time that the bulk way takes.
        """
        texts, steps, stop = self._texts, self._steps, self._position
        parts: list[str] = []
        begin = end = stop
        try:
            for token in tokens:
                text = texts[token]
                if token < 0:
                    return None
                width, stop = 1, stop + 1
                if text is None:
                    text, width, steps, texts = steps[token]
                    if text is None:
                        continue
                if not parts:
                    begin = stop - width
                parts.append(text)
                end = stop
        except (IndexError, KeyError, TypeError):
            return None
        self._texts, self._steps, self._position = texts, steps, stop
        if not parts:
            return []
        delta: Any = _new(ContentDelta)  # filled in by hand, as in `feed`
        delta.header = self._header
        delta.index = self._index
        delta.text = "".join(parts)
        delta.start = begin
        delta.stop = end
        return [delta]

    def _feed_character(self, token: int, data: bytes) -> tuple[Event, ...]:
        """Take a token of content that is not remembered yet."""
        before, start = self._steps, self._position
        self._position = stop = start + 1
        events = self._machine.delta(data, start, stop)
        self._find_steps()
        if self._vocabulary.texts[token] is None:
            text = events[0].text if events else None
            self._character_steps.remember(before, token, text, self._steps)
        return events

    def _find_steps(self) -> None:
        """Find the steps after the bytes that the machine holds."""
        shared, characters = self._character_steps, self._machine.characters
        self._steps = shared.after(characters.held, self._position - characters.mark)
        self._texts = shared.texts_after(characters.held)

    def _bytes_of(self, token: int) -> bytes | None:
        """Return the bytes of an ordinary token, None for another one."""
        table = self._vocabulary.token_bytes
        return (table[token] or self._vocabulary.lookup(token)) if token < len(table) else None

    # -- Headers, and everything else -------------------------------------------------------------

    def _feed_token(self, token: int) -> list[Event]:
        kind, data, _ = self._tokens[token]
        start = self._position
        self._position = stop = start + 1
        events = self._feed_piece(Piece(kind, token, data, start, stop))
        if kind is _MESSAGE and type(events[0]) is MessageStart and len(events) == 1:
            self._remember_header()
        return events

    def _feed_marked_text(self, item: Item, width: int) -> list[Event]:
        start = self._position
        self._position = stop = start + width
        return self._feed_piece(piece_of(self._vocabulary, item, start, stop))

    def _feed_piece(self, piece: Piece) -> list[Event]:
        events = self._machine.step(piece)
        if self._is_in_content and self._machine.state is CONTENT:
            if self._steps.held:  # a fault ends a character
                self._find_steps()
        elif events or self._node is not NOWHERE:
            self._refresh()
        return events

    def _remember_header(self) -> None:
        """Remember the header that a `<|message|>` has just ended without a fault."""
        found = self._machine.last_header()
        if found is None:
            return
        opening, tokens = found
        message = self._vocabulary.special_tokens[FormattingToken.MESSAGE]
        header = self._machine.header
        assert header is not None
        self._known_headers.remember(opening, (*tokens, message), header)

    def _follow(self, node: Node) -> tuple[Event, ...]:
        """Take a token of a header that is known up to here."""
        self._position += 1
        if node.header is None:
            self._node = node
            return ()
        return (self._start_at_once(node.header, self._position - node.length),)

    def _start_at_once(self, header: Header, start: int) -> MessageStart:
        event = self._machine.start_at_once(header, start, self._position)
        self._input = int
        self._refresh()
        return event

    def _settle(self) -> None:
        """Bring the machine to where the fast paths have come."""
        steps, node = self._steps, self._node
        if steps is not NO_STEPS:
            characters = self._machine.characters
            characters.held, characters.mark = steps.held, self._position - steps.width
        elif node.length:
            self._node = NOWHERE
            self._input = int
            self._position -= node.length
            for token in node.tokens():
                self._feed_token(token)

    def _refresh(self) -> None:
        """Open or shut the fast paths: where the machine stands now."""
        machine = self._machine
        # Copied, so that the fast paths read no attribute of an attribute.
        self._header, self._index = machine.header, machine.index
        # `is_in_content`, less the call: this runs three times a message.
        is_in_content = machine.state is CONTENT and machine.is_announced
        is_open = self._input is not str and not self._closed
        self._is_in_content = is_in_content = is_in_content and is_open
        if is_in_content:
            self._node = NOWHERE
            self._find_steps()
            return
        self._steps, self._texts = NO_STEPS, self._character_steps.no_texts
        opening = machine.next_opening() if is_open else None
        self._node = NOWHERE if opening is None else self._known_headers.root(opening)

    def _checked(self, before: list[Event], events: list[Event]) -> list[Event]:
        """Return the events of one step; in strict mode, raise the first fault among them."""
        for event in events if self._strict else ():
            if isinstance(event, Malformed):
                others = [other for other in events if other is not event]
                raise attrs.evolve(event.error, events=tuple(join_deltas(before + others)))
        return events

    # -- Many tokens ------------------------------------------------------------------------------

    def _feed_block(self, ids: list[int], events: list[Event]) -> None:
        datas = self._look_up(ids)
        done = 0
        while done < len(ids):
            if self._is_in_content:
                if datas[done] is None and self._is_new(ids[done]):
                    datas = self._look_up_all(ids)
                if datas[done] is not None:
                    stop = _index_of_none(datas, done)
                    run: Any = datas[done:stop]
                    if len(ids) > _FEW:
                        extend_joining(events, self._feed_run(run))
                    else:
                        self._feed_characters(ids[done:stop], run, events)
                    done = stop
                    continue
            elif start := self._start_as_before(ids, done):
                events.append(start)
                done += start.stop - start.start
                continue
            if done + 1 < len(ids) and ids[done] == ids[done + 1] and self._is_odd(ids[done]):
                done += self._feed_same(ids, done, events)
                continue
            step = self._feed_token(operator.index(ids[done]))
            extend_joining(events, self._checked(events, step) if self._strict else step)
            done += 1

    def _is_odd(self, given: SupportsIndex) -> bool:
        """Return whether a token that comes again may go the short way: no text, and no error."""
        return not self._strict and self._tokens[operator.index(given)].kind is not _TEXT

    def _feed_same(self, ids: list[int], first: int, events: list[Event]) -> int:
        """Take a token as often as it comes in a row; return that number.

        A model in a loop makes faults of most of them. Where one leaves the machine standing as it
        found it, the next ones do the same: a million faults take 2 s, and 6 one by one.
        """
        token, count, done = operator.index(ids[first]), _count_of_same(ids, first), 0
        while done < count:
            before = self._machine.standing() if self._position > 0 else None
            step = self._feed_token(token)
            extend_joining(events, step)
            done += 1
            if done < count - 1 and before is not None and self._machine.standing() == before:
                left = count - done - 1
                events.extend(copies(step, left))
                self._position += left
                done += left
        return count

    def _feed_run(self, datas: tuple[bytes, ...]) -> tuple[Event, ...]:
        """Take a run of content at once."""
        characters, start = self._machine.characters, self._position
        before, data = characters.held, b"".join(datas)
        self._position = stop = start + len(datas)
        events = self._machine.delta(data, start, stop)
        if events and characters.held:
            # Tokens at the end that finish no character are not part of the text before them.
            count = _unfinished_tokens(datas, before + data, len(characters.held))
            events[0].stop -= count  # type: ignore[misc]
            characters.mark -= count
        if before or characters.held:
            self._find_steps()
        return events

    def _feed_characters(
        self, ids: list[int], datas: tuple[bytes, ...], events: list[Event]
    ) -> None:
        """Take a few tokens one by one, so that they are remembered for `_feed_few`."""
        for token, data in zip(ids, datas, strict=True):
            extend_joining(events, self._feed_character(operator.index(token), data))

    def _start_as_before(self, ids: list[int], first: int) -> MessageStart | None:
        """Start a message whose whole header is in the block, provided that it has no fault."""
        root, special = self._node, self._vocabulary.special_tokens
        if not isinstance(root, Root):
            return None
        if root.state is not State.ROLE and ids[first] != special[FormattingToken.START]:
            return None
        try:
            last = ids.index(special[FormattingToken.MESSAGE], first, first + root.longest)
        except ValueError:
            return None
        tokens = tuple(map(operator.index, ids[first : last + 1]))
        header = root.whole.get(tokens) or self._read_at_once(tokens)
        if header is None:
            return None
        self._position += len(tokens)
        return self._start_at_once(header, self._position - len(tokens))

    def _read_at_once(self, tokens: tuple[int, ...]) -> Header | None:
        """Read a header that was not seen before; remember and return it if it has no fault."""
        start = self._vocabulary.special_tokens[FormattingToken.START]
        is_in_prompt = self._machine.state is State.ROLE
        if start in tokens[not is_in_prompt :]:  # of many starts, only the last is worth a look
            return None
        reading = self._machine.read_at_once(tokens[:-1])
        if reading.faults:
            return None
        opening = Opening.PROMPT if is_in_prompt else Opening.START
        self._known_headers.remember(opening, tokens, reading.header)
        return reading.header

    def _is_new(self, given: SupportsIndex) -> bool:
        """Return whether a token is an ordinary one that had not been looked up before."""
        return self._tokens[operator.index(given)].kind is _TEXT

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
_SHARED = {"_character_steps", "_known_headers", "_tokens"}
_COPIED = {"_header", "_index", "_is_in_content", "_node", "_steps", "_texts"}
_OWN = tuple({*EventParser.__slots__} - _SHARED - _COPIED)


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


def _listed(tokens: Iterable[SupportsIndex]) -> list[Any]:
    if isinstance(tokens, str | bytes):
        raise TypeError("tokens are integers: feed_text() takes marked text")
    return list(tokens)


def _checked_ids(ids: list[Any]) -> list[int]:
    """Return the tokens, checked: by `array` in C (5-8 ns each) if they fit there.

    They may still be integers of other kinds, which serve as indexes; where they are more than
    that, `operator.index` makes plain ones of them.
    """
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


def _count_of_same(ids: list[int], first: int) -> int:
    """Return how often a token comes in a row, from a place on."""
    token, stop = ids[first], first + 1
    while stop < len(ids) and ids[stop] == token:
        stop += 1
    return stop - first


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
