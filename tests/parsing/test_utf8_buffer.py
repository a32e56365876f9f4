"""Characters out of bytes that are cut anywhere."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from harmony_stream.parsing.utf8_buffer import Utf8Buffer


def taken(buffer, pieces):
    """The texts of pieces that are one token each, with the token in which each begins."""
    return [buffer.take(data, place, place + 1) for place, data in enumerate(pieces)]


@pytest.mark.parametrize(
    ("pieces", "texts"),
    [
        ([b"a"], [("a", 0)]),
        ([b"\xf0\x9f", b"\xa6\x86"], [("", 0), ("🦆", 0)]),
        ([b"\xf0", b"\x9f", b"\xa6", b"\x86b"], [("", 0), ("", 0), ("", 0), ("🦆b", 0)]),
        ([b"a\xe2", b"\x82\xac", b"b"], [("a", 0), ("€", 1), ("b", 2)]),
        ([b"\xff", b"a"], [("\ufffd", 0), ("a", 1)]),
        ([b"\xe2\x82", b"a"], [("", 0), ("\ufffda", 0)]),
    ],
)
def test_a_character_comes_with_the_token_that_finishes_it(pieces, texts):
    assert taken(Utf8Buffer(), pieces) == texts


def test_an_unfinished_character_becomes_one_u_fffd_when_it_is_given_up():
    buffer = Utf8Buffer()
    taken(buffer, [b"a", b"\xf0\x9f"])
    assert (buffer.held, buffer.mark) == (b"\xf0\x9f", 1)
    assert [buffer.flush(), buffer.flush()] == ["\ufffd", ""]


def test_a_copy_goes_its_own_way():
    buffer = Utf8Buffer()
    taken(buffer, [b"a", b"\xe2"])
    twin = buffer.copy()
    buffer.flush()
    assert twin.take(b"\x82\xac", 2, 3) == ("€", 1)


@given(st.binary(max_size=30), st.lists(st.integers(0, 30), max_size=6))
@examples(200)
def test_the_text_does_not_depend_on_where_the_bytes_are_cut(data, cuts):
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    buffer = Utf8Buffer()
    pieces = [data[a:b] for a, b in pairwise(places)]
    text = "".join(text for text, _ in taken(buffer, pieces)) + buffer.flush()
    assert text == data.decode("utf-8", "replace")
