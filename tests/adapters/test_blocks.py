"""AG-UI and UI messages: each message is a start, deltas and an end."""

import json

import attrs
import pytest
from clients import events_of, read_ag_ui, read_ui_messages, run

from harmony_stream.adapters import AgUiStream, UiMessageStream, Usage, counted_ids
from harmony_stream.support.json_text import MAX_DEPTH

THINK = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
CALL = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>"
CODE = "<|channel|>analysis to=python code<|message|>"
SEARCH = "<|channel|>analysis to=browser.search<|message|>"
EXEC = "<|channel|>analysis to=container.exec<|message|>"
ANSWER = "<|channel|>final<|message|>Four.<|return|>"
RESULT = "<|start|>{} to=assistant<|channel|>commentary<|message|>9<|end|><|start|>assistant"


def ag_ui(**options):
    return AgUiStream("thread", "run", ids=counted_ids(), **options)


def ui_messages(**options):
    return UiMessageStream(ids=counted_ids(), **options)


@attrs.frozen
class Turn:
    """A turn, and what a client has of it.

    Attributes:
        text: the tokens, as marked text.
        blocks: kind (one of the words below), tool and text of each block.
        inputs: the end of each call in a UI message stream: the input, or an error.
        reported: kinds of the problems that the server hears of.
        options: of the stream.
    """

    text: str
    blocks: list
    inputs: list = attrs.field(factory=list)
    reported: list = attrs.field(factory=list)
    options: dict = attrs.field(factory=dict)


AG_UI_NAMES = {"text": "TEXT_MESSAGE", "reasoning": "REASONING_MESSAGE", "call": "TOOL_CALL"}
UI_NAMES = {"text": "text", "reasoning": "reasoning", "call": "tool-input"}

TEXT, THOUGHT = ("text", None, "Four."), ("reasoning", None, "Hm.")
NOT_JSON = {
    "no JSON": "ls -R",
    "not a number": '{"a": NaN}',
    "nested too deeply": "[" * 5_000 + "]" * 5_000,
    "nested one level too deeply": "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
}
# JSON, but none that Python, or a client, can read.
NOT_SENT = {
    "a number beyond floats": "1e999",
    "a number with too many digits": "1" * 5000,
    "half a character": '"\\ud83e"',
}

TURNS = {
    "thinking and an answer": Turn(THINK + ANSWER, [THOUGHT, TEXT]),
    "thinking is hidden": Turn(THINK + ANSWER, [TEXT], options={"hide_reasoning": True}),
    "nothing at all": Turn("", []),
    "a message without text": Turn("<|channel|>final<|message|><|end|>", [("text", None, "")]),
    "two calls of one function": Turn(
        f"{CALL}1<|call|><|start|>assistant{CALL}[2]<|call|>",
        [("call", "f", "1"), ("call", "f", "[2]")],
        [1, [2]],
    ),
    "code is no JSON": Turn(CODE + "1+1<|call|>", [("call", "python", "1+1")], ["1+1"]),
    "a search": Turn(SEARCH + "{}<|call|>", [("call", "browser.search", "{}")], [{}]),
    "another tool": Turn(EXEC + "{}<|call|>", [("call", "container.exec", "{}")], [{}]),
    "a call cut off": Turn(
        CALL + "{}", [("call", "f", "{}")], ["cut off"], reported=["incomplete_call"]
    ),
    "a text cut off": Turn("<|channel|>final<|message|>Four.", [TEXT]),
    "text without a channel": Turn("<|message|>Four.", [TEXT], reported=["without_channel"]),
    "a prompt in the stream": Turn("<|end|><|start|>user<|message|>What?<|end|>", []),
    "a call without arguments": Turn(
        CALL + " <|call|>", [("call", "f", " {}")], [{}], ["arguments_not_json"]
    ),
    "another tool without arguments": Turn(
        EXEC + "<|call|>", [("call", "container.exec", "{}")], [{}]
    ),
    "code without a line": Turn(CODE + "<|call|>", [("call", "python", "")], [""]),
    "a call without arguments that was cut off": Turn(
        CALL, [("call", "f", "")], ["cut off"], ["incomplete_call"]
    ),
    "a name that is spelled otherwise": Turn(
        "<|channel|>commentary to=functions.functions.F <|constrain|>json<|message|>{}<|call|>",
        [("call", "f", "{}")],
        [{}],
        ["resolved_name"],
        {"tools": ["f"]},
    ),
    "a call of no name": Turn(
        "<|channel|>analysis to=functions.<|message|>Hm.<|call|>",
        [THOUGHT],
        reported=["nameless_call"],
    ),
    "more after the answer": Turn(
        f"{ANSWER}<|start|>assistant{CALL}1<|call|>", [TEXT], reported=["after_return"]
    ),
    "text that belongs to no message": Turn(
        f"<|channel|>final<|message|>Four.<|end|>Five.<|start|>assistant{ANSWER}",
        [TEXT, ("text", None, "Five."), TEXT],
        reported=["expected_start"],
    ),
    **{
        f"arguments that are {name}": Turn(
            f"{CALL}{text}<|call|>", [("call", "f", text)], ["not JSON"], ["arguments_not_json"]
        )
        for name, text in NOT_JSON.items()
    },
    **{
        f"arguments that are {name}": Turn(
            f"{CALL}{text}<|call|>", [("call", "f", text)], ["not JSON"]
        )
        for name, text in NOT_SENT.items()
    },
}


@pytest.mark.parametrize("turn", TURNS.values(), ids=list(TURNS))
def test_an_ag_ui_client_has_what_the_parser_read(turn):
    problems = []
    chunks = run(ag_ui(on_problem=problems.append, **turn.options), events_of(turn.text))
    wanted = [(AG_UI_NAMES[kind], tool, text) for kind, tool, text in turn.blocks]
    assert read_ag_ui(chunks) == wanted
    assert [problem.kind for problem in problems] == turn.reported


@pytest.mark.parametrize("turn", TURNS.values(), ids=list(TURNS))
def test_a_ui_message_client_has_what_the_parser_read(turn):
    problems = []
    chunks = run(ui_messages(on_problem=problems.append, **turn.options), events_of(turn.text))
    wanted = [(UI_NAMES[kind], tool, text) for kind, tool, text in turn.blocks]
    assert read_ui_messages(chunks) == wanted
    assert [problem.kind for problem in problems] == turn.reported
    for chunk, wanted_input in zip(inputs_of(chunks), turn.inputs, strict=True):
        if chunk["type"] == "tool-input-available":
            assert chunk["input"] == wanted_input
        else:
            assert wanted_input in chunk["errorText"]
            assert chunk["input"] in [text for _, _, text in turn.blocks]


def inputs_of(chunks):
    return [c for c in chunks if c["type"] in ("tool-input-available", "tool-input-error")]


def test_the_deepest_arguments_that_pass_can_still_be_sent():
    deepest = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert parses(deepest)
    assert not parses(f"[{deepest}]")
    chunks = run(ui_messages(), events_of(f"{CALL}{deepest}<|call|>"))
    json.dumps({"in": {"a": chunks}}, indent=1)


def parses(text):
    [chunk] = inputs_of(run(ui_messages(), events_of(f"{CALL}{text}<|call|>")))
    return chunk["type"] == "tool-input-available"


# -- Tools --


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


def test_a_tools_answer_goes_to_the_oldest_open_call_of_its_name():
    answers = [
        RESULT.removesuffix("<|start|>assistant").format(tool)
        for tool in ("functions.f", "python", "f")
    ]
    text = f"{CALL}1<|call|><|start|>assistant{CODE}2<|call|><|start|>assistant{CALL}3<|call|>"
    events = events_of(text + "".join(answers) + "<|start|>assistant" + ANSWER)
    found = [c for c in run(ag_ui(), events) if c["type"] == "TOOL_CALL_RESULT"]
    assert [(c["toolCallId"], c["content"], c["role"]) for c in found] == [
        ("call_1", "9", "tool"),
        ("call_2", "9", "tool"),
        ("call_3", "9", "tool"),
    ]
    read_ag_ui(run(ag_ui(), events))
    chunks = run(ui_messages(), events)
    outputs = [c for c in chunks if c["type"] == "tool-output-available"]
    assert [(c["toolCallId"], c["output"]) for c in outputs] == [
        (f"call_{n}", "9") for n in (1, 2, 3)
    ]
    read_ui_messages(chunks)


@pytest.mark.parametrize("stream_of", [ag_ui, ui_messages])
def test_an_answer_to_no_call_is_reported_and_not_shown(stream_of):
    problems = []
    answer = RESULT.removesuffix("<|start|>assistant").format("functions.f")
    events = events_of(f"{CALL}1<|call|>{answer}{answer}<|start|>assistant{ANSWER}")
    kinds = [chunk["type"] for chunk in run(stream_of(on_problem=problems.append), events)]
    assert kinds.count("TOOL_CALL_RESULT") + kinds.count("tool-output-available") == 1
    assert [problem.kind for problem in problems] == ["unanswered_result"]


def test_the_end_of_a_call_that_must_not_be_executed_says_so():
    ends = [c for c in run(ag_ui(), events_of(CALL + "1")) if c["type"] == "TOOL_CALL_END"]
    assert ends == [
        {"type": "TOOL_CALL_END", "toolCallId": "call_1", "metadata": {"complete": False}}
    ]


# -- Ends --


def test_a_run_says_how_it_ended_and_what_it_took():
    usage = Usage(5, 11, cached_tokens=4)
    counts = {
        "inputTokens": 5,
        "outputTokens": 11,
        "totalTokens": 16,
        "reasoningTokens": 2,
        "cachedInputTokens": 4,
    }
    chunks = run(ag_ui(), events_of(THINK + ANSWER), usage=usage)
    identity = {"threadId": "thread", "runId": "run"}
    assert chunks[0] == {"type": "RUN_STARTED", **identity}
    assert chunks[-1] == {"type": "RUN_FINISHED", **identity, "usage": [counts]}
    read_ag_ui(chunks)
    chunks = run(ui_messages(), events_of(THINK + ANSWER), usage=usage)
    finish = {"type": "finish", "finishReason": "stop", "messageMetadata": {"usage": counts}}
    assert chunks[-1] == finish
    read_ui_messages(chunks)


def test_a_run_that_was_cut_off_says_so():
    events = events_of("<|channel|>final<|message|>Fo")
    assert run(ag_ui(), events)[-1]["outcome"] == {"type": "cancelled"}
    assert run(ui_messages(), events)[-1]["finishReason"] == "length"


def test_a_failure_is_told_and_closes_what_was_open():
    failed = {}
    for stream in (ag_ui(), ui_messages()):
        chunks = [chunk for event in events_of(ANSWER)[:2] for chunk in stream.feed(event)]
        failed[type(stream)] = chunks + stream.fail("the engine died")
    run_error = {"type": "RUN_ERROR", "message": "the engine died"}
    assert failed[AgUiStream][-1] == run_error
    assert read_ag_ui(failed[AgUiStream]) == [("TEXT_MESSAGE", None, "Four")]
    assert read_ui_messages(failed[UiMessageStream]) == [("text", None, "Four")]
    *_, error, _, finish = failed[UiMessageStream]
    assert error == {"type": "error", "errorText": "the engine died"}
    assert finish["finishReason"] == "error"


def test_a_client_that_asks_is_told_of_problems():
    events = events_of("<|message|>Four.<|return|>")
    hook = []
    chunks = run(ag_ui(show_problems=True, on_problem=hook.append), events)
    assert {"type": "CUSTOM", "name": "harmony.problem", "value": hook[0].to_dict()} in chunks
    chunks = run(ui_messages(show_problems=True), events)
    assert {"type": "data-harmony-problem", "data": hook[0].to_dict()} in chunks
    read_ui_messages(chunks)
