"""The check that a tool call's arguments are the JSON that they should be, for all streams."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from harmony_stream.adapters.routing import CALLS, Route, RouteKind, route
from harmony_stream.support.json_text import loads

if TYPE_CHECKING:
    from collections.abc import Collection

    from harmony_stream.values.header import Header

ARGUMENTS_NOT_JSON = "arguments_not_json"
"""Name of the problem in all reports."""

NOT_JSON = "the arguments of a tool call are not JSON"
"""The problem in words."""


NO_ARGUMENTS = "{}"
"""Arguments that are sent for a complete call of a function without arguments."""


def lack_json(header: Header, arguments: str, tools: Collection[str] = ()) -> bool:
    """Return whether arguments are not the JSON that the call's header requires.

    Calls of type `json` must be JSON, and so must calls of functions without a type.

    >>> from harmony_stream.values.header import Header
    >>> from harmony_stream.values.messages import Role
    >>> lack_json(Header(Role.ASSISTANT, None, "commentary", "functions.f"), '{"a": ')
    True
    >>> lack_json(Header(Role.ASSISTANT, None, "analysis", "python", "code"), "1 +")
    False
    """
    return _should_be_json(header, frozenset(tools)) and not _is_json(arguments)


# Streams repeat their headers, and a route takes 8 us.
@lru_cache(maxsize=512)
def _should_be_json(header: Header, tools: frozenset[str]) -> bool:
    kind = route(header, tools).kind
    is_typeless_function = kind is RouteKind.FUNCTION and header.data_type is None
    return kind in CALLS and (_is_typed_json(header) or is_typeless_function)


def _is_typed_json(header: Header) -> bool:
    """Return whether the type is JSON, in any spelling."""
    return (header.data_type or "").casefold().removeprefix("application/") == "json"


def _is_json(text: str) -> bool:
    try:
        # JSON integers may have any length, but Python limits the digits that `int` reads.
        loads(text, parse_int=str, parse_constant=_refuse)
    except ValueError:
        return False
    return True


def _refuse(constant: str) -> None:
    """Refuse `NaN` and `Infinity`, which Python reads."""
    raise ValueError(f"{constant} is not JSON")


def lack_arguments(route: Route, header: Header, arguments: str) -> bool:
    """Return whether a call lacks the arguments that should be a JSON object.

    Code is exempt, since it is not JSON, and so are searches, which the server runs.

    >>> from harmony_stream.values.header import Header
    >>> from harmony_stream.values.messages import Role
    >>> lack_arguments(Route(RouteKind.FUNCTION, "f"), Header(Role.ASSISTANT), " ")
    True
    """
    takes_json = header.data_type is None or _is_typed_json(header)
    return route.kind in _OF_JSON and takes_json and not _seen(arguments)


def _seen(text: str) -> str:
    """Return the text without white space at its ends, and without U+200B and byte-order marks."""
    return text.replace("\u200b", "").replace("\ufeff", "").strip()


_OF_JSON = (RouteKind.FUNCTION, RouteKind.SERVER_TOOL)
