"""What a token costs from the engine to the wire: parser, adapter, JSON and SSE.

    python benchmarks/adapters.py [--rounds 20]

Token by token, as a server streams. Beside it stands the same job done by polling openai-harmony:
the chunks that a server makes by hand for the same text, written with `json.dumps`, as servers do,
and with our frames. Both streams are checked to say the same, chunk by chunk.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

import openai_harmony
from parsing import encode, provide_official_file
from side_by_side import Timing, ratio, time_by_turns
from texts import MIXED, TEXTS, completion

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

_CLOCK = 1_700_000_000.0

ADAPTERS: dict[str, tuple[Callable[[], Any], sse.Framing]] = {
    # Servers that poll put nothing between the texts of two messages.
    "chat": (
        lambda: ChatCompletionStream("m", separator="", ids=counted_ids(), clock=lambda: _CLOCK),
        sse.CHAT_COMPLETIONS,
    ),
    "responses": (
        lambda: ResponseStream("m", ids=counted_ids(), clock=lambda: _CLOCK),
        sse.RESPONSES,
    ),
    "AG-UI": (lambda: AgUiStream("t", "r", ids=counted_ids()), sse.AG_UI),
    "UI messages": (lambda: UiMessageStream(ids=counted_ids()), sse.UI_MESSAGES),
}


# -- Ours --


def parse_only(tokens: list[int]) -> None:
    """Events, and nothing made of them."""
    feed = EventParser().feed
    for token in tokens:
        feed(token)


def adapt_only(adapter: str, tokens: list[int]) -> None:
    """Events and chunks."""
    stream = ADAPTERS[adapter][0]()
    feed = EventParser().feed
    for token in tokens:
        for event in feed(token):
            stream.feed(event)
    stream.finish()


def serve(adapter: str, tokens: list[int]) -> Iterator[bytes]:
    """Events, chunks, JSON and frames."""
    make, framing = ADAPTERS[adapter]
    stream, encode = make(), framing.encode
    feed = EventParser().feed
    for token in tokens:
        for event in feed(token):
            yield from map(encode, stream.feed(event))
    yield from map(encode, stream.finish())
    yield framing.end()


def send(frames: Callable[..., Iterator[bytes]], *arguments: Any) -> None:  # noqa: ANN401
    """Take the frames as they come, and keep none."""
    deque(frames(*arguments), maxlen=0)


# -- The same with openai-harmony --


def plain_frame(chunk: dict[str, Any]) -> bytes:
    """A frame as servers write it."""
    return f"data: {json.dumps(chunk, separators=(',', ':'))}\n\n".encode()


class Poller:
    """Chat Completions as servers make them by polling openai-harmony's parser."""

    def __init__(
        self,
        encoding: openai_harmony.HarmonyEncoding,
        frame: Callable[[dict[str, Any]], bytes],
    ) -> None:
        self.frame = frame
        self.parser = openai_harmony.StreamableParser(encoding, openai_harmony.Role.ASSISTANT)
        self.ids = counted_ids()
        self.envelope = {
            "id": self.ids("chatcmpl-"),
            "object": "chat.completion.chunk",
            "created": int(_CLOCK),
            "model": "m",
        }
        self.calls = -1
        self.in_call = False

    def chunk(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return self.frame({**self.envelope, "choices": [choice]})

    def frames(self, token: int) -> list[bytes]:
        """What one token adds."""
        parser = self.parser
        parser.process(token)
        delta = parser.last_content_delta
        channel, recipient = parser.current_channel, parser.current_recipient
        frames = []
        if recipient is None:
            self.in_call = False
        elif not self.in_call and delta is not None:
            self.in_call = True
            self.calls += 1
            function = {"name": recipient.removeprefix("functions."), "arguments": ""}
            call = {"index": self.calls, "id": self.ids("call_"), "type": "function"}
            frames.append(self.chunk({"tool_calls": [{**call, "function": function}]}))
        if not delta:
            return frames
        if self.in_call:
            call = {"index": self.calls, "function": {"arguments": delta}}
            return [*frames, self.chunk({"tool_calls": [call]})]
        return [self.chunk({"reasoning" if channel == "analysis" else "content": delta})]


def serve_there(
    encoding: openai_harmony.HarmonyEncoding,
    frame: Callable[[dict[str, Any]], bytes],
    tokens: list[int],
) -> Iterator[bytes]:
    """The same stream by polling."""
    poller = Poller(encoding, frame)
    yield poller.chunk({"role": "assistant", "content": ""})
    for token in tokens:
        yield from poller.frames(token)
    yield poller.chunk({}, "tool_calls")
    yield b"data: [DONE]\n\n"


def check_same(encoding: openai_harmony.HarmonyEncoding, tokens: list[int]) -> None:
    """Both say the same, chunk by chunk: how JSON is written aside."""
    ours, theirs = (
        [event.data if event.is_done else event.json() for event in sse.Decoder().feed(data)]
        for data in map(
            b"".join, (serve("chat", tokens), serve_there(encoding, plain_frame, tokens))
        )
    )
    assert ours == theirs, "the two streams differ"


# -- Tables --


def bench_against_polling(encoding: openai_harmony.HarmonyEncoding, rounds: int) -> None:
    """Chat Completions, ours and by polling, for several scripts."""
    print("chat completions, ns a token: min and median of each, and the ratios to ours")
    print(f"{'':12}{'ours':>16}{'polling':>16}{'':>18}{'polling, our frames':>20}")
    for name, text in {"mixed": MIXED, **TEXTS}.items():
        tokens = encode(completion(text, 9))
        check_same(encoding, tokens)
        jobs: dict[str, Callable[[], object]] = {
            "ours": partial(send, serve, "chat", tokens),
            "polling": partial(send, serve_there, encoding, plain_frame, tokens),
            "our frames": partial(send, serve_there, encoding, sse.CHAT_COMPLETIONS.encode, tokens),
        }
        times = time_by_turns(jobs, rounds)
        ours, *others = (times[job] for job in jobs)
        cells = [_figures(ours, len(tokens))]
        cells += [_figures(each, len(tokens)) + ratio(each, ours) for each in others]
        print(f"{name:12}", *cells)


def _figures(timing: Timing, count: int) -> str:
    return "".join(f"{1e9 * seconds / count:8.0f}" for seconds in timing)


def bench_layers(rounds: int) -> None:
    """Where the time goes, for each protocol: minima."""
    tokens = encode(completion(MIXED, 9))
    print("\nns a token (minimum)           parser  + adapter  + JSON and SSE   bytes a token")
    for name in ADAPTERS:
        jobs: dict[str, Callable[[], object]] = {
            "parser": partial(parse_only, tokens),
            "adapter": partial(adapt_only, name, tokens),
            "frames": partial(send, serve, name, tokens),
        }
        times = time_by_turns(jobs, rounds)
        figures = [f"{1e9 * times[job].minimum / len(tokens):9.0f}" for job in jobs]
        size = len(b"".join(serve(name, tokens))) / len(tokens)
        print(f"{name:25}", *figures, f"{size:18.0f}")


def bench_growth(rounds: int) -> None:
    """Cost per token of the whole way by length of one message: it must not grow."""
    print("\nns a token by length (minimum)", *(f"{name:>12}" for name in ADAPTERS))
    head, body = encode("<|channel|>final<|message|>"), encode(MIXED)
    for length in (1_000, 8_000, 64_000):
        tokens = (head + body * (length // len(body) + 1))[:length]
        jobs = {name: partial(send, serve, name, tokens) for name in ADAPTERS}
        times = time_by_turns(jobs, max(2, rounds * 1000 // length))
        figures = (f"{1e9 * times[name].minimum / length:12.0f}" for name in ADAPTERS)
        print(f"{length:29} ", *figures)


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        provide_official_file(folder)
        encoding = openai_harmony.load_harmony_encoding("HarmonyGptOss")
        bench_against_polling(encoding, rounds)
    bench_layers(rounds)
    bench_growth(rounds)


if __name__ == "__main__":
    main()
