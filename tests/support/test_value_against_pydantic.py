"""Values against pydantic: one class, made once of each, reads, refuses and dumps alike.

Classes are generated: one to four fields of random annotations, out of those that have a kind, with
and without defaults. Both are given the same plain data, of which some is invalid. Where the two
differ on purpose, the table `DIFFERENCES` says so.
"""

from collections import OrderedDict
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError, create_model
from strategies import examples

from harmony_stream.support.value import Value


class Colour(str, Enum):  # noqa: UP042 - as in the library
    RED = "red"
    ON = "on"
    NONE = ""


class Number(IntEnum):
    ONE = 1


class Pair(NamedTuple):
    """The same class, or annotation, of either library."""

    ours: Any
    theirs: Any


def pair_of(annotations: dict[str, Pair], defaults: dict[str, Any]) -> Pair:
    ours = {name: each.ours for name, each in annotations.items()}
    theirs = {name: (each.theirs, defaults.get(name, ...)) for name, each in annotations.items()}
    body = {"__annotations__": ours, "__module__": __name__, **defaults}
    return Pair(type("Made", (Value,), body), create_model("Made", **theirs))


# --- Plain data -------------------------------------------------------------------------------

FLAGS = ["true", "False", "YES", "n", "on", "oFF", "T", "1", "0", "maybe", " true", ""]
LETTERS = st.text("abé", max_size=2)
# Exponents are spelled differently: see `DIFFERENCES`.
FLOATS = st.floats().filter(lambda value: "e" not in repr(value))
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1, 0, 1, 2, 2**70, 0.0, 1.0, -0.0, 0.5, 2.0, float("nan"), float("inf")]),
    st.sampled_from([*FLAGS, *map(str.encode, FLAGS), b"red", b"\xff", bytearray(b"on")]),
    st.sampled_from([*Colour, "red", "blue"]),
    LETTERS,
)
# Keys that are different still are as text: a dump may hold text only.
KEYS = LETTERS | st.sampled_from([0, 2, 1.5, None, b"x", b"\xff", Colour.RED, ("b",)])
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.lists(inner, max_size=2).map(tuple),
        st.sets(KEYS, max_size=2),
        st.dictionaries(KEYS, inner, max_size=2),
    ),
    max_leaves=4,
)


@st.composite
def mostly(draw, data):
    """Data that suits, or, once in five times, any."""
    return draw(data if draw(st.integers(0, 4)) else LEAVES | ANYTHING)


# --- Annotations, and the data that suits them ------------------------------------------------


class Shape(NamedTuple):
    hint: Pair
    data: st.SearchStrategy[Any]
    defaults: st.SearchStrategy[Any]


TEXTS = LETTERS | st.sampled_from([b"a", bytearray(b"b"), Colour.RED])
TRUTHS = st.sampled_from([True, 0, 1, 1.0, *FLAGS, b"off"])
OBJECTS = st.dictionaries(KEYS, ANYTHING | FLOATS, max_size=2)
COLOURS = st.sampled_from([*Colour, "red", "on", b"red"])
PLAIN = [
    Shape(Pair(str, str), TEXTS, LETTERS),
    Shape(Pair(bool, bool), TRUTHS, st.booleans()),
    Shape(Pair(dict[str, Any], dict), OBJECTS, st.just({})),
    Shape(Pair(Colour, Colour), COLOURS, st.sampled_from(Colour)),
]


def optional(shape):
    hint = Pair(*(each | None for each in shape.hint))
    return Shape(hint, st.none() | shape.data, st.none() | shape.defaults)


def listed(shape):
    items = st.lists(mostly(shape.data), max_size=2)
    hint = Pair(*(list[each] for each in shape.hint))
    return Shape(hint, items | items.map(tuple), st.just([]))


def named(shape):
    items = st.dictionaries(KEYS, mostly(shape.data), max_size=2)
    hint = Pair(*(dict[str, each] for each in shape.hint))
    return Shape(hint, items, st.just({}))


@st.composite
def classes(draw, shapes):
    names = st.sampled_from(["alpha", "beta", "gamma", "delta"])
    fields = draw(st.dictionaries(names, shapes, min_size=1, max_size=4))
    optional_names = draw(st.sets(st.sampled_from([*fields])))
    defaults = {name: draw(fields[name].defaults) for name in optional_names}
    hint = pair_of({name: shape.hint for name, shape in fields.items()}, defaults)
    data = {name: mostly(shape.data) for name, shape in fields.items()}
    given_data = st.fixed_dictionaries(
        {name: each for name, each in data.items() if name not in defaults},
        optional={name: data[name] for name in defaults},
    )
    return Shape(hint, given_data, st.nothing())


def shapes(depth):
    if not depth:
        return st.sampled_from(PLAIN)
    inner = shapes(depth - 1)
    return st.one_of(
        shapes(0), inner.map(optional), inner.map(listed), inner.map(named), classes(inner)
    )


# --- Where the two agree ----------------------------------------------------------------------


def read_by(owner, data):
    """What a class makes of data, and the path of its first error."""
    try:
        return owner.model_validate(data), None
    except ValidationError as error:
        return None, error.errors()[0]["loc"]


def shown(dump, **options):
    """A dump as text, which tells 1 from True; a refusal is one of any class."""
    try:
        return repr(dump(**options))
    except ValueError:
        return "refused"


DUMPS = [
    {},
    {"exclude_none": True},
    {"exclude_defaults": True},
    {"mode": "json"},
    {"mode": "json", "exclude_none": True, "exclude_defaults": True},
]


@examples(300)
@given(made=classes(shapes(2)), choice=st.data())
def test_both_read_or_refuse_the_same_data_and_dump_it_alike(made, choice):
    data = choice.draw(made.data)
    (ours, our_path), (theirs, their_path) = (read_by(each, data) for each in made.hint)

    assert our_path == their_path
    if our_path is not None:
        return
    for options in DUMPS:
        assert shown(ours.model_dump, **options) == shown(theirs.model_dump, **options)
    assert shown(ours.model_dump_json) == shown(theirs.model_dump_json)
    assert shown(ours.model_dump_json, indent=2) == shown(theirs.model_dump_json, indent=2)


# Each annotation with each datum: what random choices may take long to find.
DATA = [
    *(None, True, 0, 1, 2, -1, 2**70, 0.0, 1.0, 0.5, float("nan"), float("inf")),
    *(*FLAGS, *map(str.encode, FLAGS), "red", b"red", b"\xff", bytearray(b"on"), *Colour),
    *([], ["red"], ("red",), {"red"}, frozenset({"on"}), range(2), {"red": 1}.keys()),
    *({}, {"red": "on"}, {"x": None}, {1: "on"}, {None: "on"}, {b"a": "on"}, {b"a": 2}),
    *({b"\xff": "on"}, {Colour.ON: "on"}, {("a",): "on"}, {"x": {1: "on"}}, {"x": [1, ("a",)]}),
    *({"text": "a"}, {"text": 1}, {"is_set": True}, {"text": b"a", "is_set": 0.0, "other": 1}),
    *([{"text": "a"}], [{"text": 1}], [[]], {"x": {"text": 2}}, {"x": {"text": "a"}}, object()),
]
NESTED = pair_of({"text": Pair(str, str), "is_set": Pair(bool, bool)}, {"is_set": True})
SINGLE = [*(shape.hint for shape in PLAIN), NESTED]
HINTS = [
    *SINGLE,
    *(Pair(*(each | None for each in hint)) for hint in SINGLE),
    *(Pair(*(list[each] for each in hint)) for hint in SINGLE),
    *(Pair(*(dict[str, each] for each in hint)) for hint in SINGLE),
]


@pytest.mark.parametrize("hint", HINTS, ids=lambda hint: str(hint.theirs))
def test_each_annotation_reads_and_refuses_the_same_data(hint):
    made = pair_of({"field": hint}, {})

    assert [read_by(each, data)[1] for each in made for data in (None, "red", [])] == [()] * 6
    for data in DATA:
        (ours, our_path), (theirs, their_path) = (read_by(each, {"field": data}) for each in made)
        assert our_path == their_path, data
        if our_path is None:
            assert shown(ours.model_dump) == shown(theirs.model_dump)
            assert shown(ours.model_dump_json) == shown(theirs.model_dump_json)


def inlined(schema, defs):
    """A schema of pydantic as values write it: nested ones in place, no defaults and titles."""
    if "$ref" in schema:
        return inlined(defs[schema["$ref"].removeprefix("#/$defs/")], defs)
    kept = {key: schema[key] for key in ("type", "enum", "title", "required") if key in schema}
    if "properties" in schema:
        fields = {name: inlined(each, defs) for name, each in schema["properties"].items()}
        return {"required": [], **kept, "properties": fields}
    kept.pop("title", None)
    if "anyOf" in schema:
        kept["anyOf"] = [inlined(each, defs) for each in schema["anyOf"]]
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            kept[key] = inlined(schema[key], defs)
    return kept


@examples(100)
@given(made=classes(shapes(2)))
def test_both_have_the_same_json_schema(made):
    theirs = made.hint.theirs.model_json_schema()

    assert made.hint.ours.model_json_schema() == inlined(theirs, theirs.get("$defs", {}))


# --- Where they differ ------------------------------------------------------------------------


def reading(data, **options):
    return lambda made: made.model_validate({"field": data}, **options).field


def json_of(data):
    return lambda made: made.model_validate({"field": data}).model_dump_json()


def set_to_a_number(made):
    value = made.model_validate({"field": "a"})
    value.field = 5
    return value.field


def errors_of_two_fields(made):
    with pytest.raises(ValidationError) as caught:
        made.model_validate({"field": 5, "second": 5})
    return [(each["loc"], each["type"]) for each in caught.value.errors()]


REFUSED = "refused"
ANY = dict[str, Any]
# By reason: the annotation, the default, what is asked, and both answers.
DIFFERENCES = {
    "which fields were given is not remembered: exclude_unset means exclude_defaults": (
        str | None, None,
        lambda made: made.model_validate({"field": None}).model_dump(exclude_unset=True),
        {}, {"field": None},
    ),
    "nor in model_fields_set": (
        str | None, None, lambda made: made(field=None).model_fields_set, set(), {"field"},
    ),
    "a field that is set is checked": (str, ..., set_to_a_number, REFUSED, 5),
    "options of model_validate are ignored": (
        bool, ..., reading("yes", strict=True), True, REFUSED,
    ),
    "only the first error is reported, and as a sentence": (
        str, ..., errors_of_two_fields,
        [(("field",), "value_error")], [(("field",), "string_type"), (("second",), "string_type")],
    ),
    "text is not read from enums of numbers": (str, ..., reading(Number.ONE), REFUSED, "1"),
    "true and false are read from no numbers but int and float": (
        bool, ..., reading(Decimal(1)), REFUSED, True,
    ),
    "half characters are written to JSON, as an escape would be read": (
        str, ..., json_of("\ud800"), '{"field":"\ud800"}', REFUSED,
    ),
    "exponents of floats are spelled as Python spells them": (
        ANY, ..., json_of({"x": 1e-5}), '{"field":{"x":1e-05}}', '{"field":{"x":0.00001}}',
    ),
    "dict[str, Any] has keys of any type, as the parameters of openai_harmony's tools, a dict": (
        ANY, ..., reading({1: "a"}), {1: "a"}, REFUSED,
    ),
    "mappings inside become dicts in a dump": (
        ANY, ...,
        lambda made: type(made(field={"x": OrderedDict()}).model_dump()["field"]["x"]),
        dict, OrderedDict,
    ),
    "a JSON schema always lists what is required, and has no defaults and titles of fields": (
        bool, True, lambda made: made.model_json_schema(),
        {
            "type": "object", "title": "Made", "required": [],
            "properties": {"field": {"type": "boolean"}},
        },
        {
            "type": "object", "title": "Made",
            "properties": {"field": {"type": "boolean", "title": "Field", "default": True}},
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("hint", "default", "ask", "ours", "theirs"), DIFFERENCES.values(), ids=DIFFERENCES
)
def test_the_differences_are_those_of_the_table(hint, default, ask, ours, theirs):
    hints = {"field": Pair(hint, hint), "second": Pair(str, str)}
    if ask is not errors_of_two_fields:
        del hints["second"]
    made = pair_of(hints, {} if default is ... else {"field": default})

    def answer_of(owner):
        try:
            return ask(owner)
        except ValueError:
            return REFUSED

    assert (answer_of(made.ours), answer_of(made.theirs)) == (ours, theirs)
