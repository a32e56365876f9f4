"""The response of a stream: it sends frames, and ends when its client disconnects."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse

from harmony_stream.adapters.sse import KEEP_ALIVE
from harmony_stream.support.closing import closing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Mapping

    from starlette.types import Receive, Scope, Send

_Result = TypeVar("_Result")


class FramesResponse(StreamingResponse):
    """A response of Server-Sent Events, with a comment whenever the next frame takes too long.

    When the client disconnects, the frames are closed at once, even while they wait.

    Args:
        frames: the frames; each piece has whole ones, since a comment may come between two.
        headers: the headers of the framing.
        keep_alive: seconds of silence after which a comment is sent, repeatedly.
    """

    def __init__(
        self, frames: AsyncGenerator[bytes], headers: Mapping[str, str], keep_alive: float
    ) -> None:
        super().__init__(frames, headers=headers)
        self._frames = frames
        self._keep_alive = keep_alive
        self._is_gone = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response, as an ASGI app."""
        # A server may also raise OSError in `send`, to report that the client has disconnected.
        async with closing(self._frames):
            with suppress(ClientDisconnect, OSError):
                await while_connected(self._disconnected(receive), self._send_frames(send))

    async def _disconnected(self, receive: Receive) -> None:
        await disconnected(receive)
        self._is_gone = True

    def _refuse_if_gone(self) -> None:
        if self._is_gone:  # and the engine has swallowed its cancellation
            raise ClientDisconnect

    async def _send_frames(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        body = _Body(send, self._keep_alive)
        async with closing(body), closing(self._frames):
            async for data in self._frames:
                self._refuse_if_gone()
                await body.send(data)
            await body.send(b"", more_body=False)


class _Body:
    """The body of a response. It sends comments by itself, from a timer.

    The task that sends the frames waits for the engine directly. Thus keep-alive does not cost a
    change of tasks for each frame, and a timer is set again only when it fires.
    """

    def __init__(self, send: Send, seconds: float) -> None:
        self._send = send
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._is_sending = False  # stays true after an error
        self._comment: asyncio.Task[None] | None = None
        self._silent_since = self._loop.time()
        self._timer = self._loop.call_later(seconds, self._on_timer)

    async def send(self, data: bytes, *, more_body: bool = True) -> None:
        if self._comment is not None:  # calls of the server's `send` must not overlap
            await self._comment
            self._comment = None
        await self._send_now(data, more_body)

    async def _send_now(self, data: bytes, more_body: bool = True) -> None:
        self._is_sending = True
        await self._send({"type": "http.response.body", "body": data, "more_body": more_body})
        self._is_sending = False
        self._silent_since = self._loop.time()

    def _on_timer(self) -> None:
        now = self._loop.time()
        due = now + self._seconds
        if not self._is_sending:  # else the client has not read what it was sent
            if now >= self._silent_since + self._seconds:
                self._comment = self._loop.create_task(self._send_now(KEEP_ALIVE))
            else:
                due = self._silent_since + self._seconds
        self._timer = self._loop.call_at(due, self._on_timer)

    async def aclose(self) -> None:
        self._timer.cancel()
        if self._comment is not None:
            self._comment.cancel()
            await asyncio.gather(self._comment, return_exceptions=True)


async def disconnected(receive: Receive) -> None:
    """Wait until the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_connected(
    end: Coroutine[Any, Any, None], work: Coroutine[Any, Any, _Result]
) -> _Result:
    """Return the result of the work, which is cancelled when the connection ends.

    Args:
        end: waits for the end of the connection; see `disconnected`.
        work: the work.

    Raises:
        ClientDisconnect: if the connection ends first.
    """
    tasks = asyncio.ensure_future(work), asyncio.ensure_future(end)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done():
            raise ClientDisconnect
        return tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
