"""What every record of the data model takes and can do."""

import copy
import dataclasses
import json
import pickle
import pprint
import re
import sys
from datetime import date
from enum import IntEnum
from typing import Annotated, Any, ClassVar, Literal, Optional

import openai_harmony
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, ValidationError, field_validator
from strategies import examples

import harmony_stream
from harmony_stream.support.value import Record, _FieldKind, plain_error
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
    (lambda: SystemContent(tools={"n": {"name": "n", "tools": [LOOKUP, {"name": 5}]}}),
     ("tools", "n", "tools", 1, "name"), 5),
]  # fmt: skip


@pytest.mark.parametrize(("make", "place", "value"), PLACES)
def test_pydantics_error_says_where_the_value_stands_and_what_it_is(make, place, value):
    with pytest.raises(ValidationError) as caught:
        make()

    (line,) = caught.value.errors()
    assert (line["loc"], line["input"]) == (place, value)


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


def test_a_kind_must_say_how_it_takes_a_value():
    with pytest.raises(NotImplementedError):
        _FieldKind().read(1, "here")


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
def test_a_record_answers_as_the_pydantic_model_does(name, habit):
    ours, theirs = (
        getattr(library, name)(**VALUES[name]) for library in (harmony_stream, openai_harmony)
    )

    assert shown(habit(ours)) == shown(habit(theirs))


@pytest.mark.parametrize("name", VALUES.keys() - {"Conversation"})
def test_a_dict_of_a_record_holds_its_fields_as_they_are(name):
    ours, theirs = (
        getattr(library, name)(**VALUES[name]) for library in (harmony_stream, openai_harmony)
    )

    assert repr(dict(ours)) == repr(dict(theirs))


def test_the_fields_that_differ_from_their_defaults_are_those_that_were_set():
    assert Author(role="user", name=None).model_fields_set == {"role"}
    assert SystemContent(knowledge_cutoff="2025").model_fields_set == {"knowledge_cutoff"}


def test_an_unchecked_record_shows_and_dumps_what_it_has():
    partly = ToolDescription.model_construct(name=5)

    assert repr(partly) == "ToolDescription(name=5, parameters=None)"
    assert partly.model_dump() == {"name": 5, "parameters": None}


@pytest.mark.parametrize("name", VALUES)
def test_what_reads_dataclasses_finds_what_a_dump_holds(name):
    record = getattr(harmony_stream, name)(**VALUES[name])
    dumped = record._dump_inside()

    assert dataclasses.asdict(record) == dumped
    assert dataclasses.replace(record) == record
    assert Anything(value=record).model_dump(mode="json")["value"] == record._dump_inside(
        mode="json"
    )
    assert [field.name for field in dataclasses.fields(type(record))] == [
        *type(record)._marks,
        *type(record).model_fields,
    ]
    assert pprint.pformat(record, width=20)


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


def test_each_record_of_a_subclass_has_its_own_defaults():
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


def test_without_pydantic_values_of_foreign_types_are_taken_as_they_are(monkeypatch):
    class Dated(TextContent):
        day: date

    for name in ("pydantic", "pydantic_core"):
        monkeypatch.setitem(sys.modules, name, None)

    assert Dated(text="a", day="today").day == "today"
    assert Dated(text="a", day=date(2025, 1, 1)).model_dump(mode="json")["day"] == date(2025, 1, 1)
    assert Dated.model_json_schema()["properties"]["day"] == {}


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

    with pytest.raises(TypeError, match=r"Renamed\.language: alias is not an option of a record"):

        class Renamed(TextContent):
            language: str = Field("en", alias="lang")


def test_a_record_is_no_list_of_records():
    with pytest.raises(ValueError, match="is not a list, each ToolDescription"):
        ToolNamespaceConfig(name="n", tools=LOOKUP)
    assert issubclass(ToolDescription, Record)


# -- include and exclude, as pydantic has them --


class AnAuthor(BaseModel):
    role: str
    name: str | None


class APart(BaseModel):
    type: str
    text: str


class AMessage(BaseModel):
    author: AnAuthor
    content: list[APart]
    channel: str | None
    recipient: str | None
    content_type: str | None


def rules(*inner):
    """Sets of names, or mappings whose values are whole or go on inside."""
    names = st.sampled_from(["author", "content", "channel", "nothing"])
    parts = st.sampled_from([0, 1, -1, "__all__"])
    in_part = st.sets(st.sampled_from(["type", "text"]))
    in_content = st.sets(parts, max_size=1) | st.dictionaries(parts, in_part, max_size=1)
    in_author = st.sets(st.sampled_from(["role", "name"]))
    deep = st.fixed_dictionaries({}, optional={
        "author": st.just(True) | st.just(...) | in_author, "content": st.just(True) | in_content,
        "channel": st.just(True),
    })  # fmt: skip
    return st.sets(names) | deep


@given(st.none() | rules(), st.none() | rules())
@examples(300)
def test_include_and_exclude_are_those_of_pydantic(include, exclude):
    message = Message(
        author={"role": "tool", "name": "f"}, content=["a", "b", "c"], channel="commentary"
    )
    peer = AMessage(**message.model_dump(mode="json"))
    expected = peer.model_dump(include=include, exclude=exclude)
    assert message.model_dump(mode="json", include=include, exclude=exclude) == expected


def test_a_chat_message_is_refused_with_the_fields_that_would_be_lost():
    with pytest.raises(ValueError, match="no field for tool_calls; leave it out, or read messages"):
        Message.model_validate({"role": "user", "content": "x", "tool_calls": []})
