"""A server of streams over real sockets, in a process of its own: `sockets.py` starts it.

    python -m benchmarks.jobs.socket_server WAY STREAMS STEPS

It prints its port. When that many clients wait, the engine begins; after the last token the server
prints its figures as JSON and ends.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from typing import TYPE_CHECKING, Any

from benchmarks.jobs.streams import CHAT, OBSERVED, OVER, Clock, frames, tokens_by_stream, writer_of
from harmony_stream.serving import make_server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Send = Callable[[dict[str, Any]], Awaitable[None]]

_HEADERS = [(name.encode(), value.encode()) for name, value in CHAT.framing.headers.items()]


async def _begin(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send(_body(b": open\n\n"))


def _body(data: bytes, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


class Pushed:
    """The engine's step calls parser and writer of each stream, and sends."""

    def __init__(self, send: Send, clock: Clock | None) -> None:
        self.send, self.clock = send, clock
        self.stream = writer_of()
        self.count = 0
        self.over = asyncio.Event()

    async def serve(self) -> None:
        """Wait until the engine has sent all."""
        await self.over.wait()

    async def step(self, token: int) -> None:
        """Take the engine's next token."""
        if token == OVER:
            self.over.set()
            return
        for data in self.stream(token):
            await self.send(_body(data))
            if self.clock:
                self.clock.observe(self.count)
                self.count += 1


class Chained:
    """A task pulls frames from the engine through generators."""

    keep_alive: float | None = None

    def __init__(self, send: Send, clock: Clock | None) -> None:
        self.send, self.clock = send, clock
        self.queue = asyncio.Queue[int]()

    async def serve(self) -> None:
        """Send the frames as they come."""
        count = 0
        async for frame in frames(self.queue, self.keep_alive):
            await self.send(_body(frame))
            if self.clock:
                self.clock.observe(count)
                count += 1

    async def step(self, token: int) -> None:
        """Take the engine's next token."""
        self.queue.put_nowait(token)


class KeptAlive(Chained):
    """The same with comments while nothing comes."""

    keep_alive = 15.0


_WAYS: dict[str, type[Pushed | Chained]] = {
    "pushed": Pushed,
    "chained": Chained,
    "kept alive": KeptAlive,
}


class App:
    """The ASGI application, and its engine."""

    def __init__(self, way: str, count: int, steps: int) -> None:
        self.make = _WAYS[way]
        self.tokens = tokens_by_stream(count, steps)
        self.streams: list[Pushed | Chained] = []
        self.clock = Clock()
        self.is_full, self.is_over = asyncio.Event(), asyncio.Event()
        self.open = count

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:  # noqa: ANN401
        """Serve one stream."""
        is_observed = not len(self.streams) % OBSERVED
        stream = self.make(send, self.clock if is_observed else None)
        self.streams.append(stream)
        await _begin(send)
        if len(self.streams) == len(self.tokens):
            self.is_full.set()
        await stream.serve()
        await send(_body(b"", more=False))
        self.open -= 1
        if not self.open:
            self.is_over.set()

    async def run_engine(self) -> dict[str, float]:
        """Give each stream a token at each step; return what that took."""
        await self.is_full.wait()
        async for step in self.clock.steps(self.tokens):
            for stream, token in zip(self.streams, step, strict=True):
                await stream.step(token)
        for stream in self.streams:
            await stream.step(OVER)
        await self.is_over.wait()
        return self.clock.figures(self.tokens)


async def _main(way: str, count: int, steps: int) -> None:
    app = App(way, count, steps)
    server = make_server(app)  # type: ignore[arg-type]  # any ASGI application will do
    with socket.create_server(("127.0.0.1", 0), backlog=count) as listening:
        print(listening.getsockname()[1], flush=True)
        serving = asyncio.ensure_future(server.serve(sockets=[listening]))
        print(json.dumps(await app.run_engine()), flush=True)
        server.should_exit = True
        await serving


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
