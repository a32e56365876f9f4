"""Which reasoning a renderer leaves out: the two rules, by headers alone."""

import pytest
from hypothesis import given
from letters import HEADERS, messages_of, words
from strategies import examples

from harmony_stream.history.policy import HistoryPolicy, messages_to_drop
from harmony_stream.rendering.dropping import (
    analysis_cutoff,
    finishes_its_turn,
    goes_with_its_turn,
    reasoning_of_finished_turns,
)
from harmony_stream.values.messages import Role

# openai_harmony's rule: a conversation by its letters, and where the dropping ends.
CUTOFFS = [
    ("", 0), ("ua", 0), ("uaf", 2), ("uafu", 2), ("uafuaf", 2), ("uafua", 0), ("uap", 0),
    ("uFaf", 1), ("Faf", 0), ("uan", 0), ("ux", 1),
]  # fmt: skip


@pytest.mark.parametrize(("word", "cutoff"), CUTOFFS)
def test_analysis_goes_up_to_the_first_final_if_the_assistants_last_is_final(word, cutoff):
    assert analysis_cutoff([(HEADERS[each].role, HEADERS[each].channel) for each in word]) == cutoff


def test_the_final_of_a_user_ends_the_dropping_too():
    headers = [(Role.USER, "final"), (Role.ASSISTANT, "analysis"), (Role.ASSISTANT, "final")]

    assert analysis_cutoff(headers) == 0


# The guide's rule, and what of a conversation goes by it.
TURNS = [
    ("", ""), ("uaf", "a"), ("uafu", "a"), ("ua", ""), ("uaua", ""), ("uafuaf", "aa"),
    ("uafua", "a"), ("uacraf", "aa"), ("uaCRf", "a"), ("umf", "m"), ("uafa", ""), ("uaxu", ""),
    ("suaf", "a"), ("afu", "a"), ("Uaf", "a"), ("uafr", "a"), ("uof", ""),
]  # fmt: skip


@pytest.mark.parametrize(("word", "gone"), TURNS)
def test_reasoning_goes_once_its_turn_has_an_answer(word, gone):
    assert "".join(word[index] for index in reasoning_of_finished_turns(messages_of(word))) == gone


@given(words)
@examples(200)
def test_the_renderer_and_the_history_follow_one_rule(word):
    of_history = messages_to_drop([HEADERS[each] for each in word], HistoryPolicy.FINISHED_TURNS)
    assert reasoning_of_finished_turns(messages_of(word)) == [*of_history]


def test_only_the_assistants_messages_to_no_tool_are_reasoning_or_answers():
    for role in Role:
        for recipient in (None, "user", "python"):
            is_said = role is Role.ASSISTANT and recipient != "python"
            assert goes_with_its_turn(role, "analysis", recipient) is is_said
            assert finishes_its_turn(role, "final", recipient) is is_said
            assert not goes_with_its_turn(role, "final", recipient)
            assert not finishes_its_turn(role, "analysis", recipient)
