"""One golden log for each format, made in the shape that the engine writes."""

import bz2
import gzip
import io
import json
from array import array

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from log_shapes import (
    FIRST,
    PAD,
    PROMPT,
    ROWS,
    SECOND,
    WIDTH,
    arrow_file,
    arrow_stream,
    ids,
    lines,
    llama_cpp_events,
    npy,
    npz,
    padded,
    parquet,
    ray_table,
    sglang_chat,
    sglang_chat_response_ids,
    sglang_events,
    sglang_generate,
    sglang_logprobs,
    sse,
    tinker,
    trl,
    vllm_chat,
    vllm_completion,
    vllm_completion_logprobs,
    vllm_events,
    vllm_logprobs,
    vllm_responses,
)

from harmony_stream.logs import (
    FORMATS,
    LogError,
    ReadOptions,
    Selection,
    read_log,
    select,
)
from harmony_stream.logs.read import detect

_BOTH = [(FIRST, 0), (SECOND, 1)]
_TWO = [(FIRST, 0), (SECOND, 0)]
_ONE = [(FIRST, 0)]

_FILLED = [[*row, *[0] * (WIDTH - len(row))] for row in ROWS]
FIXED = ray_table(_FILLED, pa.list_(pa.int32(), WIDTH)).add_column(
    0, "length", pa.array([len(row) for row in ROWS])
)

# Name, bytes, format, options, (completion, choice) of each record, prompt.
GOLDEN = [
    ("plain", " ".join(map(str, FIRST)).encode(), "ids", {}, _ONE, None),
    ("plain with commas", ",\n".join(map(str, FIRST)).encode(), "ids", {}, _ONE, None),
    ("JSON array", json.dumps(FIRST).encode(), "jsonl", {}, _ONE, None),
    ("indented array", json.dumps(FIRST, indent=1).encode(), "json", {}, _ONE, None),
    ("JSON rows", json.dumps(ROWS).encode(), "json", {}, _TWO, None),
    ("lines of arrays", lines(ROWS), "jsonl", {}, _TWO, None),
    ("lines of rows", lines([ROWS, ROWS]), "jsonl", {}, _BOTH * 2, None),
    ("vLLM completion", lines([vllm_completion()]), "jsonl", {}, _BOTH, PROMPT),
    ("vLLM chat", lines([vllm_chat()]), "jsonl", {}, _BOTH, PROMPT),
    ("vLLM logprobs", lines([vllm_logprobs()]), "jsonl", {}, _BOTH, None),
    ("vLLM old logprobs", lines([vllm_completion_logprobs()]), "jsonl", {}, _BOTH, None),
    (
        "vLLM responses",
        json.dumps(vllm_responses(ROWS[:1]), indent=2).encode(),
        "json",
        {},
        _ONE,
        PROMPT,
    ),
    (
        "SGLang generate",
        json.dumps([sglang_generate(row) for row in ROWS]).encode(),
        "json",
        {},
        _TWO,
        None,
    ),
    ("SGLang logprobs", lines([sglang_logprobs()]), "jsonl", {}, _ONE, None),
    ("SGLang chat", lines([sglang_chat()]), "jsonl", {}, _BOTH, PROMPT),
    ("SGLang chat ids", lines([sglang_chat_response_ids()]), "jsonl", {}, _BOTH, None),
    ("tinker", lines([tinker()]), "jsonl", {}, _BOTH, PROMPT),
    ("trl", lines([trl()]), "jsonl", {}, _BOTH, PROMPT),
    (
        "a path",
        lines([{"out": {"runs": [{"ids": SECOND}, {"ids": FIRST}]}}]),
        "jsonl",
        {"ids": "out.runs.1.ids"},
        _ONE,
        None,
    ),
    (
        "a path with a star",
        lines([{"runs": [{"mine": FIRST}, {"mine": SECOND}]}]),
        "jsonl",
        {"ids": "runs.*.mine"},
        _BOTH,
        None,
    ),
    (
        "padded lines",
        lines([{"ids": [*FIRST, 0, 0], "n": len(FIRST)}]),
        "jsonl",
        {"lengths": "n"},
        _ONE,
        None,
    ),
    ("vLLM stream", sse(vllm_events()), "sse", {}, _ONE, PROMPT),
    ("SGLang stream", sse(sglang_events()), "sse", {}, _ONE, None),
    ("SGLang deltas", sse(sglang_events(cumulative=False)), "sse", {}, _ONE, None),
    ("llama.cpp stream", sse(llama_cpp_events(), done=False), "sse", {}, _ONE, None),
    ("npy, one row", npy(np.array(FIRST, np.uint32)), "npy", {}, _ONE, None),
    ("npy, padded behind", npy(padded()), "npy", {"pad_id": PAD}, _TWO, None),
    ("npy, padded in front", npy(padded(left=True)), "npy", {"pad_id": PAD}, _TWO, None),
    (
        "npz",
        npz(
            completion_ids=padded(pad=0, dtype=np.int32),
            lengths=np.array([len(row) for row in ROWS]),
            prompt_ids=np.array([PROMPT, PROMPT]),
        ),
        "npz",
        {},
        _TWO,
        PROMPT,
    ),
    (
        "compressed npz, told",
        npz(np.savez_compressed, a=padded(pad=0), b=np.array([len(row) for row in ROWS])),
        "npz",
        {"ids": "a", "lengths": "b"},
        _TWO,
        None,
    ),
    ("npz of one array", npz(x=padded()), "npz", {"pad_id": PAD}, _TWO, None),
    ("Parquet", parquet(ray_table(), row_group_size=1), "parquet", {}, _TWO, PROMPT),
    (
        "Parquet, told",
        parquet(pa.table({"x": ROWS, "y": ROWS[::-1]})),
        "parquet",
        {"ids": "x"},
        _TWO,
        None,
    ),
    ("Parquet of one list", parquet(pa.table({"x": ROWS})), "parquet", {}, _TWO, None),
    (
        "large lists",
        parquet(ray_table(kind=pa.large_list(pa.uint32()))),
        "parquet",
        {},
        _TWO,
        PROMPT,
    ),
    (
        "fixed lists",
        arrow_file(FIXED),
        "arrow",
        {},
        _TWO,
        PROMPT,
    ),
    ("Arrow file", arrow_file(ray_table()), "arrow", {}, _TWO, PROMPT),
    ("Arrow stream", arrow_stream(ray_table()), "arrow", {}, _TWO, PROMPT),
]  # fmt: skip
NAMES = [row[0] for row in GOLDEN]


def read(data, **options):
    """The records of a log that must have no fault."""
    return list(read_log(io.BytesIO(data), ReadOptions(**options), strict=True))


@pytest.mark.parametrize(("name", "data", "kind", "options", "wanted", "prompt"), GOLDEN, ids=NAMES)
def test_each_format_gives_its_completions(name, data, kind, options, wanted, prompt):
    records = read(data, **options)

    assert [(list(record.completion), record.choice) for record in records] == wanted
    assert [record.prompt and list(record.prompt) for record in records][:1] == [prompt]


@pytest.mark.parametrize(("name", "data", "kind", "options", "wanted", "prompt"), GOLDEN, ids=NAMES)
def test_each_format_is_found_by_looking(name, data, kind, options, wanted, prompt):
    assert detect(data) == kind


@pytest.mark.parametrize(("name", "data", "kind", "options", "wanted", "prompt"), GOLDEN, ids=NAMES)
def test_a_format_that_is_told_reads_the_same(name, data, kind, options, wanted, prompt):
    assert read(data, format=kind, **options) == read(data, **options)


_ZSTD = zstandard.ZstdCompressor()
COMPRESSED = {
    "gzip": gzip.compress,
    "zstd": _ZSTD.compress,
    "gzip in parts": lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:]) + b"\0\0",
    "zstd in parts": lambda data: _ZSTD.compress(data[:9]) + _ZSTD.compress(data[9:]),
}


@pytest.mark.parametrize("compress", COMPRESSED.values(), ids=COMPRESSED)
@pytest.mark.parametrize(("name", "data", "kind", "options", "wanted", "prompt"), GOLDEN, ids=NAMES)
def test_each_format_may_be_compressed(name, data, kind, options, wanted, prompt, compress):
    assert read(compress(data), **options) == read(data, **options)


@pytest.mark.parametrize(("name", "data", "kind", "options", "wanted", "prompt"), GOLDEN, ids=NAMES)
def test_a_file_reads_as_a_stream_does(tmp_path, name, data, kind, options, wanted, prompt):
    path = tmp_path / "log"
    path.write_bytes(data)

    records = list(read_log(path, ReadOptions(**options), strict=True))

    assert {record.source for record in records} == {str(path)}
    assert [record.completion for record in records] == [
        record.completion for record in read(data, **options)
    ]


def test_a_record_says_where_it_comes_from():
    data = b"\n" + lines([{"token_ids": FIRST}, vllm_completion()])

    assert [record.place for record in read(data)] == ["line 2", "line 3", "line 3, choice 1"]


def test_a_record_keeps_what_else_the_log_says():
    (record, _) = read(lines([vllm_completion() | {"score": 0.5, "tags": ["a"]}]))

    assert record.metadata == {
        "id": "cmpl-1",
        "object": "text_completion",
        "model": "gpt-oss-20b",
        "score": 0.5,
        "index": 0,
        "text": "...",
        "finish_reason": "stop",
        "stop_reason": FIRST[-1],
    }


def test_columns_beside_the_ids_are_metadata():
    records = read(parquet(ray_table()))

    assert [record.metadata["id"] for record in records] == ["r0", "r1"]
    assert [record.number for record in records] == [1, 2]


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (lines([{"ids": [5, 6], "n": 0}, {"ids": [5, 6], "n": 1}]), {"lengths": "n"}),
        (npz(ids=np.array([[5, 6], [5, 6]]), lengths=np.array([0, 1])), {}),
        (parquet(pa.table({"ids": [[5, 6], [5, 6]], "length": [0, 1]})), {}),
        (arrow_stream(pa.table({"ids": [[5, 6], [5, 6]], "n": [0, 1]})), {"lengths": "n"}),
    ],
)
def test_a_padded_row_of_length_0_is_an_empty_completion(data, options):
    assert [list(record.completion) for record in read(data, **options)] == [[], [5]]


def test_each_choice_has_a_length_of_its_own_or_one_for_all():
    shared = {"completion_ids": [[5, 6], [7, 8]], "n": 1}
    own = {"choices": [{"token_ids": [5, 6], "n": 1}, {"token_ids": [7, 8], "n": 0}]}

    assert [list(r.completion) for r in read(lines([shared]), lengths="n")] == [[5], [7]]
    assert [list(r.completion) for r in read(lines([own]), lengths="choices.*.n")] == [[5], []]


def test_a_length_that_is_told_must_be_there():
    with pytest.raises(LogError, match="line 1: no length at n"):
        read(lines([{"ids": [5]}]), lengths="n")
    choices = [{"token_ids": [5], "n": 1}, {"token_ids": [6]}]
    with pytest.raises(LogError, match=r"line 1: no length at choices\.\*\.n"):
        read(lines([{"choices": choices}]), lengths="choices.*.n")


def test_counts_that_bear_the_name_of_a_prompt_are_passed_over():
    (record,) = read(lines([{"tokens": FIRST, "prompt_tokens": 5, "input_tokens": None}]))

    assert record.prompt is None


def test_a_log_of_no_known_format_is_an_error_that_names_those():
    with pytest.raises(
        LogError, match=r"<stream>: begins with b'BZh.*not a known format; expected"
    ):
        read(bz2.compress(b"5"))
    assert set(FORMATS) == {row[2] for row in GOLDEN}


def test_a_missing_file_is_an_error():
    with pytest.raises(LogError, match="/nowhere/log: No such file or directory"):
        list(read_log("/nowhere/log"))


def test_a_log_need_not_be_at_hand_as_a_whole(tmp_path):
    class Pipe(io.RawIOBase):
        """Gives three bytes at a time, and cannot seek."""

        def __init__(self, data):
            self.data = data

        def readable(self):
            return True

        def read(self, size=-1):
            part, self.data = self.data[: min(size, 3)], self.data[min(size, 3) :]
            return part

    for data in (lines([{"ids": FIRST}]), parquet(ray_table([FIRST]))):
        (record,) = read_log(Pipe(data), strict=True)
        assert record.completion == ids(FIRST)


# -- Selection -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "numbers"), [("2", [2]), ("1,3-4", [1, 3, 4]), (" 4 , 2 - 3 ", [2, 3, 4]), ("9", [])]
)
def test_records_are_selected_by_number(text, numbers):
    records = read_log(io.BytesIO(lines([[5]] * 5)))

    assert [each.number for each in select(records, Selection.parse(text))] == numbers


@pytest.mark.parametrize("text", ["", "0", "2-1", "a", "1,", "-3", "1-2-3"])
def test_a_selection_of_something_else_is_an_error(text):
    with pytest.raises(ValueError, match="is not a selection; expected numbers from 1"):
        Selection.parse(text)


def test_a_log_is_read_no_further_than_the_last_that_is_selected():
    def records():
        yield from read_log(io.BytesIO(lines([[5], [6]])))
        raise AssertionError

    assert [r.completion for r in select(records(), Selection.parse("1"))] == [array("I", [5])]


def test_a_format_that_does_not_exist_is_refused_by_name():
    with pytest.raises(ValueError, match=r"format 'bogus' is not one of .*parquet.*; give one"):
        list(read_log(io.BytesIO(b"[5]"), ReadOptions(format="bogus")))
