"""Running an app: uvicorn, which at its end closes the streams that are open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    import socket

    from starlette.applications import Starlette

# For what is being answered when the server is told to stop, in seconds.
_STOP_WITHIN = 5


class Server(uvicorn.Server):
    """A server that does not wait for its streams.

    Uvicorn would wait until each stream is over, or cancel it with a traceback. With its connection
    closed, a stream ends as it does when the client goes away.
    """

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the connections, then do what there is to do."""
        for connection in list(self.server_state.connections):
            connection.transport.close()
        await super().shutdown(sockets)


def make_server(app: Starlette) -> Server:
    """A server of an app: `make_server(app).run(sockets=[listening])`. It logs what goes wrong.

    Raises:
        TypeError: the app is not callable.
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
