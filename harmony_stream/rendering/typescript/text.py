"""The texts inside a declaration: names, literals and comments.

Names, descriptions and values come from whoever declares a tool. Such a text must not end its
comment or its declaration, or it could inject prompt text. The correct layout marks each line of a
comment and quotes the rest. The layout of the wheels prints some texts as they are, so a text that
would break out is an error (`contained`).
"""

from __future__ import annotations

import json
import re
from itertools import accumulate, chain, count
from typing import TYPE_CHECKING

from harmony_stream.errors import RenderError
from harmony_stream.rendering.profiles import Profile, TypeScript

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harmony_stream.rendering.typescript.schema import Json

# The TypeScript name of each type of JSON schema that has one.
TYPE_NAMES = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean"}
ANY_ARRAY = "Array<any>"

# One level of nesting: of an object in a property, of a variant in a union.
PROPERTY_INDENT = "    "
VARIANT_INDENT = "   "

# --- Names --------------------------------------------------------------------------------------


def tool_identifiers(names: Iterable[str]) -> list[str]:
    """Return one identifier for each tool, for tools whose own names are not identifiers.

    Tools of MCP servers often have such names. The model sees and calls tools by the identifiers,
    and the caller maps them back. No two are equal. Nothing in this library renames a tool by
    itself.

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
    kept = "".join(character for character in joined if is_identifier(f"a{character}"))
    if not kept:
        return "unnamed"
    return kept if is_identifier(kept) else f"_{kept}"


def is_identifier(name: str) -> bool:
    """Return True if TypeScript accepts the name without quotes."""
    return name.replace("$", "_").isidentifier()


# --- Comments -----------------------------------------------------------------------------------

# Everything that ends a line for any reader of the text.
LINE_BREAK = re.compile("\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")


def lines_of(text: str) -> list[str]:
    r"""Return the lines as the wheels split them: at ``\n`` or ``\r\n``. An empty text has none.

    >>> lines_of("a\r\nb\rc\n")
    ['a', 'b\rc']
    """
    *ended, last = text.split("\n")
    return [line.removesuffix("\r") for line in ended] + ([last] if last else [])


def comment_lines(text: str) -> list[str]:
    """Return the text as comments, split wherever a line ends in TypeScript."""
    return [f"// {line}" for line in LINE_BREAK.split(text.rstrip("\r\n"))]


def description_lines(text: str, profile: Profile, place: str) -> list[str]:
    """Return a description as comments, for the lines above what it describes.

    Raises:
        RenderError: if the profile prints texts unchanged, and this one would break out of its
            comment.
    """
    if profile.typescript is TypeScript.CORRECT:
        return comment_lines(text) if text else []
    return [f"// {contained_comment(line, place)}" for line in lines_of(text)]


def note_of(texts: list[str | None]) -> str:
    """Return the comment at the end of the line of a type, empty without texts."""
    given = [text for text in texts if text is not None]
    return f" // {' '.join(given)}" if given else ""


# --- Containment --------------------------------------------------------------------------------

# Outside of comments and quotes, a text must not look like the end of a declaration, another
# declaration, or the head of another section.
_FORGERY = re.compile(
    r"=>\s*any|//\s*namespace|^\s*# (?:Instructions|Tools|Response Formats|Valid channels)\b",
    re.MULTILINE,
)


def contained(text: str, place: str) -> str:
    """Return a text that is printed unchanged, if it cannot break out of its declaration.

    Raises:
        RenderError: if it would break out. Such a text closes a brace that it has not opened, or
            looks like a declaration or the head of a section.
    """
    return _contained(text, text, place)


def contained_comment(text: str, place: str) -> str:
    """Return a text that begins in a comment, if the lines after its first are contained.

    Raises:
        RenderError: if it would break out.
    """
    found = LINE_BREAK.search(text)
    return text if found is None else _contained(text, text[found.end() :], place)


def _contained(text: str, outside: str, place: str) -> str:
    depths = accumulate(1 if brace == "{" else -1 for brace in re.findall("[{}]", text))
    is_closing = "}" in outside and min(depths) < 0
    if is_closing or _FORGERY.search("\n".join(LINE_BREAK.split(outside))):
        reason = "would break out of its declaration in this layout; profile 'guide' can write it"
        raise RenderError(place, text, reason)
    return text


# --- Literals -----------------------------------------------------------------------------------


def json_text(value: Json, number_text: Callable[[int | float], str]) -> str:
    """Return the value as compact JSON, with numbers written by `number_text`.

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
    """Return the number in the fewest digits that identify it, laid out as the wheels do."""
    mantissa, _, exponent = repr(value).partition("e")
    if exponent == "-05":  # Python begins to write exponents one digit earlier
        digits = len(mantissa.lstrip("-").replace(".", ""))
        return f"{value:.{4 + digits}f}"
    if exponent:
        return f"{mantissa}e{exponent_sign if int(exponent) > 0 else ''}{int(exponent)}"
    return mantissa
