"""Client streams: a parser's events as chunks of an API, and the chunks as frames of bytes.

`ChatCompletionStream`, `ResponseStream`, `AgUiStream` and `UiMessageStream` have one shape: `feed`
each event, then `finish`, and send the chunks that they return. `iterate` and `aiterate` do both
for a whole turn. `sse` frames the chunks, and `routing` decides where a message goes.
"""

from harmony_stream.adapters.ag_ui import AgUiStream
from harmony_stream.adapters.base import Chunk, ClientStream
from harmony_stream.adapters.chat_completions import (
    ChatCompletionStream,
    chat_completion,
    join_chunks,
)
from harmony_stream.adapters.options import StreamOptions, Usage, counted_ids
from harmony_stream.adapters.problems import Problem
from harmony_stream.adapters.responses import ResponseStream, response
from harmony_stream.adapters.routing import Route, RouteKind, Unlabelled, route, tool_route
from harmony_stream.adapters.ui_message import UiMessageStream
from harmony_stream.adapters.writer import Writer

__all__ = [
    "AgUiStream",
    "ChatCompletionStream",
    "Chunk",
    "ClientStream",
    "Problem",
    "ResponseStream",
    "Route",
    "RouteKind",
    "StreamOptions",
    "UiMessageStream",
    "Unlabelled",
    "Usage",
    "Writer",
    "chat_completion",
    "counted_ids",
    "join_chunks",
    "response",
    "route",
    "tool_route",
]
