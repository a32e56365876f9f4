"""What may be wrong with a log: each fault is reported with its place, and stops nothing else."""

import gzip
import io
import json
import sys
import zipfile

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
    ids,
    lines,
    npy,
    npz,
    padded,
    parquet,
    ray_table,
    sse,
    vllm_completion,
    vllm_events,
)
from strategies import examples

from harmony_stream import HarmonyError
from harmony_stream.logs import (
    FORMATS,
    LogError,
    LogRecord,
    LogWarning,
    MissingExtraError,
    ReadOptions,
    read_log,
)
from harmony_stream.logs import (
    parts as parts,
)
from harmony_stream.logs.read import detect, read_items, read_parts
from harmony_stream.logs.readers import json_lines as text

EXPECTED = "expected a token id, an integer from 0 to 4294967295"


def items(data, **options):
    return list(read_items(io.BytesIO(data), ReadOptions(**options)))


def faults(data, **options):
    found = items(data, **options)
    return [(each.place, each.reason) for each in found if isinstance(each, LogError)]


def completions(data, **options):
    return [list(r.completion) for r in items(data, **options) if isinstance(r, LogRecord)]


GOOD = lines([{"token_ids": FIRST}])
scalars = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5)
flat_values = scalars | st.lists(scalars, max_size=3)
json_values = (
    flat_values
    | st.lists(flat_values, max_size=3)
    | st.dictionaries(st.text(max_size=3), flat_values, max_size=3)
)
json_objects = st.dictionaries(st.text(max_size=3), json_values, min_size=1, max_size=3)
DEEP = b"[" * 100_000
CUT_OFF = "not JSON: it is cut off"
NO_IDS = "no token ids: no field token_ids, completion_ids, completion_token_ids, output_ids, "

BAD_LINES = [
    (b'{"token_ids": 5}', NO_IDS),
    (b'{"token_ids": null}', NO_IDS),
    (b"{}", NO_IDS),
    (b"5", NO_IDS),
    (b'{"input": "a", "output": "b", "gts": "c", "score": 1.0, "step": 1}', NO_IDS),
    (b'{"choices": [5], "output_ids": "a"}', NO_IDS),
    (b'{"token_ids": [5, "6"]}', f'item 1 of the completion is "6", {EXPECTED}'),
    (b'{"token_ids": [5, 6.0]}', f"item 1 of the completion is 6.0, {EXPECTED}"),
    (b'{"token_ids": [true]}', f"item 0 of the completion is true, {EXPECTED}"),
    (b'{"token_ids": [5, null]}', f"item 1 of the completion is null, {EXPECTED}"),
    (b'{"token_ids": [5, {}]}', f"item 1 of the completion is an object, {EXPECTED}"),
    (b'{"token_ids": [-5]}', f"item 0 of the completion is -5, {EXPECTED}"),
    (b'{"token_ids": [4294967296]}', f"item 0 of the completion is 4294967296, {EXPECTED}"),
    (b'{"token_ids": [[5], 6]}', "the completion is 6, expected an array of token ids"),
    (b'{"token_ids": [5], "prompt_ids": [-1]}', f"item 0 of the prompt is -1, {EXPECTED}"),
    (
        b'{"choices": [{"logprobs": {"tokens": ["token_id:x"]}}]}',
        f'item 0 of the completion is "x", {EXPECTED}',
    ),
    (b'{"choices": [{"logprobs": {"tokens": ["Hello"]}}]}', NO_IDS),
    (b'{"meta_info": {"output_token_logprobs": ["a"]}}', NO_IDS),
    (b'{"token_ids": [%s]}' % (b"9" * 5000), "a number with too many digits"),
    (b'{"token_ids": [' + b'"' + b"a" * 50 + b'"]}', 'item 0 of the completion is "aaaaa'),
    (DEEP, "JSON that is nested too deeply"),
    (b'{"token_ids": [5', "not JSON: it is cut off"),
    (b'{"token_ids": [5}', "not JSON: Expecting ',' delimiter"),
    (b"data: {}", "not JSON: Expecting value"),
    (b"\xff\xfe", "not UTF-8: byte 0xff"),
    (b'{"token_ids": "\xff"}', "not UTF-8: byte 0xff"),
    (b"\0\0\0", "not JSON: Expecting value"),
]


@pytest.mark.parametrize(("line", "reason"), BAD_LINES, ids=[line[:40] for line, _ in BAD_LINES])
def test_a_bad_line_is_reported_and_the_others_are_read(line, reason):
    data = GOOD + line + b"\n" + GOOD

    ((place, found),) = faults(data)
    assert (place, found[: len(reason)]) == ("line 2", reason)
    assert completions(data) == [FIRST, FIRST]


@pytest.mark.parametrize(("line", "reason"), BAD_LINES[:2])
def test_the_strict_mode_stops_at_the_first_bad_record(line, reason):
    records = read_log(io.BytesIO(GOOD + line + b"\n" + GOOD), strict=True)

    assert next(records).completion == ids(FIRST)
    with pytest.raises(LogError, match="<stream>: line 2: no token ids"):
        next(records)


def test_without_anybody_to_report_to_a_warning_is_issued():
    with pytest.warns(LogWarning, match="<stream>: line 2: not JSON"):
        assert len(list(read_log(io.BytesIO(GOOD + b"x\n" + GOOD)))) == 2


def test_a_report_holds_file_place_and_reason(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD + b"x\n")
    reports = []

    list(read_log(path, report=reports.append))

    assert [str(each) for each in reports] == [f"{path}: line 2: not JSON: Expecting value"]


def test_a_bad_choice_takes_its_line_with_it():
    data = lines([vllm_completion([FIRST, [-1]])])

    assert (len(completions(data)), len(faults(data))) == (0, 1)


def test_a_path_that_leads_nowhere_is_named():
    assert faults(GOOD, ids="choices.3.token_ids") == [
        ("line 1", "no token ids at choices.3.token_ids")
    ]


@pytest.mark.parametrize("length", [-1, 10_000, "a", None, 1.0])
def test_a_length_must_be_one_of_this_row(length):
    data = lines([{"ids": FIRST, "n": length}])
    wanted = [] if length is None else [f"the length {json.dumps(length)} is not from 0 to 23"]

    assert [reason for _, reason in faults(data, lengths="n")] == wanted


# -- A log that is still being written -------------------------------------------------------------


def test_a_last_line_that_is_cut_is_skipped_and_reported():
    data = GOOD + GOOD
    for cut in range(len(GOOD) + 1, len(data) - 1):
        first, last = items(data[:cut])
        assert first.completion == ids(FIRST)
        assert (last.place, last.reason) == ("line 2", "the last line is cut off")
        assert last.is_cut
    assert completions(data[:-1]) == [FIRST, FIRST]


def test_a_line_that_is_cut_further_up_is_just_broken():
    (error, _) = items(GOOD[:20] + b"\n" + GOOD, format="jsonl")

    assert not error.is_cut


@given(st.data())
@examples(300)
def test_a_line_may_be_cut_anywhere_also_in_a_word_or_a_character(data):
    line = json.dumps(data.draw(json_objects), ensure_ascii=data.draw(st.booleans())).encode()
    cut = line[: data.draw(st.integers(1, len(line) - 1))]

    assert [str(each) for each in items(GOOD + cut) if isinstance(each, LogError)] == [
        "<stream>: line 2: the last line is cut off"
    ]


def test_a_log_that_is_cut_before_its_first_line_ends_is_unreadable():
    # A document on one line that was cut looks the same.
    for blank in (b"", b"\n \n"):
        (error,) = items(blank + GOOD[:20])
        assert (error.is_cut, error.ends_log) == (False, True)
        assert error.reason == "the log is cut off before its first line ends"


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_compressed_data_may_be_cut(compress):
    import random

    chance = random.Random(5)
    data = lines(
        [{"token_ids": [chance.randrange(200_000) for _ in range(50)]} for _ in range(999)]
    )
    packed = compress(data)

    found = items(packed[: len(packed) // 2])

    assert (found[-1].reason, found[-1].is_cut) == ("the compressed data are cut off", True)
    read = [each.completion for each in found if isinstance(each, LogRecord)]
    assert read == [ids(json.loads(line)["token_ids"]) for line in data.splitlines()[: len(read)]]


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_compressed_data_may_be_broken(compress):
    packed = bytearray(compress(GOOD * 50))
    packed[10:30] = b"\xff" * 20

    assert "the compressed data are broken" in faults(bytes(packed), format="jsonl")[-1][1]


# -- Plain ids and documents -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"5 6\n7 -8", ("line 2", f'"-8" where a token id was expected{EXPECTED[19:]}')),
        (b"5 99999999999", ("line 1", '"99999999999" where a token id was expected')),
        (b"5 6 4294967296 ", ("line 1", '"4294967296" where a token id was expected')),
        (b"5\n\n\xff 6", ("line 3", '"\\\\xff" where a token id was expected')),
        (b"5.0\n", ("line 1", '"5.0" where a token id was expected')),
    ],
)
def test_a_bad_word_makes_plain_ids_unreadable(data, fault):
    ((place, reason),) = faults(data)

    assert (place, reason[: len(fault[1])]) == fault


def test_plain_ids_may_be_longer_than_what_is_read_at_once(monkeypatch):
    monkeypatch.setattr(text, "_BLOCK", 7)
    data = b"\n".join(b"%d" % token for token in FIRST)

    assert completions(data) == [FIRST]


@pytest.mark.parametrize(
    ("data", "fault", "good"),
    [
        (b"[[5], [6", ("line 1, column 9", f"{CUT_OFF}; what follows cannot be read"), 1),
        (b"[[5]\n,\n[6]", ("line 3, column 4", f"{CUT_OFF}; what follows cannot be read"), 2),
        (b"[[5]\n[6]]", ("line 2, column 1", 'not JSON: "[" after a value; what follows'), 1),
        (
            b"[[5]] 6",
            (
                "line 1, column 7",
                'not JSON: "6" after a value; if each line is a value of its own, the format is '
                "jsonl; what follows cannot be read",
            ),
            1,
        ),
        (b"[[5],\n[6}]", ("line 2, column 3", "not JSON: Expecting ',' delimiter; what"), 1),
        (
            b"[[5], [-6], [7]]",
            ("row 2, which begins in line 1", f"item 0 of the completion is -6, {EXPECTED}"),
            2,
        ),
        (b"[[5], \xff]", ("line 1, column 7", "not UTF-8: byte 0xff; what follows cannot"), 1),
        (b'[[5], "\xc3', ("line 1, column 8", f"{CUT_OFF}; what follows cannot be read"), 1),
        (b"[[5], " + DEEP, ("line 1, column 7", "JSON that is nested too deeply; what follows"), 1),
        (b"[[5], [%s]]" % (b"9" * 5000), ("line 1, column 7", "a number with too many digits"), 1),
        (b'{\n"token_ids":\n[5', ("line 3, column 3", f"{CUT_OFF}; what follows cannot"), 0),
        (b"[[]", ("line 1, column 4", f"{CUT_OFF}; what follows cannot be read"), 1),
        (b"[[5], [tru", ("line 1, column 11", f"{CUT_OFF}; what follows cannot be read"), 1),
    ],
)
def test_a_document_is_read_as_far_as_it_goes(data, fault, good):
    (error,) = (item for item in items(data, format="json") if isinstance(item, LogError))

    assert (error.place, error.reason[: len(fault[1])]) == fault
    assert (error.is_cut, error.ends_log) == (False, error.place.startswith("line"))
    assert len(completions(data, format="json")) == good


def test_what_is_broken_is_told_where_it_breaks_without_reading_on():
    rest = io.BytesIO(b"[[5], [6}, " + b"[7]," * 1_000_000)

    assert (
        len([item for item in read_items(rest, ReadOptions()) if isinstance(item, LogRecord)]) == 1
    )
    assert rest.tell() < 2_000_000


@given(st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=6), min_size=1, max_size=6), st.data())
@examples(100)
def test_a_document_is_read_alike_in_pieces_of_any_size(rows, data):
    document = json.dumps(rows, indent=data.draw(st.sampled_from([None, 1]))).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_BLOCK", data.draw(st.integers(1, 40)))
        assert completions(document, format="json") == rows


@given(st.lists(st.integers(1, 5), min_size=1, max_size=9), st.integers(1, 40))
@examples(100)
def test_lines_are_read_alike_in_pieces_of_any_size(lengths, block):
    data = b"\n\n".join(lines([{"ids": [5] * length}]) for length in lengths)
    numbers = [4 * n + 1 - n for n in range(len(lengths))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_BLOCK", block)
        found = items(data, format="jsonl")
    assert [len(record.completion) for record in found] == lengths
    assert [record.number for record in found] == numbers


# -- Arrays ----------------------------------------------------------------------------------------


def header(shape):
    """The beginning of an array file that says so."""
    words = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\0" + len(words).to_bytes(2, "little") + words


BAD_ARRAYS = [
    ("floats", npy(np.zeros((2, 2))), {}, "a 2-D array of float64, expected rows of token ids"),
    ("a cube", npy(np.zeros((1, 1, 1), int)), {}, "a 3-D array of int64, expected rows"),
    ("a number", npy(np.array(5)), {}, "a 0-D array of int64, expected rows"),
    ("objects", npy(np.array([[5], None], object)), {}, "a 1-D array of object, expected rows"),
    ("columns first", npy(np.asfortranarray(padded())), {}, "the array is in Fortran order"),
    ("no array", b"\x93NUMPY", {}, "not a .npy array: "),
    ("no header", b"\x93NUMPY\x01\0\x05\0hello", {}, "not a .npy array: "),
    ("huge", npy(np.zeros((2, 2), int)).replace(b"(2, 2)", b"(2,9**9)"), {}, "not a .npy array"),
    ("a long row", header("(1, 99999999999)"), {}, "a row of 799999999992 bytes: longer than 26"),
    ("no end", header("(999999999, 0)"), {}, "the header promises an array of (999999999, 0)"),
    ("less than none", header("(-1, 5)"), {}, "the header promises an array of (-1, 5)"),
    ("no archive", b"PK\x03\x04", {}, "File is not a zip file"),
    ("which", npz(a=padded(), b=padded()), {}, "which array holds the ids? There are a, b"),
    ("no ids", npz(a=padded()), {"ids": "b"}, "no array b; there are a"),
    ("no lengths", npz(a=padded()), {"lengths": "n"}, "no array n; there are a"),
    ("flat lengths", npz(ids=padded(), lengths=padded()), {}, "a 2-D array of int64"),
    ("few lengths", npz(ids=padded(), lengths=np.array([1])), {}, "1 lengths for 2 rows of ids"),
    ("many prompts", npz(ids=padded(), prompt_ids=np.zeros((3, 1), int)), {}, "3 prompts for 2 ro"),
    ("float prompts", npz(ids=padded(), prompt_ids=padded() * 0.5), {}, "a 2-D array of float64"),
]


@pytest.mark.parametrize(("name", "data", "options", "reason"), BAD_ARRAYS)
def test_an_array_without_rows_of_ids_is_an_error(name, data, options, reason):
    with pytest.raises(LogError) as caught:
        items(data, **options)
    assert caught.value.reason.startswith(reason)


def test_a_member_of_an_archive_that_is_no_array_is_an_error():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("ids.npy", b"hello")
    with pytest.raises(LogError, match=r"not a \.npy array"):
        items(file.getvalue())


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_any_version_of_the_array_format_is_read(version):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.array([FIRST]), version)

    assert completions(file.getvalue()) == [FIRST]


def test_a_file_that_is_cut_gives_its_whole_rows():
    *found, error = items(npy(padded())[:-8], pad_id=199999)

    assert [list(record.completion) for record in found] == [FIRST]
    assert (error.place, error.is_cut, error.ends_log) == ("row 2", False, True)
    assert error.reason == "the file is cut off: 2 rows were promised"


def test_what_follows_an_array_is_not_lost_without_a_word():
    *found, error = items(npy(padded()) + npy(padded()), pad_id=199999)

    assert [list(record.completion) for record in found] == ROWS
    assert error.reason.startswith("something follows the array, and is not read; save one array")


def test_an_archive_whose_data_are_damaged_is_an_error():
    table = np.random.default_rng(5).integers(0, 200_000, (100, 5000))
    data = bytearray(npz(np.savez_compressed, ids=table))
    data[len(data) // 2] ^= 1

    *found, error = items(bytes(data))

    assert len(found) < 100
    assert (error.place, error.ends_log) == (f"row {len(found) + 1}", True)
    assert error.reason.startswith("the data are broken: ")


def test_a_member_of_an_archive_that_is_not_called_an_array_is_passed_over():
    file = io.BytesIO(npz(x=padded()))
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("ids", b"hello")

    assert completions(file.getvalue(), pad_id=199999) == ROWS


def test_an_archive_that_cannot_be_opened_is_an_error():
    data = bytearray(npz(ids=padded()))
    data[data.rindex(b"PK\x01\x02") + 8] |= 1  # it is encrypted

    with pytest.raises(LogError, match="encrypted"):
        items(bytes(data))


def test_an_array_on_a_device_that_fails_is_an_error_of_the_log():
    class Failing(io.BytesIO):
        def read1(self, size=-1):
            if self.tell() > 100_000:
                raise OSError(5, "Input/output error")
            return super().read1(size)

    with pytest.raises(LogError, match="<stream>: Input/output error"):
        list(read_items(Failing(npy(np.zeros((9, 9999), int))), ReadOptions()))


@pytest.mark.parametrize(("shape", "count"), [((0, 5), 0), ((2, 0), 2), ((0,), 1)])
def test_arrays_may_be_empty(shape, count):
    assert completions(npy(np.zeros(shape, int))) == [[]] * count


def test_impossible_ids_of_an_array_are_faults_of_their_rows():
    rows = np.array([[5, -6], [5, 6], [2**40, 5]])

    assert faults(npy(rows)) == [
        ("row 1", f"item 1 is -6, {EXPECTED}"),
        ("row 3", f"item 0 is 1099511627776, {EXPECTED}"),
    ]
    assert completions(npy(rows)) == [[5, 6]]


@pytest.mark.parametrize(
    ("lengths", "reason"),
    [
        ([9, 1], "the length 9 is not from 0 to 2"),
        ([2**40, 1], "the length 1099511627776 is not from 0 to 2"),
        ([-1, 1], "the length -1 is not from 0 to 2"),
    ],
)
def test_a_wrong_length_is_a_fault_of_its_row(lengths, reason):
    data = npz(ids=np.array([[5, 6], [7, 8]]), lengths=np.array(lengths))

    assert faults(data)[0] == ("row 1", reason)


# -- Columns ---------------------------------------------------------------------------------------

BAD_COLUMNS = [
    ("no list", pa.table({"a": ["x"]}), {}, "no column of lists of integers; there are a (string)"),
    ("another", pa.table({"a": ["x"]}), {"ids": "a"}, "no column a of lists of integers; there"),
    ("lengths", pa.table({"a": [[5]]}), {"lengths": "n"}, "no column n of integers; there are a"),
    (
        "several",
        pa.table({"a": [[5]], "b": [[6]]}),
        {},
        "which column holds the ids? There are a, b: name one",
    ),
    ("texts", pa.table({"ids": [["a"]]}), {}, "no column of lists of integers; there are ids (li"),
]


@pytest.mark.parametrize("write", [parquet, arrow_file, arrow_stream])
@pytest.mark.parametrize(("name", "table", "options", "reason"), BAD_COLUMNS)
def test_columns_that_are_not_there_are_named(name, table, options, reason, write):
    with pytest.raises(LogError) as caught:
        items(write(table), **options)
    assert caught.value.reason.startswith(reason)


def test_nulls_and_impossible_ids_are_faults_of_their_rows():
    rows = [FIRST, None, [5, None], [-6], [2**40], [], SECOND]

    for data in (parquet(ray_table(rows)), arrow_stream(ray_table(rows))):
        assert faults(data) == [
            ("row 2", "null, expected token ids"),
            ("row 3", f"item 1 is null, {EXPECTED}"),
            ("row 4", f"item 0 is -6, {EXPECTED}"),
            ("row 5", f"item 0 is 1099511627776, {EXPECTED}"),
        ]
        assert completions(data) == [FIRST, [], SECOND]


def test_null_prompts_lengths_and_words_are_absent():
    table = pa.table(
        {
            "prompt_ids": pa.array([None, [5]], pa.list_(pa.int64())),
            "ids": ROWS,
            "lengths": pa.array([None, 2]),
            "name": [None, "a"],
        }
    )
    first, second = items(parquet(table))

    assert (first.prompt, first.metadata, list(first.completion)) == (None, {}, FIRST)
    assert (list(second.prompt), second.metadata) == ([5], {"name": "a"})
    assert list(second.completion) == SECOND[:2]


@pytest.mark.parametrize("write", [parquet, arrow_file])
def test_a_table_that_is_cut_is_an_error(write):
    with pytest.raises(LogError, match="<stream>: "):
        items(write(ray_table())[:-20])


def test_a_stream_of_batches_that_is_cut_gives_what_came():
    table = pa.concat_tables([ray_table([[5] * 900])] * 3)
    data = arrow_stream(table)

    *found, error = items(data[: len(data) * 2 // 3])

    assert [len(record.completion) for record in found] == [900] * len(found)
    assert len(found) in (1, 2)
    assert error.place == f"row {len(found) + 1}"
    assert error.reason.endswith("what follows cannot be read")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data[:-8], "the stream has no mark at its end: it may be cut off; what"),
        (lambda data: data + data, "something follows the end of the stream; what follows cannot"),
    ],
)
def test_a_stream_of_batches_must_end_with_its_mark(change, reason):
    *found, error = items(change(arrow_stream(ray_table())))

    assert [list(record.completion) for record in found] == ROWS
    assert (error.reason[: len(reason)], error.is_cut, error.ends_log) == (reason, False, True)


# -- What is read with trouble ---------------------------------------------------------------------


def test_a_device_that_fails_is_an_error():
    class Failing(io.RawIOBase):
        name = "/dev/broken"

        def read(self, size=-1):
            raise OSError(5, "Input/output error")

    with pytest.raises(LogError, match="/dev/broken: Input/output error"):
        list(read_log(Failing()))


def test_long_logs_are_handed_on_in_pieces(monkeypatch):
    monkeypatch.setattr(parts, "_TOKENS", 100)
    bad = b'{"token_ids": 5}'
    data = b"[" + b",".join([GOOD, GOOD, bad, GOOD]) + b"]"

    pieces = list(read_parts(io.BytesIO(data), ReadOptions()))

    assert [len(list(piece.items())) for piece in pieces] == [2, 1, 1]


# -- Anything at all -------------------------------------------------------------------------------


@given(
    st.sampled_from(sorted(FORMATS)),
    st.binary(max_size=200)
    | st.sampled_from(
        [
            GOOD,
            gzip.compress(GOOD),
            zstandard.ZstdCompressor().compress(GOOD),
            json.dumps(ROWS).encode(),
            sse(vllm_events()),
            npy(padded()),
            npz(ids=padded(), lengths=np.array([1, 2])),
            npz(np.savez_compressed, ids=padded()),
            parquet(ray_table()),
            arrow_file(ray_table()),
            arrow_stream(ray_table()),
        ]
    ).flatmap(
        lambda data: st.tuples(st.just(data), st.integers(0, len(data)), st.binary(max_size=9)).map(
            lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] + len(parts[2]) :]
        )
    ),
)
@examples(400)
def test_nothing_but_errors_of_the_library_comes_of_any_bytes(kind, data):
    try:
        list(read_items(io.BytesIO(data), ReadOptions(format=kind)))
        list(read_items(io.BytesIO(data), ReadOptions()))
    except HarmonyError:
        pass


# -- What is not installed -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "module", "extra"),
    [
        (npy(padded()), "numpy", "arrow"),
        (npz(ids=padded()), "numpy", "arrow"),
        (parquet(ray_table()), "pyarrow", "arrow"),
        (arrow_file(ray_table()), "pyarrow", "arrow"),
        (zstandard.ZstdCompressor().compress(GOOD), "zstandard", "zstd"),
    ],
)
def test_a_format_that_needs_an_extra_names_it(monkeypatch, data, module, extra):
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(LogError, match=rf"pip install 'harmony-stream\[{extra}\]'"):
        items(data)


def test_an_error_about_an_extra_is_one_of_the_library():
    assert issubclass(MissingExtraError, HarmonyError)


def test_looking_at_a_json_line_of_any_length():
    long = lines([{"token_ids": [5] * 100_000}])

    assert detect(long[:1000]) == "jsonl"
    assert detect(DEEP) == "json"
    assert completions(long * 2) == [[5] * 100_000] * 2


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("row", [[5] * 100_000, [[5, 6]] * 20_000])
def test_arrays_longer_than_what_is_looked_at_are_lines_or_a_document(row, count):
    data = lines([row] * count)
    is_nested = isinstance(row[0], list)

    if is_nested and count == 2:  # which looks like a document, until its end
        assert faults(data)[0][1].endswith("the format is jsonl; what follows cannot be read")
        assert len(completions(data, format="jsonl")) == 40_000
    else:
        assert completions(data) == (row if is_nested else [row] * count)
