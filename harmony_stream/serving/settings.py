"""Settings of the backend, which are checked when they are passed, not at the first request."""

from __future__ import annotations

import math
import time
from datetime import date as calendar_date
from typing import TYPE_CHECKING, Any

import attrs

from harmony_stream.adapters.options import random_id
from harmony_stream.support.checks import check_function, check_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from harmony_stream.adapters import Problem
    from harmony_stream.adapters.chat_completions import ReasoningKey

REASONING_KEYS: tuple[ReasoningKey, ...] = ("reasoning", "reasoning_content", "both", None)

# The number of arguments with which each function is called.
_ARGUMENTS = {"date": 0, "on_problem": 1, "ids": 1, "clock": 0}


# -- Checks ----------------------------------------------------------------------------------------


def _check_key(_: Settings, attribute: attrs.Attribute[Any], value: object) -> None:
    if value not in REASONING_KEYS:
        allowed = ", ".join(map(repr, REASONING_KEYS))
        raise ValueError(f"Settings.{attribute.name}: {value!r} is not one of {allowed}; give one")


def _check_flag(_: Settings, attribute: attrs.Attribute[Any], value: object) -> None:
    if not (value is None or isinstance(value, bool)):
        raise TypeError(f"Settings.{attribute.name}: {value!r} is not a bool or None; give one")


def _check_seconds(_: Settings, attribute: attrs.Attribute[Any], value: object) -> None:
    check_seconds(f"Settings.{attribute.name}", value)


def _check_function(_: Settings, attribute: attrs.Attribute[Any], value: object) -> None:
    check_function(f"Settings.{attribute.name}", value, _ARGUMENTS[attribute.name])


def _check_date(settings: Settings, attribute: attrs.Attribute[Any], value: object) -> None:
    if callable(value):
        _check_function(settings, attribute, value)
    else:
        _refuse_other_than_date(f"Settings.{attribute.name}: {value!r}", value)


def _refuse_other_than_date(place: str, value: object) -> None:
    remedy = "give a string such as '2025-06-28', a function that returns one, or None"
    if not (value is None or isinstance(value, str)):
        raise TypeError(f"{place} is not a string, a function or None; {remedy}")
    if value is not None and not _is_date(value):
        raise ValueError(f"{place} is not a date; {remedy}")


def _is_date(text: str) -> bool:
    """Return whether this is a date as in the format guide, "System message format"."""
    try:
        return calendar_date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


# -- Settings --------------------------------------------------------------------------------------


@attrs.frozen
class Settings:
    """Settings of the backend.

    Attributes:
        reasoning_key: the key of reasoning in Chat Completions; see `ChatCompletionStream`. None
            hides reasoning on every route: Chat Completions, Responses, `/events` and the page.
        date: the date given to the model, such as `2025-06-28`, or a function that returns it,
            called for each request. None gives no date.
        keep_alive: seconds without a chunk after which a stream sends a comment, repeatedly.
        on_problem: a function that is called with each problem of a completion. It runs in the
            server, and so it also receives hidden reasoning.
        ids, clock: see `StreamOptions` of the adapters.
        page: true if the page and `/events` exist. None: only if the engine replays recordings.

    Raises:
        TypeError, ValueError: if a setting is not valid. The error names the setting.

    >>> Settings(date="2025-06-28").today()
    '2025-06-28'
    >>> Settings(keep_alive=0)
    Traceback (most recent call last):
      ...
    ValueError: Settings.keep_alive: 0 is not a number of seconds above 0, up to 1e9; give 15.0, \
for example
    """

    reasoning_key: ReasoningKey = attrs.field(default="reasoning", validator=_check_key)
    date: str | Callable[[], str | None] | None = attrs.field(default=None, validator=_check_date)
    keep_alive: float = attrs.field(default=15.0, validator=_check_seconds)
    on_problem: Callable[[Problem], None] | None = attrs.field(
        default=None, validator=attrs.validators.optional(_check_function)
    )
    ids: Callable[[str], str] = attrs.field(default=random_id, validator=_check_function)
    clock: Callable[[], float] = attrs.field(default=time.time, validator=_check_function)
    page: bool | None = attrs.field(default=None, validator=_check_flag)

    @property
    def hides_reasoning(self) -> bool:
        """True if reasoning is hidden from all clients."""
        return self.reasoning_key is None

    def today(self) -> str | None:
        """Return the date given to the model now.

        Raises:
            TypeError, ValueError: if the function `date` does not return a date.
        """
        if not callable(self.date):
            return self.date
        found = self.date()
        _refuse_other_than_date(f"Settings.date: {found!r}, which the function returned,", found)
        return found

    def now(self) -> int:
        """Return whole seconds since the epoch.

        Raises:
            TypeError: if the function `clock` does not return a number.
        """
        found = self.clock()
        if not (isinstance(found, int | float) and math.isfinite(found)):
            place = f"Settings.clock: {found!r}, which the function returned,"
            raise TypeError(f"{place} is not a number of seconds; give one such as time.time")
        return int(found)
