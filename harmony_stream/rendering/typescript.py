"""JSON schema -> the TypeScript in which the model is told of its tools.

Format guide, "Defining available tools": a tool is ``type NAME = (_: { ... }) => any;`` under a
comment, or ``type NAME = () => any;`` if it has no parameters; descriptions of fields are comments
above them.

Two printers. `_ReferencePrinter` prints what the wheels print, byte for byte, faults included: it
knows neither `anyOf` nor `$ref`, prints descriptions of objects twice, and breaks comments at line
breaks. `_CorrectPrinter` keeps their layout, since the model was trained on it, and mends what is
no TypeScript or does not say what the schema says.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, chain, count
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

import attrs

from harmony_stream.errors import RenderError, RenderReferenceError
from harmony_stream.rendering.profiles import Profile, TypeScript
from harmony_stream.support.json_text import MAX_DEPTH, NestingError, dumps, loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harmony_stream.values.tools import ToolDescription

Json: TypeAlias = Any

# One level of nesting: of an object in a property, of a variant in a union.
_PROPERTY_INDENT = "    "
_VARIANT_INDENT = "   "


def tool_type(
    tool: ToolDescription, profile: Profile, taken: Iterable[str] = (), place: str = "tool"
) -> str:
    """The declaration of one tool.

    Args:
        tool: its name is taken as it is: `harmony_stream.rendering.sections` checks it.
        profile: says how schemas are printed.
        taken: the names of others in its namespace.
        place: of the tool, for errors.

    Raises:
        RenderError: a text would break out of its line; a reference leads nowhere; too deep.

    >>> from harmony_stream.rendering.profiles import GUIDE
    >>> from harmony_stream.values.tools import ToolDescription
    >>> print(tool_type(ToolDescription.new("tide", "Now.", {"const": 3}), GUIDE))
    // Now.
    type tide = (_: 3) => any;
    """
    # The wheels see JSON: tuples are lists there, and keys are strings.
    try:
        schema = loads(dumps(tool.parameters))
        if profile.typescript is TypeScript.CORRECT:
            schema = {"type": "object"} if schema is None else schema
            return _CorrectPrinter(tool.name, schema, taken).declaration(tool.description)
        printed = "()"
        if schema is not None:
            printer = _ReferencePrinter(profile.exponent_sign, f"{place}.parameters")
            printed = f"(_: {printer.type_of(schema, '')})"
    except (NestingError, RecursionError):  # the latter if the caller is deep down the stack
        raise RenderError("parameters of tool", tool.name, f"are {NestingError()}") from None
    comments = description_lines(tool.description, profile, f"{place}.description")
    return "\n".join([*comments, f"type {tool.name} = {printed} => any;"])


def tool_identifiers(names: Iterable[str]) -> list[str]:
    """Names for tools whose own are no identifiers, such as those of MCP servers: one for each.

    An option: the model sees, and calls, tools under these names, and whoever declared them maps
    them back. No two are the same. Nothing here renames a tool by itself.

    >>> tool_identifiers(["read log", "read-log", "42", "tide!"])
    ['read_log', 'read_log_2', '_42', 'tide']
    """
    made: dict[str, None] = {}
    for name in names:
        first = _identifier(name)
        numbered = (f"{first}_{number}" for number in count(2))
        made[next(each for each in chain([first], numbered) if each not in made)] = None
    return list(made)


def _identifier(name: str) -> str:
    joined = re.sub(r"[\s.-]", "_", name)
    kept = "".join(character for character in joined if _is_identifier(f"a{character}"))
    if not kept:
        return "unnamed"
    return kept if _is_identifier(kept) else f"_{kept}"


def _is_identifier(name: str) -> bool:
    """Whether TypeScript takes the name without quotes."""
    return name.replace("$", "_").isidentifier()


# --- Comments and literals ----------------------------------------------------------------------

# All that ends a line for anybody who reads the text.
_LINE_BREAK = re.compile("\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")


def lines_of(text: str) -> list[str]:
    r"""Lines as the wheels see them: ended by ``\n`` or ``\r\n``; an empty text has none.

    >>> lines_of("a\r\nb\rc\n")
    ['a', 'b\rc']
    """
    *ended, last = text.split("\n")
    return [line.removesuffix("\r") for line in ended] + ([last] if last else [])


def comment_lines(text: str) -> list[str]:
    """The text as comments, cut wherever a line ends in TypeScript."""
    return [f"// {line}" for line in _LINE_BREAK.split(text.rstrip("\r\n"))]


def description_lines(text: str, profile: Profile, place: str) -> list[str]:
    """A description above what it describes, as comments."""
    if profile.typescript is TypeScript.CORRECT:
        return comment_lines(text) if text else []
    return [f"// {comment(line, place)}" for line in lines_of(text)]


# What the wheels print outside of comments and quotes must not pass for the end of a declaration,
# for another one, or for the head of another section.
_FORGERY = re.compile(
    r"=>\s*any|//\s*namespace|^\s*# (?:Instructions|Tools|Response Formats|Valid channels)\b",
    re.MULTILINE,
)


def bare(text: str, place: str) -> str:
    """A text that the wheels print as it is, if it stays a part of what it belongs to.

    Raises:
        RenderError: it would break out: it ends a brace that it has not begun, or looks like a
            declaration or the head of a section.
    """
    return _contained(text, text, place)


def comment(text: str, place: str) -> str:
    """The same for a text that begins in a comment: what follows its first line is bare."""
    found = _LINE_BREAK.search(text)
    return text if found is None else _contained(text, text[found.end() :], place)


def _contained(text: str, outside: str, place: str) -> str:
    depths = accumulate(1 if brace == "{" else -1 for brace in re.findall("[{}]", text))
    is_closing = "}" in outside and min(depths) < 0
    if is_closing or _FORGERY.search("\n".join(_LINE_BREAK.split(outside))):
        reason = "would break out of its declaration in this layout; profile 'guide' can write it"
        raise RenderError(place, text, reason)
    return text


def _note(texts: list[str | None]) -> str:
    """What is said behind a type, as the end of its line."""
    said = [text for text in texts if text is not None]
    return f" // {' '.join(said)}" if said else ""


def json_text(value: Json, number_text: Callable[[int | float], str]) -> str:
    """The value as compact JSON, whose numbers are written by the function.

    >>> json_text({"a": [1, 1e30, 1e-5, True]}, number_text)
    '{"a":[1,1e30,0.00001,true]}'
    """
    if isinstance(value, dict):
        pairs = (f"{_quoted(key)}:{json_text(value[key], number_text)}" for key in value)
        return f"{{{','.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{','.join(json_text(item, number_text) for item in value)}]"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_text(value)
    return _quoted(value)


def _quoted(value: str | bool | None) -> str:
    return json.dumps(value, ensure_ascii=False)


def number_text(value: float, exponent_sign: str = "") -> str:
    """The number in as few digits as tell it from others, laid out as in the wheels."""
    mantissa, _, exponent = repr(value).partition("e")
    if exponent == "-05":  # Python begins to write exponents one digit earlier
        digits = len(mantissa.lstrip("-").replace(".", ""))
        return f"{value:.{4 + digits}f}"
    if exponent:
        return f"{mantissa}e{exponent_sign if int(exponent) > 0 else ''}{int(exponent)}"
    return mantissa


def reference_number_text(value: float, exponent_sign: str) -> str:
    """The number as the wheels write it after they have read it.

    Their JSON parser takes a fast way that may miss the nearest float: the digits, as far as they
    fit into 64 bits, times or over a power of ten.

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


def _text(schema: Json, key: str) -> str | None:
    value = schema.get(key) if isinstance(schema, dict) else None
    return value if isinstance(value, str) else None


def _texts(values: list[Json]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def _list(schema: Json, key: str) -> list[Json]:
    value = schema.get(key) if isinstance(schema, dict) else None
    return value if isinstance(value, list) else []


def _properties(schema: Json) -> dict[str, Json]:
    value = schema.get("properties")
    return value if isinstance(value, dict) else {}


def _items(schema: Json) -> list[Json]:
    """The schemas of the items of an array, whether each place has its own or not."""
    places = _list(schema, "prefixItems") or _list(schema, "items")
    return places or ([schema["items"]] if isinstance(schema.get("items"), dict) else [])


def _entries(schema: Json) -> Json:
    """The schema of additional properties, if any are spoken of and allowed."""
    others = schema.get("additionalProperties")
    return {} if others is True else others if isinstance(others, dict) else None


def _has_structure(schema: Json) -> bool:
    return any(map(schema.get, _STRUCTURE)) or _entries(schema) is not None


# --- As the wheels print it ---------------------------------------------------------------------

_NAMES = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean"}
_ANY_ARRAY = "Array<any>"


@attrs.frozen
class _ReferencePrinter:
    exponent_sign: str
    place: str

    def bare(self, text: str) -> str:
        return bare(text, self.place)

    def comment(self, text: str) -> str:
        return comment(text, self.place)

    def type_of(self, schema: Json, indent: str) -> str:
        if not isinstance(schema, dict):
            return "any"
        if isinstance(schema.get("oneOf"), list):
            return "".join(self.variant(each, indent) for each in schema["oneOf"])
        kind = schema.get("type")
        if isinstance(kind, list):
            names = ["number" if name == "integer" else name for name in _texts(kind)]
            return " | ".join(map(self.bare, names)) if names else "any"
        if kind == "object":
            return self.object_type(schema, indent)
        if kind == "array":
            return self.type_of(schema["items"], indent) + "[]" if "items" in schema else _ANY_ARRAY
        if kind == "string" and (values := _texts(_list(schema, "enum"))):
            return self.choice(values)
        return _NAMES.get(kind, "any") if isinstance(kind, str) else "any"

    def choice(self, values: list[str]) -> str:
        printed = " | ".join(f'"{value}"' for value in values)
        # Quotes keep a value apart, unless there are others in it, or it ends its line.
        is_sound = not any(
            '"' in value or value.endswith("\\") or _LINE_BREAK.search(value) for value in values
        )
        return printed if is_sound else self.bare(printed)

    def object_type(self, schema: Json, indent: str) -> str:
        description = _text(schema, "description")
        comment = ""
        if description is not None:
            comment = f"{indent}// {self.comment(description)}\n"
        required = _list(schema, "required")
        properties = "".join(
            self.property(self.bare(name) + ("" if name in required else "?"), value, indent)
            for name, value in _properties(schema).items()
        )
        return f"{comment}{{\n{properties}{indent}}}"

    def variant(self, schema: Json, indent: str) -> str:
        """One type of a union that is not that of a property."""
        printed = self.nullable_type_of(schema, indent + _VARIANT_INDENT)
        note = self.note([_text(schema, "description"), self.default(schema, in_property=False)])
        return f"\n{indent} | {printed}{note}"

    def note(self, texts: list[str | None]) -> str:
        return self.comment(_note(texts))

    def nullable_type_of(self, schema: Json, indent: str) -> str:
        printed = self.type_of(schema, indent)
        # Any mention of null will do, also one in a comment.
        is_nullable = isinstance(schema, dict) and schema.get("nullable") is True
        return f"{printed} | null" if is_nullable and "null" not in printed else printed

    def default(self, schema: Json, *, in_property: bool) -> str | None:
        """The default; a text is not escaped, unless an enumeration has it outside a property."""
        if not isinstance(schema, dict) or "default" not in schema:
            return None
        value = schema["default"]
        is_choice = bool(_list(schema, "enum"))
        if isinstance(value, str) and is_choice <= in_property:
            return f"default: {value}" if is_choice else f'default: "{value}"'
        numbers = partial(reference_number_text, exponent_sign=self.exponent_sign)
        return f"default: {json_text(value, numbers)}"

    def property(self, label: str, schema: Json, indent: str) -> str:
        schema = schema if isinstance(schema, dict) else {}
        comments = "".join(f"{indent}{self.comment(line)}\n" for line in self.comments(schema))
        if isinstance(schema.get("oneOf"), list):
            return comments + self.union_property(label, schema, indent)
        printed = self.nullable_type_of(schema, indent + _PROPERTY_INDENT)
        # A `oneOf` that is no list hides the default all the same.
        note = "" if "oneOf" in schema else self.note([self.default(schema, in_property=True)])
        return f"{comments}{indent}{label}: {printed},{note}\n"

    def comments(self, schema: Json) -> Iterator[str]:
        if (title := _text(schema, "title")) is not None:
            yield from (f"// {title}", "//")
        description = _text(schema, "description")
        if description is not None and "oneOf" not in schema:
            yield f"// {description}"
        if examples := _list(schema, "examples"):
            yield "// Examples:"
            yield from (f'// - "{example}"' for example in _texts(examples))
        variants = schema.get("oneOf")
        if isinstance(variants, list):
            first = variants[0] if variants and isinstance(variants[0], dict) else {}
            if description is not None and description != _text(first, "description"):
                yield f"// {description}"
            if (default := self.default(schema, in_property=True)) is not None:
                yield f"// {default}"

    def union_property(self, label: str, schema: Json, indent: str) -> str:
        lines = [f"{indent}{label}:"]
        own = _text(schema, "description")
        for number, variant in enumerate(schema["oneOf"]):
            printed = self.nullable_type_of(variant, indent + _VARIANT_INDENT)
            description = _text(variant, "description")
            # The first variant of a property that has a description is never described.
            is_known = own is not None and (number == 0 or description == own)
            note = self.note(
                [None if is_known else description, self.default(variant, in_property=True)]
            )
            lines.append(f"{indent} | {printed}{note}")
        return "".join(f"{line}\n" for line in [*lines, f"{indent},"])


# --- What the schema says -----------------------------------------------------------------------

# Expansions of references in one schema, after which they become `any`: definitions that name each
# other twice could else fill any memory.
_MAX_EXPANSIONS = 1000

# The label of all properties that have none of their own.
_ENTRY = "[key: string]"
# An object of which no field is known: as parameters, there are none.
_NO_FIELDS = "{\n}"
_COMBINERS = ("$ref", "oneOf", "anyOf", "allOf")
_STRUCTURE = ("properties", "items", "prefixItems")
_NO_DEFAULT = object()
# How strongly a printed type holds together: `a | b`, `a & b`, all else.
_UNION, _INTERSECTION, _ATOM = range(3)
# With one of these, a schema is more than a union.
_NO_UNION = ("enum", "const", "$ref", "allOf")


@attrs.frozen
class _Type:
    text: str
    strength: int = _ATOM
    admits_null: bool = False

    def within(self, strength: int) -> str:
        """The text, in brackets if what stands around it would tear it apart."""
        return self.text if self.strength >= strength else f"({self.text})"


_ANY = _Type("any")
_NULL = _Type("null", admits_null=True)


def _union_of(types: list[_Type]) -> _Type:
    if all(each.text == "any" for each in types):
        return _ANY
    if len(types) == 1:
        return types[0]
    text = " | ".join(each.text for each in types)
    return _Type(text, _UNION, any(each.admits_null for each in types))


class _CorrectPrinter:
    """Prints one tool.

    Types stand inline, as the model knows them. Only a definition that refers to itself, or one
    that is used more than once and refers to others, becomes a type of its own below the tool's.
    """

    def __init__(self, tool: str, root: Json, taken: Iterable[str]) -> None:
        self.tool = tool
        self.root = root
        self.taken = [tool, *taken]
        self.uses = Counter(_references(root))
        self.expansions = 0
        # Schemas, properties and arrays within each other: references make many of few.
        self.depth = 0
        self.names: dict[str, str] = {}
        # The definitions that are being printed, and whether a property or an array has been
        # entered since the declaration began: only there can a type name itself.
        self.active: set[str] = set()
        self.is_inside = False

    def declaration(self, description: str) -> str:
        printed = self.root_type()
        # In the wheels' place, between `_:` and the type, the description of the parameters is
        # easily taken for a part of the type.
        texts = dict.fromkeys([description, *self.descriptions(self.root)])
        comments = [line for text in texts if text for line in comment_lines(text)]
        argument = "" if printed == _NO_FIELDS else f"_: {printed}"
        blocks = ["\n".join([*comments, f"type {self.tool} = ({argument}) => any;"])]
        declared: set[str] = set()
        while waiting := [reference for reference in self.names if reference not in declared]:
            declared.add(waiting[0])
            blocks.append(self.named_declaration(waiting[0]))
        return "\n\n".join(blocks)

    def root_type(self) -> str:
        if not self.written_below(self.root):
            return self.type_of(self.root, "").text
        lines = self.below(self.root, "", None, bare=False)
        is_open = "//" in lines[-1]  # a comment must not swallow what follows
        return "\n".join(["", *lines]) + ("\n" if is_open else "")

    def named_declaration(self, reference: str) -> str:
        target = self.resolve(reference)
        comments = [line for text in self.descriptions(target) for line in comment_lines(text)]
        self.active = {reference}
        printed = self.type_of(target, "").text
        self.active = set()
        return "\n".join([*comments, f"type {self.names[reference]} = {printed};"])

    # -- types ------------------------------------------------------------------------------------

    def type_of(self, schema: Json, indent: str) -> _Type:
        if not isinstance(schema, dict):
            return _Type("never") if schema is False else _ANY
        with self.level():
            parts = [part for part in self.parts(schema, indent) if part.text != "any"]
            if len(parts) > 1:
                text = " & ".join(part.within(_INTERSECTION) for part in parts)
                printed = _Type(text, _INTERSECTION, all(part.admits_null for part in parts))
            else:
                printed = parts[0] if parts else self.plain(schema, indent)
        if schema.get("nullable") is True and not printed.admits_null:
            return _Type(f"{printed.text} | null", _UNION, admits_null=True)
        return printed

    @contextmanager
    def level(self) -> Iterator[None]:
        """One level deeper."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise NestingError
        yield
        self.depth -= 1

    def parts(self, schema: Json, indent: str) -> Iterator[_Type]:
        """What the schema demands, all of it at once. A bare `type` beside others adds nothing."""
        if "const" in schema or _list(schema, "enum"):
            yield self.literals(_choices(schema))
        elif not any(key in schema for key in _COMBINERS) or _has_structure(schema):
            yield self.plain(schema, indent)
        if reference := _text(schema, "$ref"):
            yield self.referred(reference, indent)
        for key in ("oneOf", "anyOf"):
            if variants := _list(schema, key):
                yield self.union(variants, indent)
        yield from (self.type_of(each, indent) for each in _list(schema, "allOf"))

    def literals(self, values: list[Json]) -> _Type:
        return _union_of([_NULL if each is None else _Type(self.literal(each)) for each in values])

    def literal(self, value: Json) -> str:
        """The value as TypeScript: JSON, less what ends a line."""
        text = json_text(value, number_text)
        return _LINE_BREAK.sub(lambda found: f"\\u{ord(found[0]):04x}", text)

    def plain(self, schema: Json, indent: str) -> _Type:
        """What `type` says, with properties and items."""
        return _union_of([self.of_kind(kind, schema, indent) for kind in _kinds(schema)])

    def of_kind(self, kind: str, schema: Json, indent: str) -> _Type:
        if kind == "object":
            return self.object_type(schema, indent)
        if kind == "array":
            return self.array_type(schema, indent)
        return _NULL if kind == "null" else _Type(_NAMES.get(kind, "any"))

    def array_type(self, schema: Json, indent: str) -> _Type:
        places = _list(schema, "prefixItems") or _list(schema, "items")
        with self.inside():
            if places:
                return _Type(f"[{', '.join(self.type_of(each, indent).text for each in places)}]")
            if "items" not in schema:
                return _Type(_ANY_ARRAY)
            return _Type(f"{self.type_of(schema['items'], indent).within(_ATOM)}[]")

    def object_type(self, schema: Json, indent: str) -> _Type:
        required = _list(schema, "required")
        others = _entries(schema)
        with self.inside():
            fields = "".join(
                self.property(self.label(name) + ("" if name in required else "?"), value, indent)
                for name, value in _properties(schema).items()
            )
            entries = "" if others is None else self.property(_ENTRY, others, indent)
        # Within one type, the named properties have to be of the entries' type. What that is, is
        # read off what was printed: to print it twice at each level would take 2 ** depth.
        is_any = any(line.startswith(f"{indent}{_ENTRY}: any,") for line in entries.splitlines())
        if not fields or not entries or is_any:
            return _Type(f"{{\n{fields}{entries}{indent}}}")
        text = f"{{\n{fields}{indent}}} & {{\n{entries}{indent}}}"
        return _Type(text, _INTERSECTION)

    def label(self, name: str) -> str:
        return name if _is_identifier(name) else self.literal(name)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Within a property or an array."""
        outside, self.is_inside = self.is_inside, True
        with self.level():
            yield
        self.is_inside = outside

    # -- properties and unions --------------------------------------------------------------------

    def property(self, label: str, schema: Json, indent: str) -> str:
        record = schema if isinstance(schema, dict) else {}
        is_union = bool(self.written_below(record))
        lines = [f"{indent}{line}" for line in self.comments(record, is_union=is_union)]
        if is_union:
            below = self.below(record, indent, _text(record, "description"), bare=True)
            lines += [f"{indent}{label}:", *below, f"{indent},"]
        else:
            printed = self.type_of(schema, indent + _PROPERTY_INDENT).text
            lines.append(f"{indent}{label}: {printed},{_note([self.default(record, bare=True)])}")
        return "".join(f"{line}\n" for line in lines)

    def comments(self, schema: Json, *, is_union: bool) -> Iterator[str]:
        """What stands above a property; of a union the description stands below the examples."""
        descriptions = [line for text in self.descriptions(schema) for line in comment_lines(text)]
        if (title := _text(schema, "title")) is not None:
            yield from (*comment_lines(title), "//")
        if not is_union:
            yield from descriptions
        if examples := _list(schema, "examples"):
            yield "// Examples:"
            yield from (f"// - {self.literal(example)}" for example in examples)
        if is_union:
            yield from descriptions
            if default := self.default(schema, bare=True):
                yield f"// {default}"

    def written_below(self, schema: Json) -> list[Json]:
        """The variants of a property that is nothing but a union, if they stand line by line."""
        is_more = not isinstance(schema, dict) or any(map(schema.get, _NO_UNION))
        if is_more or _has_structure(schema):
            return []
        if variants := _list(schema, "oneOf"):
            return [] if "anyOf" in schema else variants
        variants = _list(schema, "anyOf")
        return variants if any(self.notes(each, None, bare=True) for each in variants) else []

    def below(self, schema: Json, indent: str, known: str | None, *, bare: bool) -> list[str]:
        """The variants of `written_below`, and null if it is one."""
        variants = self.written_below(schema)
        lines, admits_null = self.variant_lines(variants, indent, known, bare=bare)
        if schema.get("nullable") is True and not admits_null:
            lines.append(f"{indent} | null")
        return lines

    def union(self, variants: list[Json], indent: str) -> _Type:
        """A union within a type; in one line unless something is to be said of a variant."""
        if not any(self.notes(each, None, bare=False) for each in variants):
            return _union_of([self.type_of(each, indent) for each in variants])
        lines, admits_null = self.variant_lines(variants, indent, None, bare=False)
        return _Type("\n".join(["(", *lines, f"{indent})"]), _ATOM, admits_null)

    def variant_lines(
        self, variants: list[Json], indent: str, known: str | None, *, bare: bool
    ) -> tuple[list[str], bool]:
        """The variants line by line, and whether one of them is null."""
        types = [self.type_of(each, indent + _VARIANT_INDENT) for each in variants]
        lines: list[str] = []
        for variant, printed in zip(variants, types, strict=True):
            first, *more = self.notes(variant, known, bare=bare) or [""]
            lines.append(f"{indent} | {printed.text}{first and ' ' + first}")
            lines += [f"{indent}{_VARIANT_INDENT}{line}" for line in more]
        return lines, any(printed.admits_null for printed in types)

    def notes(self, variant: Json, known: str | None, *, bare: bool) -> list[str]:
        """Comments on a variant: its description, unless it is known, and its default."""
        texts = [text for text in self.descriptions(variant) if text != known]
        default = self.default(variant, bare=bare)
        texts += [default] if default else []
        return comment_lines(" ".join(texts)) if texts else []

    def descriptions(self, schema: Json, seen: set[str] | None = None) -> list[str]:
        """What is said of a schema, and of the items of an array."""
        seen = set() if seen is None else seen
        parts = list(self.all_of(schema, seen))
        own = (text for part in parts if (text := _text(part, "description")) is not None)
        texts = [*own][:1]
        for part in parts:
            for item in _items(part):
                texts += self.descriptions(item, seen)
        return list(dict.fromkeys(texts))

    def all_of(self, schema: Json, seen: set[str]) -> Iterator[dict[str, Json]]:
        """A schema, what it refers to, and the parts of its `allOf`: they hold together."""
        if not isinstance(schema, dict):
            return
        yield schema
        reference = _text(schema, "$ref")
        if reference and reference not in seen:
            seen.add(reference)
            yield from self.all_of(self.resolve(reference), seen)
        for each in _list(schema, "allOf"):
            yield from self.all_of(each, seen)

    def default(self, schema: Json, *, bare: bool) -> str | None:
        """The default; a text that is one of an enumeration stands without quotes if `bare`."""
        parts = list(self.all_of(schema, set()))
        value = next((part["default"] for part in parts if "default" in part), _NO_DEFAULT)
        if value is _NO_DEFAULT:
            return None
        is_word = isinstance(value, str) and not _LINE_BREAK.search(value)
        if bare and is_word and any(_list(part, "enum") for part in parts):
            return f"default: {value}"
        return f"default: {self.literal(value)}"

    # -- references -------------------------------------------------------------------------------

    def referred(self, reference: str, indent: str) -> _Type:
        target = self.resolve(reference)
        is_shared = self.uses[reference] > 1 and any(_references(target))
        if self.is_inside and (reference in self.active or is_shared):
            return _Type(self.name(reference))
        self.expansions += 1
        if reference in self.active or self.expansions > _MAX_EXPANSIONS:
            return _ANY
        self.active.add(reference)
        printed = self.type_of(target, indent)
        self.active.remove(reference)
        return printed

    def name(self, reference: str) -> str:
        if reference not in self.names:
            last = reference.rpartition("/")[2].lstrip("#") or "parameters"
            self.taken.append(tool_identifiers([*self.taken, f"{self.tool}_{last}"])[-1])
            self.names[reference] = self.taken[-1]
        return self.names[reference]

    def resolve(self, reference: str) -> Json:
        """What a reference within the schema, `#/$defs/NAME`, leads to."""
        start, *steps = reference.split("/")
        target = self.root
        try:
            if start != "#":
                raise KeyError(start)
            for step in steps:
                target = _step(target, unquote(step).replace("~1", "/").replace("~0", "~"))
        except (LookupError, ValueError, TypeError):
            reason = "leads nowhere; only references within the schema, #/..., can be followed"
            raise RenderReferenceError("$ref", reference, reason, tool=self.tool) from None
        return target


def _step(target: Json, key: str) -> Json:
    return target[int(key)] if isinstance(target, list) else target[key]


def _references(schema: Json) -> Iterator[str]:
    """All references in a schema, without following them."""
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += each.values()
            if reference := _text(each, "$ref"):
                yield reference
        elif isinstance(each, list):
            waiting += each


_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int, float),
    "number": (int, float),
    "boolean": (bool,),
    "null": (NoneType,),
    "object": (dict,),
    "array": (list,),
}


def _kinds(schema: Json) -> list[str]:
    """The types that a schema names; without any, what its other keys speak of."""
    kind = schema.get("type")
    if kind is not None:
        return _texts(kind) if isinstance(kind, list) else _texts([kind])
    if _properties(schema) or _entries(schema) is not None:
        return ["object"]
    return ["array"] if "items" in schema or "prefixItems" in schema else []


def _choices(schema: Json) -> list[Json]:
    """The values of `enum` or `const`, and null if any key admits it.

    OpenAI's guide to strict schemas makes an enumeration optional by its type alone:
    `"type": ["string", "null"], "enum": ["celsius"]`.
    """
    kinds = _kinds(schema)
    values = [schema["const"]] if "const" in schema else schema["enum"]
    types = {each for kind in kinds for each in _PYTHON_TYPES.get(kind, ())}
    # Values of another type can never be valid, unless it is the type that is wrong. null is meant.
    fitting = [value for value in values if type(value) in types]
    if types and fitting and "const" not in schema:
        values = [value for value in values if value is None or type(value) in types]
    return values if "null" not in kinds or None in values else [*values, None]
