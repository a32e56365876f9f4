"""The words of a header, told apart by their place and their shape."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from harmony_stream.values.header_words import (
    Run,
    Section,
    TextPosition,
    Word,
    WordKind,
    words_of,
)

ROLE, CHANNEL, CONSTRAIN = Section
WORDS = [
    (ROLE, "assistant", ["role assistant"]),
    (ROLE, " user:ines  to=f ", ["role user:ines", "recipient to=f"]),
    (ROLE, "to=f assistant", ["recipient to=f", "role assistant"]),
    (ROLE, "user:ines{x}", ["role user:ines", "bare {x}"]),
    (ROLE, "user:{x}", ["role user", "bare :", "bare {x}"]),
    (ROLE, "functions.f{x}", ["role functions.f{x}"]),
    (CHANNEL, "final", ["channel final"]),
    (CHANNEL, "commentary to=f json", ["channel commentary", "recipient to=f", "bare json"]),
    (CHANNEL, "commentary?", ["channel commentary?"]),
    (CHANNEL, 'final{"a"', ["channel final", 'bare {"a"']),
    (CHANNEL, "final答え", ["channel final", "bare 答え"]),
    (CONSTRAIN, "json", ["constrain json"]),
    (CONSTRAIN, "write: it", ["bare write:", "constrain it"]),
    (CONSTRAIN, " to=f json", ["recipient to=f", "constrain json"]),
    (CONSTRAIN, "json{x}", ["constrain json", "bare {x}"]),
    (ROLE, "", []),
    (ROLE, "  \u3000\n", []),
]


def told(runs, *, has_role_word=True):
    return [f"{word.kind} {word.text}" for word in words_of(runs, has_role_word=has_role_word)]


@pytest.mark.parametrize(("section", "text", "words"), WORDS, ids=[case[1] for case in WORDS])
def test_a_word_has_the_kind_of_its_place_and_shape(section, text, words):
    assert told([Run(section, text, True)]) == words


def test_a_header_whose_role_the_prompt_gave_has_no_word_for_it():
    assert told([Run(ROLE, "user x", True)], has_role_word=False) == ["bare user", "bare x"]


def test_a_run_that_goes_on_in_its_section_has_no_first_word_once_there_was_one():
    runs = [Run(ROLE, "user", True), Run(ROLE, "x", False)]
    assert told(runs) == ["role user", "bare x"]
    assert told([Run(ROLE, " ", True), Run(ROLE, "x", False)]) == ["role x"]


def test_each_section_has_a_first_word_of_its_own():
    runs = [Run(ROLE, "user", True), Run(CHANNEL, "", True), Run(CHANNEL, "final", True)]
    assert told(runs) == ["role user", "channel final"]


def test_a_word_knows_whether_it_names_a_channel_and_the_places_in_it():
    word = Word(WordKind.BARE, "Final", TextPosition(1, 4), CHANNEL)
    assert word.is_channel
    assert not word._replace(text="finally").is_channel
    assert word.after(2) == TextPosition(1, 6)


@given(
    st.lists(
        st.builds(
            Run,
            st.sampled_from(Section),
            st.text("tofinalser=:{.\u3000 é\udc80", max_size=12),
            st.booleans(),
        ),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
@examples(200)
def test_the_words_are_all_of_the_text_that_is_not_white_space(runs, has_role_word):
    words = list(words_of(runs, has_role_word=has_role_word))
    assert [word.place for word in words] == sorted(word.place for word in words)
    for number, run in enumerate(runs):
        mine = [word for word in words if word.place.run == number]
        assert "".join(word.text for word in mine) == "".join(run.text.split())
        for word in mine:
            assert run.text.startswith(word.text, word.place.offset)
            assert word.section is run.section
