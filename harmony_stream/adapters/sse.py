r"""Server-Sent Events: client streams as bytes, and such bytes read back.

Source: the WHATWG HTML standard, "Server-sent events", and what each protocol makes of it: Chat
Completions and UI messages end with `[DONE]`, Responses name each event, AG-UI does neither.

Some readers take U+2028, U+2029 and U+0085 for ends of lines, so JSON is written without them.

>>> CHAT_COMPLETIONS.encode({"id": "chatcmpl-1"})
b'data: {"id":"chatcmpl-1"}\n\n'
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from harmony_stream.support.closing import closing
from harmony_stream.support.sse import FrameReader

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterable,
        AsyncIterator,
        Callable,
        Iterable,
        Iterator,
        Mapping,
    )

    from harmony_stream.support.sse import Frame

KEEP_ALIVE = b": keep-alive\n\n"
"""A comment. Readers skip it, and proxies see that the connection lives."""

DONE = "[DONE]"

HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}
"""What a server says of such a stream: neither caches nor proxies may hold it back."""

_ENCODER = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
)


def _make_encode() -> Callable[[object], str]:
    """The encoder's part in C, made once: 2.1 us for a chunk.

    `JSONEncoder.encode`, which makes it anew for each value, takes 3.7. Where there is no such part
    or it is made in another way, that one serves.
    """
    try:
        encode = json.encoder.c_make_encoder(  # type: ignore[attr-defined]
            None,
            _ENCODER.default,
            json.encoder.encode_basestring,
            None,
            _ENCODER.key_separator,
            _ENCODER.item_separator,
            _ENCODER.sort_keys,
            _ENCODER.skipkeys,
            _ENCODER.allow_nan,
        )
    except TypeError:
        return _ENCODER.encode
    return lambda value: "".join(encode(value, 0))


_encode = _make_encode()

# Ends of lines to some readers, and halves of characters, which UTF-8 has no bytes for.
_UNSAFE = re.compile("[\x85\u2028\u2029\ud800-\udfff]")


def to_json(value: object) -> str:
    r"""One line of JSON that every reader takes for one line.

    Raises:
        ValueError: a number that JSON does not know, such as infinity.

    >>> to_json({"text": "a\u2028b", "word": "été"})
    '{"text":"a\\u2028b","word":"été"}'
    """
    text = _encode(value)
    return text if text.isascii() else _UNSAFE.sub(_safe, text)


def _safe(found: re.Match[str]) -> str:
    character = found[0]
    return "\ufffd" if "\ud800" <= character <= "\udfff" else f"\\u{ord(character):04x}"


@attrs.frozen
class Framing:
    """How a protocol uses Server-Sent Events.

    Attributes:
        names_events: an `event:` line repeats the event's type.
        ends_with_done: the last frame is `[DONE]`.
        headers: of the HTTP response.
    """

    names_events: bool = False
    ends_with_done: bool = False
    headers: Mapping[str, str] = HEADERS

    def encode(self, chunk: Mapping[str, Any]) -> bytes:
        """One chunk as a frame."""
        if self.names_events:
            return f"event: {chunk['type']}\ndata: {to_json(chunk)}\n\n".encode()
        return f"data: {to_json(chunk)}\n\n".encode()

    def end(self) -> bytes:
        """The frame behind the last chunk, `b""` if the protocol has none."""
        return f"data: {DONE}\n\n".encode() if self.ends_with_done else b""

    def frames(self, chunks: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
        r"""All frames of a stream.

        >>> list(RESPONSES.frames([{"type": "response.completed"}]))
        [b'event: response.completed\ndata: {"type":"response.completed"}\n\n']
        """
        for chunk in chunks:
            yield self.encode(chunk)
        if end := self.end():
            yield end

    async def aframes(
        self, chunks: AsyncIterable[Mapping[str, Any]], *, keep_alive: float | None = None
    ) -> AsyncIterator[bytes]:
        """The same for chunks that come asynchronously.

        Args:
            chunks: of the stream. If the reader goes away, they are closed.
            keep_alive: after so many seconds without a chunk a comment is sent, and again.
        """
        frames = self._encoded(chunks)
        if keep_alive is not None:
            frames = _kept_alive(frames, keep_alive)
        async with closing(frames):
            async for frame in frames:
                yield frame

    async def _encoded(self, chunks: AsyncIterable[Mapping[str, Any]]) -> AsyncGenerator[bytes]:
        async with closing(chunks):
            async for chunk in chunks:
                yield self.encode(chunk)
        if end := self.end():
            yield end


EVENTS = Framing(names_events=True)
"""The parser's own events: `EVENTS.encode(event.to_dict())`. Their types are in `events.d.ts`."""

CHAT_COMPLETIONS = Framing(ends_with_done=True)
RESPONSES = Framing(names_events=True)
AG_UI = Framing()
UI_MESSAGES = Framing(
    ends_with_done=True, headers={**HEADERS, "x-vercel-ai-ui-message-stream": "v1"}
)


async def _kept_alive(frames: AsyncGenerator[bytes], seconds: float) -> AsyncGenerator[bytes]:
    """The frames, and comments while they are long in coming."""
    waiting: asyncio.Future[bytes] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(anext(frames, b""))
            done, _ = await asyncio.wait([waiting], timeout=seconds)
            if not done:
                yield KEEP_ALIVE
                continue
            frame, waiting = waiting.result(), None
            if not frame:
                return
            yield frame
    finally:
        if waiting is not None:
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting
        await frames.aclose()


@attrs.frozen
class ServerSentEvent:
    """One event as a reader sees it.

    Attributes:
        data: its lines of data, joined.
        event: its name; `message` if it has none.
        id: the last id that was sent, also with an earlier event.
        retry: milliseconds to wait before a reader connects again, if this event says so.
    """

    data: str
    event: str = "message"
    id: str = ""
    retry: int | None = None

    @property
    def is_done(self) -> bool:
        """Whether this is the mark that ends a stream."""
        return self.data == DONE

    def json(self) -> Any:  # noqa: ANN401
        """The data as the JSON that it is."""
        return json.loads(self.data)


class Decoder:
    r"""Reads Server-Sent Events from bytes that may be cut anywhere.

    Lines end with CR, LF or CRLF and nothing else. Comments are skipped. An event that was cut off
    before the empty line behind it is not given, as the standard wants it; `is_between_events`
    tells.

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
        """Whether nothing was begun that is not finished."""
        return self._reader.is_between_frames

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Take bytes; give the events that they finish."""
        return list(map(_event_of, self._reader.feed(data)))


def _event_of(frame: Frame) -> ServerSentEvent:
    assert frame.data is not None  # nothing is too long without a limit
    name, identity = _decoded(frame.event) or "message", _decoded(frame.id)
    retry = None if frame.retry is None else int(frame.retry)
    return ServerSentEvent(_decoded(frame.data), name, identity, retry)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace") if data else ""
