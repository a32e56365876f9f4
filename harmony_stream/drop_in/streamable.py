"""`StreamableParser`: the parser as openai_harmony has it, whose properties are polled.

A view of `EventParser`, which does the work: after each token the properties say where the stream
stands. New code reads the events themselves, which say what happened.
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
from harmony_stream.parsing.items import quote
from harmony_stream.parsing.states import State, expected_in
from harmony_stream.values.completion import message_of
from harmony_stream.values.events import (
    ContentDelta,
    Event,
    FaultKind,
    HarmonyParseError,
    Malformed,
    MessageEnd,
    MessageStart,
)
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
    """Where in the format a `StreamableParser` stands.

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
    """A list that was handed out, which knows whether it was changed."""

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
    """Hands out a growing list as lists that do not grow, without a copy if nobody keeps them.

    As long as nobody else has the list that was handed out last, nor has changed it, that list is
    brought up to date and handed out again.
    """

    def __init__(self, growing: list[_Item]) -> None:
        self._growing = growing
        self._shown = _Shown[_Item]()

    def __reduce__(self) -> tuple[type[Snapshots[_Item]], tuple[list[_Item]]]:
        return Snapshots, (self._growing,)

    def latest(self) -> list[_Item]:
        """All items so far."""
        if self._shown.is_changed or self.count() > _ALONE:
            self._shown = _Shown(self._growing)
        elif len(self._shown) < len(self._growing):
            list.extend(self._shown, self._growing[len(self._shown) :])
        return self._shown

    def count(self) -> int:
        """The references to the list that was handed out last."""
        return getrefcount(self._shown)


# What this Python counts of a list that nobody else has.
_ALONE = Snapshots[int]([]).count()


class StreamableParser:
    """Takes a completion token by token; its properties tell where the stream stands.

    Args:
        encoding: which tokens.
        role: whose header the prompt opened; None if the tokens begin at `<|start|>`.
        strict: raise for the faults that openai_harmony raises for, and repair the others. After
            an error the parser stands where the repair leaves it, and goes on. If not strict,
            nothing is raised.

    No property costs more than the text that it gives, whatever came before. `messages` and
    `tokens` are lists of the caller's: they do not grow, and to change them changes nothing here.
    They are copied only if the one given before is kept.

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
        # Where openai_harmony's parser stands; the fault of a header that it still collects.
        self._theirs = TheirState(encoding.vocabulary, role)
        self._waiting: FamiliarParseError | None = None
        # The last that was raised.
        self._raised: FamiliarParseError | None = None
        # Whether the message that is shown has ended.
        self._is_ending = False
        # Messages that have ended, to be shown with the next end of one.
        self._late: list[Message] = []
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
            HarmonyError: in strict mode, the stream ended inside a header, or in text that no
                property has shown. That text is in `messages` now.
        """
        shown = len(self._messages)
        is_unseen = self._is_ending and self._header is not None and self._header.channel is None
        self._end_message()
        events = self._parser.close()
        has_text = any(map(_is_start, events))
        error = self._waiting or self._error_in(events)
        if self._theirs.is_content and not has_text:
            error = None
        # A new parser that has ended its first message, so that the next begins at `<|start|>`.
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
            # The text is shown now, and the end of its message with the next token: programs that
            # see a message end look at no text.
            self._raised = self._error_in(events)
        else:
            self._end_message()
        self._theirs.take(token, raised=error is not None)
        if error:
            self._waiting, self._raised = None, error
            raise error

    def _is_kept_back(self) -> bool:
        """Whether openai_harmony collects a header: it shows nothing until `<|message|>`."""
        return self._strict and self._theirs.is_header and self._state is not State.CONTENT

    def _fault_at(
        self, token: int, events: Sequence[Event], before: State
    ) -> FamiliarParseError | None:
        """The error to raise now, if there is one."""
        if self._waiting or self._theirs.is_content:
            return self._waiting
        is_new_header = before is State.EXPECT_START and self._state in _HEADER_STATES
        if is_new_header and not self._opens(token):
            # As there, at once; the events report it when the implied header ends.
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
        """Make messages of events, to be shown later: of a whole message, or of text in none."""
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

    def _error_in(self, events: Sequence[Event]) -> FamiliarParseError | None:
        if self._was_raised and any(map(_is_expected_start, events)):
            events = [event for event in events if not _is_expected_start(event)]
            self._was_raised = False
        error = next(familiar_errors(self._encoding.vocabulary, events), None)
        return error and attrs.evolve(error, position=error.position + self._offset)

    # -- What is known ----------------------------------------------------------------------------

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
        """Whether the parser is between messages, in a header, or in content."""
        if self._is_kept_back():
            return StreamState.HEADER
        return StreamState.CONTENT if self._is_ending else _STREAM_STATES[self._state]

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
            # As there, the canonical tokens of the text rather than those that came.
            encode = self._encoding.vocabulary.tiktoken_encoding.encode_ordinary
            data["content_tokens"] = [token for text in self._deltas for token in encode(text)]
        return data


def _is_start(event: Event) -> bool:
    return isinstance(event, MessageStart)


def _is_expected_start(event: Event) -> bool:
    return isinstance(event, Malformed) and event.kind is FaultKind.EXPECTED_START
