"""Jobs that read streams over real sockets; the server runs in a process of its own."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from functools import partial
from typing import Any

from benchmarks.job import Measured

_REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


async def _read(port: int) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_REQUEST)
    size = 0
    while data := await reader.read(1 << 16):
        size += len(data)
    writer.close()
    return size


async def _read_all(port: int, count: int) -> list[int]:
    return await asyncio.gather(*(_read(port) for _ in range(count)))


def _serve(way: str, count: int, steps: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.jobs.socket_server", way, str(count), str(steps)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            sizes = asyncio.run(_read_all(int(server.stdout.readline()), count))
            assert min(sizes) > 100 * steps, "a stream was cut off"
            figures: dict[str, Any] = json.loads(server.stdout.readline())
        finally:
            server.terminate()
    return figures


def many(way: str, count: int, steps: int) -> Measured:
    """The server's CPU time for a token of that many clients, and its delays."""
    return Measured(partial(_serve, way, count, steps))
