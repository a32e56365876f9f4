"""What streams of blocks have in common, whatever their protocol calls it."""

import pytest
from clients import events_of, read_ag_ui, read_ui_messages, run
from turns import ANSWER, CALL, CODE, RESULT, THINK, TURNS, ag_ui, ui_messages

from harmony_stream.adapters import Usage

BOTH = pytest.mark.parametrize(
    ("stream_of", "read"), [(ag_ui, read_ag_ui), (ui_messages, read_ui_messages)]
)


@BOTH
@pytest.mark.parametrize("turn", TURNS.values(), ids=list(TURNS))
def test_each_message_is_a_block_of_its_tool_and_text(turn, stream_of, read):
    found = read(run(stream_of(**turn.options), events_of(turn.text)))
    assert [block[1:] for block in found] == [block[1:] for block in turn.blocks]


@BOTH
def test_tools_answer_the_oldest_open_calls_of_their_names(stream_of, read):
    calls = f"{CALL}1<|call|><|start|>assistant{CODE}2<|call|><|start|>assistant{CALL}3<|call|>"
    answers = "".join(
        RESULT.removesuffix("<|start|>assistant").format(tool)
        for tool in ("functions.f", "python", "f")
    )
    chunks = run(stream_of(), events_of(f"{calls}{answers}<|start|>assistant{ANSWER}"))
    answered = [chunk["toolCallId"] for chunk in chunks if is_result(chunk)]
    assert answered == ["call_1", "call_2", "call_3"]
    assert len(read(chunks)) == 4


def is_result(chunk):
    return chunk["type"] in ("TOOL_CALL_RESULT", "tool-output-available")


@BOTH
def test_an_answer_to_no_call_is_reported_and_not_shown(stream_of, read):
    problems = []
    answer = RESULT.removesuffix("<|start|>assistant").format("functions.f")
    events = events_of(f"{CALL}1<|call|>{answer}{answer}<|start|>assistant{ANSWER}")
    chunks = run(stream_of(on_problem=problems.append), events)
    assert [is_result(chunk) for chunk in chunks].count(True) == 1
    assert [problem.kind for problem in problems] == ["unanswered_result"]
    read(chunks)


@BOTH
def test_all_chunks_of_a_block_have_its_id(stream_of, read):
    chunks = run(stream_of(), events_of(f"{CALL}1<|call|><|start|>assistant{CALL}[2]<|call|>"))
    ids = [chunk["toolCallId"] for chunk in chunks if "toolCallId" in chunk]
    first = ids.index("call_2")
    assert {*ids[:first]} == {"call_1"}
    assert {*ids[first:]} == {"call_2"}
    assert len(read(chunks)) == 2


@BOTH
@pytest.mark.parametrize(("given", "counted"), [(None, 2), (7, 7), (0, 0)])
def test_the_tokens_of_reasoning_are_counted_unless_the_engine_tells_them(
    given, counted, stream_of, read
):
    usage = Usage(5, 11, cached_tokens=4, reasoning_tokens=given)
    last = run(stream_of(), events_of(THINK + ANSWER), usage=usage)[-1]
    [found] = last["usage"] if "usage" in last else [last["messageMetadata"]["usage"]]
    assert found == {
        "inputTokens": 5,
        "outputTokens": 11,
        "totalTokens": 16,
        "reasoningTokens": counted,
        "cachedInputTokens": 4,
    }
