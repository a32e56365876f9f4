"""What API clients send becomes the messages that a harmony prompt needs, or an error says why not.

`cases/history.json` holds inputs on which servers disagree; where our answer is another than the
one noted there, `OTHERWISE` says so.
"""

import copy
import doctest
import json
import pathlib
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, tokens_of

from harmony_stream import HarmonyError, parse
from harmony_stream.adapters.chat_completions import chat_completion
from harmony_stream.adapters.conversations import (
    ConversationError,
    conversation_from_chat,
    conversation_from_responses,
)
from harmony_stream.adapters.responses import response
from harmony_stream.rendering.render import Renderer
from harmony_stream.values.messages import Author, Message, Role

ROOT = pathlib.Path(__file__).parents[2]
CASES = json.loads((ROOT / "tests" / "cases" / "history.json").read_text("utf-8"))

QUESTION = {"role": "user", "content": "q"}
TIDE = {
    "name": "tide",
    "description": "Height of the tide.",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
}
LIST = {"type": "array", "items": {"type": "string"}}


# -- Short names --


def calling(name="tide", arguments="{}", **fields):
    """An assistant's chat message with one call."""
    call = {"type": "function", "function": {"name": name, "arguments": arguments}, **fields}
    return {"role": "assistant", "tool_calls": [call]}


def brief(message):
    return (
        message.author.name or message.author.role.value,
        message.recipient,
        message.channel,
        message.content_type and message.content_type.removeprefix("<|constrain|>"),
        "".join(part.text for part in message.content),
    )


def chat(*messages, **options):
    """Short forms of the messages behind the system message."""
    return [brief(each) for each in conversation_from_chat(messages, **options).messages[1:]]


def items(*given, **options):
    return [brief(each) for each in conversation_from_responses(given, **options).messages[1:]]


def opening(read, *given, **options):
    """Contents of the system and the developer message (None if there is none)."""
    messages = read(*given, **options).messages
    has_developer = len(messages) > 1 and messages[1].author.role is Role.DEVELOPER
    return messages[0].content[0], messages[1].content[0] if has_developer else None


def answer(text, channel="final"):
    return ("assistant", None, channel, None, text)


def call(recipient, text="{}", channel="commentary", content_type="json"):
    return ("assistant", recipient, channel, content_type, text)


def result(name, text, channel="commentary"):
    return (name, "assistant", channel, None, text)


def user(text="q"):
    return ("user", None, None, None, text)


# -- The cases --

OTHERWISE = {
    "hist-003": "an empty function name is refused",
    "hist-011": "an image is refused, where vLLM leaves it out",
}
CHAT_CASES = [case for case in CASES if "openai_messages" in case["conversation"]]
ITEM_CASES = [case for case in CASES if "responses_items" in case["conversation"]]


@pytest.mark.parametrize("case", CHAT_CASES, ids=lambda case: case["id"])
def test_chat_messages_that_servers_read_in_many_ways_are_read_in_one(case):
    messages = case["conversation"]["openai_messages"]
    if case["expected"].get("error") or case["id"] in OTHERWISE:
        with pytest.raises(ConversationError):
            chat(*messages)
    else:
        assert chat(*messages) == [brief_of(each) for each in case["expected"]["messages"]]


@pytest.mark.parametrize("case", ITEM_CASES, ids=lambda case: case["id"])
def test_input_items_that_servers_read_in_many_ways_are_read_in_one(case):
    found = items(*case["conversation"]["responses_items"])
    assert found == [brief_of(each) for each in case["expected"]["messages"]]


def brief_of(wanted):
    fields = (wanted["recipient"], wanted["channel"], wanted["content_type"], wanted["content"])
    return (wanted["name"] or wanted["role"], *fields)


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


ARGUMENTS = {
    "text is given on as it is": ('{ "at":"Oban" }', '{ "at":"Oban" }'),
    "text that is a JSON string stays one": ('"{}"', '"{}"'),
    "text that is no JSON stays": ("ls -R\n", "ls -R\n"),
    "empty text stays empty": ("", ""),
    "an object is written once": ({"at": "Łódź", "n": [1, None]}, '{"at":"Łódź","n":[1,null]}'),
    "JSON in an object is text there": ({"raw": '{"a":1}'}, r'{"raw":"{\"a\":1}"}'),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_are_serialised_once_and_never_twice(name):
    arguments, wanted = ARGUMENTS[name]
    assert chat(calling(arguments=arguments)) == [call("functions.tide", wanted)]
    item = {"type": "function_call", "call_id": "c", "name": "tide", "arguments": arguments}
    assert items(item) == [call("functions.tide", wanted)]


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


def test_both_apis_describe_the_same_opening():
    schema = {"name": "list", "schema": LIST}
    by_chat = conversation_from_chat(
        [{"role": "developer", "content": "Be brief."}, QUESTION],
        tools=[{"type": "function", "function": TIDE}],
        response_format={"type": "json_schema", "json_schema": schema},
        reasoning_effort="low",
        date="2025-06-28",
    )
    by_items = conversation_from_responses(
        "q",
        "Be brief.",
        tools=[{"type": "function", **TIDE}],
        text={"format": {"type": "json_schema", **schema}, "verbosity": "medium"},
        reasoning={"effort": "low"},
        date="2025-06-28",
    )
    assert by_chat == by_items


def test_instructions_of_both_roles_are_joined_in_their_order():
    messages = [
        {"role": "developer", "content": "A"},
        {"role": "system", "content": [{"type": "text", "text": "B"}]},
        {"role": "system", "content": ""},
        {"role": "developer", "content": "C"},
    ]
    for read in (conversation_from_chat, conversation_from_responses):
        assert opening(read, [*messages, QUESTION])[1].instructions == "A\n\nB\n\nC"
    found = opening(conversation_from_responses, messages, instructions="First")[1]
    assert found.instructions == "First\n\nA\n\nB\n\nC"


def test_later_instructions_stay_where_they_hold_from():
    conversation = conversation_from_chat(
        [QUESTION, {"role": "system", "content": "D"}, {"role": "developer", "content": "E"}],
        tools=[{"type": "function", "function": TIDE}],
    )
    roles = [message.author.role.value for message in conversation]
    assert roles == ["system", "developer", "user", "developer"]
    assert conversation.messages[1].content[0].instructions is None
    assert conversation.messages[3].content[0].instructions == "D\n\nE"


EFFORTS = {
    None: "Medium",
    "minimal": "Low",
    "low": "Low",
    "medium": "Medium",
    "HIGH": "High",
    "xhigh": "High",
}


@pytest.mark.parametrize("effort", EFFORTS)
def test_an_effort_is_the_nearest_that_the_model_knows(effort):
    for read, option in (
        (conversation_from_chat, {"reasoning_effort": effort}),
        (conversation_from_responses, {"reasoning": {"effort": effort}}),
    ):
        assert opening(read, [QUESTION], **option)[0].reasoning_effort.value == EFFORTS[effort]


@pytest.mark.parametrize("kind", [None, "text", "json_object"])
def test_a_format_without_a_schema_is_told_as_far_as_it_says_anything(kind):
    form = None if kind is None else {"type": kind}
    by_chat = opening(conversation_from_chat, [QUESTION], response_format=form)[1]
    by_items = opening(conversation_from_responses, "q", text={"format": form})[1]
    assert by_chat == by_items
    if kind == "json_object":
        assert by_chat.response_formats["json_object"].schema == {"type": "object"}
    else:
        assert by_chat is None


def test_the_apis_names_of_built_in_tools_add_them_to_the_system_message():
    tools = [{"type": "web_search_preview"}, {"type": "code_interpreter"}]
    system, developer = opening(conversation_from_responses, "q", tools=tools)
    assert (list(system.tools), developer) == (["browser", "python"], None)


def test_a_function_may_lack_description_and_parameters():
    developer = opening(conversation_from_chat, [], tools=[{"type": "function", "function": {
        "name": "now"}}])[1]  # fmt: skip
    tool = developer.tools["functions"].tools[0]
    assert (tool.description, tool.parameters) == ("", None)


# -- Input items --

ITEMS = {
    "an assistant's message by its phase": (
        [
            {"role": "assistant", "content": "I'll look.", "phase": "commentary"},
            {"role": "assistant", "content": "Low.", "phase": "final_answer"},
        ],
        [answer("I'll look.", "commentary"), answer("Low.")],
    ),
    "a user's parts": (
        [{"role": "user", "content": [{"type": "input_text", "text": "q"}]}],
        [user()],
    ),
    "a summary where there is no content": (
        [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]}],
        [answer("Hm", "analysis")],
    ),
    "content before a summary, and a copy that only its maker can read": (
        [
            {
                "type": "reasoning",
                "content": [{"type": "reasoning_text", "text": "Hm"}],
                "summary": [{"type": "summary_text", "text": "short"}],
                "encrypted_content": "Hm",
            }
        ],
        [answer("Hm", "analysis")],
    ),
    "output as parts": (
        [
            {"type": "function_call", "call_id": "c", "name": "tide", "arguments": "{}"},
            {
                "type": "function_call_output",
                "call_id": "c",
                "output": [
                    {"type": "input_text", "text": "2.4"},
                    {"type": "input_text", "text": " m"},
                ],
            },
        ],
        [call("functions.tide"), result("functions.tide", "2.4 m")],
    ),
    "a custom tool, which takes bare text": (
        [
            {"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls"},
            {"type": "custom_tool_call_output", "call_id": "c", "output": "a.txt"},
        ],
        [call("functions.sh", "ls", content_type=None), result("functions.sh", "a.txt")],
    ),
    "python without output": (
        [{"type": "code_interpreter_call", "code": "1", "outputs": None}],
        [call("python", "1", "analysis", "code")],
    ),
    "python with output": (
        [
            {
                "type": "code_interpreter_call",
                "code": "print(1)",
                "outputs": [{"type": "logs", "logs": "1\n"}, {"type": "logs", "logs": "2\n"}],
            }
        ],
        [call("python", "print(1)", "analysis", "code"), result("python", "1\n2\n", "analysis")],
    ),
    "a search": (
        [
            {
                "type": "web_search_call",
                "action": {"type": "search", "query": "tides", "queries": ["tides"]},
            }
        ],
        [call("browser.search", '{"query":"tides"}', "analysis", "code")],
    ),
    "a page by its address": (
        [{"type": "web_search_call", "action": {"type": "open_page", "url": "https://a.example"}}],
        [call("browser.open", '{"id":"https://a.example"}', "analysis", "code")],
    ),
    "a page whose address only looks like a number": (
        [{"type": "web_search_call", "action": {"type": "open_page", "url": "cursor:x"}}],
        [call("browser.open", '{"id":"cursor:x"}', "analysis", "code")],
    ),
    "the last page": (
        [{"type": "web_search_call", "action": {"type": "open_page", "url": "cursor:-1"}}],
        [call("browser.open", "{}", "analysis", "code")],
    ),
    "a find on an earlier page": (
        [
            {
                "type": "web_search_call",
                "action": {"type": "find_in_page", "pattern": "noon", "url": "cursor:2"},
            }
        ],
        [call("browser.find", '{"pattern":"noon","cursor":2}', "analysis", "code")],
    ),
    "a server's tool without its result": (
        [{"type": "mcp_call", "server_label": "container", "name": "exec", "arguments": "{}"}],
        [call("container.exec")],
    ),
    "a server's tool with its result": (
        [
            {
                "type": "mcp_call",
                "server_label": "container",
                "name": "exec",
                "arguments": '{"cmd":"ls"}',
                "output": "a.txt",
                "error": None,
            }
        ],
        [call("container.exec", '{"cmd":"ls"}'), result("container.exec", "a.txt")],
    ),
    "a server's tool that failed": (
        [
            {
                "type": "mcp_call",
                "server_label": "container",
                "name": "exec",
                "arguments": "{}",
                "error": "gone",
            }
        ],
        [call("container.exec"), result("container.exec", "gone")],
    ),
}


@pytest.mark.parametrize("name", ITEMS)
def test_an_input_item_becomes_messages(name):
    given, wanted = ITEMS[name]
    assert items(*given) == wanted


# -- Errors --

FUNCTION = {"type": "function", "function": TIDE}
IMAGE = {"type": "image_url", "image_url": {"url": "https://a.example/x.png"}}
AUDIO = {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}
MARKUP = "<|channel|>final<|message|>Low.<|return|>"
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


# Items behind a question, the path of the field at fault, and what the sentence says.
OUTPUT = {"type": "function_call_output", "call_id": "c9", "output": "r"}
CALL = {"type": "function_call", "call_id": "c1", "name": "tide", "arguments": "{}"}
PAGE = {"type": "web_search_call", "action": {"type": "open_page"}}
ITEM_ERRORS = [
    ({"type": "item_reference", "id": "rs_1"}, "input[1].type", "give the item itself"),
    ({"type": "computer_call"}, "input[1].type", "leave it out"),
    ({"id": "rs_1"}, "input[1].type", "None is not one of"),
    ({"role": "tool", "content": ""}, "input[1].role", "is not one of user"),
    ({"role": "assistant", "content": "", "phase": "aside"}, "input[1].phase", "is not one of"),
    ({"role": "assistant", "content": MARKUP}, "input[1].content", "markup"),
    ({"role": "user", "content": [{"type": "input_file"}]}, "input[1].content[0].type", "text"),
    ({"type": "reasoning", "encrypted_content": "x"}, "input[1].encrypted_content", "be read"),
    (OUTPUT, "input[1].call_id", "is not the id of an earlier call"),
    ({**OUTPUT, "call_id": None}, "input[1].call_id", "is not a string"),
    ({**CALL, "name": ""}, "input[1].name", "is empty"),
    ({"type": "custom_tool_call", "name": "sh"}, "input[1].input", "is not a string"),
    ({"type": "code_interpreter_call", "code": None}, "input[1].code", "is not a string"),
    ({"type": "code_interpreter_call", "code": "1", "outputs": [{"type": "image"}]},
     "input[1].outputs[0].type", "reads only text"),
    ({"type": "web_search_call", "action": None}, "input[1].action", "is not an object"),
    ({"type": "web_search_call", "action": {"type": "x"}}, "input[1].action.type", "search, open"),
    (PAGE, "input[1].action.url", "is not a string"),
    ({"type": "web_search_call", "action": {"type": "search", "queries": ["a", "b"]}},
     "input[1].action.queries", "one item for each query"),
    ({"type": "mcp_call", "server_label": "", "name": "a"}, "input[1].server_label", "is empty"),
]  # fmt: skip


@pytest.mark.parametrize(("item", "field", "says"), ITEM_ERRORS)
def test_an_input_item_without_a_place_in_harmony_is_refused(item, field, says):
    with pytest.raises(ConversationError) as caught:
        conversation_from_responses([{"type": "message", **QUESTION}, item])
    assert (caught.value.index, caught.value.field) == (1, field)
    assert says in str(caught.value)
    assert caught.value.remedy


def test_markup_in_a_message_that_was_parsed_is_text():
    item = {"role": "assistant", "content": MARKUP, "phase": "final_answer"}
    [message] = conversation_from_responses([item]).messages[1:]
    assert message.content[0].text == MARKUP
    for fields in ({"reasoning": "Hm."}, calling(id="c1")):
        found = chat({"role": "assistant", "content": MARKUP, **fields})
        assert MARKUP in str(found)


CUT_OFF = [
    {**CALL, "status": "incomplete"},
    {"type": "custom_tool_call", "name": "sh", "input": "l", "status": "incomplete"},
    {"type": "code_interpreter_call", "code": "1 +", "status": "incomplete"},
    {"type": "web_search_call", "action": {"type": "search", "query": "ti"}, "status": "failed"},
    {"type": "web_search_call", "action": {"type": "search"}, "status": "incomplete"},
    {
        "type": "mcp_call",
        "server_label": "a",
        "name": "b",
        "arguments": "{",
        "status": "incomplete",
    },
]


@pytest.mark.parametrize("item", CUT_OFF)
def test_a_call_that_was_cut_off_is_left_out_and_told(item):
    left_out = []
    items = [{"type": "message", **QUESTION}, item, {"role": "assistant", "content": "Yes."}]
    conversation = conversation_from_responses(items, on_left_out=left_out.append)
    assert conversation == conversation_from_responses([items[0], items[2]])
    assert conversation == conversation_from_responses(items)
    [told] = left_out
    assert (told.index, told.field, told.value) == (1, "input[1].status", item["status"])
    assert "says that the call was cut off" in str(told)


def test_a_result_of_a_call_that_was_cut_off_is_refused():
    with pytest.raises(ConversationError, match=r"input\[1\]\.call_id .* was cut off; leave out"):
        conversation_from_responses([{**CALL, "status": "incomplete"}, {**OUTPUT, "call_id": "c1"}])


@pytest.mark.parametrize("name", ["functions.", "functions.functions.", ".", "function."])
def test_a_name_that_names_nothing_is_refused(name):
    with pytest.raises(ConversationError, match="does not name a function"):
        chat(calling(name, id="c1"))


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
ITEM_OPTION_ERRORS = [
    ({"tools": [{"type": "mcp"}]}, "tools[0].type", "is not one of function, web_search"),
    ({"instructions": ["a"]}, "instructions", "is not a string"),
    ({"text": {"verbosity": "low"}}, "text.verbosity", "put it in the instructions"),
    ({"text": {"format": {"type": "json_schema", "name": "a b", "schema": {}}}},
     "text.format.name", "is not a name"),
    ({"reasoning": {"effort": "none"}}, "reasoning.effort", "is not available"),
    ({"reasoning": "low"}, "reasoning", "is not an object"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("read", "options", "field", "says"),
    [(conversation_from_chat, *row) for row in CHAT_OPTION_ERRORS]
    + [(conversation_from_responses, *row) for row in ITEM_OPTION_ERRORS],
)
def test_an_option_that_the_model_does_not_know_is_refused(read, options, field, says):
    with pytest.raises(ConversationError) as caught:
        read([QUESTION], **options)
    assert (caught.value.index, caught.value.field) == (None, field)
    assert says in str(caught.value)


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


def test_the_page_about_conversations_says_what_the_code_does():
    page = ROOT / "docs" / "conversations.md"
    found = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert (found.failed, found.attempted > 0) == (0, True)


# -- Laws --

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
SOME_WORDS = WORDS.filter(bool)
TOOLS = st.sampled_from(["functions.tide", "functions.moon_phase", "container.exec"])


def assistant(text, channel, recipient=None, content_type=None):
    author = Author(role=Role.ASSISTANT)
    return Message(
        author=author, content=text, channel=channel, recipient=recipient, content_type=content_type
    )


@st.composite
def turns(draw):
    """What the guide lets the model say in one go: thinking, then an answer or calls."""
    messages = [assistant(text, "analysis") for text in draw(st.lists(SOME_WORDS, max_size=1))]
    recipients = draw(st.lists(TOOLS, max_size=3))
    if not recipients:
        # Beside thinking an empty answer is not told from one that was cut off.
        return [*messages, assistant(draw(SOME_WORDS if messages else WORDS), "final")]
    preambles = draw(st.lists(SOME_WORDS, max_size=1))
    messages += [assistant(text, "commentary") for text in preambles]
    # A call without arguments comes back with `{}`, which clients are given.
    arguments = WORDS.filter(str.strip)
    calls = [assistant(draw(arguments), "commentary", to, "<|constrain|>json") for to in recipients]
    return messages + calls


def sampled(messages):
    """The completion that says this, as the parser reads it from tokens."""
    renderer = Renderer(profile="guide")
    tokens = [token for message in messages for token in renderer.render(message)]
    completion = parse(tokens, None)
    assert list(completion.messages) == messages
    return completion


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


@examples(100)
@given(st.lists(turns(), max_size=3))
def test_what_a_responses_server_says_comes_back_as_the_parser_read_it(each_turn):
    messages = [message for turn in each_turn for message in turn]
    output = response(sampled(messages), model="m")["output"]
    back = conversation_from_responses([{"role": "user", "content": "q"}, *output])
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


SPOKEN = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "developer"]), "content": SOME_WORDS}
)


@examples(100)
@given(st.lists(SPOKEN))
def test_no_text_vanishes_and_the_request_stays_as_it_was(messages):
    before = copy.deepcopy(messages)
    conversation = conversation_from_chat(messages)
    assert messages == before
    assert conversation == conversation_from_responses(messages)
    texts = [
        part.instructions if message.author.role is Role.DEVELOPER else part.text
        for message in conversation.messages[1:]
        for part in message.content
    ]
    assert "".join(texts).replace("\n\n", "") == "".join(
        message["content"] for message in messages
    ).replace("\n\n", "")
