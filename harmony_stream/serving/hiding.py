"""Hidden reasoning: what a client is shown of the parser's events, and of a response.

The stream of Chat Completions leaves reasoning out by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import attrs

from harmony_stream.adapters.routing import CALLS, RouteKind, route
from harmony_stream.support.closing import closing
from harmony_stream.values.events import Event, Malformed, MessageStart
from harmony_stream.values.header import USUAL_TYPES

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from harmony_stream.adapters import Chunk
    from harmony_stream.values.header import Header

_Thing = TypeVar("_Thing")

_SHOWN = (RouteKind.TEXT, *CALLS)


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
    if route(event.header).kind not in _SHOWN:
        return None
    if isinstance(event, MessageStart):
        event = attrs.evolve(event, header=_without_words_of_thought(event.header))
    return event.to_dict()


def _without_words_of_thought(header: Header) -> Header:
    """The header without a channel or a type that may be words of a thought.

    A thought whose `<|message|>` is missing ends up in the header that comes next.
    """
    channel = header.channel if header.is_known_channel else None
    is_usual = header.data_type in USUAL_TYPES
    return attrs.evolve(
        header, channel=channel, content_type=header.content_type if is_usual else None
    )


def _without_words(event: Malformed) -> Chunk:
    found = event.to_dict()
    kind, position = event.error.kind.value, event.error.position
    message = f"{kind} at position {position}; its words are hidden, as reasoning is"
    words = {"token": None, "token_text": "", "header_text": "", "message": message}
    return {**found, "text": "", "error": {**found["error"], **words}}


@attrs.define
class ResponseWithoutReasoning:
    """The chunks of a response for a client that may not see reasoning, one after the other.

    The stream itself could leave the items out, but then nobody would have them for the next
    prompt.
    """

    _hidden: set[str] = attrs.field(factory=set)
    _sequence_number: int = 0

    def shown(self, chunk: Chunk) -> Chunk | None:
        """The chunk as the client sees it; None if it is not for that client."""
        if _is_reasoning(chunk.get("item", {})):
            self._hidden.add(chunk["item"]["id"])
            return None
        if chunk.get("item_id") in self._hidden:
            return None
        found = {**chunk, "sequence_number": self._sequence_number}
        self._sequence_number += 1
        if "output_index" in chunk:  # one item follows the other
            found["output_index"] -= len(self._hidden)
        if "response" in chunk:
            output = [item for item in chunk["response"]["output"] if not _is_reasoning(item)]
            found["response"] = {**chunk["response"], "output": output}
        return found


def _is_reasoning(item: Chunk) -> bool:
    return item.get("type") == "reasoning"


async def visible(
    things: AsyncIterator[_Thing], show: Callable[[_Thing], Chunk | None]
) -> AsyncGenerator[Chunk]:
    """What a client is shown of events or chunks; they are closed with the generator."""
    async with closing(things):
        async for thing in things:
            if (chunk := show(thing)) is not None:
                yield chunk
