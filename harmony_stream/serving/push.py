"""The response of a stream whose bytes the engine's step writes, for many streams at once."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect

from harmony_stream.serving.response import FramesResponse
from harmony_stream.support.checks import check_function, check_seconds

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from starlette.types import Receive, Scope, Send

_LOG = logging.getLogger("harmony_stream.serving")


class PushResponse(FramesResponse):
    """A response of Server-Sent Events whose bytes are written from outside, without waiting.

    Return it from an endpoint of Starlette or FastAPI, and call `write` in each step of the engine.
    Bytes that the connection cannot take yet are kept, joined, and sent together. If more than
    `limit` bytes wait for a client that does not read, its connection is closed: the client sees
    that its stream is incomplete, and other streams do not wait for it.

    All methods must be called in the thread of the event loop.

    Args:
        headers: the headers of the framing, such as `sse.CHAT_COMPLETIONS.headers`.
        on_close: a function that is called once if the client can receive nothing more although
            `end` was not called: it has disconnected, or it does not read. Stop the work here. It
            must be a plain function, since nothing waits for it.
        keep_alive: seconds of silence after which a comment is sent, repeatedly.
        limit: the number of bytes that may wait while the connection takes none. One more `write`
            of any size is accepted, since the last frames of a response repeat all of its text.

    Raises:
        TypeError, ValueError: an argument is not valid. The error names it.
    """

    def __init__(
        self,
        headers: Mapping[str, str],
        on_close: Callable[[], None],
        *,
        keep_alive: float = 15.0,
        limit: int = 256 * 1024,
    ) -> None:
        check_function("on_close", on_close, 0)
        check_seconds("keep_alive", keep_alive)
        if type(limit) is not int or limit < 1:
            raise ValueError(f"limit: {limit!r} is not a number of bytes above 0; give 262144")
        super().__init__(self._written(), headers, keep_alive)
        self._on_close = on_close
        self._limit = limit
        self._waiting: list[bytes] = []
        self._size = 0
        # True while the connection does not take what it was given. Bytes of one step, and those
        # before the response begins, never wait for the client.
        self._is_blocked = False
        self._is_ended = self._is_closed = False
        self._news: asyncio.Future[None] | None = None
        self._listening: asyncio.Task[None] | None = None

    @property
    def is_closed(self) -> bool:
        """True if the client cannot receive anything more."""
        return self._is_closed

    def write(self, data: bytes) -> bool:
        """Send bytes as soon as the client can take them.

        Args:
            data: whole frames, since a comment may come between two writes.

        Returns:
            True, or False if the client cannot receive them. Then `on_close` has been called.

        Raises:
            TypeError: if this is not `bytes`.
            ValueError: if called after `end`.
        """
        if type(data) is not bytes:
            raise TypeError(
                f"data is {type(data).__name__}, not bytes; write what a writer returns"
            )
        if self._is_ended:
            raise ValueError("the response has ended: write before you call end()")
        if self._is_closed or not data:
            return not self._is_closed
        if self._is_blocked and self._size > self._limit:
            self._drop_client()
            return False
        self._size += len(data)
        self._waiting.append(data)
        self._wake()
        return True

    def end(self) -> None:
        """End the response after the bytes that were written. Call it once, or more often."""
        self._is_ended = True
        self._wake()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response, as an ASGI app.

        Raises:
            RuntimeError: if it was sent before.
        """
        if self._is_closed:
            raise RuntimeError("a PushResponse is sent once: make one for each request")
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._close()

    async def _written(self) -> AsyncGenerator[bytes]:
        """Yield the bytes that were written, joined."""
        loop = asyncio.get_running_loop()
        while True:
            while self._waiting:
                data = b"".join(self._waiting)
                self._waiting.clear()
                self._size = 0
                self._is_blocked = True
                yield data
            self._is_blocked = False
            if self._is_closed:  # the body must not end as if it were complete
                raise ClientDisconnect
            if self._is_ended:
                return
            self._news = loop.create_future()
            await self._news

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def _disconnected(self, receive: Receive) -> None:
        self._listening = asyncio.current_task()
        with suppress(asyncio.CancelledError):
            await super()._disconnected(receive)

    def _drop_client(self) -> None:
        _LOG.warning("a client does not read: its stream is closed, %d bytes unsent", self._size)
        assert self._listening is not None  # since the response has begun
        self._listening.cancel()
        self._close()

    def _close(self) -> None:
        is_early = not (self._is_closed or self._is_ended)
        self._is_closed = True
        self._waiting.clear()
        if is_early:
            try:
                self._on_close()
            except Exception:  # it may be called in the engine's step, which serves others
                _LOG.exception("on_close of a response failed")
