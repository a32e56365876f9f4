"""The printer that expresses a schema in correct TypeScript.

It keeps the layout of the wheels, on which the model was trained, wherever that is correct.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import attrs

from harmony_stream.errors import RenderReferenceError
from harmony_stream.rendering.typescript.schema import (
    Json,
    choices_of,
    entries_of,
    has_structure,
    items_of,
    kinds_of,
    list_at,
    places_of,
    properties_of,
    references_in,
    target_of,
    text_at,
)
from harmony_stream.rendering.typescript.text import (
    ANY_ARRAY,
    LINE_BREAK,
    PROPERTY_INDENT,
    TYPE_NAMES,
    VARIANT_INDENT,
    comment_lines,
    is_identifier,
    json_text,
    note_of,
    number_text,
    tool_identifiers,
)
from harmony_stream.support.json_text import MAX_DEPTH, NestingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# After this many expansions of references in one schema, references become `any`. Definitions that
# name each other twice could otherwise fill any memory.
_MAX_EXPANSIONS = 1000

# The label of all properties that have none of their own.
_ENTRY = "[key: string]"
# An object without known fields. As parameters, it means that there are none.
_NO_FIELDS = "{\n}"
_COMBINERS = ("$ref", "oneOf", "anyOf", "allOf")
_NO_DEFAULT = object()
# How strongly a printed type holds together: `a | b`, `a & b`, everything else.
_UNION, _INTERSECTION, _ATOM = range(3)
# With one of these keys, a schema is more than a union.
_NO_UNION = ("enum", "const", "$ref", "allOf")


@attrs.frozen
class PrintedType:
    """A type as text.

    Attributes:
        text: the type, without indent before its first line.
        strength: how strongly the text holds together.
        admits_null: True if null is a value of the type.
    """

    text: str
    strength: int = _ATOM
    admits_null: bool = False

    def within(self, strength: int) -> str:
        """Return the text, in brackets if the text around it would bind more strongly."""
        return self.text if self.strength >= strength else f"({self.text})"


_ANY = PrintedType("any")
_NULL = PrintedType("null", admits_null=True)


def _union_of(types: list[PrintedType]) -> PrintedType:
    if all(each.text == "any" for each in types):
        return _ANY
    if len(types) == 1:
        return types[0]
    text = " | ".join(each.text for each in types)
    return PrintedType(text, _UNION, any(each.admits_null for each in types))


class CorrectPrinter:
    """The printer of one tool.

    Types are inline, as the model knows them. Only two kinds of definitions become a type of their
    own below the tool. One refers to itself; the other is used more than once and refers to others.
    """

    def __init__(self, tool: str, root: Json, taken: Iterable[str]) -> None:
        self.tool = tool
        self.root = root
        self.taken = [tool, *taken]
        self.uses = Counter(references_in(root))
        self.expansions = 0
        # The number of schemas, properties and arrays around this one; references can multiply it.
        self.depth = 0
        self.type_names: dict[str, str] = {}
        # The definitions that are being printed; `is_inside` is true in a property or an array of
        # the declaration, since only there can a type name itself.
        self.active: set[str] = set()
        self.is_inside = False

    # -- declarations -----------------------------------------------------------------------------

    def declaration(self, description: str) -> str:
        """Return the declaration of the tool, and those of the types that it names.

        Raises:
            RenderReferenceError: if a reference has no target.
            NestingError: if the schema is nested too deeply.
        """
        printed = self.root_type()
        # The wheels write the description of the parameters between `_:` and the type, where it
        # looks like a part of the type.
        texts = dict.fromkeys([description, *self.descriptions(self.root)])
        comments = [line for text in texts if text for line in comment_lines(text)]
        argument = "" if printed == _NO_FIELDS else f"_: {printed}"
        blocks = ["\n".join([*comments, f"type {self.tool} = ({argument}) => any;"])]
        declared: set[str] = set()
        while waiting := [each for each in self.type_names if each not in declared]:
            declared.add(waiting[0])
            blocks.append(self.named_declaration(waiting[0]))
        return "\n\n".join(blocks)

    def root_type(self) -> str:
        if not self.variants_below(self.root):
            return self.type_of(self.root, "").text
        lines = self.union_below(self.root, "", None, bare=False)
        is_open = "//" in lines[-1]  # a comment must not swallow what follows
        return "\n".join(["", *lines]) + ("\n" if is_open else "")

    def named_declaration(self, reference: str) -> str:
        target = self.resolve(reference)
        comments = [line for text in self.descriptions(target) for line in comment_lines(text)]
        self.active = {reference}
        printed = self.type_of(target, "").text
        self.active = set()
        return "\n".join([*comments, f"type {self.type_names[reference]} = {printed};"])

    # -- types ------------------------------------------------------------------------------------

    def type_of(self, schema: Json, indent: str) -> PrintedType:
        """Return the type of a schema; `indent` is that of the line in which it begins."""
        if not isinstance(schema, dict):
            return PrintedType("never") if schema is False else _ANY
        with self.level():
            parts = [part for part in self.parts(schema, indent) if part.text != "any"]
            if len(parts) > 1:
                text = " & ".join(part.within(_INTERSECTION) for part in parts)
                admits_null = all(part.admits_null for part in parts)
                printed = PrintedType(text, _INTERSECTION, admits_null)
            else:
                printed = parts[0] if parts else self.plain_type(schema, indent)
        if schema.get("nullable") is True and not printed.admits_null:
            return PrintedType(f"{printed.text} | null", _UNION, admits_null=True)
        return printed

    @contextmanager
    def level(self) -> Iterator[None]:
        """Count one level of depth.

        Raises:
            NestingError: if it is above `MAX_DEPTH`.
        """
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise NestingError
        yield
        self.depth -= 1

    def parts(self, schema: Json, indent: str) -> Iterator[PrintedType]:
        """Yield the types that must all hold. A bare `type` beside others adds nothing."""
        if "const" in schema or list_at(schema, "enum"):
            yield self.literal_union(choices_of(schema))
        elif not any(key in schema for key in _COMBINERS) or has_structure(schema):
            yield self.plain_type(schema, indent)
        if reference := text_at(schema, "$ref"):
            yield self.referred_type(reference, indent)
        for key in ("oneOf", "anyOf"):
            if variants := list_at(schema, key):
                yield self.union(variants, indent)
        yield from (self.type_of(each, indent) for each in list_at(schema, "allOf"))

    def literal_union(self, values: list[Json]) -> PrintedType:
        types = [_NULL if each is None else PrintedType(self.literal(each)) for each in values]
        return _union_of(types)

    def literal(self, value: Json) -> str:
        """Return the value as TypeScript: JSON, with line breaks escaped."""
        text = json_text(value, number_text)
        return LINE_BREAK.sub(lambda found: f"\\u{ord(found[0]):04x}", text)

    def plain_type(self, schema: Json, indent: str) -> PrintedType:
        """Return the type that `type`, properties and items describe."""
        return _union_of([self.type_of_kind(kind, schema, indent) for kind in kinds_of(schema)])

    def type_of_kind(self, kind: str, schema: Json, indent: str) -> PrintedType:
        if kind == "object":
            return self.object_type(schema, indent)
        if kind == "array":
            return self.array_type(schema, indent)
        return _NULL if kind == "null" else PrintedType(TYPE_NAMES.get(kind, "any"))

    def array_type(self, schema: Json, indent: str) -> PrintedType:
        places = places_of(schema)
        with self.inside():
            if places:
                types = [self.type_of(each, indent).text for each in places]
                return PrintedType(f"[{', '.join(types)}]")
            if "items" not in schema:
                return PrintedType(ANY_ARRAY)
            return PrintedType(f"{self.type_of(schema['items'], indent).within(_ATOM)}[]")

    def object_type(self, schema: Json, indent: str) -> PrintedType:
        required = list_at(schema, "required")
        others = entries_of(schema)
        with self.inside():
            fields = "".join(
                self.field(self.label(name) + ("" if name in required else "?"), value, indent)
                for name, value in properties_of(schema).items()
            )
            entries = "" if others is None else self.field(_ENTRY, others, indent)
        # Within one type, the named properties must have the type of the entries. That type is read
        # from the printed text: to print it twice at each level would take 2 ** depth.
        is_any = any(line.startswith(f"{indent}{_ENTRY}: any,") for line in entries.splitlines())
        if not fields or not entries or is_any:
            return PrintedType(f"{{\n{fields}{entries}{indent}}}")
        text = f"{{\n{fields}{indent}}} & {{\n{entries}{indent}}}"
        return PrintedType(text, _INTERSECTION)

    def label(self, name: str) -> str:
        return name if is_identifier(name) else self.literal(name)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Enter a property or an array."""
        outside, self.is_inside = self.is_inside, True
        with self.level():
            yield
        self.is_inside = outside

    # -- properties and unions --------------------------------------------------------------------

    def field(self, label: str, schema: Json, indent: str) -> str:
        """Return the lines of a property."""
        known = schema if isinstance(schema, dict) else {}
        is_union = bool(self.variants_below(known))
        lines = [f"{indent}{line}" for line in self.comments_above(known, is_union=is_union)]
        if is_union:
            below = self.union_below(known, indent, text_at(known, "description"), bare=True)
            lines += [f"{indent}{label}:", *below, f"{indent},"]
        else:
            printed = self.type_of(schema, indent + PROPERTY_INDENT).text
            lines.append(f"{indent}{label}: {printed},{note_of([self.default(known, bare=True)])}")
        return "".join(f"{line}\n" for line in lines)

    def comments_above(self, schema: Json, *, is_union: bool) -> Iterator[str]:
        """Yield the comments above a property; a union has its description below the examples."""
        descriptions = [line for text in self.descriptions(schema) for line in comment_lines(text)]
        if (title := text_at(schema, "title")) is not None:
            yield from (*comment_lines(title), "//")
        if not is_union:
            yield from descriptions
        if examples := list_at(schema, "examples"):
            yield "// Examples:"
            yield from (f"// - {self.literal(example)}" for example in examples)
        if is_union:
            yield from descriptions
            if default := self.default(schema, bare=True):
                yield f"// {default}"

    def variants_below(self, schema: Json) -> list[Json]:
        """Return the variants of a pure union, if each has a line of its own below the label."""
        is_more = not isinstance(schema, dict) or any(map(schema.get, _NO_UNION))
        if is_more or has_structure(schema):
            return []
        if variants := list_at(schema, "oneOf"):
            return [] if "anyOf" in schema else variants
        variants = list_at(schema, "anyOf")
        return variants if any(self.notes(each, None, bare=True) for each in variants) else []

    def union_below(self, schema: Json, indent: str, known: str | None, *, bare: bool) -> list[str]:
        """Return the lines of `variants_below`, and null if the schema allows it."""
        variants = self.variants_below(schema)
        lines, admits_null = self.variant_lines(variants, indent, known, bare=bare)
        if schema.get("nullable") is True and not admits_null:
            lines.append(f"{indent} | null")
        return lines

    def union(self, variants: list[Json], indent: str) -> PrintedType:
        """Return a union within a type, in one line unless a variant has a comment."""
        if not any(self.notes(each, None, bare=False) for each in variants):
            return _union_of([self.type_of(each, indent) for each in variants])
        lines, admits_null = self.variant_lines(variants, indent, None, bare=False)
        return PrintedType("\n".join(["(", *lines, f"{indent})"]), _ATOM, admits_null)

    def variant_lines(
        self, variants: list[Json], indent: str, known: str | None, *, bare: bool
    ) -> tuple[list[str], bool]:
        """Return the variants line by line, and True if null is one of them."""
        types = [self.type_of(each, indent + VARIANT_INDENT) for each in variants]
        lines: list[str] = []
        for variant, printed in zip(variants, types, strict=True):
            first, *more = self.notes(variant, known, bare=bare) or [""]
            lines.append(f"{indent} | {printed.text}{first and ' ' + first}")
            lines += [f"{indent}{VARIANT_INDENT}{line}" for line in more]
        return lines, any(printed.admits_null for printed in types)

    # -- comments ---------------------------------------------------------------------------------

    def notes(self, variant: Json, known: str | None, *, bare: bool) -> list[str]:
        """Return the comments on a variant: its default, and its description unless `known`."""
        texts = [text for text in self.descriptions(variant) if text != known]
        default = self.default(variant, bare=bare)
        texts += [default] if default else []
        return comment_lines(" ".join(texts)) if texts else []

    def descriptions(self, schema: Json, seen: set[str] | None = None) -> list[str]:
        """Return the description of a schema, and those of the items of an array."""
        seen = set() if seen is None else seen
        parts = list(self.all_of(schema, seen))
        own = (text for part in parts if (text := text_at(part, "description")) is not None)
        texts = [*own][:1]
        for part in parts:
            for item in items_of(part):
                texts += self.descriptions(item, seen)
        return list(dict.fromkeys(texts))

    def all_of(self, schema: Json, seen: set[str]) -> Iterator[dict[str, Json]]:
        """Yield the schemas that hold together: it, its target, and the parts of its `allOf`."""
        if not isinstance(schema, dict):
            return
        yield schema
        reference = text_at(schema, "$ref")
        if reference and reference not in seen:
            seen.add(reference)
            yield from self.all_of(self.resolve(reference), seen)
        for each in list_at(schema, "allOf"):
            yield from self.all_of(each, seen)

    def default(self, schema: Json, *, bare: bool) -> str | None:
        """Return the note on the default, or None; if `bare`, an enumerated text has no quotes."""
        parts = list(self.all_of(schema, set()))
        value = next((part["default"] for part in parts if "default" in part), _NO_DEFAULT)
        if value is _NO_DEFAULT:
            return None
        is_word = isinstance(value, str) and not LINE_BREAK.search(value)
        if bare and is_word and any(list_at(part, "enum") for part in parts):
            return f"default: {value}"
        return f"default: {self.literal(value)}"

    # -- references -------------------------------------------------------------------------------

    def referred_type(self, reference: str, indent: str) -> PrintedType:
        """Return the target of a reference as a type: in place, by name, or as `any`."""
        target = self.resolve(reference)
        is_shared = self.uses[reference] > 1 and any(references_in(target))
        if self.is_inside and (reference in self.active or is_shared):
            return PrintedType(self.name_of(reference))
        self.expansions += 1
        if reference in self.active or self.expansions > _MAX_EXPANSIONS:
            return _ANY
        self.active.add(reference)
        printed = self.type_of(target, indent)
        self.active.remove(reference)
        return printed

    def name_of(self, reference: str) -> str:
        if reference not in self.type_names:
            last = reference.rpartition("/")[2].lstrip("#") or "parameters"
            self.taken.append(tool_identifiers([*self.taken, f"{self.tool}_{last}"])[-1])
            self.type_names[reference] = self.taken[-1]
        return self.type_names[reference]

    def resolve(self, reference: str) -> Json:
        """Return the target of a reference.

        Raises:
            RenderReferenceError: if it has no target within the schema.
        """
        try:
            return target_of(reference, self.root)
        except (LookupError, ValueError, TypeError):
            reason = "leads nowhere; give the path of a schema within this one, #/..."
            raise RenderReferenceError("$ref", reference, reason, tool=self.tool) from None
