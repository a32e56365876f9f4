import copy
import pickle

import attrs
import pytest

from harmony_stream.errors import (
    HarmonyError,
    LoadError,
    RenderError,
    RenderFormattingTokenError,
    RenderReferenceError,
)
from harmony_stream.values.events import HarmonyParseError
from harmony_stream.values.faults import FaultKind

HEADER = "assistant<|channel|>commentary"


def fault(kind, **changes):
    fields = {
        "kind": kind,
        "position": 7,
        "token": 12606,
        "token_text": "commentary",
        "state": "CHANNEL",
        "header_text": HEADER,
        "expected": ("json", "code"),
    }
    return HarmonyParseError(**fields | changes)


SENTENCES = {
    FaultKind.EXPECTED_START: (
        "token 12606 ('commentary') at position 7 where json or code was expected"
    ),
    FaultKind.MISSING_MESSAGE: (
        "token 12606 ('commentary') at position 7 where <|message|> was expected: the header is "
        "not finished, header text so far: 'assistant<|channel|>commentary'"
    ),
    FaultKind.UNEXPECTED_START: (
        "token 12606 ('commentary') at position 7 inside a header, header text so far: "
        "'assistant<|channel|>commentary'; expected json or code"
    ),
    FaultKind.MISSING_END: (
        "token 12606 ('commentary') at position 7 inside the content of a message; expected json "
        "or code first"
    ),
    FaultKind.UNEXPECTED_MARKER: (
        "token 12606 ('commentary') at position 7 has no meaning in state CHANNEL; expected json "
        "or code"
    ),
    FaultKind.DUPLICATE_CHANNEL: (
        "a second channel, token 12606 ('commentary'), at position 7, in header "
        "'assistant<|channel|>commentary'; expected one"
    ),
    FaultKind.DUPLICATE_RECIPIENT: (
        "a second recipient, 'commentary', at position 7, in header "
        "'assistant<|channel|>commentary'; expected one"
    ),
    FaultKind.DUPLICATE_CONSTRAIN: (
        "a second constrain type, token 12606 ('commentary'), at position 7, in header "
        "'assistant<|channel|>commentary'; expected one"
    ),
    FaultKind.EMPTY_CHANNEL: (
        "no channel value before token 12606 ('commentary') at position 7, in header "
        "'assistant<|channel|>commentary'; expected json or code"
    ),
    FaultKind.EMPTY_RECIPIENT: (
        "no recipient value in 'commentary' at position 7, in header "
        "'assistant<|channel|>commentary'; expected json or code"
    ),
    FaultKind.EMPTY_CONSTRAIN: (
        "no constrain value before token 12606 ('commentary') at position 7, in header "
        "'assistant<|channel|>commentary'; expected json or code"
    ),
    FaultKind.UNKNOWN_ROLE: (
        "unknown role: 'commentary' at position 7, in header "
        "'assistant<|channel|>commentary'; expected json or code"
    ),
    FaultKind.UNPARSED_HEADER_TEXT: (
        "unexpected words 'commentary' at position 7 remain in header "
        "'assistant<|channel|>commentary'; expected json or code"
    ),
    FaultKind.UNKNOWN_TOKEN: (
        "token 12606 ('commentary') at position 7 is not in the vocabulary; expected json or code"
    ),
    FaultKind.INVALID_UTF8_IN_HEADER: (
        "token 12606 ('commentary') at position 7 is not valid UTF-8, in header "
        "'assistant<|channel|>commentary'; expected json or code"
    ),
    FaultKind.TRUNCATED_IN_HEADER: (
        "the stream ended at position 7 inside a header, header text so far: "
        "'assistant<|channel|>commentary'; expected json or code"
    ),
}


@pytest.mark.parametrize("kind", FaultKind)
def test_a_fault_says_what_came_where_and_what_was_expected(kind):
    assert str(fault(kind)) == SENTENCES[kind]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({}, "token 12606 ('commentary')"),
        ({"token": None}, "'commentary'"),
        ({"token": None, "token_text": ""}, "the end of the stream"),
        ({"token": 0, "token_text": "\n"}, r"token 0 ('\n')"),
    ],
)
def test_what_came_is_a_token_a_text_or_the_end(changes, what):
    expected = f"{what} at position 7 where json or code was expected"
    assert str(fault(FaultKind.EXPECTED_START, **changes)) == expected


@pytest.mark.parametrize(
    ("expected", "words"), [(("a",), "a"), (("a", "b"), "a or b"), (("a", "b", "c"), "a, b or c")]
)
def test_what_was_expected_is_one_thing_or_another(expected, words):
    sentence = str(fault(FaultKind.EXPECTED_START, expected=expected))
    assert sentence.endswith(f"where {words} was expected")


def test_a_fault_as_a_dictionary_has_its_fields_and_its_sentence():
    error = fault(FaultKind.EXPECTED_START, expected=("<|start|>",))
    assert error.to_dict() == {
        "kind": "expected_start",
        "position": 7,
        "token": 12606,
        "token_text": "commentary",
        "state": "CHANNEL",
        "header_text": HEADER,
        "expected": ["<|start|>"],
        "message": "token 12606 ('commentary') at position 7 where <|start|> was expected",
    }
    assert type(error.to_dict()["kind"]) is str


OTHERS = [
    (
        LoadError("a.tiktoken", "is another file", "446a", "815a", "load the official one"),
        "vocabulary a.tiktoken: is another file (expected 446a, found 815a); load the official one",
    ),
    (LoadError("a", "is short", "200", ""), "vocabulary a: is short (expected 200, found nothing)"),
    (LoadError("a", "is missing"), "vocabulary a: is missing"),
    (
        RenderError("recipient", "functions.a b", "holds white space", 3),
        "message 3: recipient 'functions.a b' holds white space",
    ),
    (RenderError("name", None, "is missing"), "name is missing"),
    (
        RenderFormattingTokenError("formatting token", "<|call|>", "has no id"),
        "formatting token '<|call|>' has no id",
    ),
    (
        RenderReferenceError("$ref", "#/$defs/Memo", "leads nowhere", 2, "send"),
        "message 2: tool 'send': $ref '#/$defs/Memo' leads nowhere",
    ),
    (
        RenderReferenceError("$ref", "#/$defs/Memo", "leads nowhere", None, "send"),
        "tool 'send': $ref '#/$defs/Memo' leads nowhere",
    ),
]
ALL = [fault(FaultKind.MISSING_END), HarmonyError("something"), *(error for error, _ in OTHERS)]
each_error = pytest.mark.parametrize("error", ALL, ids=[type(error).__name__ for error in ALL])


@pytest.mark.parametrize(("error", "sentence"), OTHERS)
def test_other_errors_say_what_is_wrong_too(error, sentence):
    assert str(error) == sentence


@each_error
def test_an_error_is_a_harmony_error_and_a_runtime_error(error):
    assert isinstance(error, HarmonyError)
    assert isinstance(error, RuntimeError)


@each_error
def test_an_error_survives_pickling_and_copying(error):
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert twin is not error
        assert type(twin) is type(error)
        assert twin == error
        assert str(twin) == str(error)


@each_error
def test_an_error_can_be_raised_and_caught_with_a_traceback_and_a_cause(error):
    with pytest.raises(type(error)) as caught:
        raise copy.copy(error) from ValueError("the cause")
    assert caught.value == error
    assert caught.value.__traceback__ is not None
    assert str(caught.value.__cause__) == "the cause"


@each_error
def test_errors_are_equal_by_value_and_have_the_hash_of_it(error):
    assert error == copy.copy(error)
    assert hash(error) == hash(copy.copy(error))
    assert error != ValueError(*error.args)
    assert [other for other in ALL if other == error] == [error]


def test_an_error_that_differs_in_one_field_is_another():
    error = fault(FaultKind.MISSING_END)
    for change in ({"position": 8}, {"token": 1}, {"header_text": ""}, {"events": (1,)}):
        assert attrs.evolve(error, **change) != error


@pytest.mark.parametrize("error", [error for error in ALL if attrs.has(type(error))])
def test_the_fields_of_an_error_are_read_only(error):
    for field in attrs.fields(type(error)):
        with pytest.raises(AttributeError):
            setattr(error, field.name, None)
    assert error == copy.copy(error)


def test_errors_of_the_same_fields_but_other_classes_are_not_equal():
    fields = ("formatting token", "<|call|>", "has no id")
    assert RenderError(*fields) != RenderFormattingTokenError(*fields)


def test_each_kind_is_its_own_name():
    assert all(kind.value == kind.name.lower() for kind in FaultKind)
