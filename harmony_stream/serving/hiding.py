"""Hidden reasoning: what clients are shown of the parser's events, and what is kept of a response.

The streams of `harmony_stream.adapters` leave reasoning out themselves. Two things remain: the
events at `/events`, and the items of a response, which later prompts need with their reasoning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from harmony_stream.adapters.routing import CALLS, Kind, route
from harmony_stream.adapters.turn import closing
from harmony_stream.parsing.events import ContentDelta, Event, Malformed, MessageEnd

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from harmony_stream.adapters import Chunk

_SHOWN = (Kind.TEXT, *CALLS)


def shown(event: Event) -> Chunk | None:
    """The event for a client that may not see reasoning; None if it is not for that client.

    A client sees what the other addresses show: answers, preambles and calls. Nobody can say
    whether the words of a fault are reasoning, so a fault keeps its kind and its place only.

    >>> from harmony_stream import Header, MessageStart, Role
    >>> shown(MessageStart(Header(Role.ASSISTANT, None, "analysis"), 0, 0, 3)) is None
    True
    """
    if isinstance(event, Malformed):
        return _without_words(event)
    return event.to_dict() if route(event.header).kind in _SHOWN else None


def _without_words(event: Malformed) -> Chunk:
    found = event.to_dict()
    kind, position = event.error.kind.value, event.error.position
    message = f"{kind} at position {position}; its words are hidden, as reasoning is"
    words = {"token": None, "token_text": "", "header_text": "", "message": message}
    return {**found, "text": "", "error": {**found["error"], **words}}


@attrs.define
class Output:
    """The output items of a response, in order, hidden reasoning included.

    Attributes:
        items: the items so far.
    """

    items: list[Chunk] = attrs.field(factory=list)
    _texts: list[str] = attrs.field(factory=list)

    def add(self, chunk: Chunk) -> None:
        """Take a chunk of the response: an item that is finished is kept."""
        if chunk["type"] == "response.output_item.done":
            self.items.append(chunk["item"])

    async def with_reasoning(self, events: AsyncGenerator[Event]) -> AsyncGenerator[Event]:
        """The events; their reasoning becomes items, as it would if it were not hidden."""
        async with closing(events):
            async for event in events:
                self._take(event)
                yield event

    def _take(self, event: Event) -> None:
        if isinstance(event, Malformed) or route(event.header).kind is not Kind.REASONING:
            return
        if isinstance(event, ContentDelta):
            self._texts.append(event.text)
        elif isinstance(event, MessageEnd):
            part = {"type": "reasoning_text", "text": "".join(self._texts)}
            self.items.append({"type": "reasoning", "summary": [], "content": [part]})
            self._texts = []
