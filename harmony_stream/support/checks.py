"""Checks of what callers pass: the error names the place, the value, and what to give."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST = 1e9  # thirty years; timers overflow at longer times


def check_seconds(place: str, value: object) -> None:
    """Check a time to wait.

    Args:
        place: the name of the setting.
        value: its value.

    Raises:
        TypeError: if it is not a number.
        ValueError: if it is not above 0, or above 1e9.

    >>> check_seconds("keep_alive", 0)
    Traceback (most recent call last):
      ...
    ValueError: keep_alive: 0 is not a number of seconds above 0, up to 1e9; give 15.0, for example
    """
    sentence = (
        f"{place}: {value!r} is not a number of seconds above 0, up to 1e9; give 15.0, for example"
    )
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(sentence)
    if not 0 < value <= _LONGEST:
        raise ValueError(sentence)


def check_function(place: str, value: object, count: int) -> None:
    """Check that a value is callable with its arguments, and that its result need not be awaited.

    Args:
        place: the name of the setting.
        value: its value.
        count: the number of arguments that it is called with.

    Raises:
        TypeError: if it is not such a function.

    >>> check_function("ids", 5, 1)
    Traceback (most recent call last):
      ...
    TypeError: ids: 5 is not a plain function; give one of 1 arguments
    """
    place = f"{place}: {value!r}"
    if not callable(value) or any(map(_is_not_plain, (value, type(value).__call__))):
        raise TypeError(f"{place} is not a plain function; give one of {count} arguments")
    if not _takes(value, count):
        raise TypeError(f"{place} is not a function of {count} arguments; give one that is")


def _is_not_plain(function: object) -> bool:
    """Return whether a call returns an awaitable or an iterator instead of a result."""
    checks = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    return any(check(function) for check in checks)


def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except ValueError:  # a builtin without a signature
        return True
    except TypeError:
        return False
    return True
