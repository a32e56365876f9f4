"""The part that all client streams share: one turn of the assistant, event by event.

An adapter defines the chunks: those that open and end the stream, those of a message, and those
that report a failure or a problem. This module decides when they are sent. It routes messages,
keeps them in order, closes truncated ones, and counts the tokens of reasoning.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any, ClassVar, TypeAlias

import attrs

from harmony_stream.adapters.arguments import (
    ARGUMENTS_NOT_JSON,
    NO_ARGUMENTS,
    lack_arguments,
    lack_json,
)
from harmony_stream.adapters.names import addressed
from harmony_stream.adapters.options import (
    Ending,
    Reason,
    Usage,
    check_ending,
    check_message,
    check_names,
    no_ending,
    random_id,
)
from harmony_stream.adapters.problems import Problem, sentence_of
from harmony_stream.adapters.routing import (
    CALLS,
    STRAY,
    Route,
    RouteKind,
    Unlabelled,
    is_unlabelled,
    route,
    stray_route,
)
from harmony_stream.support.closing import closing
from harmony_stream.values.completion import Completion
from harmony_stream.values.events import (
    ContentDelta,
    EndKind,
    Event,
    Malformed,
    MessageEnd,
    MessageStart,
)
from harmony_stream.values.faults import FaultKind
from harmony_stream.values.header import Header
from harmony_stream.values.messages import Role
from harmony_stream.values.tools import FUNCTIONS

Chunk: TypeAlias = dict[str, Any]
"""One piece of a client stream, ready for `json.dumps`."""


LogProbability: TypeAlias = Mapping[str, Any]
"""Entry of one token, as in the Chat Completions API.

Its keys are `token`, `logprob`, `bytes` and `top_logprobs`.
"""


# Text outside of messages is treated as text of the assistant without a channel.
_BARE = Header(Role.ASSISTANT)


def events_of(source: Completion | Iterable[Event]) -> Iterable[Event]:
    """Return the events of a finished turn."""
    return source.events if isinstance(source, Completion) else source


def finite(entry: LogProbability) -> Chunk:
    """Return the entry with finite numbers only.

    JSON has no minus infinity, so -9999 is written, as OpenAI does.

    >>> finite({"token": "a", "logprob": float("-inf")})
    {'token': 'a', 'logprob': -9999.0}
    """
    found = dict(entry)
    if not math.isfinite(found["logprob"]):
        found["logprob"] = -9999.0
    if found.get("top_logprobs"):
        found["top_logprobs"] = [finite(other) for other in found["top_logprobs"]]
    return found


def _entries(logprobs: Sequence[LogProbability], event: ContentDelta) -> list[Chunk]:
    if len(logprobs) < event.stop:
        raise ValueError(
            f"logprobs has {len(logprobs)} entries, and a text ends with token {event.stop}: "
            "give one entry for each token that was fed to the parser so far"
        )
    return [finite(entry) for entry in logprobs[event.start : event.stop]]


def _named(event: ContentDelta | MessageEnd) -> str:
    # Without its text, which may be reasoning: errors go to logs.
    return f"{type(event).__name__} {event.start}:{event.stop} ({event.channel} channel)"


class ClientStream(ABC):
    """Interface of all client streams: `feed` and `finish`, or `iterate` over a whole turn.

    Attributes:
        protocol: the name of its protocol, as in the framing for it; "" to go with any.
    """

    protocol: ClassVar[str] = ""

    @abstractmethod
    def feed(
        self, event: Event, *, logprobs: Sequence[LogProbability] | None = None
    ) -> list[Chunk]:
        """Take one event of the parser and return the chunks that follow from it."""

    @abstractmethod
    def finish(self, reason: Reason | None = None, usage: Usage | None = None) -> list[Chunk]:
        """End the stream and return its last chunks."""

    @abstractmethod
    def fail(self, message: str) -> list[Chunk]:
        """End the stream with an error for the client. After `finish` it returns `[]`."""

    # -- For writers. A stream with choices replaces these. --

    def _turn(self, choice: int) -> CompletionStream | None:
        """Return the turn of a choice, or None if there is not one yet."""
        return None

    def _feed_choice(
        self, choice: int, event: Event, logprobs: Sequence[LogProbability] | None
    ) -> list[Chunk]:
        _check_only_choice(choice)
        return self.feed(event, logprobs=logprobs)

    def _finish_choice(
        self, choice: int, reason: Reason | None, usage: Usage | None
    ) -> list[Chunk]:
        _check_only_choice(choice)
        return self.finish(reason, usage)

    def iterate(
        self,
        events: Iterable[Event],
        ending: Callable[[], Ending] = no_ending,
        *,
        logprobs: Sequence[LogProbability] | None = None,
    ) -> Iterator[Chunk]:
        """Yield all chunks of one turn.

        Args:
            events: the events of the turn.
            ending: called after the last event; it returns the finish reason and the usage.
            logprobs: as for `feed`; the caller keeps appending to it.
        """
        for event in events:
            yield from self.feed(event, logprobs=logprobs)
        yield from self.finish(*ending())

    async def aiterate(
        self,
        events: AsyncIterable[Event],
        ending: Callable[[], Ending] = no_ending,
        *,
        logprobs: Sequence[LogProbability] | None = None,
    ) -> AsyncIterator[Chunk]:
        """Yield all chunks of one turn whose events arrive asynchronously.

        The events are closed with the generator.
        """
        async with closing(events):
            async for event in events:
                for chunk in self.feed(event, logprobs=logprobs):
                    yield chunk
        for chunk in self.finish(*ending()):
            yield chunk


def _check_only_choice(choice: int) -> None:
    if choice:
        raise ValueError(
            f"choice is {choice}, but this protocol has only choice 0; make a stream for each"
        )


@attrs.define
class MessageState:
    """State of the open message, or of the last one.

    Attributes:
        header: its header, with a mended recipient.
        source: the header in its events.
        route: its route.
        stop: the end of its tokens so far.
        texts: its texts so far, or None if they are not needed when it ends.
        has_logprobs: true if the chunks of its text may contain log probabilities.
        separator: text that is sent with its first text; None after that.
        is_reasoning: true if its tokens are reasoning.
        reasoning_tokens: the number of such tokens so far.
        is_open: true until it is closed. It stays open when the tokens end inside it, since only
            `finish` knows if it was truncated.
    """

    header: Header
    source: Header
    route: Route
    stop: int = 0
    texts: list[str] | None = None
    has_logprobs: bool = False
    separator: str | None = ""
    reasoning_tokens: int = 0
    is_open: bool = True
    is_reasoning: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        # Read for each token, and each access to an enum's member costs 20 ns.
        self.is_reasoning = self.route.kind is RouteKind.REASONING

    def check(self, event: ContentDelta | MessageEnd) -> None:
        """Check that an event belongs to this message.

        Otherwise reasoning of one parser would be shown as the answer of another.

        Raises:
            ValueError: if it does not.
        """
        if event.header is not self.source and event.header != self.source:
            raise ValueError(
                f"{_named(event)} belongs to another message than the one that is open: "
                "make a stream for each parser, or pass the number of its choice"
            )

    @property
    def text(self) -> str:
        """The texts that are kept, joined."""
        return "".join(self.texts or ())


@attrs.define
class _Reply:
    """State of the turn's reply, which ends with the first `<|return|>` that was sampled.

    Attributes:
        has_begun: true if the assistant has begun a message. A message of the prompt may end with
            any token.
        is_over: true if later events are not part of it.
        rest: the span of everything after it, if there is anything.
    """

    has_begun: bool = False
    is_over: bool = False
    rest: tuple[int, int] | None = None

    def pass_over(self, event: Event) -> None:
        """Note an event that came after the reply."""
        start = event.start if self.rest is None else self.rest[0]
        self.rest = start, event.stop


@attrs.define
class _Stray:
    """Text outside of messages.

    Attributes:
        fault: the event that reports it.
        text: the part of it that is not sent yet.
        logprobs: as for `feed`.
        header: the header that contains it, if one does.
    """

    fault: Malformed
    text: str
    logprobs: Sequence[LogProbability] | None
    header: Header | None = None


class CompletionStream(ClientStream):
    """One turn of the assistant as a client stream: the base of the adapters.

    `feed` events, then `finish` or `fail`. Each returns the chunks that follow, which may be `[]`.
    If the server itself runs tools within a turn, two parsers may feed it, one after the other.
    """

    # Attribute access is slower on objects with more than 30 attributes, which costs 200 ns a
    # token. State that is not needed for each token is therefore in objects of its own.

    def __init__(
        self,
        *,
        hide_reasoning: bool = False,
        tools: Collection[str] = (),
        unlabelled: Unlabelled = Unlabelled(),  # noqa: B008  # immutable
        ids: Callable[[str], str] = random_id,
        clock: Callable[[], float] = time.time,
        on_problem: Callable[[Problem], None] | None = None,
        show_problems: bool = False,
    ) -> None:
        check_names(tools)
        if not isinstance(unlabelled, Unlabelled):
            raise TypeError(f"unlabelled is {unlabelled!r}; give an Unlabelled(...)")
        self._hides_reasoning = hide_reasoning
        self._tools = frozenset(tools)
        self._unlabelled = unlabelled
        self._new_id = ids
        self._clock = clock
        self._on_problem = on_problem
        self._show_problems = show_problems
        self._choice = 0
        self._is_begun = self._is_finished = False
        # True if each chunk contains `sequence_number`. Not of the class: reads cost 40 ns there.
        self._is_numbered = False
        self._sequence_number = 0
        self._message = MessageState(_BARE, _BARE, Route(RouteKind.HIDDEN), is_open=False)
        # Text outside of messages is held until the next message, whose header may contain it.
        self._held: list[_Stray] = []
        self._is_cut_in_header = False
        self._reasoning_tokens = 0
        self._complete_calls = 0
        self._reply = _Reply()

    def _turn(self, choice: int) -> CompletionStream | None:
        # A subclass may change what `feed` returns.
        is_ours = type(self).feed is CompletionStream.feed
        return self if is_ours and not choice else None

    # -- The ways in --

    def feed(
        self, event: Event, *, logprobs: Sequence[LogProbability] | None = None
    ) -> list[Chunk]:
        """Take one event of the parser and return the chunks that follow from it.

        Args:
            event: an event from any method that feeds the parser.
            logprobs: one entry for each token fed to the parser so far, if there are any. The
                event's span selects those of its text.

        Raises:
            TypeError: if this is not an event.
            ValueError: if called after `finish` or `fail`; if the event belongs to another message
                than the one that is open; or if there are too few log probabilities.
        """
        if self._message.is_open and isinstance(event, ContentDelta):
            return self._delta(event, logprobs)
        chunks = self._opening()
        if self._reply.is_over:
            self._reply.pass_over(event)
            return chunks
        if isinstance(event, MessageStart):
            return chunks + self._message_start(event)
        if isinstance(event, Malformed):
            return chunks + self._fault(event, logprobs)
        if self._message.is_open and isinstance(event, MessageEnd):
            return chunks + self._message_end(event)
        if not isinstance(event, ContentDelta | MessageEnd):
            raise TypeError(
                f"a {type(event).__name__} is not an event: "
                "call feed for each of the events that the parser returns"
            )
        raise ValueError(f"{_named(event)} comes without the start of its message")

    def finish(self, reason: Reason | None = None, usage: Usage | None = None) -> list[Chunk]:
        """End the stream and return its last chunks. A second call returns `[]`.

        Args:
            reason: the reason why the engine stopped. `stop`: by itself. `length`: at its limit.
                `tool_calls`: by itself, and a call that the tokens leave open is complete.
                None: `length` if the tokens end inside a message or a header, else `stop`.
                Tokens after `<|return|>` do not count: the answer is complete without them.
            usage: the token counts, if the client should receive them.

        Raises:
            ValueError: if the reason is another one.
        """
        check_ending(reason, usage)
        if self._is_finished:
            return []
        chunks = self._opening()
        if reason is None:
            is_cut = self._message.is_open or self._is_cut_in_header
            reason = "length" if is_cut else "stop"
        chunks += self._wind_up(reason)
        if reason != "length" or self._reply.rest is not None:
            reason = "tool_calls" if self._complete_calls else "stop"
        self._is_finished = True
        return chunks + self._closing(reason, usage)

    def fail(self, message: str) -> list[Chunk]:
        """End the stream with an error for the client. After `finish` it returns `[]`.

        Raises:
            TypeError: if the message is not a string.
        """
        check_message(message)
        if self._is_finished:
            return []
        chunks = self._opening()
        chunks += self._wind_up("length")
        self._is_finished = True
        return chunks + self._failure(message)

    def _wind_up(self, reason: Reason) -> list[Chunk]:
        """Return all chunks that are still expected before the end."""
        return self._close_open_message(reason) + self._send_held() + self._report_rest()

    def _report_rest(self) -> list[Chunk]:
        """Report the tokens after the end of the answer, when nothing more can follow."""
        rest = self._reply.rest
        return [] if rest is None else self._report("after_return", *rest)

    # -- Events --

    def _opening(self) -> list[Chunk]:
        if self._is_finished:
            raise ValueError("the stream is finished: make a new one for the next turn")
        if self._is_begun:
            return []
        self._is_begun = True
        return self._begin()

    def _message_start(self, event: MessageStart) -> list[Chunk]:
        # An earlier parser left the message open, and the server continued without its end.
        chunks = self._close_open_message("stop")
        self._is_cut_in_header = False
        stray = self._stray_in(event)
        header, is_mended = self._addressed(event.header, stray)
        if stray:
            stray.header = header
        chunks += self._send_held()
        found = route(header, self._tools, self._unlabelled)
        self._enter(header, event.header, found, event.stop)
        self._reply.has_begun |= header.role is Role.ASSISTANT
        return chunks + self._reports_on(found, event, is_mended) + self._start(found)

    def _stray_in(self, event: MessageStart) -> _Stray | None:
        """Return the held text that is in the header of this message, or None."""
        last = self._held[-1] if self._held else None
        return last if last and event.start <= last.fault.start < event.stop else None

    def _addressed(self, header: Header, stray: _Stray | None) -> tuple[Header, bool]:
        """Return the header with a mended recipient, and whether a space had broken it."""
        left, written = (stray.text, stray.fault.error.header_text) if stray else ("", "")
        found = addressed(header, left, written, self._tools)
        if found is None:
            return header, False
        if stray:
            stray.text = found.left
        return found.header, True

    def _send_held(self) -> list[Chunk]:
        """Send text outside of messages, each as a message of its own."""
        held, self._held = self._held, []
        return [chunk for stray in held for chunk in self._send_stray(stray)]

    def _send_stray(self, stray: _Stray) -> list[Chunk]:
        header, fault = stray.header, stray.fault
        is_of_others = header is not None and header.role is not Role.ASSISTANT
        if is_of_others or not stray.text:
            return []
        found = stray_route(fault, header, self._unlabelled)
        self._enter(_BARE, _BARE, found, fault.stop)
        chunks = self._start(found)
        delta = ContentDelta(_BARE, 0, stray.text, fault.start, fault.stop)
        chunks += self._delta(delta, stray.logprobs)
        return chunks + self._close_message(True)

    def _enter(self, header: Header, source: Header, found: Route, stop: int) -> None:
        texts: list[str] | None = [] if self._keeps(found) else None
        has_logprobs = self._has_logprobs(found)
        self._message = MessageState(header, source, found, stop, texts, has_logprobs)

    def _reports_on(self, found: Route, event: MessageStart, is_mended: bool) -> list[Chunk]:
        """Report the problems with the destination of a message."""
        header, span = self._message.header, (event.start, event.stop)
        chunks = []
        if is_unlabelled(header):
            kind = "without_channel" if header.channel is None else "unknown_channel"
            place = "content" if found.kind is RouteKind.TEXT else "reasoning"
            chunks += self._report(kind, *span, place=place)
        if header.is_tool_call and found.kind not in CALLS:
            chunks += self._report("nameless_call", *span)
        is_named = header.recipient in (found.name, f"{FUNCTIONS}.{found.name}")
        if found.kind is RouteKind.FUNCTION and (is_mended or not is_named):
            chunks += self._report("resolved_name", *span, name=found.name)
        if found.kind in CALLS and not self._shows(found):
            chunks += self._report("hidden_call", *span)
        return chunks

    def _delta(self, event: ContentDelta, logprobs: Sequence[LogProbability] | None) -> list[Chunk]:
        # A writer does this too, for each token, without the chunk: change both.
        message, text, entries = self._message, event.text, None
        message.check(event)
        if logprobs is not None and message.has_logprobs:
            entries = _entries(logprobs, event)
        message.stop = event.stop
        if message.is_reasoning:
            message.reasoning_tokens += event.stop - event.start
        if message.texts is not None:
            message.texts.append(text)
        if message.separator is not None:
            text, message.separator = message.separator + text, None
        if entries is not None:
            self._keep_logprobs(entries)
        chunk = self._delta_chunk(text, entries)
        if chunk is None:
            return []
        if self._is_numbered:
            self._sequence_number += 1
        return [chunk]

    def _message_end(self, event: MessageEnd) -> list[Chunk]:
        message = self._message
        message.check(event)
        message.stop = event.stop
        if event.end is EndKind.TRUNCATED:
            return []
        self._reply.is_over = event.end.ends_answer and self._reply.has_begun
        return self._close_message(event.complete or message.route.kind not in CALLS)

    def _fault(self, event: Malformed, logprobs: Sequence[LogProbability] | None) -> list[Chunk]:
        kind = event.kind
        if kind is FaultKind.TRUNCATED_IN_HEADER and not self._message.is_open:
            self._is_cut_in_header = True
        chunks = self._tell(
            Problem(kind.value, str(event.error), event.start, event.stop, event.text, self._choice)
        )
        if kind not in STRAY or not event.text:
            return chunks
        self._held.append(_Stray(event, event.text, logprobs))
        return chunks + self._close_open_message("stop")

    def _close_open_message(self, reason: Reason) -> list[Chunk]:
        message = self._message
        if not message.is_open:
            return []
        is_call = message.route.kind in CALLS
        return self._close_message(reason == "tool_calls" if is_call else reason != "length")

    def _close_message(self, is_complete: bool) -> list[Chunk]:
        message = self._message
        message.is_open = False
        self._reasoning_tokens += message.reasoning_tokens
        route = message.route
        if route.kind not in CALLS:
            return self._end(route, is_complete)
        if not is_complete:
            end = self._end(route, is_complete)
            return end + self._report("incomplete_call", message.stop, message.stop)
        self._complete_calls += self._is_for_client(route)
        return self._close_complete_call(message)

    def _close_complete_call(self, message: MessageState) -> list[Chunk]:
        arguments, end = message.text, message.stop
        chunks = []
        if lack_arguments(message.route, message.header, arguments):
            # JSON is expected, and client libraries fail on an empty text.
            empty = ContentDelta(message.source, 0, NO_ARGUMENTS, end, end)
            chunks += self._delta(empty, None)
        chunks += self._end(message.route, True)
        if lack_json(message.header, arguments, self._tools):
            chunks += self._report(ARGUMENTS_NOT_JSON, end, end)
        return chunks

    def _reasoning_tokens_of(self, usage: Usage) -> int:
        given = usage.reasoning_tokens
        return self._reasoning_tokens if given is None else given

    # -- Problems --

    def _report(self, kind: str, start: int, stop: int, **words: str) -> list[Chunk]:
        sentence = sentence_of(kind, self._message.header, start, stop, **words)
        return self._tell(Problem(kind, sentence, start, stop, choice=self._choice))

    def _tell(self, problem: Problem) -> list[Chunk]:
        if self._on_problem is not None:
            self._on_problem(problem)
        if not self._show_problems:
            return []
        return self._problem(problem.without_words() if self._hides_reasoning else problem)

    # -- What an adapter adds --

    def _shows(self, route: Route) -> bool:
        """Return whether the protocol can express such a call."""
        return True

    def _is_for_client(self, route: Route) -> bool:
        """Return whether the client has to execute the call."""
        return route.kind is RouteKind.FUNCTION

    def _keeps(self, route: Route) -> bool:
        """Return whether the text of such a message is needed when it ends."""
        return route.kind in CALLS

    def _has_logprobs(self, route: Route) -> bool:
        """Return whether the chunks of such a message's text may contain log probabilities."""
        return False

    def _keep_logprobs(self, entries: list[Chunk]) -> None:
        """Keep the log probabilities of a text if they are needed when the message ends."""

    @abstractmethod
    def _begin(self) -> list[Chunk]:
        """Return the chunks that open the stream."""

    @abstractmethod
    def _start(self, route: Route) -> list[Chunk]:
        """Return the chunks that open a message."""

    @abstractmethod
    def _delta_chunk(self, text: str, logprobs: list[Chunk] | None = None) -> Chunk | None:
        """Return the chunk of more text of the open message, or None if it is hidden.

        It changes nothing. Between two events that are not text, chunks without log probabilities
        differ only in the text and the sequence number, so a writer serialises one for all.
        """

    @abstractmethod
    def _end(self, route: Route, is_complete: bool) -> list[Chunk]:
        """Return the chunks that close the message."""

    @abstractmethod
    def _problem(self, problem: Problem) -> list[Chunk]:
        """Return the chunks that report a problem to a client that asked for problems."""

    @abstractmethod
    def _closing(self, reason: Reason, usage: Usage | None) -> list[Chunk]:
        """Return the chunks that end the stream."""

    @abstractmethod
    def _failure(self, message: str) -> list[Chunk]:
        """Return the chunks that end the stream with an error."""
