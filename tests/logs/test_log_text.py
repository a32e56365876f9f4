"""Text of any log: it says the same however its lines end and its bytes are cut, in few bytes."""

import gc
import gzip
import io
import itertools
import json
import subprocess
import sys
import time
import tracemalloc
import zlib
from array import array

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from log_shapes import (
    FIRST,
    ROWS,
    SECOND,
    arrow_file,
    arrow_stream,
    llama_cpp_events,
    npy,
    parquet,
    sse,
    vllm_events,
)
from strategies import examples

from harmony_stream.logs import LogError, LogWarning, ReadOptions, read_log
from harmony_stream.logs.read import detect, read_items
from harmony_stream.logs.readers import json_lines as text
from harmony_stream.logs.readers import json_values
from harmony_stream.logs.readers.json_values import json_of

MARK = b"\xef\xbb\xbf"

# Name, a log with LF, its format. Each has two completions, but the plain ids.
LOGS = {
    "plain ids": (b"\n".join(b"%d" % token for token in FIRST) + b"\n", "ids"),
    "a document of arrays": (json.dumps(ROWS, indent=1).encode() + b"\n", "json"),
    "a document of objects": (
        json.dumps([{"ids": row} for row in ROWS], indent=1).encode() + b"\n",
        "json",
    ),
    "lines of arrays": (b"%s\n%s\n" % tuple(json.dumps(row).encode() for row in ROWS), "jsonl"),
    "lines of objects": (b"".join(b'{"ids": %s}\n' % str(row).encode() for row in ROWS), "jsonl"),
    "vLLM": (sse([*vllm_events(), *vllm_events(SECOND, 0, "b")]), "sse"),
    "llama.cpp": (sse([*llama_cpp_events(), *llama_cpp_events(SECOND)], done=False), "sse"),
    "events that begin with a comment": (b": ping\n\n" + sse(vllm_events()), "sse"),
    "events that begin with a name": (b"event: message\n" + sse(vllm_events()), "sse"),
    "events that begin with an id": (b"id: 7\n" + sse(vllm_events()), "sse"),
    "events that begin with a retry": (b"retry: 250\n" + sse(vllm_events()), "sse"),
    "events that begin with retry, and blank": (b"retry: 250\n\n" + sse(vllm_events()), "sse"),
}


def mixed(data):
    """Lines that end by turns in LF, CR and CRLF."""
    ends = [b"\n", b"\r", b"\r\n"]
    parts = data.split(b"\n")
    whole = [part + ends[n % 3] for n, part in enumerate(parts[:-1])]
    # A CR before an empty line that ends in LF would be one end of line.
    return b"".join(whole).replace(b"\r\n", b"\r\r\n\n") + parts[-1]


WAYS = {
    "as it is": lambda data: data,
    "with a mark of byte order": lambda data: MARK + data,
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "CR": lambda data: data.replace(b"\n", b"\r"),
    "mixed": mixed,
    "no last line end": lambda data: data.rstrip(b"\n"),
    "blank lines first": lambda data: b"\n\r\n\r \n".replace(b" ", b"") + data,
    "mark, CRLF, no last line end": lambda data: MARK + data.rstrip().replace(b"\n", b"\r\n"),
}
PACKED = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


class Pipe(io.RawIOBase):
    """Gives so many bytes at a time, and cannot seek."""

    def __init__(self, data, size):
        self.data = io.BytesIO(data)
        self.size = size

    def readable(self):
        return True

    def read(self, size=-1):
        return self.data.read(min(size, self.size))


def read(data, **options):
    return list(read_log(data, ReadOptions(**options), strict=True))


@pytest.mark.parametrize("pack", PACKED.values(), ids=PACKED)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(("data", "kind"), LOGS.values(), ids=LOGS)
def test_a_log_says_the_same_however_its_lines_end(data, kind, way, pack):
    wanted = [list(record.completion) for record in read(io.BytesIO(data))]
    other = way(data)

    assert wanted in (ROWS, [FIRST])
    assert detect(other) == kind
    for options in ({}, {"format": kind}):
        for stream in (io.BytesIO(pack(other)), Pipe(pack(other), 3)):
            assert [list(r.completion) for r in read(stream, **options)] == wanted


@given(
    st.sampled_from(sorted(LOGS)), st.sampled_from(sorted(WAYS)), st.integers(1, 40), st.booleans()
)
@examples(100)
def test_a_log_says_the_same_in_pieces_of_any_size(name, way, size, is_told):
    data, kind = LOGS[name]
    wanted = [list(record.completion) for record in read(io.BytesIO(data))]
    options = {"format": kind} if is_told else {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_BLOCK", size)
        found = read(Pipe(WAYS[way](data), size), **options)
    assert [list(record.completion) for record in found] == wanted


@pytest.mark.parametrize("block", [1, 2, 3, 1 << 19])
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_lines_are_counted_however_they_end_and_wherever_they_are_cut(end, block, monkeypatch):
    monkeypatch.setattr(text, "_BLOCK", block)
    data = end.join(["", '{"ids": [5]}', "x", "", '{"ids": [6]}', ""]).encode()

    found = list(read_items(io.BytesIO(data), ReadOptions()))

    assert [item.place for item in found] == ["line 2", "line 3", "line 5"]
    for kind, wanted in (("json", "line 4, column 2"), ("ids", "line 4")):
        data = end.join(["", "[[5]," if kind == "json" else "5", "", " x"]).encode()
        (*_, error) = read_items(io.BytesIO(data), ReadOptions(format=kind))
        assert error.place == wanted


def test_lines_that_were_joined_each_with_its_mark_are_read():
    data = MARK + b"[5]\n" + MARK + b"[6]\n"

    assert [list(record.completion) for record in read(io.BytesIO(data))] == [[5], [6]]


# -- What is no text in UTF-8 ----------------------------------------------------------------------

UTF_16 = [("[5]", encoding) for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32")] + [
    ("data: [5]\n\n", "utf-16"),
    (": \n", "utf-16-le"),
    ("5 6", "utf-16"),
]


@pytest.mark.parametrize("kind", [None, "ids", "json", "jsonl", "sse"])
@pytest.mark.parametrize(("words", "encoding"), UTF_16)
def test_text_in_utf_16_is_refused_with_the_remedy(words, encoding, kind):
    with pytest.raises(LogError, match=r"begins with b'.*', is text in UTF-16.*; save it as UTF-8"):
        read(io.BytesIO(words.encode(encoding)), format=kind)


# -- Logs that hold nothing ------------------------------------------------------------------------

NOTHING = {
    "no bytes": b"",
    "white space": b" \r\n\t\n",
    "a mark of byte order": MARK,
    "white space after it": MARK + b"\n",
    "much white space": b" \n" * 50_000,
}
EMPTY = [("", "empty, expected token ids", True)]


@pytest.mark.parametrize("pack", PACKED.values(), ids=PACKED)
@pytest.mark.parametrize("kind", [None, "ids", "json", "jsonl", "sse"])
@pytest.mark.parametrize("data", NOTHING.values(), ids=NOTHING)
def test_a_log_that_holds_nothing_has_no_record_in_any_format_and_says_so(data, kind, pack):
    found = list(read_items(io.BytesIO(pack(data)), ReadOptions(format=kind)))

    assert [(each.place, each.reason, each.is_cut) for each in found] == EMPTY
    with pytest.warns(LogWarning, match="<stream>: empty, expected token ids"):
        assert list(read_log(io.BytesIO(data))) == []


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet", "arrow"])
def test_a_binary_log_of_no_bytes_is_empty_too(kind):
    found = list(read_items(io.BytesIO(b""), ReadOptions(format=kind)))

    assert [(each.place, each.reason, each.is_cut) for each in found] == EMPTY


@pytest.mark.parametrize(
    ("data", "lengths"),
    [
        (b"[]", [0]),
        (b"[[]]", [0]),
        (b"[[], []]", [0, 0]),
        (b'{"ids": []}', [0]),
        (b"[[], [5]]", [0, 1]),
    ],
)
@pytest.mark.parametrize("kind", [None, "json"])
def test_an_empty_list_is_an_empty_completion(data, lengths, kind):
    found = read(io.BytesIO(data), format=kind)

    assert [len(record.completion) for record in found] == lengths


def test_what_follows_much_white_space_needs_its_format_told():
    data = b"\n" * 100_000 + b"[5]\n"

    with pytest.raises(LogError, match="begins with more than 65536 bytes of white space; name"):
        read(io.BytesIO(data))
    assert [record.place for record in read(io.BytesIO(data), format="jsonl")] == ["line 100001"]


# -- Compressed data that are cut ------------------------------------------------------------------

CUT = "the compressed data are cut off"


def packed_parts(data, pack):
    """So much of the compressed data that some, and not all, can be read."""
    packed = pack(data)
    return packed[: len(packed) * 2 // 3]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
@pytest.mark.parametrize("kind", ["ids", "json", "jsonl", "sse"])
def test_only_lines_and_events_may_be_cut_in_compressed_data(kind, pack):
    rows = [[(7919 * n * n + token) % 199_000 for token in range(50)] for n in range(1, 4000)]
    data = {
        "ids": str(list(itertools.chain(*rows))).strip("[]").encode(),
        "json": json.dumps(rows).encode(),
        "jsonl": "\n".join(map(str, rows)).encode(),
        "sse": sse([{"id": n, "stop": True, "token_ids": row} for n, row in enumerate(rows)]),
    }[kind]

    *found, last = read_items(io.BytesIO(packed_parts(data, pack)), ReadOptions())

    is_growing = kind in ("jsonl", "sse")
    assert found
    assert (last.reason, last.is_cut, last.ends_log) == (CUT, is_growing, not is_growing)
    errors = [item for item in found if isinstance(item, LogError)]
    assert all(error.is_cut == is_growing for error in errors)


def test_compressed_data_of_which_nothing_can_be_read_are_unreadable():
    (error,) = read_items(io.BytesIO(gzip.compress(b"[5]\n")[:11]), ReadOptions())

    assert (error.reason, error.is_cut, error.ends_log) == (CUT, False, True)


def test_a_table_in_compressed_data_that_are_cut_is_refused_for_that():
    with pytest.raises(LogError, match=CUT):
        read(io.BytesIO(gzip.compress(b"PAR1" + bytes(range(256)) * 9)[:150]))


@pytest.mark.parametrize("padding", [1, 100_000])
def test_zeros_between_and_after_compressed_parts_are_padding(padding):
    zeros = bytes(padding)
    data = gzip.compress(b"[5]\n") + zeros + gzip.compress(b"[6]\n") + zeros

    assert [list(record.completion) for record in read(io.BytesIO(data))] == [[5], [6]]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_compressed_parts_that_give_more_than_is_asked_for_are_read_whole(pack, monkeypatch):
    monkeypatch.setattr(text, "_BLOCK", 1000)
    numbers = [7919 * number * number % 199_999 for number in range(30_000)]
    part = b"".join(b"[%d]\n" % number for number in numbers)

    found = read(io.BytesIO(pack(part) + pack(part)))

    assert [record.completion[0] for record in found] == numbers * 2


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_compressed_lines_that_are_broken_are_no_log_that_grows(pack):
    numbers = [7919 * number * number % 199_999 for number in range(60_000)]
    data = bytearray(pack(b"".join(b"[%d]\n" % number for number in numbers)))
    data[len(data) // 2 : len(data) // 2 + 200] = b"\xff" * 200

    found = list(read_items(io.BytesIO(bytes(data)), ReadOptions()))

    assert len(found) > 1
    assert "the compressed data are broken: " in found[-1].reason
    assert (found[-1].is_cut, found[-1].ends_log) == (False, True)


def test_compressed_lines_that_are_cut_before_the_first_are_unreadable():
    packer = zlib.compressobj(wbits=31)
    data = packer.compress(b"\n\n") + packer.flush(zlib.Z_SYNC_FLUSH)

    (error,) = read_items(io.BytesIO(data), ReadOptions(format="jsonl"))

    assert (error.reason, error.is_cut, error.ends_log) == (CUT, False, True)


# -- Long records ----------------------------------------------------------------------------------


@pytest.fixture
def frugal(monkeypatch):
    """Values of any length are read as long ones are."""
    monkeypatch.setattr(json_values, "_DECODER", json_values._FRUGAL)
    monkeypatch.setattr(json_values, "_WORTH", 1)


def as_lists(value):
    if isinstance(value, array):
        return value.tolist()
    if isinstance(value, list):
        return list(map(as_lists, value))
    if isinstance(value, dict):
        return {name: as_lists(each) for name, each in value.items()}
    return value


ids_like = st.lists(st.integers(0, 2**32 - 1), max_size=30)
odd_items = st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False) | ids_like


@given(
    ids_like
    | st.lists(odd_items, max_size=9)
    | st.dictionaries(st.text(max_size=2), ids_like, max_size=2),
    st.sampled_from([None, 1]),
    st.data(),
)
@examples(300)
def test_long_values_are_what_the_standard_library_reads(value, indent, data):
    written = json.dumps(value, indent=indent)
    place = data.draw(st.integers(0, len(written)))
    broken = (
        written[:place] + data.draw(st.sampled_from(["", ",", "]", "0", "x"])) + written[place:]
    )
    decoder = json_values._FRUGAL
    for each in (written, broken, written[:place]):
        try:
            wanted = json.loads(each)
        except json.JSONDecodeError:
            with pytest.raises(json.JSONDecodeError):
                decoder.decode(each)
        else:
            assert json.dumps(as_lists(decoder.decode(each))) == json.dumps(wanted)


def test_runs_of_ids_in_long_values_are_arrays():
    ids = list(range(200_000))
    for value, found in (
        (ids, json_of(json.dumps(ids).encode())),
        (ids, json_of(json.dumps({"a": ids}).encode())["a"]),
        (ids, json_of(json.dumps({"a": [ids, ids]}).encode())["a"][1]),
    ):
        assert found == array("I", value)


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("-1]", "item 200000 of the completion is -1, expected a token id"),
        ("4294967296]", "item 200000 of the completion is 4294967296, expected a token id"),
        ("true]", "item 200000 of the completion is true, expected a token id"),
        ("]", "not JSON: Expecting value"),
        ("01]", "not JSON: Expecting ',' delimiter"),
        ("[5]]", "item 200000 of the completion is an array, expected a token id"),
    ],
)
def test_what_is_wrong_with_a_long_record_is_told_as_with_a_short_one(end, reason):
    ids = "".join(f"{token}," for token in range(200_000))
    data = f'[5]\n{{"token_ids": [{ids}{end}}}\n[6]\n'.encode()

    first, error, last = read_items(io.BytesIO(data), ReadOptions())

    assert (error.place, error.reason[: len(reason)]) == ("line 2", reason)
    assert [list(first.completion), list(last.completion)] == [[5], [6]]


def test_choices_of_a_long_record_are_read(frugal):
    data = json.dumps({"completion_ids": [FIRST, SECOND], "prompt_ids": [[5], [6]]}).encode()

    found = read(io.BytesIO(data))

    assert [(list(r.completion), list(r.prompt), r.choice) for r in found] == [
        (FIRST, [5], 0),
        (SECOND, [6], 1),
    ]


SIZE = 100
LONG = json.dumps(list(range(1000, 1100))).encode()
TOO_LONG = "longer than 100 bytes; if that is intended, raise max_record_bytes (--max-record-bytes)"
TOO_LONG_LOGS = {
    "a line": ("jsonl", b"[5]\n%s\n[6]\n" % LONG, "line 2", 2),
    "a line of white space": ("jsonl", b"[5]\n" + b" " * 500 + b"\n[6]\n", "line 2", 2),
    "a last line": ("jsonl", b"[5]\n[6]\n%s" % LONG, "line 3", 2),
    "a row": ("json", b"[[5], %s, [6]]" % LONG, "row 2, which begins in line 1", 2),
    "a row of characters": (
        "json",
        b'[[5], {"ids": [6], "a": "%s"}, [6]]' % ("é" * 45).encode(),
        "row 2, which begins in line 1",
        2,
    ),
    "a document": ("json", b"%s" % LONG, "row 1, which begins in line 1", 0),
    "ids": ("ids", LONG.strip(b"[]"), "line 1", 0),
}


@pytest.mark.parametrize("block", [7, 1 << 19])
@pytest.mark.parametrize(
    ("kind", "data", "place", "good"), TOO_LONG_LOGS.values(), ids=TOO_LONG_LOGS
)
def test_a_record_that_is_too_long_is_refused_with_the_remedy(
    kind, data, place, good, block, monkeypatch
):
    monkeypatch.setattr(text, "_BLOCK", block)

    found = list(read_items(io.BytesIO(data), ReadOptions(format=kind, max_record_bytes=SIZE)))

    (error,) = (item for item in found if isinstance(item, LogError))
    assert error.reason.startswith(TOO_LONG)
    assert not error.is_cut
    if error.ends_log and kind == "json":  # nobody knows how far the record goes
        assert error.place.startswith("line 1, column ")
    else:
        assert error.place == place
        assert len(found) == good + 1


@pytest.mark.parametrize("write", [parquet, arrow_file, arrow_stream])
def test_a_row_of_a_table_that_is_too_long_is_refused_and_the_others_are_read(write):
    table = pa.table({"ids": [[5], [6] * 13, [7] * 12]})

    first, error, last = read_items(io.BytesIO(write(table)), ReadOptions(max_record_bytes=96))

    assert (error.place, error.reason) == ("row 2", TOO_LONG.replace("100", "96"))
    assert (len(first.completion), len(last.completion)) == (1, 12)


def test_rows_of_an_array_that_are_too_long_are_refused():
    options = {"max_record_bytes": 96}

    assert len(read(io.BytesIO(npy(np.ones((2, 12), np.int64))), **options)) == 2
    with pytest.raises(LogError, match="<stream>: a row of 104 bytes: longer than 96 bytes; if"):
        read(io.BytesIO(npy(np.ones((2, 13), np.int64))), **options)


def test_a_record_that_is_as_long_as_it_may_be_is_read():
    for data in (b"[5,6]", b"[5,6]\n[7,8]\n", b"[[5,6],[7,8]]", b"5 6 7", b"data:[5,6]\n\n"):
        items = list(read_items(io.BytesIO(data), ReadOptions(max_record_bytes=5)))
        too_long = [item for item in items if "longer" in getattr(item, "reason", "")]
        assert too_long == []


def test_a_line_is_too_long_wherever_it_is_cut(monkeypatch):
    for block in range(1, 20):
        monkeypatch.setattr(text, "_BLOCK", block)
        data = io.BytesIO(b"[5,6,7,8,90]\n[5]\n")

        error, record = read_items(data, ReadOptions(format="jsonl", max_record_bytes=10))

        assert error.reason == TOO_LONG.replace("100", "10")
        assert list(record.completion) == [5]


def test_a_number_in_a_document_is_one_row_wherever_it_is_cut(monkeypatch):
    for block in range(1, 20):
        monkeypatch.setattr(text, "_BLOCK", block)

        first, error, last = read_items(io.BytesIO(b"[[5], 1234, [6]]"), ReadOptions(format="json"))

        assert error.place == "row 2, which begins in line 1"
        assert [list(first.completion), list(last.completion)] == [[5], [6]]


def test_white_space_of_other_kinds_stands_between_plain_ids():
    assert [list(r.completion) for r in read(io.BytesIO(b"5\x0b6\x0c007\r8"))] == [[5, 6, 7, 8]]


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "5", None])
def test_a_limit_that_is_none_is_refused(value):
    with pytest.raises(ValueError, match=r"max_record_bytes: .* is not a positive number of bytes"):
        ReadOptions(max_record_bytes=value)


# -- Memory and time -------------------------------------------------------------------------------

MEGABYTE = 1 << 20
IDS = [200_005, 17_196, 5] * 60_000  # 1.4 MB of JSON
LONG_LOGS = {
    "plain ids": str(IDS).strip("[]").encode(),
    "a document": json.dumps(IDS, indent=0).encode(),
    "a line": json.dumps(IDS).encode(),
    "a line of an object": json.dumps({"token_ids": IDS}).encode() + b"\n",
    "a row of objects": json.dumps([{"token_ids": IDS}]).encode(),
    "an event": b"data: " + json.dumps({"token_ids": IDS}).encode() + b"\n\n",
}


def peak_of(data, **options):
    """Bytes that reading takes at most, beside the log itself."""
    tracemalloc.start()
    try:
        for _ in read_items(io.BytesIO(data), ReadOptions(**options)):
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("pack", [lambda data: data, lambda data: zlib.compress(data, 9, 31)])
@pytest.mark.parametrize("data", LONG_LOGS.values(), ids=LONG_LOGS)
def test_a_record_of_ids_takes_six_times_its_bytes_at_most(data, pack):
    assert peak_of(pack(data)) < 6 * len(data) + 4 * MEGABYTE


def test_a_log_of_many_records_takes_no_more_than_one_block_of_them():
    for data in (b"[%s[]]" % (b"[]," * 15_000), b"[]\n" * 15_000):
        assert peak_of(data) < 4 * MEGABYTE


# Format, how the log begins, how it goes on.
BOMBS = {
    "a line of spaces": ("jsonl", b"[5]\n", b" "),
    "a line of zeros": ("jsonl", b"[5]\n", b"0"),
    "a line of arrays": ("jsonl", b"[5]\n", b"[0,"),
    "a line of a string": ("jsonl", b'["', b"a"),
    "a document of ids": ("json", b"[", b"0,"),
    "a document of one number": ("json", b"[[5], ", b"1"),
    "a document of spaces": ("json", b"[[5], ", b" "),
    "a document that is nested": ("json", b"[[5], ", b"["),
    "a number of plain ids": ("ids", b"5 ", b"7"),
    "an event without end": ("sse", b"data: ", b"a"),
    "a comment without end": ("sse", b"", b":"),
}


@pytest.mark.parametrize("pack", ["gzip", "zstd"])
@pytest.mark.parametrize(("kind", "begin", "filling"), BOMBS.values(), ids=BOMBS)
def test_a_bomb_takes_little_memory(kind, begin, filling, pack):
    part = PACKED[pack](filling * (2 * MEGABYTE // len(filling)))
    data = PACKED[pack](begin) + part * 12

    assert len(data) < MEGABYTE / 8
    assert peak_of(data, format=kind, max_record_bytes=MEGABYTE // 4) < 12 * MEGABYTE


def seconds_of(data):
    def once():
        begin = time.process_time()
        for _ in read_items(io.BytesIO(data), ReadOptions()):
            pass
        return time.process_time() - begin

    gc.collect()
    gc.disable()  # it would look at all that other tests have left
    try:
        return min(once() for _ in range(3))
    finally:
        gc.enable()


LINEAR = {
    "a line": lambda size: gzip.compress(b"[%s5]" % (b"200005," * (size // 7))),
    "a document": lambda size: gzip.compress(b"[\n%s5]" % (b"200005,\n" * (size // 8))),
    "rows in one line": lambda size: b"[%s[5]]" % (b"[5]," * (size // 100)),
    "plain ids": lambda size: b"200005 " * (size // 7),
    "an event": lambda size: b"data: [%s5]\n\n" % (b"200005," * (size // 7)),
    "events of CR": lambda size: b"data: {}\r\r" * (size // 400),
}


@pytest.mark.parametrize("make", LINEAR.values(), ids=LINEAR)
def test_four_times_the_log_takes_less_than_eight_times_as_long(make):
    ratios = []
    for _ in range(5):  # a busy machine may disturb a measurement, but not all of them
        ratios.append(seconds_of(make(4_000_000)) / seconds_of(make(1_000_000)))
        if ratios[-1] < 8:  # what is quadratic takes sixteen times as long
            return
    raise AssertionError(ratios)


def test_a_small_file_of_one_big_array_takes_little_memory_as_a_program():
    code = (
        "import io, resource, sys, zlib\n"
        "from harmony_stream.logs import read_log\n"
        "packer = zlib.compressobj(9, wbits=31)\n"
        "data = b''.join([packer.compress(b'['), *(packer.compress(b'200005,' * 150_000) for _ in"
        " range(20)), packer.compress(b'5]'), packer.flush()])\n"
        "(record,) = read_log(io.BytesIO(data))\n"
        "assert len(record.completion) == 3_000_001\n"
        "status = open('/proc/self/status').read()\n"
        "print(len(data), int(status.partition('VmHWM:')[2].split()[0]) // 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    size, megabytes = map(int, done.stdout.split())
    assert size < 100_000
    assert megabytes < 200
