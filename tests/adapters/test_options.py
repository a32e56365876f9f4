"""What a client stream is told besides events."""

import re

import attrs
import pytest

from harmony_stream.adapters.options import (
    REASONS,
    Usage,
    check_ending,
    check_message,
    check_names,
    counted_ids,
    no_ending,
    random_id,
)


def test_the_total_is_prompt_and_output_and_counts_nothing_twice():
    assert Usage(5, 11, cached_tokens=4, reasoning_tokens=2).total_tokens == 16
    assert Usage(0, 0).total_tokens == 0


def test_usage_is_frozen_and_counts_reasoning_by_itself_unless_told():
    usage = Usage(5, 11)
    assert (usage.cached_tokens, usage.reasoning_tokens) == (0, None)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        usage.input_tokens = 6


@pytest.mark.parametrize("reason", REASONS)
def test_why_an_engine_stops_is_one_of_three_or_unknown(reason):
    check_ending(reason, None)
    assert reason in (None, "stop", "tool_calls", "length")


@pytest.mark.parametrize("reason", ["", "STOP", "tool-calls", "content_filter", 1, ()])
def test_any_other_reason_is_refused_with_those_there_are(reason):
    sentence = f"reason is {reason!r}, expected one of {REASONS}"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        check_ending(reason, None)


def test_an_engine_that_says_nothing_gives_neither_reason_nor_usage():
    assert no_ending() == (None, None)


def test_random_ids_have_their_prefix_and_never_repeat():
    ids = [random_id("call_") for _ in range(100)]
    assert all(re.fullmatch("call_[0-9a-f]{32}", each) for each in ids)
    assert len({*ids}) == 100


def test_counted_ids_are_counted_for_each_prefix_and_each_stream():
    first, second = counted_ids(), counted_ids()
    assert [first("a_"), first("a_"), first("b_"), second("a_")] == ["a_1", "a_2", "b_1", "a_1"]


@pytest.mark.parametrize(
    "counts", [(-1, 0), (1, 2.5), ("1", 2), (True, 1), (1, 2, None), (1, 2, 0, -1), (1, 2, 0, "a")]
)
def test_counts_are_numbers_from_0(counts):
    with pytest.raises(ValueError, match=r"tokens is .*, expected a number of tokens, 0 or more"):
        Usage(*counts)


def test_what_a_stream_is_told_is_checked():
    check_names(["f", "g"])
    check_names(frozenset())
    check_message("sorry")
    check_ending(None, Usage(1, 2))


@pytest.mark.parametrize(
    ("check", "value", "sentence"),
    [
        (check_names, "f", "tools is 'f'; give the names of the functions"),
        (check_names, 5, "tools is 5; give the names of the functions"),
        (check_names, [5], r"tools is \[5\]; give the names of the functions"),
        (check_message, None, "message is None; give a string that the client may read"),
        (lambda usage: check_ending("stop", usage), {}, r"usage is {}; give a Usage\(input_tokens"),
    ],
)
def test_what_is_of_the_wrong_type_is_refused(check, value, sentence):
    with pytest.raises(TypeError, match=f"^{sentence}"):
        check(value)
