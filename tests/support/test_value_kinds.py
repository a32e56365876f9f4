"""What a field of a value may hold, how it is refused, and its JSON schema."""

import pickle
import re
import sys
from datetime import date

import openai_harmony
import pytest
from pydantic import TypeAdapter, ValidationError

from harmony_stream.support.value import Value
from harmony_stream.support.value_kinds import FieldKind, plain_error
from harmony_stream.values.messages import (
    Author,
    ChannelConfig,
    Message,
    RenderConversationConfig,
    Role,
    SystemContent,
    TextContent,
)
from harmony_stream.values.tools import ToolDescription, ToolNamespaceConfig

LOOKUP = ToolDescription.new("lookup", "Looks up.", {"type": "object"})
USER = Author(role="user")


# --- What fields hold -------------------------------------------------------------------------

TAKEN = [
    (TextContent(text=b"a").text, "a"),
    (TextContent(text=bytearray(b"a")).text, "a"),
    (Message(author=USER, recipient=Role.ASSISTANT).recipient, "assistant"),
    (type(Message(author=USER, recipient=Role.ASSISTANT).recipient), str),
    (Author(role=openai_harmony.Role.TOOL).role, Role.TOOL),
    (ToolNamespaceConfig(name="n", tools=iter([LOOKUP])).tools, [LOOKUP]),
    (ToolNamespaceConfig(name="n", tools=({"name": "f", "description": ""},)).tools[0].name, "f"),
    (ToolDescription(name="f", description="", unknown=1), ToolDescription.new("f", "")),
    (ChannelConfig(valid_channels={"a"}, channel_required="Yes").channel_required, True),
    (RenderConversationConfig(auto_drop_analysis="off").auto_drop_analysis, False),
    (RenderConversationConfig(auto_drop_analysis=1).auto_drop_analysis, True),
    (RenderConversationConfig(auto_drop_analysis=False).auto_drop_analysis, False),
    (RenderConversationConfig(auto_drop_analysis=0.0).auto_drop_analysis, False),
    (RenderConversationConfig(auto_drop_analysis=b"on").auto_drop_analysis, True),
    (Author(role=b"user").role, Role.USER),
    (SystemContent(tools={b"n": {"name": "n", "tools": []}}).tools.keys(), {"n"}),
    (ToolDescription.new("f", "", {1: 2}).parameters, {1: 2}),
    (SystemContent(tools={"n": {"name": "n", "tools": []}}).tools["n"].tools, []),
]


@pytest.mark.parametrize(("taken", "value"), TAKEN)
def test_a_field_takes_what_pydantic_takes(taken, value):
    assert taken == value


REFUSED = [
    (lambda: Author(role="judge"), "Author.role: 'judge' is not one of 'user', 'assistant', "
     "'system', 'developer', 'tool'"),
    (lambda: Author(role=3), "Author.role: 3 is not one of 'user', 'assistant', 'system', "
     "'developer', 'tool'"),
    (lambda: Author(role="user", name=3), "Author.name: 3 is not a string or None"),
    (lambda: TextContent(text=None), "TextContent.text: None is not a string"),
    (lambda: TextContent(text=b"\xff"), "TextContent.text: 'utf-8' codec can't decode byte 0xff in "
     "position 0: invalid start byte"),
    (lambda: TextContent(), "TextContent.text is missing"),
    (lambda: TextContent(txt="a"), "TextContent.text is missing"),
    (lambda: ToolDescription.new("f", "", []), "ToolDescription.parameters: [] is not a mapping "
     "or None"),
    (lambda: RenderConversationConfig(auto_drop_analysis="maybe"),
     "RenderConversationConfig.auto_drop_analysis: 'maybe' is not true or false"),
    (lambda: RenderConversationConfig(auto_drop_analysis=2.5),
     "RenderConversationConfig.auto_drop_analysis: 2.5 is not true or false"),
    (lambda: ChannelConfig(valid_channels="ab", channel_required=True),
     "ChannelConfig.valid_channels: 'ab' is not a list, each a string"),
    (lambda: Author(role=b"\xff"), "Author.role: b'\\xff' is not one of 'user', 'assistant', "
     "'system', 'developer', 'tool'"),
    (lambda: ChannelConfig(valid_channels=bytearray(b"ab"), channel_required=True),
     "ChannelConfig.valid_channels: bytearray(b'ab') is not a list, each a string"),
    (lambda: ChannelConfig(valid_channels=["a", 1], channel_required=True),
     "ChannelConfig.valid_channels[1]: 1 is not a string"),
    (lambda: ToolNamespaceConfig(name="n", tools=5),
     "ToolNamespaceConfig.tools: 5 is not a list, each ToolDescription"),
    (lambda: ToolNamespaceConfig(name="n", tools=[{"name": "f"}]),
     "ToolNamespaceConfig.tools[0]: ToolDescription.description is missing"),
    (lambda: ToolNamespaceConfig(name="n", tools=[5]),
     "ToolNamespaceConfig.tools[0]: 5 is not ToolDescription or a mapping of its fields"),
    (lambda: SystemContent(tools=[]), "SystemContent.tools: [] is not a mapping from names, each "
     "to ToolNamespaceConfig or None"),
    (lambda: SystemContent(tools={1: {}}), "SystemContent.tools (key): 1 is not a string"),
    (lambda: SystemContent(tools={"n": {}}),
     "SystemContent.tools['n']: ToolNamespaceConfig.name is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "sentence"), REFUSED, ids=[row[1] for row in REFUSED])
def test_an_error_names_the_field_the_value_and_what_is_allowed(make, sentence, monkeypatch):
    monkeypatch.delitem(sys.modules, "pydantic_core")
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole sentence is compared
        make()

    assert str(caught.value) == sentence
    assert str(pickle.loads(pickle.dumps(caught.value))) == sentence


@pytest.mark.parametrize(("make", "sentence"), REFUSED, ids=[row[1] for row in REFUSED])
def test_where_pydantic_is_loaded_the_error_is_its_own(make, sentence):
    with pytest.raises(ValidationError) as caught:
        make()

    assert [line["msg"] for line in caught.value.errors()] == [sentence]
    assert str(plain_error(caught.value)) == sentence


PLACES = [
    (lambda: Author(role="judge"), ("role",), "judge"),
    (lambda: TextContent(), ("text",), {}),
    (lambda: TextContent.model_validate(5), (), 5),
    (lambda: TextContent.model_validate_json("{"), (), "{"),
    (lambda: ChannelConfig(valid_channels=["a", 1], channel_required=True),
     ("valid_channels", 1), 1),
    (lambda: SystemContent(tools={1: {}}), ("tools", 1, "[key]"), 1),
    (lambda: SystemContent(tools={None: {}}), ("tools", "None", "[key]"), None),
    (lambda: SystemContent(tools={"n": {"name": "n", "tools": [LOOKUP, {"name": 5}]}}),
     ("tools", "n", "tools", 1, "name"), 5),
]  # fmt: skip


@pytest.mark.parametrize(("make", "place", "value"), PLACES)
def test_pydantics_error_says_where_the_value_stands_and_what_it_is(make, place, value):
    with pytest.raises(ValidationError) as caught:
        make()

    (line,) = caught.value.errors()
    assert (line["loc"], line["input"]) == (place, value)


def test_a_kind_must_say_how_it_takes_a_value():
    with pytest.raises(NotImplementedError):
        FieldKind().read(1, "here")


def test_the_json_schema_says_what_a_field_takes():
    assert TypeAdapter(ToolNamespaceConfig).json_schema() == {
        "type": "object",
        "title": "ToolNamespaceConfig",
        "properties": {
            "name": {"type": "string"},
            "description": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "tools": {
                "type": "array",
                "items": {
                    "type": "object",
                    "title": "ToolDescription",
                    "properties": {
                        "name": {"type": "string"},
                        "description": {"type": "string"},
                        "parameters": {"anyOf": [{"type": "object"}, {"type": "null"}]},
                    },
                    "required": ["name", "description"],
                },
            },
        },
        "required": ["name", "tools"],
    }


def test_the_json_schema_lists_choices_and_describes_what_names_map_to():
    properties = TypeAdapter(SystemContent).json_schema()["properties"]

    assert properties["reasoning_effort"]["anyOf"][0] == {
        "type": "string",
        "enum": ["Low", "Medium", "High"],
    }
    assert properties["tools"]["anyOf"][0] == {
        "type": "object",
        "additionalProperties": TypeAdapter(ToolNamespaceConfig).json_schema(),
    }


class Dated(TextContent):
    days: list[date | int]


def test_a_field_of_a_foreign_type_is_read_by_pydantic():
    assert Dated(text="a", days=["2025-06-28", "3"]).days == [date(2025, 6, 28), 3]
    assert Dated.model_json_schema()["properties"]["days"]["items"] == {
        "anyOf": [{"type": "string", "format": "date"}, {"type": "integer"}]
    }

    with pytest.raises(
        ValidationError, match=r"Dated\.days\[1\]: 'x' is refused: Input should"
    ) as caught:
        Dated(text="a", days=["2025-06-28", "x"])
    assert caught.value.errors()[0]["loc"] == ("days", 1, "date")


@pytest.mark.parametrize(
    ("hint", "value", "allowed"),
    [
        (list[int], "x", "a list, each int"),
        (dict[str, date], "x", "a mapping from names, each to date"),
        (list[int | str], 5, "a list, each int | str"),
    ],
)
def test_a_foreign_type_inside_a_list_or_a_mapping_is_named_in_errors(hint, value, allowed):
    class Day(Value):
        part: hint

    with pytest.raises(ValueError, match=rf"is not {re.escape(allowed)}"):
        Day(part=value)


def test_without_pydantic_values_of_foreign_types_are_taken_as_they_are(monkeypatch):
    class Dated(TextContent):  # not the one above, which has met pydantic
        day: date

    for name in ("pydantic", "pydantic_core"):
        monkeypatch.setitem(sys.modules, name, None)

    assert Dated(text="a", day="today").day == "today"
    assert Dated(text="a", day=date(2025, 1, 1)).model_dump(mode="json")["day"] == date(2025, 1, 1)
    assert Dated.model_json_schema()["properties"]["day"] == {}


def test_a_value_is_not_read_as_a_list_of_its_fields():
    with pytest.raises(ValueError, match="is not a list, each ToolDescription"):
        ToolNamespaceConfig(name="n", tools=LOOKUP)
