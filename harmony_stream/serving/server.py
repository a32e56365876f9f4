"""The server of an app: uvicorn, which closes open streams when it stops."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    import socket

    from starlette.applications import Starlette

# Seconds for requests that are still running when the server stops.
_STOP_WITHIN = 5

# Seconds for clients to read what they were sent. A client that does not read would never end.
_READ_WITHIN = 1


class Server(uvicorn.Server):
    """A server that does not wait for its streams.

    Uvicorn would wait until each stream ends, or cancel it with a traceback. When its connection is
    closed, a stream ends as if the client had disconnected.
    """

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the connections, then shut down."""
        transports = [connection.transport for connection in self.server_state.connections]
        for transport in transports:
            transport.close()
        loop = asyncio.get_running_loop()
        timers = [loop.call_later(_READ_WITHIN, transport.abort) for transport in transports]
        await super().shutdown(sockets)
        for timer in timers:
            timer.cancel()


def make_server(app: Starlette) -> Server:
    """Return a server of an app, which logs errors: `make_server(app).run(sockets=[listening])`.

    Raises:
        TypeError: if the app is not callable.
    """
    if not callable(app):
        raise TypeError(f"app: {app!r} is not an ASGI app; give one, as create_app returns it")
    return Server(
        uvicorn.Config(
            app,
            access_log=False,
            log_level="warning",
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=_STOP_WITHIN,
        )
    )
