"""Requests of clients, read from JSON.

`harmony_stream.adapters.conversations` makes the conversation that the model sees. Fields that
affect sampling (`temperature`, `tool_choice`, ...) are for the engine and are ignored here. A field
that asks the backend for something that it cannot do is refused.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import attrs

from harmony_stream.adapters import (
    ChatCompletionStream,
    Chunk,
    ResponseStream,
    StreamOptions,
    join_chunks,
    sse,
)
from harmony_stream.adapters.conversations import (
    conversation_from_chat,
    conversation_from_responses,
)
from harmony_stream.adapters.conversations.fields import Field
from harmony_stream.serving.errors import RequestError
from harmony_stream.serving.hiding import SameIds, WriterWithoutReasoning, without_reasoning
from harmony_stream.serving.store import StoredResponseStream
from harmony_stream.support.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harmony_stream.adapters.conversations.fields import ConversationError
    from harmony_stream.serving.frames import EventWriter
    from harmony_stream.serving.settings import Settings
    from harmony_stream.serving.store import ResponseStore
    from harmony_stream.values.messages import Conversation

_LOG = logging.getLogger("harmony_stream.serving")


@attrs.frozen
class Asked:
    """A request that was read.

    Attributes:
        model: the name of the model.
        conversation: the conversation that the model sees.
        stream: the client stream that turns the events into chunks of the client's protocol.
        writer: the writer of the stream's frames, if the client requests them.
        headers: the headers of the frames' response.
        whole: a function that returns the object that the chunks build, as the client sees it.
        max_tokens: the maximum number of sampled tokens.
        streams: true if the client requests a stream.
        shows_usage: true if the client requests the usage.
    """

    model: str
    conversation: Conversation
    stream: ChatCompletionStream | ResponseStream
    writer: EventWriter
    headers: Mapping[str, str]
    whole: Callable[[list[Chunk]], Chunk]
    max_tokens: int | None
    streams: bool
    shows_usage: bool = True


def body_from(data: bytes) -> dict[str, Any]:
    """Return the JSON object of a request.

    Raises:
        RequestError: if the body is not a JSON object.

    >>> body_from(b'{"model": "gpt-oss-20b"}')
    {'model': 'gpt-oss-20b'}
    """
    try:
        body = parse_json(data.decode())
    except ValueError as error:
        raise RequestError(f"The body of the request is not JSON: {error}.") from error
    if not isinstance(body, dict):
        raise RequestError("The body of the request is not a JSON object.")
    return body


# -- Chat Completions ------------------------------------------------------------------------------

# Fields that would change the answer in a way that is not supported, and their allowed values.
_CHAT_LIMITS: dict[str, tuple[Any, ...]] = {
    "n": (None, 1),
    "logprobs": (None, False),
    "top_logprobs": (None, 0),
}


def chat_request(body: Mapping[str, Any], settings: Settings) -> Asked:
    """Return the request to Chat Completions in this body.

    Raises:
        HarmonyError: if it cannot be served.
    """
    _refuse_others(body, _CHAT_LIMITS)
    conversation = conversation_from_chat(
        _given(body, "messages").value,
        tools=body.get("tools"),
        response_format=body.get("response_format"),
        reasoning_effort=body.get("reasoning_effort"),
        date=settings.today(),
    )
    model = _field(body, "model").text()
    tools = [tool["function"]["name"] for tool in body.get("tools") or ()]
    key = settings.reasoning_key
    streams = _flag(_field(body, "stream"))
    options = _field(body, "stream_options")
    stream = ChatCompletionStream(model, reasoning_key=key, **_options(settings, tools))
    return Asked(
        model,
        conversation,
        stream,
        sse.CHAT_COMPLETIONS.writer(stream),
        sse.CHAT_COMPLETIONS.headers,
        join_chunks,
        _count(body, "max_completion_tokens", "max_tokens"),
        streams,
        not streams or (options.value is not None and _flag(options["include_usage"])),
    )


# -- Responses -------------------------------------------------------------------------------------

_RESPONSES_LIMITS: dict[str, tuple[Any, ...]] = {
    "background": (None, False),
    "conversation": (None,),
    "top_logprobs": (None, 0),
}

# Fields of the request that its response repeats.
_REPEATED = (
    *("instructions", "max_output_tokens", "metadata", "parallel_tool_calls"),
    *("previous_response_id", "reasoning", "store", "temperature", "text", "tool_choice"),
    *("tools", "top_p", "truncation", "user"),
)


def responses_request(body: Mapping[str, Any], settings: Settings, store: ResponseStore) -> Asked:
    """Return the request to Responses in this body.

    Raises:
        HarmonyError: if it cannot be served.
    """
    _refuse_others(body, _RESPONSES_LIMITS)
    items = [*store.items_before(_field(body, "previous_response_id")), *_items(body)]
    conversation = conversation_from_responses(
        items,
        body.get("instructions"),
        tools=body.get("tools"),
        text=body.get("text"),
        reasoning=body.get("reasoning"),
        date=settings.today(),
        on_left_out=_tell_left_out,
    )
    model = _field(body, "model").text()
    tools = [tool["name"] for tool in body.get("tools") or () if tool["type"] == "function"]
    fields = {key: body[key] for key in _REPEATED if body.get(key) is not None}
    options = {"fields": fields, **_options(settings, tools)}
    stream, writer = _response_stream(model, settings, options)
    if _flag(_field(body, "store"), default=True):
        stream.store_in(store, items)
    return Asked(
        model,
        conversation,
        stream,
        writer,
        sse.RESPONSES.headers,
        without_reasoning if settings.hides_reasoning else _response,
        _count(body, "max_output_tokens"),
        _flag(_field(body, "stream")),
    )


def _response_stream(
    model: str, settings: Settings, options: dict[str, Any]
) -> tuple[StoredResponseStream, EventWriter]:
    if not settings.hides_reasoning:
        stream = StoredResponseStream(model, **options)
        return stream, sse.RESPONSES.writer(stream)
    ids = SameIds(settings.ids)
    quiet = {**options, "on_problem": None}  # the other stream reports
    stream = StoredResponseStream(model, **{**options, "ids": ids.first})
    shown = ResponseStream(model, hide_reasoning=True, **{**quiet, "ids": ids.second})
    return stream, WriterWithoutReasoning(*map(sse.RESPONSES.writer, (shown, stream)))


def _response(chunks: list[Chunk]) -> Chunk:
    found: Chunk = chunks[-1]["response"]
    return found


def _tell_left_out(item: ConversationError) -> None:
    _LOG.warning("%s", item)


def _items(body: Mapping[str, Any]) -> list[Any]:
    given = _given(body, "input")
    if isinstance(given.value, str):
        return [{"role": "user", "content": given.value}]
    return [item.value for item in given.each()]


# -- Both ------------------------------------------------------------------------------------------


def _options(settings: Settings, tools: list[str]) -> StreamOptions:
    return {
        "tools": tools,
        "on_problem": settings.on_problem,
        "ids": settings.ids,
        "clock": settings.clock,
    }


def _field(body: Mapping[str, Any], key: str) -> Field:
    return Field(body.get(key), key)


def _given(body: Mapping[str, Any], key: str) -> Field:
    field = _field(body, key)
    if field.value is None:
        field.fail("is missing", "give the input of the model")
    return field


def _refuse_others(body: Mapping[str, Any], limits: Mapping[str, tuple[Any, ...]]) -> None:
    for key, served in limits.items():
        if body.get(key) not in served:
            _field(body, key).fail("is not served here", "leave it out")


def _flag(field: Field, *, default: bool = False) -> bool:
    if field.value is None:
        return default
    if not isinstance(field.value, bool):
        field.fail("is neither true nor false", "give one of them")
    return field.value


def _count(body: Mapping[str, Any], *keys: str) -> int | None:
    """Return the first of these limits that is given."""
    given = (_field(body, key) for key in keys if body.get(key) is not None)
    for field in given:
        if type(field.value) is not int or field.value < 1:
            field.fail("is not a number of tokens", "give an integer of at least 1")
        return int(field.value)
    return None
