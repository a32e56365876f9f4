"""The messages that go back to the model, from messages, events and completions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from harmony_stream.history.policy import (
    DropReason,
    HistoryPolicy,
    OnTruncated,
    Policy,
    TruncatedMessageError,
    Turns,
    get_policy,
)
from harmony_stream.parsing.collect import MessageCollector
from harmony_stream.rendering.header import header_of
from harmony_stream.values.completion import Completion
from harmony_stream.values.events import (
    ContentDelta,
    EndKind,
    Event,
    Malformed,
    MessageEnd,
    MessageStart,
)
from harmony_stream.values.messages import Conversation, DecidedTuple, Message, Role

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harmony_stream.values.header import Header


@attrs.frozen
class Dropped:
    """A message that does not go back to the model.

    Attributes:
        index: its index among the messages that were passed.
        message: the message; None if the stream ended before there was one.
        reason: the reason why it does not go back.
    """

    index: int
    message: Message | None
    reason: DropReason


@attrs.frozen
class History:
    """The messages that go back to the model, and those that do not.

    Attributes:
        messages: the messages that are kept, in order. Messages that you pass are returned as the
            same objects. The tuple is marked as decided, and so are its slices, its sums with `+`
            and conversations made from it. A renderer drops nothing from a decided history, unless
            a config requires it.
        dropped: the other messages.
    """

    messages: tuple[Message, ...] = attrs.field(converter=DecidedTuple)
    dropped: tuple[Dropped, ...]

    def conversation(self) -> Conversation:
        """Return the messages to render, from which nothing is dropped again.

        >>> history = normalize_history([Message.from_role_and_content("user", "Hi")], "keep")
        >>> [message.content[0].text for message in history.conversation()]
        ['Hi']
        """
        return Conversation.from_messages(self.messages)


@attrs.frozen
class _Found:
    """A message of the input, with the fields that the decision requires."""

    header: Header
    message: Message
    is_cut: bool = False
    is_after_return: bool = False


def normalize_history(
    messages: Iterable[Message | Event | Completion] | Completion,
    policy: Policy | str = HistoryPolicy.FINISHED_TURNS,
    *,
    truncated: OnTruncated | str = OnTruncated.REFUSE,
) -> History:
    """Return the messages that go back to the model.

    The input is not changed, and normalising twice gives the same result as once. The end token of
    a message is not kept: it is written with `<|end|>` or `<|call|>`, even if the model sampled
    `<|return|>`. Messages that were sampled after `<|return|>` are dropped by every policy. Text
    outside of messages is left out; it stays in the `faults` of a completion.

    Args:
        messages: messages, events of parsers, and completions, mixed in the order of the
            conversation; or a `Conversation`; or one completion. A completion that does not begin
            with a message of the assistant is a conversation. All of it was prompted, so nothing in
            it is after `<|return|>`.
        policy: the policy, which decides which reasoning is kept.
        truncated: the choice for a truncated message of events or completions.

    Raises:
        TruncatedMessageError: if a message is truncated, and `truncated` is "refuse".
        TypeError: if there is something else among the messages.
        ValueError: if there is no such policy or choice.

    The format guide, "Handling reasoning output in subsequent sampling".

    >>> from harmony_stream.parsing.collect import parse
    >>> completion = parse([200005, 35644, 200008, 12194, 200007, 200006, 173781,
    ...                     200005, 17196, 200008, 13225, 200002])
    >>> question = Message.from_role_and_content("user", "Greet me.")
    >>> history = normalize_history([question, completion])
    >>> [message.channel for message in history.messages]
    [None, 'final']
    >>> [(each.index, each.reason.value) for each in history.dropped]
    [(1, 'finished_turn')]
    """
    policy, truncated = get_policy(policy), OnTruncated(truncated)
    found = _gather([messages] if isinstance(messages, Completion) else messages)
    turns = Turns()
    for each in found:
        if each.is_after_return:
            turns.add_after_return()
        else:
            turns.add(each.header, is_cut=each.is_cut and truncated is not OnTruncated.KEEP)
    reasons = dict(turns.dropped(policy))
    for index, reason in reasons.items():
        if reason is DropReason.TRUNCATED and truncated is OnTruncated.REFUSE:
            raise TruncatedMessageError(index, found[index].header.channel)
    return History(
        tuple(each.message for index, each in enumerate(found) if index not in reasons),
        tuple(Dropped(index, found[index].message, reason) for index, reason in reasons.items()),
    )


def _gather(items: Iterable[Message | Event | Completion]) -> list[_Found]:
    """Return all messages of the input, with events collected into messages."""
    found: list[_Found] = []
    events: list[Event] = []
    for place, item in enumerate(items):
        if isinstance(item, MessageStart | ContentDelta | MessageEnd | Malformed):
            events.append(item)
            continue
        found += _collected(events)
        events = []
        if isinstance(item, Message):
            found.append(_Found(header_of(item), item))
        elif isinstance(item, Completion):
            found += _found_in(item)
        else:
            kind = type(item).__name__
            raise TypeError(f"item {place} is a {kind}, expected Message, Completion, or an event")
    return found + _collected(events)


def _found_in(completion: Completion) -> list[_Found]:
    pairs = list(zip(completion.messages, completion.ends, strict=True))
    is_sampled = bool(pairs) and pairs[0][1].role is Role.ASSISTANT
    answer = len(pairs) - len(completion.after_return) if is_sampled else len(pairs)
    return [
        _Found(end.header, message, end.end is EndKind.TRUNCATED, index >= answer)
        for index, (message, end) in enumerate(pairs)
    ]


def _collected(events: list[Event]) -> list[_Found]:
    """Return the messages of events, by parser. A message that has not ended is truncated."""
    found: list[_Found] = []
    collector = MessageCollector()
    last: Event | None = None
    for event in events:
        if isinstance(event, MessageStart):
            _cut_off(collector, last)
            if event.index == 0:
                found += _found_in(collector.completion())
                collector = MessageCollector()
        collector.feed(event)
        last = last if isinstance(event, Malformed) else event
    _cut_off(collector, last)
    return found + _found_in(collector.completion())


def _cut_off(collector: MessageCollector, last: Event | None) -> None:
    """End a truncated message whose last event is this one."""
    if isinstance(last, MessageStart | ContentDelta):
        place = last.stop
        end = MessageEnd(last.header, last.index, EndKind.TRUNCATED, False, place, place)
        collector.feed(end)
