"""Hidden reasoning: the events and the parts of a response that a client may see.

The stream of Chat Completions leaves reasoning out by itself.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

import attrs

from harmony_stream.adapters.routing import CALLS, RouteKind, route
from harmony_stream.values.events import Event, Malformed, MessageStart
from harmony_stream.values.header import USUAL_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from harmony_stream.adapters import Chunk, Writer
    from harmony_stream.adapters.options import Reason, Usage
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


def without_reasoning(chunks: list[Chunk]) -> Chunk:
    """Return the response in the last of these chunks as the client sees it."""
    response = chunks[-1]["response"]
    output = [item for item in response["output"] if not _is_reasoning(item)]
    return {**response, "output": output}


def _is_reasoning(item: Chunk) -> bool:
    return item.get("type") == "reasoning"


class WriterWithoutReasoning:
    """Writes the frames of a response for a client that may not see reasoning.

    The client's stream leaves reasoning out. A second stream has it, since the next prompt has it.

    Args:
        shown: the writer of the client's stream.
        whole: the writer of the stream that is stored. Its frames are not sent.
    """

    def __init__(self, shown: Writer, whole: Writer) -> None:
        self._shown = shown
        self._whole = whole

    def feed(self, event: Event) -> bytes:
        """Take one event and return the visible frames that follow from it."""
        # First, since it reports problems to the server, which may raise an error: the client's
        # stream can then still tell its failure.
        self._whole.feed(event)
        return self._shown.feed(event)

    def finish(self, reason: Reason | None, usage: Usage | None) -> bytes:
        """End the stream and return its last frames."""
        self._whole.finish(reason, usage)
        return self._shown.finish(reason, usage)

    def fail(self, message: str) -> bytes:
        """End the stream with an error for the client."""
        self._whole.fail(message)
        return self._shown.fail(message)


class SameIds:
    """Ids for two streams of the same events: items that both have get the same id in both.

    >>> from harmony_stream.adapters import counted_ids
    >>> ids = SameIds(counted_ids())
    >>> ids.first("call_"), ids.second("rs_"), ids.second("call_")
    ('call_1', 'rs_1', 'call_1')
    """

    def __init__(self, ids: Callable[[str], str]) -> None:
        self._ids = ids
        self._made: defaultdict[str, deque[str]] = defaultdict(deque)

    def first(self, prefix: str) -> str:
        """Return an id for the stream that is fed first."""
        found = self._ids(prefix)
        self._made[prefix].append(found)
        return found

    def second(self, prefix: str) -> str:
        """Return the id that the first stream got, or a new one if only this stream needs it."""
        made = self._made[prefix]
        return made.popleft() if made else self._ids(prefix)
