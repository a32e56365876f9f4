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
    assert len(steps.texts_after(b"\xf0")) == len(VOCABULARY.texts)


def test_a_step_leads_to_the_steps_from_the_bytes_that_it_leaves():
    steps = CharacterSteps(VOCABULARY)
    steps.remember(b"", 117, None, b"\xf0")
    opens, text, held, after, texts = steps.after(b"")[117]
    assert (opens, text, held) == (True, None, b"\xf0")
    assert after is steps.after(b"\xf0")
    assert texts is steps.texts_after(b"\xf0")
    assert steps.after(b"\xf0") == {}


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


def test_only_so_many_steps_are_kept(monkeypatch):
    monkeypatch.setattr(character_steps, "_MOST_STEPS", 3)
    steps = CharacterSteps(VOCABULARY)
    first = steps.after(b"")
    for token in range(4):
        steps.remember(b"", token, None, b"\xf0")
    assert list(first) == [0, 1, 2]
    assert list(steps.after(b"")) == [3]
