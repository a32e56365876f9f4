"""From events to messages: the one place where they are put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harmony_stream.values.events import ContentDelta, Malformed, MessageEnd, MessageStart

if TYPE_CHECKING:
    from harmony_stream.values.events import Event


class EndedMessage(NamedTuple):
    """A message that has ended.

    Attributes:
        start: its first event. If that was not fed, one with an empty span where the others begin.
        text: all of its content.
        end: its last event.
        faults: the faults between the two, in order.
    """

    start: MessageStart
    text: str
    end: MessageEnd
    faults: tuple[Malformed, ...]


class Fold:
    """Folds the events of a stream into messages, at a cost that does not grow with the stream.

    A start that comes inside a message drops what there is of that message.

    Attributes:
        start: the first event of the message that has not ended; None between messages.

    >>> from harmony_stream.parsing.parser import EventParser
    >>> fold = Fold()
    >>> events = EventParser().feed_many([200005, 17196, 200008, 13225, 200002])
    >>> fold.feed(events[0]), fold.feed(events[1]), fold.feed(events[2]).text
    (None, None, 'Hello')
    """

    def __init__(self) -> None:
        self.start: MessageStart | None = None
        self._texts: list[str] = []
        self._faults: list[Malformed] = []

    @property
    def text(self) -> str:
        """The content so far of the message that has not ended; "" between messages."""
        return "".join(self._texts)

    def feed(self, event: Event) -> EndedMessage | Malformed | None:
        """Take one event; return the message that it ends, or a fault outside of messages."""
        if isinstance(event, ContentDelta):
            if self.start is None:
                self._begin_at(event)
            self._texts.append(event.text)
            return None
        if isinstance(event, MessageStart):
            self.start, self._texts, self._faults = event, [], []
            return None
        if isinstance(event, MessageEnd):
            return self._end(event)
        if self.start is None:
            return event
        self._faults.append(event)
        return None

    def _begin_at(self, event: ContentDelta | MessageEnd) -> MessageStart:
        """Begin a message whose start was not fed: each of its events has its header."""
        self.start = MessageStart(event.header, event.index, event.start, event.start)
        self._texts, self._faults = [], []
        return self.start

    def _end(self, event: MessageEnd) -> EndedMessage:
        start = self.start or self._begin_at(event)
        ended = EndedMessage(start, self.text, event, tuple(self._faults))
        self.start, self._texts, self._faults = None, [], []
        return ended
