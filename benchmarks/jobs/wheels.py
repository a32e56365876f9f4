"""Jobs of the wheels, for which only they and the standard library are loaded."""

from __future__ import annotations

import functools
import json
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

import openai_harmony

from benchmarks import conversations
from benchmarks.job import Job
from benchmarks.texts import COMPLETIONS, random_completions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_ROLE = openai_harmony.Role.ASSISTANT


@functools.cache
def _encoding() -> openai_harmony.HarmonyEncoding:
    return openai_harmony.load_harmony_encoding("HarmonyGptOss")


def _encode(marked_text: str) -> list[int]:
    return list(_encoding().encode(marked_text, allowed_special="all"))


def _parser() -> openai_harmony.StreamableParser:
    return openai_harmony.StreamableParser(_encoding(), _ROLE)


# -- Reading --


def _polled(tokens: list[int]) -> Iterator[tuple[str | None, str | None, str | None]]:
    parser = _parser()
    for token in tokens:
        parser.process(token)
        yield parser.current_channel, parser.current_recipient, parser.last_content_delta


def _poll(tokens: list[int]) -> None:
    parser = _parser()
    for token in tokens:
        parser.process(token)
        _ = parser.last_content_delta
        _ = parser.current_channel, parser.current_recipient


def poll(text: str) -> Job:
    """One token at a time, with the three polls that a server needs."""
    tokens = _encode(COMPLETIONS[text])
    says = [list(each) for each in _polled(tokens) if each[2]]
    return Job(partial(_poll, tokens), len(tokens), says)


def _poll_all(tokens: list[int]) -> None:
    parser = _parser()
    for token in tokens:
        parser.process(token)
        _ = parser.last_content_delta, parser.current_content, parser.messages, parser.tokens
        _ = parser.current_channel, parser.current_recipient, parser.current_role, parser.state


def poll_all(text: str) -> Job:
    """One token at a time, with all that can be polled."""
    tokens = _encode(COMPLETIONS[text])
    says = [list(each) for each in _polled(tokens) if each[2]]
    return Job(partial(_poll_all, tokens), len(tokens), says)


def parse(text: str) -> Job:
    """A completion to messages."""
    tokens = _encode(COMPLETIONS[text])
    run = partial(_encoding().parse_messages_from_completion_tokens, tokens, _ROLE)
    return Job(run, len(tokens), conversations.plain(run()))


def begin(text: str) -> Job:
    """A parser, made and fed a few tokens."""
    tokens = _encode(COMPLETIONS[text])
    return Job(partial(_poll, tokens), 1, tokens)


# -- Chat Completions, as servers make them by polling --


def _frame(chunk: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(chunk, separators=(',', ':'))}\n\n".encode()


class Poller:
    """The chunks of one stream: a delta for each text, and the head of each call."""

    def __init__(self) -> None:
        self.parser = _parser()
        self.envelope = {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": "m",
        }
        self.calls = -1
        self.in_call = False

    def chunk(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        """Return a frame."""
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return _frame({**self.envelope, "choices": [choice]})

    def frames(self, token: int) -> Iterable[bytes]:
        """Return the frames that a token adds."""
        parser = self.parser
        parser.process(token)
        delta = parser.last_content_delta
        channel, recipient = parser.current_channel, parser.current_recipient
        if recipient is None:
            self.in_call = False
        elif not self.in_call and delta is not None:
            yield self._head(recipient)
        if delta and self.in_call:
            call = {"index": self.calls, "function": {"arguments": delta}}
            yield self.chunk({"tool_calls": [call]})
        elif delta:
            yield self.chunk({"reasoning" if channel == "analysis" else "content": delta})

    def _head(self, recipient: str) -> bytes:
        self.in_call = True
        self.calls += 1
        function = {"name": recipient.removeprefix("functions."), "arguments": ""}
        call = {"index": self.calls, "id": f"call_{self.calls + 1}", "type": "function"}
        return self.chunk({"tool_calls": [{**call, "function": function}]})


def _serve(tokens: list[int]) -> Iterator[bytes]:
    poller = Poller()
    yield poller.chunk({"role": "assistant", "content": ""})
    for token in tokens:
        yield from poller.frames(token)
    yield poller.chunk({}, "tool_calls")
    yield b"data: [DONE]\n\n"


def serve(text: str) -> Job:
    """Tokens to the bytes of Chat Completions."""
    tokens = _encode(COMPLETIONS[text])
    frames = b"".join(_serve(tokens)).decode().split("\n\n")
    says = [json.loads(frame[6:]) for frame in frames if frame[6:7] == "{"]
    return Job(lambda: deque(_serve(tokens), maxlen=0), len(tokens), says)


# -- Writing --


def render(count: int) -> Job:
    """The prompt of a conversation of that many messages."""
    chat = conversations.conversation(openai_harmony, count)
    run = partial(_encoding().render_conversation_for_completion, chat, _ROLE)
    return Job(run, 1, list(run()))


def turn(count: int) -> Job:
    """A sampled call is parsed, its result is added, and the next prompt is rendered."""
    chat = conversations.conversation(openai_harmony, count)
    sampled = _encode(conversations.SAMPLED_CALL)
    result = conversations.tool_result(openai_harmony)
    everything = openai_harmony.RenderConversationConfig(auto_drop_analysis=False)

    def run() -> list[int]:
        call = _encoding().parse_messages_from_completion_tokens(sampled, _ROLE)
        # Always from the same start, so that the conversation does not grow from run to run.
        grown = openai_harmony.Conversation.from_messages([*chat.messages, *call, result])
        return list(_encoding().render_conversation_for_completion(grown, _ROLE, everything))

    return Job(run, 1, len(run()))


# -- Logs --


_STOPS = {200002, 200007, 200012}
_MESSAGE = 200008


def _rows_in_bulk(rows: list[list[int]]) -> list[Any]:
    found = []
    for row, tokens in enumerate(rows):
        messages = _encoding().parse_messages_from_completion_tokens(tokens, _ROLE)
        begins = [place for place, token in enumerate(tokens) if token == _MESSAGE]
        ends = [place for place, token in enumerate(tokens) if token in _STOPS]
        for index, (message, begin, end) in enumerate(zip(messages, begins, ends, strict=True)):
            text = message.content[0].text
            where = (message.channel, message.recipient, message.content_type)
            found.append((row, index, *where, text, end - begin - 1, tokens[end]))
    return found


def _rows_by_polling(rows: list[list[int]]) -> list[Any]:
    found = []
    for row, tokens in enumerate(rows):
        parser = _parser()
        counts = [0]
        for token in tokens:
            parser.process(token)
            if parser.state == openai_harmony.StreamState.EXPECT_START:
                counts.append(0)
            elif parser.state == openai_harmony.StreamState.CONTENT:
                counts[-1] += 1
        for index, message in enumerate(parser.messages):
            text = message.content[0].text
            where = (message.channel, message.recipient, message.content_type)
            found.append((row, index, *where, text, counts[index] - 1))
    return found


def batch(completions: int, source: str) -> Job:
    """What each message of a log says: a row with its header, text, length and end.

    In bulk the lengths and ends come from a walk over the special tokens; by polling the parser
    knows them itself.
    """
    rows = random_completions(completions, _encode)
    lines = "".join(json.dumps({"token_ids": row}) + "\n" for row in rows).encode()
    runs = {
        "bulk": lambda: _rows_in_bulk(rows),
        "polled": lambda: _rows_by_polling(rows),
        "JSON lines": lambda: _rows_in_bulk(
            [json.loads(line)["token_ids"] for line in lines.splitlines()]
        ),
    }
    says = [[message[5], message[6]] for message in runs[source]()]
    return Job(runs[source], sum(map(len, rows)), says)
