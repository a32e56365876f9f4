"""What events tell of a fault: where it is, what came, and what was expected."""

import copy
import pickle

import pytest
from strategies import SPECIAL, VOCABULARY, described, events_of, tokens_of

from harmony_stream.parsing import malformed as module
from harmony_stream.parsing.items import piece_of
from harmony_stream.parsing.malformed import error_fields, fault_of_token, fed
from harmony_stream.parsing.parser import EventParser
from harmony_stream.parsing.states import State
from harmony_stream.values.events import HarmonyParseError, Malformed
from harmony_stream.values.faults import FaultKind
from harmony_stream.vocabulary import Vocabulary


def faults(text, role="assistant"):
    """Kind, span, text, and the error of each fault."""
    found = [event for event in events_of(text, role) if isinstance(event, Malformed)]
    return [(f.kind.value, f.start, f.stop, f.text, f.error.token_text) for f in found]


@pytest.mark.parametrize(
    ("kind", "item", "state", "word", "token", "token_text", "expected"),
    [
        (FaultKind.MISSING_END, SPECIAL["<|start|>"], State.CONTENT, "", SPECIAL["<|start|>"],
         "<|start|>", "<|end|>"),
        (FaultKind.TRUNCATED_IN_HEADER, None, State.CHANNEL, "", None, "", "<|constrain|>"),
        (FaultKind.UNKNOWN_ROLE, 13225, State.ROLE, "bot", 13225, "bot", "user"),
        (FaultKind.EXPECTED_START, "Hi", State.EXPECT_START, "", None, "Hi", "<|start|>"),
    ],
)  # fmt: skip
def test_an_error_names_what_came_and_what_was_expected(
    kind, item, state, word, token, token_text, expected
):
    error = HarmonyParseError(*error_fields(VOCABULARY, kind, 7, item, state, "so far", word))
    assert (error.kind, error.position, error.state) == (kind, 7, state.value)
    assert (error.token, error.token_text, error.header_text) == (token, token_text, "so far")
    assert expected in error.expected


def test_faults_of_equal_tokens_share_all_but_their_places():
    kind, token = FaultKind.UNEXPECTED_MARKER, SPECIAL["<|message|>"]
    one, other = (
        fault_of_token(VOCABULARY, kind, piece_of(VOCABULARY, token, n, n + 1), State.CONTENT)
        for n in (3, 8)
    )
    assert (one.start, one.error.position, other.start, other.error.position) == (3, 3, 8, 8)
    assert one._error is other._error
    fields = error_fields(VOCABULARY, kind, 3, token, State.CONTENT)
    assert one.error == HarmonyParseError(*fields)
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one


def test_only_so_many_faults_are_shared(monkeypatch):
    monkeypatch.setattr(module, "_MOST_FAULTS", 2)
    vocabulary = Vocabulary.from_tiktoken(VOCABULARY.tiktoken_encoding)
    for token in (10**9, 10**9 + 1, 10**9 + 2):
        piece = piece_of(vocabulary, token, 0, 1)
        fault = fault_of_token(vocabulary, FaultKind.UNKNOWN_TOKEN, piece, State.CONTENT)
        assert fault.error.token == token
    assert len(vocabulary.table(module._Faults)) == 1


@pytest.mark.parametrize(
    ("text", "role", "wanted"),
    [
        ("<|start|>user<|message|>", None, []),
        ("<|channel|><|message|>", "assistant", [("empty_channel", 1, 2, "", "<|message|>")]),
        ("<|start|>bot<|channel|>final<|message|>", None, [("unknown_role", 1, 2, "bot", "bot")]),
        ("<|start|>user x y<|message|>", None, [("unparsed_header_text", 2, 4, "x y", "x y")]),
        ("<|start|>user<|message|>", "assistant", [("unexpected_start", 0, 1, "", "<|start|>")]),
        ("<|message|>", None, [("expected_start", 0, 1, "", "<|message|>")]),
        (" x<|channel|>final<|message|>", None, [("expected_start", 0, 1, "x", " x")]),
        # of two faults with left-over words, one has them all
        ("<|start|>!f x y<|channel|>final<|message|>", None,
         [("unknown_role", 1, 5, "!f x y", "!f"), ("unparsed_header_text", 3, 4, "", "x y")]),
    ],
)  # fmt: skip
def test_a_fault_of_a_header_is_at_its_token_and_has_the_words_that_are_left(text, role, wanted):
    assert faults(text, role) == wanted


def test_words_left_over_in_marked_text_are_cut_to_the_character():
    parser = EventParser(None)
    events = parser.feed_text("<|start|>user é!  <|message|>")
    assert described(events) == ["unparsed_header_text('é!') 14:16", "start user 0:29"]


def test_faults_of_a_prompt_are_reported_to_nobody():
    parser = EventParser.after(tokens_of("<|start|>bot x<|channel|>"))
    assert described(parser.feed_many(tokens_of("final<|message|>"))) == [
        "start assistant final 0:2"
    ]
    of_prompt, *others = (Malformed(None, "", 0, stop) for stop in (0, 1, 2))
    assert fed([of_prompt, *others]) == others
