"""With reasoning hidden, no address gives a word of it; later prompts have it nevertheless."""

import contextlib
import io
import itertools
import json
import re

import pytest
from backend_harness import ANSWER, CALL, RESPONSES_TOOLS, THINKING, Listening, asked, ids
from hypothesis import given
from hypothesis import strategies as st
from strategies import VOCABULARY, examples

from harmony_stream import ContentDelta, iter_events
from harmony_stream.adapters import ResponseStream, counted_ids
from harmony_stream.adapters.routing import RouteKind, route
from harmony_stream.commands import serve
from harmony_stream.serving import Settings, create_app

STOPS = (200002, 200012, 199999)
QUESTION = [{"role": "user", "content": "When?"}]
ADDRESSES = [
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/responses"),
    ("GET", "/events"),
]


def answers(tokens, **settings):
    """What each address answers, streaming and whole, and what was told to the server."""
    problems = []
    engine = Listening(tokens)
    app = create_app(engine, Settings(page=True, on_problem=problems.append, **settings))
    found = {}
    for (method, path), streams in itertools.product(ADDRESSES, (True, False)):
        body = {"model": "any", "messages": QUESTION, "input": QUESTION, "stream": streams,
                "stream_options": {"include_usage": True}}  # fmt: skip
        status, answer = asked(app, method, path, body)
        assert status == 200
        found[path, streams] = answer.decode()
    return found, problems


def reported(problems):
    """What `harmony-stream serve --reasoning-key none` writes of these problems."""
    with contextlib.redirect_stderr(io.StringIO()) as written:
        for problem in problems:
            serve._tell_kind_of_problem(problem)
    return written.getvalue()


# -- Law: no word of it, wherever it is; for streams with any faults --

# Words of one token each, so that a stream of deltas holds them in one piece.
WORDS = [
    token
    for token in range(20_000, 60_000)
    if re.fullmatch(r" [a-z]{8,}", VOCABULARY.decode([token]))
][:2000:10]
# What begins messages, ends them, and breaks their headers; most of it goes on with words.
FRAGMENTS = [
    "<|channel|>analysis<|message|>",
    "<|channel|>analysis<|message|>",
    "<|channel|>analysis",
    "<|channel|>analysis to=assistant<|message|>",
    "<|channel|>analysis to=python code<|message|>",
    "<|channel|>commentary<|message|>",
    "<|channel|>commentary to=functions.f <|constrain|>json<|message|>",
    "<|channel|>commentary to=assistant<|message|>",
    "<|channel|>final<|message|>",
    "<|channel|>odd<|message|>",
    "<|channel|>final",
    "<|channel|>",
    "<|constrain|>",
    "<|message|>",
    "<|start|>assistant",
    "<|start|>user<|message|>",
    "<|start|>functions.f to=assistant<|channel|>commentary<|message|>",
    "<|end|>",
    "<|end|><|start|>assistant",
    "<|reserved_200013|>",
    "<|return|>",
    "",
]


@st.composite
def told_streams(draw):
    """Tokens in which no word comes twice."""
    words = iter(WORDS)
    tokens = []
    for fragment in draw(st.lists(st.sampled_from(FRAGMENTS), max_size=16)):
        tokens += ids(fragment)
        tokens += itertools.islice(words, draw(st.sampled_from([0, 4, 4, 6])))
    return tokens


def reasoning_in(tokens):
    """The words of messages that are reasoning, as far as a backend reads."""
    stop = next((at for at, token in enumerate(tokens) if token in STOPS), len(tokens))
    return known(
        " ".join(
            event.text
            for event in iter_events(tokens[: stop + 1])
            if isinstance(event, ContentDelta) and route(event.header).kind is RouteKind.REASONING
        )
    )


ALL = {VOCABULARY.decode([token]).strip() for token in WORDS}
# So that a word is found where texts are glued, too.
ALL = {word for word in ALL if not any(word != other and word in other for other in ALL)}
# Names of the protocols are no leak.
ALL = {word for word in ALL if word not in "response.code_interpreter_call"}


def known(text):
    return {word for word in ALL if word in text}


def events_of(answer):
    return [json.loads(line[6:]) for line in answer.split("\n") if line.startswith("data: ")]


@given(told_streams())
@examples(100)
def test_no_address_gives_a_word_of_hidden_reasoning(tokens):
    reasoning = reasoning_in(tokens)
    found, problems = answers(tokens, reasoning_key=None)
    for answer in found.values():
        assert not reasoning & known(answer)
    assert not known(reported(problems))
    # Nobody knows whether the words of a fault are reasoning.
    faults = [each for each in events_of(found["/events", True]) if each["type"] == "malformed"]
    assert not known(json.dumps(faults))


@given(told_streams())
@examples(40)
def test_what_is_not_hidden_is_at_every_address(tokens):
    reasoning = reasoning_in(tokens)
    found, _ = answers(tokens)
    for answer in found.values():
        assert reasoning <= known(answer)


# -- Cases --

HEADS = {
    "a fault in a header": "<|channel|>analysis We should look<|message|>Secret.<|end|>",
    "a header that begins afresh": "<|channel|>analysis We should look<|start|>assistant",
    "a message to itself": "<|channel|>commentary to=assistant<|message|>We should look<|end|>",
    "an unknown channel": "<|channel|>odd<|message|>We should look<|end|>",
    "a type that is none": "<|channel|>analysis <|constrain|>We should look<|message|>x<|end|>",
    "an unknown channel with more": "<|channel|>odd We should look<|message|>x<|end|>",
    "a channel twice": "<|channel|>analysis<|channel|>We should look<|message|>x<|end|>",
    "no message marker": "<|channel|>analysis We should look<|end|>",
    "a thought in the header of the answer": "<|channel|>analysis look<|channel|>final<|message|>",
    "a thought in the header of a call": "<|channel|>analysis to=f look<|message|>{}<|end|>",
    "an unknown channel of a call": "<|channel|>look to=functions.f<|message|>{}<|end|>",
    "a channel without its marker": "analysis We should look<|message|>Secret<|end|>",
    "a channel glued to the role": "assistantanalysis We should look<|message|>Secret<|end|>",
    "a channel for a recipient": "<|channel|>analysis to=analysis<|message|>We should look<|end|>",
    "no end": "<|channel|>analysis<|message|>We should look<|channel|>final<|message|>Noon.",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_every_address_hides_reasoning_however_it_is_written(head):
    found, problems = answers(ids(f"{head}<|start|>assistant{ANSWER}"), reasoning_key=None)
    for answer in found.values():
        assert "High" in answer
        assert not re.search("We|should|look|Secret|table", answer)
    assert not re.search("should|look", reported(problems))


def test_a_fault_keeps_its_kind_and_its_place():
    found, problems = answers(ids(HEADS["a fault in a header"] + "<|return|>"), reasoning_key=None)
    fault = next(each for each in events_of(found["/events", True]) if each["type"] == "malformed")
    error = fault["error"]
    assert (error["kind"], fault["text"], error["token"]) == ("unparsed_header_text", "", None)
    place = f"unparsed_header_text at position {error['position']}"
    assert error["message"] == f"{place}; its words are hidden, as reasoning is"
    assert f"harmony-stream: {place}\n" in reported(problems)


def test_calls_answers_and_preambles_are_shown():
    found, _ = answers(ids(CALL), reasoning_key=None)
    kinds = [(event["type"], event.get("header", {}).get("recipient"))
             for event in events_of(found["/events", True])
             if event["type"] != "content_delta"]  # fmt: skip
    assert kinds == [
        ("message_start", None),
        ("message_end", None),
        ("message_start", "functions.tide"),
        ("message_end", None),
        ("end_of_stream", None),
    ]
    whole = json.loads(found["/v1/responses", False])
    assert [item["type"] for item in whole["output"]] == ["message", "function_call"]


class Failing(Listening):
    async def sample(self, prompt):
        async for token in super().sample(prompt):
            yield token
        raise RuntimeError("out of memory")


@pytest.mark.parametrize(("method", "path"), ADDRESSES)
def test_a_stream_that_fails_hides_reasoning_too(method, path):
    for sampled in (THINKING, THINKING[:-10], THINKING + "<|start|>assistant" + ANSWER[:-20]):
        engine = Failing(ids(sampled)[:-1])
        app = create_app(engine, Settings(page=True, reasoning_key=None))
        body = {"model": "any", "messages": QUESTION, "input": QUESTION, "stream": True}
        _, answer = asked(app, method, path, body)
        assert b"The server failed" in answer
        assert not re.search("table|says", answer.decode())


@given(told_streams())
@examples(100)
def test_a_response_without_reasoning_is_the_one_that_the_adapter_gives(tokens):
    app = create_app(
        Listening(tokens), Settings(reasoning_key=None, ids=counted_ids(), clock=lambda: 5.0)
    )
    body = {"model": "any", "input": QUESTION, "stream": True}
    _, answer = asked(app, "POST", "/v1/responses", body)

    stream = ResponseStream("any", hide_reasoning=True, ids=counted_ids(), clock=lambda: 5.0)
    stop = next((at for at, token in enumerate(tokens) if token in STOPS), len(tokens))
    chunks = [chunk for event in iter_events(tokens[: stop + 1]) for chunk in stream.feed(event)]
    chunks += stream.finish()
    given = events_of(answer.decode())
    for each in (given, chunks):
        for key in ("usage", "stream"):
            each[-1]["response"].pop(key, None)
    assert given == json.loads(json.dumps(chunks))


# -- What is hidden goes back to the model --

CODE = "<|channel|>analysis to=python code<|message|>6*7<|call|>"
AGAIN = THINKING.replace("table", "chart") + "<|start|>assistant"


def next_prompt(tokens, key, streams=False):
    """The messages of the request that goes on from a response with these tokens."""
    engine = Listening(tokens)
    app = create_app(engine, Settings(reasoning_key=key))
    first = {"model": "any", "input": QUESTION, "tools": RESPONSES_TOOLS}
    status, answer = asked(app, "POST", "/v1/responses", {**first, "stream": streams})
    assert status == 200
    response = events_of(answer.decode())[-1]["response"] if streams else json.loads(answer)
    results = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "noon"}
        for item in response["output"]
        if item["type"] == "function_call"
    ]
    items = results or [{"role": "user", "content": "And?"}]
    second = {**first, "input": items, "previous_response_id": response["id"]}
    status, answer = asked(app, "POST", "/v1/responses", second)
    return engine.prompts[-1].messages if status == 200 else status


def test_an_open_turn_keeps_its_hidden_reasoning():
    messages = next_prompt(ids(CALL), None)
    assert [(m.channel, m.content[0].text) for m in messages[2:]][1:] == [
        ("analysis", "The table says it."),
        ("commentary", "I'll look."),
        ("commentary", '{"at": "Oban"}'),
        ("commentary", "noon"),
    ]


@pytest.mark.parametrize(
    "sampled",
    [
        CALL,
        AGAIN + CALL,
        THINKING + "<|start|>assistant" + CODE,
        ANSWER,
        ANSWER[:60],
        THINKING[:40],
    ],
)
def test_the_next_prompt_is_the_same_whether_reasoning_is_hidden_or_not(sampled):
    assert next_prompt(ids(sampled), None) == next_prompt(ids(sampled), "reasoning")


@given(told_streams())
@examples(100)
def test_whatever_was_sampled_the_next_prompt_is_the_same(tokens):
    expected = next_prompt(tokens, "both")
    assert next_prompt(tokens, None) == expected
    assert next_prompt(tokens, None, streams=True) == expected


@pytest.mark.parametrize("streams", [True, False])
def test_a_problem_is_reported_once_when_reasoning_is_hidden(streams):
    problems = []
    settings = Settings(reasoning_key=None, on_problem=problems.append)
    app = create_app(Listening(ids("<|channel|>odd<|message|>x<|return|>")), settings)
    asked(app, "POST", "/v1/responses", {"model": "any", "input": QUESTION, "stream": streams})
    assert [problem.kind for problem in problems] == ["unknown_channel"]
