"""Captures of event streams: completions are put together again, however they come mixed."""

import io
import itertools
import json

import pytest
from log_shapes import (
    FIRST,
    PROMPT,
    SECOND,
    ids,
    llama_cpp_events,
    sglang_events,
    sse,
    vllm_events,
)

from harmony_stream.logs import ReadOptions, read_log
from harmony_stream.logs.read import read_items
from harmony_stream.logs.readers import captures as capture


def read(data, **options):
    return list(read_log(io.BytesIO(data), ReadOptions(**options), strict=True))


def completions(data, **options):
    return [(list(record.completion), record.choice) for record in read(data, **options)]


def mixed(*streams):
    return [event for round_ in itertools.zip_longest(*streams) for event in round_ if event]


def faults(data, **options):
    items = read_items(io.BytesIO(data), ReadOptions(format="sse", **options))
    return [(e.place, e.reason, e.is_cut) for e in items if isinstance(e, Exception)]


# -- Events ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_lines_end_in_any_of_three_ways(ending):
    assert completions(sse(vllm_events(), ending)) == [(FIRST, 0)]


def test_comments_and_other_fields_are_passed_over():
    data = b": ping\n\nevent: message\nid: 7\nretry: 5\n" + sse(vllm_events())

    assert completions(data) == [(FIRST, 0)]


def test_several_data_lines_are_one_event_and_the_space_is_optional():
    (event,) = vllm_events(size=100)
    data = "\n".join(f"data:{line}" for line in json.dumps(event, indent=1).split("\n"))

    assert completions(data.encode() + b"\n\n") == [(FIRST, 0)]


def test_a_last_event_without_its_blank_line_counts():
    assert completions(sse(vllm_events(), done=False).rstrip()) == [(FIRST, 0)]


# -- Deltas and all so far -------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("cumulative", [True, False])
def test_ids_so_far_and_new_ids_are_told_apart_by_the_count(size, cumulative):
    events = sglang_events(SECOND, size=size, cumulative=cumulative)

    assert completions(sse(events)) == [(SECOND, 0)]


def test_without_a_count_ids_are_new():
    events = [{"output_ids": [5]}, {"output_ids": [5, 6]}]

    assert completions(sse(events)) == [([5, 5, 6], 0)]


def test_a_repeated_event_of_all_so_far_changes_nothing():
    *events, last = sglang_events()

    assert completions(sse([*events, events[-1], last])) == [(FIRST, 0)]


# -- Several at once -------------------------------------------------------------------------------


def test_choices_and_responses_come_mixed():
    streams = [
        vllm_events(FIRST, 0, "a", 2),
        vllm_events(SECOND, 1, "a", 3),
        vllm_events(SECOND, 0, "b", 1),
        sglang_events(FIRST, 0, "c", 4),
        sglang_events(SECOND, 1, "c", 4),
    ]
    found = completions(sse(mixed(*streams)))

    assert sorted(found) == sorted([(FIRST, 0), (SECOND, 1), (SECOND, 0), (FIRST, 0), (SECOND, 1)])


def test_completions_are_numbered_as_they_end():
    records = read(sse(mixed(vllm_events(FIRST, 0, "a", 1), vllm_events(SECOND, 0, "b", 9))))

    assert [(r.number, r.place, r.metadata["id"]) for r in records] == [
        (1, "stream 1", "b"),
        (2, "stream 2", "a"),
    ]
    assert records[0].metadata == {
        "id": "b",
        "model": "gpt-oss-20b",
        "finish_reason": "stop",
        "stop_reason": SECOND[-1],
    }
    assert list(records[0].prompt) == PROMPT


def test_streams_without_an_id_follow_one_another():
    data = sse(llama_cpp_events(), done=False) + sse(llama_cpp_events(SECOND), done=False)

    assert completions(data) == [(FIRST, 0), (SECOND, 0)]


def test_done_ends_the_response_that_came_last():
    first, second = list(vllm_events(size=3))[:-1], list(vllm_events(SECOND, 0, "b", 3))
    data = sse([first[0], *second[:-1]]) + sse([*first[1:]], done=False)

    found = completions(data)

    assert [len(tokens) for tokens, _ in found] == [len(SECOND) - len(SECOND) % 3, len(first) * 3]


def test_a_completion_that_never_ends_comes_at_the_end():
    events = list(vllm_events())[:-1]

    assert completions(sse(events, done=False)) == [(FIRST[: 5 * len(events)], 0)]


def test_completions_that_never_end_are_not_waited_for_without_limit(monkeypatch):
    monkeypatch.setattr(capture, "_MOST_OPEN", 2)
    events = [next(iter(vllm_events(FIRST, 0, name))) for name in "abc"]
    late = list(vllm_events(FIRST, 0, "c"))[1:]

    assert [len(tokens) for tokens, _ in completions(sse(events + late))] == [5, len(FIRST), 5]


def test_events_without_ids_are_passed_over_if_others_have_them():
    role = {"id": "cmpl-1", "choices": [{"index": 0, "delta": {"role": "assistant"}}]}
    usage = {"id": "cmpl-1", "choices": [], "usage": {"completion_tokens": 5}}
    odd = {"id": "x", "choices": [5]}

    assert completions(sse([role, *vllm_events(), usage, odd])) == [(FIRST, 0)]


def test_a_path_may_be_told():
    events = [{"id": 1, "out": {"new": FIRST[:3]}}, {"id": 1, "out": {"new": FIRST[3:]}}]

    assert completions(sse(events), ids="out.new") == [(FIRST, 0)]


# -- Faults ----------------------------------------------------------------------------------------


def test_a_capture_without_ids_says_how_to_get_them():
    ((place, reason, _),) = faults(sse([{"id": 1, "choices": [{"delta": {"content": "a"}}]}]))

    assert place == ""
    assert reason.startswith("no token ids: no field token_ids, completion_ids")
    assert "ask the engine for them: return_token_ids (vLLM)" in reason


def test_a_bad_event_does_not_stop_the_others():
    good = sse(vllm_events())
    data = b'data: {]\n\ndata: 5\n\ndata: {"token_ids": [-1]}\n\n' + b"data: \xff\n\n" + good

    assert faults(data) == [
        (
            "line 1",
            "not JSON: Expecting property name enclosed in double quotes",
            False,
        ),
        ("line 3", "an event that is not a JSON object", False),
        (
            "line 5",
            "item 0 of the event is -1, expected a token id, an integer from 0 to 4294967295",
            False,
        ),
        ("line 7", "not UTF-8: byte 0xff", False),
    ]
    found = [
        item for item in read_items(io.BytesIO(data), ReadOptions()) if hasattr(item, "choice")
    ]
    assert [list(record.completion) for record in found] == [FIRST]


def test_a_capture_may_be_cut_anywhere():
    data = sse(vllm_events(), done=False)
    for cut in range(1, len(data.rstrip())):
        items = list(read_items(io.BytesIO(data[:cut]), ReadOptions(format="sse")))
        records = [item for item in items if not isinstance(item, Exception)]
        errors = [item for item in items if isinstance(item, Exception)]
        whole = data[:cut].count(b"\n\n")
        parsed = {len(record.completion) for record in records}
        assert parsed <= {min(5 * whole, len(FIRST)), min(5 * (whole + 1), len(FIRST))}
        # Nothing is wrong with a name of a field that is not whole: it says nothing yet.
        assert len(errors) <= 1
        if not records and data[:cut].startswith(b"data:"):
            assert errors[0].reason == "the capture is cut off before its first event ends"
        assert all(item.is_cut == bool(records) for item in errors)


@pytest.mark.parametrize("end", [b"data: [DO", b"data: [", b'data: {"a": tru', b"data: \xc3"])
def test_an_event_that_is_cut_in_a_word_is_cut(end):
    assert faults(sse(vllm_events(), done=False) + end) == [
        ("line 11", "the last event is cut off", True)
    ]


def test_a_last_event_that_is_whole_and_bad_is_bad():
    (fault,) = faults(sse(vllm_events()) + b'data: {"token_ids": [-1]}')

    assert fault[1:] == (
        "item 0 of the event is -1, expected a token id, an integer from 0 to 4294967295",
        False,
    )


def test_comments_alone_are_an_empty_capture():
    assert faults(b": nothing\n\n") == [("", "empty, expected token ids", True)]


@pytest.mark.parametrize(
    "data", [b":\xff\xfe\x01\x02", b": nothing\0\n\n", b"colour: red\n\n", b": a\n\ndatum: 5\n\n"]
)
def test_what_holds_no_event_is_no_capture(data):
    assert faults(data) == [
        ("", "no event with data; is it a capture of server-sent events, as text in UTF-8?", False)
    ]


def test_captures_may_be_joined_each_with_its_mark_of_byte_order():
    mark = b"\xef\xbb\xbf"
    data = mark + sse(vllm_events()) + mark + sse(vllm_events(SECOND, 0, "b"))

    assert completions(data) == [(FIRST, 0), (SECOND, 0)]


def test_an_event_or_a_completion_that_is_too_long_is_refused_and_the_others_are_read():
    size = max(len(block) for block in sse(vllm_events()).split(b"\n\n")) - len("data: ")
    long = json.dumps({"id": "x", "token_ids": [5] * 2000}).encode()
    data = b": " + b"a" * 5000 + b"\n\ndata: " + long + b"\n\n" + sse(vllm_events(), done=False)
    reason = f"longer than {size} bytes; if that is intended, raise max_record_bytes"

    (fault,) = faults(data, max_record_bytes=size)

    assert (fault[0], fault[1][: len(reason)], fault[2]) == ("line 3", reason, False)
    items = list(read_items(io.BytesIO(data), ReadOptions(max_record_bytes=size)))
    assert [list(item.completion) for item in items if hasattr(item, "choice")] == [FIRST]
    many = [{"id": "x", "token_ids": [5] * 100} for _ in range(9)]
    (fault,) = faults(sse(many) + sse(vllm_events()), max_record_bytes=size + 400)
    assert fault[0] == "stream 1"


def test_the_ids_of_a_completion_that_is_too_long_are_let_go():
    stream = capture._Stream()
    for _ in range(2):
        stream.add(ids([5, 6]), None, 12)

    assert (stream.is_too_long, len(stream.ids)) == (True, 0)
