"""JSON is one line to every reader, and short texts are made into it once."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from harmony_stream.adapters.json_line import QuotedTexts, to_json

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
@examples(200)
def test_json_is_one_line_to_every_reader_and_says_the_same(value):
    text = to_json(value)
    assert len(text.splitlines()) == 1
    assert json.loads(text) == value
    text.encode()


@pytest.mark.parametrize(
    "text", ["a\u2028b", "a\u2029b", "a\x85b", "a\r\n\x0b\x0c\x1cb", "日本 🦆"]
)
def test_what_some_readers_take_for_the_end_of_a_line_is_escaped(text):
    assert to_json(text).splitlines() == [to_json(text)]
    assert json.loads(to_json(text)) == text


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_does_not_know_is_refused(number):
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json({"logprob": number})


# -- Texts that are kept --


@given(st.lists(st.text() | st.sampled_from(["\ud83e", "\u2028", "é" * 40])))
@examples(100)
def test_a_text_is_the_same_json_each_time_it_is_read(texts):
    quoted = QuotedTexts()
    for text in texts + texts:
        assert quoted[text] == to_json(text).encode()


def test_short_texts_are_kept_and_long_ones_are_not():
    quoted = QuotedTexts()
    for text in ("a" * 32, "b" * 33):
        assert quoted[text]
    assert list(quoted) == ["a" * 32]
    assert quoted["a" * 32] is quoted["a" * 32]


def test_texts_that_are_kept_never_grow_without_bound():
    class Small(QuotedTexts):
        _MOST = 3

    quoted = Small()
    for number in range(100):
        assert quoted[str(number)] == f'"{number}"'.encode()
        assert len(quoted) <= 3
    assert quoted["99"] is quoted["99"]
