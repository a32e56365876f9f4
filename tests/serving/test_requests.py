"""What the backend refuses, and how it says so: as OpenAI's API does."""

import json
import socket

import openai
import pytest
from backend_harness import ANSWER, PATIENCE, RESPONSES_TOOLS, ids, serving

from harmony_stream import iter_events
from harmony_stream.adapters import counted_ids
from harmony_stream.serving import Settings
from harmony_stream.serving.errors import RequestError
from harmony_stream.serving.requests import responses_request
from harmony_stream.serving.store import ResponseStore

QUESTION = [{"role": "user", "content": "When is high tide?"}]
CHAT = {"model": "answer", "messages": QUESTION}
RESPONSES = {"model": "answer", "input": "When?"}


@pytest.fixture(scope="module")
def backend():
    with serving({"answer": [ANSWER], "other": [ANSWER, ANSWER]}) as running:
        yield running


@pytest.fixture
def refusal(backend):
    """The error object of a request, once its shape is checked."""

    def ask(method, path, status, **options):
        response = backend.request(method, path, **options)
        assert response.status_code == status
        assert response.headers["content-type"] == "application/json"
        error = response.json()["error"]
        assert set(error) == {"message", "type", "param", "code"}
        return error

    return ask


def test_an_item_that_is_left_out_of_the_prompt_is_logged(backend, caplog):
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{"}
    items = [*QUESTION, {**call, "status": "incomplete"}, *QUESTION]
    backend.client().responses.create(model="answer", input=items)
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        (
            "harmony_stream.serving",
            "input[1].status 'incomplete' says that the call was cut off; "
            "the item is left out of the prompt",
        )
    ]


# -- Models --


def test_the_models_are_listed(backend):
    models = backend.client().models.list().data
    assert [model.id for model in models] == ["answer", "other"]
    assert {model.object for model in models} == {"model"}


def test_a_model_is_found_by_its_name(backend):
    assert backend.client().models.retrieve("other").owned_by == "harmony-stream"


@pytest.mark.parametrize("streams", [True, False])
def test_a_model_that_is_not_there_is_not_found(backend, streams):
    client = backend.client()
    for ask in (
        lambda: client.chat.completions.create(**{**CHAT, "model": "none"}, stream=streams),
        lambda: client.responses.create(**{**RESPONSES, "model": "none"}, stream=streams),
        lambda: client.models.retrieve("none"),
    ):
        with pytest.raises(openai.NotFoundError, match="`none` does not exist") as caught:
            ask()
        assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


# -- Requests that are no requests --


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b'{"model":', "not JSON"),
        (b"\xff", "not JSON"),
        (b'{"temperature": NaN}', "not JSON"),
        (b'{"model": "\\ud800"}', "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "is not a JSON object"),
    ],
)
def test_a_body_that_is_not_a_json_object_is_refused(refusal, path, body, words):
    error = refusal("POST", path, 400, content=body)
    assert words in error["message"]
    assert error["type"] == "invalid_request_error"


def test_an_address_that_is_not_there_is_not_found(refusal):
    error = refusal("GET", "/v1/embeddings", 404)
    assert error["message"] == "Invalid URL (GET /v1/embeddings)"


def test_a_method_that_an_address_has_not_is_refused(refusal, backend):
    error = refusal("GET", "/v1/responses", 405)
    assert error["message"] == "Not allowed: GET /v1/responses"
    assert backend.request("GET", "/v1/responses").headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"model": None}, "model"),
        ({"model": 5}, "model"),
        ({"messages": None}, "messages"),
        ({"messages": "Hi"}, "messages"),
        ({"messages": [{"role": "bot", "content": ""}]}, "messages[0].role"),
        ({"messages": [{"role": "tool", "tool_call_id": "c9", "content": ""}]},
         "messages[0].tool_call_id"),
        ({"tools": [{"type": "custom"}]}, "tools[0].type"),
        ({"reasoning_effort": "none"}, "reasoning_effort"),
        ({"stream": "yes"}, "stream"),
        ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_completion_tokens": 1.5}, "max_completion_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
    ],
)  # fmt: skip
def test_a_chat_request_that_cannot_be_served_is_refused_by_field(refusal, change, param):
    error = refusal("POST", "/v1/chat/completions", 400, json=CHAT | change)
    assert (error["param"], error["type"]) == (param, "invalid_request_error")
    assert error["message"].startswith(param)


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"model": None}, "model"),
        ({"input": None}, "input"),
        ({"input": 5}, "input"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        ({"tools": [{"type": "image_generation"}]}, "tools[0].type"),
        ({"instructions": 5}, "instructions"),
        ({"store": "no"}, "store"),
        ({"previous_response_id": 5}, "previous_response_id"),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"max_output_tokens": -1}, "max_output_tokens"),
    ],
)
def test_a_responses_request_that_cannot_be_served_is_refused_by_field(refusal, change, param):
    error = refusal("POST", "/v1/responses", 400, json=RESPONSES | change)
    assert (error["param"], error["type"]) == (param, "invalid_request_error")


def test_a_name_that_no_prompt_can_hold_is_refused(refusal):
    tools = [{"type": "function", "function": {"name": "a b", "parameters": {}}}]
    error = refusal("POST", "/v1/chat/completions", 400, json=CHAT | {"tools": tools})
    assert error["param"] == "tools[0].function.name"


@pytest.mark.parametrize(
    ("path", "field"),
    [
        *(("/v1/chat/completions", key) for key in ("max_tokens", "max_completion_tokens")),
        ("/v1/responses", "max_output_tokens"),
    ],
)
def test_a_number_of_tokens_that_is_enough_cuts_nothing(backend, path, field):
    body = {"model": "answer", "messages": QUESTION, "input": QUESTION, field: 1000}
    answer = backend.request("POST", path, json=body).json()
    assert answer.get("status", "completed") == "completed"
    assert "length" not in json.dumps(answer)


def test_fields_that_choose_between_tokens_are_left_to_the_engine(backend):
    body = CHAT | {"temperature": 0.5, "seed": 3, "n": 1, "logprobs": False, "user": "u"}
    assert backend.request("POST", "/v1/chat/completions", json=body).status_code == 200


def test_built_in_tools_of_responses_are_no_functions(backend):
    body = RESPONSES | {"tools": [{"type": "web_search"}, *RESPONSES_TOOLS]}
    response = backend.request("POST", "/v1/responses", json=body).json()
    assert [tool["type"] for tool in response["tools"]] == ["web_search", "function"]


def test_a_conversation_longer_than_the_recording_is_refused(refusal):
    spoken = [{"role": "assistant", "content": "Noon."}, *QUESTION]
    error = refusal("POST", "/v1/chat/completions", 400, json=CHAT | {"messages": spoken})
    assert error["code"] == "recording_over"
    assert "has 1 turns, and this conversation asks for turn 2" in error["message"]


def test_text_that_ends_lines_for_some_readers_is_escaped(backend):
    body = RESPONSES | {"instructions": "a\u2028b\x85c"}
    text = backend.request("POST", "/v1/responses", json=body).text
    assert "a\\u2028b\\u0085c" in text


def test_a_client_that_leaves_in_the_middle_of_its_request_does_no_harm(backend):
    host, port = backend.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), PATIENCE) as connection:
        connection.sendall(
            b"POST /v1/responses HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n{"
        )
    assert backend.client().responses.create(**RESPONSES).status == "completed"


# -- The parser's events --


def events_of(backend, **query):
    text = backend.request("GET", "/events", params=query).text
    frames = [frame.split("\n") for frame in text.strip().split("\n\n")]
    events = [json.loads(data.removeprefix("data: ")) for _, data in frames]
    names = [name.removeprefix("event: ") for name, _ in frames]
    assert names == [event["type"] for event in events]
    return events


def test_the_events_are_those_of_the_parser_and_one_that_ends_them(backend):
    *events, last = events_of(backend, model="answer", input="When?", speed="100000")
    types = [event["type"] for event in events]
    assert types.count("message_start") == types.count("message_end") == 2
    assert last == {"type": "end_of_stream", "tokens": len(ids(ANSWER)), "error": None}


def test_without_a_name_the_events_are_those_of_the_first_model(backend):
    assert events_of(backend) == events_of(backend, model="answer")


def test_the_events_come_at_the_speed_that_is_asked_for(backend):
    response = backend.request("GET", "/events", params={"model": "answer", "speed": "100"})
    assert response.elapsed.total_seconds() >= (len(ids(ANSWER)) - 1) / 100


@pytest.mark.parametrize("speed", ["0", "-1", "inf", "nan", "fast"])
def test_a_speed_that_is_none_is_refused(refusal, speed):
    error = refusal("GET", f"/events?speed={speed}", 400)
    assert (error["param"], error["type"]) == ("speed", "invalid_request_error")


def test_events_of_a_model_that_is_not_there_are_not_found(refusal):
    assert refusal("GET", "/events?model=none", 404)["code"] == "model_not_found"


# -- What is made of a request for Responses --


def asked_for(change, **settings):
    store = ResponseStore()
    return responses_request(RESPONSES | change, Settings(**settings), store), store


def fed(asked):
    events = [asked.writer.feed(event) for event in iter_events(ids(ANSWER))]
    return b"".join([*events, asked.writer.finish("stop", None)])


@pytest.mark.parametrize("key", ["reasoning", None])
@pytest.mark.parametrize("is_stored", [True, False])
def test_a_response_is_stored_whole_whatever_its_client_sees(key, is_stored):
    asked, store = asked_for({"store": is_stored}, reasoning_key=key, ids=counted_ids())
    frames = fed(asked)
    assert (b"reasoning_text" in frames) == (key is not None)
    identity = json.loads(frames.split(b"data: ")[1].split(b"\n")[0])["response"]["id"]
    if is_stored:
        assert [item.get("type") for item in store.items_of(identity)][1:] == [
            "reasoning",
            "message",
        ]
    else:
        with pytest.raises(RequestError):
            store.items_of(identity)
