"""`Transcript`: a conversation in the very tokens that were prompted and sampled.

What was sampled is never encoded again: a model may spell a text in other tokens than the encoder,
and a prompt that differs from what the engine holds costs its cache, and a trainer the truth.
Theory of operation::

    tokens      all that was prompted and sampled, in order; only ever grows
    history     the same as prompts hold it: `<|end|>` for `<|return|>`, cut messages closed
    messages    one entry for each, with its place in both
    views       for each policy asked for: what is decided for good, already put together

A prompt is made of slices: the decided part of a view, what stays of the turns behind it, and the
header to be filled. So it costs what is new since the last one, and a copy. Two prompts that are
made of the same slices begin alike; only what differs is compared, to tell the common prefix.
"""

from __future__ import annotations

import operator
import os
import warnings
from enum import StrEnum
from typing import TYPE_CHECKING, SupportsIndex

from harmony_stream.errors import RenderError
from harmony_stream.history.calls import OpenCalls
from harmony_stream.history.files import (
    FORMAT,
    Saved,
    Segment,
    TranscriptWarning,
    layout_of,
    malformed_of,
    read,
)
from harmony_stream.history.normalize import Dropped
from harmony_stream.history.policy import (
    DropReason,
    HistoryPolicy,
    OnTruncated,
    Policy,
    TruncatedMessageError,
    get_policy,
)
from harmony_stream.history.training import TrainingView
from harmony_stream.history.usage import ChannelUsage, TokenUsage
from harmony_stream.history.views import Entry, Slice, View, common_prefix, tokens_of
from harmony_stream.parsing.parser import EventParser
from harmony_stream.parsing.states import State
from harmony_stream.rendering.profiles import GUIDE
from harmony_stream.rendering.render import Renderer
from harmony_stream.support.files import append, identity_of, sealed, writing
from harmony_stream.values.completion import message_of
from harmony_stream.values.events import (
    EndKind,
    Event,
    HarmonyParseError,
    Malformed,
    MessageEnd,
    MessageStart,
)
from harmony_stream.values.fold import EndedMessage, Fold
from harmony_stream.values.header import Header
from harmony_stream.values.messages import (
    Author,
    Conversation,
    Message,
    RenderConversationConfig,
    Role,
)
from harmony_stream.vocabulary import FormattingToken

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_ALL = RenderConversationConfig(auto_drop_analysis=False)


class OnMalformed(StrEnum):
    """How a sampled message that breaks the format stands in later prompts."""

    KEEP = "keep"
    """In the very tokens: prompts begin as the engine's cache does, faults included."""
    REPAIR = "repair"
    """Written anew as it was understood, in the layout of the format guide, without stray text:
    a fault that stays in sight of the model is one that it repeats. Messages without a fault keep
    their tokens; one that lacks only its end gets it. A header that cannot be written is kept."""


class Transcript:
    """A conversation as tokens: prompts grow out of it, what was sampled goes into it as it is.

    Args:
        renderer: writes messages and tool results, and has the vocabulary; in the layout of the
            format guide if none is given, which is also what the model samples.
        malformed: what becomes of sampled messages that break the format.

    The format guide, "Chat conversation format" and "Handling tool calls".

    >>> transcript = Transcript()
    >>> transcript.add_messages([Message.from_role_and_content("user", "What is 2 + 2?")])
    >>> prompt = transcript.prompt()
    >>> events = transcript.add_sampled([200005, 17196, 200008, 19, 200002])
    >>> transcript.add_messages([Message.from_role_and_content("user", "And 3 + 3?")])
    >>> transcript.prompt()[:transcript.common_prefix] == [*prompt, 200005, 17196, 200008, 19]
    True
    """

    def __init__(
        self,
        renderer: Renderer | None = None,
        *,
        malformed: OnMalformed | str = OnMalformed.KEEP,
    ) -> None:
        self._renderer = renderer or Renderer(profile=GUIDE)
        self._malformed = OnMalformed(malformed)
        self._vocabulary = self._renderer.vocabulary
        self._special = frozenset(self._vocabulary.special_tokens.values())
        self._end = self._renderer.token(FormattingToken.END)
        ends = (FormattingToken.RETURN, FormattingToken.END_OF_TEXT)
        kinds = self._vocabulary.formatting_tokens
        self._ends_of_sample = frozenset(token for token, kind in kinds.items() if kind in ends)

        self._tokens: list[int] = []
        self._mask = bytearray()  # 1 for each sampled token
        # How far the file at a path goes, if this transcript wrote it last.
        self._saved: Saved | None = None

        # The parser of the piece that is being added, and the place of its first token.
        self._parser: EventParser | None = None
        self._origin = 0
        self._is_sampling = False
        self._has_returned = False  # in this sample, so that what follows is none of the answer
        # The message that has not ended: where it begins, where its header stops if that is known.
        self._fold = Fold()
        self._pending = 0
        self._header_stop: int | None = None
        self._has_fault = False

        # By message, and the tokens of all as prompts hold them, which `offsets` cuts up.
        self._messages: list[Message] = []
        self._entries: list[Entry] = []
        self._history: list[int] = []
        self._offsets = [0]
        # By sample that ended inside a header: how many messages there were, and why it goes.
        self._unfinished: list[tuple[int, DropReason]] = []
        self._counts: dict[str | None, list[int]] = {}
        self._calls = OpenCalls()

        # What was asked for last, and what an engine has seen since.
        self._views: dict[tuple[Policy, bool], View] = {}
        self._next_role = Role.ASSISTANT
        self._asked: tuple[Policy, OnTruncated] = (
            HistoryPolicy.FINISHED_TURNS,
            OnTruncated.REFUSE,
        )
        self._seen: list[Slice] = []
        self._awaits_sample = False
        self._common_prefix = 0

    def __len__(self) -> int:
        """The number of all tokens."""
        return len(self._tokens)

    # -- Adding what is prompted ------------------------------------------------------------------

    def add_messages(self, messages: Iterable[Message]) -> None:
        """Add messages to be prompted: system, developer, user, or a conversation so far.

        What the system message says of functions depends on the developer message: add them
        together.

        Raises:
            RenderError: a message cannot be written.
            ValueError: the tokens so far end inside a message; or a tool's result is named
                otherwise than the call that waits for it (`tide`, called as `functions.tide`).
                A result of a tool that was not called passes: the call may be left out.
        """
        self.end_sample()
        if self._is_open():
            raise ValueError(
                "the prompt ends inside a message: sample what is missing of it, "
                "or give it by add_tokens()"
            )
        conversation = Conversation.from_messages(messages)
        self._check_results(conversation.messages)
        self.add_tokens(self._renderer.render_conversation(conversation, _ALL))

    def _check_results(self, messages: Iterable[Message]) -> None:
        calls = self._calls.copy()
        for index, message in enumerate(messages):
            header = _header_of(message)
            if header.role is Role.TOOL and header.name:
                try:
                    calls.check(header.name)
                except ValueError as error:
                    raise ValueError(f"message {index}: {error}") from None
            calls.add(header)

    def add_tool_result(self, name: str, text: str) -> None:
        """Add what a tool gave back, on the channel on which it was called last.

        Args:
            name: the recipient of the call: `functions.get_weather`. `get_weather` will do, as long
                as no tool of another namespace waits that ends so.
            text: the result.

        Raises:
            RenderError: as `add_messages` does.
            ValueError: no call of that tool waits for a result, or several tools with that name
                do; or the tokens so far end inside a message.

        The format guide, "Handling tool calls".

        >>> transcript = Transcript()
        >>> events = transcript.add_sampled([200005, 12606, 815, 316, 28, 44580, 1370, 617,
        ...                                  200008, 12083, 200012])
        >>> transcript.messages[0].recipient
        'functions.tide'
        >>> transcript.add_tool_result("tide", "4.2 m")
        >>> transcript.messages[1].author.name, transcript.messages[1].channel
        ('functions.tide', 'commentary')
        """
        self.end_sample()
        recipient = self._calls.recipient(name)
        message = Message.from_author_and_content(Author(role=Role.TOOL, name=recipient), text)
        channel = self._calls.channel(recipient) or "commentary"
        self.add_messages([message.with_channel(channel).with_recipient("assistant")])

    def add_tokens(self, tokens: Iterable[SupportsIndex]) -> None:
        """Add tokens that are prompted, cut anywhere; also a prompt that opens a message.

        Raises:
            TypeError, ValueError: a token is no integer, or negative.
        """
        ids = _ids(tokens)
        self.end_sample()
        self._awaits_sample, self._next_role = False, Role.ASSISTANT
        if self._parser is None:
            self._begin_piece([])
        self._take(ids, self._running.feed_many(ids))

    # -- Adding what was sampled ------------------------------------------------------------------

    def add_sampled(self, tokens: Iterable[SupportsIndex]) -> list[Event]:
        """Add all that the model sampled after the last prompt; gives what a parser reads in it.

        Places in events count from the first of these tokens, as if a parser had been given
        nothing else. The same as `feed_many` and `end_sample`, and raises as they do.
        """
        return [*self.feed_many(tokens), *self.end_sample()]

    def feed(self, token: SupportsIndex) -> tuple[Event, ...]:
        """Take one token while it is sampled; gives its events, as `EventParser.feed` does.

        The sample ends by `end_sample`, or by whatever else is added or asked for next.

        Raises:
            TypeError, ValueError: no integer, or negative; nothing has changed then.

        >>> transcript = Transcript()
        >>> [transcript.feed(token) for token in (200005, 17196)]
        [(), ()]
        >>> transcript.feed(200008)[0].channel
        'final'
        """
        ids = _ids((token,))
        self._begin_sample()
        events = self._running.feed(ids[0])
        self._take(ids, events)
        return events

    def feed_many(self, tokens: Iterable[SupportsIndex]) -> list[Event]:
        """Take tokens while they are sampled, as `EventParser.feed_many` does.

        Raises as `feed` does.
        """
        ids = _ids(tokens)
        if not ids:
            return []
        self._begin_sample()
        events = self._running.feed_many(ids)
        self._take(ids, events)
        return events

    def end_sample(self) -> tuple[Event, ...]:
        """End what is being sampled; gives the events of its end. Otherwise does nothing."""
        if not self._is_sampling:
            return ()
        is_in_header = self._running.state not in (State.EXPECT_START, State.CONTENT)
        events = self._running.close()
        self._read(events)
        if self._awaits_sample:
            self._seen.append((self._tokens, self._origin, len(self._tokens)))
        self._is_sampling, self._awaits_sample, self._parser = False, False, None
        if is_in_header and self._pending < len(self._tokens):
            self._leave_unfinished()
        return events

    # -- Asking -----------------------------------------------------------------------------------

    def prompt(
        self,
        next_role: Role | str = Role.ASSISTANT,
        policy: Policy | str = HistoryPolicy.FINISHED_TURNS,
        *,
        truncated: OnTruncated | str = OnTruncated.REFUSE,
    ) -> list[int]:
        """The tokens to sample after: what stays of the history, and an opened header.

        If nothing is dropped, they begin with those of the last prompt and those sampled after it,
        `<|end|>` standing for `<|return|>`. What was sampled after `<|return|>` is always dropped:
        nobody was shown it. A message that a prompt has opened stays open.

        Args:
            next_role: who is to write; unless the tokens so far end inside a message.
            policy: which chain of thought stays.
            truncated: what becomes of messages that the end of a sample cut off. One that is kept
                is closed.

        Raises:
            TruncatedMessageError: there is one, and `truncated` is "refuse".
            ValueError: there is no such role, policy or choice.
        """
        self.end_sample()
        role, asked = Role(next_role), (get_policy(policy), OnTruncated(truncated))
        view = self._view(*asked)
        if asked[1] is OnTruncated.REFUSE:
            self._refuse_truncated(view)
        pending = self._prompted(self._tokens[self._pending :])
        opened = pending if self._is_open() else pending + self._opening(role)
        plan = [*view.plan(self._history, self._offsets), (opened, 0, len(opened))]
        self._common_prefix = common_prefix(self._seen, plan)
        self._seen, self._awaits_sample = plan, True
        self._asked, self._next_role = asked, role
        return tokens_of(plan)

    @property
    def common_prefix(self) -> int:
        """How many tokens the last prompt shares with the one before and what was sampled after it.

        So many are in the cache of an engine that has seen these; 0 for a first prompt.
        """
        return self._common_prefix

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages that have ended, as a parser reads them, in prompts or not (`dropped`)."""
        return tuple(self._messages)

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """What does not stay of the messages so far, by the policy of the last prompt."""
        found = self._view(*self._asked).dropped()
        reports = [Dropped(index, self._messages[index], reason) for index, reason in found]
        reports += [Dropped(index, None, reason) for index, reason in self._unfinished]
        return tuple(sorted(reports, key=lambda each: each.index))

    @property
    def usage(self) -> TokenUsage:
        """How many tokens were prompted and sampled, by channel and kind; all are counted."""
        counts = {channel: list(row) for channel, row in self._counts.items()}
        start = self._fold.start
        channel = None if start is None else start.channel
        self._count(counts, channel, self._header_stop, len(self._tokens))
        return TokenUsage({channel: ChannelUsage(*row) for channel, row in counts.items()})

    def training(self) -> TrainingView:
        """All tokens, and which of them were sampled.

        This is the whole session in one piece. Where prompts left something out, the model did not
        see it when it went on: for such sessions, pair each prompt with what was sampled after it.

        >>> transcript = Transcript()
        >>> events = transcript.add_sampled([200005, 17196, 200008, 19, 200002])
        >>> transcript.training().loss_mask
        [0, 0, 1, 1, 1, 1, 1]
        """
        return TrainingView(list(self._tokens), list(self._mask))

    def _view(self, policy: Policy, truncated: OnTruncated) -> View:
        keeps_cut = truncated is OnTruncated.KEEP
        key = (policy, keeps_cut)
        if key not in self._views:
            self._views[key] = View(policy, keeps_cut=keeps_cut)
        view = self._views[key]
        view.catch_up(self._entries)
        return view

    def _refuse_truncated(self, view: View) -> None:
        if view.turns.cut:
            index = view.turns.cut[0]
            raise TruncatedMessageError(index, self._entries[index].header.channel)
        for index, reason in self._unfinished:
            if reason is DropReason.UNFINISHED_HEADER:
                raise TruncatedMessageError(index, None)

    def _opening(self, role: Role) -> list[int]:
        start = self._renderer.token(FormattingToken.START)
        return [start, *self._renderer.encode(role.value)]

    def _is_open(self) -> bool:
        """Whether the tokens so far end inside a message."""
        return self._parser is not None and self._parser.state is not State.EXPECT_START

    # -- Reading ----------------------------------------------------------------------------------

    @property
    def _running(self) -> EventParser:
        assert self._parser is not None
        return self._parser

    def _begin_piece(self, opening: list[int]) -> None:
        """Start a parser for what comes next; it knows of the message that has not ended."""
        self._extend(opening)
        before = self._tokens[self._pending :]
        self._parser = EventParser.after(before, vocabulary=self._vocabulary)
        self._origin = len(self._tokens)

    def _begin_sample(self) -> None:
        if self._is_sampling:
            return
        self._begin_piece([] if self._is_open() else self._opening(self._next_role))
        self._is_sampling, self._next_role = True, Role.ASSISTANT
        self._has_returned = False

    def _take(self, ids: list[int], events: Iterable[Event]) -> None:
        self._extend(ids)
        self._read(events)

    def _extend(self, ids: list[int]) -> None:
        self._tokens += ids
        self._mask += bytes([self._is_sampling]) * len(ids)

    def _read(self, events: Iterable[Event]) -> None:
        """Fold events into messages."""
        for event in events:
            if isinstance(event, MessageStart):
                if self._fold.start is not None:  # that of a message which a prompt opened
                    continue
                self._header_stop = self._origin + event.stop
            self._has_fault |= isinstance(event, Malformed)
            ended = self._fold.feed(event)
            if isinstance(ended, EndedMessage):
                self._add_message(ended.end, ended.text)

    def _add_message(self, end: MessageEnd, text: str) -> None:
        stop = self._origin + end.stop
        self._count(self._counts, end.channel, self._header_stop, stop)
        self._history += self._in_history(self._tokens[self._pending : stop], end, text)
        self._offsets.append(len(self._history))
        is_after_return = self._is_sampling and self._has_returned
        is_cut = end.end is EndKind.TRUNCATED
        self._entries.append(Entry(end.header, is_cut, is_after_return))
        self._messages.append(message_of(end.header, text))
        # A result that was sampled is invented: its call still waits.
        is_invented = is_after_return or (self._is_sampling and end.header.role is Role.TOOL)
        if not is_invented:
            self._calls.add(end.header)
        self._has_returned |= end.end.ends_answer
        self._begin_message(stop)
        # Where the next message has cut this one off, that may lack its beginning.
        self._has_fault = end.end is EndKind.IMPLICIT

    def _leave_unfinished(self) -> None:
        """The sample ended inside a header: there is no message that a prompt could hold."""
        self._count(self._counts, None, None, len(self._tokens))
        returned = self._has_returned
        reason = DropReason.AFTER_RETURN if returned else DropReason.UNFINISHED_HEADER
        self._unfinished.append((len(self._messages), reason))
        self._begin_message(len(self._tokens))

    def _begin_message(self, place: int) -> None:
        self._pending = place
        self._header_stop = None
        self._has_fault = False

    def _count(
        self,
        counts: dict[str | None, list[int]],
        channel: str | None,
        header_stop: int | None,
        stop: int,
    ) -> None:
        """Count the tokens from the last message's end to *stop*."""
        row = counts.setdefault(channel, [0, 0, 0])
        edge = stop if header_stop is None else header_stop
        for column, (first, last) in enumerate(((self._pending, edge), (edge, stop))):
            special = sum(map(self._special.__contains__, self._tokens[first:last]))
            row[column] += last - first - special
            row[2] += special

    # -- Writing ----------------------------------------------------------------------------------

    def _in_history(self, tokens: list[int], end: MessageEnd, text: str) -> list[int]:
        """A message as prompts hold it."""
        repairs = self._is_sampling and self._malformed is OnMalformed.REPAIR
        lacks_end = end.end is EndKind.TRUNCATED or (repairs and end.end is EndKind.IMPLICIT)
        closing = [self._end_of(end.header)] if lacks_end else []
        if repairs and self._has_fault and not self._reads_without_fault(tokens):
            try:
                return [*self._written(end.header, text), self._end_of(end.header)]
            except RenderError:
                pass
        return self._prompted(tokens) + closing

    def _prompted(self, tokens: list[int]) -> list[int]:
        """Format guide, "Chat conversation format": `<|return|>` only ever ends a sample."""
        if self._ends_of_sample.isdisjoint(tokens):
            return tokens
        return [self._end if token in self._ends_of_sample else token for token in tokens]

    def _reads_without_fault(self, tokens: list[int]) -> bool:
        prompted = max(self._origin - self._pending, 0)
        parser = EventParser.after(tokens[:prompted], strict=True, vocabulary=self._vocabulary)
        try:
            parser.feed_many(tokens[prompted:])
            parser.close()
        except HarmonyParseError:
            return False
        return True

    def _written(self, header: Header, text: str) -> list[int]:
        renderer = Renderer(self._vocabulary, GUIDE)
        return [*renderer.header_tokens(header), *renderer.encode(text)]

    def _end_of(self, header: Header) -> int:
        kind = FormattingToken.CALL if header.is_tool_call else FormattingToken.END
        return self._renderer.token(kind)

    # -- Files ------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the transcript: as JSON lines if the name ends in `.jsonl`, else as compact binary.

        A file that this transcript wrote or read last, and that nobody has changed, is only
        appended to. Otherwise all is written to a second file, which then takes its place; links
        are followed, and a device or a FIFO is written into. So a crash at any point leaves a file
        that can be loaded: at worst what was being added is missing. One process may write a file
        at a time.

        Raises:
            OSError: the file cannot be written.
            ValueError: an id too large for the binary form, which takes four bytes for a token.
        """
        name = os.fspath(path)
        layout, done = layout_of(name), self._saved
        identity = identity_of(name)
        if identity and done and (done.layout, done.identity) == (layout, identity):
            append(name, b"".join(layout.record(*record) for record in self._records(done.tokens)))
        else:
            records = [layout.record(*record) for record in self._records(0)]
            with writing(name) as file:
                file.write(layout.head(self._about()) + b"".join(records))
        self._saved = Saved(layout, len(self._tokens), sealed(name))

    @classmethod
    def load(cls, path: str | os.PathLike[str], renderer: Renderer | None = None) -> Transcript:
        """The transcript that was saved.

        What a crash left half-written at its end is left out, with a `TranscriptWarning`.

        A sample that had not ended has ended here.

        Args:
            path: the file.
            renderer: as for `Transcript`; its vocabulary must be that of the file.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is no transcript, it is damaged before its end, or of another vocabulary;
                names the file, and the line or byte.
        """
        name = os.fspath(path)
        with open(name, "rb") as file:
            identity = identity_of(file.fileno())
            data = file.read()
        layout, (about, records, size, left_out) = read(data, name)
        if left_out:
            sentence = f"{name}: the last {left_out} bytes are no whole record; they are left out"
            warnings.warn(TranscriptWarning(sentence), stacklevel=2)
        renderer = renderer or Renderer(profile=GUIDE)
        malformed = malformed_of(about, renderer.vocabulary.name, list(OnMalformed), name)
        transcript = cls(renderer, malformed=malformed)
        for prompted, sampled in records:
            if prompted:
                transcript.add_tokens(prompted)
            transcript.feed_many(sampled)
        transcript.end_sample()
        if identity and size == identity.size:  # otherwise nothing can be appended to it
            transcript._saved = Saved(layout, len(transcript), identity)
        return transcript

    def _about(self) -> dict[str, str | int]:
        return {
            "format": FORMAT,
            "version": 1,
            "vocabulary": self._vocabulary.name,
            "malformed": self._malformed.value,
        }

    def _records(self, first: int) -> Iterator[Segment]:
        """The tokens from *first* on: what was prompted, and what was sampled after it.

        Between two samples there is always a header that was prompted; so this is enough to tell
        where one ended. And that header is in one record with its sample: a crash leaves none open.
        """
        while first < len(self._tokens):
            middle = _find(self._mask, 1, first)
            stop = _find(self._mask, 0, middle)
            yield self._tokens[first:middle], self._tokens[middle:stop]
            first = stop


def _header_of(message: Message) -> Header:
    author, content_type = message.author, message.content_type
    return Header(author.role, author.name, message.channel, message.recipient, content_type)


def _find(mask: bytearray, value: int, first: int) -> int:
    place = mask.find(value, first)
    return len(mask) if place < 0 else place


def _ids(tokens: Iterable[SupportsIndex]) -> list[int]:
    ids = list(map(operator.index, tokens))
    if ids and min(ids) < 0:
        raise ValueError(f"token {min(ids)} is negative")
    return ids
