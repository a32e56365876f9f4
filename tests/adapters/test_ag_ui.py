"""A run of the AG-UI protocol, read back with the models of ag-ui-protocol."""

import pytest
from clients import events_of, read_ag_ui, run
from turns import ANSWER, CALL, CODE, RESULT, THINK, TURNS, ag_ui

from harmony_stream.adapters import Usage

NAMES = {"text": "TEXT_MESSAGE", "reasoning": "REASONING_MESSAGE", "call": "TOOL_CALL"}
RUN = {"threadId": "thread", "runId": "run"}


@pytest.mark.parametrize("turn", TURNS.values(), ids=list(TURNS))
def test_an_ag_ui_client_has_what_the_parser_read(turn):
    problems = []
    chunks = run(ag_ui(on_problem=problems.append, **turn.options), events_of(turn.text))
    wanted = [(NAMES[kind], tool, text) for kind, tool, text in turn.blocks]
    assert read_ag_ui(chunks) == wanted
    assert [problem.kind for problem in problems] == turn.reported


def test_a_tools_answer_goes_to_the_oldest_open_call_of_its_name():
    answers = [RESULT.removesuffix("<|start|>assistant").format(tool)
               for tool in ("functions.f", "python", "f")]  # fmt: skip
    text = f"{CALL}1<|call|><|start|>assistant{CODE}2<|call|><|start|>assistant{CALL}3<|call|>"
    chunks = run(ag_ui(), events_of(text + "".join(answers) + "<|start|>assistant" + ANSWER))
    found = [c for c in chunks if c["type"] == "TOOL_CALL_RESULT"]
    assert [(c["toolCallId"], c["content"], c["role"]) for c in found] == [
        (f"call_{n}", "9", "tool") for n in (1, 2, 3)
    ]
    read_ag_ui(chunks)


def test_the_end_of_a_call_that_must_not_be_executed_says_so():
    ends = [c for c in run(ag_ui(), events_of(CALL + "1")) if c["type"] == "TOOL_CALL_END"]
    assert ends == [
        {"type": "TOOL_CALL_END", "toolCallId": "call_1", "metadata": {"complete": False}}
    ]


def test_a_run_says_how_it_ended_and_what_it_took():
    usage = Usage(5, 11, cached_tokens=4)
    chunks = run(ag_ui(), events_of(THINK + ANSWER), usage=usage)
    counts = {
        "inputTokens": 5,
        "outputTokens": 11,
        "totalTokens": 16,
        "reasoningTokens": 2,
        "cachedInputTokens": 4,
    }
    assert chunks[0] == {"type": "RUN_STARTED", **RUN}
    assert chunks[-1] == {"type": "RUN_FINISHED", **RUN, "usage": [counts]}
    read_ag_ui(chunks)


def test_a_run_that_was_cut_off_is_cancelled():
    events = events_of("<|channel|>final<|message|>Fo")
    assert run(ag_ui(), events)[-1] == {
        "type": "RUN_FINISHED",
        **RUN,
        "outcome": {"type": "cancelled"},
    }


def test_a_failure_is_told_and_closes_what_was_open():
    stream = ag_ui()
    chunks = [chunk for event in events_of(ANSWER)[:2] for chunk in stream.feed(event)]
    chunks += stream.fail("the engine died")
    assert chunks[-1] == {"type": "RUN_ERROR", "message": "the engine died"}
    assert read_ag_ui(chunks) == [("TEXT_MESSAGE", None, "Four")]


def test_a_client_that_asks_is_told_of_problems():
    events, hook = events_of("<|message|>Four.<|return|>"), []
    chunks = run(ag_ui(show_problems=True, on_problem=hook.append), events)
    assert {"type": "CUSTOM", "name": "harmony.problem", "value": hook[0].to_dict()} in chunks
    read_ag_ui(chunks)
