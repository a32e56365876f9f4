"""`harmony-stream tools`: shows tool schemas as the TypeScript that a model reads."""

from __future__ import annotations

import argparse
from typing import Any

from harmony_stream.commands.exit_status import ExitStatus
from harmony_stream.commands.inputs import CommandError, load_json, name_of
from harmony_stream.commands.render import add_profile
from harmony_stream.errors import RenderError
from harmony_stream.rendering.profiles import get_profile
from harmony_stream.rendering.sections import developer_text
from harmony_stream.support.value_kinds import plain_error
from harmony_stream.values.messages import DeveloperContent
from harmony_stream.values.tools import ToolDescription

_DESCRIPTION = """\
Show tool schemas as they appear in the developer message: as TypeScript.

SCHEMAS.json holds a list of tools, each {"name", "description", "parameters"}, bare or in the
envelopes of the Chat Completions and Responses APIs.
"""
_NOTES = """\
examples:
  harmony-stream tools examples/prompts/schemas.json
  harmony-stream tools --profile guide examples/prompts/schemas.json

exit status: 0; 2 if the file or a schema cannot be used, and nothing is shown.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    tools = commands.add_parser(
        "tools",
        help="show tool schemas as TypeScript",
        description=_DESCRIPTION,
        epilog=_NOTES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tools.add_argument("file", metavar="SCHEMAS.json", help="tool schemas; - for standard input")
    add_profile(tools)
    tools.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the tools and return the exit status."""
    value = load_json(arguments.file)
    listed = value if isinstance(value, list) else [value]
    try:
        tools = [_tool(number, each) for number, each in enumerate(listed)]
        _refuse_twice([tool.name for tool in tools])
        content = DeveloperContent.new().with_function_tools(tools)
        text = developer_text(content, get_profile(arguments.profile))
    except (ValueError, RenderError) as error:
        raise CommandError(f"{name_of(arguments.file)}: {error}") from error
    print(text)
    return ExitStatus.OK


def _refuse_twice(names: list[str]) -> None:
    for number, name in enumerate(names):
        if name in names[:number]:
            raise ValueError(f"tool {number}: the name {name!r} is not unique; give another")


# `strict` is not shown to a model; `type` belongs to the envelope of the Responses API.
_FIELDS = {"name", "description", "parameters", "strict", "type"}


def _tool(number: int, value: Any) -> ToolDescription:  # noqa: ANN401
    """Return a tool without its envelope; a missing description becomes an empty one."""
    inner = value.get("function", value) if isinstance(value, dict) else value
    if not isinstance(inner, dict):
        raise ValueError(f"tool {number}: expected an object with a name, found {inner!r}")
    kind = value.get("type", "function")
    if kind != "function":
        raise ValueError(
            f"tool {number}: type {kind!r} is not a function; only functions are shown"
        )
    if others := ", ".join(map(repr, sorted(inner.keys() - _FIELDS))):
        raise ValueError(
            f"tool {number}: no field for {others}; a tool has name, description and parameters"
        )
    fields = {
        name: each for name, each in inner.items() if name != "description" or each is not None
    }
    try:
        return ToolDescription.model_validate({"description": "", **fields})
    except ValueError as error:
        raise ValueError(f"tool {number}: {plain_error(error)}") from error
