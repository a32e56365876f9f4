"""The printer that prints what the wheels print, byte for byte, faults included.

It ignores `anyOf` and `$ref`, prints descriptions of objects twice, and breaks comments at line
breaks.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import attrs

from harmony_stream.rendering.typescript.schema import (
    Json,
    list_at,
    properties_of,
    text_at,
    texts_among,
)
from harmony_stream.rendering.typescript.text import (
    ANY_ARRAY,
    LINE_BREAK,
    PROPERTY_INDENT,
    TYPE_NAMES,
    VARIANT_INDENT,
    contained,
    contained_comment,
    json_text,
    note_of,
    number_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def reference_number_text(value: float, exponent_sign: str) -> str:
    """Return the number as the wheels write it after they have read it.

    Their JSON parser has a fast path that may miss the nearest float. It multiplies or divides the
    digits, as far as they fit into 64 bits, by a power of ten.

    >>> reference_number_text(1.843730814488602e-203, "+")
    '1.8437308144886018e-203'
    """
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        return str(value)
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits, power = int(whole + fraction), int(exponent or 0) - len(fraction)
    while digits >= 2**64:
        digits, power = digits // 10, power + 1
    read = float(digits)
    if power < -308:
        read, power = read / 1e308, power + 308
    read = read * float(f"1e{power}") if power > 0 else read / float(f"1e{-power}")
    return number_text(math.copysign(read, value), exponent_sign)


@attrs.frozen
class ReferencePrinter:
    """The printer of one tool's parameters.

    Attributes:
        exponent_sign: the sign that the wheel writes before a positive exponent.
        place: the place of the parameters, for errors.
    """

    exponent_sign: str
    place: str

    def contained(self, text: str) -> str:
        return contained(text, self.place)

    def contained_comment(self, text: str) -> str:
        return contained_comment(text, self.place)

    # -- types ------------------------------------------------------------------------------------

    def type_of(self, schema: Json, indent: str) -> str:
        """Return the type of a schema; `indent` is that of the line in which it begins."""
        if not isinstance(schema, dict):
            return "any"
        if isinstance(schema.get("oneOf"), list):
            return "".join(self.variant(each, indent) for each in schema["oneOf"])
        kind = schema.get("type")
        if isinstance(kind, list):
            names = ["number" if name == "integer" else name for name in texts_among(kind)]
            return " | ".join(map(self.contained, names)) if names else "any"
        if kind == "object":
            return self.object_type(schema, indent)
        if kind == "array":
            return self.type_of(schema["items"], indent) + "[]" if "items" in schema else ANY_ARRAY
        if kind == "string" and (values := texts_among(list_at(schema, "enum"))):
            return self.enumeration(values)
        return TYPE_NAMES.get(kind, "any") if isinstance(kind, str) else "any"

    def enumeration(self, values: list[str]) -> str:
        printed = " | ".join(f'"{value}"' for value in values)
        # Quotes contain a value, unless it contains quotes itself, or ends its line.
        is_sound = not any(
            '"' in value or value.endswith("\\") or LINE_BREAK.search(value) for value in values
        )
        return printed if is_sound else self.contained(printed)

    def object_type(self, schema: Json, indent: str) -> str:
        description = text_at(schema, "description")
        above = ""
        if description is not None:
            above = f"{indent}// {self.contained_comment(description)}\n"
        required = list_at(schema, "required")
        fields = "".join(
            self.field(self.contained(name) + ("" if name in required else "?"), value, indent)
            for name, value in properties_of(schema).items()
        )
        return f"{above}{{\n{fields}{indent}}}"

    def variant(self, schema: Json, indent: str) -> str:
        """Return one line of a union that is not the type of a property."""
        printed = self.nullable_type_of(schema, indent + VARIANT_INDENT)
        note = self.note([text_at(schema, "description"), self.default(schema, in_field=False)])
        return f"\n{indent} | {printed}{note}"

    def nullable_type_of(self, schema: Json, indent: str) -> str:
        printed = self.type_of(schema, indent)
        # Any mention of null counts, even in a comment.
        is_nullable = isinstance(schema, dict) and schema.get("nullable") is True
        return f"{printed} | null" if is_nullable and "null" not in printed else printed

    # -- properties -------------------------------------------------------------------------------

    def field(self, label: str, schema: Json, indent: str) -> str:
        """Return the lines of a property."""
        schema = schema if isinstance(schema, dict) else {}
        lines = map(self.contained_comment, self.comments_above(schema))
        above = "".join(f"{indent}{line}\n" for line in lines)
        if isinstance(schema.get("oneOf"), list):
            return above + self.union_field(label, schema, indent)
        printed = self.nullable_type_of(schema, indent + PROPERTY_INDENT)
        # A `oneOf` that is not a list hides the default too.
        note = "" if "oneOf" in schema else self.note([self.default(schema, in_field=True)])
        return f"{above}{indent}{label}: {printed},{note}\n"

    def union_field(self, label: str, schema: Json, indent: str) -> str:
        lines = [f"{indent}{label}:"]
        own = text_at(schema, "description")
        for number, variant in enumerate(schema["oneOf"]):
            printed = self.nullable_type_of(variant, indent + VARIANT_INDENT)
            description = text_at(variant, "description")
            # The first variant of a property that has a description is never described.
            is_known = own is not None and (number == 0 or description == own)
            default = self.default(variant, in_field=True)
            note = self.note([None if is_known else description, default])
            lines.append(f"{indent} | {printed}{note}")
        return "".join(f"{line}\n" for line in [*lines, f"{indent},"])

    # -- comments ---------------------------------------------------------------------------------

    def comments_above(self, schema: Json) -> Iterator[str]:
        """Yield the comments above a property."""
        if (title := text_at(schema, "title")) is not None:
            yield from (f"// {title}", "//")
        description = text_at(schema, "description")
        if description is not None and "oneOf" not in schema:
            yield f"// {description}"
        if examples := list_at(schema, "examples"):
            yield "// Examples:"
            yield from (f'// - "{example}"' for example in texts_among(examples))
        variants = schema.get("oneOf")
        if isinstance(variants, list):
            first = variants[0] if variants and isinstance(variants[0], dict) else {}
            if description is not None and description != text_at(first, "description"):
                yield f"// {description}"
            if (default := self.default(schema, in_field=True)) is not None:
                yield f"// {default}"

    def note(self, texts: list[str | None]) -> str:
        return self.contained_comment(note_of(texts))

    def default(self, schema: Json, *, in_field: bool) -> str | None:
        """Return the note on the default, or None.

        A text is not escaped, unless it is one of an enumeration outside of a property.
        """
        if not isinstance(schema, dict) or "default" not in schema:
            return None
        value = schema["default"]
        is_choice = bool(list_at(schema, "enum"))
        if isinstance(value, str) and is_choice <= in_field:
            return f"default: {value}" if is_choice else f'default: "{value}"'
        numbers = partial(reference_number_text, exponent_sign=self.exponent_sign)
        return f"default: {json_text(value, numbers)}"
