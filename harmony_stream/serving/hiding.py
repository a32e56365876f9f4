"""Hidden reasoning: the events and the parts of a response that a client may see.

The stream of Chat Completions leaves reasoning out by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from harmony_stream.adapters.routing import CALLS, RouteKind, route
from harmony_stream.values.events import Event, Malformed, MessageStart
from harmony_stream.values.header import USUAL_TYPES

if TYPE_CHECKING:
    from harmony_stream.adapters import Chunk, ResponseStream
    from harmony_stream.adapters.options import Reason, Usage
    from harmony_stream.adapters.sse import Framing
    from harmony_stream.values.header import Header

_SHOWN = (RouteKind.TEXT, *CALLS)


def shown(event: Event) -> Chunk | None:
    """Return the event for a client that may not see reasoning, or None if it is hidden.

    A client sees the same as from the other routes: answers, preambles and calls. The text of a
    fault may be reasoning, so only the fault's kind and position are kept.

    >>> from harmony_stream import Header, MessageStart, Role
    >>> shown(MessageStart(Header(Role.ASSISTANT, None, "analysis"), 0, 0, 3)) is None
    True
    """
    if isinstance(event, Malformed):
        return _without_words(event)
    if route(event.header).kind not in _SHOWN:
        return None
    if isinstance(event, MessageStart):
        event = attrs.evolve(event, header=_without_reasoning_words(event.header))
    return event.to_dict()


def _without_reasoning_words(header: Header) -> Header:
    """Return the header without a channel or a type that may be words of reasoning.

    Reasoning whose `<|message|>` is missing ends up in the next header.
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
    """Filter of a response's chunks for a client that may not see reasoning.

    The stream itself could leave the items out, but then they would be missing in the next prompt.
    """

    _hidden: set[str] = attrs.field(factory=set)
    _sequence_number: int = 0

    def shown(self, chunk: Chunk) -> Chunk | None:
        """Return the chunk as the client sees it, or None if it is hidden."""
        if _is_reasoning(chunk.get("item", {})):
            self._hidden.add(chunk["item"]["id"])
            return None
        if chunk.get("item_id") in self._hidden:
            return None
        found = {**chunk, "sequence_number": self._sequence_number}
        self._sequence_number += 1
        if "output_index" in chunk:  # items do not overlap
            found["output_index"] -= len(self._hidden)
        if "response" in chunk:
            found["response"] = without_reasoning([chunk])
        return found


def without_reasoning(chunks: list[Chunk]) -> Chunk:
    """Return the response in the last of these chunks as the client sees it."""
    response = chunks[-1]["response"]
    output = [item for item in response["output"] if not _is_reasoning(item)]
    return {**response, "output": output}


def _is_reasoning(item: Chunk) -> bool:
    return item.get("type") == "reasoning"


class WriterWithoutReasoning:
    """Writes the frames of a response for a client that may not see reasoning.

    Each chunk is made, filtered and encoded, since numbers of chunks and items change. This takes
    as long as it did before there were faster writers.
    """

    def __init__(self, stream: ResponseStream, framing: Framing) -> None:
        self._stream = stream
        self._framing = framing
        self._filter = ResponseWithoutReasoning()

    def feed(self, event: Event) -> bytes:
        """Take one event and return the visible frames that follow from it."""
        return self._encoded(self._stream.feed(event))

    def finish(self, reason: Reason | None, usage: Usage | None) -> bytes:
        """End the stream and return its last frames."""
        return self._encoded(self._stream.finish(reason, usage))

    def fail(self, message: str) -> bytes:
        """End the stream with an error for the client."""
        return self._encoded(self._stream.fail(message))

    def _encoded(self, chunks: list[Chunk]) -> bytes:
        shown = map(self._filter.shown, chunks)
        return b"".join(self._framing.encode(chunk) for chunk in shown if chunk is not None)
