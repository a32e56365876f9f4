"""What the messages of the Chat Completions API become, or an error says why not.

`cases/history.json` holds inputs on which servers disagree; where our answer is another than the
one noted there, `OTHERWISE` says so.
"""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests_read import (
    CASES,
    FUNCTION,
    LIST,
    MARKUP,
    QUESTION,
    TIDE,
    answer,
    brief,
    brief_of,
    call,
    calling,
    chat,
    opening,
    result,
    sampled,
    turns,
    user,
)
from strategies import examples, tokens_of

from harmony_stream import HarmonyError, parse
from harmony_stream.adapters.chat_completions import chat_completion
from harmony_stream.adapters.conversations import (
    ConversationError,
    conversation_from_chat,
)
from harmony_stream.rendering.render import Renderer
from harmony_stream.values.messages import Role

# -- The cases --

OTHERWISE = {
    "hist-003": "an empty function name is refused",
    "hist-011": "an image is refused, where vLLM leaves it out",
}
CHAT_CASES = [case for case in CASES if "openai_messages" in case["conversation"]]


@pytest.mark.parametrize("case", CHAT_CASES, ids=lambda case: case["id"])
def test_chat_messages_that_servers_read_in_many_ways_are_read_in_one(case):
    messages = case["conversation"]["openai_messages"]
    if case["expected"].get("error") or case["id"] in OTHERWISE:
        with pytest.raises(ConversationError):
            chat(*messages)
    else:
        assert chat(*messages) == [brief_of(each) for each in case["expected"]["messages"]]


# -- Chat messages --

SPEAKING = {
    "content as parts": (
        {"content": [{"type": "text", "text": "Low "}, {"type": "text", "text": "tide."}]},
        [answer("Low tide.")],
    ),
    "parts with the names of the Responses API": (
        {"content": [{"type": "output_text", "text": "Low."}]},
        [answer("Low.")],
    ),
    "an empty answer": ({"content": ""}, [answer("")]),
    "no parts": ({"content": []}, [answer("")]),
    "an answer, and no calls": ({"content": "Low.", "tool_calls": []}, [answer("Low.")]),
    "reasoning that was cut off": (
        {"reasoning": "Hm", "content": ""},
        [answer("Hm", "analysis")],
    ),
    "reasoning under two names": (
        {"reasoning": "Hm", "reasoning_content": "Hm", "content": "Low."},
        [answer("Hm", "analysis"), answer("Low.")],
    ),
    "no parts of reasoning": (
        {"content": "Low.", "reasoning_details": [], "thinking_blocks": None},
        [answer("Low.")],
    ),
    "reasoning and its parts": (
        {"reasoning": "Hm", "content": "", "reasoning_details": [{"text": "Hm"}]},
        [answer("Hm", "analysis")],
    ),
    "a refusal": ({"content": None, "refusal": "No."}, [answer("No.")]),
    "a refusal as a part": ({"content": [{"type": "refusal", "refusal": "No."}]}, [answer("No.")]),
    "text that names a marker": ({"content": "Write <|channel|>."}, [answer("Write <|channel|>.")]),
    "null in all other fields": (
        {"content": "Low.", "audio": None, "function_call": None, "tool_calls": None, "name": None},
        [answer("Low.")],
    ),
}


@pytest.mark.parametrize("name", SPEAKING)
def test_an_assistants_message_becomes_reasoning_and_answer(name):
    fields, wanted = SPEAKING[name]
    assert chat({"role": "assistant", **fields}) == wanted


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content", "thinking"])
def test_reasoning_comes_first_then_the_preamble_then_the_calls(key):
    message = {**calling(), "content": "I'll look.", key: "Hm"}
    wanted = [answer("Hm", "analysis"), answer("I'll look.", "commentary"), call("functions.tide")]
    assert chat(message) == wanted


@pytest.mark.parametrize("content", ["", None])
def test_calls_without_content_have_no_preamble(content):
    assert chat({**calling(), "content": content}) == [call("functions.tide")]


NAMES = {
    "tide": "functions.tide",
    "functions.tide": "functions.tide",
    "container.exec": "container.exec",
    "python": "functions.python",
    "knots.sum": "functions.knots.sum",  # declared below
    "user:x.y": "functions.user:x.y",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_gets_the_namespace_of_functions_unless_it_has_another(name):
    tools = [{"type": "function", "function": {"name": "knots.sum"}}]
    tool = {"role": "tool", "name": name, "content": ""}
    conversation = conversation_from_chat([calling(name), tool], tools=tools)
    found = [brief(message) for message in conversation.messages[2:]]
    assert found == [call(NAMES[name]), result(NAMES[name], "")]


def test_results_find_their_calls_by_id_in_any_order():
    calls = {"role": "assistant", "tool_calls": []}
    for identity, name in (("c1", "tide"), ("c2", "moon")):
        calls["tool_calls"] += calling(name, id=identity)["tool_calls"]
    second = {"role": "tool", "tool_call_id": "c2", "content": "new"}
    first = {"role": "tool", "tool_call_id": "c1", "name": "tide", "content": "2.4 m"}
    found = chat(calls, second, first)
    assert found[2:] == [result("functions.moon", "new"), result("functions.tide", "2.4 m")]


def test_an_id_may_come_again_once_its_call_is_answered():
    tool = {"role": "tool", "tool_call_id": "call_0", "content": "r"}
    found = chat(calling("a", id="call_0"), tool, calling("b", id="call_0"), tool)
    assert [each[0] for each in found[1::2]] == ["functions.a", "functions.b"]


def test_calls_without_ids_are_answered_by_name():
    tool = {"role": "tool", "name": "tide", "content": "r", "tool_call_id": ""}
    assert chat(calling(id=""), calling(id=None), tool)[-1] == result("functions.tide", "r")


def test_the_name_of_a_participant_is_the_authors():
    reasoned = {**calling(), "name": "planner", "reasoning": "Hm", "content": "I'll look."}
    found = chat({**QUESTION, "name": "ada"}, reasoned)
    assert [each[0] for each in found] == ["ada", "planner", "planner", "planner"]


def test_objects_of_a_client_are_taken_for_dicts():
    class Answer:
        def model_dump(self):
            return {**calling(), "content": None}

    assert chat(QUESTION, Answer()) == [user(), call("functions.tide")]


# -- The opening --


def test_without_anything_else_the_opening_is_the_system_message():
    system, developer = opening(conversation_from_chat, [QUESTION])
    assert developer is None
    assert (system.conversation_start_date, system.reasoning_effort.value) == (None, "Medium")


def test_instructions_tools_format_effort_and_date_stand_where_the_guide_has_them():
    conversation = conversation_from_chat(
        [{"role": "system", "content": "Be brief."}, QUESTION],
        tools=[{"type": "function", "function": TIDE}],
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "list", "description": "Tides.", "schema": LIST},
        },
        reasoning_effort="high",
        date="2025-06-28",
    )
    renderer = Renderer(profile="guide")
    tokens = renderer.render_conversation_for_completion(conversation, Role.ASSISTANT)
    assert renderer.vocabulary.decode(tokens) == PROMPT


PROMPT = """\
<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.
Knowledge cutoff: 2024-06
Current date: 2025-06-28

Reasoning: high

# Valid channels: analysis, commentary, final. Channel must be included for every message.
Calls to these tools must go to the commentary channel: 'functions'.<|end|>\
<|start|>developer<|message|># Instructions

Be brief.

# Tools

## functions

namespace functions {

// Height of the tide.
type tide = (_: {
at?: string,
}) => any;

} // namespace functions

# Response Formats

## list

// Tides.
{"type":"array","items":{"type":"string"}}<|end|>\
<|start|>user<|message|>q<|end|><|start|>assistant"""


def test_later_instructions_stay_where_they_hold_from():
    conversation = conversation_from_chat(
        [QUESTION, {"role": "system", "content": "D"}, {"role": "developer", "content": "E"}],
        tools=[{"type": "function", "function": TIDE}],
    )
    roles = [message.author.role.value for message in conversation]
    assert roles == ["system", "developer", "user", "developer"]
    assert conversation.messages[1].content[0].instructions is None
    assert conversation.messages[3].content[0].instructions == "D\n\nE"


def test_a_function_may_lack_description_and_parameters():
    developer = opening(conversation_from_chat, [], tools=[{"type": "function", "function": {
        "name": "now"}}])[1]  # fmt: skip
    tool = developer.tools["functions"].tools[0]
    assert (tool.description, tool.parameters) == ("", None)


IMAGE = {"type": "image_url", "image_url": {"url": "https://a.example/x.png"}}
AUDIO = {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}
TOOL = {"role": "tool", "content": "r"}

# Messages behind a question, the path of the field at fault, and what the sentence says.
CHAT_ERRORS = [
    ({"role": "bot", "content": ""}, "messages[1].role", "'bot' is not one of user"),
    ({"role": "function", "content": ""}, "messages[1].role", "tool results have role tool"),
    ({"content": ""}, "messages[1].role", "None is not one of"),
    ("hello", "messages[1]", "is not an object; give a dict"),
    ({"role": "user", "content": [IMAGE]}, "messages[1].content[0].type", "reads only text"),
    ({"role": "user", "content": [AUDIO]}, "messages[1].content[0].type", "'input_audio'"),
    ({"role": "user", "content": ["a"]}, "messages[1].content[0]", "is not an object"),
    ({"role": "user", "content": [{"type": "text"}]}, "messages[1].content[0].text",
     "is not a string"),
    ({"role": "user", "content": {"type": "text"}}, "messages[1].content", "is not a list"),
    ({"role": "user", "content": 5}, "messages[1].content", "5 is not a list"),
    ({"role": "user"}, "messages[1].content", "is missing"),
    ({"role": "user", "content": "", "name": "Ada L."}, "messages[1].name", "is not a name"),
    ({"role": "system", "content": "", "name": "x"}, "messages[1].name", "no place"),
    ({"role": "assistant", "content": MARKUP}, "messages[1].content", "parse it first"),
    ({"role": "assistant", "content": f"<|start|>assistant{MARKUP}"}, "messages[1].content",
     "markup"),
    ({"role": "assistant", "content": None}, "messages[1].content", "is not enough"),
    ({"role": "assistant", "reasoning": ["Hm"]}, "messages[1].reasoning", "is not a string"),
    ({"role": "assistant", "reasoning": "a", "thinking": "b"}, "messages[1].thinking",
     "'b' differs from messages[1].reasoning; give one"),
    ({"role": "user", "content": "", "audio": {}}, "messages[1].audio", "has no place"),
    ({**calling(), "role": "user"}, "messages[1].tool_calls", "of role user; leave it out"),
    ({**TOOL, "thinking": "Hm"}, "messages[1].thinking", "of role tool"),
    ({"role": "assistant", "audio": {"id": "a"}}, "messages[1].audio", "transcript"),
    ({"role": "assistant", "content": "x", "reasoning_details": [{"text": "t"}]},
     "messages[1].reasoning_details", "give its text as reasoning"),
    ({"role": "assistant", "content": "x", "thinking_blocks": [{"thinking": "t"}]},
     "messages[1].thinking_blocks", "give its text as reasoning"),
    ({"role": "assistant", "function_call": {}}, "messages[1].function_call", "in tool_calls"),
    ({"role": "assistant", "tool_calls": "x"}, "messages[1].tool_calls", "is not a list"),
    (calling(""), "messages[1].tool_calls[0].function.name", "'' is empty; give a name"),
    (calling("functions."), "messages[1].tool_calls[0].function.name", "does not name a function"),
    (calling(None), "messages[1].tool_calls[0].function.name", "None is not a string"),
    (calling("get tide"), "messages[1].tool_calls[0].function.name", "is not a name"),
    (calling("tide<|channel|>commentary"), "messages[1].tool_calls[0].function.name",
     "is not a name"),
    (calling(arguments=None), "messages[1].tool_calls[0].function.arguments", "is neither"),
    (calling(arguments=[]), "messages[1].tool_calls[0].function.arguments", "is neither"),
    (calling(arguments={"a": {1}}), "messages[1].tool_calls[0].function.arguments", "as JSON"),
    (calling(arguments={"a": float("nan")}), "messages[1].tool_calls[0].function.arguments",
     "cannot be written"),
    (calling(type="custom"), "messages[1].tool_calls[0].type", "a call of a function"),
    (calling(id=7), "messages[1].tool_calls[0].id", "7 is not a string"),
    (TOOL, "messages[1].tool_call_id", "None is missing; give the id of the call, or a name"),
    ({**TOOL, "name": ""}, "messages[1].name", "is empty"),
    ({**TOOL, "tool_call_id": 7}, "messages[1].tool_call_id", "is not a string"),
    ({**TOOL, "tool_call_id": "c9"}, "messages[1].tool_call_id",
     "'c9' is not the id of an earlier call; put the call before its result, or leave out the "
     "result (ids so far: none)"),
    ({**TOOL, "content": None, "name": "f"}, "messages[1].content", "is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "field", "says"), CHAT_ERRORS)
def test_a_chat_message_without_a_place_in_harmony_is_refused(message, field, says):
    with pytest.raises(ConversationError) as caught:
        conversation_from_chat([QUESTION, message])
    assert (caught.value.index, caught.value.field) == (1, field)
    assert says in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize("name", ["functions.", "functions.functions.", ".", "function."])
def test_a_name_that_names_nothing_is_refused(name):
    with pytest.raises(ConversationError, match="does not name a function"):
        chat(calling(name, id="c1"))


def test_a_result_whose_name_is_not_that_of_its_call_is_refused():
    tool = {**TOOL, "tool_call_id": "c1", "name": "moon"}
    with pytest.raises(ConversationError, match=r"'moon' did not get the call, functions\.tide"):
        chat(calling(id="c1"), tool)


def test_a_second_result_of_a_call_is_refused():
    tool = {**TOOL, "tool_call_id": "c1"}
    with pytest.raises(ConversationError, match=r"messages\[2\].* is answered already"):
        chat(calling(id="c1"), tool, tool)


def test_one_id_for_two_open_calls_is_refused():
    with pytest.raises(ConversationError, match=r"messages\[1\].* of an earlier call too"):
        chat(calling("tide", id="c1"), calling("moon", id="c1"))


def test_arguments_that_nest_without_end_are_refused():
    arguments = {}
    arguments["self"] = arguments
    with pytest.raises(ConversationError, match="cannot be written as JSON"):
        chat(calling(arguments=arguments))


def test_the_error_for_an_unknown_id_lists_those_that_are_known():
    with pytest.raises(ConversationError, match=r"ids so far: 'c1', 'c2'"):
        chat(calling(id="c1"), calling(id="c2"), {**TOOL, "tool_call_id": "c3"})


def test_an_error_is_a_value_of_both_families():
    with pytest.raises(ConversationError) as caught:
        chat({"role": "user", "content": [IMAGE]})
    error = caught.value
    assert isinstance(error, HarmonyError) and isinstance(error, ValueError)  # noqa: PT018
    assert pickle.loads(pickle.dumps(error)) == error
    assert hash(pickle.loads(pickle.dumps(error))) == hash(error)


def test_a_long_value_is_whole_in_the_error_and_short_in_its_sentence():
    role = "x" * 1000
    with pytest.raises(ConversationError) as caught:
        chat({"role": role, "content": ""})
    assert caught.value.value == role
    assert len(str(caught.value)) < 200


def test_a_hand_made_turn_comes_back_as_the_parser_read_it():
    completion = parse(
        tokens_of(
            "<|channel|>analysis<|message|>Ask.<|end|>"
            "<|start|>assistant<|channel|>commentary<|message|>I'll look.<|end|>"
            "<|start|>assistant<|channel|>commentary to=functions.tide <|constrain|>json"
            '<|message|>{"at": "Oban"}<|call|>'
        )
    )
    message = {"reasoning": "Ask.", "content": "I'll look.", **calling(arguments='{"at": "Oban"}')}
    back = conversation_from_chat([QUESTION, message])
    assert back.messages[2:] == list(completion.messages)


@examples(100)
@given(turns(), st.sampled_from(["reasoning", "reasoning_content", "both"]))
def test_what_a_chat_server_says_comes_back_as_the_parser_read_it(messages, key):
    completion = sampled(messages)
    whole = chat_completion(completion, model="m", reasoning_key=key)
    back = conversation_from_chat([QUESTION, whole["choices"][0]["message"]])
    assert back.messages[2:] == messages


@examples(50)
@given(turns(), st.randoms())
def test_results_given_in_any_order_are_their_calls(messages, random):
    message = chat_completion(sampled(messages), model="m")["choices"][0]["message"]
    calls = message.get("tool_calls", [])
    recipients = {made["id"]: each.recipient for made, each in zip(
        calls, [each for each in messages if each.recipient], strict=True)}  # fmt: skip
    results = [
        {"role": "tool", "tool_call_id": made["id"], "content": made["id"]} for made in calls
    ]
    random.shuffle(results)
    found = chat(message, *results)[len(messages) :]
    assert found == [result(recipients[each["content"]], each["content"]) for each in results]


# Options of the request, the path of the field at fault, and what the sentence says.
SCHEMA = {"type": "json_schema", "json_schema": {"name": "list"}}
CHAT_OPTION_ERRORS = [
    ({"tools": [{"type": "custom"}]}, "tools[0].type", "declare it as a function"),
    ({"tools": [FUNCTION, FUNCTION]}, "tools[1].function.name", "'tide' is declared twice"),
    ({"tools": [{"type": "function", "function": {"name": ""}}]}, "tools[0].function.name",
     "is empty"),
    ({"tools": [{"type": "function", "function": {"name": "f", "parameters": "{}"}}]},
     "tools[0].function.parameters", "is not a JSON schema"),
    ({"tools": {}}, "tools", "is not a list"),
    ({"response_format": {"type": "grammar"}}, "response_format.type", "to the engine"),
    ({"response_format": SCHEMA}, "response_format.json_schema.schema", "is not a JSON schema"),
    ({"reasoning_effort": "none"}, "reasoning_effort", "gpt-oss always reasons; give low"),
    ({"reasoning_effort": "max"}, "reasoning_effort", "'max' is not one of minimal, low"),
    ({"reasoning_effort": 3}, "reasoning_effort", "is not a string"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "field", "says"), CHAT_OPTION_ERRORS)
def test_an_option_that_the_model_does_not_know_is_refused(options, field, says):
    with pytest.raises(ConversationError) as caught:
        conversation_from_chat([QUESTION], **options)
    assert (caught.value.index, caught.value.field) == (None, field)
    assert says in str(caught.value)
