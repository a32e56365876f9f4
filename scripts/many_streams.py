"""Measures many streams in one process: processor time a token, and delay after the engine's step.

    python scripts/many_streams.py [STREAMS] [STEPS] [WAY ...]

An engine steps 50 times a second and samples one token for each stream. A way is `alone` (one
stream, without a loop) or a function below. Delays are from the time at which a step was due until
the bytes of a stream were sent; in overload they are too low. Compare only figures of one run:
other work on the machine counts.
"""

from __future__ import annotations

import asyncio
import gc
import json
import multiprocessing
import os
import socket
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import attrs

from harmony_stream import EventParser, Vocabulary, aiter_events
from harmony_stream.adapters import ChatCompletionStream, sse
from harmony_stream.serving import Prompt, create_app, make_server

STEPS_PER_SECOND = 50
WARM_UP = 10  # steps that do not count: a header costs more than a token of text
TEXT = (
    "<|channel|>analysis<|message|>" + "The user asks for the tide; the table says it. " * 40,
    "<|end|><|start|>assistant<|channel|>final<|message|>",
    "High tide in Saint-Malo is at noon, said the harbour master. 潮は正午です。🌊 " * 200,
)
TOKENS = Vocabulary.default().tiktoken_encoding.encode("".join(TEXT), allowed_special="all")

Sent = Callable[[], None]


@attrs.define
class Figures:
    """Result of one way.

    Attributes:
        cpu: microseconds of processor time a token.
        delays: seconds after each step, for each token that was sent.
    """

    cpu: float
    delays: list[float] = attrs.field(factory=list, repr=False)

    def delay(self, share: float) -> float:
        """Return the delay in milliseconds that this share of the tokens does not exceed."""
        return sorted(self.delays)[int(share * (len(self.delays) - 1))] * 1e3


@attrs.define
class Steps:
    """The engine's clock: when the last step was due, and the delays of what was sent since."""

    due: float = 0.0
    delays: list[float] = attrs.field(factory=list)

    def sent(self) -> None:
        """Note that the bytes of one stream were sent."""
        self.delays.append(time.perf_counter() - self.due)

    async def run(self, count: int, streams: int, step: Callable[[int], None]) -> Figures:
        """Call `step` in time with the number of each step, and return the figures."""
        for number in range(WARM_UP):
            step(number)
            await self._settle()
        gc.collect()
        gc.freeze()
        self.delays.clear()
        begun, cpu = time.perf_counter(), time.process_time()
        for number in range(count):
            due = begun + number / STEPS_PER_SECOND
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            self.due = due  # what was still waiting is counted from this step, and so looks faster
            step(WARM_UP + number)
        await self._settle()
        cpu = time.process_time() - cpu
        gc.unfreeze()
        return Figures(cpu / count / streams * 1e6, list(self.delays))

    async def _settle(self) -> None:
        """Wait until all streams have acted on all tokens."""
        seen = -1
        while seen != len(self.delays):
            seen = len(self.delays)
            for _ in range(10):
                await asyncio.sleep(0)


def writer() -> Any:  # noqa: ANN401
    """Return a writer of Chat Completions."""
    return sse.CHAT_COMPLETIONS.writer(ChatCompletionStream("gpt-oss-20b"))


def alone(streams: int, count: int) -> Figures:
    """Write streams one after the other, with the same numbers of tokens, without a loop."""
    cpu = 0.0
    for _ in range(streams):
        feed, write = EventParser().feed, writer().feed
        for token in TOKENS[:WARM_UP]:
            deque(map(write, feed(token)), maxlen=0)
        begun = time.process_time()
        for token in TOKENS[WARM_UP : WARM_UP + count]:
            for event in feed(token):
                write(event)
        cpu += time.process_time() - begun
    return Figures(cpu / count / streams * 1e6)


async def pushed(streams: int, count: int) -> Figures:
    """Write each stream in the step; the bytes wait in a list, which stands for a connection."""
    steps, each = Steps(), [(EventParser().feed, writer().feed, [b""]) for _ in range(streams)]

    def step(number: int) -> None:
        token = TOKENS[number]
        for feed, write, waiting in each:
            for event in feed(token):
                waiting[0] = write(event)
            steps.sent()

    return await steps.run(count, streams, step)


async def responses(streams: int, count: int) -> Figures:
    """Write each stream in the step to a `PushResponse`, whose connection takes all bytes."""
    from harmony_stream.serving import PushResponse

    steps = Steps()
    headers = sse.CHAT_COMPLETIONS.headers
    each = [
        (EventParser().feed, writer().feed, PushResponse(headers, lambda: None))
        for _ in range(streams)
    ]
    tasks = [asyncio.create_task(response({}, _never, _send(steps))) for *_, response in each]

    def step(number: int) -> None:
        token = TOKENS[number]
        for feed, write, response in each:
            for event in feed(token):
                response.write(write(event))

    figures = await steps.run(count, streams, step)
    await _cancel(tasks)
    return figures


async def chained(streams: int, count: int, keep_alive: float | None = None) -> Figures:
    """Read each stream by a chain of generators in a task, as an asynchronous server does."""
    steps, queues = Steps(), [asyncio.Queue[int]() for _ in range(streams)]

    async def serve(queue: asyncio.Queue[int]) -> None:
        chunks = ChatCompletionStream("gpt-oss-20b").aiterate(aiter_events(_tokens(queue)))
        async for _ in sse.CHAT_COMPLETIONS.aframes(chunks, keep_alive=keep_alive):
            steps.sent()

    tasks = [asyncio.create_task(serve(queue)) for queue in queues]
    figures = await steps.run(count, streams, _to_all(queues))
    await _cancel(tasks)
    return figures


async def chained_kept_alive(streams: int, count: int) -> Figures:
    """Do the same with keep-alive."""
    return await chained(streams, count, 15.0)


async def served(streams: int, count: int) -> Figures:
    """Serve each stream by the backend, over connections that take all bytes."""
    steps, engine = Steps(), QueueEngine()
    app = create_app(engine)
    tasks = [asyncio.create_task(_request(app, _send(steps))) for _ in range(streams)]
    while len(engine.queues) < streams:
        await asyncio.sleep(0.05)
    figures = await steps.run(count, streams, _to_all(engine.queues))
    await _cancel(tasks)
    return figures


class QueueEngine:
    """An engine of the backend whose step puts tokens into the queues of its streams."""

    models = ("any",)

    def __init__(self) -> None:
        self.queues: list[asyncio.Queue[int]] = []

    def sample(self, prompt: Prompt) -> AsyncIterator[int]:
        """Return the tokens of one stream."""
        self.queues.append(asyncio.Queue())
        return _tokens(self.queues[-1])


async def _tokens(queue: asyncio.Queue[int]) -> AsyncIterator[int]:
    while True:
        yield await queue.get()


def _to_all(queues: list[asyncio.Queue[int]]) -> Callable[[int], None]:
    def step(number: int) -> None:
        for queue in queues:
            queue.put_nowait(TOKENS[number])

    return step


async def _never() -> Any:  # noqa: ANN401
    await asyncio.Future()


def _send(steps: Steps) -> Callable[[Any], Awaitable[None]]:
    async def send(message: Any) -> None:  # noqa: ANN401
        steps.sent()

    return send


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


BODY = {"model": "any", "messages": [{"role": "user", "content": "?"}], "stream": True}


async def _request(app: Any, send: Any) -> None:  # noqa: ANN401
    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
    bodies = iter([{"type": "http.request", "body": json.dumps(BODY).encode()}])

    async def receive() -> Any:  # noqa: ANN401
        return next(bodies, None) or await _never()

    await app({**scope, "query_string": b"", "asgi": {"spec_version": "2.3"}}, receive, send)


# -- Real sockets ----------------------------------------------------------------------------------


def socket_streams(streams: int, count: int, way: str) -> Figures:
    """Serve real sockets from a process of its own, whose processor time counts.

    Args:
        streams: the number of sockets; the limit for open files must allow it.
        count: the number of steps.
        way: `read` for an engine of the backend, `pushed` for one that writes to `PushResponse`.
    """
    listening = socket.create_server(("127.0.0.1", 0), backlog=streams)
    results = multiprocessing.get_context("fork").SimpleQueue()
    if (child := os.fork()) == 0:
        cpu = asyncio.run(_serve_sockets(listening, streams, count, way))
        results.put(cpu)
        os._exit(0)
    asyncio.run(_read_sockets(listening.getsockname()[1], streams))
    os.waitpid(child, 0)
    return Figures(results.get())


async def _serve_sockets(listening: socket.socket, streams: int, count: int, way: str) -> float:
    backend: Any = _PushingBackend() if way == "pushed" else QueueEngine()
    server = make_server(backend if way == "pushed" else create_app(backend))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while len(backend.queues) < streams:
        await asyncio.sleep(0.05)
    step = backend.step if way == "pushed" else _to_all(backend.queues)
    figures = await Steps().run(count, streams, step)
    server.should_exit = True
    await serving
    return figures.cpu


class _PushingBackend:
    """An app whose streams are written in the step."""

    def __init__(self) -> None:
        self.queues: list[Any] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        from harmony_stream.serving import PushResponse

        response = PushResponse(sse.CHAT_COMPLETIONS.headers, lambda: None)
        self.queues.append((EventParser().feed, writer().feed, response.write))
        await response(scope, receive, send)

    def step(self, number: int) -> None:
        for feed, write, send in self.queues:
            for event in feed(TOKENS[number]):
                send(write(event))


async def _read_sockets(port: int, streams: int) -> None:
    body = json.dumps(BODY).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\n\r\n"

    async def read() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head % len(body) + body)
        while await reader.read(65536):
            pass
        writer.close()

    await asyncio.gather(*(read() for _ in range(streams)))


WAYS = (chained, chained_kept_alive, served, pushed, responses)


def main() -> None:
    """Measure and print."""
    numbers: list[str] = []
    names: list[str] = []
    for argument in sys.argv[1:]:
        (numbers if argument.isdigit() else names).append(argument)
    streams = int(numbers[0]) if numbers else 10_000
    count = int(numbers[1]) if len(numbers) > 1 else 50
    measured = {"alone": alone(streams, count)}
    for way in WAYS:
        if not names or way.__name__ in names:
            measured[way.__name__] = asyncio.run(way(streams, count))
    for name in names:
        if name.startswith("socket_"):
            way_of_socket = name.removeprefix("socket_")
            measured[name] = socket_streams(min(streams, 1000), count, way_of_socket)
    for name, figures in measured.items():
        line = f"{name:24}{figures.cpu:8.2f} us a token"
        if figures.delays:
            line += (
                f", delay {figures.delay(0.5):6.0f} ms median, {figures.delay(0.99):6.0f} ms p99"
            )
        print(line)


if __name__ == "__main__":
    main()
