"""What clients make of a stream: the models and accumulators of the protocols' own packages.

The models of openai and ag-ui take unknown fields without a word, so `unknown_fields` walks what
they have read. Every stream goes over the wire: it is framed, cut in odd places, and decoded.
"""

import re
import typing

import attrs
import openai
from ag_ui.core import Event as AgUiEvent
from openai._types import omit
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter
from pydantic_ai.ui.vercel_ai import response_types as ui
from strategies import tokens_of

from harmony_stream.adapters import sse
from harmony_stream.adapters.routing import RouteKind, Unlabelled, stray_route
from harmony_stream.parsing.parser import EventParser
from harmony_stream.values.events import ContentDelta, EndKind, Malformed, MessageEnd, MessageStart
from harmony_stream.values.header import Header
from harmony_stream.values.messages import Role

VERSION = tuple(map(int, openai.__version__.split(".")[:2]))

# Fields that clients expect though no model has them, and such as came with a later version.
CHAT_EXTRAS = {"reasoning", "reasoning_content", "harmony_problems"}
RESPONSE_EXTRAS = {"harmony_problems"}
RESPONSE_EXTRAS |= {"name"} if VERSION >= (3, 0) else {"cache_write_tokens"}

# -- Making streams --


def events_of(marked_text, role="assistant"):
    """The events of marked text as tokens, one by one."""
    parser = EventParser(role)
    tokens = tokens_of(marked_text) if isinstance(marked_text, str) else marked_text
    events = [event for token in tokens for event in parser.feed(token)]
    return [*events, *parser.close()]


def run(stream, events, reason=None, usage=None, **options):
    """All chunks of a stream."""
    chunks = [chunk for event in events for chunk in stream.feed(event, **options)]
    return chunks + stream.finish(reason, usage)


# -- Over the wire --


def over_the_wire(framing, chunks, size=7):
    """The chunks as a client decodes them from pieces of so many bytes."""
    data = b"".join(framing.frames(chunks))
    decoder = sse.Decoder()
    pieces = [data[place : place + size] for place in range(0, len(data), size)]
    events = [event for piece in pieces for event in decoder.feed(piece)]
    assert decoder.is_between_events
    assert [event.is_done for event in events] == [
        framing.ends_with_done and number == len(events) - 1 for number in range(len(events))
    ]
    read = [event.json() for event in events if not event.is_done]
    names = [event.event for event in events if not event.is_done]
    if framing.names_events:
        assert names == [chunk["type"] for chunk in read]
    return read


def unknown_fields(value):
    """Names of all fields, at any depth, that the models do not declare."""
    if isinstance(value, BaseModel):
        parts = [getattr(value, name) for name in type(value).model_fields]
        return set(value.model_extra or ()).union(*map(unknown_fields, parts))
    if isinstance(value, list):
        return set().union(*map(unknown_fields, value))
    return set()


# -- Chat Completions --


def read_chat(chunks):
    """The completion that OpenAI's client has in the end, as a dict."""
    state = ChatCompletionStreamState()
    chunks = over_the_wire(sse.CHAT_COMPLETIONS, chunks)
    for chunk in chunks:
        model = ChatCompletionChunk.model_validate(chunk, strict=True)
        assert unknown_fields(model) <= CHAT_EXTRAS
        list(state.handle_chunk(model))
    assert_one_finish_reason_for_each_choice(chunks)
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1
    return state.current_completion_snapshot.to_dict()


def assert_one_finish_reason_for_each_choice(chunks):
    seen = set()
    for choice in (choice for chunk in chunks for choice in chunk["choices"]):
        assert choice["index"] not in seen
        if choice["finish_reason"] is not None:
            seen.add(choice["index"])
    assert seen == {choice["index"] for chunk in chunks for choice in chunk["choices"]}


def calls_of(message):
    """Name and arguments of each call in a message of a completion."""
    calls = message.get("tool_calls") or []
    ids = [call["id"] for call in calls]
    assert len(set(ids)) == len(ids)
    assert all(call["type"] == "function" for call in calls)
    return [(call["function"]["name"], call["function"]["arguments"]) for call in calls]


def check_chat_completion(completion):
    model = ChatCompletion.model_validate(completion, strict=True)
    assert unknown_fields(model) <= CHAT_EXTRAS


# -- Responses --

_UNION = typing.get_args(ResponseStreamEvent)[0]
_RESPONSE_EVENTS = {
    typing.get_args(model.model_fields["type"].annotation)[0]: model
    for model in typing.get_args(_UNION)
}


def read_response(events):
    """The response that the stream ends with, as a dict, once the rules of streams are checked."""
    state = ResponseStreamState(input_tools=omit, text_format=omit)
    events = over_the_wire(sse.RESPONSES, events)
    for event in events:
        model = _RESPONSE_EVENTS[event["type"]].model_validate(event)
        assert unknown_fields(model) <= RESPONSE_EXTRAS
        list(state.handle_event(model))
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    response = events[-1]["response"]
    assert_items_follow_their_life_cycle(events, response["output"])
    check_response(response)
    return response


def check_response(response):
    assert unknown_fields(Response.model_validate(response)) <= RESPONSE_EXTRAS


def assert_items_follow_their_life_cycle(events, output):
    """Added, done and the deltas between them agree with the item that the response has."""
    assert events[0]["type"] == "response.created"
    assert events[1]["type"] == "response.in_progress"
    of_items = [event for event in events if "output_index" in event]
    indexes = [event["output_index"] for event in of_items]
    assert indexes == sorted(indexes)
    assert set(indexes) == set(range(len(output)))
    for index, item in enumerate(output):
        mine = [event for event in of_items if event["output_index"] == index]
        assert mine[0]["type"] == "response.output_item.added"
        assert mine[0]["item"]["status"] == "in_progress"
        assert mine[0]["item"]["id"] == item["id"]
        assert mine[-1]["type"] == "response.output_item.done"
        assert mine[-1]["item"] == item
        assert {event["item_id"] for event in mine if "item_id" in event} <= {item["id"]}
        deltas = "".join(event.get("delta", "") for event in mine)
        done = [
            event[key]
            for event in mine
            for key in ("text", "arguments", "code")
            if event["type"].endswith(".done") and key in event
        ]
        if item["type"] != "web_search_call":
            assert done == [deltas]
            assert text_of(item) == deltas


def text_of(item):
    """The text of an item, wherever this kind keeps it."""
    if "content" in item:
        return "".join(part["text"] for part in item["content"])
    return item.get("arguments", item.get("code"))


# -- AG-UI and UI messages --

_AG_UI_EVENT = TypeAdapter(AgUiEvent)


def read_ag_ui(chunks):
    """The blocks of a run: (kind, name, joined text), once pairs and fields are checked."""
    chunks = over_the_wire(sse.AG_UI, chunks)
    for chunk in chunks:
        assert unknown_fields(_AG_UI_EVENT.validate_python(chunk)) == set()
    assert chunks[0]["type"] == "RUN_STARTED"
    assert chunks[-1]["type"] in ("RUN_FINISHED", "RUN_ERROR")
    return _blocks(chunks, "_START", ("_CONTENT", "_ARGS"), "_END", "delta", "toolCallName")


_UI_CHUNKS = {
    model.model_fields["type"].default: model
    for model in vars(ui).values()
    if isinstance(model, type) and issubclass(model, ui.BaseChunk) and model is not ui.BaseChunk
}


def read_ui_messages(chunks):
    """The same for a UI message stream."""
    chunks = over_the_wire(sse.UI_MESSAGES, chunks)
    for chunk in chunks:
        model = ui.DataChunk if chunk["type"].startswith("data-") else _UI_CHUNKS[chunk["type"]]
        aliases = {field.alias or name for name, field in model.model_fields.items()}
        assert set(chunk) <= aliases
        model.model_validate(chunk)
    assert [chunk["type"] for chunk in chunks[:2]] == ["start", "start-step"]
    assert [chunk["type"] for chunk in chunks[-2:]] == ["finish-step", "finish"]
    ends = ("-end", "-available", "-error")
    return _blocks(
        chunks[2:-2], "-start", ("-delta",), ends, ("delta", "inputTextDelta"), "toolName"
    )


def _blocks(chunks, start, delta, end, text_keys, name_key):
    text_keys = (text_keys,) if isinstance(text_keys, str) else text_keys
    blocks, open_key = [], None
    for chunk in chunks:
        kind = chunk["type"]
        key = next((chunk[k] for k in ("messageId", "toolCallId", "id") if k in chunk), None)
        if kind in ("RUN_STARTED", "RUN_FINISHED", "REASONING_START", "REASONING_END"):
            continue
        if kind.endswith(start):
            assert open_key is None
            open_key = key
            blocks.append([kind.removesuffix(start), chunk.get(name_key), ""])
        elif kind.endswith(delta):
            assert key == open_key
            blocks[-1][2] += next(chunk[k] for k in text_keys if k in chunk)
        elif kind.endswith(end) and not kind.startswith("tool-output"):
            assert key == open_key
            open_key = None
    assert open_key is None
    return [tuple(block) for block in blocks]


# -- The parser's own word --

# Faults whose text is text of the stream.
STRAY = ("expected_start", "unparsed_header_text", "unknown_role")


@attrs.define
class Said:
    """A message as the parser read it, or text outside of all messages, without an end."""

    header: Header
    text: str = ""
    end: MessageEnd | None = None


HIDDEN = Header(Role.ASSISTANT, None, "analysis")


def said(events, unlabelled=Unlabelled()):  # noqa: B008 - it does not change
    """All that belongs to the answer, in order: up to what the assistant ended by `<|return|>`."""
    found, has_spoken, strays = [], False, []
    for event in events:
        match event:
            case MessageStart(header=header):
                has_spoken |= header.role is Role.ASSISTANT
                for stray in strays:
                    is_within = event.start <= stray.start
                    found.append(said_outside(stray, header if is_within else None, unlabelled))
                strays = []
                found.append(Said(header))
            case ContentDelta():
                found[-1].text += event.text
            case MessageEnd():
                found[-1].end = event
                if event.end.ends_answer and has_spoken:
                    break
            case Malformed() if event.text and event.error.kind in STRAY:
                strays.append(event)
    return found + [said_outside(stray, None, unlabelled) for stray in strays]


def said_outside(stray, header, unlabelled):
    """Words of a header are the author's; of the assistant's, hidden or not as the routing says."""
    if header is not None and header.role is not Role.ASSISTANT:
        return Said(header, stray.text)
    is_hidden = stray_route(stray, header, unlabelled).kind is RouteKind.REASONING
    return Said(HIDDEN if is_hidden else Header(Role.ASSISTANT), stray.text)


def texts_of(events, belongs, **options):
    """The texts of the messages whose header passes; those without text do not count."""
    return [each.text for each in said(events, **options) if each.text and belongs(each.header)]


def spoken(events, belongs, **options):
    """The same as one text, as clients have it where messages are not apart."""
    return "\n\n".join(texts_of(events, belongs, **options))


def names_nothing(recipient):
    return re.fullmatch(r"(?i:functions?[./:]+|[./:+-])*", recipient) is not None


def as_text(header):
    """The header of what is sent as text: a call of no name goes where its channel says."""
    if header.recipient is not None and names_nothing(header.recipient):
        return attrs.evolve(header, recipient=None)
    return header


BUILT_IN = ("python", "browser.search", "browser.open", "browser.find")


def calls_in(events, hidden=(), reason=None):
    """Name and arguments of each call in the answer, as clients have to get them."""
    return [
        (each.header.recipient, arguments_of(each, reason))
        for each in said(events)
        if as_text(each.header).is_tool_call and each.header.recipient not in hidden
    ]


def arguments_of(call, reason):
    """What was sampled; an object where a complete call of a function says nothing."""
    is_open = call.end is None or call.end.end is EndKind.TRUNCATED
    is_complete = reason == "tool_calls" if is_open else call.end.complete
    takes_json = call.header.data_type in (None, "json")
    is_function = call.header.recipient not in BUILT_IN
    is_blank = not call.text.strip()
    return call.text + "{}" * (is_complete and takes_json and is_function and is_blank)
