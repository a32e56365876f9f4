"""`Transcript`: a conversation in the exact tokens that were prompted and sampled.

Sampled tokens are never encoded again, since a model may spell a text in other tokens than the
encoder. A prompt with other tokens misses the engine's cache, and gives a trainer wrong data.
Theory of operation::

    tokens      all prompted and sampled tokens, in order; only ever grows
    history     these tokens as in prompts: `<|end|>` for `<|return|>`, truncated messages closed
    messages    one entry for each, with its position in both
    views       for each policy in use: the part that is decided permanently, already joined

A prompt is made of slices: the decided part of a view, the kept part of the turns after it, and
the opened header. So it costs the new tokens since the last one, and a copy. Two prompts of the
same slices begin alike; only other slices are compared to find the common prefix.
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
    """The form in later prompts of a sampled message that breaks the format."""

    KEEP = "keep"
    """The exact tokens with their faults, so that prompts begin like the engine's cache."""
    REPAIR = "repair"
    """The message written again as it was read, in the format guide's layout, without stray text.

    A model repeats the faults that it sees. Messages without a fault keep their tokens. An end
    token is appended to a message that lacks only its end. A header that cannot be written is kept.
    """


class Transcript:
    """A conversation as tokens, which makes prompts and takes sampled tokens unchanged.

    Args:
        renderer: the renderer of messages and tool results, which also has the vocabulary. The
            default writes the layout of the format guide, which is also that of the model.
        malformed: the choice for sampled messages that break the format.

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
        """Return the number of all tokens."""
        return len(self._tokens)

    # -- Adding what is prompted ------------------------------------------------------------------

    def add_messages(self, messages: Iterable[Message]) -> None:
        """Add messages of a prompt: system, developer, user, or a conversation so far.

        Add the system and the developer message together, since the system message depends on the
        functions of the developer message.

        Raises:
            RenderError: if a message cannot be written.
            ValueError: if the tokens so far end inside a message. Or if a tool result has another
                name than the call that waits for it (`tide`, called as `functions.tide`).
                A result of a tool that was not called passes, since the call may be left out.
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
        """Add a tool result, on the channel on which the tool was called last.

        Args:
            name: the recipient of the call: `functions.get_weather`. `get_weather` is enough if no
                waiting tool of another namespace has that name.
            text: the result.

        Raises:
            RenderError: as in `add_messages`.
            ValueError: if no call of that tool waits for a result, or several tools of that name
                do. Or if the tokens so far end inside a message.

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
        """Add tokens of a prompt, which may be cut anywhere and may open a message.

        Raises:
            TypeError, ValueError: if a token is not an integer, or negative.
        """
        ids = _ids(tokens)
        self.end_sample()
        self._awaits_sample, self._next_role = False, Role.ASSISTANT
        if self._parser is None:
            self._begin_piece([])
        self._take(ids, self._running.feed_many(ids))

    # -- Adding what was sampled ------------------------------------------------------------------

    def add_sampled(self, tokens: Iterable[SupportsIndex]) -> list[Event]:
        """Add all tokens sampled after the last prompt, and return the events of a parser.

        Positions in events count from the first of these tokens, as for a parser that is fed only
        these. It is a short form of `feed_many` and `end_sample`, and raises as they do.
        """
        return [*self.feed_many(tokens), *self.end_sample()]

    def feed(self, token: SupportsIndex) -> tuple[Event, ...]:
        """Take one token as it is sampled, and return its events, like `EventParser.feed`.

        `end_sample` ends the sample, and so does any later call that adds a prompt or returns one.

        Raises:
            TypeError, ValueError: if the token is not an integer, or negative. The state is then
                unchanged.

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
        """Take tokens as they are sampled, and return their events, like `EventParser.feed_many`.

        It raises as `feed` does.
        """
        ids = _ids(tokens)
        if not ids:
            return []
        self._begin_sample()
        events = self._running.feed_many(ids)
        self._take(ids, events)
        return events

    def end_sample(self) -> tuple[Event, ...]:
        """End the current sample, if there is one, and return the events of its end."""
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
        """Return the tokens of a prompt: the kept part of the history, and an opened header.

        If nothing is dropped, they begin with the last prompt and the tokens sampled after it, with
        `<|end|>` in place of `<|return|>`. Messages sampled after `<|return|>` are always dropped,
        since they were never shown. A message that a prompt has opened stays open.

        Args:
            next_role: the role that ends the prompt, unless the tokens so far end inside a message.
            policy: the policy, which decides which reasoning is kept.
            truncated: the choice for messages that the end of a sample cut off. One that is kept is
                closed.

        Raises:
            TruncatedMessageError: if a message is truncated, and `truncated` is "refuse".
            ValueError: if there is no such role, policy or choice.
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
        """The number of tokens that the last prompt shares with the prompt and sample before it.

        An engine that has seen these has that many tokens in its cache; 0 for a first prompt.
        """
        return self._common_prefix

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages that have ended, as a parser reads them, with those that are `dropped`."""
        return tuple(self._messages)

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """The messages so far that are dropped by the policy of the last prompt."""
        found = self._view(*self._asked).dropped()
        reports = [Dropped(index, self._messages[index], reason) for index, reason in found]
        reports += [Dropped(index, None, reason) for index, reason in self._unfinished]
        return tuple(sorted(reports, key=lambda each: each.index))

    @property
    def usage(self) -> TokenUsage:
        """The numbers of all prompted and sampled tokens, by channel and kind."""
        counts = {channel: list(row) for channel, row in self._counts.items()}
        start = self._fold.start
        channel = None if start is None else start.channel
        self._count(counts, channel, self._header_stop, len(self._tokens))
        return TokenUsage({channel: ChannelUsage(*row) for channel, row in counts.items()})

    def training(self) -> TrainingView:
        """Return all tokens, with a mask of the sampled ones.

        This is the whole session in one piece. If prompts dropped messages, the model did not see
        them when it continued. For such sessions, pair each prompt with the tokens sampled after
        it.

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
        """Return whether the tokens so far end inside a message."""
        return self._parser is not None and self._parser.state is not State.EXPECT_START

    # -- Reading ----------------------------------------------------------------------------------

    @property
    def _running(self) -> EventParser:
        assert self._parser is not None
        return self._parser

    def _begin_piece(self, opening: list[int]) -> None:
        """Start a parser for the next tokens, with the header of the open message."""
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
        """Drop a header inside which the sample ended, since it is not a message of a prompt."""
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
        """Return the tokens of a message in prompts."""
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
        """Return tokens with `<|end|>` in place of `<|return|>`, which only ends a sample.

        Format guide, "Chat conversation format".
        """
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
        """Write the transcript, as JSON lines if the name ends in `.jsonl`, else as compact binary.

        A file that this transcript wrote or read last, and that nobody has changed, is only
        appended to. Otherwise a second file is written, which then replaces the first. Links are
        followed, and a device or a FIFO is written into. So after a crash at any point the file can
        be loaded: at worst the new segments are missing. Only one process may write a file at a
        time.

        Raises:
            OSError: if the file cannot be written.
            ValueError: if an id is too large for the binary form, which has four bytes for a token.
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
        """Return the transcript that was saved.

        A segment that a crash cut off at the end is left out, with a `TranscriptWarning`. A sample
        that was still running when it was saved has ended.

        Args:
            path: the file.
            renderer: as for `Transcript`. Its vocabulary must be that of the file.

        Raises:
            OSError: if the file cannot be read.
            ValueError: if it is not a transcript, is damaged before its end, or has another
                vocabulary. The error names the file, and the line or byte.
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
        """Yield the segments from the token *first* on, each prompted and then sampled tokens.

        A prompted header always separates two samples, so segments define the end of each sample.
        That header is in one segment with its sample, so that a crash leaves no header open.
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
