"""Counts of commands: those of batches add up to those of the whole log."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, streams

from harmony_stream.commands import check, stats
from harmony_stream.logs import LogError, LogRecord
from harmony_stream.logs.work import batches

rows = streams.map(lambda row: array("I", [min(token, 2**32 - 1) for token in row]))
items = st.lists(
    rows.map(lambda ids: LogRecord(ids, "log", 1, "line", prompt=ids))
    | st.booleans().map(lambda is_cut: LogError("log", "", "x", is_cut)),
    min_size=1,
    max_size=14,
)


def batch_of(items):
    (batch,) = batches(items, strict=False)
    return batch


@pytest.mark.parametrize(
    ("count", "nothing"), [(check.find, check.Findings()), (stats.count, stats.Tally())]
)
@given(items)
@examples(50)
def test_counts_of_batches_add_up_to_those_of_the_log(count, nothing, items):
    parts = [count(batch_of([item])) for item in items]
    assert sum(parts, nothing) == count(batch_of(items))


def test_no_more_than_the_ten_worst_records_are_kept():
    worst = [check.Bad({}, faults, "") for faults in (1, 5)]
    total = sum((check.Findings(worst=worst) for _ in range(9)), check.Findings())
    assert [bad.faults for bad in total.worst] == [5] * 9 + [1]
