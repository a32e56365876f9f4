"""The kinds of fault, and their sentences."""

import string

import pytest

from harmony_stream.values.faults import SENTENCES, FaultKind

WORDS = {"what", "word", "position", "state", "header", "expected"}


@pytest.mark.parametrize("kind", FaultKind)
def test_each_kind_of_fault_has_a_sentence_that_says_where_and_what_was_expected(kind):
    fields = {name for _, name, _, _ in string.Formatter().parse(SENTENCES[kind]) if name}
    assert fields <= WORDS
    assert "position" in fields
    assert "expected" in SENTENCES[kind]


def test_there_are_no_other_sentences():
    assert set(SENTENCES) == set(FaultKind)
