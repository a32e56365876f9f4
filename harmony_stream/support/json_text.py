"""JSON with a limit of depth that does not depend on Python.

Python's limits differ between its versions and count the caller's frames, so that the same JSON
would pass here and fail there. This limit is equal everywhere, and far above what anybody writes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_DEPTH = 128
"""The most levels of arrays and objects, equal to the limit of openai-harmony's JSON parser."""


class NestingError(ValueError):
    """A value nests deeper than `MAX_DEPTH`."""

    def __init__(self) -> None:
        super().__init__(f"nested too deeply: more than {MAX_DEPTH} levels")


def loads(text: str | bytes, **options: Any) -> Any:  # noqa: ANN401
    """Return the value of JSON text, with the options of `json.loads`.

    Raises:
        NestingError: if it nests too deeply.
        ValueError: if it is not JSON.

    >>> loads('{"a": [1]}')
    {'a': [1]}
    """
    try:
        found = json.loads(text, **options)
    except RecursionError:
        raise NestingError from None
    if _may_nest(text):
        check_depth(found)
    return found


def _may_nest(text: str | bytes) -> bool:
    """Return whether a text has enough brackets to nest too deeply, which takes 0.2 us, not 4."""
    # Of an encoding other than UTF-8, the bytes are among those of its brackets too.
    text = text.decode("latin-1") if isinstance(text, bytes | bytearray) else text
    return text.count("[") + text.count("{") > MAX_DEPTH


def dumps(value: object, **options: Any) -> str:  # noqa: ANN401
    """Return the value as JSON text, with the options of `json.dumps`.

    Raises:
        NestingError: if it nests too deeply.
        TypeError, ValueError: if JSON cannot express it.
    """
    try:
        text = json.dumps(value, **options)
    except RecursionError:
        raise NestingError from None
    check_depth(value)
    return text


def check_depth(value: object) -> None:
    """Raise `NestingError` if a value of JSON nests too deeply."""
    level = [value] if isinstance(value, _NESTS) else []
    for _ in range(MAX_DEPTH):
        level = [inner for each in level for inner in _inside(each) if isinstance(inner, _NESTS)]
        if not level:
            return
    raise NestingError


_NESTS = (dict, list, tuple)


def _inside(value: Any) -> Iterable[object]:  # noqa: ANN401
    return value.values() if isinstance(value, dict) else value


def parse_json(text: str) -> Any:  # noqa: ANN401
    """Return the value of JSON that the model wrote, if it can be written again.

    Raises:
        ValueError: if it is not JSON, or if it could not be sent to a client. It could not if it
            contains `NaN`, a number beyond floats or half a character, or nests too deeply.

    >>> parse_json('{"a": [1]}')
    {'a': [1]}
    """
    found = loads(text)
    json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
    return found
