"""Steps of unfinished characters are what the bytes say, and are bounded."""

from hypothesis import given
from hypothesis import strategies as st
from strategies import VOCABULARY, tokens_of

from harmony_stream.parsing import character_steps
from harmony_stream.parsing.character_steps import CharacterSteps
from harmony_stream.parsing.parser import EventParser
from harmony_stream.vocabulary import Vocabulary

HEADER = tokens_of("<|channel|>final<|message|>")
PARTS = [token for token in range(2000) if VOCABULARY.lookup(token) and not VOCABULARY.texts[token]]


def test_while_bytes_are_held_no_token_is_whole():
    steps = CharacterSteps(VOCABULARY)
    assert steps.texts_after(b"") is VOCABULARY.texts
    assert set(steps.texts_after(b"\xf0")) == {None}
    assert len(steps.texts_after(b"\xf0")) >= len(VOCABULARY.texts)


def test_steps_lead_from_bytes_to_bytes_and_know_the_tokens_of_their_text():
    shared = CharacterSteps(VOCABULARY)
    shared.remember(shared.first, 117, None, shared.after(b"\xf0", 1))
    shared.remember(shared.after(b"\xf0", 1), 300, "\u2026", shared.first)
    text, width, steps, texts = shared.first[117]
    assert (text, width) == (None, 1)
    assert (steps.held, steps.width) == (b"\xf0", 1)
    assert texts is shared.no_texts
    text, width, steps, texts = steps[300]
    assert (text, width) == ("\u2026", 2)
    assert steps is shared.first is shared.after(b"", 0)
    assert texts is VOCABULARY.texts


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=30))
def test_forgotten_steps_change_nothing(tokens):
    vocabulary = Vocabulary.from_tiktoken(VOCABULARY.tiktoken_encoding)
    few, many = EventParser(vocabulary=vocabulary), EventParser()
    few.feed_many(HEADER)
    many.feed_many(HEADER)
    most, character_steps._MOST_STEPS = character_steps._MOST_STEPS, 3
    try:
        for token in tokens:
            assert few.feed(token) == many.feed(token)
    finally:
        character_steps._MOST_STEPS = most


def test_only_so_many_steps_are_kept_also_by_parsers_that_stand_in_them(monkeypatch):
    monkeypatch.setattr(character_steps, "_MOST_STEPS", 3)
    steps = CharacterSteps(VOCABULARY)
    first, later = steps.first, steps.after(b"\xf0", 1)
    steps.remember(later, 0, None, later)
    for token in range(3):
        steps.remember(first, token, None, later)
    assert list(first) == [2]
    assert later == {}
    assert steps.first is first


def test_a_step_counts_once_however_often_it_is_taken(monkeypatch):
    monkeypatch.setattr(character_steps, "_MOST_STEPS", 3)
    steps = CharacterSteps(VOCABULARY)
    for token in [0, 1, 1, 1, 1, 2, 2]:
        steps.remember(steps.first, token, None, steps.first)
    assert list(steps.first) == [0, 1, 2]


def test_all_vocabularies_share_the_list_without_texts():
    small = Vocabulary.from_tiktoken(VOCABULARY.tiktoken_encoding)
    assert CharacterSteps(small).no_texts is CharacterSteps(VOCABULARY).no_texts
