"""What is remembered of headers, for whom, and how much of it."""

import pytest
from strategies import SPECIAL, VOCABULARY, tokens_of

from harmony_stream.parsing import known_headers as module
from harmony_stream.parsing.known_headers import NOWHERE, KnownHeaders, known_headers
from harmony_stream.parsing.parser import EventParser
from harmony_stream.parsing.states import State
from harmony_stream.values.header import Header
from harmony_stream.values.messages import Role
from harmony_stream.values.read_header import Opening
from harmony_stream.vocabulary import Vocabulary

FINAL = Header(Role.ASSISTANT, None, "final")
TOKENS = tuple(tokens_of("<|start|>assistant<|channel|>final<|message|>"))


def test_a_remembered_header_is_found_as_a_whole_and_token_by_token():
    known = KnownHeaders(VOCABULARY, 64)
    known.remember(Opening.START, TOKENS, FINAL)
    root = known.root(Opening.START)
    assert root.whole == {TOKENS: FINAL}
    node, states = root, []
    for number, token in enumerate(TOKENS, 1):
        node = node[token]
        assert node.tokens() == TOKENS[:number]
        assert node.length == number
        states.append(node.state)
    assert states == [State.ROLE, State.ROLE, State.CHANNEL, State.CHANNEL, State.CONTENT]
    assert node.header is FINAL
    assert known.root(Opening.PROMPT).whole == {}


def test_headers_share_the_nodes_of_what_they_begin_with():
    known = KnownHeaders(VOCABULARY, 64)
    known.remember(Opening.START, TOKENS, FINAL)
    other = (*TOKENS[:3], *tokens_of("analysis<|message|>"))
    before = known.root(Opening.START)[TOKENS[0]]
    known.remember(Opening.START, other, Header(Role.ASSISTANT, None, "analysis"))
    assert known.root(Opening.START)[TOKENS[0]] is before
    assert len(before[TOKENS[1]][TOKENS[2]]) == 2


def test_a_root_tells_how_long_a_header_can_be():
    known = KnownHeaders(VOCABULARY, 5)
    assert known.root(Opening.PROMPT).longest == 6  # and `<|message|>`
    assert known.root(Opening.START).longest == 7  # and `<|start|>`


def test_long_headers_are_not_remembered():
    known = KnownHeaders(VOCABULARY, 100)
    known.remember(Opening.START, (*TOKENS, *[13225] * 60), FINAL)
    assert known.root(Opening.START).whole == {}
    known.remember(Opening.START, (*TOKENS, *[13225] * 59), FINAL)
    assert len(known.root(Opening.START).whole) == 1


def test_too_many_headers_are_forgotten(monkeypatch):
    monkeypatch.setattr(module, "_MOST_NODES", 8)
    known = KnownHeaders(VOCABULARY, 64)
    for word in range(5):
        known.remember(Opening.PROMPT, (word, 1, 2, 3), FINAL)
    assert list(known.root(Opening.PROMPT)) == [4]
    assert list(known.root(Opening.PROMPT).whole) == [(4, 1, 2, 3)]


def test_a_parser_that_waits_keeps_no_headers_that_were_forgotten(monkeypatch):
    monkeypatch.setattr(module, "_MOST_NODES", 8)
    known = KnownHeaders(VOCABULARY, 64)
    waiting = known.root(Opening.PROMPT)
    for word in range(5):
        known.remember(Opening.PROMPT, (word, 1, 2, 3), FINAL)
    assert known.root(Opening.PROMPT) is waiting
    assert len(waiting.whole) == 1


def test_parsers_share_the_headers_of_their_prompt_and_of_their_limit():
    vocabulary = Vocabulary.from_tiktoken(VOCABULARY.tiktoken_encoding)
    mine = known_headers(vocabulary, Role.ASSISTANT, None, 64)
    assert known_headers(vocabulary, Role.ASSISTANT, None, 64) is mine
    for other in [(Role.TOOL, None, 64), (Role.ASSISTANT, "a", 64), (Role.ASSISTANT, None, 63)]:
        assert known_headers(vocabulary, *other) is not mine
    assert known_headers(VOCABULARY, Role.ASSISTANT, None, 64) is not mine


def test_only_so_many_prompts_have_their_headers_kept(monkeypatch):
    monkeypatch.setattr(module, "_MOST_TABLES", 2)
    vocabulary = Vocabulary.from_tiktoken(VOCABULARY.tiktoken_encoding)
    first = known_headers(vocabulary, Role.USER, None, 64)
    known_headers(vocabulary, Role.USER, "a", 64)
    assert known_headers(vocabulary, Role.USER, None, 64) is first
    known_headers(vocabulary, Role.USER, "b", 64)
    assert known_headers(vocabulary, Role.USER, None, 64) is not first


@pytest.mark.parametrize(
    ("role", "text"),
    [
        ("assistant", "<|channel|>final odd words<|message|>"),  # a fault
        (None, "assistant<|channel|>final<|message|>"),  # no `<|start|>`
        ("assistant", "<|start|>assistant<|channel|>final<|message|>"),  # the prompt opened one
    ],
)
def test_headers_with_a_fault_or_another_opening_are_not_remembered(role, text):
    vocabulary = Vocabulary.from_tiktoken(VOCABULARY.tiktoken_encoding)
    for feed in (EventParser.feed_many, lambda parser, tokens: [*map(parser.feed, tokens)]):
        feed(EventParser(role, vocabulary=vocabulary), tokens_of(text))
        known = known_headers(vocabulary, None if role is None else Role(role), None, 64)
        assert known.root(Opening.START).whole == known.root(Opening.PROMPT).whole == {}


@pytest.mark.parametrize("way", ["feed", "feed_many"])
def test_a_header_without_fault_is_remembered_whatever_way_it_is_fed(way):
    vocabulary = Vocabulary.from_tiktoken(VOCABULARY.tiktoken_encoding)
    parser = EventParser(None, vocabulary=vocabulary)
    if way == "feed":
        [*map(parser.feed, TOKENS)]
    else:
        parser.feed_many(TOKENS)
    known = known_headers(vocabulary, None, None, 64)
    assert known.root(Opening.START).whole == {TOKENS: FINAL}


def test_nowhere_leads_nowhere():
    EventParser().feed_many([SPECIAL["<|channel|>"]])
    assert NOWHERE == {}
    assert NOWHERE.tokens() == ()
