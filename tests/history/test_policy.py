"""Which messages go back to the model, by their headers."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from letters import HEADERS, POLICIES, policies, words
from strategies import examples

from harmony_stream.history.policy import (
    HistoryPolicy,
    LastTurns,
    Turns,
    get_policy,
    messages_to_drop,
)

NEVER_PARTING = [policy for policy in POLICIES if policy is not HistoryPolicy.UPSTREAM]


def what_stays(word, policy=HistoryPolicy.FINISHED_TURNS):
    gone = messages_to_drop([HEADERS[letter] for letter in word], policy)
    return "".join("." if place in gone else letter for place, letter in enumerate(word))


# --- The decision --------------------------------------------------------------------------------

DECISIONS = {
    "the thoughts of a finished turn go": ("suafu", "su.fu"),
    "those of each finished turn": ("uafuafu", "u.fu.fu"),
    "an open turn keeps everything": ("uacra", "uacra"),
    "calls and results of a finished turn stay": ("uacrapcraf", "u.cr.pcr.f"),
    "those on analysis too": ("uaCRaf", "u.CR.f"),
    "a turn that was left open keeps its thoughts": ("uacruafu", "uacru.fu"),
    "a preamble does not finish a turn": ("uapu", "uapu"),
    "an answer without a channel neither": ("uanu", "uanu"),
    "a call on final neither": ("uaxu", "uaxu"),
    "who thinks on after an answer has not finished": ("uafa", "uafa"),
    "two answers in one turn": ("uafaf", "u.f.f"),
    "what comes before the first question is a turn": ("afuaf", ".fu.f"),
    "a question ends it, also after one message": ("auf", "auf"),
    "a thought for oneself is a thought": ("umf", "u.f"),
    "an unknown channel is not known to be thinking": ("uof", "uof"),
    "only the assistant thinks": ("UafUaf", "U.fU.f"),
    "only the assistant answers": ("uaF", "uaF"),
    "a result after the answer leaves the turn finished": ("uafr", "u.fr"),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("word", "stays"), DECISIONS.values(), ids=DECISIONS)
def test_thoughts_of_finished_turns_go(word, stays):
    assert what_stays(word) == stays


OTHER_POLICIES = [
    ("uafuafuafu", HistoryPolicy.KEEP, "uafuafuafu"),
    ("uafuafuafu", LastTurns(0), "u.fu.fu.fu"),
    ("uafuafuafu", LastTurns(1), "u.fu.fuafu"),
    ("uafuafuafu", LastTurns(2), "u.fuafuafu"),
    ("uafuafuafu", LastTurns(3), "uafuafuafu"),
    ("uafuafuafu", LastTurns(9), "uafuafuafu"),
    ("uafuacuafua", LastTurns(1), "u.fuacuafua"),
    ("uafuaf", LastTurns(1), "u.fuaf"),
    ("uafuafa", LastTurns(1), "uafuafa"),
    ("uafuaf", HistoryPolicy.UPSTREAM, "u.fuaf"),
    ("uafuafa", HistoryPolicy.UPSTREAM, "uafuafa"),
    ("uaCRafu", HistoryPolicy.UPSTREAM, "u....fu"),
    ("uFUaf", HistoryPolicy.UPSTREAM, "uFUaf"),
    ("UaxuF", HistoryPolicy.UPSTREAM, "..xuF"),
    ("ua", HistoryPolicy.UPSTREAM, "ua"),
]


@pytest.mark.parametrize(("word", "policy", "stays"), OTHER_POLICIES)
def test_other_policies_keep_more_or_what_openai_harmony_keeps(word, policy, stays):
    assert what_stays(word, policy) == stays


@pytest.mark.parametrize("policy", HistoryPolicy)
def test_policies_go_by_their_names_too(policy):
    assert get_policy(policy.value) is policy


def test_an_unknown_policy_is_refused_as_is_a_negative_count():
    with pytest.raises(ValueError, match="'all' is not a valid HistoryPolicy"):
        messages_to_drop([], "all")
    with pytest.raises(ValueError, match=r"LastTurns\.count: -1 is below 0"):
        LastTurns(-1)
    for count in (1.5, True, "1"):
        with pytest.raises(TypeError, match="is not a whole number"):
            LastTurns(count)


def test_turns_are_counted_as_they_come():
    turns = Turns()
    for letter in "uafu" + "acr" * 1000:
        turns.add(HEADERS[letter])

    assert (len(turns), turns.count, turns.decided(HistoryPolicy.FINISHED_TURNS)) == (2, 3004, 1)


DECIDED = [
    ("uafuaf", HistoryPolicy.FINISHED_TURNS, 1),
    ("uafuaf", HistoryPolicy.KEEP, 1),
    ("uafuaf", LastTurns(0), 1),
    # The last finished turn stays; it may cease to be finished, and the one before stays then.
    ("uafuaf", LastTurns(1), 0),
    ("uafuafuaf", LastTurns(1), 1),
    ("uafuafuafu", LastTurns(1), 1),
    ("uafuafuaf", LastTurns(2), 0),
    ("uafuacuafuaf", LastTurns(1), 2),
]


@pytest.mark.parametrize(("word", "policy", "count"), DECIDED)
def test_so_many_turns_are_decided_for_good(word, policy, count):
    turns = Turns()
    for letter in word:
        turns.add(HEADERS[letter])

    assert turns.decided(policy) == count


# A conversation in which "(" is before a message that was cut off, "!" before one after a return.
CUTS = {
    "a message that was cut off goes": ("u(fu", [(1, "truncated")]),
    "it does not finish its turn": ("ua(f", [(2, "truncated")]),
    "nor is it a thought that goes with its turn": ("u(af", [(1, "truncated")]),
    "a call that is answered stays": ("u(cr", []),
    "also by the second result": ("u(cRr", []),
    "of two calls of one name both stay": ("u(c(cr", []),
    "another tool answers nothing": ("u(cR", [(1, "truncated")]),
    "an answer that comes too late neither": ("u(cur", [(1, "truncated")]),
    "only calls are answered": ("u(m(fr", [(1, "truncated"), (2, "truncated")]),
    "what was sampled after the return goes": (
        "uaf!u!f",
        [(1, "finished_turn"), (3, "after_return"), (4, "after_return")],
    ),
}


def turns_of(word):
    turns = Turns()
    for mark, letter in re.findall("([(!]?)(.)", word):
        if mark == "!":
            turns.add_after_return()
        else:
            turns.add(HEADERS[letter], is_cut=mark == "(")
    return turns


@pytest.mark.parametrize(("word", "gone"), CUTS.values(), ids=CUTS)
def test_what_was_cut_off_goes_unless_a_tool_answered_it(word, gone):
    turns = turns_of(word)

    assert turns.dropped(HistoryPolicy.FINISHED_TURNS) == gone
    assert turns.cut == [index for index, reason in gone if reason == "truncated"]


def test_what_does_not_count_is_nothing_to_openai_harmonys_rule():
    assert turns_of("uaf(f").cutoff(HistoryPolicy.UPSTREAM) == 2
    assert turns_of("ua(f").cutoff(HistoryPolicy.UPSTREAM) == 0
    assert turns_of("uaf!a").cutoff(HistoryPolicy.UPSTREAM) == 2


def test_the_turn_to_come_begins_behind_all_messages():
    assert [turns_of("uafuaf").start_of(turn) for turn in range(3)] == [0, 3, 6]


# --- Laws ----------------------------------------------------------------------------------------


@given(words, st.sampled_from(NEVER_PARTING))
@examples(300)
def test_a_call_and_its_result_are_never_parted(word, policy):
    stays = what_stays(word, policy)

    assert all(stays[place] == letter for place, letter in enumerate(word) if letter in "cCxrR")


@given(words, st.sampled_from(NEVER_PARTING))
@examples(200)
def test_only_thoughts_go_and_none_of_an_open_turn(word, policy):
    stays = what_stays(word, policy)

    assert {letter for letter, left in zip(word, stays, strict=True) if left == "."} <= {"a", "m"}
    last = stays[max(stays.rfind(letter) for letter in "uUF") + 1 :]
    spoken = [letter for letter in word[len(word) - len(last) :] if letter in "apfcCxmno"]
    assert "." not in last or spoken[-1] == "f"


@given(words, st.integers(0, 4))
@examples(200)
def test_to_keep_more_turns_keeps_more_thoughts(word, count):
    fewer = messages_to_drop([HEADERS[letter] for letter in word], LastTurns(count + 1))
    more = messages_to_drop([HEADERS[letter] for letter in word], LastTurns(count))

    assert fewer.keys() <= more.keys()


@given(words, words, policies)
@example("uafuaf", "a", LastTurns(1))
@example("uafuafuaf", "a", LastTurns(2))
@examples(300)
def test_what_is_decided_for_good_stays_decided(word, more, policy):
    turns = Turns()
    for letter in word:
        turns.add(HEADERS[letter])
    decided, cutoff = turns.decided(policy), turns.cutoff(policy)
    before = turns.dropped(policy, 0, decided)

    for letter in more:
        turns.add(HEADERS[letter])

    assert turns.cutoff(policy) != cutoff or turns.dropped(policy, 0, decided) == before
