"""Where a message goes: by its recipient first, by its channel second, never by the channel alone.

gpt-oss makes tool calls on `analysis` too, and writes headers without a channel or with one that
the format guide does not know. What comes out of here is one `Route` for each message; what a
protocol makes of it is the adapters' own.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import attrs

from harmony_stream.adapters.names import bare_name, declared_name
from harmony_stream.values.events import FaultKind
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
    """What a message is to a client."""

    TEXT = "text"
    """What a person may see: an answer or a preamble."""
    REASONING = "reasoning"
    """The chain of thought."""
    FUNCTION = "function"
    """A call of a function, which the client makes."""
    CODE = "code"
    """A call of the built-in `python`."""
    WEB_SEARCH = "web_search"
    """A call of the built-in `browser`."""
    SERVER_TOOL = "server_tool"
    """A call of a tool in another namespace: `container.exec`."""
    RESULT = "result"
    """What a tool answered."""
    HIDDEN = "hidden"
    """Prompts: nothing of this turn."""


CALLS = (RouteKind.FUNCTION, RouteKind.CODE, RouteKind.WEB_SEARCH, RouteKind.SERVER_TOOL)

# The tools that the model knows by itself. Format guide, "Built in tools".
_BUILT_IN = {
    "python": RouteKind.CODE,
    "browser.search": RouteKind.WEB_SEARCH,
    "browser.open": RouteKind.WEB_SEARCH,
    "browser.find": RouteKind.WEB_SEARCH,
}


@attrs.frozen
class Route:
    """Where one message goes.

    Attributes:
        kind: what it is to a client.
        name: of the tool that is called, or that answers: `get_weather`, `browser.search`; for a
            `SERVER_TOOL` without its namespace.
        server: the namespace of a `SERVER_TOOL`.
    """

    kind: RouteKind
    name: str = ""
    server: str = ""

    @property
    def full_name(self) -> str:
        """The name with its namespace."""
        return f"{self.server}.{self.name}" if self.server else self.name


class Unlabelled(NamedTuple):
    """Where text goes that no known channel labels; such text is reported in any case.

    A bare answer must not vanish, so text without a channel is content. Text on an unknown channel
    is reasoning: not lost, and not shown as the answer.
    """

    without_channel: Destination = "content"
    on_unknown_channel: Destination = "reasoning"


_KIND_OF_PLACE = {"content": RouteKind.TEXT, "reasoning": RouteKind.REASONING}


def is_unlabelled(header: Header) -> bool:
    """Whether this is text of the assistant to which no channel gives a meaning.

    >>> from harmony_stream.values.header import Header
    >>> is_unlabelled(Header(Role.ASSISTANT)), is_unlabelled(Header(Role.ASSISTANT, None, "final"))
    (True, False)
    """
    # What is hidden even without any channel, such as a message to the model itself, stays so.
    return not header.is_known_channel and attrs.evolve(header, channel=None).is_visible


def route(
    header: Header, tools: Collection[str] = (), unlabelled: Unlabelled | None = None
) -> Route:
    """Where a message with this header goes.

    A call that names no tool goes where it would go without its recipient.

    Args:
        header: of the message.
        tools: names of the functions that the request declares.
        unlabelled: where text goes that no known channel labels.

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
        return Route(_KIND_OF_PLACE[places[header.channel is not None]])
    return Route(RouteKind.TEXT if header.is_visible else RouteKind.REASONING)


# Faults whose text is text of the stream; that of the others is fields of a header.
STRAY = (FaultKind.EXPECTED_START, FaultKind.UNPARSED_HEADER_TEXT, FaultKind.UNKNOWN_ROLE)

# The channel's name without its marker, and what is behind it.
_THOUGHT_IN_PLACE_OF_ROLE = re.compile(
    rf"^\s*(?:{re.escape(FormattingToken.START)})?\s*(?:assistant\s*)*(analysis\b.*)",
    re.IGNORECASE | re.DOTALL,
)


def stray_route(fault: Malformed, header: Header | None, unlabelled: Unlabelled) -> Route:
    """Where text outside of messages goes: where text without a channel goes.

    Words in a header behind the name of a channel that is hidden are hidden too, and so are those
    of a message that its recipient hides: they are most likely its text.

    Args:
        fault: with the text.
        header: of the message in whose header the text stands, if it stands in one.
        unlabelled: where text goes that no known channel labels.
    """
    if header is not None and route(header, (), unlabelled).kind is RouteKind.REASONING:
        is_behind_channel = fault.error.state != Section.ROLE
        if is_behind_channel or attrs.evolve(header, recipient=None).is_visible:
            return Route(RouteKind.REASONING)
    words, header_text = fault.text.split(), fault.error.header_text
    role_section, *sections = header_text.split(FormattingToken.CHANNEL)
    for section in _THOUGHT_IN_PLACE_OF_ROLE.findall(role_section) + sections:
        hidden = _hidden_in(section, unlabelled)
        is_cut = bool(hidden) and header_text.endswith("…")  # by who quoted it
        if is_cut or any(word in hidden for word in words):
            return Route(RouteKind.REASONING)
    return route(Header(Role.ASSISTANT), (), unlabelled)


def _hidden_in(section: str, unlabelled: Unlabelled) -> str:
    """What is hidden of a section: what is behind a hidden channel, or glued to a known one."""
    word, *behind = section.split(None, 1) or [""]
    channel = next(filter(word.lower().startswith, KNOWN_CHANNELS), None)
    found = route(Header(Role.ASSISTANT, None, channel or word), (), unlabelled)
    if found.kind is not RouteKind.REASONING:
        return ""
    return section if channel else "".join(behind)


def tool_route(recipient: str, tools: Collection[str] = ()) -> Route:
    """Which tool a recipient names. Declared names go before built-in ones, bare or prefixed.

    A name that is not declared as it stands is the declared one that it means, if there is one.

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
