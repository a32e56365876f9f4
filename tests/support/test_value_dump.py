"""Which parts of a value a dump holds, and in which form."""

import json
import sys
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from strategies import examples

from harmony_stream.support.value_dump import Dump
from harmony_stream.values.messages import Message, Role, TextContent
from harmony_stream.values.tools import ToolDescription

LOOKUP = ToolDescription.new("lookup", "Looks up.", {"type": "object"})


class Size(BaseModel):
    width: int
    unit: str | None = None


class Sized(TextContent):
    size: Size
    day: date | None = None
    shades: dict[str, list[Role]] = {}  # noqa: RUF012 - pydantic's way


SIZED = Sized(text="a", size=Size(width=1), day="2025-06-28", shades={"x": ["user"]})
FORMS = [
    ({}, Size(width=1).model_dump(), date(2025, 6, 28), Role.USER),
    ({"mode": "json"}, {"width": 1, "unit": None}, "2025-06-28", "user"),
    ({"exclude_none": True}, {"width": 1}, date(2025, 6, 28), Role.USER),
    ({"exclude_defaults": True}, {"width": 1}, date(2025, 6, 28), Role.USER),
]


@pytest.mark.parametrize(("options", "size", "day", "shade"), FORMS)
def test_parts_of_any_type_are_dumped_in_the_form_that_is_asked_for(options, size, day, shade):
    dumped = SIZED.model_dump(**options)

    assert dumped == {"text": "a", "size": size, "day": day, "shades": {"x": [shade]}}
    assert type(dumped["shades"]["x"][0]) is type(shade)


def test_without_pydantic_a_part_of_a_foreign_type_is_dumped_as_it_is(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic_core", None)

    assert Dump("json").plain([SIZED.day, None, 1.5]) == [SIZED.day, None, 1.5]


# Data of any type, and what it is in JSON.
AS_JSON = [
    ((LOOKUP, [Size(width=1)]), [LOOKUP.model_dump(), [Size(width=1).model_dump()]]),
    ({"a": float("nan"), "b": float("-inf"), "c": 0.5}, {"a": None, "b": None, "c": 0.5}),
    ({1: "a", None: "b", Role.USER: "c", b"d": ()}, {"1": "a", "None": "b", "user": "c", "d": []}),
]


@pytest.mark.parametrize(("value", "expected"), AS_JSON)
def test_in_mode_json_a_dump_holds_what_json_has(value, expected):
    dumped = Dump("json").plain(value)

    assert dumped == expected
    assert json.loads(json.dumps(dumped, allow_nan=False)) == expected


def test_a_tuple_stays_one_but_for_json():
    assert Dump().plain((LOOKUP, 1)) == (LOOKUP.model_dump(), 1)


DUMPED = [
    ({"include": {"name"}}, {"name": "lookup"}),
    ({"exclude": {"parameters"}}, {"name": "lookup", "description": "Looks up."}),
    ({"include": {"name"}, "exclude": {"name"}}, {}),
    ({"by_alias": True, "include": {"name"}}, {"name": "lookup"}),
]


@pytest.mark.parametrize(("options", "fields"), DUMPED)
def test_a_dump_can_be_narrowed(options, fields):
    assert LOOKUP.model_dump(**options) == fields


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
