r"""Server-Sent Events: client streams as bytes, and such bytes read back.

Source: the WHATWG HTML standard, "Server-sent events", and its use in each protocol. Chat
Completions and UI messages end with `[DONE]`, Responses name each event, AG-UI does neither.

>>> CHAT_COMPLETIONS.encode({"id": "chatcmpl-1"})
b'data: {"id":"chatcmpl-1"}\n\n'
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import attrs

from harmony_stream.adapters.base import ClientStream
from harmony_stream.adapters.json_line import to_json as to_json  # public here
from harmony_stream.adapters.writer import Writer
from harmony_stream.support.checks import check_seconds
from harmony_stream.support.closing import closing
from harmony_stream.support.event_stream import FrameReader
from harmony_stream.support.read_ahead import read_ahead

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterable,
        AsyncIterator,
        Iterable,
        Iterator,
        Mapping,
    )

    from harmony_stream.support.event_stream import Frame

KEEP_ALIVE = b": keep-alive\n\n"
"""A comment, which readers skip and which shows proxies that the connection is alive."""

DONE = "[DONE]"

HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}
"""HTTP headers of such a stream, so that neither caches nor proxies hold it back."""


@attrs.frozen
class Framing:
    """The use of Server-Sent Events in one protocol.

    Attributes:
        names_events: true if an `event:` line repeats the event's type.
        ends_with_done: true if the last frame is `[DONE]`.
        protocol: the protocol of the client streams that it frames; "" for any.
        headers: the headers of the HTTP response.
    """

    names_events: bool = False
    ends_with_done: bool = False
    protocol: str = ""
    headers: Mapping[str, str] = HEADERS

    def encode(self, chunk: Mapping[str, Any]) -> bytes:
        """Return one chunk as a frame."""
        if self.names_events:
            return f"event: {chunk['type']}\ndata: {to_json(chunk)}\n\n".encode()
        return f"data: {to_json(chunk)}\n\n".encode()

    def end(self) -> bytes:
        """Return the frame after the last chunk, or `b""` if the protocol has none."""
        return f"data: {DONE}\n\n".encode() if self.ends_with_done else b""

    def frames(self, chunks: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
        r"""Yield all frames of a stream.

        >>> list(RESPONSES.frames([{"type": "response.completed"}]))
        [b'event: response.completed\ndata: {"type":"response.completed"}\n\n']
        """
        for chunk in chunks:
            yield self.encode(chunk)
        if end := self.end():
            yield end

    def writer(self, stream: ClientStream) -> Writer:
        """Return the writer of a client stream of this protocol.

        Raises:
            TypeError: if this is not a client stream, or one of another protocol.
        """
        if not isinstance(stream, ClientStream):
            raise TypeError(f"{stream!r} is not a client stream; give an object such as AgUiStream")
        if stream.protocol and self.protocol and stream.protocol != self.protocol:
            raise TypeError(
                f"a {type(stream).__name__} speaks {stream.protocol}, and this framing is for "
                f"{self.protocol}; use the framing of that protocol"
            )
        return Writer(stream, self.encode, self.end())

    async def aframes(
        self, chunks: AsyncIterable[Mapping[str, Any]], *, keep_alive: float | None = None
    ) -> AsyncIterator[bytes]:
        """Yield all frames of a stream whose chunks arrive asynchronously.

        Args:
            chunks: the chunks of the stream. They are closed if the reader disconnects.
            keep_alive: seconds without a chunk after which a comment is sent, repeatedly. A task
                then reads the chunks, up to 16 of them ahead of the reader.

        Raises:
            TypeError, ValueError: `keep_alive` is not a number above 0; at the first frame.
        """
        if keep_alive is not None:
            check_seconds("keep_alive", keep_alive)
        heard = chunks if keep_alive is None else read_ahead(chunks, keep_alive)
        async with closing(heard):
            async for chunk in heard:
                yield KEEP_ALIVE if chunk is None else self.encode(chunk)
        if end := self.end():
            yield end


EVENTS = Framing(names_events=True)
"""Framing of the parser's own events, as in `EVENTS.encode(event.to_dict())`.

`events.d.ts` holds their types.
"""

CHAT_COMPLETIONS = Framing(ends_with_done=True, protocol="Chat Completions")
RESPONSES = Framing(names_events=True, protocol="Responses")
AG_UI = Framing(protocol="AG-UI")
UI_MESSAGES = Framing(
    ends_with_done=True,
    protocol="UI messages",
    headers={**HEADERS, "x-vercel-ai-ui-message-stream": "v1"},
)


@attrs.frozen
class ServerSentEvent:
    """One event as a reader sees it.

    Attributes:
        data: its lines of data, joined.
        event: its name; `message` if it has none.
        id: the last id that was sent, possibly with an earlier event.
        retry: milliseconds to wait before a reader reconnects, or None.
    """

    data: str
    event: str = "message"
    id: str = ""
    retry: int | None = None

    @property
    def is_done(self) -> bool:
        """True if this event marks the end of a stream."""
        return self.data == DONE

    def json(self) -> Any:  # noqa: ANN401
        """Return the data, read as JSON."""
        return json.loads(self.data)


class Decoder:
    r"""Reads Server-Sent Events from bytes that may be cut anywhere.

    Lines end only with CR, LF or CRLF. Comments are skipped. As the standard requires, an event
    that was cut off before the empty line after it is not returned. `is_between_events` detects
    this.

    >>> decoder = Decoder()
    >>> decoder.feed(b'event: greeting\nda')
    []
    >>> decoder.feed(b'ta: {"text":"Hello"}\n\n')
    [ServerSentEvent(data='{"text":"Hello"}', event='greeting', id='', retry=None)]
    """

    def __init__(self) -> None:
        self._reader = FrameReader()

    @property
    def is_between_events(self) -> bool:
        """True if every event that was begun is finished."""
        return self._reader.is_between_frames

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Take bytes and return the events that they finish."""
        return list(map(_event_of, self._reader.feed(data)))


def _event_of(frame: Frame) -> ServerSentEvent:
    assert frame.data is not None  # without a limit, data is never too long
    name, identity = _decoded(frame.event) or "message", _decoded(frame.id)
    retry = None if frame.retry is None else int(frame.retry)
    return ServerSentEvent(_decoded(frame.data), name, identity, retry)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace") if data else ""
