"""What every record of the data model takes and can do."""

import copy
import json
import pickle

import openai_harmony
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from harmony_stream.messages import (
    Author,
    ChannelConfig,
    Message,
    RenderConversationConfig,
    Role,
    SystemContent,
    TextContent,
)
from harmony_stream.records import Record, _Kind
from harmony_stream.tools import ToolDescription, ToolNamespaceConfig

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
json_objects = st.dictionaries(st.text(), json_values, max_size=3)
tools = st.fixed_dictionaries(
    {"name": st.text(), "description": st.text()}, optional={"parameters": st.none() | json_objects}
)
namespaces = st.fixed_dictionaries(
    {"name": st.text(), "tools": st.lists(tools, max_size=2)},
    optional={"description": st.none() | st.text()},
)

LOOKUP = ToolDescription.new("lookup", "Looks up.", {"type": "object"})
USER = Author(role="user")


# --- What fields take -------------------------------------------------------------------------

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
def test_an_error_names_the_field_the_value_and_what_is_allowed(make, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole sentence is compared
        make()

    assert str(caught.value) == sentence


def test_fields_are_given_by_keyword_as_in_openai_harmony():
    with pytest.raises(TypeError, match="positional"):
        TextContent("a")


def test_a_field_that_is_set_is_read_again():
    author = Author(role="user")
    author.role = "tool"

    assert author.role is Role.TOOL
    with pytest.raises(ValueError, match=r"Author\.role: 'judge'"):
        author.role = "judge"


def test_a_kind_must_say_how_it_takes_a_value():
    with pytest.raises(NotImplementedError):
        _Kind().read(1, "here")


# --- What every record can do -----------------------------------------------------------------


@given(namespaces)
def test_dumps_are_those_of_openai_harmony(fields):
    ours = ToolNamespaceConfig(**fields)
    theirs = openai_harmony.ToolNamespaceConfig(**fields)

    for options in ({}, {"exclude_none": True}, {"exclude_defaults": True}, {"mode": "json"}):
        assert json.dumps(ours.model_dump(**options)) == json.dumps(theirs.model_dump(**options))
    assert ours.model_dump_json() == theirs.model_dump_json()
    assert ours.model_dump_json(indent=2) == theirs.model_dump_json(indent=2)
    assert repr(ours) == repr(theirs)


@given(namespaces)
def test_validating_a_dump_gives_the_record_back(fields):
    namespace = ToolNamespaceConfig(**fields)

    assert ToolNamespaceConfig.model_validate(namespace.model_dump()) == namespace
    assert ToolNamespaceConfig.model_validate_json(namespace.model_dump_json()) == namespace
    assert pickle.loads(pickle.dumps(namespace)) == namespace
    assert copy.deepcopy(namespace) == namespace


DUMPED = [
    ({"include": {"name"}}, {"name": "lookup"}),
    ({"exclude": {"parameters"}}, {"name": "lookup", "description": "Looks up."}),
    ({"include": {"name"}, "exclude": {"name"}}, {}),
    ({"by_alias": True, "include": {"name"}}, {"name": "lookup"}),
]


@pytest.mark.parametrize(("options", "fields"), DUMPED)
def test_a_dump_can_be_narrowed(options, fields):
    assert LOOKUP.model_dump(**options) == fields


@pytest.mark.parametrize("option", ["exclude_unset", "exclude_defaults"])
def test_defaults_can_be_left_out_of_a_dump(option):
    system = SystemContent(model_identity="Me.")

    assert system.model_dump(**{option: True}) == {"model_identity": "Me."}


def test_enums_are_plain_in_a_dump_for_json_only():
    assert type(USER.model_dump()["role"]) is Role
    assert type(USER.model_dump(mode="json")["role"]) is str


def test_validating_an_instance_gives_that_instance():
    assert ToolDescription.model_validate(LOOKUP) is LOOKUP


def test_a_copy_shares_its_parts_unless_it_is_deep():
    assert LOOKUP.model_copy().parameters is LOOKUP.parameters
    assert LOOKUP.model_copy(deep=True).parameters is not LOOKUP.parameters
    assert LOOKUP.model_copy(deep=True) == LOOKUP


def test_an_updated_copy_leaves_the_original_alone():
    assert LOOKUP.model_copy(update={"name": "other"}).name == "other"
    assert LOOKUP.name == "lookup"


def test_records_of_different_classes_are_not_equal():
    assert ToolDescription.new("a", "b") == ToolDescription.new("a", "b")
    assert ToolDescription.new("a", "b") != openai_harmony.ToolDescription.new("a", "b")


# --- As fields of pydantic models -------------------------------------------------------------


class Offer(BaseModel):
    tool: ToolDescription | None = None
    either: ToolDescription | TextContent | dict | None = None
    spaces: list[ToolNamespaceConfig] = []


def test_a_pydantic_field_takes_mappings_and_instances():
    offer = Offer(tool={"name": "lookup", "description": "Looks up.", "parameters": {}}, spaces=[
        ToolNamespaceConfig.python(),
    ])  # fmt: skip

    assert offer.tool == ToolDescription.new("lookup", "Looks up.", {})
    assert Offer.model_validate_json(offer.model_dump_json()) == offer
    assert Offer.model_validate(offer.model_dump()) == offer


def test_pydantic_wraps_the_error_of_a_field():
    with pytest.raises(ValidationError, match=r"ToolDescription\.description is missing"):
        Offer(tool={"name": "f"})


@pytest.mark.parametrize("value", [LOOKUP, TextContent(text="a"), {"name": "a"}])
def test_each_member_of_a_union_is_kept_and_dumped_as_itself(value):
    offer = Offer(either=value)

    assert offer.either is value or offer.either == value
    assert (
        offer.model_dump()["either"].items()
        >= dict(value if isinstance(value, dict) else value.model_dump()).items()
    )


def test_pydantic_hands_its_options_down():
    dumped = Offer(tool=ToolDescription.new("f", "")).model_dump(exclude_none=True)

    assert dumped == {"tool": {"name": "f", "description": ""}, "spaces": []}


def test_a_strict_pydantic_field_takes_instances_only():
    adapter = TypeAdapter(ToolDescription)

    assert adapter.validate_python(LOOKUP, strict=True) is LOOKUP
    with pytest.raises(ValidationError):
        adapter.validate_python({"name": "f", "description": ""}, strict=True)


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


@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_a_model_with_records_has_a_json_schema(mode):
    assert Offer.model_json_schema(mode=mode)["properties"].keys() == Offer.model_fields.keys()


def test_a_record_class_has_no_instance_dict():
    assert issubclass(ToolDescription, Record)
    assert not hasattr(LOOKUP, "__dict__")
