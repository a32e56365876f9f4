"""`StreamableParser`: openai_harmony's parser, whose properties are polled.

It is a view of `EventParser`, which does the work. After each token the properties hold the state
of the stream. New code should read the events themselves, which report the changes.
"""

from __future__ import annotations

import operator
from enum import Enum
from sys import getrefcount
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs

from harmony_stream.drop_in.encoding import parser_for
from harmony_stream.drop_in.familiar import (
    TheirState,
    at_end_of_stream,
    familiar_errors,
    message_of_text,
)
from harmony_stream.parsing.items import quote_item
from harmony_stream.parsing.states import State, expected_in
from harmony_stream.values.completion import message_of
from harmony_stream.values.events import (
    ContentDelta,
    Event,
    HarmonyParseError,
    Malformed,
    MessageEnd,
    MessageStart,
)
from harmony_stream.values.faults import FaultKind
from harmony_stream.values.messages import Role
from harmony_stream.vocabulary import FormattingToken

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import SupportsIndex

    from harmony_stream.drop_in.encoding import HarmonyEncoding
    from harmony_stream.drop_in.familiar import FamiliarParseError
    from harmony_stream.values.header import Header
    from harmony_stream.values.messages import Message

__all__ = ["StreamState", "StreamableParser"]

_Item = TypeVar("_Item")


class StreamState(Enum):
    """The state of a `StreamableParser`.

    >>> StreamState("Content")
    <StreamState.CONTENT: 'Content'>
    """

    EXPECT_START = "ExpectStart"
    HEADER = "Header"
    CONTENT = "Content"


_HEADER_STATES = (State.ROLE, State.CHANNEL, State.CONSTRAIN)
_STREAM_STATES = {
    State.EXPECT_START: StreamState.EXPECT_START,
    State.ROLE: StreamState.HEADER,
    State.CHANNEL: StreamState.HEADER,
    State.CONSTRAIN: StreamState.HEADER,
    State.CONTENT: StreamState.CONTENT,
}


class _Shown(list[_Item]):
    """A list that was returned, and that records if it was changed."""

    is_changed = False

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[_Item]]]:
        return list, (self[:],)


def _noting(name: str) -> Callable[..., Any]:
    change = getattr(list, name)

    def changing(self: _Shown[Any], *args: Any, **options: Any) -> Any:  # noqa: ANN401
        self.is_changed = True
        return change(self, *args, **options)

    return changing


for _name in (
    "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort",
    "__delitem__", "__iadd__", "__imul__", "__setitem__",
):  # fmt: skip
    setattr(_Shown, _name, _noting(_name))


class Snapshots(Generic[_Item]):
    """Snapshots of a growing list, which are not copied if the caller does not keep them.

    If nobody else holds the last returned list, and nobody has changed it, that list is updated and
    returned again.
    """

    def __init__(self, growing: list[_Item]) -> None:
        self._growing = growing
        self._shown = _Shown[_Item]()

    def __reduce__(self) -> tuple[type[Snapshots[_Item]], tuple[list[_Item]]]:
        return Snapshots, (self._growing,)

    def latest(self) -> list[_Item]:
        """Return all items so far."""
        if self._shown.is_changed or self.count() > _ALONE:
            self._shown = _Shown(self._growing)
        elif len(self._shown) < len(self._growing):
            list.extend(self._shown, self._growing[len(self._shown) :])
        return self._shown

    def count(self) -> int:
        """Return the number of references to the last returned list."""
        return getrefcount(self._shown)


# The number of references that this Python counts for a list that nobody else holds.
_ALONE = Snapshots[int]([]).count()


class StreamableParser:
    """Takes a completion token by token; its properties hold the state of the stream.

    Args:
        encoding: the encoding, whose vocabulary is used.
        role: the role that ends the prompt; None if the tokens begin at `<|start|>`.
        strict: true to raise for the faults that openai_harmony raises for, and repair the others.
            After an error the parser is in the state after the repair, and continues. If false,
            nothing is raised.

    The cost of a property depends only on the text that it returns. `messages` and `tokens` are
    lists of the caller: they do not grow, and changing them does not affect the parser. They are
    copied only if the caller keeps the previous one.

    >>> from harmony_stream.drop_in.encoding import load_harmony_encoding
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
        self._token_lists = Snapshots(self._tokens)
        self._message_lists = Snapshots(self._messages)
        self._role = None if role is None else Role(role)
        # The role that the prompt gave, until a first header is read.
        self._given = self._role
        # The open message: its header, the text that `current_content` has joined, the text since
        # then, and for `state_data` all of its tokens.
        self._header: Header | None = None
        self._content = ""
        self._pending: list[str] = []
        self._deltas: list[str] = []
        self._delta: str | None = None
        # The first token of the open header.
        self._header_start = 0
        # True if the only error of an implied header was raised when it began.
        self._was_raised = False
        # The state of openai_harmony's parser, and the fault of a header that it still collects.
        self._theirs = TheirState(encoding.vocabulary, role)
        self._waiting: FamiliarParseError | None = None
        # The last error that was raised.
        self._raised: FamiliarParseError | None = None
        # True if the message that is shown has ended.
        self._is_ending = False
        # Messages that have ended, to be shown with the next end of a message.
        self._late: list[Message] = []
        # Tokens fed before the last end of the stream.
        self._offset = 0

    # -- Feeding ----------------------------------------------------------------------------------

    def process(self, token: SupportsIndex) -> StreamableParser:
        """Take one token and return the parser itself.

        Raises:
            HarmonyError: if there is a fault, in strict mode.
            TypeError, ValueError: if the token is not an integer, or negative. The state is then
                unchanged.
        """
        events = self._parser.feed(token)
        self._tokens.append(operator.index(token))
        # A fast path, since most tokens are whole characters of content.
        if len(events) == 1 and isinstance(delta := events[0], ContentDelta):
            self._pending.append(delta.text)
            self._deltas.append(delta.text)
            self._delta = delta.text
        else:
            self._take(self._tokens[-1], events)
        return self

    def process_eos(self) -> StreamableParser:
        """End the stream and return the parser itself, which now expects another message.

        Raises:
            HarmonyError: in strict mode, if the stream ended inside a header, or in text that no
                property has shown. That text is then in `messages`.
        """
        shown = len(self._messages)
        is_unseen = self._is_ending and self._header is not None and self._header.channel is None
        self._end_message()
        events = self._parser.close()
        has_text = any(map(_is_start, events))
        error = self._waiting or self._error_in(events)
        if self._theirs.is_content and not has_text:
            error = None
        # A new parser after its first message, so that the next one begins at `<|start|>`.
        self._parser.reset()
        self._parser.feed(self._special(FormattingToken.END))
        self._offset = len(self._tokens) - 1
        self._follow(events)
        self._end_message()
        self._show_late()
        if is_unseen or has_text or len(self._messages) - shown > 1:
            error = error or self._raised
        self._waiting = self._raised = None
        self._given = None if self._messages else self._given
        is_unclosed = self._theirs.is_header
        self._theirs.end()
        if self._strict and error:
            raise at_end_of_stream(error) if is_unclosed else error
        return self

    def _take(self, token: int, events: tuple[Event, ...]) -> None:
        self._end_message()
        before, self._state = self._state, self._parser.state
        if self._is_kept_back():
            self._delta = None
            self._waiting = self._waiting or self._error_in(events)
            self._keep(events)
            self._theirs.take(token)
            return
        is_start = self._opens(token)
        if self._state in _HEADER_STATES and (is_start or before not in _HEADER_STATES):
            self._header_start = len(self._tokens) - (not is_start)
        error = self._fault_at(token, events, before) if self._strict else None
        self._follow(events)
        if self._strict and self._theirs.is_content and self._delta and any(map(_is_start, events)):
            # The text is shown now, and the end of its message with the next token, since programs
            # ignore the text when a message ends.
            self._raised = self._error_in(events)
        else:
            self._end_message()
        self._theirs.take(token, raised=error is not None)
        if error:
            self._waiting, self._raised = None, error
            raise error

    def _is_kept_back(self) -> bool:
        """Return whether openai_harmony collects a header, and so shows nothing yet."""
        return self._strict and self._theirs.is_header and self._state is not State.CONTENT

    def _fault_at(
        self, token: int, events: Sequence[Event], before: State
    ) -> FamiliarParseError | None:
        """Return the error to raise now, if there is one."""
        if self._waiting or self._theirs.is_content:
            return self._waiting
        is_new_header = before is State.EXPECT_START and self._state in _HEADER_STATES
        if is_new_header and not self._opens(token):
            # At once, as in openai_harmony; the events report it when the implied header ends.
            error = self._error_in([self._expected_start(token)])
            self._was_raised = True
            return error
        return self._error_in(events)

    def _opens(self, token: int) -> bool:
        return token == self._special(FormattingToken.START)

    def _special(self, token: FormattingToken) -> int:
        return self._encoding.vocabulary.special_tokens[token]

    # -- Events -----------------------------------------------------------------------------------

    def _follow(self, events: Sequence[Event]) -> None:
        self._state, self._delta = self._parser.state, None
        for event in events:
            match event:
                case MessageStart():
                    self._end_message()
                    self._header, self._given = event.header, None
                case ContentDelta():
                    self._pending.append(event.text)
                    self._deltas.append(event.text)
                    self._delta = (self._delta or "") + event.text
                case MessageEnd():
                    self._is_ending = True
                case _:
                    self._keep([event])

    def _end_message(self) -> None:
        if not self._is_ending:
            return
        assert self._header is not None
        self._is_ending = False
        self._show_late()
        self._messages.append(message_of(self._header, self.current_content))
        self._header = self._delta = None
        self._content = ""
        self._pending.clear()
        self._deltas.clear()

    def _keep(self, events: Sequence[Event]) -> None:
        """Keep the messages in these events, to be shown later.

        They are whole messages, or text outside of messages.
        """
        text = ""
        for event in events:
            if isinstance(event, ContentDelta):
                text += event.text
            elif isinstance(event, MessageEnd):
                self._late.append(message_of(event.header, text))
                text = ""
            elif message := message_of_text(event, self._role):
                self._late.append(message)

    def _show_late(self) -> None:
        self._messages += self._late
        self._late.clear()

    # -- Faults -----------------------------------------------------------------------------------

    def _expected_start(self, token: int) -> Malformed:
        """Return the fault of an implied header."""
        position = self._parser.position - 1
        error = HarmonyParseError(
            kind=FaultKind.EXPECTED_START,
            position=position,
            token=token,
            token_text=quote_item(self._encoding.vocabulary, token),
            state=State.EXPECT_START.value,
            header_text="",
            expected=expected_in(State.EXPECT_START),
        )
        return Malformed(error, "", position, position + 1)

    def _error_in(self, events: Sequence[Event]) -> FamiliarParseError | None:
        if self._was_raised and any(map(_is_expected_start, events)):
            events = [event for event in events if not _is_expected_start(event)]
            self._was_raised = False
        error = next(familiar_errors(self._encoding.vocabulary, events), None)
        return error and attrs.evolve(error, position=error.position + self._offset)

    # -- Properties -------------------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        """The messages that have ended, in a list that does not grow."""
        return self._message_lists.latest()

    @property
    def tokens(self) -> list[int]:
        """All tokens taken, in a list that does not grow."""
        return self._token_lists.latest()

    @property
    def state(self) -> StreamState:
        """The state of the parser, which is between messages, in a header, or in content."""
        if self._is_kept_back():
            return StreamState.HEADER
        return StreamState.CONTENT if self._is_ending else _STREAM_STATES[self._state]

    @property
    def current_content(self) -> str:
        """The text so far of the current message; "" outside content."""
        if self._pending:
            # The local name holds the only reference to the text, so that CPython extends it in
            # place. Reading after each token then does not copy the text.
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
        """The author's role; in the first header, the role that the prompt gave."""
        return self._header.role if self._header else self._given

    @property
    def current_channel(self) -> str | None:
        """The channel of the current message; None outside content."""
        return self._header.channel if self._header else None

    @property
    def current_recipient(self) -> str | None:
        """The recipient of the current message; None outside content."""
        return self._header.recipient if self._header else None

    @property
    def current_content_type(self) -> str | None:
        """The type of the current message; None outside content."""
        return self._header.content_type if self._header else None

    @property
    def state_data(self) -> dict[str, Any]:
        """The state and its data, JSON-ready, in openai_harmony's shape.

        For debugging only, since the cost grows with the current header or message.

        >>> from harmony_stream.drop_in.encoding import load_harmony_encoding
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
            # As in openai_harmony, the text's canonical tokens instead of the tokens that came.
            encode = self._encoding.vocabulary.tiktoken_encoding.encode_ordinary
            data["content_tokens"] = [token for text in self._deltas for token in encode(text)]
        return data


def _is_start(event: Event) -> bool:
    return isinstance(event, MessageStart)


def _is_expected_start(event: Event) -> bool:
    return isinstance(event, Malformed) and event.kind is FaultKind.EXPECTED_START
