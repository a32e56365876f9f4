"""AG-UI, the protocol between agents and user interfaces: a run as its events.

Source: `ag_ui.core.Event` of ag-ui-protocol 1.0; keys are written as on the wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from harmony_stream.adapters.blocks import Block, BlockStream
from harmony_stream.adapters.routing import Route, RouteKind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import ClassVar

    from harmony_stream.adapters.base import Chunk
    from harmony_stream.adapters.options import Reason, StreamOptions, Usage
    from harmony_stream.adapters.problems import Problem

PROBLEM = "harmony.problem"
"""Name of the custom events that report problems to a client that asked for them."""

_CALL = Block(
    "toolCallId",
    "call_",
    ({"type": "TOOL_CALL_START"},),
    "TOOL_CALL_ARGS",
    "delta",
    ("TOOL_CALL_END",),
)


class AgUiStream(BlockStream):
    """Turns a parser's events into one run of the AG-UI protocol.

    Every call is shown, also that of a built-in tool. Tool messages in the stream are the results.
    The end of a call that must not be executed has the metadata `{"complete": False}`. A run that
    was cut off has the outcome `cancelled`.

    Args:
        thread_id: id of the conversation.
        run_id: id of this run.
        hide_reasoning: true to leave the reasoning out.
        options: see `StreamOptions`.

    >>> from harmony_stream import EventParser
    >>> stream = AgUiStream("thread", "run")
    >>> events = EventParser().feed_many([200005, 17196, 200008, 13225, 200002])
    >>> chunks = [chunk for event in events for chunk in stream.feed(event)] + stream.finish()
    >>> print(*(chunk["type"] for chunk in chunks))
    RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_FINISHED
    """

    protocol = "AG-UI"

    _blocks: ClassVar[Mapping[RouteKind, Block]] = {
        RouteKind.TEXT: Block(
            "messageId",
            "msg_",
            ({"type": "TEXT_MESSAGE_START", "role": "assistant"},),
            "TEXT_MESSAGE_CONTENT",
            "delta",
            ("TEXT_MESSAGE_END",),
        ),
        RouteKind.REASONING: Block(
            "messageId",
            "rs_",
            (
                {"type": "REASONING_START"},
                {"type": "REASONING_MESSAGE_START", "role": "reasoning"},
            ),
            "REASONING_MESSAGE_CONTENT",
            "delta",
            ("REASONING_MESSAGE_END", "REASONING_END"),
        ),
        RouteKind.FUNCTION: _CALL,
        RouteKind.CODE: _CALL,
        RouteKind.WEB_SEARCH: _CALL,
        RouteKind.SERVER_TOOL: _CALL,
    }

    def __init__(
        self,
        thread_id: str,
        run_id: str,
        *,
        hide_reasoning: bool = False,
        **options: Unpack[StreamOptions],
    ) -> None:
        super().__init__(hide_reasoning=hide_reasoning, **options)
        self._run = {"threadId": thread_id, "runId": run_id}

    def _begin(self) -> list[Chunk]:
        return [{"type": "RUN_STARTED", **self._run}]

    @staticmethod
    def _tool(route: Route) -> Chunk:
        return {"toolCallName": route.full_name}

    def _call_end(self, route: Route, arguments: str, is_complete: bool) -> list[Chunk]:
        metadata = {} if is_complete else {"metadata": {"complete": False}}
        return [{"type": "TOOL_CALL_END", **self._identity, **metadata}]

    def _result(self, call: str, text: str) -> list[Chunk]:
        identity = {"messageId": self._new_id("msg_"), "toolCallId": call}
        return [{"type": "TOOL_CALL_RESULT", **identity, "content": text, "role": "tool"}]

    def _problem(self, problem: Problem) -> list[Chunk]:
        return [{"type": "CUSTOM", "name": PROBLEM, "value": problem.to_dict()}]

    def _closing(self, reason: Reason, usage: Usage | None) -> list[Chunk]:
        outcome = {"outcome": {"type": "cancelled"}} if reason == "length" else {}
        counts = {} if usage is None else {"usage": [self._usage(usage)]}
        return [{"type": "RUN_FINISHED", **self._run, **outcome, **counts}]

    def _failure(self, message: str) -> list[Chunk]:
        return [{"type": "RUN_ERROR", "message": message}]
