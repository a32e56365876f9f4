"""A server whose engine samples one token for each of its streams in a step.

    pip install 'harmony-stream[serve]'
    python examples/backend/push.py
    curl -N 127.0.0.1:8000/v1/chat/completions -d '{"messages": [{"role": "user", "content": "?"}]}'

The step feeds each token to the parser and each event to the writer of its stream, and hands the
bytes to the connection. No token costs a task or a generator.
"""

import asyncio
import itertools
import json
import logging
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from harmony_stream import EventParser, HarmonyEncodingName, Role, load_harmony_encoding
from harmony_stream.adapters import ChatCompletionStream, Usage, Writer, sse
from harmony_stream.adapters.conversations import conversation_from_chat
from harmony_stream.serving import PushResponse, make_server

ENCODING = load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)
STOP_TOKENS = ENCODING.stop_tokens_for_assistant_actions()
MAX_TOKENS = 1000
LOG = json.loads((Path(__file__).parent.parent / "two_plus_two.json").read_text())


def sample(lengths: dict[int, int]) -> dict[int, int]:
    """Stands for the model: return the next token of each sequence, whose length is given."""
    time.sleep(0.02)
    return {key: LOG[length] for key, length in lengths.items()}


@dataclass
class Stream:
    """One completion on its way to its client."""

    parser: EventParser
    writer: Writer
    response: PushResponse
    prompt_length: int
    length: int = 0


class Engine:
    """Steps all streams together, as long as there are any."""

    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}
        self._keys = itertools.count()
        self._stepping: asyncio.Task[None] | None = None

    def start(self, prompt: list[int]) -> PushResponse:
        """Register a stream and return its response."""
        key = next(self._keys)
        # Called when the client disconnects or does not read: the next step is without the stream.
        response = PushResponse(sse.CHAT_COMPLETIONS.headers, lambda: self.stop(key))
        writer = sse.CHAT_COMPLETIONS.writer(ChatCompletionStream("gpt-oss-20b"))
        self.streams[key] = Stream(EventParser(), writer, response, len(prompt))
        if self._stepping is None or self._stepping.done():
            self._stepping = asyncio.create_task(self.run())
        return response

    def stop(self, key: int) -> None:
        """Drop a stream, its parser and its place in the batch."""
        self.streams.pop(key, None)

    async def run(self) -> None:
        """Step until no stream is left."""
        while self.streams:
            lengths = {key: stream.length for key, stream in self.streams.items()}
            try:
                sampled = await asyncio.to_thread(sample, lengths)
            except Exception:
                logging.exception("a step failed")
                self.fail()
            else:
                self.push(sampled)

    def push(self, sampled: dict[int, int]) -> None:
        """Hand the tokens of one step to their clients."""
        for key, token in sampled.items():
            stream = self.streams.get(key)
            if stream is None:  # its client has disconnected during the step
                continue
            stream.length += 1
            for event in stream.parser.feed(token):
                stream.response.write(stream.writer.feed(event))
            if token in STOP_TOKENS or stream.length == MAX_TOKENS:
                self.finish(key, stream)

    def finish(self, key: int, stream: Stream) -> None:
        """End a stream that is complete, or that has reached its limit."""
        self.stop(key)
        for event in stream.parser.close():
            stream.response.write(stream.writer.feed(event))
        usage = Usage(stream.prompt_length, stream.length)
        stream.response.write(stream.writer.finish(None, usage))
        stream.response.end()

    def fail(self) -> None:
        """End all streams with an error."""
        for key, stream in list(self.streams.items()):
            self.stop(key)
            stream.response.write(stream.writer.fail("The server failed."))
            stream.response.end()


engine = Engine()


async def chat_completions(request: Request) -> PushResponse:
    """Answer a request, which is read without most of its fields here."""
    conversation = conversation_from_chat((await request.json())["messages"])
    return engine.start(ENCODING.render_conversation_for_completion(conversation, Role.ASSISTANT))


app = Starlette(routes=[Route("/v1/chat/completions", chat_completions, methods=["POST"])])

if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    with socket.create_server(("127.0.0.1", port)) as listening:
        make_server(app).run(sockets=[listening])
