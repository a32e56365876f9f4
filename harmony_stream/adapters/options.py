"""What a client stream is told besides events: options, usage, and why it ended."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from harmony_stream.adapters.problems import Problem
    from harmony_stream.adapters.routing import Unlabelled

Reason: TypeAlias = Literal["stop", "tool_calls", "length"]
"""Why the engine stopped."""


REASONS = (None, "stop", "tool_calls", "length")


@attrs.frozen
class Usage:
    """How many tokens a turn took.

    Attributes:
        input_tokens: of the prompt.
        output_tokens: all that were sampled.
        cached_tokens: those of the prompt that a cache held.
        reasoning_tokens: those of the output that were reasoning; None to take the adapter's count
            of the tokens of reasoning text (of characters, if the parser was fed marked text).
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int | None = None

    @property
    def total_tokens(self) -> int:
        """Prompt and output together."""
        return self.input_tokens + self.output_tokens


class StreamOptions(TypedDict, total=False):
    """What every client stream can be told.

    Attributes:
        tools: names of the functions that the request declares. They make `get_weather` and
            `functions.get_weather` the same function, and `python` a function if so declared.
        unlabelled: where text goes that no known channel labels.
        ids: makes an id from its prefix (`call_`); random if none is given. `counted_ids()` makes
            a replay deterministic.
        clock: seconds since the epoch; `time.time` if none is given.
        on_problem: called with each `Problem` as it is found.
        show_problems: tell the client too.
    """

    tools: Collection[str]
    unlabelled: Unlabelled
    ids: Callable[[str], str]
    clock: Callable[[], float]
    on_problem: Callable[[Problem], None] | None
    show_problems: bool


Ending: TypeAlias = tuple[Reason | None, Usage | None]
"""Why the engine stopped, and what it took."""


def no_ending() -> Ending:
    return None, None


def check_reason(reason: object) -> None:
    """Refuse what is no `Reason`, before anything changes."""
    if reason not in REASONS:
        raise ValueError(f"reason is {reason!r}, expected one of {REASONS}")


def random_id(prefix: str) -> str:
    """An id that no other has: the prefix and 32 hexadecimal digits."""
    return prefix + uuid.uuid4().hex


def counted_ids() -> Callable[[str], str]:
    """Ids that are the same in each replay: for each prefix 1, 2, 3 ...

    >>> ids = counted_ids()
    >>> ids("call_"), ids("call_"), ids("msg_")
    ('call_1', 'call_2', 'msg_1')
    """
    counts: Counter[str] = Counter()

    def next_id(prefix: str) -> str:
        counts[prefix] += 1
        return f"{prefix}{counts[prefix]}"

    return next_id
