"""Error objects as OpenAI's API has them."""

import copy
import pickle

import pytest

from harmony_stream.adapters.conversations import ConversationError, conversation_from_chat
from harmony_stream.errors import HarmonyError, RenderError
from harmony_stream.serving.errors import FAILED, RequestError, refusal_of


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, "invalid_request_error"), (404, "invalid_request_error"), (500, "server_error")],
)
def test_an_error_says_whose_fault_it_is(status, kind):
    error = RequestError("No.", "model", "model_not_found", status)
    assert error.to_dict() == {
        "error": {"message": "No.", "type": kind, "param": "model", "code": "model_not_found"}
    }


def test_an_error_is_a_value_of_the_librarys_family_and_says_its_message():
    error = RequestError("No.", "model")
    assert isinstance(error, HarmonyError)
    assert (str(error), error.code, error.status) == ("No.", None, 400)
    for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert twin == error


def test_of_a_fault_of_the_server_the_client_hears_nothing_more():
    assert FAILED.status == 500
    assert FAILED.to_dict()["error"] == {
        "message": "The server failed while it answered this request.",
        "type": "server_error",
        "param": None,
        "code": None,
    }


def test_a_refusal_is_passed_on_as_it_is():
    assert refusal_of(FAILED) is FAILED


def test_a_conversation_is_refused_by_the_field_at_fault():
    with pytest.raises(ConversationError) as caught:
        conversation_from_chat([{"role": "bot"}])
    refusal = refusal_of(caught.value)
    assert (refusal.param, refusal.status) == ("messages[0].role", 400)
    assert refusal.message == str(caught.value)


def test_another_error_of_the_library_is_refused_in_its_own_words():
    error = RenderError("recipient", "functions.a b", "holds white space", 3)
    assert refusal_of(error) == RequestError(str(error))
