"""Views of a transcript, one for each policy: the slices of its tokens that make a prompt."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import attrs

from harmony_stream.history.policy import DropReason, Policy, Turns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harmony_stream.values.header import Header

# A part of a list that only ever grows: the list, start, and stop.
Slice: TypeAlias = tuple[list[int], int, int]


@attrs.define
class _Decided:
    """The kept part of the first turns, which is final."""

    turns: int = 0
    tokens: list[int] = attrs.field(factory=list)


class View:
    """The transcript under one policy."""

    def __init__(self, policy: Policy, *, keeps_cut: bool) -> None:
        self.turns = Turns()
        self._policy = policy
        self._keeps_cut = keeps_cut
        # By the index up to which `UPSTREAM` drops, which never changes once it is not 0.
        self._decided: dict[int, _Decided] = {}

    def catch_up(self, entries: list[Entry]) -> None:
        for entry in entries[self.turns.count :]:
            if entry.is_after_return:
                self.turns.add_after_return()
            else:
                self.turns.add(entry.header, is_cut=entry.is_cut and not self._keeps_cut)

    def dropped(self) -> list[tuple[int, DropReason]]:
        return self.turns.dropped(self._policy)

    def plan(self, history: list[int], offsets: list[int]) -> list[Slice]:
        """Return the slices that make a prompt."""
        known = self._decided.setdefault(self.turns.cutoff(self._policy), _Decided())
        decided = max(self.turns.decided(self._policy), known.turns)
        for start, stop in self._spans(known.turns, decided, offsets):
            known.tokens += history[start:stop]
        known.turns = decided
        rest = self._spans(decided, len(self.turns), offsets)
        first = (known.tokens, 0, len(known.tokens))
        return [first, *((history, start, stop) for start, stop in rest)]

    def _spans(self, first: int, stop: int, offsets: list[int]) -> Iterator[tuple[int, int]]:
        """Yield the spans of the history that are kept, of these turns."""
        at = offsets[self.turns.start_of(first)]
        for index, _ in self.turns.dropped(self._policy, first, stop):
            yield at, offsets[index]
            at = offsets[index + 1]
        yield at, offsets[self.turns.start_of(stop)]


def tokens_of(plan: list[Slice]) -> list[int]:
    tokens: list[int] = []
    for source, start, stop in plan:
        part = source[start:stop]
        if tokens:
            tokens += part
        else:  # usually the largest part, which is copied once
            tokens = part
    return tokens


def common_prefix(old: list[Slice], new: list[Slice]) -> int:
    """Return the number of tokens that two plans share, without comparing slices of one list."""
    length, olds, news = 0, deque(old), deque(new)
    while olds and news:
        (source, a, a_stop), (other, b, b_stop) = olds.popleft(), news.popleft()
        size = min(a_stop - a, b_stop - b)
        if source is not other or a != b:
            pairs = zip(source[a : a + size], other[b : b + size], strict=True)
            same = next((i for i, (left, right) in enumerate(pairs) if left != right), size)
            if same < size:
                return length + same
        length += size
        if a + size < a_stop:
            olds.appendleft((source, a + size, a_stop))
        if b + size < b_stop:
            news.appendleft((other, b + size, b_stop))
    return length


class Entry(NamedTuple):
    """The facts about a message that the decision requires."""

    header: Header
    is_cut: bool
    is_after_return: bool
