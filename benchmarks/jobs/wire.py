"""Jobs from tokens to the bytes that a client receives."""

from __future__ import annotations

import json
from collections import deque
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import attrs

from benchmarks.job import Job, Measured, bytes_of
from benchmarks.jobs.reading import READERS, feed_each
from benchmarks.jobs.tokens import tokens_of, tokens_of_length
from harmony_stream import EventParser
from harmony_stream.adapters import (
    AgUiStream,
    ChatCompletionStream,
    ResponseStream,
    UiMessageStream,
    counted_ids,
    sse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harmony_stream import Event

_CLOCK = 1_700_000_000.0


@attrs.frozen
class Protocol:
    """A stream and its frames."""

    make: Callable[[], Any]
    framing: sse.Framing


PROTOCOLS = {
    # Servers that poll put nothing between the texts of two messages.
    "Chat Completions": Protocol(
        lambda: ChatCompletionStream("m", separator="", ids=counted_ids(), clock=lambda: _CLOCK),
        sse.CHAT_COMPLETIONS,
    ),
    "Responses": Protocol(
        lambda: ResponseStream("m", ids=counted_ids(), clock=lambda: _CLOCK), sse.RESPONSES
    ),
    "AG-UI": Protocol(lambda: AgUiStream("t", "r", ids=counted_ids()), sse.AG_UI),
    "UI messages": Protocol(lambda: UiMessageStream(ids=counted_ids()), sse.UI_MESSAGES),
}


# -- The whole way, token by token --


def _by_chunks(protocol: Protocol, tokens: list[int]) -> Iterator[bytes]:
    stream, encode = protocol.make(), protocol.framing.encode
    feed = EventParser().feed
    for token in tokens:
        for event in feed(token):
            yield from map(encode, stream.feed(event))
    yield from map(encode, stream.finish())
    yield protocol.framing.end()


def _by_writer(protocol: Protocol, tokens: list[int]) -> Iterator[bytes]:
    writer = protocol.framing.writer(protocol.make())
    feed, write = EventParser().feed, writer.feed
    for token in tokens:
        for event in feed(token):
            yield write(event)
    yield writer.finish()


_WAYS = {"chunks": _by_chunks, "writer": _by_writer}


def serve(text: str, protocol: str, by: str) -> Job:
    """Tokens to bytes; the frames are sent as they come, and none is kept."""
    way, tokens = partial(_WAYS[by], PROTOCOLS[protocol]), tokens_of(text)
    says = b"".join(way(tokens)).decode()
    return Job(lambda: deque(way(tokens), maxlen=0), len(tokens), says)


def serve_chat(text: str, by: str) -> Job:
    """Tokens to Chat Completions, compared with the chunks that servers make by polling."""
    job = serve(text, "Chat Completions", by)
    frames = str(job.says).split("\n\n")
    return job._replace(says=[json.loads(frame[6:]) for frame in frames if frame[6:7] == "{"])


def parse_only(text: str, **_: str) -> Job:
    """Events, and nothing made of them."""
    tokens = tokens_of(text)
    return Job(partial(feed_each, tokens), len(tokens))


def long(by: str, length: int) -> Job:
    """A message of that many tokens, by a parser or by a parser with a protocol's writer."""
    tokens = tokens_of_length(length)
    if by in READERS:
        return Job(partial(READERS[by], tokens), length)
    way = partial(_by_writer, PROTOCOLS[by])
    return Job(lambda: deque(way(tokens), maxlen=0), length)


# -- Events to bytes, without the parser --


def _events(text: str) -> tuple[list[Event], int]:
    tokens, parser = tokens_of(text), EventParser()
    return [event for token in tokens for event in parser.feed(token)], len(tokens)


def _entry(number: int, top: int) -> dict[str, Any]:
    entry = {"token": " tide", "logprob": -0.25 - number, "bytes": [32, 116, 105, 100, 101]}
    return {**entry, "top_logprobs": [_entry(other, 0) for other in range(top)]}


_LOGPROBS = {"none": None, "1 entry": 1, "5 top": 5}


def _entries(logprobs: str, count: int) -> list[dict[str, Any]] | None:
    top = _LOGPROBS[logprobs]
    # One object for each token, as an engine gives them.
    return None if top is None else [_entry(number % 7, top) for number in range(count)]


def _write_chunks(protocol: Protocol, events: list[Event], entries: Any) -> Iterator[bytes]:  # noqa: ANN401
    stream, encode = protocol.make(), protocol.framing.encode
    for event in events:
        yield b"".join(map(encode, stream.feed(event, logprobs=entries)))


def _write(protocol: Protocol, events: list[Event], entries: Any) -> Iterator[bytes]:  # noqa: ANN401
    feed = protocol.framing.writer(protocol.make()).feed
    for event in events:
        yield feed(event, logprobs=entries)


_WRITES = {"chunks": _write_chunks, "writer": _write}


def write(text: str, protocol: str, by: str, logprobs: str = "none") -> Job:
    """Events to bytes; the parser has run before."""
    events, tokens = _events(text)
    way = partial(_WRITES[by], PROTOCOLS[protocol], events, _entries(logprobs, tokens))
    return Job(lambda: deque(way(), maxlen=0), tokens, b"".join(way()).decode())


def choices(text: str, by: str, count: int) -> Job:
    """Events of several choices of one stream to bytes; each counts its tokens."""
    events, tokens = _events(text)
    protocol = PROTOCOLS["Chat Completions"]

    def frames() -> Iterator[bytes]:
        stream, encode = protocol.make(), protocol.framing.encode
        write = protocol.framing.writer(stream).feed
        for event, choice in product(events, range(count)):
            if by == "writer":
                yield write(event, choice=choice)
            else:
                yield b"".join(map(encode, stream.feed(event, choice=choice)))

    return Job(lambda: deque(frames(), maxlen=0), tokens * count, b"".join(frames()).decode())


# -- Memory --


def streams(protocol: str, by: str, count: int) -> Measured:
    """The memory of parsers with their streams, inside of content."""
    made = PROTOCOLS[protocol]
    events, tokens = _events("a call")[0][:400], tokens_of("a call")[:400]

    def one() -> object:
        parser, stream = EventParser(), made.make()
        feed = made.framing.writer(stream).feed if by == "writer" else stream.feed
        parser.feed_many(tokens)
        deque(map(feed, events), maxlen=0)
        return parser, stream, feed

    return Measured(partial(bytes_of, lambda: [one() for _ in range(count)], count))
