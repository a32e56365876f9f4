"""A client stream as bytes: events in, frames out, without a task or a generator.

A server's own loop can call it for each token of each of its streams, and send what it returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harmony_stream.adapters.base import Chunk, ClientStream, LogProbability
    from harmony_stream.adapters.options import Reason, Usage
    from harmony_stream.values.events import Event


class Writer:
    """Writes the frames of one client stream; made by `Framing.writer`.

    Its bytes are those of the stream's chunks, each of them encoded.

    >>> from harmony_stream import EventParser
    >>> from harmony_stream.adapters import AgUiStream, sse
    >>> writer = sse.AG_UI.writer(AgUiStream("thread", "run"))
    >>> for event in EventParser().feed_many([200005, 17196, 200008]):
    ...     print(writer.feed(event).split(b",")[0].decode())
    data: {"type":"RUN_STARTED"
    """

    def __init__(self, stream: ClientStream, encode: Callable[[Chunk], bytes], end: bytes) -> None:
        # Not for users.
        self._stream = stream
        self._encode = encode
        self._end = end

    def feed(self, event: Event, *, logprobs: Sequence[LogProbability] | None = None) -> bytes:
        """Take one event and return the frames that follow from it; see the stream's `feed`."""
        return b"".join(map(self._encode, self._stream.feed(event, logprobs=logprobs)))

    def finish(self, reason: Reason | None = None, usage: Usage | None = None) -> bytes:
        """End the stream and return its last frames. A second call returns `b""`."""
        chunks = self._stream.finish(reason, usage)
        return b"".join(map(self._encode, chunks)) + self._end if chunks else b""

    def fail(self, message: str) -> bytes:
        """End the stream with an error for the client. After `finish` it returns `b""`."""
        chunks = self._stream.fail(message)
        return b"".join(map(self._encode, chunks)) + self._end if chunks else b""
