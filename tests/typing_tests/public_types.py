"""Only type-checked, by mypy --strict: what the parser's public names promise."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, assert_never, assert_type

from harmony_stream import (
    Completion,
    ContentDelta,
    EndKind,
    Event,
    EventParser,
    FaultKind,
    HarmonyParseError,
    Header,
    Malformed,
    Message,
    MessageCollector,
    MessageEnd,
    MessageStart,
    Role,
    State,
    ToolCall,
    Vocabulary,
    aiter_events,
    iter_events,
    join_deltas,
    parse,
)


def exhaustive(event: Event) -> str:
    match event:
        case MessageStart():
            return event.header.role.value
        case ContentDelta(text=text):
            return text
        case MessageEnd(end=end, complete=complete):
            assert_type(end, EndKind)
            assert_type(complete, bool)
            return end.value
        case Malformed(error=error):
            return str(error)
        case _:
            assert_never(event)


def feeding(vocabulary: Vocabulary) -> None:
    parser = EventParser(Role.USER, strict=True, vocabulary=vocabulary, max_header_tokens=32)
    EventParser("assistant")
    EventParser(role=None)
    assert_type(parser.feed(1), tuple[Event, ...])
    assert_type(parser.feed_many([1, 2]), list[Event])
    assert_type(parser.feed_many(iter((1, 2))), list[Event])
    assert_type(parser.feed_text("a"), list[Event])
    assert_type(parser.feed_text(b"a"), list[Event])
    assert_type(parser.close(), tuple[Event, ...])
    assert_type(parser.copy(), EventParser)
    assert_type(parser.state, State)
    assert_type(parser.position, int)
    assert_type(parser.header, Header | None)
    assert_type(EventParser.after([1], strict=True), EventParser)
    parser.feed(5.0)  # type: ignore[arg-type]
    parser.feed("5")  # type: ignore[arg-type]
    parser.feed_text(5)  # type: ignore[arg-type]
    parser.position = 3  # type: ignore[misc]


def events(start: MessageStart, delta: ContentDelta, end: MessageEnd, fault: Malformed) -> None:
    assert_type(start.channel, str | None)
    assert_type(start.recipient, str | None)
    assert_type(delta.role, Role)
    assert_type(delta.text, str)
    assert_type(end.to_dict(), dict[str, Any])
    assert_type(fault.error, HarmonyParseError)
    assert_type(fault.error.kind, FaultKind)
    assert_type(fault.error.token, int | None)
    assert_type(fault.error.events, tuple[Event, ...])
    assert_type(join_deltas([start, delta]), list[Event])
    delta.text = "b"  # type: ignore[misc]
    start.header = end.header  # type: ignore[misc]
    fault.error.position = 1  # type: ignore[misc]
    end.header.channel = None  # type: ignore[misc]
    print(fault.channel)  # type: ignore[attr-defined]


def collecting(event: Event) -> None:
    collector = MessageCollector()
    assert_type(collector.feed(event), Message | None)
    assert_type(collector.completion(), Completion)
    completion = parse([1], role=None, strict=True)
    assert_type(completion, Completion)
    assert_type(completion.messages, tuple[Message, ...])
    assert_type(completion.ends, tuple[MessageEnd, ...])
    assert_type(completion.faults, tuple[Malformed, ...])
    assert_type(completion.end, EndKind | None)
    assert_type(completion.tool_calls, tuple[ToolCall, ...])
    assert_type(completion.final_text, str)
    completion.messages = ()  # type: ignore[misc]


def iterating(tokens: AsyncIterator[int]) -> None:
    assert_type(iter_events([1], "user", strict=True), Iterator[Event])
    assert_type(aiter_events(tokens), AsyncIterator[Event])
