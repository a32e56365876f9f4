"""What conversations of both APIs share: texts, calls, and the opening. Whole requests are read in
tests/adapters/test_conversations.py."""

import pytest

from harmony_stream.adapters.conversations import common
from harmony_stream.adapters.conversations.common import Calls
from harmony_stream.adapters.conversations.fields import ConversationError, Field
from harmony_stream.values.messages import DeveloperContent, ReasoningEffort, Role, SystemContent


def field(value, path="x"):
    return Field(value, path)


def refused(sentence):
    return pytest.raises(ConversationError, match=sentence)


# -- Texts --

PART = {"type": "text", "text": "Low "}
TEXTS = [
    ("Low tide", "Low tide"),
    ("", ""),
    ([], ""),
    ([PART, {"type": "refusal", "refusal": "No."}], "Low No."),
    ([{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b"}], "ab"),
]


@pytest.mark.parametrize(("content", "text"), TEXTS)
def test_content_is_a_text_or_parts_of_text(content, text):
    assert common.content_text(field(content)) == common.answer_text(field(content)) == text


NO_TEXTS = [
    (None, 'x None is missing; give a string, which may be ""'),
    ([{"type": "image_url"}], r"x\[0\]\.type 'image_url' is not one of text, .*only text"),
    ([{"type": "text"}], r"x\[0\]\.text None is not a string"),
    (5, "x 5 is not a list"),
]


@pytest.mark.parametrize(("content", "sentence"), NO_TEXTS)
def test_content_of_any_other_kind_is_refused(content, sentence):
    with refused(sentence):
        common.content_text(field(content))


@pytest.mark.parametrize("start", ["", " ", "<|start|>assistant"])
def test_an_answer_is_no_completion_that_was_not_parsed(start):
    text = f"{start}<|channel|>final<|message|>Hi"
    assert common.content_text(field(text)) == text
    with refused("is a completion in harmony's own markup; parse it first"):
        common.answer_text(field(text))
    assert common.answer_text(field(f"It writes {text}")) == f"It writes {text}"


def test_arguments_are_written_as_json_once_and_without_spaces():
    assert common.json_text(field('{ "a": 1 }')) == '{ "a": 1 }'
    assert (
        common.json_text(field({"city": "Łódź", "n": [1, None]})) == '{"city":"Łódź","n":[1,null]}'
    )


@pytest.mark.parametrize("value", [None, 5, [1]])
def test_arguments_are_text_or_an_object(value):
    with refused("is neither JSON text nor an object"):
        common.json_text(field(value))


@pytest.mark.parametrize("value", [{"a": {1, 2}}, {"a": float("nan")}])
def test_an_object_that_json_cannot_say_is_refused(value):
    with refused("cannot be written as JSON; give it as JSON text"):
        common.json_text(field(value))


# -- Calls --


def test_a_name_gets_the_namespace_of_functions_unless_it_has_one_or_is_declared():
    calls = Calls(["web.find"])
    names = ["tide", "browser.search", "web.find", ".tide"]
    assert [calls.recipient(field(name)) for name in names] == [
        "functions.tide",
        "browser.search",
        "functions.web.find",
        "functions..tide",
    ]


def test_a_name_that_names_nothing_is_refused():
    with refused("does not name a function; give the function's name"):
        Calls([]).recipient(field("functions."))


def test_each_call_is_answered_once_by_its_id_and_the_id_may_come_again():
    calls = Calls([])
    for recipient in ("functions.f", "functions.g"):
        calls.open(field("c1"), recipient)
        assert calls.answer(field("c1")) == recipient
        with refused("is answered already; give one result for each call"):
            calls.answer(field("c1"))


def test_a_call_without_an_id_waits_for_no_result_by_id():
    calls = Calls([])
    calls.open(field(None), "functions.f")
    calls.open(field(""), "functions.g")
    with refused(r"is not the id of an earlier call; .*ids so far: none"):
        calls.answer(field("c1"))


def test_an_id_is_that_of_one_open_call():
    calls = Calls([])
    calls.open(field("c1"), "functions.f")
    with refused("is the id of an earlier call too"):
        calls.open(field("c1"), "functions.g")
    with refused("ids so far: 'c1'"):
        calls.answer(field("c2"))


def test_a_call_that_was_cut_off_has_no_result():
    calls = Calls([])
    calls.leave_out(field("c1"))
    with refused("is the id of a call that was cut off; leave out the result"):
        calls.answer(field("c1"))


# -- The opening --

EFFORTS = {None: "Medium", "minimal": "Low", "LOW": "Low", "medium": "Medium", "xhigh": "High"}


@pytest.mark.parametrize(("given", "effort"), EFFORTS.items())
def test_an_effort_is_the_nearest_that_the_model_knows(given, effort):
    assert common.effort_of(field(given)) is ReasoningEffort(effort)


@pytest.mark.parametrize(
    ("given", "sentence"), [("none", "gpt-oss always reasons"), ("max", "'max' is not one of")]
)
def test_an_effort_that_it_cannot_make_is_refused(given, sentence):
    with refused(sentence):
        common.effort_of(field(given))


def test_functions_may_lack_description_and_parameters():
    schema = {"type": "object"}
    given = [{"name": "f"}, {"name": "g", "description": "G.", "parameters": schema}]
    found = common.functions_of(field(given).each())
    assert [(each.name, each.description, each.parameters) for each in found] == [
        ("f", "", None),
        ("g", "G.", schema),
    ]


WRONG_FUNCTIONS = [
    ([{"name": "f"}, {"name": "f"}], r"x\[1\]\.name 'f' is declared twice"),
    ([{"name": "f", "parameters": "{}"}], r"x\[0\]\.parameters '\{\}' is not a JSON schema"),
]


@pytest.mark.parametrize(("given", "sentence"), WRONG_FUNCTIONS)
def test_a_function_has_a_name_of_its_own_and_a_schema(given, sentence):
    with refused(sentence):
        common.functions_of(field(given).each())


SCHEMA = {"name": "list", "schema": {"type": "array"}, "description": "A list."}
FORMATS = [
    (None, None, []),
    ({"type": "text"}, None, []),
    ({"type": "json_object"}, None, [("json_object", {"type": "object"}, None)]),
    ({"type": "json_schema", **SCHEMA}, None, [("list", {"type": "array"}, "A list.")]),
    (
        {"type": "json_schema", "json_schema": {**SCHEMA, "description": ""}},
        "json_schema",
        [("list", {"type": "array"}, None)],
    ),
]


@pytest.mark.parametrize(("form", "holder", "formats"), FORMATS)
def test_the_format_of_the_answer_is_in_the_developer_message(form, holder, formats):
    content = common.developer_of([], field(form), holder)
    found = (content.response_formats or {}).items()
    assert [(name, each.schema, each.description) for name, each in found] == formats


def test_functions_and_format_stand_together():
    functions = common.functions_of(field([{"name": "f"}]).each())
    content = common.developer_of(functions, field({"type": "json_object"}), None)
    assert [tool.name for tool in content.tools["functions"].tools] == ["f"]
    assert [*content.response_formats] == ["json_object"]


# -- Putting it together --


def brief(conversation):
    """Role, and text or instructions, of each message behind the system message."""
    return [
        (each.author.role.value, getattr(each.content[0], "instructions", None) or "".join(
            getattr(part, "text", "") for part in each.content))
        for each in conversation.messages[1:]
    ]  # fmt: skip


def assembled(*messages, developer=None):
    return brief(common.assembled(SystemContent(), developer or DeveloperContent(), messages))


HELLO = common.said(Role.USER, "Hello")


def test_instructions_that_follow_each_other_are_one_message_and_later_ones_stay():
    first, second, third = (common.instructed(text)[0] for text in "abc")
    assert assembled(first, second, HELLO, third, third, HELLO, third) == [
        ("developer", "a\n\nb"),
        ("user", "Hello"),
        ("developer", "c\n\nc"),
        ("user", "Hello"),
        ("developer", "c"),
    ]


def test_without_instructions_tools_or_format_there_is_no_developer_message():
    assert common.instructed("") == []
    assert assembled(HELLO) == [("user", "Hello")]


def test_the_first_instructions_take_the_tools():
    functions = common.functions_of(field([{"name": "f"}]).each())
    developer = common.developer_of(functions, field(None), None)
    assert assembled(*common.instructed("a"), HELLO, developer=developer) == [
        ("developer", "a"),
        ("user", "Hello"),
    ]
    assert developer.instructions == "a"
    assert developer.tools


def test_calls_and_results_have_the_headers_of_the_format_guide():
    call = common.called("functions.f", "{}", "commentary", common.JSON)
    result = common.returned("functions.f", "42", "commentary")
    assert call.to_dict() | {"content": None} == {
        "role": "assistant", "name": None, "channel": "commentary", "recipient": "functions.f",
        "content_type": "<|constrain|>json", "content": None,
    }  # fmt: skip
    assert (result.author.role, result.author.name) == (Role.TOOL, "functions.f")
    assert (result.recipient, result.channel, result.content[0].text) == (
        "assistant",
        "commentary",
        "42",
    )
