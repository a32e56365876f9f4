"""The items of a header: their places, their text, their meaning."""

import pytest
from strategies import SPECIAL, VOCABULARY, tokens_of

from harmony_stream.parsing.header_buffer import HeaderBuffer
from harmony_stream.parsing.items import piece_of
from harmony_stream.values.messages import Role
from harmony_stream.values.read_header import Opening

CHANNEL = SPECIAL["<|channel|>"]


def width_of(item):
    return 1 if isinstance(item, int) else len(item)


def buffer_of(items, opening=Opening.START, first=1, limit=64):
    """A buffer of items that come one after the other."""
    buffer = HeaderBuffer(VOCABULARY, limit)
    buffer.open(opening, (Role.ASSISTANT, None), first - 1, first)
    place = first
    for item in items:
        buffer.append(piece_of(VOCABULARY, item, place, place + width_of(item)))
        place += width_of(item)
    return buffer


def test_each_item_is_kept_with_the_place_where_it_stops():
    buffer = buffer_of([173781, CHANNEL, 17196])
    assert (buffer.items, buffer.stops) == ([173781, CHANNEL, 17196], [2, 3, 4])
    assert buffer.read(closed=True).header.channel == "final"


def test_opening_a_header_forgets_the_one_before():
    buffer = buffer_of(tokens_of("assistant to=f"))
    buffer.open(Opening.CONTINUED, (Role.TOOL, "g"), 7, 7)
    assert (buffer.items, buffer.stops, buffer.room) == ([], [], 64)
    header = buffer.read(closed=True).header
    assert (header.role, header.name, header.recipient) == (Role.TOOL, "g", None)


def test_marked_text_is_read_the_same_wherever_it_was_cut():
    whole, cut = buffer_of(["assistant to=f"]), buffer_of(["assis", "tant ", "to", "=f"])
    assert cut.read(closed=True) == whole.read(closed=True)
    assert (cut.items, cut.stops) == (whole.items, whole.stops)


def test_only_pieces_between_markers_are_joined():
    buffer = buffer_of(["assis", "tant", CHANNEL, "fi", "nal"])
    assert buffer.read(closed=True).header.channel == "final"
    assert (buffer.items, buffer.stops) == (["assistant", CHANNEL, "final"], [10, 11, 16])


def test_the_text_spells_markers_out_and_the_plain_text_leaves_them_out():
    buffer = buffer_of([173781, CHANNEL, 17196])
    assert (buffer.text(), buffer.plain_text()) == ("assistant<|channel|>final", "assistantfinal")
    assert buffer_of([]).text() == ""


def test_what_a_prompt_holds_of_a_header_is_in_its_text_and_not_in_its_plain_text():
    buffer = buffer_of(tokens_of("assistant to=f"))
    buffer.begin_here()
    buffer.append(piece_of(VOCABULARY, 17196, 0, 1))
    assert (buffer.text(), buffer.plain_text()) == ("assistant to=ffinal", "final")
    assert [*buffer.fed()] == [(17196, 1)]
    assert (buffer.start, buffer.first) == (0, 0)


def test_a_piece_that_is_left_out_moves_the_beginning():
    buffer = buffer_of([])
    buffer.begin_after(piece_of(VOCABULARY, SPECIAL["<|startoftext|>"], 1, 2))
    assert (buffer.start, buffer.first) == (2, 2)


@pytest.mark.parametrize(
    ("items", "number", "skipped", "position"),
    [
        ([173781, 17196], 1, 3, 2),  # a token is not cut
        (["é to=f"], 0, 3, 3),  # characters of a text
        ([b"\xc3\xa9 to=f"], 0, 3, 4),  # bytes of bytes
        (["ab", CHANNEL, "cd"], 2, 1, 5),
    ],
)
def test_the_position_of_a_byte_counts_what_was_fed(items, number, skipped, position):
    assert buffer_of(items).position(number, skipped) == position


def test_the_rest_of_a_header_comes_in_pieces_from_a_byte_on():
    buffer = buffer_of(["ab", CHANNEL, "cd"])
    rest = [(piece.data, piece.start, piece.stop) for piece in buffer.pieces_from(0, 1)]
    assert rest == [(b"b", 2, 3), (b"<|channel|>", 3, 4), (b"cd", 4, 6)]


def test_the_room_is_what_the_limit_leaves():
    assert buffer_of([173781, CHANNEL], limit=3).room == 1
    assert buffer_of(["abcd"], limit=3).room == -1


def test_a_copy_goes_its_own_way():
    buffer = buffer_of([173781])
    twin = buffer.copy()
    buffer.append(piece_of(VOCABULARY, CHANNEL, 2, 3))
    assert (twin.items, twin.stops, twin.room) == ([173781], [2], 63)
