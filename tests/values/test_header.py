"""Headers, and how roles and recipients are spelled."""

import pytest

from harmony_stream.values.header import (
    KNOWN_CHANNELS,
    KNOWN_ROLES,
    Header,
    is_role_word,
    is_tool,
    known_role,
    name_of,
    readable,
)
from harmony_stream.values.messages import Role

NOBODY = ["assistant", "self", "all", "none", "user", "developer", "system", *KNOWN_CHANNELS]


@pytest.mark.parametrize("spelled", ["{}", "{}.", "./{}+-", "{}:bob"])
@pytest.mark.parametrize("word", NOBODY)
def test_roles_channels_and_everybody_are_no_tools_however_they_are_spelled(word, spelled):
    assert not is_tool(spelled.format(word))
    assert not is_tool(spelled.format(word.upper()))


@pytest.mark.parametrize("recipient", ["functions.f", "python", "tool", "user_search", "final.f"])
def test_any_other_recipient_is_a_tool(recipient):
    assert is_tool(recipient)


def test_nobody_is_no_tool():
    assert not is_tool(None)


# channel, recipient, and what a message of the assistant is that has them
KINDS = [
    *((channel, "functions.f", "is_tool_call") for channel in (*KNOWN_CHANNELS, None, "gossip")),
    *(("final", recipient, "is_visible") for recipient in (None, "assistant", "self", "user")),
    *((channel, None, "is_visible") for channel in ("commentary", None)),
    *((channel, "user", "is_visible") for channel in ("commentary", None)),
    *((channel, "Self.", "is_reasoning") for channel in ("commentary", None)),
    *((channel, to, "is_reasoning") for channel in ("analysis", "gossip") for to in (None, "all")),
]


@pytest.mark.parametrize(("channel", "recipient", "kind"), KINDS)
def test_a_message_is_one_of_three_kinds_if_the_assistant_writes_it(channel, recipient, kind):
    for role in Role:
        header = Header(role, None, channel, recipient)
        found = [name for name in ("is_tool_call", "is_visible", "is_reasoning")
                 if getattr(header, name)]  # fmt: skip
        assert found == ([kind] if role is Role.ASSISTANT else [])


TYPES = [
    (None, None, None),
    ("", None, ""),
    ("code", None, "code"),
    ("<|constrain|>code", "code", "code"),
    ("<|constrain|>", "", ""),
]


@pytest.mark.parametrize(("written", "constrain", "data_type"), TYPES)
def test_a_type_has_its_word_with_and_without_the_marker(written, constrain, data_type):
    header = Header(Role.ASSISTANT, content_type=written)
    assert (header.constrain, header.data_type) == (constrain, data_type)


def test_a_dictionary_has_the_fields_in_their_order_with_the_role_as_a_word():
    header = Header(Role.TOOL, "f", "gossip", "assistant", "<|constrain|>json")
    fields = [("role", "tool"), ("name", "f"), ("channel", "gossip"), ("recipient", "assistant")]
    assert [*header.to_dict().items()] == [*fields, ("content_type", "<|constrain|>json")]
    assert type(header.to_dict()["role"]) is str
    assert not header.is_known_channel


# a word, its role and name
ROLES = [
    *((role, (Role(role), None)) for role in KNOWN_ROLES if role != "tool"),
    ("tool", (Role.TOOL, "tool")),
    ("User", (Role.USER, None)),
    ("USER:Ines", (Role.USER, "Ines")),
    ("tool:f:g", (Role.TOOL, "f:g")),
    ("user:\udcff潮", (Role.USER, "\ufffd潮")),
    ("user:", None),
    (":user", None),
    ("functions.f", None),
    ("", None),
]


@pytest.mark.parametrize(("word", "found"), ROLES)
def test_a_role_is_known_by_its_word_and_may_have_a_name(word, found):
    assert known_role(word) == found
    assert is_role_word(word) == (found is not None)


@pytest.mark.parametrize(
    "word",
    ["useruser", "assistantassistantassistant", "userfinal", "assistant:final:", "toolanalysis."],
)
def test_a_role_that_is_repeated_or_glued_to_a_channel_is_one(word):
    assert is_role_word(word)
    assert is_role_word(word.title())


@pytest.mark.parametrize("word", ["userassistant", "users", "finaluser", "user final"])
def test_other_words_that_hold_a_role_are_none(word):
    assert not is_role_word(word)


def test_only_a_tool_is_named_by_its_role():
    assert [name_of(role) for role in Role if role is not Role.TOOL] == [None] * 4
    assert name_of(Role.TOOL) == "tool"


@pytest.mark.parametrize(
    ("text", "shown"), [("plain", "plain"), ("潮", "潮"), ("a\udce6\udcbdb", "a\ufffdb"), ("", "")]
)
def test_broken_bytes_are_read_as_the_replacement_character(text, shown):
    assert readable(text) == shown
