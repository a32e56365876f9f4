"""Frames of bytes. What they say as text is tested in tests/adapters/test_sse.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import cut, examples, places

from harmony_stream.support.event_stream import Frame, FrameReader

MARK = b"\xef\xbb\xbf"


def frames_of(*pieces, **options):
    reader = FrameReader(**options)
    return [frame for piece in pieces for frame in reader.feed(piece)] + [*reader.close()]


# bytes -> frames
STREAMS = {
    "nothing": (b"", []),
    "one frame": (b"data: a\n\n", [Frame(1, b"a")]),
    "lines of data are joined": (b"data: a\ndata\ndata:b\n\n", [Frame(1, b"a\n\nb")]),
    "only one space goes": (b"data:  a \n\n", [Frame(1, b" a ")]),
    "the first line of data counts": (b":\n\nevent: x\ndata: a\n\n", [Frame(4, b"a", b"x")]),
    "a name holds for one frame": (
        b"event: x\ndata: a\n\ndata: b\n\n",
        [Frame(2, b"a", b"x"), Frame(4, b"b")],
    ),
    "an id holds until the next": (
        b"id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
        [Frame(2, b"a", id=b"7"), Frame(4, b"b", id=b"7"), Frame(7, b"c")],
    ),
    "an id with a null is passed over": (
        b"id: 7\nid: \0\ndata: a\n\n",
        [Frame(3, b"a", id=b"7")],
    ),
    "a retry is digits": (
        b"retry: 250\nretry: soon\nretry: -1\ndata: a\n\ndata: b\n\n",
        [Frame(4, b"a", retry=b"250"), Frame(6, b"b")],
    ),
    "a retry has at most 15 digits": (
        b"retry: %s\ndata: a\n\nretry: %s\ndata: b\n\n" % (b"9" * 15, b"9" * 16),
        [Frame(2, b"a", retry=b"9" * 15), Frame(5, b"b")],
    ),
    "a frame without data is none": (b"event: x\nid: 7\n\ndata: a\n\n", [Frame(4, b"a", id=b"7")]),
    "a frame that is left open": (
        b"data: a\n\ndata: b\n",
        [Frame(1, b"a"), Frame(3, b"b", is_open=True)],
    ),
    "a line that is left open": (b"data: a\ndata: b", [Frame(1, b"a\nb", is_open=True)]),
    "a line that is left open and is no data": (b"data: a\n\nid: 7", [Frame(1, b"a")]),
    "carriage returns": (b"data: a\r\rdata: b\r\r", [Frame(1, b"a"), Frame(3, b"b")]),
    "both": (b"data: a\r\ndata: b\r\n\r\n", [Frame(1, b"a\nb")]),
    "a mixture": (b"data: a\rdata: b\n\r\n", [Frame(1, b"a\nb")]),
    "no other byte ends a line": (b"data: a\x0b\x0c\x85b\n\n", [Frame(1, b"a\x0b\x0c\x85b")]),
    "bytes that are no text": (b"data: \xff\n\n", [Frame(1, b"\xff")]),
    "a byte-order mark": (MARK + b"data: a\n\n", [Frame(1, b"a")]),
    "a mark further down": (b"data: a\n\n" + MARK + b"data: b\n\n", [Frame(1, b"a")]),
}  # fmt: skip


@pytest.mark.parametrize(("data", "frames"), STREAMS.values(), ids=STREAMS)
def test_frames_are_read_as_the_standard_says_however_they_are_cut(data, frames):
    for size in (1, 2, 3, len(data) or 1):
        pieces = [data[place : place + size] for place in range(0, len(data), size)]
        assert frames_of(*pieces) == frames
        assert frames_of(*(part for piece in pieces for part in (b"", piece))) == frames


@given(st.lists(st.sampled_from([b"data", b"id", b":", b" ", b"a", b"\r", b"\n", MARK])), places)
@examples(200)
def test_where_bytes_are_cut_makes_no_difference(parts, places):
    data = b"".join(parts)
    assert frames_of(*cut(data, places)) == frames_of(data)


def test_files_that_were_joined_have_a_mark_where_each_begins():
    data = b"data: a\n\n" + MARK + b"data: b\n\n"
    assert frames_of(data, is_joined=True) == [Frame(1, b"a"), Frame(3, b"b")]


# longest frame, bytes -> what is kept of the data
LIMITS = [
    (9, b"data: abcd\ndata: efgh\n\n", [b"abcd\nefgh"]),
    (8, b"data: abcd\ndata: efgh\n\ndata: b\n\n", [None, b"b"]),
    (8, b"data: a\ndata: bcdefgh\ndata: i\n\n", [None]),
    (9, b"data: " + b"a" * 99 + b"\n\ndata: b\n\n", [None, b"b"]),
]


@pytest.mark.parametrize(("max_bytes", "data", "kept"), LIMITS)
def test_a_frame_that_is_too_long_is_given_without_its_data(max_bytes, data, kept):
    for size in (1, 5, len(data)):
        pieces = [data[place : place + size] for place in range(0, len(data), size)]
        assert [frame.data for frame in frames_of(*pieces, max_bytes=max_bytes)] == kept


@pytest.mark.parametrize("size", [1, 2, 5, 7, 99, 100, 101, 106])
@pytest.mark.parametrize("head", [b"data: ", b"data:", b"\xef\xbb\xbfdata: "])
@pytest.mark.parametrize(
    ("length", "is_kept"), [(99, True), (100, True), (101, False), (110, False)]
)
def test_a_frame_is_whole_or_without_data_however_it_is_cut(size, head, length, is_kept):
    data = head + b"a" * length + b"\n\n"
    pieces = [data[place : place + size] for place in range(0, len(data), size)]
    assert frames_of(*pieces, max_bytes=100) == [Frame(1, b"a" * length if is_kept else None)]


@pytest.mark.parametrize(
    ("line", "is_unknown"),
    [
        *((line, False) for line in (b"", b": text", b":", b" : text", b"data: \0", b"id: \0")),
        *((line, False) for line in (b"event: x", b"retry: soon", ": 潮".encode())),
        *((line, True) for line in (b"colour: red", b"Data: a", b" data: a", b"hello")),
        *((line, True) for line in (b": \0", b": \xff")),
    ],
)
def test_a_reader_knows_whether_all_lines_were_fields_or_comments(line, is_unknown):
    reader = FrameReader()
    assert list(reader.feed(b"data: a\n" + line + b"\n\n"))
    assert reader.has_unknown is is_unknown


@pytest.mark.parametrize(
    ("data", "is_between"),
    [
        *((data, True) for data in (b"", b"data: a\n\n", b":\n", b"id: 7\n")),
        *((data, False) for data in (b"d", b"data: a\n", b"event: x\n", b"retry: 5\n", b":")),
    ],
)
def test_a_reader_knows_whether_a_frame_is_under_way(data, is_between):
    reader = FrameReader()
    list(reader.feed(data))
    assert reader.is_between_frames is is_between
