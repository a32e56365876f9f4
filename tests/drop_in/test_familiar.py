"""When openai_harmony would raise, and in which words. Beside the wheel: test_streamable.py."""

import pytest
from strategies import SPECIAL, VOCABULARY, events_of, tokens_of

from harmony_stream.drop_in.familiar import (
    FamiliarParseError,
    TheirState,
    at_end_of_stream,
    familiar_error_of,
    familiar_errors,
    message_of_text,
)
from harmony_stream.values.events import HarmonyParseError
from harmony_stream.values.faults import FaultKind
from harmony_stream.values.messages import Role

START = SPECIAL["<|start|>"]

# -- Where their parser stands --

# the given role, what it was fed, and where it is then
STATES = [
    (None, "", "between"),
    (None, "text", "between"),
    (None, "<|message|>", "between"),
    (None, "<|start|>", "header"),
    ("assistant", "", "header"),
    ("assistant", "<|start|>user", "header"),
    ("assistant", "<|channel|>final<|end|>", "header"),
    ("assistant", "<|message|>", "content"),
    ("assistant", "<|message|>a<|start|>b<|channel|>c<|message|>", "content"),
    *(("assistant", f"<|message|>a{stop}", "between") for stop in
      ("<|end|>", "<|return|>", "<|call|>")),
    ("assistant", "<|message|>a<|endoftext|>", "content"),
    ("assistant", "<|message|>a<|end|><|start|>", "header"),
]  # fmt: skip


def place_of(state):
    assert not (state.is_header and state.is_content)
    return "header" if state.is_header else "content" if state.is_content else "between"


@pytest.mark.parametrize(("role", "text", "place"), STATES)
def test_their_parser_leaves_its_states_by_few_tokens(role, text, place):
    state = TheirState(VOCABULARY, role)
    for token in tokens_of(text):
        state.take(token)
    assert place_of(state) == place


def test_a_header_at_whose_end_it_raised_has_no_content():
    state = TheirState(VOCABULARY, Role.ASSISTANT)
    state.take(SPECIAL["<|message|>"], raised=True)
    assert place_of(state) == "between"


@pytest.mark.parametrize("text", ["", "<|channel|>final", "<|message|>a"])
def test_at_the_end_of_the_stream_it_is_between_messages(text):
    state = TheirState(VOCABULARY, "assistant")
    for token in tokens_of(text):
        state.take(token)
    state.end()
    assert place_of(state) == "between"


# -- Text that belongs to no message --

TEXTS = [
    ("<|message|>a<|end|>Hello.<|start|>assistant<|message|>b<|end|>", ["Hello."]),
    ("<|channel|>final It is 4.<|start|>user<|message|>b<|end|>", []),
    ("<|start|>assistant final words left<|message|>a<|end|>", ["words left"]),
    ("<|message|>a<|end|> \n <|start|>user<|message|>b<|end|>", []),
    ("<|message|>a<|end|>Final<|start|>user<|message|>b<|end|>", []),
    ("<|message|>a<|end|>assistant<|start|>user<|message|>b<|end|>", []),
    ("<|message|>a<|start|>user<|message|>b<|end|>", []),
]


@pytest.mark.parametrize(("text", "found"), TEXTS)
def test_text_between_messages_and_words_of_no_field_become_messages(text, found):
    messages = [message_of_text(event, None) for event in events_of(text)]
    said = [message for message in messages if message]
    assert [
        (message.author.role, message.channel, message.content[0].text) for message in said
    ] == [(Role.ASSISTANT, None, text) for text in found]


def test_such_a_message_has_the_role_that_was_given():
    events = events_of("<|message|>a<|end|>Hello.<|start|>user<|message|>b<|end|>", "user")
    [message] = filter(None, (message_of_text(event, "user") for event in events))
    assert message.author.role is Role.USER


# -- What it raises for --

WORDS_LEFT = 'unexpected tokens remaining in message header: Some("{}")'
NO_MESSAGE = "Unexpected EOS while waiting for message header to complete"
# the given role, a stream, and the phrases and positions of all that would raise
RAISED = [
    ("assistant", "<|message|>a<|end|>Hello", [
        (f"Unexpected token 13225 while expecting start token {START}", 3)]),
    ("assistant", "<|channel|><|message|>a<|end|>", [
        ("channel marker present but no channel value found in header", 1)]),
    (None, "<|start|>robots!<|message|>a<|end|>", [("Unknown role: robots!", 1)]),
    (None, "<|start|><|message|>a<|end|>", [("message header did not contain a role", 1)]),
    (None, "<|start|>assistant<|channel|>final two words<|message|>a<|end|>", [
        (WORDS_LEFT.format("two words"), 4)]),
    ("assistant", "<|channel|>final<|start|>assistant<|message|>a<|end|>", [(NO_MESSAGE, 2)]),
    ("assistant", "<|channel|>final", [(NO_MESSAGE, 2)]),
    ("assistant", "<|message|>a<|end|>b<|start|>user<|channel|><|message|>a<|end|>", [
        (f"Unexpected token 65 while expecting start token {START}", 3),
        ("channel marker present but no channel value found in header", 7)]),
    # A role alone says nothing; and what is repaired silently is no error of theirs.
    (None, "<|start|>user<|start|>assistant<|message|>a<|end|>", []),
    ("assistant", "<|start|>assistant<|message|>a<|end|>", []),
    ("assistant", "<|message|>a<|channel|>final<|message|>b<|end|>", []),
]  # fmt: skip


@pytest.mark.parametrize(("role", "text", "raised"), RAISED)
def test_the_faults_it_would_raise_for_are_said_in_its_words_first(role, text, raised):
    errors = list(familiar_errors(VOCABULARY, events_of(text, role)))
    assert [(error.phrase, error.position) for error in errors] == raised
    for error in errors:
        ours = HarmonyParseError(
            *(getattr(error, name) for name in ("kind", "position", "token", "token_text")),
            *(getattr(error, name) for name in ("state", "header_text", "expected")),
        )
        assert str(error) == f"{error.phrase}: {ours}"


@pytest.mark.parametrize(("role", "text", "raised"), RAISED)
def test_of_a_whole_completion_the_first_is_raised(role, text, raised):
    error = familiar_error_of(VOCABULARY, role, tokens_of(text), events_of(text, role))
    assert (error and (error.phrase, error.position)) == (raised[0] if raised else None)


def test_what_is_text_to_it_is_no_error_of_a_whole_completion():
    text = "<|message|>Hm<|channel|>final It is 4.<|end|>"
    assert list(familiar_errors(VOCABULARY, events_of(text)))
    assert familiar_error_of(VOCABULARY, "assistant", tokens_of(text), events_of(text)) is None


# a stream that openai_harmony takes for one header, and what it says if that ends with a message
UNCLOSED = [
    ("<|channel|>", NO_MESSAGE),
    ("<|channel|>final It is 4.<|end|>", WORDS_LEFT.format("It is 4.")),
]


@pytest.mark.parametrize(("text", "phrase"), UNCLOSED)
def test_a_header_that_nothing_closes_is_found_at_the_end(text, phrase):
    [error] = familiar_errors(VOCABULARY, events_of(text))
    assert error.phrase == phrase
    found = familiar_error_of(VOCABULARY, "assistant", tokens_of(text), events_of(text))
    assert found == at_end_of_stream(error)
    assert found.phrase == NO_MESSAGE


def test_an_error_is_a_parse_error_with_a_phrase():
    error = FamiliarParseError(FaultKind.EMPTY_CHANNEL, 1, None, "", "ROLE", "", (), (), "Oh")
    assert isinstance(error, HarmonyParseError)
    assert at_end_of_stream(error).phrase == NO_MESSAGE
    assert at_end_of_stream(error).position == 1
