"""The decision which messages of a conversation go back to the model, by headers alone.

The format guide, "Handling reasoning output in subsequent sampling": once the assistant has
answered on `final`, its earlier reasoning is dropped. While it works with tools, the reasoning goes
back to it. Theory of operation::

    turn        a user message and what follows it; messages before the first are a turn as well
    finished    the last message of the assistant in the turn is its answer: `final`, not a call
    open        any other turn; it keeps everything
    reasoning   a message of the assistant on `analysis` that is not a call

Reasoning of finished turns is dropped. Everything else is kept, calls on `analysis` and their
results included, so that a call is never separated from its result. Only a turn's own messages
decide if it is finished, and the message that decides is never dropped. Therefore deciding twice
changes nothing, and a turn is decided permanently once another follows. `Transcript` relies on
that.
"""

from __future__ import annotations

from bisect import bisect_left
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

import attrs

from harmony_stream.errors import HarmonyError
from harmony_stream.rendering.dropping import (
    analysis_cutoff,
    finishes_its_turn,
    goes_with_its_turn,
)
from harmony_stream.values.messages import Role

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harmony_stream.values.header import Header


class HistoryPolicy(StrEnum):
    """The rule for the reasoning that goes back to the model."""

    FINISHED_TURNS = "finished_turns"
    """Reasoning of finished turns is dropped, which is the rule of the format guide."""
    UPSTREAM = "upstream"
    """Like `auto_drop_analysis` of openai_harmony, which may separate a call from its result."""
    KEEP = "keep"
    """All reasoning is kept, so that the prompts of a session only ever grow."""


@attrs.frozen
class LastTurns:
    """Like `FINISHED_TURNS`, but the reasoning of the last *count* finished turns is kept.

    >>> LastTurns(2).count
    2

    Raises:
        TypeError: if the count is not an int.
        ValueError: if it is negative.
    """

    count: int = attrs.field()

    @count.validator
    def _check(self, _: object, value: object) -> None:
        if type(value) is not int:
            raise TypeError(f"LastTurns.count: {value!r} is not a whole number; give one from 0")
        if value < 0:
            raise ValueError(f"LastTurns.count: {value} is below 0; give a number from 0")


Policy: TypeAlias = HistoryPolicy | LastTurns


class OnTruncated(StrEnum):
    """The choice for a message that the end of its stream cut off.

    A truncated call with a result is always kept, so that it is not separated from its result.
    """

    REFUSE = "refuse"
    """A `TruncatedMessageError` is raised, so that the caller decides."""
    KEEP = "keep"
    """It is treated as if it had ended, which is correct if the engine strips stop tokens."""
    DROP = "drop"
    """It is ignored."""


class DropReason(StrEnum):
    """The reason why a message does not go back to the model."""

    FINISHED_TURN = "finished_turn"
    """Reasoning of a turn that has its answer."""
    BEFORE_FIRST_FINAL = "before_first_final"
    """A message on `analysis` before the first final message, by the rule of `UPSTREAM`."""
    TRUNCATED = "truncated"
    """A message that the end of the stream cut off."""
    UNFINISHED_HEADER = "unfinished_header"
    """A header that the end of the stream cut off, so that there is no message to keep."""
    AFTER_RETURN = "after_return"
    """A message sampled after `<|return|>`, where sampling ends, and so never shown to anyone."""


@attrs.frozen(auto_exc=True, slots=False, str=False)
class TruncatedMessageError(HarmonyError):
    """A message was cut off by the end of its stream, and `truncated` is "refuse".

    Attributes:
        message_index: index of the message in the conversation.
        channel: the channel of the message, or None.

    >>> print(TruncatedMessageError(3, "final"))
    message 3 (final) was cut off; give truncated="keep" or truncated="drop"
    """

    message_index: int
    channel: str | None

    def __str__(self) -> str:
        channel = self.channel or "no channel"
        return (
            f"message {self.message_index} ({channel}) was cut off; "
            'give truncated="keep" or truncated="drop"'
        )


# The key that stands in for an ignored message in openai_harmony's rule.
_NO_MESSAGE = (Role.TOOL, None)


@attrs.define
class _Turn:
    """One turn, by the indexes of its messages."""

    start: int
    reasoning: list[int] = attrs.field(factory=list)
    is_finished: bool = False


class Turns:
    """The headers of a conversation, folded as they come, at a constant cost for each.

    Attributes:
        count: the number of messages.
        cut: the indexes of truncated messages without a tool result.

    >>> from harmony_stream.values.header import Header
    >>> turns = Turns()
    >>> turns.add(Header(Role.ASSISTANT, None, "analysis"))
    >>> turns.add(Header(Role.ASSISTANT, None, "final"))
    >>> turns.dropped(HistoryPolicy.FINISHED_TURNS)
    [(0, <DropReason.FINISHED_TURN: 'finished_turn'>)]
    """

    def __init__(self) -> None:
        self.cut: list[int] = []
        self._turns = [_Turn(0)]
        self._after_return: list[int] = []
        self._finished: list[int] = []  # numbers of the turns that are finished now
        self._keys: list[tuple[Role, str | None]] = []  # as `analysis_cutoff` expects them
        self._unanswered: list[tuple[int, Header]] = []  # truncated calls, results can still come

    @property
    def count(self) -> int:
        """The number of messages."""
        return len(self._keys)

    def __len__(self) -> int:
        return len(self._turns)

    def start_of(self, turn: int) -> int:
        """Return the index of a turn's first message, or of the next message for the next turn."""
        return self._turns[turn].start if turn < len(self._turns) else self.count

    def add(self, header: Header, *, is_cut: bool = False) -> None:
        """Take the next message. With *is_cut* it is ignored, unless a tool result follows."""
        index = self.count
        self._keys.append(_NO_MESSAGE)
        if is_cut:
            self.cut.append(index)
            self._unanswered.append((index, header))
            return
        if header.role is Role.TOOL:
            self._answer(header.name)
        else:
            self._unanswered.clear()
        self._count_in(index, header)

    def add_after_return(self) -> None:
        """Take the next message, which was sampled after `<|return|>` and so is always ignored."""
        self._after_return.append(self.count)
        self._keys.append(_NO_MESSAGE)

    def _answer(self, name: str | None) -> None:
        """Keep the truncated calls of that name, since this is their result."""
        for index, header in tuple(self._unanswered):
            if header.is_tool_call and header.recipient == name:
                self._unanswered.remove((index, header))
                self.cut.remove(index)
                self._count_in(index, header)

    def _count_in(self, index: int, header: Header) -> None:
        self._keys[index] = (header.role, header.channel)
        if header.role is Role.USER and index > 0:
            self._turns.append(_Turn(index))
        if header.role is not Role.ASSISTANT:
            return
        turn = self._turns[-1]
        key = (header.role, header.channel, header.recipient)
        if goes_with_its_turn(*key):
            turn.reasoning.append(index)
        turn.is_finished = finishes_its_turn(*key)
        self._note_whether_finished(len(self._turns) - 1, turn.is_finished)

    def _note_whether_finished(self, number: int, is_finished: bool) -> None:
        if self._finished and self._finished[-1] == number:
            self._finished.pop()
        if is_finished:
            self._finished.append(number)

    # -- Dropping ---------------------------------------------------------------------------------

    def cutoff(self, policy: Policy) -> int:
        """Return the index before which `UPSTREAM` drops analysis; 0 by other policies."""
        return analysis_cutoff(self._keys) if policy is HistoryPolicy.UPSTREAM else 0

    def decided(self, policy: Policy) -> int:
        """Return the number of turns, from the first on, that no later message can change."""
        closed = len(self._turns) - 1
        if not isinstance(policy, LastTurns) or policy.count == 0:
            return closed
        # One more than are kept, since the last turn may cease to be finished.
        later = policy.count + 1
        return self._finished[-later] if len(self._finished) >= later else 0

    def dropped(
        self, policy: Policy, first: int = 0, stop: int | None = None
    ) -> list[tuple[int, DropReason]]:
        """Return the dropped messages of turns *first* to *stop*, in order, with the reasons."""
        cutoff, stays_from = self.cutoff(policy), self._stays_from(policy)
        found: list[tuple[int, DropReason]] = []
        for number, turn in enumerate(self._turns[first:stop], first):
            if turn.is_finished and number < stays_from:
                found += ((index, DropReason.FINISHED_TURN) for index in turn.reasoning)
        start, end = self.start_of(first), self.start_of(len(self) if stop is None else stop)
        early = (index for index in range(start, min(end, cutoff)) if self._is_on_analysis(index))
        found += ((index, DropReason.BEFORE_FIRST_FINAL) for index in early)
        found += ((index, DropReason.TRUNCATED) for index in _between(self.cut, start, end))
        beyond = _between(self._after_return, start, end)
        return sorted([*found, *((index, DropReason.AFTER_RETURN) for index in beyond)])

    def _is_on_analysis(self, index: int) -> bool:
        return self._keys[index][1] == "analysis"

    def _stays_from(self, policy: Policy) -> int:
        """Return the number of the first turn whose reasoning is kept."""
        if policy is HistoryPolicy.FINISHED_TURNS:
            return len(self._turns)
        if not isinstance(policy, LastTurns):
            return 0
        if policy.count == 0:
            return len(self._turns)
        return self._finished[-policy.count] if len(self._finished) >= policy.count else 0


def _between(indexes: list[int], start: int, end: int) -> list[int]:
    return indexes[bisect_left(indexes, start) : bisect_left(indexes, end)]


def messages_to_drop(
    headers: Iterable[Header], policy: Policy | str = HistoryPolicy.FINISHED_TURNS
) -> dict[int, DropReason]:
    """Return the messages of a conversation that do not go back to the model: index -> reason.

    Raises:
        ValueError: if there is no such policy.

    >>> from harmony_stream.values.header import Header
    >>> reasoning = Header(Role.ASSISTANT, None, "analysis")
    >>> call = Header(Role.ASSISTANT, None, "analysis", "python", "code")
    >>> result = Header(Role.TOOL, "python", "analysis", "assistant")
    >>> answer = Header(Role.ASSISTANT, None, "final")
    >>> list(messages_to_drop([reasoning, call, result, reasoning, answer]))
    [0, 3]
    """
    turns = Turns()
    for header in headers:
        turns.add(header)
    return dict(turns.dropped(get_policy(policy)))


def get_policy(policy: Policy | str) -> Policy:
    """Return the policy of that name. A policy is returned unchanged.

    Raises:
        ValueError: if there is no such policy.

    >>> get_policy("keep")
    <HistoryPolicy.KEEP: 'keep'>
    """
    return policy if isinstance(policy, LastTurns) else HistoryPolicy(policy)
