"""The Responses API of OpenAI: its streaming events, and the whole `response` object.

Source: `openai.types.responses.ResponseStreamEvent`, and what `openai.lib.streaming.responses`
accumulates. Each message of harmony becomes one item, and the item's whole life cycle is sent, even
without text. A table holds the differences between kinds of item.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Unpack

import attrs

from harmony_stream.adapters.base import Chunk, CompletionStream, LogProbability, events_of
from harmony_stream.adapters.routing import Route, RouteKind
from harmony_stream.support.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harmony_stream.adapters.options import Reason, StreamOptions, Usage
    from harmony_stream.adapters.problems import Problem
    from harmony_stream.values.completion import Completion
    from harmony_stream.values.events import Event

PROBLEMS = "harmony_problems"
"""Key of the problems in the last response, for a client that asked for them."""


@attrs.frozen
class _Shape:
    """One kind of item.

    Attributes:
        prefix: the prefix of its id.
        item: its fields besides id and status, before the first text.
        text: the key of the text, in the item (or its part) and in the event that ends the text.
        delta, done: the events of the text; "" if there are none.
        part: the part of content that holds the text, if the item has parts.
        opening: the events after the one that adds the item.
        closing: the events before the one that ends it, if the call is complete.
        cut: the status of an item that was cut off.
    """

    prefix: str
    item: Chunk
    text: str
    delta: str
    done: str
    part: Chunk | None = None
    opening: tuple[str, ...] = ()
    closing: tuple[str, ...] = ()
    cut: str = "incomplete"


_SHAPES = {
    RouteKind.REASONING: _Shape(
        "rs_",
        {"type": "reasoning", "summary": [], "content": []},
        "text",
        "response.reasoning_text.delta",
        "response.reasoning_text.done",
        part={"type": "reasoning_text", "text": ""},
    ),
    RouteKind.TEXT: _Shape(
        "msg_",
        {"type": "message", "role": "assistant", "content": []},
        "text",
        "response.output_text.delta",
        "response.output_text.done",
        part={"type": "output_text", "text": "", "annotations": [], "logprobs": []},
    ),
    RouteKind.FUNCTION: _Shape(
        "fc_",
        {"type": "function_call", "arguments": ""},
        "arguments",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
    ),
    RouteKind.CODE: _Shape(
        "ci_",
        {
            "type": "code_interpreter_call",
            "code": "",
            "container_id": "auto",
            "outputs": None,
        },
        "code",
        "response.code_interpreter_call_code.delta",
        "response.code_interpreter_call_code.done",
        opening=("response.code_interpreter_call.in_progress",),
        closing=(
            "response.code_interpreter_call.interpreting",
            "response.code_interpreter_call.completed",
        ),
    ),
    # Added when it ends, since the query is known only then.
    RouteKind.WEB_SEARCH: _Shape(
        "ws_",
        {"type": "web_search_call"},
        "",
        "",
        "",
        opening=("response.web_search_call.in_progress",),
        closing=("response.web_search_call.searching", "response.web_search_call.completed"),
        cut="failed",  # searches do not have the status `incomplete`
    ),
    RouteKind.SERVER_TOOL: _Shape(
        "mcp_",
        {"type": "mcp_call", "arguments": "", "output": None, "error": None},
        "arguments",
        "response.mcp_call_arguments.delta",
        "response.mcp_call_arguments.done",
        opening=("response.mcp_call.in_progress",),
        closing=("response.mcp_call.completed",),
    ),
}

# The end of the response for each reason: event, status, and the field that gives the reason.
_ENDS: dict[Reason, tuple[str, Chunk]] = {
    "stop": ("response.completed", {"status": "completed"}),
    "tool_calls": ("response.completed", {"status": "completed"}),
    "length": (
        "response.incomplete",
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    ),
}

_RESPONSE: Chunk = {
    "object": "response",
    "status": "in_progress",
    "error": None,
    "incomplete_details": None,
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [],
    "usage": None,
}


class ResponseStream(CompletionStream):
    """Turns a parser's events into the streaming events of the Responses API.

    `feed(event)` for each event, then `finish(reason, usage)`, and send the chunks that they
    return. Reasoning becomes a `reasoning` item. Preambles and answers become `message` items (with
    their `phase`). Function calls become `function_call`, `python` becomes `code_interpreter_call`,
    `browser.*` becomes `web_search_call`, and tools in other namespaces become `mcp_call`. An item
    that was cut off is `incomplete`.

    Args:
        model: the name of the model in the response.
        hide_reasoning: true to leave the reasoning items out.
        fields: more fields of the response: `tools`, `instructions`, `metadata` of the request.
        options: see `StreamOptions`.

    >>> from harmony_stream import EventParser
    >>> stream = ResponseStream("gpt-oss-20b")
    >>> for event in EventParser().feed_many([200005, 17196, 200008, 13225, 200002]):
    ...     for chunk in stream.feed(event):
    ...         print(chunk["sequence_number"], chunk["type"])
    0 response.created
    1 response.in_progress
    2 response.output_item.added
    3 response.content_part.added
    4 response.output_text.delta
    5 response.output_text.done
    6 response.content_part.done
    7 response.output_item.done
    >>> [event["response"]["status"] for event in stream.finish()]
    ['completed']
    """

    protocol = "Responses"

    def __init__(
        self,
        model: str,
        *,
        hide_reasoning: bool = False,
        fields: Chunk | None = None,
        **options: Unpack[StreamOptions],
    ) -> None:
        super().__init__(hide_reasoning=hide_reasoning, **options)
        self._is_numbered = True
        self._response: Chunk = {
            "id": self._new_id("resp_"),
            "created_at": self._clock(),
            "model": model,
            **deepcopy(_RESPONSE),
            **(fields or {}),
        }
        self._output: list[Chunk] = []
        self._problems: list[Chunk] = []
        # Of the open item, if the message has one.
        self._shape: _Shape | None = None
        self._item: Chunk = {}
        self._place: Chunk = {}
        self._logprobs: list[Chunk] = []

    # -- The stream --

    def _begin(self) -> list[Chunk]:
        return [
            self._event("response.created", response=dict(self._response)),
            self._event("response.in_progress", response=dict(self._response)),
        ]

    def _closing(self, reason: Reason, usage: Usage | None) -> list[Chunk]:
        event, fields = _ENDS[reason]
        if usage is not None:
            fields = {**fields, "usage": self._usage(usage)}
        return [self._event(event, response=self._final(fields))]

    def _failure(self, message: str) -> list[Chunk]:
        error = {"code": "server_error", "message": message}
        response = self._final({"status": "failed", "error": error})
        return [self._event("response.failed", response=response)]

    def _final(self, fields: Chunk) -> Chunk:
        problems = {PROBLEMS: self._problems} if self._show_problems else {}
        return {**self._response, "output": self._output, **fields, **problems}

    def _usage(self, usage: Usage) -> Chunk:
        return {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {
                "cached_tokens": usage.cached_tokens,
                "cache_write_tokens": 0,
            },
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": self._reasoning_tokens_of(usage)},
            "total_tokens": usage.total_tokens,
        }

    def _problem(self, problem: Problem) -> list[Chunk]:
        self._problems.append(problem.to_dict())
        return []

    def _event(self, kind: str, **fields: Any) -> Chunk:  # noqa: ANN401
        event = {"type": kind, "sequence_number": self._sequence_number, **fields}
        self._sequence_number += 1
        return event

    # -- Items --

    def _start(self, route: Route) -> list[Chunk]:
        self._shape = shape = self._shape_of(route)
        if shape is None:
            return []
        identity = {"id": self._new_id(shape.prefix)}
        item = deepcopy(shape.item)
        self._item = {**identity, **item, **self._named(route), "status": "in_progress"}
        self._place = {"item_id": identity["id"], "output_index": len(self._output)}
        self._logprobs = []
        return self._added(shape) if shape.delta else []

    def _keeps(self, route: Route) -> bool:
        return self._shape_of(route) is not None

    def _shape_of(self, route: Route) -> _Shape | None:
        if route.kind is RouteKind.REASONING and self._hides_reasoning:
            return None
        return _SHAPES.get(route.kind)

    def _named(self, route: Route) -> Chunk:
        """Return the fields of the item that the header gives."""
        match route.kind:
            case RouteKind.TEXT:
                is_preamble = self._message.header.channel == "commentary"
                return {"phase": "commentary" if is_preamble else "final_answer"}
            case RouteKind.FUNCTION:
                return {"call_id": self._new_id("call_"), "name": route.name}
            case RouteKind.SERVER_TOOL:
                return {"server_label": route.server, "name": route.name}
        return {}

    def _added(self, shape: _Shape) -> list[Chunk]:
        index = self._place["output_index"]
        events = [
            self._event("response.output_item.added", output_index=index, item=dict(self._item))
        ]
        events += [self._event(kind, **self._place) for kind in shape.opening]
        if shape.part is not None:
            self._place["content_index"] = 0
            part = deepcopy(shape.part)
            events.append(self._event("response.content_part.added", **self._place, part=part))
        return events

    def _has_logprobs(self, route: Route) -> bool:
        return route.kind is RouteKind.TEXT

    def _keep_logprobs(self, entries: list[Chunk]) -> None:
        self._logprobs += entries

    def _delta_chunk(self, text: str, logprobs: list[Chunk] | None = None) -> Chunk | None:
        shape = self._shape
        if shape is None or not shape.delta:
            return None
        event = {
            "type": shape.delta,
            "sequence_number": self._sequence_number,
            **self._place,
            "delta": text,
        }
        if self._message.has_logprobs:
            event["logprobs"] = _without_bytes(logprobs or ())
        return event

    def _end(self, route: Route, is_complete: bool) -> list[Chunk]:
        shape = self._shape
        if shape is None:
            return []
        events = self._fill(shape, route, self._message.text)
        if is_complete:
            events += [self._event(kind, **self._place) for kind in shape.closing]
        self._item["status"] = "completed" if is_complete else shape.cut
        self._output.append(self._item)
        index = self._place["output_index"]
        done = self._event("response.output_item.done", output_index=index, item=self._item)
        return [*events, done]

    def _fill(self, shape: _Shape, route: Route, text: str) -> list[Chunk]:
        """Put the text into the item and return the events that report it."""
        if not shape.delta:
            self._item["action"] = _action(route.name, text)
            return self._added(shape)
        fields = {shape.text: text, **self._done_fields(route)}
        events = [self._event(shape.done, **self._place, **fields)]
        if shape.part is None:
            self._item[shape.text] = text
            return events
        part = {**shape.part, shape.text: text}
        if route.kind is RouteKind.TEXT:
            part["logprobs"] = [{"bytes": [], "top_logprobs": [], **e} for e in self._logprobs]
        self._item["content"] = [part]
        return [*events, self._event("response.content_part.done", **self._place, part=part)]

    def _done_fields(self, route: Route) -> Chunk:
        match route.kind:
            case RouteKind.TEXT:
                return {"logprobs": _without_bytes(self._logprobs)}
            case RouteKind.FUNCTION:
                return {"name": route.name}
        return {}


def _without_bytes(entries: Iterable[Chunk]) -> list[Chunk]:
    """Return log probabilities as deltas have them, since only a whole text has the bytes."""
    kept = []
    for entry in entries:
        found = {key: value for key, value in entry.items() if key != "bytes"}
        if "top_logprobs" in found:
            found["top_logprobs"] = _without_bytes(found["top_logprobs"])
        kept.append(found)
    return kept


def _action(tool: str, arguments: str) -> Chunk:
    """Return the action of a call of the built-in browser. Format guide, "Browser tool".

    The model names pages by the number of an earlier result, so a page without an address is
    `cursor:NUMBER`, as vLLM writes it. Arguments that are not a JSON object become the query.

    >>> _action("browser.search", '{"query": "tides"}')
    {'type': 'search', 'query': 'tides'}
    >>> _action("browser.find", '{"pattern": "noon", "cursor": 2}')
    {'type': 'find_in_page', 'pattern': 'noon', 'url': 'cursor:2'}
    """
    found = _object(arguments)
    if found is None:
        return {"type": "search", "query": arguments}
    url = (
        found.get("id") if isinstance(found.get("id"), str) else f"cursor:{found.get('cursor', -1)}"
    )
    match tool:
        case "browser.search":
            return {"type": "search", "query": str(found.get("query", arguments))}
        case "browser.open":
            return {"type": "open_page", "url": url}
    return {"type": "find_in_page", "pattern": str(found.get("pattern", "")), "url": url}


def _object(arguments: str) -> dict[str, Any] | None:
    try:
        found = parse_json(arguments)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def response(
    source: Completion | Iterable[Event],
    *,
    model: str,
    reason: Reason | None = None,
    usage: Usage | None = None,
    logprobs: Sequence[LogProbability] | None = None,
    hide_reasoning: bool = False,
    fields: Chunk | None = None,
    **options: Unpack[StreamOptions],
) -> Chunk:
    """Return the `response` object that ends the stream of a finished turn.

    Args:
        source: a `Completion`, or the events, which also hold the tokens of each text.
        model: the name of the model in the response.
        reason: see `CompletionStream.finish`.
        usage: the token counts; reasoning tokens are counted if they are not given.
        logprobs: one entry for each token.
        hide_reasoning: see `ResponseStream`.
        fields: more fields of the response.
        options: see `StreamOptions`.

    Raises:
        ValueError: if the reason is another one, or the start of an event's message is missing.

    >>> import harmony_stream
    >>> completion = harmony_stream.parse([200005, 17196, 200008, 13225, 200002])
    >>> response(completion, model="gpt-oss-20b")["output"][0]["content"][0]["text"]
    'Hello'
    """
    stream = ResponseStream(model, hide_reasoning=hide_reasoning, fields=fields, **options)
    for event in events_of(source):
        stream.feed(event, logprobs=logprobs)
    whole: Chunk = stream.finish(reason, usage)[-1]["response"]
    return whole
