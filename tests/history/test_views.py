"""Prompts as slices of a list that only grows; that they are right is tested with transcripts."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from letters import HEADERS, policies, words
from strategies import examples

from harmony_stream.history.policy import DropReason, HistoryPolicy, LastTurns, messages_to_drop
from harmony_stream.history.views import Entry, View, common_prefix, tokens_of

SIZE = 3  # tokens of each message


def entries_of(word):
    return [Entry(HEADERS[letter], False, False) for letter in word]


def laid_out(count):
    """The tokens of so many messages, and where each of them begins."""
    return [*range(count * SIZE)], [*range(0, count * SIZE + 1, SIZE)]


def without(gone, count):
    return [token for token in range(count * SIZE) if token // SIZE not in gone]


@given(words, policies)
@examples(200)
def test_a_plan_leaves_out_what_the_policy_drops_whenever_it_is_asked(word, policy):
    view = View(policy, keeps_cut=False)
    for count in range(len(word) + 1):
        view.catch_up(entries_of(word[:count]))

        plan = view.plan(*laid_out(count))

        gone = messages_to_drop([HEADERS[letter] for letter in word[:count]], policy)
        assert tokens_of(plan) == without(gone, count)


@pytest.mark.parametrize("policy", [*HistoryPolicy, LastTurns(1)])
def test_what_is_decided_is_copied_once(policy):
    view, word = View(policy, keeps_cut=True), "uafuafuafuaf"
    view.catch_up(entries_of(word))

    first, second = (view.plan(*laid_out(len(word))) for _ in range(2))

    assert first == second
    assert first[0][0] is second[0][0]
    assert first[0][2] > 0


CUT = [Entry(HEADERS["u"], False, False), Entry(HEADERS["f"], True, False),
       Entry(HEADERS["u"], False, True)]  # fmt: skip


@pytest.mark.parametrize(
    ("keeps_cut", "gone"),
    [
        (True, [(2, DropReason.AFTER_RETURN)]),
        (False, [(1, DropReason.TRUNCATED), (2, DropReason.AFTER_RETURN)]),
    ],
)
def test_a_message_that_was_cut_off_counts_if_it_is_kept(keeps_cut, gone):
    view = View(HistoryPolicy.KEEP, keeps_cut=keeps_cut)
    view.catch_up(CUT)
    view.catch_up(CUT)

    assert view.dropped() == gone
    assert tokens_of(view.plan(*laid_out(3))) == without(dict(gone), 3)


def test_the_tokens_of_no_slices_are_none():
    assert tokens_of([]) == tokens_of([([1, 2], 1, 1)]) == []


# A few lists of which plans are made; they have tokens in common, as prompts have.
LISTS = [[1, 2, 3, 4, 5, 6], [1, 2, 3, 9, 5, 6], [4, 5, 6, 1, 2, 3]]
slices = st.tuples(st.sampled_from(LISTS), st.integers(0, 6), st.integers(0, 6)).map(
    lambda each: (each[0], min(each[1:]), max(each[1:]))
)


def common(old, new):
    pairs = zip(tokens_of(old), tokens_of(new), strict=False)
    return len([*itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)])


PLANS = [
    ([], [], 0),
    ([], [(LISTS[0], 0, 6)], 0),
    ([(LISTS[0], 0, 6)], [(LISTS[0], 0, 6)], 6),
    ([(LISTS[0], 0, 6)], [(LISTS[0], 0, 2), (LISTS[0], 2, 6)], 6),
    ([(LISTS[0], 0, 2), (LISTS[0], 2, 4)], [(LISTS[0], 0, 6)], 4),
    ([(LISTS[0], 0, 6)], [(LISTS[1], 0, 6)], 3),
    ([(LISTS[0], 0, 3)], [(LISTS[2], 3, 6), (LISTS[2], 0, 3)], 3),
    ([(LISTS[0], 1, 6)], [(LISTS[0], 0, 6)], 0),
]


@pytest.mark.parametrize(("old", "new", "length"), PLANS)
def test_two_plans_have_the_tokens_in_common_that_both_begin_with(old, new, length):
    assert common_prefix(old, new) == common_prefix(new, old) == length
    assert common(old, new) == length


@given(st.lists(slices, max_size=4), st.lists(slices, max_size=4))
@examples(200)
def test_the_common_prefix_is_what_comparing_finds(old, new):
    assert common_prefix(old, new) == common(old, new)
