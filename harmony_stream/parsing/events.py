"""What comes out of the parser: four kinds of event, a closed union.

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

from harmony_stream.errors import FaultKind, HarmonyParseError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attrs import frozen as _event

    from harmony_stream.header import Header
    from harmony_stream.messages import Role
else:
    # Frozen for the type checker only: at run time an honest `attrs.frozen` costs 60 ns more for
    # each field, and one event is made for each token (114 ns against 272 ns for two fields).
    from functools import partial

    _event = partial(attrs.define, unsafe_hash=True)


class EndKind(StrEnum):
    """What ended a message."""

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
        """Whether the model has answered, so that what is sampled behind it is no part of that.

        >>> EndKind.RETURN.ends_answer, EndKind.CALL.ends_answer
        (True, False)
        """
        return self is EndKind.RETURN or self is EndKind.END_OF_TEXT


ErrorFields: TypeAlias = tuple[FaultKind, int, int | None, str, str, str, tuple[str, ...]]
"""The fields of a `HarmonyParseError`, in their order, up to `expected`."""


class _OfMessage:
    """What the events of a message have in common: what is asked for most of their header."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def header(self) -> Header: ...

    @property
    def role(self) -> Role:
        """Who writes the message."""
        return self.header.role

    @property
    def channel(self) -> str | None:
        """The message's channel."""
        return self.header.channel

    @property
    def recipient(self) -> str | None:
        """Whom the message is for."""
        return self.header.recipient


@_event
class MessageStart(_OfMessage):
    """A message begins: its header is known.

    Attributes:
        header: who writes, where, to whom.
        index: the ordinal of the message in the stream, from 0.
        start, stop: the header's tokens, `<|start|>` and `<|message|>` included.
    """

    header: Header
    index: int
    start: int
    stop: int

    def to_dict(self) -> dict[str, Any]:
        """The event as JSON-ready values, tagged `message_start`."""
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
        """The event as JSON-ready values, tagged `content_delta`."""
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
        end: what ended it.
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
        """The event as JSON-ready values, tagged `message_end`."""
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
    """The stream breaks the format here; what was done about it is seen in the other events.

    Attributes:
        error: what is wrong. A strict parser raises it.
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
        """What is wrong; a new error each time, of equal fields."""
        found = self._error
        return found if isinstance(found, HarmonyParseError) else HarmonyParseError(*found)

    @property
    def kind(self) -> FaultKind:
        """Which fault: `error.kind`."""
        found = self._error
        return found.kind if isinstance(found, HarmonyParseError) else found[0]

    def __repr__(self) -> str:
        fields = f"{self.error!r}, text={self.text!r}, start={self.start}, stop={self.stop}"
        return f"Malformed(error={fields})"

    def to_dict(self) -> dict[str, Any]:
        """The event as JSON-ready values, tagged `malformed`."""
        return {
            "type": "malformed",
            "error": self.error.to_dict(),
            "text": self.text,
            "start": self.start,
            "stop": self.stop,
        }


Event: TypeAlias = MessageStart | ContentDelta | MessageEnd | Malformed
"""All that a parser emits. Closed: an exhaustive `match` needs no other case."""


def join_deltas(events: Iterable[Event]) -> list[Event]:
    """The events with adjacent text of one message joined, as `feed_many` gives them.

    >>> from harmony_stream.header import Header
    >>> from harmony_stream.messages import Role
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
    """Append events; text that goes on in the same message makes the last delta longer."""
    for event in more:
        if isinstance(event, ContentDelta) and events:
            last = events[-1]
            if isinstance(last, ContentDelta) and last.index == event.index:
                text = last.text + event.text
                events[-1] = ContentDelta(last.header, last.index, text, last.start, event.stop)
                continue
        events.append(event)
