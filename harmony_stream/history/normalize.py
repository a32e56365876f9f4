"""Messages, events and completions as the messages that go back to the model."""

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
        index: its place in what was given.
        message: the message; None where the stream ended before there was one.
        reason: why.
    """

    index: int
    message: Message | None
    reason: DropReason


@attrs.frozen
class History:
    """What goes back to the model, and what does not.

    Attributes:
        messages: those that stay, in order; the very objects that were given, where they were.
            The tuple is marked as decided: with `+`, in slices and in conversations made of it
            too. A renderer drops nothing from a decided history unless a config tells it to.
        dropped: the others.
    """

    messages: tuple[Message, ...] = attrs.field(converter=DecidedTuple)
    dropped: tuple[Dropped, ...]

    def conversation(self) -> Conversation:
        """The messages to render, of which nothing is dropped again.

        >>> history = normalize_history([Message.from_role_and_content("user", "Hi")], "keep")
        >>> [message.content[0].text for message in history.conversation()]
        ['Hi']
        """
        return Conversation.from_messages(self.messages)


@attrs.frozen
class _Found:
    """A message of the input, with what the decision wants to know of it."""

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
    """The messages that go back to the model. Nothing given is changed; twice is the same as once.

    How a message ended is not part of it: it is written with `<|end|>`, or `<|call|>`, also where
    the model had sampled `<|return|>`. What it went on to sample after that is dropped, whatever
    the policy. Text that belongs to no message is left out; it stays in the `faults` of a
    completion.

    Args:
        messages: messages, events of parsers, and completions, mixed in the order of the
            conversation; or a `Conversation`; or one completion. A completion that begins with
            another message than the assistant's is a conversation: all of it was prompted, and
            nothing in it is after `<|return|>`.
        policy: which chain of thought stays.
        truncated: what becomes of a message of events or completions that was cut off.

    Raises:
        TruncatedMessageError: there is one, and `truncated` is "refuse".
        TypeError: something else among the messages.
        ValueError: there is no such policy or choice.

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
    """All messages of the input, those of events collected."""
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
    """The messages of events, by parser; one that has not ended was cut off."""
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
    """End a message whose last event is this one."""
    if isinstance(last, MessageStart | ContentDelta):
        place = last.stop
        end = MessageEnd(last.header, last.index, EndKind.TRUNCATED, False, place, place)
        collector.feed(end)
