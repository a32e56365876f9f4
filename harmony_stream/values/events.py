"""The four kinds of event that a parser emits, a closed union; and the fault in one of them.

Their grammar: ``(Malformed | MessageStart (ContentDelta | Malformed)* MessageEnd)*``

Spans are half-open and count tokens (characters, or bytes, when marked text is fed). The spans of
starts, deltas, ends and of each `Malformed` with text never overlap and never go back. One kind is
an exception: words of a header that are part of no field. Their `Malformed` comes before the
`MessageStart`, and its span is inside the header's.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from harmony_stream.errors import HarmonyError
from harmony_stream.values.faults import SENTENCES, FaultKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from attrs import frozen as _event

    from harmony_stream.values.header import Header
    from harmony_stream.values.messages import Role
else:
    # Frozen for the type checker only: at run time an honest `attrs.frozen` costs 60 ns more for
    # each field, and one event is made for each token (114 ns against 272 ns for two fields).
    from functools import partial

    _event = partial(attrs.define, unsafe_hash=True)


# With slots a fault takes half the memory: a broken stream may have a million.
@attrs.frozen(auto_exc=True, slots=True, str=False)
class HarmonyParseError(HarmonyError):
    """The tokens break the format.

    A tolerant parser puts it into a `Malformed` event, a strict one raises it.

    Attributes:
        kind: the fault.
        position: the number of tokens fed before the token at fault (characters, or bytes, when
            marked text is fed).
        token: its id; None at the end of the stream and for marked text.
        token_text: its text, or the header word at fault.
        state: the name of the parser's state when it came.
        header_text: the unfinished header, special tokens spelled out; "" outside a header. Of a
            long one the first 500 characters and an ellipsis, as for `token_text`.
        expected: the alternatives without a fault, in words of the format.
        events: of a raised error: what the tolerant mode would have returned from the same call,
            up to and including the token at fault, less the `Malformed` itself.

    >>> str(HarmonyParseError(FaultKind.EXPECTED_START, 7, 12606, "comment", "EXPECT_START",
    ...                       "", ("<|start|>",)))
    "token 12606 ('comment') at position 7 where <|start|> was expected"
    """

    kind: FaultKind
    position: int
    token: int | None
    token_text: str
    state: str
    header_text: str
    expected: tuple[str, ...]
    events: tuple[Event, ...] = ()

    def __str__(self) -> str:
        return SENTENCES[self.kind].format(
            what=self._what(),
            word=repr(self.token_text),
            position=self.position,
            state=self.state,
            header=self.header_text,
            expected=_either(self.expected),
        )

    def _what(self) -> str:
        if self.token is None:
            return repr(self.token_text) if self.token_text else "the end of the stream"
        return f"token {self.token} ({self.token_text!r})"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready fields, without `events`, and with the sentence as `message`."""
        return {
            "kind": str(self.kind),
            "position": self.position,
            "token": self.token,
            "token_text": self.token_text,
            "state": self.state,
            "header_text": self.header_text,
            "expected": list(self.expected),
            "message": str(self),
        }


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


class EndKind(StrEnum):
    """The ways in which a message ends."""

    END = "end"
    """`<|end|>`"""
    RETURN = "return"
    """`<|return|>`: the model has answered."""
    CALL = "call"
    """`<|call|>`: the model waits for a tool."""
    END_OF_TEXT = "end_of_text"
    """`<|endoftext|>`"""
    IMPLICIT = "implicit"
    """The next message began."""
    TRUNCATED = "truncated"
    """The stream ended."""

    @property
    def ends_answer(self) -> bool:
        """True if the model has answered: what it samples after that is not part of the answer.

        >>> EndKind.RETURN.ends_answer, EndKind.CALL.ends_answer
        (True, False)
        """
        return self is EndKind.RETURN or self is EndKind.END_OF_TEXT


ErrorFields: TypeAlias = tuple[FaultKind, int | None, int | None, str, str, str, tuple[str, ...]]
"""The fields of a `HarmonyParseError`, in their order, up to `expected`.

The position is None if it is where the event starts: so the same fault elsewhere has the same
fields, which all such events share.
"""


class _OfMessage:
    """The common part of the events of a message: the fields of its header that are read most."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def header(self) -> Header: ...

    @property
    def role(self) -> Role:
        """The author's role."""
        return self.header.role

    @property
    def channel(self) -> str | None:
        """The channel, or None."""
        return self.header.channel

    @property
    def recipient(self) -> str | None:
        """The recipient, or None."""
        return self.header.recipient


@_event
class MessageStart(_OfMessage):
    """A message begins: its header is known.

    Attributes:
        header: author, channel, recipient and type.
        index: the ordinal of the message in the stream, from 0.
        start, stop: the header's tokens, `<|start|>` and `<|message|>` included.
    """

    header: Header
    index: int
    start: int
    stop: int

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON-ready values, tagged `message_start`."""
        return {
            "type": "message_start",
            "index": self.index,
            "header": self.header.to_dict(),
            "start": self.start,
            "stop": self.stop,
        }


@_event
class ContentDelta(_OfMessage):
    """More content of the message that has begun.

    Attributes:
        header: the message's header, the same object in all its events.
        index: the ordinal of the message.
        text: never empty, and never a part of a character.
        start, stop: the tokens that the text came from.
    """

    header: Header
    index: int
    text: str
    start: int
    stop: int

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON-ready values, tagged `content_delta`."""
        return {
            "type": "content_delta",
            "index": self.index,
            "text": self.text,
            "start": self.start,
            "stop": self.stop,
        }


@_event
class MessageEnd(_OfMessage):
    """A message ends.

    Attributes:
        header: the message's header.
        index: the ordinal of the message.
        end: the way in which it ended.
        complete: whether a real end token (`END`, `RETURN`, `CALL`) came and `<|message|>` had
            closed the header. A tool call that is not complete must not be executed.
        start, stop: the end token; an empty span if none came.
    """

    header: Header
    index: int
    end: EndKind
    complete: bool
    start: int
    stop: int

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON-ready values, tagged `message_end`."""
        return {
            "type": "message_end",
            "index": self.index,
            "end": self.end.value,
            "complete": self.complete,
            "start": self.start,
            "stop": self.stop,
        }


@_event
class Malformed:
    """The stream breaks the format here; the other events show the repair.

    Attributes:
        error: the fault. A strict parser raises it.
        text: text that belongs to no message: stray text between messages, a header that was given
            up, or the words of a header that are part of no field; else "".
        start, stop: the tokens of that text, from its first word to its last; without text, the
            token at fault.
    """

    # A broken stream may have a million of these: an exception for each, which few ask for, would
    # take twice the memory, and as long again in the garbage collector.
    _error: HarmonyParseError | ErrorFields = attrs.field(alias="error")
    text: str
    start: int
    stop: int

    __match_args__ = ("error", "text", "start", "stop")

    @property
    def error(self) -> HarmonyParseError:
        """The fault with its place; a new error each time, with equal fields."""
        found = self._error
        if isinstance(found, HarmonyParseError):
            return found
        position = self.start if found[1] is None else found[1]
        return HarmonyParseError(found[0], position, *found[2:])

    @property
    def kind(self) -> FaultKind:
        """The kind of fault, as `error.kind`."""
        found = self._error
        return found.kind if isinstance(found, HarmonyParseError) else found[0]

    def __repr__(self) -> str:
        fields = f"{self.error!r}, text={self.text!r}, start={self.start}, stop={self.stop}"
        return f"Malformed(error={fields})"

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON-ready values, tagged `malformed`."""
        return {
            "type": "malformed",
            "error": self.error.to_dict(),
            "text": self.text,
            "start": self.start,
            "stop": self.stop,
        }


Event: TypeAlias = MessageStart | ContentDelta | MessageEnd | Malformed
"""Everything that a parser emits. Closed: an exhaustive `match` needs no other case."""


def join_deltas(events: Iterable[Event]) -> list[Event]:
    """Return the events with adjacent text of one message joined, as `feed_many` does.

    >>> from harmony_stream.values.header import Header
    >>> from harmony_stream.values.messages import Role
    >>> header = Header(Role.ASSISTANT, None, "final")
    >>> deltas = [ContentDelta(header, 0, "a", 3, 4), ContentDelta(header, 0, "b", 4, 5)]
    >>> [delta.text for delta in join_deltas(deltas)]
    ['ab']
    """
    joined: list[Event] = []
    run: list[ContentDelta] = []
    for event in events:
        if run and not (isinstance(event, ContentDelta) and event.index == run[0].index):
            joined.append(_joined(run))
            run = []
        if isinstance(event, ContentDelta):
            run.append(event)
        else:
            joined.append(event)
    return [*joined, _joined(run)] if run else joined


def _joined(run: list[ContentDelta]) -> ContentDelta:
    first, last = run[0], run[-1]
    if first is last:
        return first
    text = "".join(delta.text for delta in run)
    return ContentDelta(first.header, first.index, text, first.start, last.stop)


def extend_joining(events: list[Event], more: Iterable[Event]) -> None:
    """Append events; text that continues a message makes the last delta longer."""
    for event in more:
        if isinstance(event, ContentDelta) and events:
            last = events[-1]
            if isinstance(last, ContentDelta) and last.index == event.index:
                text = last.text + event.text
                events[-1] = ContentDelta(last.header, last.index, text, last.start, event.stop)
                continue
        events.append(event)


def copies(step: Sequence[Event], count: int) -> Iterator[Event]:
    r"""Yield the events of a token again for each of `count` equal tokens that follow it.

    They are deltas and faults of that token alone, as parsers emit them.

    >>> fields = (FaultKind.UNKNOWN_TOKEN, None, 999999, "\ufffd", "CONTENT", "", ("text",))
    >>> [(fault.start, fault.error.position) for fault in copies([Malformed(fields, "", 3, 4)], 2)]
    [(4, 4), (5, 5)]
    """
    stop = step[0].stop if step else 0
    for _ in range(count):
        start, stop = stop, stop + 1  # one number for all its places: there may be a million
        for event in step:
            if isinstance(event, ContentDelta):
                yield ContentDelta(event.header, event.index, event.text, start, stop)
            else:
                assert isinstance(event, Malformed)
                yield Malformed(event._error, event.text, start, stop)
