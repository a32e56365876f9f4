"""What the input items of the Responses API become, or an error says why not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests_read import (
    CASES,
    MARKUP,
    QUESTION,
    answer,
    brief_of,
    call,
    items,
    opening,
    result,
    sampled,
    turns,
    user,
)
from strategies import examples

from harmony_stream.adapters.conversations import (
    ConversationError,
    conversation_from_responses,
)
from harmony_stream.adapters.responses import response

ITEM_CASES = [case for case in CASES if "responses_items" in case["conversation"]]


@pytest.mark.parametrize("case", ITEM_CASES, ids=lambda case: case["id"])
def test_input_items_that_servers_read_in_many_ways_are_read_in_one(case):
    found = items(*case["conversation"]["responses_items"])
    assert found == [brief_of(each) for each in case["expected"]["messages"]]


def test_the_apis_names_of_built_in_tools_add_them_to_the_system_message():
    tools = [{"type": "web_search_preview"}, {"type": "code_interpreter"}]
    system, developer = opening(conversation_from_responses, "q", tools=tools)
    assert (list(system.tools), developer) == (["browser", "python"], None)


def test_functions_are_declared_in_the_developer_message():
    tools = [{"type": "function", "name": "tide"}, {"type": "code_interpreter"}]
    system, developer = opening(conversation_from_responses, "q", tools=tools)
    assert [*system.tools] == ["python"]
    assert [tool.name for tool in developer.tools["functions"].tools] == ["tide"]


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


@examples(100)
@given(st.lists(turns(), max_size=3))
def test_what_a_responses_server_says_comes_back_as_the_parser_read_it(each_turn):
    messages = [message for turn in each_turn for message in turn]
    output = response(sampled(messages), model="m")["output"]
    back = conversation_from_responses([{"role": "user", "content": "q"}, *output])
    assert back.messages[2:] == messages


# Options of the request, the path of the field at fault, and what the sentence says.
ITEM_OPTION_ERRORS = [
    ({"tools": [{"type": "mcp"}]}, "tools[0].type", "is not one of function, web_search"),
    ({"instructions": ["a"]}, "instructions", "is not a string"),
    ({"text": {"verbosity": "low"}}, "text.verbosity", "put it in the instructions"),
    ({"text": {"format": {"type": "json_schema", "name": "a b", "schema": {}}}},
     "text.format.name", "is not a name"),
    ({"reasoning": {"effort": "none"}}, "reasoning.effort", "is not available"),
    ({"reasoning": "low"}, "reasoning", "is not an object"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "field", "says"), ITEM_OPTION_ERRORS)
def test_an_option_that_the_model_does_not_know_is_refused(options, field, says):
    with pytest.raises(ConversationError) as caught:
        conversation_from_responses([QUESTION], **options)
    assert (caught.value.index, caught.value.field) == (None, field)
    assert says in str(caught.value)


@pytest.mark.parametrize("verbosity", [None, "medium"])
def test_the_options_of_the_opening_are_where_the_responses_api_has_them(verbosity):
    schema = {"type": "json_schema", "name": "list", "schema": {"type": "array"}}
    system, developer = opening(
        conversation_from_responses,
        "q",
        instructions="Be brief.",
        reasoning={"effort": "high"},
        text={"verbosity": verbosity, "format": schema},
    )
    assert system.reasoning_effort.value == "High"
    assert developer.instructions == "Be brief."
    assert developer.response_formats["list"].schema == {"type": "array"}


def test_without_a_format_there_is_no_developer_message():
    assert opening(conversation_from_responses, "q", text={"verbosity": "medium"})[1] is None
    assert opening(conversation_from_responses, "q", text=None)[1] is None
