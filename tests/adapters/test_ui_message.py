"""The UI message stream, read back with the models of pydantic-ai."""

import json

import pytest
from clients import events_of, read_ui_messages, run
from turns import ANSWER, CALL, CODE, EXEC, RESULT, SEARCH, THINK, TURNS, ui_messages

from harmony_stream.adapters import Usage
from harmony_stream.support.json_text import MAX_DEPTH

NAMES = {"text": "text", "reasoning": "reasoning", "call": "tool-input"}


def inputs_of(chunks):
    return [c for c in chunks if c["type"] in ("tool-input-available", "tool-input-error")]


@pytest.mark.parametrize("turn", TURNS.values(), ids=list(TURNS))
def test_a_ui_message_client_has_what_the_parser_read(turn):
    problems = []
    chunks = run(ui_messages(on_problem=problems.append, **turn.options), events_of(turn.text))
    wanted = [(NAMES[kind], tool, text) for kind, tool, text in turn.blocks]
    assert read_ui_messages(chunks) == wanted
    assert [problem.kind for problem in problems] == turn.reported
    for chunk, wanted_input in zip(inputs_of(chunks), turn.inputs, strict=True):
        if chunk["type"] == "tool-input-available":
            assert chunk["input"] == wanted_input
        else:
            assert wanted_input in chunk["errorText"]
            assert chunk["input"] in [text for _, _, text in turn.blocks]


def test_the_deepest_arguments_that_pass_can_still_be_sent():
    deepest = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert parses(deepest)
    assert not parses(f"[{deepest}]")
    chunks = run(ui_messages(), events_of(f"{CALL}{deepest}<|call|>"))
    json.dumps({"in": {"a": chunks}}, indent=1)


def parses(text):
    [chunk] = inputs_of(run(ui_messages(), events_of(f"{CALL}{text}<|call|>")))
    return chunk["type"] == "tool-input-available"


@pytest.mark.parametrize(
    ("text", "is_the_servers"),
    [(CALL, None), (CODE, True), (SEARCH, True), (EXEC, True)],
)
def test_the_client_is_told_which_calls_are_not_its_own(text, is_the_servers):
    chunks = run(ui_messages(), events_of(text + "{}<|call|>"))
    [start] = [chunk for chunk in chunks if chunk["type"] == "tool-input-start"]
    assert start.get("providerExecuted") == is_the_servers
    [end] = inputs_of(chunks)
    assert end.get("providerExecuted") == is_the_servers
    assert chunks[-1]["finishReason"] == ("stop" if is_the_servers else "tool-calls")


def test_a_tools_answer_is_the_output_of_the_oldest_open_call_of_its_name():
    answer = RESULT.format("functions.f")
    text = f"{CALL}1<|call|><|start|>assistant{CALL}2<|call|>"
    chunks = run(ui_messages(), events_of(text + answer.removesuffix("<|start|>assistant") * 2))
    found = [c for c in chunks if c["type"] == "tool-output-available"]
    assert [(c["toolCallId"], c["output"]) for c in found] == [("call_1", "9"), ("call_2", "9")]
    read_ui_messages(chunks)


@pytest.mark.parametrize(
    ("text", "reason"),
    [(ANSWER, "stop"), (CALL + "1<|call|>", "tool-calls"), (ANSWER[:-10], "length")],
)
def test_a_message_says_why_it_ended(text, reason):
    *_, step, finish = run(ui_messages(), events_of(text))
    assert step == {"type": "finish-step"}
    assert finish == {"type": "finish", "finishReason": reason}


def test_a_message_says_what_it_took():
    chunks = run(ui_messages(), events_of(THINK + ANSWER), usage=Usage(5, 11, cached_tokens=4))
    assert chunks[-1]["messageMetadata"] == {
        "usage": {
            "inputTokens": 5,
            "outputTokens": 11,
            "totalTokens": 16,
            "reasoningTokens": 2,
            "cachedInputTokens": 4,
        }
    }
    read_ui_messages(chunks)


def test_a_failure_is_told_and_closes_what_was_open():
    stream = ui_messages()
    chunks = [chunk for event in events_of(ANSWER)[:2] for chunk in stream.feed(event)]
    chunks += stream.fail("the engine died")
    assert read_ui_messages(chunks) == [("text", None, "Four")]
    *_, error, _, finish = chunks
    assert error == {"type": "error", "errorText": "the engine died"}
    assert finish == {"type": "finish", "finishReason": "error"}


def test_a_client_that_asks_is_told_of_problems():
    events, hook = events_of("<|message|>Four.<|return|>"), []
    chunks = run(ui_messages(show_problems=True, on_problem=hook.append), events)
    assert {"type": "data-harmony-problem", "data": hook[0].to_dict()} in chunks
    read_ui_messages(chunks)
