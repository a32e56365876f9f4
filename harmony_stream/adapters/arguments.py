"""Whether the arguments of a tool call are the JSON that they should be: one answer for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harmony_stream.adapters.routing import CALLS, Route, RouteKind, route
from harmony_stream.support.json_text import loads

if TYPE_CHECKING:
    from collections.abc import Collection

    from harmony_stream.values.header import Header

ARGUMENTS_NOT_JSON = "arguments_not_json"
"""Name of the problem, wherever it is reported."""

NOT_JSON = "the arguments of a tool call are not JSON"
"""The problem in words."""


NO_ARGUMENTS = "{}"
"""What a complete call of a function says that says nothing."""


def lack_json(header: Header, arguments: str, tools: Collection[str] = ()) -> bool:
    """Return whether arguments are not the JSON that the call's header asks for.

    Calls whose type is `json` must be JSON, and calls of functions that name no type.

    >>> from harmony_stream.values.header import Header
    >>> from harmony_stream.values.messages import Role
    >>> lack_json(Header(Role.ASSISTANT, None, "commentary", "functions.f"), '{"a": ')
    True
    >>> lack_json(Header(Role.ASSISTANT, None, "analysis", "python", "code"), "1 +")
    False
    """
    return _should_be_json(header, tools) and not _is_json(arguments)


def _should_be_json(header: Header, tools: Collection[str]) -> bool:
    kind = route(header, tools).kind
    is_typeless_function = kind is RouteKind.FUNCTION and header.data_type is None
    return kind in CALLS and (_is_typed_json(header) or is_typeless_function)


def _is_typed_json(header: Header) -> bool:
    """Whether the type is JSON, however it is spelled."""
    return (header.data_type or "").casefold().removeprefix("application/") == "json"


def _is_json(text: str) -> bool:
    try:
        # Integers may be of any length, which Python's own are not.
        loads(text, parse_int=str, parse_constant=_refuse)
    except ValueError:
        return False
    return True


def _refuse(constant: str) -> None:
    """Refuse `NaN` and `Infinity`, which Python reads."""
    raise ValueError(f"{constant} is not JSON")


def lack_arguments(route: Route, header: Header, arguments: str) -> bool:
    """Return whether a call gives no arguments where an object should be.

    Code is not JSON, and searches are the server's own.

    >>> from harmony_stream.values.header import Header
    >>> from harmony_stream.values.messages import Role
    >>> lack_arguments(Route(RouteKind.FUNCTION, "f"), Header(Role.ASSISTANT), " ")
    True
    """
    takes_json = header.data_type is None or _is_typed_json(header)
    return route.kind in _OF_JSON and takes_json and not _seen(arguments)


def _seen(text: str) -> str:
    """What of a text takes room: U+200B and the byte-order mark do not, as white space."""
    return text.replace("\u200b", "").replace("\ufeff", "").strip()


_OF_JSON = (RouteKind.FUNCTION, RouteKind.SERVER_TOOL)
