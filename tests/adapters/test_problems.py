"""What a server is told about a stream, in sentences."""

import json
import re

import pytest

from harmony_stream.adapters.problems import Problem, sentence_of
from harmony_stream.values.header import Header
from harmony_stream.values.messages import Role

CALL = Header(Role.ASSISTANT, None, "commentary", "functions.F", "<|constrain|>json")
ANSWER = Header(Role.TOOL, "browser.search", "commentary", "assistant")
ODD = Header(Role.ASSISTANT, None, "gossip")

# kind -> the header, further words, and what the sentence must hold
SENTENCES = {
    "without_channel": (ODD, {"place": "the reasoning"}, ["without a channel", "the reasoning"]),
    "unknown_channel": (ODD, {"place": "the answer"}, ["'gossip'", "goes to the answer"]),
    "hidden_call": (CALL, {}, ["'functions.F'", "is not shown"]),
    "incomplete_call": (CALL, {}, ["'functions.F'", "must not be executed"]),
    "arguments_not_json": (CALL, {}, ["'functions.F'", "are not JSON"]),
    "resolved_name": (CALL, {"name": "f"}, ["'functions.F'", "declared 'f'"]),
    "nameless_call": (CALL, {}, ["'functions.F'", "sent as text"]),
    "unanswered_result": (ANSWER, {}, ["'browser.search'", "does not have a matching call"]),
    "after_return": (None, {}, ["after <|return|>", "are not sent"]),
}


@pytest.mark.parametrize("kind", SENTENCES)
def test_a_sentence_says_what_happened_to_whom_and_where(kind):
    header, words, parts = SENTENCES[kind]
    sentence = sentence_of(kind, header, 17, 29, **words)
    assert [part for part in parts if part not in sentence] == []
    assert "29" in sentence
    assert not re.search("[{}]", sentence)


def test_an_unknown_kind_has_no_sentence():
    with pytest.raises(KeyError):
        sentence_of("rain", None, 0, 1)


def test_a_problem_as_a_dictionary_has_all_its_fields_and_survives_json():
    problem = Problem("hidden_call", "a call", 3, 9, "{}", 1)
    fields = {"kind": "hidden_call", "message": "a call", "start": 3, "stop": 9, "text": "{}"}
    assert json.loads(json.dumps(problem.to_dict())) == {**fields, "choice": 1}


def test_without_words_only_kind_place_and_choice_are_left():
    problem = Problem("expected_start", "token 3 ('secret') ...", 3, 9, "secret", 2)
    bare = problem.without_words()
    assert "secret" not in repr(bare)
    assert (bare.kind, bare.start, bare.stop, bare.choice) == ("expected_start", 3, 9, 2)
    assert bare.message == "expected_start at positions 3 to 9"
    assert "secret" in problem.message
