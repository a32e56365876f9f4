"""What requests of both APIs become: the same opening, the same errors, and no text is lost."""

import copy
import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests_read import (
    LIST,
    MARKUP,
    QUESTION,
    ROOT,
    SOME_WORDS,
    TIDE,
    call,
    calling,
    chat,
    items,
    opening,
)
from strategies import examples

from harmony_stream.adapters.conversations import (
    conversation_from_chat,
    conversation_from_responses,
)
from harmony_stream.values.messages import Role

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


# -- Errors --


def test_markup_in_a_message_that_was_parsed_is_text():
    item = {"role": "assistant", "content": MARKUP, "phase": "final_answer"}
    [message] = conversation_from_responses([item]).messages[1:]
    assert message.content[0].text == MARKUP
    for fields in ({"reasoning": "Hm."}, calling(id="c1")):
        found = chat({"role": "assistant", "content": MARKUP, **fields})
        assert MARKUP in str(found)


def test_the_page_about_conversations_says_what_the_code_does():
    page = ROOT / "docs" / "conversations.md"
    found = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert (found.failed, found.attempted > 0) == (0, True)


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
