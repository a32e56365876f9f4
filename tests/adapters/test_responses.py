"""Responses: one item for each message, its whole life cycle, and the same text everywhere."""

import asyncio

import attrs
import pytest
from clients import check_response, events_of, over_the_wire, read_response, run, text_of

from harmony_stream.adapters import (
    ResponseStream,
    Unlabelled,
    Usage,
    counted_ids,
    response,
    sse,
)
from harmony_stream.parsing.collect import MessageCollector

THINK = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
CALL = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>"
CODE = "<|channel|>analysis to=python code<|message|>"
ANSWER = "<|channel|>final<|message|>Four.<|return|>"


def stream_of(**options):
    options = {"ids": counted_ids(), "clock": lambda: 1_700_000_000.5, **options}
    return ResponseStream("gpt-oss-20b", **options)


@attrs.frozen
class Turn:
    """A turn, and what a client has of it.

    Attributes:
        text: the tokens, as marked text.
        items: type, status, and what else is of note of each item.
        status: of the response.
        reported: kinds of the problems that the server hears of.
        reason: what the engine says.
        options: of the stream.
    """

    text: str
    items: list
    status: str = "completed"
    reported: list = attrs.field(factory=list)
    reason: str | None = None
    options: dict = attrs.field(factory=dict)


def reasoning(text, status="completed"):
    part = {"type": "reasoning_text", "text": text}
    return {"type": "reasoning", "status": status, "summary": [], "content": [part]}


def message(text, phase="final_answer", status="completed"):
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    fields = {"type": "message", "role": "assistant", "phase": phase, "status": status}
    return {**fields, "content": [part]}


def function(arguments, status="completed", number=1, name="f"):
    fields = {"type": "function_call", "name": name, "call_id": f"call_{number}"}
    return {**fields, "arguments": arguments, "status": status}


def code(text, status="completed"):
    fields = {"type": "code_interpreter_call", "container_id": "auto", "outputs": None}
    return {**fields, "code": text, "status": status}


def search(action, status="completed"):
    return {"type": "web_search_call", "action": action, "status": status}


def tool(server, name, arguments, status="completed"):
    fields = {"type": "mcp_call", "server_label": server, "name": name}
    return {**fields, "arguments": arguments, "output": None, "error": None, "status": status}


def browse(tool, arguments):
    return f"<|channel|>analysis to=browser.{tool} code<|message|>{arguments}<|call|>"


TURNS = {
    "an answer": Turn(ANSWER, [message("Four.")]),
    "thinking and an answer": Turn(THINK + ANSWER, [reasoning("Hm."), message("Four.")]),
    "thinking is hidden": Turn(
        THINK + ANSWER, [message("Four.")], options={"hide_reasoning": True}
    ),
    "nothing at all": Turn("", []),
    "a message without text": Turn(
        "<|channel|>analysis<|message|><|end|><|start|>assistant" + ANSWER,
        [reasoning(""), message("Four.")],
    ),
    "a preamble has its phase": Turn(
        "<|channel|>commentary<|message|>Let me look.<|end|><|start|>assistant" + ANSWER,
        [message("Let me look.", "commentary"), message("Four.")],
    ),
    "two calls of one function": Turn(
        f"{CALL}1<|call|><|start|>assistant{CALL}2<|call|>",
        [function("1"), function("2", number=2)],
    ),
    "python is a code interpreter": Turn(f"{CODE}1+1<|call|>", [code("1+1")]),
    "a declared python is a function": Turn(
        f"{CODE}1+1<|call|>", [function("1+1", name="python")], options={"tools": ["python"]}
    ),
    "a call without arguments": Turn(
        CALL + " <|call|>", [function(" {}")], reported=["arguments_not_json"]
    ),
    "another tool without arguments": Turn(
        "<|channel|>analysis to=container.exec<|message|><|call|>",
        [tool("container", "exec", "{}")],
    ),
    "code without a line": Turn(f"{CODE}<|call|>", [code("")]),
    "a search without arguments": Turn(
        browse("search", ""), [search({"type": "search", "query": ""})]
    ),
    "a call without arguments that was cut off": Turn(
        CALL, [function("", "incomplete")], "incomplete", ["incomplete_call"]
    ),
    "a name in another namespace than the declared one": Turn(
        "<|channel|>commentary to=function.f<|message|>1<|call|>",
        [function("1")],
        reported=["resolved_name"],
        options={"tools": ["f", "g"]},
    ),
    "a call of no name": Turn(
        "<|channel|>commentary to=functions.<|message|>Look.<|call|><|start|>assistant"
        "<|channel|>analysis to=.<|message|>Hm.<|call|>",
        [message("Look.", "commentary"), reasoning("Hm.")],
        reported=["nameless_call", "nameless_call"],
    ),
    "more after the answer": Turn(
        f"{ANSWER}<|start|>assistant{CALL}1", [message("Four.")], reported=["after_return"]
    ),
    "text that belongs to no message": Turn(
        f"<|channel|>final<|message|>Four.<|end|>Five.<|start|>assistant{ANSWER}",
        [message("Four."), message("Five."), message("Four.")],
        reported=["expected_start"],
    ),
    "texts of two messages are two items": Turn(
        f"{THINK}{THINK}<|channel|>commentary<|message|>Plan.<|end|><|start|>assistant{ANSWER}",
        [reasoning("Hm."), reasoning("Hm."), message("Plan.", "commentary"), message("Four.")],
    ),
    "a search": Turn(
        browse("search", '{"query": "tides"}'), [search({"type": "search", "query": "tides"})]
    ),
    "a search for what is no text": Turn(
        browse("search", '{"query": 1}'), [search({"type": "search", "query": "1"})]
    ),
    "a search that is no JSON": Turn(
        browse("search", "tides"), [search({"type": "search", "query": "tides"})]
    ),
    "a search that is JSON no client can read": Turn(
        browse("search", '{"query": "\\ud800"}'),
        [search({"type": "search", "query": '{"query": "\\ud800"}'})],
    ),
    "a search that is not an object": Turn(
        browse("search", "[1]"), [search({"type": "search", "query": "[1]"})]
    ),
    "a search without a query": Turn(
        browse("search", '{"q": 1}'), [search({"type": "search", "query": '{"q": 1}'})]
    ),
    "a page by address": Turn(
        browse("open", '{"id": "https://example.org"}'),
        [search({"type": "open_page", "url": "https://example.org"})],
    ),
    "a page by number": Turn(
        browse("open", '{"id": 3, "cursor": 7}'),
        [search({"type": "open_page", "url": "cursor:7"})],
    ),
    "words on a page": Turn(
        browse("find", '{"pattern": "noon"}'),
        [search({"type": "find_in_page", "pattern": "noon", "url": "cursor:-1"})],
    ),
    "a search cut off": Turn(
        browse("search", '{"query": "ti').removesuffix("<|call|>"),
        [search({"type": "search", "query": '{"query": "ti'}, "failed")],
        "incomplete",
        ["incomplete_call"],
    ),
    "a tool of another namespace": Turn(
        "<|channel|>analysis to=container.exec<|message|>{}<|call|>",
        [tool("container", "exec", "{}")],
    ),
    "another tool cut off": Turn(
        "<|channel|>analysis to=container.exec<|message|>{",
        [tool("container", "exec", "{", "incomplete")],
        "incomplete",
        ["incomplete_call"],
    ),
    "a tool's answer and a prompt are not shown": Turn(
        f"{CALL}1<|call|><|start|>functions.f to=assistant<|channel|>commentary<|message|>9"
        f"<|end|><|start|>user<|message|>So?<|end|><|start|>assistant{ANSWER}",
        [function("1"), message("Four.")],
    ),
    "a text cut off": Turn(
        THINK + "<|channel|>final<|message|>Fo",
        [reasoning("Hm."), message("Fo", status="incomplete")],
        "incomplete",
    ),
    "a thought cut off": Turn(
        "<|channel|>analysis<|message|>Hm", [reasoning("Hm", "incomplete")], "incomplete"
    ),
    "a text whose stop token the engine keeps to itself": Turn(
        "<|channel|>final<|message|>Four.", [message("Four.")], reason="stop"
    ),
    "code cut off": Turn(
        CODE + "1+", [code("1+", "incomplete")], "incomplete", ["incomplete_call"]
    ),
    "a call that the engine stopped in": Turn(
        CALL + '{"a', [function('{"a', "incomplete")], "completed", ["incomplete_call"], "stop"
    ),
    "a call is complete if the engine says so": Turn(
        CALL + "{}", [function("{}")], reason="tool_calls"
    ),
    "a call that the next message breaks off": Turn(
        f"{CALL}1<|start|>assistant{ANSWER}",
        [function("1", "incomplete"), message("Four.")],
        reported=["missing_end", "incomplete_call"],
    ),
    "a thought that the next message breaks off": Turn(
        f"<|channel|>analysis<|message|>Hm.<|start|>assistant{ANSWER}",
        [reasoning("Hm."), message("Four.")],
        reported=["missing_end"],
    ),
    "cut off inside a header": Turn(
        THINK + "<|channel|>fin", [reasoning("Hm.")], "incomplete", ["truncated_in_header"]
    ),
    "text without a channel": Turn(
        "<|message|>Four.<|return|>", [message("Four.")], reported=["without_channel"]
    ),
    "text on an unknown channel": Turn(
        "<|channel|>finale<|message|>Four.<|return|>",
        [reasoning("Four.")],
        reported=["unknown_channel"],
    ),
    "text on an unknown channel, as content": Turn(
        "<|channel|>finale<|message|>Four.<|return|>",
        [message("Four.")],
        reported=["unknown_channel"],
        options={"unlabelled": Unlabelled(on_unknown_channel="content")},
    ),
}


@pytest.mark.parametrize("turn", TURNS.values(), ids=list(TURNS))
def test_a_client_has_what_the_parser_read(turn):
    problems = []
    stream = stream_of(on_problem=problems.append, **turn.options)
    found = read_response(run(stream, events_of(turn.text), turn.reason))
    assert [without_id(item) for item in found["output"]] == turn.items
    assert found["status"] == turn.status
    details = {"reason": "max_output_tokens"} if turn.status == "incomplete" else None
    assert found["incomplete_details"] == details
    assert [problem.kind for problem in problems] == turn.reported


def without_id(item):
    return {key: value for key, value in item.items() if key != "id"}


@pytest.mark.parametrize("turn", TURNS.values(), ids=list(TURNS))
def test_the_whole_object_is_what_the_stream_ends_with(turn):
    events = events_of(turn.text)
    usage = Usage(10, 20, reasoning_tokens=3)
    streamed = read_response(run(stream_of(**turn.options), events, turn.reason, usage))
    collector = MessageCollector()
    for event in events:
        collector.feed(event)
    for source in (events, collector.completion()):
        options = {"ids": counted_ids(), "clock": lambda: 1_700_000_000.5, **turn.options}
        whole = response(source, model="gpt-oss-20b", reason=turn.reason, usage=usage, **options)
        check_response(whole)
        assert whole == streamed


# The events between that which adds an item and that which ends it, less deltas.
LIFE_CYCLES = {
    ANSWER: ["content_part.added", "output_text.done", "content_part.done"],
    "<|channel|>analysis<|message|><|end|>": [
        "content_part.added",
        "reasoning_text.done",
        "content_part.done",
    ],
    CALL + "{}<|call|>": ["function_call_arguments.done"],
    CODE + "1<|call|>": [
        "code_interpreter_call.in_progress",
        "code_interpreter_call_code.done",
        "code_interpreter_call.interpreting",
        "code_interpreter_call.completed",
    ],
    CODE + "1": ["code_interpreter_call.in_progress", "code_interpreter_call_code.done"],
    browse("search", "{}"): [
        "web_search_call.in_progress",
        "web_search_call.searching",
        "web_search_call.completed",
    ],
    "<|channel|>analysis to=container.exec<|message|><|call|>": [
        "mcp_call.in_progress",
        "mcp_call_arguments.done",
        "mcp_call.completed",
    ],
}


@pytest.mark.parametrize(("text", "wanted"), LIFE_CYCLES.items())
def test_each_kind_of_item_has_its_life_cycle(text, wanted):
    kinds = [event["type"] for event in run(stream_of(), events_of(text))]
    assert [kinds[2], kinds[-2]] == [f"response.output_item.{end}" for end in ("added", "done")]
    between = [kind for kind in kinds[3:-2] if not kind.endswith(".delta")]
    assert between == [f"response.{kind}" for kind in wanted]


def test_a_search_is_shown_once_it_is_known_what_for():
    *most, end = events_of(browse("search", '{"query": "tides"}'))
    stream = stream_of()
    begin = [chunk for event in most for chunk in stream.feed(event)]
    assert [chunk["type"] for chunk in begin] == ["response.created", "response.in_progress"]
    assert stream.feed(end)[0]["item"]["action"] == {"type": "search", "query": "tides"}


def test_the_response_has_the_fields_of_the_request_and_the_usage():
    stream = stream_of(fields={"instructions": "Be brief.", "tool_choice": "required"})
    usage = Usage(5, 11, cached_tokens=4)
    found = read_response(run(stream, events_of(THINK + ANSWER), usage=usage))
    assert (found["id"], found["created_at"]) == ("resp_1", 1_700_000_000.5)
    assert (found["instructions"], found["tool_choice"]) == ("Be brief.", "required")
    assert found["usage"] == {
        "input_tokens": 5,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 11,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 16,
    }


@pytest.mark.parametrize("count", [0, 2])
def test_a_failure_ends_the_stream_with_what_there_was(count):
    stream = stream_of()
    events = [event for each in events_of(ANSWER)[:count] for event in stream.feed(each)]
    found = read_response(events + stream.fail("the engine died"))
    assert found["status"] == "failed"
    assert found["error"] == {"code": "server_error", "message": "the engine died"}
    texts = [(text_of(item), item["status"]) for item in found["output"]]
    assert texts == [("Four", "incomplete")] * (count // 2)
    assert stream.fail("again") == stream.finish() == []
    with pytest.raises(ValueError, match="the stream is finished"):
        stream.feed(events_of(ANSWER)[1])


@pytest.mark.parametrize(
    ("left_open", "first_item"),
    [
        (CODE + "1+1", code("1+1", "incomplete")),
        ("<|channel|>analysis<|message|>Hm.", reasoning("Hm.")),
    ],
)
def test_a_server_may_run_tools_between_two_parsers_of_one_turn(left_open, first_item):
    stream = stream_of()
    first, second = events_of(left_open), events_of(ANSWER)
    events = [event for each in (*first, *second) for event in stream.feed(each)]
    found = read_response(events + stream.finish())
    assert [without_id(item) for item in found["output"]] == [first_item, message("Four.")]


def test_nothing_is_shared_between_streams():
    first = stream_of()
    for event in run(first, events_of(THINK + ANSWER)):
        if "item" in event:
            event["item"].get("summary", []).append("changed")
            event["item"]["content"].append("changed")
        if "response" in event:
            event["response"]["tools"].append("changed")
    found = read_response(run(stream_of(), events_of(THINK + ANSWER)))
    assert found["tools"] == []
    assert [without_id(item) for item in found["output"]] == [reasoning("Hm."), message("Four.")]


def test_a_client_that_asks_is_told_of_problems_at_the_end():
    hook = []
    text = "<|channel|>final<|message|>a<|start|>assistant<|message|>b<|return|>"
    found = read_response(
        run(stream_of(show_problems=True, on_problem=hook.append), events_of(text))
    )
    assert found["harmony_problems"] == [problem.to_dict() for problem in hook]
    assert [problem.kind for problem in hook] == ["missing_end", "without_channel"]
    quiet = read_response(run(stream_of(), events_of(text)))
    assert "harmony_problems" not in quiet


def test_log_probabilities_go_with_the_tokens_of_the_text():
    tokens = ["<|channel|>", "final", "<|message|>", "Good", " day", "<|return|>"]
    entries = [
        {"token": token, "bytes": list(token.encode()), "logprob": -0.5, "top_logprobs": []}
        for token in tokens
    ]
    entries[4]["top_logprobs"] = [{"token": " d", "bytes": [32, 100], "logprob": float("-inf")}]
    events = events_of("".join(tokens))
    chunks = run(stream_of(), events, logprobs=entries)
    [item] = read_response(chunks)["output"]
    found = item["content"][0]["logprobs"]
    assert [(each["token"], each["bytes"]) for each in found] == [
        (each["token"], each["bytes"]) for each in entries[3:5]
    ]
    deltas = [each["logprobs"] for each in chunks if each["type"].endswith("output_text.delta")]
    short = {"token": " day", "logprob": -0.5}
    top = [{"token": " d", "logprob": -9999.0}]
    assert deltas[1] == [{**short, "top_logprobs": top}]
    whole = response(events, model="gpt-oss-20b", logprobs=entries)
    assert whole["output"][0]["content"][0]["logprobs"] == found


def test_generators_give_the_same_events():
    events = events_of(THINK + ANSWER)

    async def engine():
        for event in events:
            yield event

    async def collect():
        return [event async for event in stream_of().aiterate(engine())]

    wanted = run(stream_of(), events)
    assert list(stream_of().iterate(events)) == wanted
    assert asyncio.run(collect()) == wanted
    assert over_the_wire(sse.RESPONSES, wanted) == wanted
