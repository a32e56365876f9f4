"""JSON schema -> the TypeScript in which the model reads about its tools.

Format guide, "Defining available tools": a tool is ``type NAME = (_: { ... }) => any;`` under a
comment, or ``type NAME = () => any;`` if it has no parameters; descriptions of fields are comments
above them.

There are two printers. `as_the_wheels` prints what the wheels print, byte for byte, faults
included. `correct` keeps their layout, on which the model was trained. It corrects what is not
TypeScript and what differs from the schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harmony_stream.errors import RenderError
from harmony_stream.rendering.profiles import Profile, TypeScript
from harmony_stream.rendering.typescript.as_the_wheels import ReferencePrinter
from harmony_stream.rendering.typescript.correct import CorrectPrinter
from harmony_stream.rendering.typescript.text import description_lines, tool_identifiers
from harmony_stream.support.json_text import NestingError, dumps, loads

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harmony_stream.values.tools import ToolDescription

__all__ = ["tool_identifiers", "tool_type"]


def tool_type(
    tool: ToolDescription, profile: Profile, taken: Iterable[str] = (), place: str = "tool"
) -> str:
    """Return the declaration of one tool.

    Args:
        tool: the tool, whose name `harmony_stream.rendering.sections` has checked.
        profile: selects the printer.
        taken: the names of the other tools in its namespace.
        place: the place of the tool, for errors.

    Raises:
        RenderError: if a text would break out of its line, a reference has no target, or the schema
            is nested too deeply.

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
            return CorrectPrinter(tool.name, schema, taken).declaration(tool.description)
        printed = "()"
        if schema is not None:
            printer = ReferencePrinter(profile.exponent_sign, f"{place}.parameters")
            printed = f"(_: {printer.type_of(schema, '')})"
    except (NestingError, RecursionError):  # the latter if the caller's stack is deep
        raise RenderError("parameters of tool", tool.name, f"are {NestingError()}") from None
    comments = description_lines(tool.description, profile, f"{place}.description")
    return "\n".join([*comments, f"type {tool.name} = {printed} => any;"])
