"""End to end: OpenAI's own client, over a real socket, against the backend."""

import asyncio
import json
import random

import openai
import pytest
from backend_harness import (
    ANSWER,
    CALL,
    CHAT_TOOLS,
    LONG,
    RESPONSES_TOOLS,
    ids,
    serving,
    spoken,
)

from harmony_stream import Role, parse
from harmony_stream.adapters import counted_ids
from harmony_stream.adapters.conversations import conversation_from_chat
from harmony_stream.rendering.render import Renderer
from harmony_stream.serving import RecordedEngine

QUESTION = [{"role": "user", "content": "When is high tide?"}]


@pytest.fixture(scope="module")
def backend():
    with serving({"answer": [ANSWER], "tides": [CALL, ANSWER]}) as running:
        yield running


# -- Chat Completions --


def test_a_chat_completion_streams(backend):
    with backend.client().chat.completions.stream(model="answer", messages=QUESTION) as stream:
        deltas = [event.delta for event in stream if event.type == "content.delta"]
    message = stream.get_final_completion().choices[0].message
    assert len(deltas) > 3
    assert "".join(deltas) == message.content == parse(ids(ANSWER)).final_text
    assert message.reasoning == "The table says it."


def test_a_chat_completion_comes_whole(backend):
    completion = backend.client().chat.completions.create(model="answer", messages=QUESTION)
    choice = completion.choices[0]
    assert (choice.message.content, choice.finish_reason) == ("High tide is at noon.", "stop")
    assert (completion.object, completion.model) == ("chat.completion", "answer")


def prompt_of(messages, **options):
    conversation = conversation_from_chat(messages, **options)
    return Renderer(profile="guide").render_conversation_for_completion(
        conversation, Role.ASSISTANT
    )


def test_usage_counts_the_prompt_as_it_is_rendered(backend):
    create = backend.client().chat.completions.create
    usage = create(model="answer", messages=QUESTION, tools=CHAT_TOOLS).usage
    assert usage.prompt_tokens == len(prompt_of(QUESTION, tools=CHAT_TOOLS))
    assert usage.completion_tokens == len(ids(ANSWER))
    assert usage.completion_tokens_details.reasoning_tokens == len(ids("The table says it."))


@pytest.mark.parametrize("wanted", [True, False, None])
def test_a_chat_stream_tells_usage_if_it_is_asked_to(backend, wanted):
    options = {} if wanted is None else {"stream_options": {"include_usage": wanted}}
    create = backend.client().chat.completions.create
    chunks = list(create(model="answer", messages=QUESTION, stream=True, **options))
    assert (chunks[-1].usage is not None) is bool(wanted)


def test_the_reasoning_of_finished_turns_is_not_part_of_the_prompt(backend):
    answered = [
        {"role": "user", "content": "When?"},
        {"role": "assistant", "reasoning": "Look it up.", "content": "At noon."},
        {"role": "user", "content": "Sure?"},
    ]
    bare = [{k: v for k, v in message.items() if k != "reasoning"} for message in answered]
    create = backend.client().chat.completions.create
    usage = create(model="tides", messages=answered).usage
    assert usage.prompt_tokens == len(prompt_of(bare))


@pytest.mark.parametrize("key", ["max_tokens", "max_completion_tokens"])
def test_a_chat_completion_is_cut_where_the_client_wants(backend, key):
    completion = backend.client().chat.completions.create(
        model="answer", messages=QUESTION, **{key: 14}
    )
    assert completion.choices[0].finish_reason == "length"
    assert completion.usage.completion_tokens == 14


def test_as_many_tokens_as_were_allowed_are_no_cut(backend):
    completion = backend.client().chat.completions.create(
        model="answer", messages=QUESTION, max_tokens=len(ids(ANSWER))
    )
    assert completion.choices[0].finish_reason == "stop"


def test_a_loop_over_tools_runs_to_the_answer(backend):
    client, messages, called = backend.client(), list(QUESTION), []
    while True:
        with client.chat.completions.stream(
            model="tides", messages=messages, tools=CHAT_TOOLS
        ) as stream:
            completion = stream.get_final_completion()
        message = completion.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            break
        assert completion.choices[0].finish_reason == "tool_calls"
        for call in message.tool_calls:
            called.append((call.function.name, json.loads(call.function.arguments)))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "noon"})
    assert called == [("tide", {"at": "Oban"})]
    assert [each["role"] for each in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[1]["content"] == "I'll look."
    assert messages[3]["content"] == "High tide is at noon."


# -- Responses --


def test_a_response_streams(backend):
    with backend.client().responses.stream(model="answer", input="When?") as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
    response = stream.get_final_response()
    assert len(deltas) > 3
    assert "".join(deltas) == response.output_text == "High tide is at noon."
    assert [item.type for item in response.output] == ["reasoning", "message"]
    assert response.usage.output_tokens == len(ids(ANSWER))


def test_a_response_comes_whole_and_repeats_what_was_asked(backend):
    response = backend.client().responses.create(
        model="answer",
        input="When?",
        instructions="Be brief.",
        metadata={"run": "7"},
        tools=RESPONSES_TOOLS,
        max_output_tokens=1000,
    )
    assert (response.status, response.output_text) == ("completed", "High tide is at noon.")
    assert (response.instructions, response.metadata) == ("Be brief.", {"run": "7"})
    assert (response.tools[0].name, response.max_output_tokens) == ("tide", 1000)


def test_a_response_is_cut_where_the_client_wants(backend):
    response = backend.client().responses.create(model="answer", input="?", max_output_tokens=14)
    assert response.status == "incomplete"
    assert response.incomplete_details.reason == "max_output_tokens"


def tool_results(response):
    return [
        {"type": "function_call_output", "call_id": item.call_id, "output": "noon"}
        for item in response.output
        if item.type == "function_call"
    ]


@pytest.mark.parametrize("remembers", ["the server", "the client"])
def test_a_loop_over_tools_of_responses_runs_to_the_answer(backend, remembers):
    client = backend.client()
    options = {"model": "tides", "tools": RESPONSES_TOOLS}
    with client.responses.stream(input="When?", **options) as stream:
        first = stream.get_final_response()
    results = tool_results(first)
    assert [item.type for item in first.output] == ["reasoning", "message", "function_call"]
    if remembers == "the server":
        options["previous_response_id"] = first.id
    else:
        spoken_items = [item.model_dump(exclude_none=True) for item in first.output]
        results = [{"role": "user", "content": "When?"}, *spoken_items, *results]
    with client.responses.stream(input=results, **options) as stream:
        second = stream.get_final_response()
    assert second.output_text == "High tide is at noon."
    assert second.usage.input_tokens > first.usage.input_tokens


def test_a_response_that_came_whole_can_be_gone_on_from(backend):
    create = backend.client().responses.create
    first = create(model="tides", input="When?", tools=RESPONSES_TOOLS)
    second = create(
        model="tides",
        input=tool_results(first),
        previous_response_id=first.id,
        tools=RESPONSES_TOOLS,
    )
    assert second.output_text == "High tide is at noon."


def test_a_response_that_was_not_to_be_stored_is_forgotten(backend):
    create = backend.client().responses.create
    first = create(model="tides", input="When?", store=False)
    with pytest.raises(openai.BadRequestError, match="not found") as caught:
        create(model="tides", input="?", previous_response_id=first.id)
    assert caught.value.code == "previous_response_not_found"


# -- What servers can choose --


def test_ids_clock_and_the_key_of_reasoning_can_be_chosen():
    settings = {
        "ids": counted_ids(),
        "clock": lambda: 1.0,
        "reasoning_key": "reasoning_content",
        "date": lambda: "2025-06-28",
    }
    with serving({"answer": [ANSWER]}, **settings) as backend:
        create = backend.client().chat.completions.create
        completion = create(model="answer", messages=QUESTION)
    assert (completion.id, completion.created) == ("chatcmpl-1", 1)
    assert completion.choices[0].message.reasoning_content == "The table says it."
    assert completion.usage.prompt_tokens == len(prompt_of(QUESTION, date="2025-06-28"))


def test_a_stream_that_waits_is_kept_alive():
    with serving({"answer": [ANSWER]}, speed=5, keep_alive=0.05) as backend:
        body = {"model": "answer", "messages": QUESTION, "stream": True, "max_tokens": 2}
        text = backend.request("POST", "/v1/chat/completions", json=body).text
    assert text.count(": keep-alive\n\n") >= 2
    assert text.endswith("data: [DONE]\n\n")


def test_what_breaks_the_format_is_told_to_the_server_only():
    with serving({"broken": ["<|channel|>odd<|message|>x<|end|>y"]}) as backend:
        create = backend.client().chat.completions.create
        completion = create(model="broken", messages=QUESTION)
    assert "harmony_problems" not in completion.choices[0].message.model_extra
    assert next(problem.kind for problem in backend.problems) == "unknown_channel"


# -- Clients that go away --


@pytest.fixture(scope="module")
def slow():
    with serving({"long": [LONG]}, speed=100) as running:
        yield running


def assert_stopped_early(backend, at_least=0):
    replay = backend.replay()
    assert at_least <= replay.sent < replay.total / 10


def test_the_replay_stops_when_a_chat_client_leaves_in_mid_stream(slow):
    stream = slow.client().chat.completions.create(model="long", messages=QUESTION, stream=True)
    for _, _chunk in zip(range(5), stream, strict=False):
        pass
    stream.close()
    assert_stopped_early(slow, at_least=3)


def test_the_replay_stops_when_a_responses_client_leaves_in_mid_stream(slow):
    with slow.client().responses.stream(model="long", input="?") as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                break
    assert_stopped_early(slow, at_least=3)


@pytest.mark.parametrize("protocol", ["chat", "responses"])
def test_the_replay_stops_when_nobody_waits_for_the_whole_any_more(slow, protocol):
    client = slow.client(timeout=0.5)
    ask = {
        "chat": lambda: client.chat.completions.create(model="long", messages=QUESTION),
        "responses": lambda: client.responses.create(model="long", input="?"),
    }
    with pytest.raises(openai.APITimeoutError):
        ask[protocol]()
    assert_stopped_early(slow)


def test_the_replay_stops_when_a_task_of_the_client_is_cancelled(slow):
    async def main():
        async with slow.async_client() as client:
            stream = await client.chat.completions.create(
                model="long", messages=QUESTION, stream=True
            )
            task = asyncio.create_task(anext_all(stream))
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await stream.close()

    async def anext_all(stream):
        async for _ in stream:
            pass

    asyncio.run(main())
    assert_stopped_early(slow)


def test_the_replay_stops_where_the_client_wants_no_more(slow):
    slow.client().chat.completions.create(model="long", messages=QUESTION, max_tokens=6)
    assert slow.replay().sent == 6


def test_a_server_that_stops_does_not_wait_for_its_streams():
    with serving({"long": [LONG]}, speed=100) as backend:
        stream = backend.client().chat.completions.create(
            model="long", messages=QUESTION, stream=True
        )
        next(iter(stream))
    assert_stopped_early(backend)
    # An error of openai's in version 3, one of its HTTP client in version 2.
    with pytest.raises(Exception, match=r"Connection error|peer closed connection"):
        list(stream)


# -- Engines that fail --


class Failing:
    """Gives half an answer, or none, then fails."""

    models = ("failing",)

    async def sample(self, prompt):
        for token in ids("<|channel|>final<|message|>High"):
            yield token
        raise RuntimeError("out of memory")


@pytest.fixture(scope="module")
def failing():
    with serving({}, engine=Failing(), page=True) as running:
        yield running


def test_a_chat_stream_of_an_engine_that_fails_ends_with_an_error(failing):
    stream = failing.client().chat.completions.create(
        model="failing", messages=QUESTION, stream=True
    )
    seen = []
    with pytest.raises(openai.APIError, match="The server failed"):
        seen += [chunk.choices[0].delta.content for chunk in iter(stream)] or seen
    stream.close()


def test_a_response_of_an_engine_that_fails_is_failed(failing):
    events = list(failing.client().responses.create(model="failing", input="?", stream=True))
    response = events[-1].response
    assert (events[-1].type, response.status) == ("response.failed", "failed")
    assert response.error.message.startswith("The server failed")
    assert response.output[0].content[0].text == "High"
    with pytest.raises(openai.BadRequestError, match="not found"):
        failing.client().responses.create(
            model="failing", input="?", previous_response_id=response.id
        )


def test_an_answer_that_should_come_whole_is_an_error_of_the_server(failing):
    with pytest.raises(openai.InternalServerError) as caught:
        failing.client().chat.completions.create(model="failing", messages=QUESTION)
    assert caught.value.type == "server_error"
    assert "memory" not in caught.value.message
    # The connection ends with the error, and the client hears of it.
    assert caught.value.response.headers["connection"] == "close"


def test_the_events_of_an_engine_that_fails_end_with_an_error(failing):
    text = failing.request("GET", "/events").text
    last = json.loads(text.rpartition("data: ")[2])
    assert (last["type"], last["tokens"]) == ("end_of_stream", 4)
    assert last["error"].startswith("The server failed")


# -- Many at once --

STREAMS = 200


class Together(RecordedEngine):
    """Lets nobody go on before all have begun."""

    def __init__(self, recordings):
        super().__init__(recordings)
        self.barrier = asyncio.Barrier(STREAMS)

    async def sample(self, prompt):
        tokens = super().sample(prompt)
        yield await anext(tokens)
        await self.barrier.wait()
        async for token in tokens:
            yield token


def distinct_logs():
    """By name: a log that no other is like, of words in several scripts, with a call in some."""
    chance = random.Random(5)
    words = ["tide", "潮", "Ebbe", "flux", "🌊", "море", "ola", "파도", "خليج", "καιρός"]
    logs = {}
    for number in range(STREAMS):
        said = [" ".join(chance.choices(words, k=7)) + f" #{number}." for _ in range(3)]
        text = (
            f"<|channel|>analysis<|message|>{said[0]}<|end|>"
            f"<|start|>assistant<|channel|>final<|message|>{said[1]}"
        )
        if number % 4:
            text += "<|return|>"
        else:
            text += (
                "<|end|><|start|>assistant<|channel|>commentary to=functions.tide "
                f"<|constrain|>json<|message|>{json.dumps({'at': said[2]})}<|call|>"
            )
        logs[f"log-{number}"] = [ids(text)]
    return logs


async def chat_stream(client, model):
    async with client.chat.completions.stream(model=model, messages=QUESTION) as stream:
        completion = await stream.get_final_completion()
    message = completion.choices[0].message
    calls = [call.function.arguments for call in message.tool_calls or ()]
    return message.reasoning, message.content, calls


async def responses_stream(client, model):
    async with client.responses.stream(model=model, input="?") as stream:
        response = await stream.get_final_response()
    reasoning = response.output[0].content[0].text
    calls = [item.arguments for item in response.output if item.type == "function_call"]
    return reasoning, response.output_text, calls


def test_two_hundred_streams_at_once_neither_lose_nor_cross_a_delta():
    logs = distinct_logs()

    async def main():
        async with backend.async_client() as client:
            kinds = (chat_stream, responses_stream)
            return await asyncio.gather(
                *(kinds[number % 2](client, model) for number, model in enumerate(logs))
            )

    with serving({}, engine=Together(logs)) as backend:
        heard = asyncio.run(main())
    for (model, [tokens]), (reasoning, content, calls) in zip(logs.items(), heard, strict=True):
        completion = parse(tokens)
        assert reasoning == completion.reasoning == spoken(tokens, lambda it: it.is_reasoning)
        assert content == completion.final_text, model
        assert calls == [call.arguments for call in completion.tool_calls]
    assert len({content for _, content, _ in heard}) == STREAMS
