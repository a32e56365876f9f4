"""Routes of messages: by recipient first, by channel second, never by the channel alone.

gpt-oss makes tool calls on `analysis` too, and writes headers without a channel or with one that
the format guide does not define. This module gives each message one `Route`, which each adapter
expresses in its protocol.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs

from harmony_stream.adapters.names import bare_name, declared_name
from harmony_stream.values.faults import FaultKind
from harmony_stream.values.header import KNOWN_CHANNELS, Header
from harmony_stream.values.header_words import Section
from harmony_stream.values.messages import Role
from harmony_stream.values.tools import FUNCTIONS
from harmony_stream.vocabulary import FormattingToken

if TYPE_CHECKING:
    from collections.abc import Collection

    from harmony_stream.values.events import Malformed

Destination: TypeAlias = Literal["content", "reasoning"]


class RouteKind(Enum):
    """The kind of a message, as a client sees it."""

    TEXT = "text"
    """Visible text, which is an answer or a preamble."""
    REASONING = "reasoning"
    """Reasoning."""
    FUNCTION = "function"
    """A call of a function, which the client makes."""
    CODE = "code"
    """A call of the built-in `python`."""
    WEB_SEARCH = "web_search"
    """A call of the built-in `browser`."""
    SERVER_TOOL = "server_tool"
    """A call of a tool in another namespace, such as `container.exec`."""
    RESULT = "result"
    """A tool result."""
    HIDDEN = "hidden"
    """A message of the prompt, which does not belong to this turn."""


CALLS = (RouteKind.FUNCTION, RouteKind.CODE, RouteKind.WEB_SEARCH, RouteKind.SERVER_TOOL)

# The tools that the model was trained with. Format guide, "Built in tools".
_BUILT_IN = {
    "python": RouteKind.CODE,
    "browser.search": RouteKind.WEB_SEARCH,
    "browser.open": RouteKind.WEB_SEARCH,
    "browser.find": RouteKind.WEB_SEARCH,
}


@attrs.frozen
class Route:
    """The route of one message.

    Attributes:
        kind: the kind of message for a client.
        name: the name of the tool that is called, or whose result it is: `get_weather`,
            `browser.search`. The name of a `SERVER_TOOL` is without its namespace.
        server: the namespace of a `SERVER_TOOL`.
    """

    kind: RouteKind
    name: str = ""
    server: str = ""

    @property
    def full_name(self) -> str:
        """The name with its namespace."""
        return f"{self.server}.{self.name}" if self.server else self.name


_KIND_OF_PLACE = {"content": RouteKind.TEXT, "reasoning": RouteKind.REASONING}
_PLACE = attrs.validators.in_(tuple(_KIND_OF_PLACE))


@attrs.frozen
class Unlabelled:
    """The destination of text without a known channel, which is always reported too.

    A bare answer must not vanish, so text without a channel is content. Text on an unknown channel
    is reasoning, so that it is neither lost nor shown as the answer.

    Raises:
        ValueError: a destination is neither `content` nor `reasoning`.
    """

    without_channel: Destination = attrs.field(default="content", validator=_PLACE)
    on_unknown_channel: Destination = attrs.field(default="reasoning", validator=_PLACE)


def is_unlabelled(header: Header) -> bool:
    """Return whether this is text of the assistant without a known channel.

    >>> from harmony_stream.values.header import Header
    >>> is_unlabelled(Header(Role.ASSISTANT)), is_unlabelled(Header(Role.ASSISTANT, None, "final"))
    (True, False)
    """
    # A message that is hidden even without a channel, such as one to the model itself, stays
    # hidden.
    return not header.is_known_channel and attrs.evolve(header, channel=None).is_visible


def route(
    header: Header, tools: Collection[str] = (), unlabelled: Unlabelled | None = None
) -> Route:
    """Return the route of a message with this header.

    A call that does not name a tool is routed as if it had no recipient.

    Args:
        header: the message's header.
        tools: names of the functions that the request declares.
        unlabelled: the destination of text without a known channel.

    >>> from harmony_stream.values.header import Header
    >>> route(Header(Role.ASSISTANT, None, "analysis", "functions.get_weather"))
    Route(kind=<RouteKind.FUNCTION: 'function'>, name='get_weather', server='')
    >>> route(Header(Role.ASSISTANT, None, "analysis")).kind
    <RouteKind.REASONING: 'reasoning'>
    """
    if header.role is Role.TOOL:
        return Route(RouteKind.RESULT, tool_route(header.name or "", tools).full_name)
    if header.role is not Role.ASSISTANT:
        return Route(RouteKind.HIDDEN)
    recipient = header.recipient
    if recipient is not None and (recipient in tools or header.is_tool_call):
        if recipient in tools or bare_name(recipient):
            return tool_route(recipient, tools)
        header = attrs.evolve(header, recipient=None)
    if is_unlabelled(header):
        places = unlabelled or Unlabelled()
        is_bare = header.channel is None
        place = places.without_channel if is_bare else places.on_unknown_channel
        return Route(_KIND_OF_PLACE[place])
    return Route(RouteKind.TEXT if header.is_visible else RouteKind.REASONING)


# Faults whose text is text of the stream. The text of other faults is fields of a header.
STRAY = (FaultKind.EXPECTED_START, FaultKind.UNPARSED_HEADER_TEXT, FaultKind.UNKNOWN_ROLE)

# The channel's name without its marker, and the text after it.
_REASONING_IN_PLACE_OF_ROLE = re.compile(
    rf"^\s*(?:{re.escape(FormattingToken.START)})?\s*(?:assistant\s*)*(analysis\b.*)",
    re.IGNORECASE | re.DOTALL,
)


def stray_route(fault: Malformed, header: Header | None, unlabelled: Unlabelled) -> Route:
    """Return the route of text outside of messages, which is that of text without a channel.

    Words in a header after the name of a hidden channel are hidden too. So are words in the header
    of a message that its recipient hides. They are most likely the message's text.

    Args:
        fault: the fault that holds the text.
        header: the header that contains the text, if one does.
        unlabelled: the destination of text without a known channel.
    """
    if header is not None and route(header, (), unlabelled).kind is RouteKind.REASONING:
        is_behind_channel = fault.error.state != Section.ROLE
        if is_behind_channel or attrs.evolve(header, recipient=None).is_visible:
            return Route(RouteKind.REASONING)
    words, header_text = fault.text.split(), fault.error.header_text
    role_section, *sections = header_text.split(FormattingToken.CHANNEL)
    for section in _REASONING_IN_PLACE_OF_ROLE.findall(role_section) + sections:
        hidden = _hidden_in(section, unlabelled)
        is_cut = bool(hidden) and header_text.endswith("…")  # cut by the error that quotes it
        if is_cut or any(word in hidden for word in words):
            return Route(RouteKind.REASONING)
    return route(Header(Role.ASSISTANT), (), unlabelled)


def _hidden_in(section: str, unlabelled: Unlabelled) -> str:
    """Return the text of a section that is hidden.

    It is the text after a hidden channel, or the word that is glued to a known one.
    """
    word, *behind = section.split(None, 1) or [""]
    channel = next(filter(word.lower().startswith, KNOWN_CHANNELS), None)
    found = route(Header(Role.ASSISTANT, None, channel or word), (), unlabelled)
    if found.kind is not RouteKind.REASONING:
        return ""
    return section if channel else "".join(behind)


def tool_route(recipient: str, tools: Collection[str] = ()) -> Route:
    """Return the route of the tool that a recipient names.

    Declared names, bare or prefixed, take precedence over built-in ones. A name that is not
    declared as it is written is resolved to the declared name that it means, if there is one.

    >>> tool_route("python").kind.name, tool_route("python", {"python"}).kind.name
    ('CODE', 'FUNCTION')
    >>> tool_route("container.exec")
    Route(kind=<RouteKind.SERVER_TOOL: 'server_tool'>, name='exec', server='container')
    >>> tool_route("functions.shelljson", {"shell"}).name
    'shell'
    """
    if recipient in tools:
        return Route(RouteKind.FUNCTION, recipient)
    name = recipient.removeprefix(f"{FUNCTIONS}.")
    if name in tools:
        return Route(RouteKind.FUNCTION, name)
    if kind := _BUILT_IN.get(recipient):
        return Route(kind, recipient)
    if declared := declared_name(recipient, tools):
        return Route(RouteKind.FUNCTION, declared)
    if name and name != recipient:
        return Route(RouteKind.FUNCTION, name)
    server, _, tool = recipient.partition(".")
    if server and tool:
        return Route(RouteKind.SERVER_TOOL, tool, server)
    return Route(RouteKind.FUNCTION, recipient)
