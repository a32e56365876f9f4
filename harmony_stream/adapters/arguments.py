"""Whether the arguments of a tool call are the JSON that they should be: one answer for all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harmony_stream.adapters.routing import FUNCTIONS

if TYPE_CHECKING:
    from harmony_stream.header import Header

ARGUMENTS_NOT_JSON = "arguments_not_json"
"""Name of the problem, wherever it is reported."""

NOT_JSON = "the arguments of a tool call are not JSON"
"""The problem in words."""


def lack_json(header: Header, arguments: str) -> bool:
    """Return whether arguments are not the JSON that the call's header asks for.

    Calls whose type is `json` must be JSON, and calls of functions that name no type.

    >>> from harmony_stream.header import Header
    >>> from harmony_stream.messages import Role
    >>> lack_json(Header(Role.ASSISTANT, None, "commentary", "functions.f"), '{"a": ')
    True
    >>> lack_json(Header(Role.ASSISTANT, None, "analysis", "python", "code"), "1 +")
    False
    """
    return _should_be_json(header) and not _is_json(arguments)


def _should_be_json(header: Header) -> bool:
    if not header.is_tool_call:
        return False
    is_function = str(header.recipient).startswith(FUNCTIONS)
    return header.data_type == "json" or (header.data_type is None and is_function)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
