"""Thousands of streams in one process, for which an engine has one token each at every step."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from statistics import quantiles
from typing import TYPE_CHECKING

import attrs

from benchmarks.job import Job, Measured
from benchmarks.jobs.tokens import encode, tokens_of
from benchmarks.jobs.wire import PROTOCOLS
from benchmarks.texts import TEXTS
from harmony_stream import EventParser, aiter_events

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

# Steps of 20 ms are 50 tokens a second for each stream.
STEP = 0.02
# Of so many streams one is observed, since a look at the clock takes time as well.
OBSERVED = 50
OVER = -1

HEADER = tokens_of("a header")
CHAT = PROTOCOLS["Chat Completions"]


def tokens_by_stream(count: int, steps: int) -> list[list[int]]:
    """Return the tokens of each stream: a header, and text from another place in each.

    Streams that are observed have English text, of which each token makes one frame.
    """
    mixed, plain = tokens_of("an answer")[len(HEADER) :], encode(TEXTS["English"]) * 10
    bodies = [plain if not n % OBSERVED else mixed for n in range(count)]
    places = [7 * n % (len(body) - steps) for n, body in enumerate(bodies)]
    return [
        HEADER + body[place : place + steps] for place, body in zip(places, bodies, strict=True)
    ]


def writer_of() -> Callable[[int], list[bytes]]:
    """Return a function that takes a token of a new stream and returns its frames."""
    feed, write = EventParser().feed, CHAT.framing.writer(CHAT.make()).feed
    return lambda token: [write(event) for event in feed(token)]


@attrs.define
class Clock:
    """The times at which steps were due, and the delays of the frames that are observed."""

    dues: list[float] = attrs.field(factory=list)
    cpu_begin: float = 0.0
    delays: list[float] = attrs.field(factory=list)

    async def steps(self, tokens: list[list[int]]) -> AsyncIterator[tuple[int, ...]]:
        """Yield one token of each stream when its step is due; one that is late comes at once.

        Measuring begins after the headers, when all streams were made and have begun.
        """
        due = time.perf_counter()
        for number, step in enumerate(zip(*tokens, strict=True)):
            due = max(due + STEP, time.perf_counter())
            await asyncio.sleep(due - time.perf_counter())
            if number == len(HEADER):
                self.cpu_begin = time.process_time()
            self.dues.append(due)
            yield step

    def observe(self, frame: int) -> None:
        """Note the delay of a frame that has come out now.

        The first frame of a stream follows from the last token of its header, and each later one
        from the next token. Those after the last token are not observed.
        """
        step = frame + len(HEADER) - 1
        if len(HEADER) <= step < len(self.dues):
            self.delays.append(time.perf_counter() - self.dues[step])

    def figures(self, tokens: list[list[int]]) -> dict[str, float]:
        """Return CPU time until now, and delays."""
        seconds = time.process_time() - self.cpu_begin
        cuts = quantiles(self.delays, n=100)
        return {
            "us a token": 1e6 * seconds / sum(len(each) - len(HEADER) for each in tokens),
            "p50 ms": 1e3 * cuts[49],
            "p99 ms": 1e3 * cuts[98],
        }


# -- Pushed: the engine's step calls each stream --


async def _push(tokens: list[list[int]], clock: Clock) -> None:
    streams = [writer_of() for _ in tokens]
    async for step in clock.steps(tokens):
        frame = len(clock.dues) - len(HEADER)
        for number, (stream, token) in enumerate(zip(streams, step, strict=True)):
            stream(token)
            if not number % OBSERVED:
                clock.observe(frame)


# -- Chained: a task for each stream, which pulls from the engine through generators --


async def _taken(queue: asyncio.Queue[int]) -> AsyncIterator[int]:
    while (token := await queue.get()) != OVER:
        yield token


def frames(queue: asyncio.Queue[int], keep_alive: float | None) -> AsyncIterator[bytes]:
    """Return the frames of a stream whose tokens come through a queue."""
    chunks = CHAT.make().aiterate(aiter_events(_taken(queue)))
    return CHAT.framing.aframes(chunks, keep_alive=keep_alive)


async def _receive(
    queue: asyncio.Queue[int], keep_alive: float | None, clock: Clock | None
) -> None:
    number = 0
    async for _ in frames(queue, keep_alive):
        if clock is not None:
            clock.observe(number)
            number += 1


async def _chain(tokens: list[list[int]], clock: Clock, keep_alive: float | None = None) -> None:
    queues = [asyncio.Queue[int]() for _ in tokens]
    tasks = [
        asyncio.ensure_future(_receive(queue, keep_alive, None if n % OBSERVED else clock))
        for n, queue in enumerate(queues)
    ]
    async for step in clock.steps(tokens):
        for queue, token in zip(queues, step, strict=True):
            queue.put_nowait(token)
    for queue in queues:
        queue.put_nowait(OVER)
    await asyncio.gather(*tasks)


async def _keep_alive(tokens: list[list[int]], clock: Clock) -> None:
    await _chain(tokens, clock, 15.0)


_WAYS = {"pushed": _push, "chained": _chain, "kept alive": _keep_alive}


def many(way: str, count: int, steps: int) -> Measured:
    """That many streams at once; the garbage collector runs, as it does in a server."""
    tokens = tokens_by_stream(count, steps)

    def run() -> dict[str, float]:
        clock = Clock()
        asyncio.run(_WAYS[way](tokens, clock))
        return clock.figures(tokens)

    return Measured(run)


def one(**_: int) -> Job:
    """The tokens of one stream, by parser and writer."""
    (tokens,) = tokens_by_stream(1, 4_000)

    def run() -> None:
        stream = writer_of()
        for token in tokens:
            stream(token)

    return Job(run, len(tokens))


async def _grown(count: int, keep_alive: float | None) -> float:
    """Return the bytes of Python's memory that streams take, inside of content."""
    (tokens,) = tokens_by_stream(1, 20)
    tracemalloc.start()
    queues = [asyncio.Queue[int]() for _ in range(count)]
    tasks = [asyncio.ensure_future(_receive(queue, keep_alive, None)) for queue in queues]
    for queue in queues:
        for token in tokens:
            queue.put_nowait(token)
    # Each task takes all that is there when it runs, and a few steps of the loop for each token.
    for _ in range(10 * len(tokens)):
        await asyncio.sleep(0)
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(tasks) == count
    assert all(queue.empty() for queue in queues)
    return size


def memory(way: str, count: int) -> Measured:
    """The memory of a stream with its generators and task."""
    keep_alive = {"chained": None, "kept alive": 15.0}[way]
    asyncio.run(_grown(2, keep_alive))  # what all share is there before
    return Measured(lambda: {"bytes": asyncio.run(_grown(count, keep_alive)) / count})
