"""`parse_batch`: one row a message, whatever the rows come in, with the parser's results."""

import pickle
import subprocess
import sys
from array import array

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_shapes import ANSWER, CALL, FIRST, ROWS, SECOND, THINKING, TURN, WIDTH, ids, padded
from strategies import SPECIAL, any_token, events_of, examples, messages_of, streams, tokens_of

import harmony_stream
from harmony_stream.adapters.arguments import ARGUMENTS_NOT_JSON, lack_json
from harmony_stream.logs import (
    COLUMNS,
    NOT_TOKEN_IDS,
    batch,
    is_whole,
    parse_batch,
    parse_table,
    short_cut,
)
from harmony_stream.logs.columns import to_arrow


def rows_of(columns):
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


@pytest.fixture(params=["with the extra", "without it"])
def either_way(request, monkeypatch):
    """The short cut, and the way through the parser that is taken without numpy and pyarrow."""
    if request.param == "without it":
        monkeypatch.setitem(sys.modules, "pyarrow", None)


def test_a_message_is_a_row(either_way):
    columns = parse_batch([FIRST, [], SECOND])

    assert list(columns) == list(COLUMNS)
    first, second, third = rows_of(columns)
    assert first == {
        "row": 0,
        "index": 0,
        "role": "assistant",
        "name": None,
        "channel": "analysis",
        "recipient": None,
        "content_type": None,
        "text": "The tide is out.",
        "start": 0,
        "stop": len(tokens_of(THINKING)),
        "header_tokens": 3,
        "content_tokens": len(tokens_of(THINKING)) - 4,
        "end": "end",
        "complete": True,
        "faults": [],
    }
    assert (second["row"], second["index"], second["text"]) == (0, 1, "Three boats are in. ⛵")
    assert (second["start"], second["stop"]) == (first["stop"], len(FIRST))
    assert (third["row"], third["recipient"], third["content_type"], third["end"]) == (
        2,
        "functions.moor",
        "<|constrain|>json",
        "call",
    )


SPECIMENS = {
    "": "",
    "truncated": "<|channel|>final<|message|>Three bo",
    "truncated in a character": tokens_of("<|channel|>final<|message|>⛵")[:-1],
    "ends twice": THINKING + "<|return|><|endoftext|>",
    "ends, then goes on": THINKING + "<|end|>" + TURN + ANSWER,
    "end of text": "<|channel|>final<|message|>Three<|endoftext|>",
    "no message": "<|channel|>final",
    "no text": [5, 6],
    "a second channel": "<|channel|>final<|channel|>final<|message|>Three<|return|>",
    "a marker in content": "<|channel|>final<|message|>a<|constrain|>b<|return|>",
    "white space between": THINKING + "\n" + TURN + ANSWER,
    "text between": THINKING + "well" + TURN + ANSWER,
    "whole": "<|start|>system<|message|>Be brief.<|end|><|start|>user:ines<|message|>Hi<|end|>",
    "whole, from the start of text": "<|startoftext|><|start|>user<|message|>Hi<|end|>",
    "a completion, from the start of text": "<|startoftext|>" + ANSWER,
    "nothing but the start of text": "<|startoftext|>",
    "a tool": "<|start|>functions.f to=assistant<|channel|>commentary<|message|>4<|end|>",
    "a repeated role": TURN + ANSWER,
    "a stop token first": "<|end|>" + TURN + ANSWER,
    "a long header": "<|channel|>final" + " json" * 80 + "<|message|>Three<|return|>",
    "unknown tokens": [*tokens_of("<|channel|>final<|message|>a"), 2**31, 2**32, 2**70, 2**63],
}


def reference(rows):
    """The same columns from the parser alone, in the plainest way."""
    columns = {name: [] for name in COLUMNS}
    for row, tokens in enumerate(rows):
        for message in batch._parse_row(row, tokens):
            for name, value in zip(COLUMNS, message, strict=True):
                columns[name].append(value)
    return columns


@pytest.mark.parametrize("stream", SPECIMENS.values(), ids=SPECIMENS)
def test_the_short_cut_and_the_parser_agree(stream):
    tokens = tokens_of(stream) if isinstance(stream, str) else stream

    assert parse_batch([FIRST, tokens, SECOND]) == reference([FIRST, tokens, SECOND])


@pytest.mark.parametrize("head", ["", "<|startoftext|>"])
@pytest.mark.parametrize(
    ("stream", "role"), [(ANSWER, "assistant"), ("<|start|>user<|message|>Hi<|end|>", None)]
)
def test_the_start_of_text_does_not_say_whether_a_row_is_a_completion(head, stream, role):
    tokens = tokens_of(head + stream)
    assert is_whole(tokens) is (role is None)
    assert harmony_stream.parse(tokens, role).faults == ()
    assert parse_batch([tokens])["faults"] == [[]]


BAD_CALLS = {
    "a call without its JSON": CALL.replace("}", ""),
    "a call of a function": "<|channel|>commentary to=functions.f<|message|>{<|call|>",
    "a call that ends as a message does": CALL.replace("}", "").replace("<|call|>", "<|end|>"),
    "a call of a browser": "<|channel|>analysis to=browser.open json<|message|>5]<|call|>",
    "a call with another fault": CALL.replace("}", "<|constrain|>"),
}
GOOD_CALLS = {
    "code": "<|channel|>analysis to=python code<|message|>1 +<|call|>",
    "a call that is cut off": CALL.replace("}", "").removesuffix("<|call|>"),
    "a call that the end of text ends": CALL.replace("}<|call|>", "<|endoftext|>"),
    "a note to the assistant": "<|channel|>analysis to=assistant json<|message|>{<|end|>",
    "an answer in JSON": "<|channel|>final <|constrain|>json<|message|>{<|return|>",
}


@pytest.mark.parametrize("call", BAD_CALLS.values(), ids=BAD_CALLS)
def test_a_complete_call_without_its_json_has_a_problem(call, either_way):
    (found,) = rows_of(parse_batch([tokens_of(call)]))
    assert found["faults"][-1:] == [ARGUMENTS_NOT_JSON]


@pytest.mark.parametrize("call", GOOD_CALLS.values(), ids=GOOD_CALLS)
def test_what_need_not_be_json_has_no_problem(call, either_way):
    (found,) = rows_of(parse_batch([tokens_of(call)]))
    assert found["faults"] == []


turns = st.sampled_from(
    [THINKING, CALL, ANSWER, "<|channel|>final<|message|>", "<|end|>",
     *BAD_CALLS.values(), *GOOD_CALLS.values()]
)  # fmt: skip
likely = st.lists(
    turns.map(tokens_of)
    | st.just(tokens_of(TURN))
    | st.just(tokens_of("<|end|>" + TURN))
    | st.lists(any_token, max_size=3),
    max_size=8,
).map(lambda parts: [token for part in parts for token in part])


@pytest.mark.parametrize("name", ["", "truncated", "ends twice", "end of text", "whole", "a tool"])
def test_what_keeps_to_the_format_takes_the_short_cut(monkeypatch, name):
    rows = [FIRST, tokens_of(SPECIMENS[name]), SECOND]
    wanted = parse_batch(rows)
    monkeypatch.setattr(batch, "_parse_row", None)

    assert parse_batch(rows) == wanted


@given(st.lists(streams | likely, max_size=5))
@examples(150)
def test_the_short_cut_and_the_parser_agree_on_any_tokens(rows):
    assert parse_batch(rows) == reference(rows)


@given(st.lists(streams | likely, max_size=3))
@examples(50)
def test_columns_say_what_the_events_say(rows):
    columns = parse_batch(rows)

    for row, tokens in enumerate(rows):
        found = [each for each in rows_of(columns) if each["row"] == row]
        events = events_of(tokens, None if is_whole(tokens) else "assistant")
        kinds = [str(e.error.kind) for e in events if isinstance(e, harmony_stream.Malformed)]
        collected = harmony_stream.MessageCollector()
        for event in events:
            message = collected.feed(event)
            if message and event.complete and lack_json(event.header, message.content[0].text):
                kinds.append(ARGUMENTS_NOT_JSON)
        assert sorted(kind for each in found for kind in each["faults"]) == sorted(kinds)
        assert [
            (*(each[name] for name in ("role", "name", "channel", "recipient", "content_type")),
             each["text"], each["end"])
            for each in found if each["index"] is not None
        ] == messages_of(events)  # fmt: skip


def test_small_blocks_make_no_difference(monkeypatch):
    rows = [FIRST, SECOND, [], FIRST, FIRST + FIRST]
    wanted = parse_batch(rows)
    monkeypatch.setattr(short_cut, "_BLOCK", 20)

    assert parse_batch(rows) == wanted


def test_text_outside_of_messages_has_a_row_of_its_own():
    (stray,) = rows_of(parse_batch([tokens_of("<|end|> well<|start|>")]))

    assert (stray["index"], stray["role"], stray["text"], stray["faults"]) == (
        None,
        None,
        " well",
        ["expected_start"],
    )
    assert (stray["start"], stray["stop"], stray["content_tokens"]) == (1, 2, 1)


# -- Rows of any kind ------------------------------------------------------------------------------

_INT32 = pa.list_(pa.int32())
_SQUARE = [[*row, *[SPECIAL["<|endoftext|>"]] * (WIDTH - len(row))] for row in ROWS]
CONTAINERS = {
    "tuples": tuple(map(tuple, ROWS)),
    "arrays": [ids(row) for row in ROWS],
    "numpy rows": [np.array(row) for row in ROWS],
    "small numpy rows": [np.array(row, "u8") for row in ROWS],
    "a numpy array of rows": np.array([np.array(row) for row in ROWS], dtype=object),
    "a generator": (row for row in ROWS),
    "Arrow lists": pa.array(ROWS, _INT32),
    "large Arrow lists": pa.array(ROWS, pa.large_list(pa.uint64())),
    "a slice of Arrow lists": pa.array([[5], *ROWS, [6]], _INT32)[1:3],
    "Arrow chunks": pa.chunked_array([pa.array(ROWS[:1], _INT32), pa.array(ROWS[1:], _INT32)]),
}


@pytest.mark.parametrize("rows", CONTAINERS.values(), ids=CONTAINERS)
def test_rows_come_in_many_containers(rows):
    assert parse_batch(rows) == parse_batch(ROWS)


@pytest.mark.parametrize(
    "rows",
    [
        padded(),
        padded(dtype=np.int32),
        np.asfortranarray(padded()),
        pa.array(_SQUARE, pa.list_(pa.int64(), WIDTH)),
    ],
    ids=["numpy", "numpy, 32 bits", "numpy, by columns", "fixed Arrow lists"],
)  # fmt: skip
def test_rows_may_be_padded_with_the_end_of_text(rows):
    assert parse_batch(rows) == parse_batch(ROWS)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "uint32"])
def test_narrow_integers_are_as_good_as_wide_ones(dtype):
    assert parse_batch(np.array([[5, 6]], dtype)) == parse_batch([[5, 6]])


def test_a_row_that_holds_no_token_ids_is_a_problem_of_that_row(either_way):
    bad = [None, [5, None], [5, -1], [5.0], ["a"], 5, {}, {1: 2}, [-(2**70)], np.array([5.0])]

    columns = parse_batch([FIRST, *bad[:6], SECOND, *bad[7:]])

    faults = {row["row"]: row["faults"] for row in rows_of(columns)}
    assert faults == {0: [], 7: []} | {row: [NOT_TOKEN_IDS] for row in range(1, 11) if row != 7}


def test_nulls_of_arrow_are_problems_of_their_rows():
    rows = pa.array([FIRST, None, [5, None, 6], [-5], SECOND], pa.list_(pa.int64()))

    assert [row["faults"] for row in rows_of(parse_batch(rows))] == [
        [],
        [],
        [NOT_TOKEN_IDS],
        [NOT_TOKEN_IDS],
        [NOT_TOKEN_IDS],
        [],
    ]


@pytest.mark.parametrize(
    "rows",
    [5, np.array([5, 6]), np.zeros((1, 1, 1), int), pa.array([5]), pa.array([["a"]])],
    ids=["a number", "one row", "a cube", "Arrow integers", "Arrow texts"],
)
def test_a_container_without_rows_is_a_type_error(rows):
    with pytest.raises(TypeError):
        parse_batch(rows)


@pytest.mark.parametrize(
    "rows", [np.array([[0.5]]), np.empty((0, 0), int), [np.zeros((2, 2), int)], [array("d", [5.0])]]
)
def test_numpy_rows_of_something_else_are_problems(rows):
    assert set(map(tuple, parse_batch(rows)["faults"])) <= {(NOT_TOKEN_IDS,)}


def test_the_function_pickles():
    assert pickle.loads(pickle.dumps(parse_batch))(ROWS) == parse_batch(ROWS)


def test_nothing_heavy_is_imported_with_the_package():
    source = (
        "import sys, harmony_stream.logs; print(*{'numpy', 'pyarrow', 'rich'} & {*sys.modules})"
    )

    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


# -- Tables ----------------------------------------------------------------------------------------


def test_a_table_comes_out_with_the_types_that_are_documented():
    table = to_arrow(parse_batch(ROWS))

    assert {field.name: str(field.type) for field in table.schema} == {
        name: kind.replace("<string>", "<item: string>") for name, kind in COLUMNS.items()
    }
    assert table.to_pydict() == parse_batch(ROWS)


def test_columns_of_a_table_are_repeated_for_each_message():
    table = pa.table({"id": ["a", "b"], "score": [1.5, None], "ids": ROWS})

    messages = parse_table(table, "ids", keep=["id", "score"])

    assert messages.select(["id", "score", "row", "index"]).to_pylist() == [
        {"id": "a", "score": 1.5, "row": 0, "index": 0},
        {"id": "a", "score": 1.5, "row": 0, "index": 1},
        {"id": "b", "score": None, "row": 1, "index": 0},
    ]
    assert messages.num_columns == 2 + len(COLUMNS)


def test_a_table_needs_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(harmony_stream.HarmonyError, match=r"pip install 'harmony-stream\[arrow\]'"):
        to_arrow({})
