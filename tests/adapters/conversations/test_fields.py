"""Values of a request know where they are, and say it when they are wrong."""

import pickle

import attrs
import pytest
from openai.types.chat import ChatCompletionMessage

from harmony_stream.adapters.conversations.fields import ConversationError, Field
from harmony_stream.errors import HarmonyError

BODY = Field({"messages": [{"role": "user"}, {"role": "bot"}], "name": "tide"}, "body")


def test_a_path_leads_from_the_argument_to_the_value():
    second = BODY["messages"].each()[1]["role"]
    assert (second.value, second.path, second.index) == ("bot", "body.messages[1].role", None)


def test_entries_of_the_list_that_errors_count_have_their_index_and_pass_it_on():
    assert [entry["role"].index for entry in BODY["messages"].entries()] == [0, 1]
    assert BODY["messages"].entries()[1]["content"].each() == []


def test_what_is_not_there_is_none_an_empty_list_or_an_empty_text():
    missing = BODY["tools"]
    assert (missing.value, missing.each(), missing.optional_text()) == (None, [], "")


def test_objects_of_openais_client_are_taken_for_dicts():
    message = ChatCompletionMessage(role="assistant", content="Hi")
    assert Field(message, "message")["content"].value == "Hi"


def test_any_iterable_but_text_and_objects_is_a_list():
    assert [each.value for each in Field(iter("ab"), "x").each()] == ["a", "b"]
    assert [each.path for each in Field(("a", "b"), "x").each()] == ["x[0]", "x[1]"]


# a value, how it is read, and what the sentence says
WRONG = [
    ("tide", lambda field: field["name"], "x 'tide' is not an object; give a dict"),
    (None, lambda field: field["name"], "x None is not an object; give a dict"),
    *((value, Field.each, "is not a list; give a list") for value in ("ab", b"ab", {}, 5)),
    *((value, Field.text, "is not a string; give a string") for value in (None, 5, [], b"a")),
    (5, Field.optional_text, "x 5 is not a string"),
    (None, Field.word, "x None is not a string"),
    ("", Field.word, "x '' is empty; give a name of letters"),
    ("a b", Field.word, "x 'a b' is not a name; give a name of letters"),
    ("a;b", Field.word, "is not a name"),
    ("c", lambda field: field.one_of(["a", "b"], "say a"), "x 'c' is not one of a, b; say a"),
    (None, lambda field: field.one_of({"a": 1}, "say a"), "x None is not one of a; say a"),
    ([], lambda field: field.one_of({"a": 1}, "say a"), "x '[]' is not one of a; say a"),
]


@pytest.mark.parametrize(("value", "read", "sentence"), WRONG)
def test_a_wrong_value_is_refused_with_its_path_and_a_remedy(value, read, sentence):
    with pytest.raises(ConversationError) as caught:
        read(Field(value, "x", 3))
    assert sentence in str(caught.value)
    assert (caught.value.index, caught.value.field) == (3, "x")


@pytest.mark.parametrize(
    "name", ["f", "functions.f", "港口", "a/b", "mcp:read", "a+b-c_d", "\ufffd"]
)
def test_a_name_is_what_the_parser_reads_back_as_one(name):
    assert Field(name, "x").word() == name


def test_one_of_the_words_that_are_known_is_given_back():
    assert Field("b", "x").one_of(["a", "b"], "") == "b"


@pytest.mark.parametrize(
    ("value", "shown"), [(None, None), ("a", "a"), (5, 5), (0.5, 0.5), ([1], "[1]"), ({}, "{}")]
)
def test_an_error_holds_plain_values_as_they_are_and_others_as_python_shows_them(value, shown):
    error = Field(value, "x").error("is wrong", "mend it")
    assert error == ConversationError(None, "x", shown, "is wrong", "mend it")
    assert pickle.loads(pickle.dumps(error)) == error


def test_an_error_is_of_both_families_and_its_sentence_is_short():
    error = Field("a" * 9999, "x").error("is wrong", "mend it")
    assert isinstance(error, HarmonyError)
    assert isinstance(error, ValueError)
    assert len(str(error)) < 100
    assert attrs.astuple(error)[2] == "a" * 9999
