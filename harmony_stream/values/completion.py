"""The messages of a stream of tokens, and what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from harmony_stream.values.messages import Author, Message, Role, TextContent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harmony_stream.values.events import EndKind, Event, Malformed, MessageEnd
    from harmony_stream.values.header import Header

BLANK_LINE = "\n\n"
"""The separator between the texts of two messages where they become one text."""


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
    """The messages of a stream of tokens.

    Attributes:
        messages: in the order of the stream, in openai_harmony's shape.
        ends: the last event of each of them, in the same order.
        faults: the breaches of the format, in order; empty for a well-formed stream.
        events: all of them, adjacent text joined.

    These four hold all that was sampled. The properties below count only what came up to the first
    `<|return|>` (or `<|endoftext|>`), which ends sampling; what an engine samples after it is in
    `after_return`. (A `<|call|>` ends sampling too, but in the log of an agent the result follows.)
    Where several messages become one text, a blank line is between them.

    >>> from harmony_stream import parse
    >>> completion = parse([200005, 35644, 200008, 12194, 200007, 200006, 173781,
    ...                     200005, 17196, 200008, 13225, 200002])
    >>> completion.reasoning, completion.final_text, completion.end
    ('Hi', 'Hello', <EndKind.RETURN: 'return'>)
    """

    messages: tuple[Message, ...]
    ends: tuple[MessageEnd, ...]
    faults: tuple[Malformed, ...]
    events: tuple[Event, ...] = attrs.field(default=(), repr=False)

    @property
    def end(self) -> EndKind | None:
        """The end of the last message; None without messages."""
        return self.ends[-1].end if self.ends else None

    @property
    def final_text(self) -> str:
        """The answer, which is on `final` or without any channel."""
        return self._joined(lambda header: header.is_visible and header.channel != "commentary")

    @property
    def preamble(self) -> str:
        """The text that announces calls to the user. Format guide, "Preambles"."""
        return self._joined(lambda header: header.is_visible and header.channel == "commentary")

    @property
    def visible_text(self) -> str:
        """All that a person may see, preambles and answer, in order."""
        return self._joined(lambda header: header.is_visible)

    @property
    def reasoning(self) -> str:
        """The reasoning, which must not be shown. Format guide, "Reasoning"."""
        return self._joined(lambda header: header.is_reasoning)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, on whatever channel they were made."""
        return tuple(
            _tool_call(message, end) for message, end in self._answered() if end.header.is_tool_call
        )

    @property
    def after_return(self) -> tuple[Message, ...]:
        """The messages that were sampled after the end of the answer, and are not part of it."""
        return self.messages[_count_of_answer(self.ends) :]

    def _answered(self) -> Iterator[tuple[Message, MessageEnd]]:
        count = _count_of_answer(self.ends)
        return zip(self.messages[:count], self.ends[:count], strict=True)

    def _joined(self, belongs: Callable[[Header], bool]) -> str:
        texts = (_text(message) for message, end in self._answered() if belongs(end.header))
        return BLANK_LINE.join(filter(None, texts))

    def to_dict(self) -> dict[str, Any]:
        """Return messages, ends and faults as JSON-ready values."""
        return {
            "messages": [message.to_dict() for message in self.messages],
            "ends": [end.to_dict() for end in self.ends],
            "faults": [fault.to_dict() for fault in self.faults],
        }


def _count_of_answer(ends: tuple[MessageEnd, ...]) -> int:
    """Return the number of messages up to the first `<|return|>` or `<|endoftext|>`.

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


_new = object.__new__


_put = object.__setattr__


def message_of(header: Header, text: str) -> Message:
    """Return a message with this header and one part of text.

    >>> from harmony_stream.values.header import Header
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
