"""A value as plain data: the parts that a dump contains, and their form.

These are the options of pydantic's `model_dump`, on data that is no longer a `Value`.
"""

# ruff: noqa: ANN401 - a dump holds values of any type

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from harmony_stream.support.value_kinds import Nestable


class Dump(NamedTuple):
    """The form in which the parts of a value are dumped.

    Attributes:
        mode: `python`, or `json` for data that JSON can hold.
        exclude_defaults: true to leave out fields that are equal to their defaults.
        exclude_none: true to leave out fields that are None.
    """

    mode: str = "python"
    exclude_defaults: bool = False
    exclude_none: bool = False

    def plain(self, value: Any) -> Any:
        """Return the value without any `Value` in it."""
        if value is None or type(value) is str:  # most parts; checked first for speed
            return value
        if isinstance(value, Nestable):
            return value._dump_inside(**self._asdict())
        if isinstance(value, dict):
            return {self.key(key): self.plain(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            items = [self.plain(each) for each in value]
            return tuple(items) if isinstance(value, tuple) and self.mode != "json" else items
        if hasattr(value, "model_dump"):
            return value.model_dump(**self._asdict())
        return _jsonable(value) if self.mode == "json" else value

    def key(self, key: Any) -> Any:
        """Return the key of a mapping in this form; JSON has only strings."""
        if type(key) is str or self.mode != "json":
            return key
        return next(iter(_by_pydantic({key: None})))


def selected(value: Any, include: Any, exclude: Any) -> Any:
    """Return the parts of a dump that `include` names and `exclude` does not.

    Both hold names and indexes, or map these to rules for the parts inside.

    >>> selected({"author": {"role": "user"}, "content": ["a", "b"]}, {"content": {-1}}, None)
    {'content': ['b']}
    """
    parts = []
    for key, each in enumerate(value) if isinstance(value, list) else value.items():
        wanted = True if include is None else _rule(include, key, value)
        unwanted = None if exclude is None else _rule(exclude, key, value)
        if wanted is None or _is_whole(unwanted):
            continue
        if isinstance(each, dict | list):
            each = selected(each, None if _is_whole(wanted) else wanted, unwanted)
        parts.append((key, each))
    return [each for _, each in parts] if isinstance(value, list) else dict(parts)


def _rule(rules: Any, key: Any, value: Any) -> Any:
    """Return the rule for a key; of an item also by its index from the end, or for all items."""
    found = rules if isinstance(rules, Mapping) else dict.fromkeys(rules, True)
    keys = [key, key - len(value), "__all__"] if isinstance(value, list) else [key]
    return next((found[each] for each in keys if each in found), None)


def _is_whole(rule: Any) -> bool:
    return rule is True or rule is ...


def _jsonable(value: Any) -> Any:
    """Return the value as JSON holds it; pydantic writes types that only subclasses have."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int) else _by_pydantic(value)


def _by_pydantic(value: Any) -> Any:
    try:
        from pydantic_core import to_jsonable_python
    except ImportError:
        return value
    return to_jsonable_python(value)
