"""JSON nests as deep as we say, on each Python and however deep the caller is."""

import pytest

from harmony_stream.support.json_text import MAX_DEPTH, NestingError, check_depth, dumps, loads

SENTENCE = "nested too deeply: more than 128 levels"


def arrays(depth):
    return "[" * depth + "]" * depth


def objects(depth):
    return '{"a":' * depth + "1" + "}" * depth


def both(depth):
    return arrays(depth % 2).join(['{"a":[' * (depth // 2), "]}" * (depth // 2)])


def beside_others(depth):
    return f"[[], 1, {arrays(depth - 1)}, {{}}]"


SHAPES = pytest.mark.parametrize("shape", [arrays, objects, both, beside_others])


@SHAPES
def test_the_deepest_json_is_read_and_written(shape):
    value = loads(shape(MAX_DEPTH))

    assert loads(dumps(value)) == value


@SHAPES
@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 900, 5000, 100_000])
def test_what_nests_deeper_is_refused_with_the_limit(shape, depth):
    with pytest.raises(NestingError, match=SENTENCE):
        loads(shape(depth))


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 900, 5000, 100_000])
@pytest.mark.parametrize("around", [lambda inner: [inner], lambda inner: {"a": inner}])
def test_what_nests_deeper_is_not_written(around, depth):
    value = 1
    for _ in range(depth):
        value = around(value)

    with pytest.raises(NestingError, match=SENTENCE):
        dumps(value)


def test_tuples_count_as_the_arrays_that_they_are_written_as():
    value = ()
    for _ in range(MAX_DEPTH):
        value = (value,)

    with pytest.raises(NestingError):
        dumps(value)


@pytest.mark.parametrize("value", [1, "a", None, "[" * 1000])
def test_what_is_neither_array_nor_object_has_no_depth(value):
    check_depth(value)


def test_what_holds_itself_is_refused_too():
    value = []
    value.append(value)

    with pytest.raises(ValueError, match="Circular"):
        dumps(value)


def test_options_are_those_of_json():
    assert loads(b"[1]", parse_int=str) == ["1"]
    assert dumps([1, 2], separators=(",", ":")) == "[1,2]"
