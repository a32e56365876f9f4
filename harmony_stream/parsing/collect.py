"""From events to messages: a fold that knows nothing of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex

from harmony_stream.parsing.parser import EventParser
from harmony_stream.values.completion import Completion, message_of
from harmony_stream.values.events import (
    ContentDelta,
    Event,
    Malformed,
    MessageEnd,
    MessageStart,
    join_deltas,
)
from harmony_stream.values.messages import Message, Role

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harmony_stream.vocabulary import Vocabulary


class MessageCollector:
    """Folds events into messages, at a cost that does not grow with what came before.

    >>> parser, collector = EventParser(), MessageCollector()
    >>> for token in [200005, 17196, 200008, 13225, 200002]:
    ...     for event in parser.feed(token):
    ...         message = collector.feed(event)
    >>> message.channel, message.content[0].text
    ('final', 'Hello')
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        """The messages that have ended."""
        self.ends: list[MessageEnd] = []
        """How they ended."""
        self.faults: list[Malformed] = []
        """What broke the format."""
        self._texts: list[str] = []
        self._events: list[Event] = []
        # Of the message that has not ended, whose text is joined when it does.
        self._latest: list[Event] = []

    def feed(self, event: Event) -> Message | None:
        """Take one event; give the message that it ends, if it ends one."""
        self._latest.append(event)
        if isinstance(event, MessageEnd):
            return self._end(event)
        if isinstance(event, ContentDelta):
            self._texts.append(event.text)
        elif isinstance(event, MessageStart):
            self._texts = []
        else:
            self.faults.append(event)
        return None

    def _end(self, event: MessageEnd) -> Message:
        message = message_of(event.header, "".join(self._texts))
        self.messages.append(message)
        self.ends.append(event)
        # Where `feed_many` has joined the text there is nothing left to join.
        is_joined = len(self._texts) < 2
        self._events += self._latest if is_joined else join_deltas(self._latest)
        self._latest = []
        return message

    def completion(self) -> Completion:
        """What the stream said so far, in messages that have ended."""
        events = (*self._events, *join_deltas(self._latest))
        return Completion(tuple(self.messages), tuple(self.ends), tuple(self.faults), events)


def parse(
    tokens: Iterable[SupportsIndex],
    role: Role | str | None = Role.ASSISTANT,
    *,
    strict: bool = False,
    vocabulary: Vocabulary | None = None,
) -> Completion:
    """Parse a whole completion; see `EventParser` for the arguments.

    Raises:
        HarmonyParseError: a fault, in strict mode.
        TypeError, ValueError: a token is no integer, or negative.

    >>> parse([200005, 17196, 200008, 13225]).end
    <EndKind.TRUNCATED: 'truncated'>
    """
    parser = EventParser(role, strict=strict, vocabulary=vocabulary)
    collector = MessageCollector()
    for event in parser.feed_many(tokens):
        collector.feed(event)
    for event in parser.close():
        collector.feed(event)
    return collector.completion()
