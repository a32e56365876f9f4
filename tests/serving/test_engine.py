"""Engines: where their samples end, and what is none."""

import asyncio
import json

import pytest
from backend_harness import CALL, Listening, asked, ids
from hypothesis import given
from strategies import SPECIAL, examples, streams

from harmony_stream import iter_events
from harmony_stream.serving import Prompt, RecordedEngine, Sampling, Settings, create_app
from harmony_stream.vocabulary import Vocabulary

STOPS = [SPECIAL[f"<|{word}|>"] for word in ("return", "call", "endoftext")]
ANSWER = "<|channel|>final<|message|>2 + 2 = 4."
QUESTION = [{"role": "user", "content": "2 + 2?"}]
USER = "<|start|>user<|message|>And 3 + 3?<|end|>"
MORE = "<|start|>assistant<|channel|>final<|message|>MORE<|return|>"
RESULT = "<|start|>functions.tide to=assistant<|channel|>commentary<|message|>MORE<|end|>"


def chat(engine, **fields):
    body = {"model": "any", "messages": QUESTION, **fields}
    status, answer = asked(create_app(engine), "POST", "/v1/chat/completions", body)
    assert status == 200
    return json.loads(answer)


# -- Where a sample ends --


def test_an_engine_is_told_the_tokens_that_end_its_sample():
    engine = Listening()
    chat(engine)
    assert engine.prompts[0].stop_token_ids == tuple(STOPS) == (200002, 200012, 199999)
    assert Prompt("any", (), []).stop_token_ids == tuple(STOPS)


# What is sampled to its stop token, what the engine goes on with, and how it is told in Chat.
ENDS = {
    "an answer": (ANSWER + "<|return|>", USER + MORE, "stop"),
    "a call": (CALL, RESULT + MORE, "tool_calls"),
    "a call, and another": (CALL, "<|start|>assistant" + CALL, "tool_calls"),
    "the end of the text": (ANSWER + "<|endoftext|>", USER + MORE, "stop"),
    "an answer that ends as a call": (ANSWER + "<|call|>", RESULT + MORE, "stop"),
    "a stop token behind a message": (ANSWER + "<|end|><|return|>", "MORE", "stop"),
    "a stop token in a header": ("<|channel|>final<|return|>", MORE, "stop"),
    "nothing": ("<|return|>", MORE, "stop"),
}


@pytest.mark.parametrize(("sampled", "more", "reason"), ENDS.values(), ids=ENDS)
def test_a_stop_token_ends_the_sample_and_closes_the_engine(sampled, more, reason):
    engine, alone = Listening(ids(sampled + more)), Listening(ids(sampled))

    answer, expected = chat(engine), chat(alone)

    assert answer["choices"][0]["finish_reason"] == reason
    for each in (answer, expected):
        assert each.pop("id")
        assert each.pop("created")
        for call in each["choices"][0]["message"].get("tool_calls", ()):
            assert call.pop("id")
    assert answer == expected
    assert "MORE" not in json.dumps(answer)
    assert (engine.read, engine.is_closed) == (len(ids(sampled)), True)
    assert answer["usage"]["completion_tokens"] == len(ids(sampled))


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/events"])
@pytest.mark.parametrize("streams", [True, False])
def test_no_address_gives_anything_behind_a_stop_token(path, streams):
    engine = Listening(ids(CALL + RESULT + MORE))
    app = create_app(engine, Settings(page=True))
    body = {"model": "any", "messages": QUESTION, "input": QUESTION, "stream": streams}
    _, answer = asked(app, "GET" if path == "/events" else "POST", path, body)
    assert b"tide" in answer
    assert b"MORE" not in answer
    assert engine.read == len(ids(CALL))


@pytest.mark.parametrize("limit", [1, 5, 100])
def test_no_more_tokens_are_read_than_are_wanted(limit):
    engine = Listening(ids(ANSWER + "wave " * 200))
    answer = chat(engine, max_tokens=limit)
    assert answer["choices"][0]["finish_reason"] == "length"
    assert (engine.read, engine.is_closed) == (limit, True)


def test_a_stop_token_that_is_the_last_one_wanted_is_no_cut():
    engine = Listening(ids(ANSWER + "<|return|>"))
    answer = chat(engine, max_tokens=len(engine.tokens))
    assert answer["choices"][0]["finish_reason"] == "stop"


def test_an_engine_that_strips_its_stop_token_is_cut_as_if_it_came_next():
    engine = Listening(ids(ANSWER))
    assert chat(engine)["choices"][0]["finish_reason"] == "length"
    engine = Listening(ids(ANSWER + "<|end|>"))
    assert chat(engine)["choices"][0]["finish_reason"] == "stop"


def test_the_engine_is_closed_before_the_last_events_are_taken():
    engine = Listening(ids(ANSWER + "<|return|>" + MORE))
    sampling = Sampling(engine, Prompt("any", (), []))

    async def closed_at_each_event():
        return [engine.is_closed async for _ in sampling.events()]

    *before, last = asyncio.run(closed_at_each_event())
    assert (set(before), last) == ({False}, True)


def test_stop_tokens_of_other_integer_types_end_a_sample_too():
    class Index:
        def __init__(self, value):
            self._value = value

        def __index__(self):
            return self._value

    engine = Listening([*map(Index, ids(ANSWER + "<|return|>" + MORE))])
    assert chat(engine)["choices"][0]["message"]["content"] == "2 + 2 = 4."


def test_usage_counts_the_prompt_as_it_was_given_to_the_engine():
    class Appending(Listening):
        async def sample(self, prompt):
            async for token in super().sample(prompt):
                prompt.tokens.append(token)
                yield token

    tokens = ids(ANSWER + "<|return|>")
    usage = chat(Listening(tokens))["usage"]
    assert chat(Appending(tokens))["usage"] == usage


@given(streams)
@examples(100)
def test_whatever_is_sampled_its_events_are_those_up_to_the_first_stop_token(tokens):
    first = next((at for at, token in enumerate(tokens) if token in STOPS), len(tokens))
    engine = Listening(tokens)
    _, answer = asked(create_app(engine, Settings(page=True)), "GET", "/events")

    *events, end = [json.loads(line[6:]) for line in answer.decode().split("\n")
                    if line.startswith("data: ")]  # fmt: skip

    sampled = tokens[: first + 1]
    expected = [event.to_dict() for event in iter_events(sampled)]
    assert json.loads(json.dumps(expected)) == events
    assert end == {"type": "end_of_stream", "tokens": len(sampled), "error": None}
    assert engine.read == len(sampled)


# -- What is no engine --


class Engine:
    models = ("any",)

    def sample(self, prompt):
        raise NotImplementedError


def engine_with(**attributes):
    return type("Changed", (Engine,), attributes)()


async def whole(self, prompt):
    return [200005]


def plain(self, prompt):
    yield 200005


NO_ENGINES = {
    "a coroutine": (
        engine_with(sample=whole),
        "engine.sample does not return an asynchronous iterator",
    ),
    "a plain generator": (engine_with(sample=plain), "make it an asynchronous generator"),
    "a name": ("gpt-oss-20b", "engine: 'gpt-oss-20b' has no models"),
    "a class": (Engine, "is a class, not an object"),
    "nothing": (None, "engine: None has no models"),
    "a single name": (engine_with(models="any"), "engine.models 'any' is not a sequence"),
    "bytes": (engine_with(models=b"any"), r"engine.models\[0\] 97 is not a name"),
    "a set": (engine_with(models={"any"}), "is not a sequence of names"),
    "an iterator": (engine_with(models=iter(["any"])), "is not a sequence of names"),
    "no models": (engine_with(models=[]), r"engine.models \[\] is not a sequence of names"),
    "models of None": (engine_with(models=None), "engine.models None is not a sequence"),
    "a number": (engine_with(models=["any", 5]), r"engine.models\[1\] 5 is not a name"),
    "an empty name": (engine_with(models=[""]), r"engine.models\[0\] '' is not a name"),
    "no sample": (engine_with(sample=None), "engine.sample is not callable"),
    "no recordings": (RecordedEngine({}), r"engine.models \[\] is not a sequence of names"),
}


@pytest.mark.parametrize(("engine", "sentence"), NO_ENGINES.values(), ids=NO_ENGINES)
def test_what_is_no_engine_is_refused_before_there_is_a_request(engine, sentence):
    with pytest.raises(TypeError, match=sentence):
        create_app(engine)


def test_what_are_no_settings_is_refused_before_there_is_a_request():
    with pytest.raises(TypeError, match=r"settings: \{'page': True\} is not a Settings object"):
        create_app(Engine(), {"page": True})
    assert create_app(Engine(), None).routes


def test_the_stop_tokens_are_those_of_the_vocabulary():
    special = Vocabulary.default().special_tokens
    assert [special[name] for name in ("<|return|>", "<|call|>", "<|endoftext|>")] == STOPS


@pytest.mark.parametrize("sampled", [None, [200002], iter([200002])])
def test_an_engine_that_returns_something_else_is_told_what_to_return(sampled):
    class Engine:
        models = ("any",)

        def sample(self, prompt):
            return sampled

    with pytest.raises(TypeError, match=r"engine.sample returned \w+, not an async iterator; make"):
        Sampling(Engine(), Prompt("any", (), [1]))
