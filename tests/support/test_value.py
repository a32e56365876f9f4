"""What every value can do: errors, dumps, pydantic fields, habits of pydantic, subclasses."""

import copy
import dataclasses
import json
import pickle
import pprint
import re
from datetime import date
from enum import IntEnum
from typing import Annotated, Any, ClassVar, Literal, Optional

import openai_harmony
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, ValidationError, field_validator

import harmony_stream
from harmony_stream.values.messages import (
    Author,
    Message,
    Role,
    SystemContent,
    TextContent,
)
from harmony_stream.values.tools import ToolDescription, ToolNamespaceConfig

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


# --- Errors -----------------------------------------------------------------------------------

# What the library does, and whether openai_harmony raises pydantic's error.
RAISED = [
    (lambda it: it.Message(content=[]), True),
    (lambda it: it.Author(role="judge"), True),
    (lambda it: it.Author.new("judge", "x"), True),
    (lambda it: it.Message.from_role_and_content("judge", "x"), True),
    (lambda it: it.Message.from_role_and_content("user", 5), True),
    (lambda it: it.Message.model_validate(5), True),
    (lambda it: it.Message.model_validate_json("{"), True),
    (lambda it: it.TextContent(), True),
    (lambda it: it.ToolDescription.new("f", None), True),
    (lambda it: it.Conversation.from_messages([1]), True),
    (lambda it: it.SystemContent.from_dict({"tools": []}), True),
    (lambda it: it.DeveloperContent.new().with_function_tools([5]), True),
    (lambda it: it.ChannelConfig.require_channels([1]), True),
    (lambda it: it.RenderOptions(conversation_has_function_tools="z"), True),
    (lambda it: it.Message.from_dict({"role": "user", "content": [{"type": "x"}]}), False),
    (lambda it: it.Role("judge"), False),
    (lambda it: setattr(it.TextContent(text="a"), "txt", "b"), False),
]  # fmt: skip


@pytest.mark.parametrize(("make", "is_pydantics"), RAISED)
def test_what_catches_the_error_of_openai_harmony_catches_ours(make, is_pydantics):
    for library in (openai_harmony, harmony_stream):
        with pytest.raises(ValidationError if is_pydantics else ValueError):
            make(library)


def test_fields_are_given_by_keyword_as_in_openai_harmony():
    with pytest.raises(TypeError, match="positional"):
        TextContent("a")


def test_a_field_that_is_set_is_read_again_and_a_name_without_a_field_is_refused():
    author = Author(role="user")
    author.role = "tool"

    assert author.role is Role.TOOL
    for error in (AttributeError, ValueError):
        with pytest.raises(error, match='"Author" object has no field "rolle"'):
            author.rolle = "user"
    with pytest.raises(ValueError, match=r"Author\.role: 'judge'"):
        author.role = "judge"


# --- What every value can do ------------------------------------------------------------------


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
def test_validating_a_dump_gives_the_value_back(fields):
    namespace = ToolNamespaceConfig(**fields)

    assert ToolNamespaceConfig.model_validate(namespace.model_dump()) == namespace
    assert ToolNamespaceConfig.model_validate_json(namespace.model_dump_json()) == namespace
    assert pickle.loads(pickle.dumps(namespace)) == namespace
    assert copy.deepcopy(namespace) == namespace


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


def test_values_of_different_classes_are_not_equal():
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


MEMBERS = [
    (LOOKUP, {"name": "lookup", "description": "Looks up.", "parameters": {"type": "object"}}),
    (TextContent(text="a"), {"type": "text", "text": "a"}),
    ({"name": "a"}, {"name": "a"}),
]


@pytest.mark.parametrize(("member", "dumped"), MEMBERS)
def test_each_member_of_a_union_is_kept_and_dumped_as_itself(member, dumped):
    offer = Offer(either=member)

    assert type(offer.either) is type(member)
    assert offer.either == member
    assert offer.model_dump()["either"] == dumped
    assert json.loads(offer.model_dump_json())["either"] == dumped


@pytest.mark.parametrize("options", [{}, {"mode": "json"}])
def test_a_member_of_a_union_is_written_by_its_own_class(options):
    adapter = TypeAdapter(list[TextContent | ToolDescription])
    members = [ToolDescription.new("f", ""), TextContent(text="a")]

    assert adapter.dump_python(members, **options) == [
        {"name": "f", "description": "", "parameters": None},
        {"type": "text", "text": "a"},
    ]


def test_pydantic_hands_its_options_down():
    dumped = Offer(tool=ToolDescription.new("f", "")).model_dump(exclude_none=True)

    assert dumped == {"tool": {"name": "f", "description": ""}, "spaces": []}


def test_a_strict_pydantic_field_takes_instances_only():
    adapter = TypeAdapter(ToolDescription)

    assert adapter.validate_python(LOOKUP, strict=True) is LOOKUP
    with pytest.raises(ValidationError):
        adapter.validate_python({"name": "f", "description": ""}, strict=True)


@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_a_model_with_values_has_a_json_schema(mode):
    assert Offer.model_json_schema(mode=mode)["properties"].keys() == Offer.model_fields.keys()


# --- As users of pydantic's models know them --------------------------------------------------

VALUES = {
    "Author": {"role": "tool", "name": "f"},
    "TextContent": {"text": "a"},
    "SystemContent": {"model_identity": "Me."},
    "DeveloperContent": {"instructions": "Be brief."},
    "ChannelConfig": {"valid_channels": ["final"], "channel_required": True},
    "ToolDescription": {"name": "f", "description": "Does f.", "parameters": {"type": "object"}},
    "ToolNamespaceConfig": {"name": "n", "tools": [{"name": "f", "description": ""}]},
    "Message": {"author": {"role": "user"}, "channel": "final"},
    "Conversation": {"messages": [{"author": {"role": "user"}}]},
    "RenderOptions": {},
    "RenderConversationConfig": {"auto_drop_analysis": False},
}
# What a pydantic model can be asked.
HABITS = [
    vars,
    lambda value: value.dict(),
    lambda value: value.dict(exclude_none=True),
    lambda value: value.json(),
    lambda value: value.copy().model_dump(),
    lambda value: value.copy(deep=True).model_dump(),
    lambda value: vars(value.model_construct(**vars(value))),
    lambda value: vars(value.construct()),
    lambda value: type(value).parse_obj(value.model_dump()).model_dump(),
    lambda value: type(value).parse_raw(value.model_dump_json()).model_dump(),
    lambda value: {name: field.is_required() for name, field in value.model_fields.items()},
    lambda value: list(type(value).model_json_schema()["properties"]),
    lambda value: type(value).model_json_schema().get("required", []),
    lambda value: (value.model_config, value.model_computed_fields, value.model_extra),
    lambda value: type(value).model_rebuild() is False,
]


def shown(answer) -> str:
    """An answer as text, less the one field that only we have."""
    return re.sub(r",? '?response_formats'?([:=] ?(None|False))?", "", repr(answer))


@pytest.mark.filterwarnings("ignore")  # pydantic's, of names that are old
@pytest.mark.parametrize("habit", HABITS)
@pytest.mark.parametrize("name", VALUES)
def test_a_value_answers_as_the_pydantic_model_does(name, habit):
    ours, theirs = (
        getattr(library, name)(**VALUES[name]) for library in (harmony_stream, openai_harmony)
    )

    assert shown(habit(ours)) == shown(habit(theirs))


def test_the_json_schema_is_given_as_text_too():
    text = TextContent.schema_json(indent=2)

    assert json.loads(text) == TextContent.model_json_schema()
    assert text.startswith('{\n  "type"')


@pytest.mark.parametrize("name", VALUES.keys() - {"Conversation"})
def test_a_dict_of_a_value_holds_its_fields_as_they_are(name):
    ours, theirs = (
        getattr(library, name)(**VALUES[name]) for library in (harmony_stream, openai_harmony)
    )

    assert repr(dict(ours)) == repr(dict(theirs))


def test_the_fields_that_differ_from_their_defaults_are_those_that_were_set():
    assert Author(role="user", name=None).model_fields_set == {"role"}
    assert SystemContent(knowledge_cutoff="2025").model_fields_set == {"knowledge_cutoff"}


def test_an_unchecked_value_shows_and_dumps_what_it_has():
    partly = ToolDescription.model_construct(name=5)

    assert repr(partly) == "ToolDescription(name=5, parameters=None)"
    assert partly.model_dump() == {"name": 5, "parameters": None}


@pytest.mark.parametrize("name", VALUES)
def test_what_reads_dataclasses_finds_what_a_dump_holds(name):
    value = getattr(harmony_stream, name)(**VALUES[name])
    dumped = value._dump_inside()

    assert dataclasses.asdict(value) == dumped
    assert dataclasses.replace(value) == value
    assert Anything(value=value).model_dump(mode="json")["value"] == value._dump_inside(mode="json")
    assert [field.name for field in dataclasses.fields(type(value))] == [
        *type(value)._marks,
        *type(value).model_fields,
    ]
    assert pprint.pformat(value, width=20)


class Anything(BaseModel):
    value: Any


# --- Subclasses -------------------------------------------------------------------------------


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Extra(BaseModel):
    size: int


class Rated(Message):
    rating: int = 0
    tags: list[str] = []  # noqa: RUF012 - pydantic's way
    notes: dict[str, list[int]] = Field(default_factory=dict)
    parent: "ToolDescription | None" = None
    level: Optional[Level] = None  # noqa: UP045 - as people write it
    day: date | None = None
    kind: Annotated[Literal["a", "b"], "a choice"] = Field("a", description="which")
    extra: Extra | None = None
    anything: Any = None
    shared: ClassVar[int] = 5
    _private: int = 7

    def is_good(self) -> bool:
        return self.rating > 3


class Weighed(Rated):
    weight: float = Field(gt=0)
    rating: str = "none"


class Rates(harmony_stream.Conversation):
    messages: list[Rated] = []  # noqa: RUF012


RATED = Rated(
    author=USER,
    content="Hi",
    rating="5",
    tags=("x", "y"),
    notes={"n": ["1"]},
    parent=LOOKUP,
    level=2,
    day="2025-06-28",
    kind="b",
    extra={"size": "3"},
    anything=[1],
)
OWN = {
    "rating": 5,
    "tags": ["x", "y"],
    "notes": {"n": [1]},
    "parent": LOOKUP.model_dump(),
    "level": Level.HIGH,
    "day": date(2025, 6, 28),
    "kind": "b",
    "extra": {"size": 3},
    "anything": [1],
}


def test_a_subclass_has_the_fields_that_it_adds():
    assert RATED.is_good()
    assert RATED.extra == Extra(size=3)
    assert {name: RATED.model_dump()[name] for name in OWN} == OWN
    assert dict(RATED)["rating"] == vars(RATED)["rating"] == 5
    assert "rating=5" in repr(RATED)
    assert (Rated.shared, RATED._private) == (5, 7)
    assert "_private" not in RATED.model_dump()
    assert Rated.model_fields["rating"].annotation is int
    assert list(Rated.model_json_schema()["properties"])[-9:] == list(OWN)


def test_what_a_subclass_adds_survives_all_ways_of_keeping_it():
    for again in [
        Rated.model_validate(RATED.model_dump()),
        Rated.model_validate(RATED.to_dict()),
        Rated.model_validate_json(RATED.model_dump_json()),
        Rated.from_dict(RATED.to_dict()),
        Rated.model_validate(dataclasses.asdict(RATED)),
        pickle.loads(pickle.dumps(RATED)),
        copy.copy(RATED),
        copy.deepcopy(RATED),
        RATED.copy(),
        RATED.model_copy(deep=True),
        Rates.model_validate(Rates(messages=[RATED]).model_dump()).messages[0],
        Rates.model_validate_json(Rates(messages=[RATED]).model_dump_json()).messages[0],
        harmony_stream.Conversation.from_messages([RATED]).messages[0],
        TypeAdapter(Rated).validate_json(TypeAdapter(Rated).dump_json(RATED)),
    ]:
        assert type(again) is Rated
        assert again == RATED

    assert RATED.model_copy(update={"rating": 1}) != RATED
    assert Message.model_validate(RATED) is RATED
    assert harmony_stream.Conversation(messages=[RATED]).model_dump()["messages"][0]["rating"] == 5


def test_each_value_of_a_subclass_has_its_own_defaults():
    first, second = Rated.from_role_and_content("user", "a"), Rated(author=USER)
    first.tags.append("x")
    first.notes["n"] = [1]

    assert (second.tags, second.notes) == ([], {})


def test_a_field_that_is_set_on_a_subclass_is_read_too():
    rated = Rated(author=USER)
    rated.rating, rated.channel, rated._private = "3", "final", 8

    assert (rated.rating, rated.channel, rated._private) == (3, "final", 8)
    with pytest.raises(ValueError, match=r"Rated\.rating: 'x' is refused: Input should be a valid"):
        rated.rating = "x"
    with pytest.raises(ValueError, match=r"Rated\.channel: 5 is not a string or None"):
        rated.channel = 5


def test_a_subclass_of_a_subclass_may_redefine_a_field():
    weighed = Weighed(author=USER, weight=2)

    assert (weighed.rating, weighed.weight) == ("none", 2.0)
    assert Weighed.model_validate(weighed.model_dump()) == weighed
    with pytest.raises(ValidationError, match=r"Weighed\.weight is missing"):
        Weighed(author=USER)
    with pytest.raises(ValidationError, match=r"Weighed\.weight: -1 is refused: Input should be"):
        Weighed(author=USER, weight=-1)


def test_contents_may_have_more_fields_too():
    class Quoted(TextContent):
        source: str = ""

    quoted = Quoted(text="a", source="b")

    assert quoted.to_dict() == {"type": "text", "text": "a", "source": "b"}
    assert Message(author=USER, content=quoted).model_dump()["content"] == [quoted.to_dict()]
    assert Message(author=USER, content=quoted).content == [quoted]


def test_a_type_that_is_not_known_where_the_class_is_made_takes_all():
    class Odd(TextContent):
        later: "Later"  # noqa: F821

    assert Odd(text="a", later=5).model_dump() == {"text": "a", "later": 5}


def test_what_only_a_pydantic_model_would_obey_is_refused():
    with pytest.raises(TypeError, match=r"Forbidding\.model_config: a subclass of Message is not"):

        class Forbidding(Message):
            model_config = {"extra": "forbid"}  # noqa: RUF012

    with pytest.raises(TypeError, match=r"Validated\.short: .* give it fields and methods only"):

        class Validated(TextContent):
            @field_validator("text")
            @classmethod
            def short(cls, text):
                return text[:5]

    with pytest.raises(TypeError, match=r"Renamed\.language: alias is not an option of a value"):

        class Renamed(TextContent):
            language: str = Field("en", alias="lang")


def test_a_chat_message_is_refused_with_the_fields_that_would_be_lost():
    with pytest.raises(ValueError, match="no field for tool_calls; leave it out, or read messages"):
        Message.model_validate({"role": "user", "content": "x", "tool_calls": []})
