"""Jobs that turn tokens into events or messages."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import harmony_stream
from benchmarks import conversations
from benchmarks.job import Job, Measured, bytes_of
from benchmarks.jobs.tokens import encode, tokens_of
from harmony_stream import ContentDelta, EventParser, Malformed

if TYPE_CHECKING:
    from collections.abc import Callable


def feed_each(tokens: list[int]) -> None:
    """Feed tokens one by one, and read no events."""
    feed = EventParser().feed
    for token in tokens:
        feed(token)


def read_each(tokens: list[int]) -> None:
    """Feed tokens one by one; read text, channel and recipient of each delta."""
    feed = EventParser().feed
    for token in tokens:
        for event in feed(token):
            if isinstance(event, ContentDelta):
                _ = event.text
                header = event.header
                _ = header.channel, header.recipient


def _deltas(tokens: list[int]) -> list[list[str | None]]:
    parser = EventParser()
    events = (event for token in tokens for event in parser.feed(token))
    deltas = (event for event in events if isinstance(event, ContentDelta))
    return [[delta.channel, delta.recipient, delta.text] for delta in deltas]


def read(text: str) -> Job:
    """One token at a time, events read."""
    tokens = tokens_of(text)
    return Job(partial(read_each, tokens), len(tokens), _deltas(tokens))


def feed(text: str) -> Job:
    """One token at a time, events not read."""
    tokens = tokens_of(text)
    return Job(partial(feed_each, tokens), len(tokens))


def _feed_steps(tokens: list[int], size: int) -> None:
    feed_many = EventParser().feed_many
    for start in range(0, len(tokens), size):
        feed_many(tokens[start : start + size])


def steps(text: str, size: int) -> Job:
    """Some tokens at a time."""
    tokens = tokens_of(text)
    return Job(partial(_feed_steps, tokens, size), len(tokens))


def begin(text: str) -> Job:
    """A parser, made and fed a few tokens."""
    tokens = tokens_of(text)
    return Job(partial(read_each, tokens), 1, tokens)


def parse(text: str) -> Job:
    """A completion to messages."""
    tokens = tokens_of(text)

    def run() -> list[Any]:
        return list(harmony_stream.parse(tokens).messages)

    return Job(run, len(tokens), conversations.plain(run()))


# -- The drop-in --


def _parser() -> harmony_stream.StreamableParser:
    encoding = harmony_stream.load_harmony_encoding("HarmonyGptOss")
    return harmony_stream.StreamableParser(encoding, harmony_stream.Role.ASSISTANT)


def _poll(tokens: list[int]) -> None:
    parser = _parser()
    for token in tokens:
        parser.process(token)
        _ = parser.last_content_delta
        _ = parser.current_channel, parser.current_recipient


def _poll_all(tokens: list[int]) -> None:
    parser = _parser()
    for token in tokens:
        parser.process(token)
        _ = parser.last_content_delta, parser.current_content, parser.messages, parser.tokens
        _ = parser.current_channel, parser.current_recipient, parser.current_role, parser.state


def _polled(tokens: list[int]) -> list[list[str | None]]:
    parser, found = _parser(), []
    for token in tokens:
        parser.process(token)
        delta = parser.last_content_delta
        if delta:
            found.append([parser.current_channel, parser.current_recipient, delta])
    return found


def poll(text: str) -> Job:
    """The drop-in's parser, with the three polls that a server needs."""
    tokens = tokens_of(text)
    return Job(partial(_poll, tokens), len(tokens), _polled(tokens))


def poll_all(text: str) -> Job:
    """The drop-in's parser, with all that can be polled."""
    tokens = tokens_of(text)
    return Job(partial(_poll_all, tokens), len(tokens), _polled(tokens))


def parse_like_wheels(text: str) -> Job:
    """A completion to messages, by the drop-in."""
    tokens = tokens_of(text)
    encoding = harmony_stream.load_harmony_encoding("HarmonyGptOss")
    role = harmony_stream.Role.ASSISTANT
    run = partial(encoding.parse_messages_from_completion_tokens, tokens, role)
    return Job(run, len(tokens), conversations.plain(run()))


# -- Growth --


def _feed_all(tokens: list[int]) -> None:
    EventParser().feed_many(tokens)


READERS: dict[str, Callable[[list[int]], None]] = {
    "feed": read_each,
    "feed_many": _feed_all,
    "drop-in": _poll_all,
}
"""Ways to read a stream, whose cost must not grow with its length."""


# -- Faults and memory --


# Marked text that begins a stream, and text that is a fault, again and again. An unknown id cannot
# be spelled.
_FAULTS = {
    "stray text": ("<|channel|>final<|message|>Aye<|end|>", " aye<|end|>"),
    "unknown ids": ("<|channel|>final<|message|>Aye", None),
    "a special token in content": ("<|channel|>final<|message|>Aye", "<|constrain|>"),
}
_UNKNOWN = 250_000


def _keep_faults(kind: str, count: int) -> list[Malformed]:
    head, fault = _FAULTS[kind]
    again = [_UNKNOWN] if fault is None else encode(fault)
    feed = EventParser().feed
    for token in encode(head):
        feed(token)
    tokens = again * count
    events = (event for token in tokens for event in feed(token))
    return [event for event in events if isinstance(event, Malformed)]


def faults(kind: str, count: int) -> Job:
    """Faults, each kept with its event."""
    assert len(_keep_faults(kind, 10)) == 10, "the text is not a fault each time"
    return Job(partial(_keep_faults, kind, count), count)


def fault_memory(kind: str, count: int) -> Measured:
    """The memory of a fault that is kept."""
    return Measured(partial(bytes_of, partial(_keep_faults, kind, count), count))


def parsers(count: int) -> Measured:
    """The memory of parsers inside of content."""
    tokens = tokens_of("a call")[:400]

    def make() -> list[EventParser]:
        made = [EventParser() for _ in range(count)]
        for parser in made:
            parser.feed_many(tokens)
        return made

    return Measured(partial(bytes_of, make, count))
