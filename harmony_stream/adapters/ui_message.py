"""The UI message stream of Vercel's AI SDK, version 1 of the protocol, as `useChat` reads it.

Source: `ui-message-chunks.ts` of the package `ai`, version 6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harmony_stream.adapters.blocks import Block, BlockStream
from harmony_stream.adapters.routing import Route, RouteKind
from harmony_stream.support.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import ClassVar

    from harmony_stream.adapters.base import Chunk
    from harmony_stream.adapters.options import Reason, Usage
    from harmony_stream.adapters.problems import Problem

PROBLEM = "data-harmony-problem"
"""Type of the chunks that report problems to a client that asked for them."""

_CALL = Block(
    "toolCallId",
    "call_",
    ({"type": "tool-input-start"},),
    "tool-input-delta",
    "inputTextDelta",
    (),
)
_FINISH_REASONS = {"stop": "stop", "tool_calls": "tool-calls", "length": "length"}
_INCOMPLETE = "the call was cut off, so it must not be executed"


class UiMessageStream(BlockStream):
    """Turns a parser's events into chunks of the UI message stream.

    Every call is shown. Calls that the client does not execute are `providerExecuted`, and tool
    messages in the stream are their outputs. Arguments are parsed once, at the end. A call that was
    cut off, or whose arguments are not JSON, ends in `tool-input-error` with its unchanged text.

    Args:
        hide_reasoning: true to leave the reasoning out.
        options: see `StreamOptions`.

    >>> from harmony_stream import EventParser
    >>> stream = UiMessageStream()
    >>> events = EventParser().feed_many([200005, 17196, 200008, 13225, 200002])
    >>> chunks = [chunk for event in events for chunk in stream.feed(event)] + stream.finish()
    >>> print(*(chunk["type"] for chunk in chunks))
    start start-step text-start text-delta text-end finish-step finish
    """

    protocol = "UI messages"

    _blocks: ClassVar[Mapping[RouteKind, Block]] = {
        RouteKind.TEXT: Block(
            "id", "txt_", ({"type": "text-start"},), "text-delta", "delta", ("text-end",)
        ),
        RouteKind.REASONING: Block(
            "id",
            "rs_",
            ({"type": "reasoning-start"},),
            "reasoning-delta",
            "delta",
            ("reasoning-end",),
        ),
        RouteKind.FUNCTION: _CALL,
        RouteKind.CODE: _CALL,
        RouteKind.WEB_SEARCH: _CALL,
        RouteKind.SERVER_TOOL: _CALL,
    }

    def _begin(self) -> list[Chunk]:
        return [{"type": "start", "messageId": self._new_id("msg_")}, {"type": "start-step"}]

    @staticmethod
    def _tool(route: Route) -> Chunk:
        by_server = {} if route.kind is RouteKind.FUNCTION else {"providerExecuted": True}
        return {"toolName": route.full_name, **by_server}

    def _call_end(self, route: Route, arguments: str, is_complete: bool) -> list[Chunk]:
        call = {**self._identity, **self._tool(route)}
        if not is_complete:
            return [_error(call, arguments, _INCOMPLETE)]
        if route.kind is RouteKind.CODE:
            return [{"type": "tool-input-available", **call, "input": arguments}]
        try:
            found = parse_json(arguments)
        except ValueError as error:
            return [_error(call, arguments, f"the arguments are not JSON: {error}")]
        return [{"type": "tool-input-available", **call, "input": found}]

    def _result(self, call: str, text: str) -> list[Chunk]:
        return [{"type": "tool-output-available", "toolCallId": call, "output": text}]

    def _problem(self, problem: Problem) -> list[Chunk]:
        return [{"type": PROBLEM, "data": problem.to_dict()}]

    def _closing(self, reason: Reason, usage: Usage | None) -> list[Chunk]:
        counts = {} if usage is None else {"messageMetadata": {"usage": self._usage(usage)}}
        return _finish(_FINISH_REASONS[reason], counts)

    def _failure(self, message: str) -> list[Chunk]:
        return [{"type": "error", "errorText": message}, *_finish("error", {})]


def _error(call: Chunk, arguments: str, text: str) -> Chunk:
    return {"type": "tool-input-error", **call, "input": arguments, "errorText": text}


def _finish(reason: str, fields: Chunk) -> list[Chunk]:
    return [{"type": "finish-step"}, {"type": "finish", "finishReason": reason, **fields}]
