"""Input of a client stream besides events: options, usage, and the finish reason."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable

    from harmony_stream.adapters.problems import Problem
    from harmony_stream.adapters.routing import Unlabelled

Reason: TypeAlias = Literal["stop", "tool_calls", "length"]
"""The reason why the engine stopped."""


REASONS = (None, "stop", "tool_calls", "length")


def _check_count(usage: object, field: attrs.Attribute[Any], count: object) -> None:
    is_missing = count is None and field.default is None
    if not is_missing and (type(count) is not int or count < 0):
        raise ValueError(f"{field.name} is {count!r}, expected a number of tokens, 0 or more")


@attrs.frozen
class Usage:
    """Token counts of a turn.

    Attributes:
        input_tokens: tokens of the prompt.
        output_tokens: all sampled tokens.
        cached_tokens: tokens of the prompt that were in a cache.
        reasoning_tokens: sampled tokens that are reasoning. None to use the adapter's count of the
            tokens of reasoning text (of characters, if the parser was fed marked text).

    Raises:
        ValueError: a count is not an integer from 0.
    """

    input_tokens: int = attrs.field(validator=_check_count)
    output_tokens: int = attrs.field(validator=_check_count)
    cached_tokens: int = attrs.field(default=0, validator=_check_count)
    reasoning_tokens: int | None = attrs.field(default=None, validator=_check_count)

    @property
    def total_tokens(self) -> int:
        """The sum of input and output tokens."""
        return self.input_tokens + self.output_tokens


class StreamOptions(TypedDict, total=False):
    """Options of every client stream.

    Attributes:
        tools: names of the functions that the request declares. They make `get_weather` and
            `functions.get_weather` the same function, and `python` a function if it is declared.
        unlabelled: the destination of text without a known channel.
        ids: a function that makes an id from its prefix (`call_`), random by default.
            `counted_ids()` makes a replay deterministic.
        clock: a function that returns seconds since the epoch, by default `time.time`.
        on_problem: a function that is called with each `Problem` as it is detected.
        show_problems: true to send problems to the client too.
    """

    tools: Collection[str]
    unlabelled: Unlabelled
    ids: Callable[[str], str]
    clock: Callable[[], float]
    on_problem: Callable[[Problem], None] | None
    show_problems: bool


Ending: TypeAlias = tuple[Reason | None, Usage | None]
"""The finish reason, and the token counts if they are known."""


def no_ending() -> Ending:
    return None, None


def check_ending(reason: object, usage: object) -> None:
    """Check the arguments of `finish` before anything changes.

    Raises:
        ValueError: if the reason is not a `Reason`.
        TypeError: if the usage is not a `Usage`.
    """
    if reason not in REASONS:
        raise ValueError(f"reason is {reason!r}, expected one of {REASONS}")
    if usage is not None and not isinstance(usage, Usage):
        raise TypeError(f"usage is {usage!r}; give a Usage(input_tokens=..., output_tokens=...)")


def check_message(message: object) -> None:
    """Check the argument of `fail` before anything changes.

    Raises:
        TypeError: if it is not text, which is sent to the client as it is.
    """
    if not isinstance(message, str):
        raise TypeError(f"message is {message!r}; give a string that the client may read")


def check_names(tools: object) -> None:
    """Check the names of the declared functions.

    Raises:
        TypeError: if they are not a collection of strings.
    """
    names = tools if isinstance(tools, Collection) and not isinstance(tools, str) else (None,)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f'tools is {tools!r}; give the names of the functions: ["get_weather"]')


def random_id(prefix: str) -> str:
    """Return a unique id: the prefix and 32 hexadecimal digits."""
    return prefix + uuid.uuid4().hex


def counted_ids() -> Callable[[str], str]:
    """Return a function that counts ids for each prefix, so that each replay has the same ids.

    >>> ids = counted_ids()
    >>> ids("call_"), ids("call_"), ids("msg_")
    ('call_1', 'call_2', 'msg_1')
    """
    counts: Counter[str] = Counter()

    def next_id(prefix: str) -> str:
        counts[prefix] += 1
        return f"{prefix}{counts[prefix]}"

    return next_id
