"""From events to messages: a fold that knows nothing of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex

import attrs

from harmony_stream.messages import Author, Message, Role, TextContent
from harmony_stream.parsing.events import (
    ContentDelta,
    EndKind,
    Event,
    Malformed,
    MessageEnd,
    MessageStart,
    join_deltas,
)
from harmony_stream.parsing.parser import EventParser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harmony_stream.header import Header
    from harmony_stream.vocabulary import Vocabulary


BLANK_LINE = "\n\n"
"""What goes between the texts of two messages where they become one text."""


@attrs.frozen
class ToolCall:
    """A call that the assistant makes.

    Attributes:
        name: the recipient as it stood in the header: `functions.get_weather`, `browser.search`.
        arguments: the content as it was sampled, "" if there is none; whether it is JSON is for the
            caller to see. (Client streams send `{}` for a complete call without arguments.)
        complete: whether the call came to its end. If not, it must not be executed.
        index: the ordinal of its message in the stream.
        data_type: `json` or `code`, or None if the header does not say.
        channel: where the call was made; it says nothing about the call.
    """

    name: str
    arguments: str
    complete: bool
    index: int
    data_type: str | None
    channel: str | None


@attrs.frozen
class Completion:
    """What a stream of tokens said.

    Attributes:
        messages: in the order of the stream, in openai_harmony's shape.
        ends: how each of them ended, in the same order.
        problems: what broke the format, in order; empty for a well-formed stream.
        events: all of them, adjacent text joined.

    These four hold all that was sampled. The properties below count only what came up to the first
    `<|return|>` (or `<|endoftext|>`), which ends sampling; what an engine samples after it is in
    `after_return`. (A
    `<|call|>` ends sampling too, but a log of an agent's loop goes on after it with the result.)
    Where several messages become one text, a blank line is between them.

    >>> completion = parse([200005, 35644, 200008, 12194, 200007, 200006, 173781,
    ...                     200005, 17196, 200008, 13225, 200002])
    >>> completion.reasoning, completion.final_text, completion.end
    ('Hi', 'Hello', <EndKind.RETURN: 'return'>)
    """

    messages: tuple[Message, ...]
    ends: tuple[MessageEnd, ...]
    problems: tuple[Malformed, ...]
    events: tuple[Event, ...] = attrs.field(default=(), repr=False)

    @property
    def end(self) -> EndKind | None:
        """How the last message ended; None if there is none."""
        return self.ends[-1].end if self.ends else None

    @property
    def final_text(self) -> str:
        """The answer: what stands on `final`, or without any channel."""
        return self._joined(lambda header: header.is_visible and header.channel != "commentary")

    @property
    def preamble(self) -> str:
        """What the user is told about the calls to come. Format guide, "Preambles"."""
        return self._joined(lambda header: header.is_visible and header.channel == "commentary")

    @property
    def visible_text(self) -> str:
        """All that a person may see, preambles and answer, in order."""
        return self._joined(lambda header: header.is_visible)

    @property
    def reasoning(self) -> str:
        """The chain of thought, which must not be shown. Format guide, "Reasoning"."""
        return self._joined(lambda header: header.is_reasoning)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls, on whatever channel they were made."""
        return tuple(
            _tool_call(message, end) for message, end in self._answered() if end.header.is_tool_call
        )

    @property
    def after_return(self) -> tuple[Message, ...]:
        """The messages that were sampled after the end of the answer: they are no part of it."""
        return self.messages[_count_of_answer(self.ends) :]

    def _answered(self) -> Iterator[tuple[Message, MessageEnd]]:
        count = _count_of_answer(self.ends)
        return zip(self.messages[:count], self.ends[:count], strict=True)

    def _joined(self, belongs: Callable[[Header], bool]) -> str:
        texts = (_text(message) for message, end in self._answered() if belongs(end.header))
        return BLANK_LINE.join(filter(None, texts))

    def to_dict(self) -> dict[str, Any]:
        """Messages, ends and problems as JSON-ready values."""
        return {
            "messages": [message.to_dict() for message in self.messages],
            "ends": [end.to_dict() for end in self.ends],
            "problems": [problem.to_dict() for problem in self.problems],
        }


def _count_of_answer(ends: tuple[MessageEnd, ...]) -> int:
    """How many messages came up to the first `<|return|>` or `<|endoftext|>`.

    A prompt's message may end in any way: only what the assistant has sampled ends sampling.
    """
    has_spoken = False
    for count, end in enumerate(ends, 1):
        has_spoken |= end.role is Role.ASSISTANT
        if has_spoken and end.end.ends_answer:
            return count
    return len(ends)


def _text(message: Message) -> str:
    return "".join(part.text for part in message.content if isinstance(part, TextContent))


def _tool_call(message: Message, end: MessageEnd) -> ToolCall:
    header = end.header
    assert header.recipient is not None
    arguments = _text(message)
    return ToolCall(
        header.recipient, arguments, end.complete, end.index, header.data_type, header.channel
    )


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
        self.problems: list[Malformed] = []
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
            self.problems.append(event)
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
        return Completion(tuple(self.messages), tuple(self.ends), tuple(self.problems), events)


_new = object.__new__
_put = object.__setattr__


def message_of(header: Header, text: str) -> Message:
    """A message with this header and one part of text.

    >>> from harmony_stream.header import Header
    >>> message_of(Header(Role.TOOL, "functions.f", None, "assistant"), "42").author.name
    'functions.f'
    """
    # What a header holds need not be checked again: filled in by hand it costs 1 us, built from
    # checked values 12, and a parser makes one for each message.
    author, part, message = _new(Author), _new(TextContent), _new(Message)
    _put(author, "role", header.role)
    _put(author, "name", header.name)
    _put(part, "text", text)
    _put(message, "author", author)
    _put(message, "content", [part])
    _put(message, "channel", header.channel)
    _put(message, "recipient", header.recipient)
    _put(message, "content_type", header.content_type)
    return message


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
