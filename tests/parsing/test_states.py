"""The state table as a table: each cell, fed to a parser that stands there."""

import pytest
from strategies import RESERVED, SPECIAL, UNKNOWN, described, faults_of, tokens_of

from harmony_stream.parsing.machine import _METHODS
from harmony_stream.parsing.parser import EventParser
from harmony_stream.parsing.states import (
    KIND_OF_FORMATTING_TOKEN,
    TABLE,
    WORD_FAULTS,
    Action,
    State,
    TokenKind,
    expected_in,
)
from harmony_stream.values.events import HarmonyParseError
from harmony_stream.values.faults import FaultKind
from harmony_stream.vocabulary import FormattingToken

CELLS = [(state, kind) for state in State for kind in TokenKind]
each_cell = pytest.mark.parametrize(
    ("state", "kind"), CELLS, ids=[f"{state}-{kind.name}" for state, kind in CELLS]
)

# How a parser gets into each state, with more than a role in its header.
WAYS = {
    State.EXPECT_START: "<|start|>user<|message|>Hi<|end|>",
    State.ROLE: "<|start|>assistant to=f",
    State.CHANNEL: "<|start|>assistant<|channel|>final",
    State.CONSTRAIN: "<|start|>assistant<|constrain|>json",
    State.CONTENT: "<|start|>assistant<|channel|>final<|message|>Hi",
}
TOKENS = {
    TokenKind.OTHER_SPECIAL: RESERVED,
    TokenKind.TEXT: 13225,
    TokenKind.UNKNOWN: UNKNOWN,
    TokenKind.END_OF_STREAM: None,
}
# What comes at once; faults of a header that goes on come when it ends.
EVENTS = {
    Action.SKIP: [],
    Action.WAIT: [],
    Action.IMPLY: [],
    Action.OPEN: [],
    Action.KEEP: [],
    Action.CLOSE: ["start"],
    Action.BREAK_OFF: ["start", "missing_message", "end"],
    Action.REOPEN: ["unexpected_start"],
    Action.DELTA: ["delta"],
    Action.IGNORE: ["fault"],
    Action.REPLACE: ["delta", "fault"],
    Action.FINISH: ["end"],
    Action.NEXT: ["missing_end", "end"],
}
JUDGED_LATER = {Action.WAIT, Action.IMPLY, Action.KEEP}


def token_of(kind):
    return TOKENS[kind] if kind in TOKENS else SPECIAL[kind.value]


def parser_in(state, **options):
    parser = EventParser(None, **options)
    parser.feed_many(tokens_of(WAYS[state]))
    assert parser.state is state
    return parser


def feed(parser, token):
    return list(parser.close() if token is None else parser.feed(token))


def feed_and_finish(parser, kind, action):
    """The events of a token, and of the `<|message|>` that ends a header kept for later."""
    events = feed(parser, token_of(kind))
    if action in JUDGED_LATER and parser.state is not State.CONTENT:
        word = "final" if kind is TokenKind.CHANNEL else " json"
        rest = word if kind in (TokenKind.CHANNEL, TokenKind.CONSTRAIN) else ""
        events += parser.feed_many(tokens_of(rest + "<|message|>"))
    return events


@each_cell
def test_each_state_has_a_cell_for_each_kind_of_token(state, kind):
    assert set(TABLE) == set(State)
    assert set(TABLE[state]) == set(TokenKind)
    assert TABLE[state][kind].action in _METHODS


@each_cell
def test_a_token_leads_to_the_next_state(state, kind):
    parser = parser_in(state)
    feed(parser, token_of(kind))
    assert parser.state is TABLE[state][kind].next


@each_cell
def test_a_token_gives_the_fault_of_its_cell_and_no_other(state, kind):
    cell = TABLE[state][kind]
    events = feed_and_finish(parser_in(state), kind, cell.action)
    assert faults_of(events) == ([cell.fault] if cell.fault else [])


@each_cell
def test_the_strict_mode_raises_the_fault_of_its_cell(state, kind):
    cell = TABLE[state][kind]
    parser = parser_in(state, strict=True)
    if cell.fault is None:
        feed_and_finish(parser, kind, cell.action)
    else:
        with pytest.raises(HarmonyParseError) as caught:
            feed_and_finish(parser, kind, cell.action)
        assert caught.value.kind is cell.fault
    assert parser.state is state_after(cell)


def state_after(cell):
    """Where a parser stands when a header that goes on was ended by `<|message|>`."""
    is_header = cell.next in (State.ROLE, State.CHANNEL, State.CONSTRAIN)
    return State.CONTENT if cell.action in JUDGED_LATER and is_header else cell.next


@each_cell
def test_a_token_gives_the_events_of_its_action(state, kind):
    action = TABLE[state][kind].action
    events = feed(parser_in(state), token_of(kind))
    names = [event.to_dict()["type"] for event in events]
    wanted = EVENTS[action]
    if action is Action.IMPLY and kind is TokenKind.MESSAGE:
        wanted = ["start", "fault"]
    if action is Action.BREAK_OFF and kind is TokenKind.END_OF_STREAM:
        wanted = ["fault"]  # no word is left over
    kinds = {"start": "message_start", "delta": "content_delta", "end": "message_end"}
    assert names == [kinds.get(name, "malformed") for name in wanted]


# -- The conditions in `unless` --

EXCEPTIONS = {
    **{
        (State.ROLE, kind): ("assistant", "<|start|>assistant", token_of(kind))
        for kind in (
            TokenKind.END,
            TokenKind.RETURN,
            TokenKind.CALL,
            TokenKind.END_OF_TEXT,
            TokenKind.END_OF_STREAM,
        )
    },
    (State.ROLE, TokenKind.START): ("assistant", "", SPECIAL["<|start|>"]),
    (State.ROLE, TokenKind.OTHER_SPECIAL): ("assistant", "", SPECIAL["<|startoftext|>"]),
    (State.EXPECT_START, TokenKind.OTHER_SPECIAL): (None, "", SPECIAL["<|startoftext|>"]),
    (State.EXPECT_START, TokenKind.TEXT): (None, "", tokens_of(" \n")[0]),
}
CONDITIONAL = [(state, kind) for state, kind in CELLS if TABLE[state][kind].unless]


@pytest.mark.parametrize(
    ("state", "kind"), CONDITIONAL, ids=[f"{state}-{kind.name}" for state, kind in CONDITIONAL]
)
def test_a_cell_has_no_fault_if_its_condition_is_met(state, kind):
    role, way, token = EXCEPTIONS[state, kind]
    parser = EventParser(role, strict=True)
    parser.feed_many(tokens_of(way))
    assert parser.state is state
    assert feed(parser, token) == []


@pytest.mark.parametrize(
    ("way", "token", "fault"),
    [
        ("<|end|>", "<|startoftext|>", "unexpected_marker"),
        ("<|start|>assistant", "<|startoftext|>", "unexpected_marker"),
        ("<|start|>user<|message|>", "<|startoftext|>", "unexpected_marker"),
        ("", "<|reserved_200013|>", "unexpected_marker"),
        ("", "a", "expected_start"),
    ],
)
def test_a_cell_has_its_fault_if_its_condition_is_nearly_met(way, token, fault):
    parser = EventParser(None)
    parser.feed_many(tokens_of(way + token))
    events = parser.feed_many(tokens_of("<|message|>"))
    twin = EventParser(None)
    assert fault in faults_of([*twin.feed_many(tokens_of(way + token)), *events])


def test_a_prompt_repeated_is_a_fault_if_its_role_is_another():
    parser = EventParser("assistant")
    assert parser.feed(SPECIAL["<|start|>"]) == ()
    events = parser.feed_many(tokens_of("user<|message|>"))
    assert described(events) == ["start user 0:3", "unexpected_start 0:1"]


# -- What else is read off the table --


def test_each_fault_stands_in_the_table_or_is_one_of_a_headers_words():
    in_table = {cell.fault for row in TABLE.values() for cell in row.values()} - {None}
    assert in_table | set(WORD_FAULTS) == set(FaultKind)


def test_each_formatting_token_has_a_kind_of_its_own_but_for_the_start_of_text():
    for token in FormattingToken:
        kind = KIND_OF_FORMATTING_TOKEN[token]
        if token is FormattingToken.START_OF_TEXT:
            assert kind is TokenKind.OTHER_SPECIAL
        else:
            assert kind.value == token.value


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (State.EXPECT_START, ("<|start|>",)),
        (State.ROLE, ("<|channel|>", "<|constrain|>", "<|message|>", "text")),
        (State.CHANNEL, ("<|constrain|>", "<|message|>", "text")),
        (State.CONSTRAIN, ("<|channel|>", "<|message|>", "text")),
        (State.CONTENT, ("<|end|>", "<|return|>", "<|call|>", "<|endoftext|>", "text")),
    ],
)
def test_what_is_expected_in_a_state_is_what_is_no_fault_there(state, expected):
    assert expected_in(state) == expected
