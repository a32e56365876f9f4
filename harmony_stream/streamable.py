"""`StreamableParser`: the parser as openai_harmony has it, whose properties are polled.

A view of `EventParser`, which does the work: after each token the properties say where the stream
stands. New code reads the events themselves, which say what happened.
"""

from __future__ import annotations

import operator
from enum import Enum
from typing import TYPE_CHECKING, Any

import attrs

from harmony_stream.encoding import familiar_error, parser_for
from harmony_stream.errors import FaultKind, HarmonyParseError
from harmony_stream.messages import Role
from harmony_stream.parsing.collect import message_of
from harmony_stream.parsing.events import (
    ContentDelta,
    Event,
    Malformed,
    MessageEnd,
    MessageStart,
)
from harmony_stream.parsing.judgement import quote
from harmony_stream.parsing.states import State, expected_in
from harmony_stream.vocabulary import FormattingToken

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import SupportsIndex

    from harmony_stream.encoding import HarmonyEncoding
    from harmony_stream.header import Header
    from harmony_stream.messages import Message

__all__ = ["StreamState", "StreamableParser"]


class StreamState(Enum):
    """Where in the format a `StreamableParser` stands.

    >>> StreamState("Content")
    <StreamState.CONTENT: 'Content'>
    """

    EXPECT_START = "ExpectStart"
    HEADER = "Header"
    CONTENT = "Content"


_STREAM_STATES = {
    State.EXPECT_START: StreamState.EXPECT_START,
    State.ROLE: StreamState.HEADER,
    State.CHANNEL: StreamState.HEADER,
    State.CONSTRAIN: StreamState.HEADER,
    State.CONTENT: StreamState.CONTENT,
}


class StreamableParser:
    """Takes a completion token by token; its properties tell where the stream stands.

    Args:
        encoding: which tokens.
        role: whose header the prompt opened; None if the tokens begin at `<|start|>`.
        strict: raise for the faults that openai_harmony raises for, and repair the others. After
            an error the parser stands where the repair leaves it, and goes on. If not strict,
            nothing is raised.

    No property costs more than the text or the list that it gives, whatever came before;
    `messages` and `tokens` are the same lists each time, and grow.

    >>> from harmony_stream.encoding import load_harmony_encoding
    >>> parser = StreamableParser(load_harmony_encoding("HarmonyGptOss"), "assistant")
    >>> [parser.process(token).last_content_delta for token in [200005, 17196, 200008, 13225, 2375]]
    [None, None, None, 'Hello', ' world']
    >>> parser.current_channel, parser.current_content, parser.state
    ('final', 'Hello world', <StreamState.CONTENT: 'Content'>)
    """

    def __init__(
        self, encoding: HarmonyEncoding, role: Role | str | None, *, strict: bool = True
    ) -> None:
        self._encoding = encoding
        self._strict = strict
        self._parser = parser_for(encoding, role, strict=strict)
        self._state = self._parser.state
        self._tokens: list[int] = []
        self._messages: list[Message] = []
        # The role that the prompt gave, until a first header is read.
        self._given = None if role is None else Role(role)
        # Of the message that has begun and not ended: its header, its text as far as
        # `current_content` joined it, what came since, and for `state_data` all of it as it came.
        self._header: Header | None = None
        self._content = ""
        self._pending: list[str] = []
        self._deltas: list[str] = []
        self._delta: str | None = None
        # The first token of the header that has begun and not ended.
        self._header_start = 0
        # Whether the one error of an implied header was raised when it began.
        self._was_raised = False
        # Tokens fed before the last end of the stream.
        self._offset = 0

    # -- Feeding ----------------------------------------------------------------------------------

    def process(self, token: SupportsIndex) -> StreamableParser:
        """Take one token; returns the parser itself.

        Raises:
            HarmonyError: a fault, in strict mode.
            TypeError, ValueError: not an integer, or a negative one; nothing has changed then.
        """
        events = self._parser.feed(token)
        self._tokens.append(operator.index(token))
        # Most tokens by far are whole characters of content.
        if len(events) == 1 and isinstance(delta := events[0], ContentDelta):
            self._pending.append(delta.text)
            self._deltas.append(delta.text)
            self._delta = delta.text
        else:
            self._take(self._tokens[-1], events)
        return self

    def process_eos(self) -> StreamableParser:
        """End the stream; returns the parser itself, which now expects another message.

        Raises:
            HarmonyError: the stream ended inside a header, in strict mode.
        """
        events = self._parser.close()
        error = self._error_in(events)
        # A new parser that has ended its first message, so that the next begins at `<|start|>`.
        self._parser.reset()
        self._parser.feed(self._special(FormattingToken.END))
        self._offset = len(self._tokens) - 1
        self._follow(events)
        if self._strict and error:
            raise error
        return self

    def _take(self, token: int, events: tuple[Event, ...]) -> None:
        before = self._state
        self._follow(events)
        is_in_header = self.state is StreamState.HEADER
        is_start = token == self._special(FormattingToken.START)
        if is_in_header and (is_start or _STREAM_STATES[before] is not StreamState.HEADER):
            self._header_start = len(self._tokens) - (not is_start)
        if not self._strict:
            return
        error = self._error_in(events)
        if is_in_header and before is State.EXPECT_START and not is_start:
            # As there, at once; the events report it when the implied header ends.
            error = self._error_in([self._expected_start(token)])
            self._was_raised = True
        if error:
            raise error

    def _special(self, token: FormattingToken) -> int:
        return self._encoding.vocabulary.special_tokens[token]

    # -- Events -----------------------------------------------------------------------------------

    def _follow(self, events: tuple[Event, ...]) -> None:
        self._state = self._parser.state
        self._delta = None
        for event in events:
            match event:
                case MessageStart():
                    self._header, self._given = event.header, None
                case ContentDelta():
                    self._pending.append(event.text)
                    self._deltas.append(event.text)
                    self._delta = (self._delta or "") + event.text
                case MessageEnd():
                    self._messages.append(message_of(event.header, self.current_content))
                    self._forget_message()

    def _forget_message(self) -> None:
        self._header = self._delta = None
        self._content = ""
        self._pending.clear()
        self._deltas.clear()

    # -- Faults -----------------------------------------------------------------------------------

    def _expected_start(self, token: int) -> Malformed:
        """The fault of an implied header."""
        position = self._parser.position - 1
        error = HarmonyParseError(
            kind=FaultKind.EXPECTED_START,
            position=position,
            token=token,
            token_text=quote(self._encoding.vocabulary, (token,)),
            state=State.EXPECT_START.value,
            header_text="",
            expected=expected_in(State.EXPECT_START),
        )
        return Malformed(error, "", position, position + 1)

    def _error_in(self, events: Sequence[Event]) -> HarmonyParseError | None:
        if self._was_raised and any(map(_is_expected_start, events)):
            events = [event for event in events if not _is_expected_start(event)]
            self._was_raised = False
        error = familiar_error(self._encoding, events)
        return error and attrs.evolve(error, position=error.position + self._offset)

    # -- What is known ----------------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        """The messages that have ended: always the same list, which grows."""
        return self._messages

    @property
    def tokens(self) -> list[int]:
        """All tokens taken: always the same list, which grows."""
        return self._tokens

    @property
    def state(self) -> StreamState:
        """Whether the parser is between messages, in a header, or in content."""
        return _STREAM_STATES[self._state]

    @property
    def current_content(self) -> str:
        """The text so far of the message that has begun; "" outside content."""
        if self._pending:
            # The local name is the only one that holds the text, so that CPython makes it longer
            # in place: reading after each token does not cost what the text costs.
            text, self._content = self._content, ""
            text += "".join(self._pending)
            self._content = text
            self._pending.clear()
        return self._content

    @property
    def last_content_delta(self) -> str | None:
        """The text that the last token added to the current message, or None."""
        return self._delta

    @property
    def current_role(self) -> Role | None:
        """Who writes the current message; in the first header, the role that the prompt gave."""
        return self._header.role if self._header else self._given

    @property
    def current_channel(self) -> str | None:
        """The channel of the current message; None outside content."""
        return self._header.channel if self._header else None

    @property
    def current_recipient(self) -> str | None:
        """Whom the current message is for; None outside content."""
        return self._header.recipient if self._header else None

    @property
    def current_content_type(self) -> str | None:
        """The type of the current message; None outside content."""
        return self._header.content_type if self._header else None

    @property
    def state_data(self) -> dict[str, Any]:
        """The state with what belongs to it, JSON-ready, in openai_harmony's shape.

        For debugging: it costs what the current header or message costs.

        >>> from harmony_stream.encoding import load_harmony_encoding
        >>> StreamableParser(load_harmony_encoding("HarmonyGptOss"), None).state_data
        {'state': 'ExpectStart'}
        """
        data: dict[str, Any] = {"state": self.state.value}
        if self.state is StreamState.HEADER:
            data["header_tokens"] = self._tokens[self._header_start :]
        if self._header:
            fields = self._header.to_dict()
            author = {"role": fields.pop("role"), "name": fields.pop("name")}
            if author["name"] is None:
                del author["name"]
            data["header"] = {"author": author, **fields}
            # As there, the canonical tokens of the text rather than those that came.
            encode = self._encoding.vocabulary.tiktoken_encoding.encode_ordinary
            data["content_tokens"] = [token for text in self._deltas for token in encode(text)]
        return data


def _is_expected_start(event: Event) -> bool:
    return isinstance(event, Malformed) and event.error.kind is FaultKind.EXPECTED_START
