"""Writes the JSON of the parser's events as a JSON Schema and as TypeScript types.

    python scripts/make_event_schema.py

Both are made from the event classes: keys are those that `to_dict` gives, types those of the
attributes, descriptions those of the docstrings. The outputs, `events.schema.json` and
`events.d.ts`, lie in the package, and a test holds them to what this script makes.
"""

from __future__ import annotations

import enum
import inspect
import json
import re
import textwrap
import types
import typing
from pathlib import Path
from typing import Any

from harmony_stream import (
    ContentDelta,
    EndKind,
    FaultKind,
    HarmonyParseError,
    Header,
    Malformed,
    MessageEnd,
    MessageStart,
    Role,
)

TARGET = Path(__file__).parent.parent / "harmony_stream"

Schema = dict[str, Any]

_HEADER = Header(Role.ASSISTANT)
_ERROR = HarmonyParseError(FaultKind.EXPECTED_START, 0, None, "", "", "", ())
# One of each class, to see which keys its dict has.
SAMPLES: dict[str, Any] = {
    "MessageStart": MessageStart(_HEADER, 0, 0, 0),
    "ContentDelta": ContentDelta(_HEADER, 0, "a", 0, 0),
    "MessageEnd": MessageEnd(_HEADER, 0, EndKind.END, True, 0, 0),
    "Malformed": Malformed(_ERROR, "", 0, 0),
    "Header": _HEADER,
    "HarmonyParseError": _ERROR,
}
EVENTS = ("MessageStart", "ContentDelta", "MessageEnd", "Malformed")

_PLAIN = {str: "string", int: "integer", bool: "boolean", types.NoneType: "null"}
_NAMES = {"Header": Header, "HarmonyParseError": HarmonyParseError, "Role": Role, "Event": Any}

# What `to_dict` adds to the attributes.
_ADDED = {"message": "the error as a sentence."}


# -- JSON Schema --


def schema() -> Schema:
    """The schema of one event."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "harmony_stream events",
        "description": "One event of the parser, as its to_dict() gives it.",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in EVENTS],
        "$defs": {name: _object(sample) for name, sample in SAMPLES.items()},
    }


def _object(sample: Any) -> Schema:  # noqa: ANN401
    found = sample.to_dict()
    return {
        "type": "object",
        "description": _docstring(type(sample)).partition("\n")[0],
        "properties": {key: _property(sample, key, found[key]) for key in found},
        "required": list(found),
        "additionalProperties": False,
    }


def _property(sample: Any, key: str, value: object) -> Schema:  # noqa: ANN401
    hints = typing.get_type_hints(type(sample), localns=_NAMES)
    described = {**_ADDED, **_descriptions(type(sample))}.get(key)
    description = {"description": described} if described else {}
    if key == "type":
        return {"const": value}
    of = hints.get(key, type(getattr(sample, key, value)))  # `error` is a property
    return {**_type(of), **description}


def _type(hint: Any) -> Schema:  # noqa: ANN401
    """The schema of an annotation, as far as the events have need of it."""
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if typing.get_origin(hint) is tuple:
        return {"type": "array", "items": _type(typing.get_args(hint)[0])}
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return {"type": [_PLAIN[option] for option in typing.get_args(hint)]}
    if issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    return {"$ref": f"#/$defs/{hint.__name__}"}


def _docstring(kind: type) -> str:
    """The docstring, in words of JSON."""
    return re.sub(r"\bNone\b", "null", inspect.getdoc(kind) or "")


def _descriptions(kind: type) -> dict[str, str]:
    """The entries of a docstring's `Attributes` section, by name."""
    section = _docstring(kind).partition("Attributes:\n")[2].partition("\n\n")[0]
    entries = re.findall(r"^    (\w[\w, ]*): (.*(?:\n {6,}.*)*)", section, re.MULTILINE)
    return {name: " ".join(text.split()) for names, text in entries for name in names.split(", ")}


# -- TypeScript --

_TYPESCRIPT = {"string": "string", "integer": "number", "boolean": "boolean", "null": "null"}


def declarations(of: Schema) -> str:
    """The same as a `.d.ts` file."""
    head = (
        f"/** {of['description']} Made by scripts/make_event_schema.py. */\n"
        f"export type HarmonyEvent = {' | '.join(EVENTS)};\n"
    )
    return head + "".join(_interface(name, each) for name, each in of["$defs"].items())


def _interface(name: str, of: Schema) -> str:
    lines = []
    for key, each in of["properties"].items():
        if "description" in each:
            lines.append(_comment(each["description"], "  "))
        lines.append(f"  {key}: {_typescript(each)};\n")
    body = "".join(lines)
    return f"\n{_comment(of['description'], '')}export interface {name} {{\n{body}}}\n"


def _comment(text: str, indent: str) -> str:
    lines = textwrap.wrap(text, 92)
    if len(lines) == 1:
        return f"{indent}/** {text} */\n"
    return "".join(
        f"{indent}{line}\n" for line in ("/**", *(f" * {line}" for line in lines), " */")
    )


def _typescript(of: Schema) -> str:
    match of:
        case {"const": value}:
            return json.dumps(value)
        case {"enum": values}:
            return " | ".join(map(json.dumps, values))
        case {"$ref": reference}:
            return str(reference).rpartition("/")[2]
        case {"type": "array", "items": items}:
            return f"{_typescript(items)}[]"
        case {"type": [*options]}:
            return " | ".join(_TYPESCRIPT[option] for option in options)
    return _TYPESCRIPT[of["type"]]


def files() -> dict[str, str]:
    """The content of each file, by its name."""
    made = schema()
    return {
        "events.schema.json": json.dumps(made, indent=2) + "\n",
        "events.d.ts": declarations(made),
    }


def main() -> None:
    """Write both."""
    for name, content in files().items():
        (TARGET / name).write_text(content, encoding="utf-8")
        print(TARGET / name)


if __name__ == "__main__":
    main()
