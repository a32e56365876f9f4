"""Readers of a JSON schema that may hold anything under any key.

Whoever declares a tool writes its schema, so a key may hold a value of the wrong type. These
functions then return the same as without the key.
"""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

Json: TypeAlias = Any

_STRUCTURE = ("properties", "items", "prefixItems")
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int, float),
    "number": (int, float),
    "boolean": (bool,),
    "null": (NoneType,),
    "object": (dict,),
    "array": (list,),
}


def text_at(schema: Json, key: str) -> str | None:
    """Return the text under a key, or None."""
    value = schema.get(key) if isinstance(schema, dict) else None
    return value if isinstance(value, str) else None


def list_at(schema: Json, key: str) -> list[Json]:
    """Return the list under a key, or an empty one."""
    value = schema.get(key) if isinstance(schema, dict) else None
    return value if isinstance(value, list) else []


def texts_among(values: list[Json]) -> list[str]:
    """Return the values that are texts."""
    return [value for value in values if isinstance(value, str)]


def properties_of(schema: Json) -> dict[str, Json]:
    """Return the schemas of the properties, by name."""
    value = schema.get("properties")
    return value if isinstance(value, dict) else {}


def places_of(schema: Json) -> list[Json]:
    """Return the schemas of the items of an array in which each place has its own."""
    return list_at(schema, "prefixItems") or list_at(schema, "items")


def items_of(schema: Json) -> list[Json]:
    """Return all schemas of items of an array."""
    return places_of(schema) or ([schema["items"]] if isinstance(schema.get("items"), dict) else [])


def entries_of(schema: Json) -> Json:
    """Return the schema of additional properties; None if they are forbidden or not mentioned."""
    others = schema.get("additionalProperties")
    return {} if others is True else others if isinstance(others, dict) else None


def has_structure(schema: Json) -> bool:
    """Return True if the schema describes properties, items or entries."""
    return any(map(schema.get, _STRUCTURE)) or entries_of(schema) is not None


def kinds_of(schema: Json) -> list[str]:
    """Return the types that a schema names; without any, the type that its other keys imply."""
    kind = schema.get("type")
    if kind is not None:
        return texts_among(kind if isinstance(kind, list) else [kind])
    if properties_of(schema) or entries_of(schema) is not None:
        return ["object"]
    return ["array"] if "items" in schema or "prefixItems" in schema else []


def choices_of(schema: Json) -> list[Json]:
    """Return the values of `enum` or `const`, and null if any key allows it.

    OpenAI's guide to strict schemas makes an enumeration optional by its type alone:
    `"type": ["string", "null"], "enum": ["celsius"]`.
    """
    kinds = kinds_of(schema)
    values = [schema["const"]] if "const" in schema else schema["enum"]
    types = {each for kind in kinds for each in _PYTHON_TYPES.get(kind, ())}
    # Values of another type can never be valid, unless the type is the mistake. null is meant.
    fitting = [value for value in values if type(value) in types]
    if types and fitting and "const" not in schema:
        values = [value for value in values if value is None or type(value) in types]
    return values if "null" not in kinds or None in values else [*values, None]


def references_in(schema: Json) -> Iterator[str]:
    """Yield all references in a schema, without following them."""
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += each.values()
            if reference := text_at(each, "$ref"):
                yield reference
        elif isinstance(each, list):
            waiting += each


def target_of(reference: str, root: Json) -> Json:
    """Return the schema that a reference names, such as `#/$defs/NAME`.

    Raises:
        LookupError, ValueError, TypeError: if there is no such schema within `root`.
    """
    start, *steps = reference.split("/")
    if start != "#":
        raise KeyError(start)
    target = root
    for step in steps:
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        target = target[int(key)] if isinstance(target, list) else target[key]
    return target
