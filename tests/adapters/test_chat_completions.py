"""Chat Completions: what OpenAI's own client has in the end is what the parser read."""

import asyncio
import json
from pathlib import Path

import attrs
import pytest
from clients import calls_of, check_chat_completion, events_of, over_the_wire, read_chat, run

from harmony_stream.adapters import (
    ChatCompletionStream,
    Unlabelled,
    Usage,
    chat_completion,
    counted_ids,
    join_chunks,
    sse,
)
from harmony_stream.parsing.collect import MessageCollector
from harmony_stream.parsing.parser import EventParser

CASES = Path(__file__).parent.parent / "cases"

THINK = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
CALL = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>"
ANSWER = "<|channel|>final<|message|>Four.<|return|>"


def stream_of(**options):
    options = {"ids": counted_ids(), "clock": lambda: 1_700_000_000.5, **options}
    return ChatCompletionStream("gpt-oss-20b", **options)


@attrs.frozen
class Turn:
    """A turn, and what a client has of it.

    Attributes:
        text: the tokens, as marked text.
        content, reasoning, calls, finish_reason: of the accumulated choice.
        reported: kinds of the problems that the server hears of.
        reason: what the engine says.
        options: of the stream.
    """

    text: str
    content: str = ""
    reasoning: str | None = None
    calls: list = attrs.field(factory=list)
    finish_reason: str = "stop"
    reported: list = attrs.field(factory=list)
    reason: str | None = None
    options: dict = attrs.field(factory=dict)


TURNS = {
    "an answer": Turn(ANSWER, "Four."),
    "thinking and an answer": Turn(THINK + ANSWER, "Four.", "Hm."),
    "nothing at all": Turn(""),
    "a preamble is content": Turn(
        "<|channel|>commentary<|message|>Let me look.<|end|><|start|>assistant" + ANSWER,
        "Let me look.\n\nFour.",
    ),
    "a call": Turn(
        THINK + CALL + '{"a":1}<|call|>', "", "Hm.", [("f", '{"a":1}')], finish_reason="tool_calls"
    ),
    "a call on the analysis channel": Turn(
        "<|channel|>analysis to=functions.f<|message|>{}<|call|>",
        calls=[("f", "{}")],
        finish_reason="tool_calls",
    ),
    "a call without arguments": Turn(
        CALL + "<|call|>",
        calls=[("f", "{}")],
        finish_reason="tool_calls",
        reported=["arguments_not_json"],
    ),
    "a call without arguments of a tool in another namespace": Turn(
        "<|channel|>commentary to=knots.sum<|message|> \n<|call|>",
        calls=[("knots.sum", " \n{}")],
        finish_reason="tool_calls",
    ),
    "code without a line stays empty": Turn(
        "<|channel|>analysis to=python code<|message|><|call|>",
        calls=[("python", "")],
        finish_reason="tool_calls",
        options={"tools": ["python"]},
    ),
    "a call without arguments that was cut off": Turn(
        CALL, calls=[("f", "")], finish_reason="length", reported=["incomplete_call"]
    ),
    "a call without arguments that is complete if the engine says so": Turn(
        CALL + " ",
        calls=[("f", " {}")],
        finish_reason="tool_calls",
        reported=["arguments_not_json"],
        reason="tool_calls",
    ),
    "arguments that are not JSON": Turn(
        CALL + "{'a': 1}<|call|>",
        calls=[("f", "{'a': 1}")],
        finish_reason="tool_calls",
        reported=["arguments_not_json"],
    ),
    "hidden arguments that are not JSON": Turn(
        "<|channel|>analysis to=browser.search json<|message|>tides<|call|>",
        reported=["hidden_call", "arguments_not_json"],
    ),
    "a name with its type glued to it": Turn(
        "<|channel|>commentary to=functions.shelljson<|message|>{}<|call|>",
        calls=[("shell", "{}")],
        finish_reason="tool_calls",
        reported=["resolved_name"],
        options={"tools": ["shell"]},
    ),
    "a name with its type glued to it, and nothing declared": Turn(
        "<|channel|>commentary to=functions.shelljson<|message|>{}<|call|>",
        calls=[("shelljson", "{}")],
        finish_reason="tool_calls",
    ),
    "a call of no name is text on its channel": Turn(
        "<|channel|>commentary to=functions.<|message|>Look.<|call|><|start|>assistant"
        "<|channel|>analysis to=functions.<|message|>Hm.<|call|>",
        "Look.",
        "Hm.",
        reported=["nameless_call", "nameless_call"],
    ),
    "a call of no name that is not even on a channel": Turn(
        "<|start|>assistant to=functions.<|message|>Look.<|call|>",
        reasoning="Look.",
        reported=["nameless_call"],
        options={"unlabelled": Unlabelled(without_channel="reasoning")},
    ),
    "more after the answer": Turn(
        f"{ANSWER}<|start|>user<|message|>And?<|end|><|start|>assistant{ANSWER}Stray.",
        "Four.",
        reported=["after_return"],
    ),
    "more after the answer, cut off": Turn(
        f"{ANSWER}<|start|>assistant{CALL}1", "Four.", reported=["after_return"], reason="length"
    ),
    "a call after the answer": Turn(
        f"{THINK}{ANSWER}<|start|>assistant{CALL}1<|call|>",
        "Four.",
        "Hm.",
        reported=["after_return"],
        reason="tool_calls",
    ),
    "a prompt's message may end in any way": Turn(
        f"<|end|><|start|>user<|message|>2 + 2?<|return|><|start|>assistant{ANSWER}", "Four."
    ),
    "a limit that was hit at the end of the answer": Turn(
        ANSWER, "Four.", finish_reason="length", reason="length"
    ),
    "two calls of one function": Turn(
        f"{CALL}1<|call|><|start|>assistant{CALL}2<|call|>",
        calls=[("f", "1"), ("f", "2")],
        finish_reason="tool_calls",
    ),
    "a call, and an answer all the same": Turn(
        f"{CALL}1<|call|><|start|>assistant{ANSWER}", "Four.", None, [("f", "1")], "tool_calls"
    ),
    "a tool of another namespace has its full name": Turn(
        "<|channel|>commentary to=knots.sum<|message|>{}<|call|>",
        calls=[("knots.sum", "{}")],
        finish_reason="tool_calls",
    ),
    "the built-in python is the server's": Turn(
        "<|channel|>analysis to=python code<|message|>1+1<|call|>", reported=["hidden_call"]
    ),
    "a declared python is the client's": Turn(
        "<|channel|>analysis to=python code<|message|>1+1<|call|>",
        calls=[("python", "1+1")],
        finish_reason="tool_calls",
        options={"tools": ["python"]},
    ),
    "a tool's answer is not shown": Turn(
        f"{CALL}1<|call|><|start|>functions.f to=assistant<|channel|>commentary<|message|>9"
        f"<|end|><|start|>assistant{ANSWER}",
        "Four.",
        None,
        [("f", "1")],
        "tool_calls",
    ),
    "a text cut off": Turn("<|channel|>final<|message|>Fo", "Fo", finish_reason="length"),
    "a text whose stop token the engine keeps to itself": Turn(
        "<|channel|>final<|message|>Four.", "Four.", reason="stop"
    ),
    "a call cut off is never tool_calls": Turn(
        CALL + '{"a', calls=[("f", '{"a')], finish_reason="length", reported=["incomplete_call"]
    ),
    "a call is not complete because the engine stopped": Turn(
        CALL + '{"a', calls=[("f", '{"a')], reason="stop", reported=["incomplete_call"]
    ),
    "a call is complete if the engine says so": Turn(
        CALL + "{}", calls=[("f", "{}")], finish_reason="tool_calls", reason="tool_calls"
    ),
    "an engine that speaks of calls where there are none": Turn(
        ANSWER, "Four.", reason="tool_calls"
    ),
    "a limit that was hit behind a whole call": Turn(
        CALL + "{}<|call|>", calls=[("f", "{}")], finish_reason="length", reason="length"
    ),
    "cut off inside a header": Turn(
        THINK + "<|channel|>fin",
        reasoning="Hm.",
        finish_reason="length",
        reported=["truncated_in_header"],
    ),
    "a call that the next message breaks off": Turn(
        f"{CALL}1<|start|>assistant{ANSWER}",
        "Four.",
        None,
        [("f", "1")],
        reported=["missing_end", "incomplete_call"],
    ),
    "text without a channel": Turn(
        "<|message|>Four.<|return|>", "Four.", reported=["without_channel"]
    ),
    "text without a channel, as reasoning": Turn(
        "<|message|>Four.<|return|>",
        reasoning="Four.",
        reported=["without_channel"],
        options={"unlabelled": Unlabelled(without_channel="reasoning")},
    ),
    "text on an unknown channel": Turn(
        "<|channel|>finale<|message|>Four.<|return|>",
        reasoning="Four.",
        reported=["unknown_channel"],
    ),
    "text on an unknown channel, as content": Turn(
        "<|channel|>finale<|message|>Four.<|return|>",
        "Four.",
        reported=["unknown_channel"],
        options={"unlabelled": Unlabelled(on_unknown_channel="content")},
    ),
    "a message to itself": Turn(
        "<|channel|>commentary to=assistant<|message|>So.<|end|>", "", "So."
    ),
    "an answer to itself": Turn("<|channel|>final to=assistant<|message|>So.<|end|>", "So."),
    "a prompt in the stream": Turn("<|end|><|start|>user<|message|>What?<|end|>"),
    "text that belongs to no message": Turn(
        "<|channel|>final<|message|>Four.<|end|>So ends it.<|start|>assistant" + ANSWER,
        "Four.\n\nSo ends it.\n\nFour.",
        reported=["expected_start"],
    ),
    "text that belongs to no message, as reasoning": Turn(
        "<|channel|>final<|message|>Four.<|end|>So ends it.<|start|>assistant" + ANSWER,
        "Four.\n\nFour.",
        "So ends it.",
        reported=["expected_start"],
        options={"unlabelled": Unlabelled(without_channel="reasoning")},
    ),
    "texts are apart, thoughts too": Turn(
        f"{THINK}{THINK}<|channel|>commentary<|message|>Plan.<|end|><|start|>assistant"
        f"<|channel|>commentary<|message|><|end|><|start|>assistant{THINK}{ANSWER}",
        "Plan.\n\nFour.",
        "Hm.\n\nHm.\n\nHm.",
    ),
    "a message without text is not set apart": Turn(
        f"<|channel|>commentary<|message|><|end|><|start|>assistant{ANSWER}<|start|>assistant"
        "<|channel|>final<|message|>",
        "Four.",
        reported=["after_return"],
    ),
    "texts are glued together if wanted": Turn(
        f"<|channel|>commentary<|message|>Plan.<|end|><|start|>assistant{THINK}{THINK}{ANSWER}",
        "Plan.Four.",
        "Hm.Hm.",
        options={"separator": ""},
    ),
}


@pytest.mark.parametrize("turn", TURNS.values(), ids=list(TURNS))
def test_a_client_has_what_the_parser_read(turn):
    problems = []
    stream = stream_of(on_problem=problems.append, **turn.options)
    [choice] = read_chat(run(stream, events_of(turn.text), turn.reason))["choices"]
    message = choice["message"]
    assert message["role"] == "assistant"
    assert (message["content"], message.get("reasoning")) == (turn.content, turn.reasoning)
    assert calls_of(message) == turn.calls
    assert choice["finish_reason"] == turn.finish_reason
    assert [problem.kind for problem in problems] == turn.reported


@pytest.mark.parametrize("turn", TURNS.values(), ids=list(TURNS))
def test_the_whole_object_is_what_the_stream_adds_up_to(turn):
    events = events_of(turn.text)
    usage = Usage(10, 20, reasoning_tokens=3)
    streamed = read_chat(run(stream_of(**turn.options), events, turn.reason, usage))
    collector = MessageCollector()
    for event in events:
        collector.feed(event)
    for source in (events, collector.completion()):
        options = {"ids": counted_ids(), "clock": lambda: 1_700_000_000.5, **turn.options}
        whole = chat_completion(
            source, model="gpt-oss-20b", reason=turn.reason, usage=usage, **options
        )
        check_chat_completion(whole)
        assert as_accumulated(whole) == without_nulls(streamed)


def as_accumulated(completion):
    """As OpenAI's accumulator has it: it keeps the index of a call."""
    for choice in completion["choices"]:
        for index, call in enumerate(choice["message"].get("tool_calls", [])):
            call["index"] = index
    return without_nulls(completion)


def without_nulls(value):
    if isinstance(value, list):
        return [without_nulls(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    return {key: without_nulls(entry) for key, entry in value.items() if entry is not None}


def test_the_chunks_of_a_turn_one_by_one():
    envelope = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "gpt-oss-20b",
        "system_fingerprint": "fp",
    }
    start = {"index": 0, "id": "call_1", "type": "function"}
    chunks = run(
        stream_of(fields={"system_fingerprint": "fp"}),
        events_of(THINK + CALL + "{}<|call|>"),
        usage=Usage(5, 11, cached_tokens=4),
    )
    *deltas, last = chunks
    assert [chunk["choices"][0]["delta"] for chunk in deltas] == [
        {"role": "assistant", "content": ""},
        {"reasoning": "Hm"},
        {"reasoning": "."},
        {"tool_calls": [{**start, "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
        {},
    ]
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in deltas]
    assert reasons == [None] * 5 + ["tool_calls"]
    assert all({**chunk, **envelope} == chunk for chunk in chunks)
    assert last["choices"] == []
    assert last["usage"] == {
        "prompt_tokens": 5,
        "completion_tokens": 11,
        "total_tokens": 16,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }


@pytest.mark.parametrize(
    ("key", "keys"),
    [
        ("reasoning", ["reasoning"]),
        ("reasoning_content", ["reasoning_content"]),
        ("both", ["reasoning", "reasoning_content"]),
        (None, []),
    ],
)
def test_the_chain_of_thought_is_under_the_wanted_key_and_never_in_the_content(key, keys):
    chunks = run(stream_of(reasoning_key=key), events_of(THINK + ANSWER), usage=Usage(1, 9))
    completion = read_chat(chunks)
    message = completion["choices"][0]["message"]
    assert message["content"] == "Four."
    assert {name: text for name, text in message.items() if "reasoning" in name} == dict.fromkeys(
        keys, "Hm."
    )
    assert completion["usage"]["completion_tokens_details"]["reasoning_tokens"] == 2


def test_another_reasoning_key_is_refused():
    with pytest.raises(ValueError, match="reasoning_key is 'thinking', expected one of"):
        stream_of(reasoning_key="thinking")


@pytest.mark.parametrize("separator", [None, 5, b"\n"])
def test_a_separator_that_is_no_string_is_refused(separator):
    with pytest.raises(TypeError, match="expected a string; it may be empty"):
        stream_of(separator=separator)


# -- Several choices --


def test_choices_are_told_apart_and_end_each_for_itself():
    stream = stream_of(tools=["f"])
    first, second = events_of(CALL + "{}<|call|>"), events_of("<|channel|>final<|message|>Fo")
    chunks = []
    # The second comes first: a client still has to see the first one first.
    for events in ((1, second), (0, first)):
        for event in events[1]:
            chunks += stream.feed(event, choice=events[0])
    chunks += stream.finish("length", choice=1)
    assert stream.finish("stop", choice=1) == []
    chunks += stream.finish("stop", choice=2)
    chunks += stream.finish(usage=Usage(3, 9))
    completion = read_chat(chunks)
    assert [choice["index"] for choice in completion["choices"]] == [0, 1, 2]
    reasons = [choice["finish_reason"] for choice in completion["choices"]]
    assert reasons == ["tool_calls", "length", "stop"]
    texts = [choice["message"]["content"] for choice in completion["choices"]]
    assert texts == ["", "Fo", ""]
    assert as_accumulated(join_chunks(chunks)) == without_nulls(completion)
    assert completion["usage"]["completion_tokens"] == 9


def test_a_problem_names_its_choice():
    problems = []
    stream = stream_of(on_problem=problems.append)
    for event in events_of("<|message|>Four.<|return|>"):
        stream.feed(event, choice=1)
    assert [problem.choice for problem in problems] == [1]


def test_choices_count_from_0():
    with pytest.raises(ValueError, match="choice is -1, expected a number from 0"):
        stream_of().feed(events_of(ANSWER)[0], choice=-1)


def test_a_writer_gives_each_choice_its_frames():
    writer = sse.CHAT_COMPLETIONS.writer(stream_of())
    start, text, *_ = events_of("<|channel|>final<|message|>Four.<|return|>")
    for choice in (1, 0):
        writer.feed(start, choice=choice)
        assert f'"index":{choice},"delta":{{"content":"Four"}}'.encode() in writer.feed(
            text, choice=choice
        )
    assert b'"finish_reason":"length"' in writer.finish("length", choice=1)
    assert b"DONE" not in writer.finish(choice=0)
    assert writer.finish() == b"data: [DONE]\n\n"


# -- The end --


def test_after_the_end_there_is_nothing_more():
    stream = stream_of()
    events = events_of(ANSWER)
    run(stream, events)
    assert stream.finish() == []
    assert stream.finish(choice=0) == []
    assert stream.fail("too late") == []
    for choice in (0, 1):
        with pytest.raises(ValueError, match="the stream is finished"):
            stream.feed(events[1], choice=choice)


@pytest.mark.parametrize("choice", [0, 1])
def test_after_a_failure_an_open_message_takes_no_more_text(choice):
    stream = stream_of()
    start, text, *_ = events_of(ANSWER)
    stream.feed(start, choice=choice)
    stream.fail("the engine died")
    with pytest.raises(ValueError, match="the stream is finished"):
        stream.feed(text, choice=choice)


@pytest.mark.parametrize("number", [1, -1])
def test_a_text_or_an_end_without_its_start_is_refused(number):
    start_delta_end = events_of(ANSWER)
    with pytest.raises(ValueError, match="without the start of its message"):
        stream_of().feed(start_delta_end[number])


def test_another_reason_is_refused_before_anything_changes():
    stream = stream_of()
    with pytest.raises(ValueError, match="reason is 'abort', expected one of"):
        stream.finish("abort")
    read_chat(stream.finish())


@pytest.mark.parametrize("count", [0, 2])
def test_a_failure_is_an_error_object(count):
    stream = stream_of()
    chunks = [chunk for event in events_of(ANSWER)[:count] for chunk in stream.feed(event)]
    chunks += stream.fail("the engine died")
    assert "role" in chunks[0]["choices"][0]["delta"]
    assert over_the_wire(sse.CHAT_COMPLETIONS, chunks)[-1] == {
        "error": {
            "message": "the engine died",
            "type": "server_error",
            "param": None,
            "code": None,
        }
    }


def test_no_chunks_add_up_to_nothing():
    with pytest.raises(ValueError, match="no chunks"):
        join_chunks([])


# -- Problems --


def test_a_client_that_asks_is_told_of_problems():
    text = "<|channel|>final<|message|>a<|start|>assistant<|message|>b<|return|>"
    events = events_of(text)
    hook = []
    completion = read_chat(run(stream_of(show_problems=True, on_problem=hook.append), events))
    problems = completion["choices"][0]["message"]["harmony_problems"]
    assert [problem["kind"] for problem in problems] == ["missing_end", "without_channel"]
    assert problems == [{"index": n, **each.to_dict()} for n, each in enumerate(hook)]
    assert "text without a channel, at positions 4 to 7, goes to content" in problems[1]["message"]
    options = {"model": "gpt-oss-20b", "show_problems": True}
    whole = chat_completion(events, **options)
    assert whole["choices"][0]["message"]["harmony_problems"] == problems


# -- Log probabilities --


def entry(token, logprob=-0.5, **fields):
    return {"token": token, "bytes": list(token.encode()), "logprob": logprob, **fields}


def test_log_probabilities_go_with_the_tokens_of_the_content():
    tokens = ["<|channel|>", "final", "<|message|>", "Good", " day", "!", "<|return|>"]
    entries = [entry(token, -n / 4, top_logprobs=[]) for n, token in enumerate(tokens)]
    events = events_of("".join(tokens))
    chunks = run(stream_of(), events, logprobs=entries)
    alone = [chunk["choices"][0].get("logprobs", {}).get("content") for chunk in chunks]
    assert alone == [None, *([each] for each in entries[3:6]), None]
    whole = chat_completion(events, model="gpt-oss-20b", logprobs=entries)
    check_chat_completion(whole)
    found = [read_chat(chunks)["choices"][0]["logprobs"], whole["choices"][0]["logprobs"]]
    assert [each["content"] for each in found] == [entries[3:6]] * 2


def test_a_character_of_several_tokens_has_the_entries_of_all_of_them():
    events = events_of("<|channel|>final<|message|>🪸<|return|>")
    entries = [entry(str(n)) for n in range(9)]
    [chunk] = [
        chunk
        for chunk in run(stream_of(), events, logprobs=entries)
        if "logprobs" in chunk["choices"][0]
    ]
    deltas = [event for event in events if hasattr(event, "text")]
    assert chunk["choices"][0]["delta"] == {"content": "🪸"}
    assert chunk["choices"][0]["logprobs"]["content"] == entries[3 : deltas[0].stop]
    assert deltas[0].stop > 4


def test_infinity_is_written_as_a_number_that_json_has():
    top = [entry("Fi", float("-inf"))]
    entries = [entry("Four", float("-inf"), top_logprobs=top)] * 4
    text = "<|channel|>final<|message|>Four<|return|>"
    chunks = run(stream_of(), events_of(text), logprobs=entries)
    [found] = read_chat(chunks)["choices"][0]["logprobs"]["content"]
    assert (found["logprob"], found["top_logprobs"][0]["logprob"]) == (-9999.0, -9999.0)
    assert entries[0]["logprob"] == float("-inf")


def test_thoughts_and_calls_have_no_log_probabilities():
    events = events_of(THINK + CALL + "{}<|call|>")
    entries = [entry("a")] * len(events) * 9
    completion = read_chat(run(stream_of(), events, logprobs=entries))
    assert completion["choices"][0].get("logprobs") is None


def test_a_completion_gives_what_its_events_give():
    events = events_of(THINK + CALL + "{}<|call|>" + ANSWER)
    collector = MessageCollector()
    for event in events:
        collector.feed(event)
    made = [
        chat_completion(
            source, model="gpt-oss-20b", usage=Usage(1, 2), ids=counted_ids(), clock=int
        )
        for source in (events, collector.completion())
    ]
    assert made[0] == made[1]


# -- Generators --


def test_generators_give_the_same_chunks_and_ask_for_the_ending_at_the_end():
    events = events_of(THINK + ANSWER)
    ending = []

    def engine():
        yield from events
        ending.extend(("length", Usage(1, 2)))

    async def slow_engine():
        for event in engine():
            await asyncio.sleep(0)
            yield event

    async def collect():
        chunks = stream_of().aiterate(slow_engine(), lambda: tuple(ending))
        return [chunk async for chunk in chunks]

    wanted = run(stream_of(), events, "length", Usage(1, 2))
    assert list(stream_of().iterate(engine(), lambda: tuple(ending))) == wanted
    ending.clear()
    assert asyncio.run(collect()) == wanted
    assert list(stream_of().iterate(events))[-1]["choices"][0]["finish_reason"] == "stop"


# -- What others found out the hard way --


def cases(path, *keys):
    found = json.loads(path.read_text(encoding="utf-8"))
    return {case["id"]: case for case in found if all(key in case for key in keys)}


DELTAS = cases(CASES / "text_chunks.json", "chat_deltas_per_chunk")


@pytest.mark.parametrize("case", DELTAS.values(), ids=list(DELTAS))
def test_each_chunk_of_text_gives_the_deltas_that_other_servers_give(case):
    parser, stream = EventParser(), stream_of(separator="")
    for text, wanted in zip(case["chunks"], case["chat_deltas_per_chunk"], strict=True):
        chunks = [chunk for event in parser.feed_text(text) for chunk in stream.feed(event)]
        assert joined_deltas(chunks) == wanted


def joined_deltas(chunks):
    """All deltas of a step as one; a call as (index, name, arguments)."""
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    calls = {}
    for call in (call for delta in deltas for call in delta.get("tool_calls", [])):
        seen = calls.setdefault(call["index"], [call["index"], None, ""])
        seen[1] = seen[1] or call["function"].get("name")
        seen[2] += call["function"]["arguments"]
    texts = {
        key: "".join(delta.get(key, "") for delta in deltas) or None
        for key in ("reasoning", "content")
    }
    return {**texts, "tool_calls": list(calls.values()) or None}


BUGS = cases(Path(__file__).parent / "cases.json", "tokens")


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("case", BUGS.values(), ids=list(BUGS))
def test_what_went_wrong_elsewhere_goes_right_however_tokens_are_grouped(case, size):
    parser, stream, tokens = EventParser(), stream_of(), case["tokens"]
    events = []
    for place in range(0, len(tokens), size):
        events += parser.feed_many(tokens[place : place + size])
    events += parser.close()
    message = read_chat(run(stream, events, usage=Usage(1, 1)))["choices"][0]["message"]
    wanted = case["wanted"]
    assert (message["content"], message.get("reasoning", "")) == (
        wanted["content"],
        wanted["reasoning"],
    )
    assert calls_of(message) == [
        (call["name"].removeprefix("functions."), call["arguments"])
        for call in wanted.get("tool_calls", [])
    ]


def test_arguments_of_one_call_stay_in_one_call():
    events = events_of(BUGS["bug-080"]["tokens"])
    chunks = run(stream_of(), events)
    calls = [c for k in chunks for c in k["choices"][0]["delta"].get("tool_calls", [])]
    assert {call["index"] for call in calls} == {0}
    assert [call["function"].get("name") for call in calls] == [
        "get_weather",
        *[None] * (len(calls) - 1),
    ]
    assert "".join(call["function"]["arguments"] for call in calls) == '{"city": "Tokyo"}'


def test_thinking_tokens_are_counted_apart():
    case = BUGS["bug-084"]
    usage = run(stream_of(), events_of(case["tokens"]), usage=Usage(0, 18))[-1]["usage"]
    wanted = case["wanted"]["token_counts"]["analysis_content"]
    assert usage["completion_tokens_details"]["reasoning_tokens"] == wanted


def test_text_whose_markers_the_engine_took_out_is_never_passed_on_in_silence():
    text = cases(Path(__file__).parent / "cases.json")["bug-083"]["wanted"]["text_in"]
    parser, problems = EventParser(), []
    stream = stream_of(on_problem=problems.append)
    run(stream, [*parser.feed_text(text), *parser.close()])
    assert problems


def test_usage_of_one_choice_is_refused():
    with pytest.raises(ValueError, match="usage counts all choices"):
        ChatCompletionStream("m").finish("stop", Usage(1, 2), choice=0)
