"""Responses that later requests go on from."""

import pytest
from backend_harness import ANSWER, ids

from harmony_stream import iter_events
from harmony_stream.adapters.conversations.fields import Field
from harmony_stream.serving.errors import RequestError
from harmony_stream.serving.store import ResponseStore, StoredResponseStream


def previous(identity):
    return Field(identity, "previous_response_id")


def test_of_too_many_responses_the_oldest_is_forgotten():
    store = ResponseStore(most=2)
    for number in range(3):
        store.keep(f"resp_{number}", [number])
    assert (store.items_of("resp_1"), store.items_of("resp_2")) == ([1], [2])
    with pytest.raises(RequestError, match="'resp_0' not found"):
        store.items_before(previous("resp_0"))


def test_a_request_that_begins_anew_has_nothing_before_it():
    assert ResponseStore().items_before(previous(None)) == []


def test_a_request_goes_on_from_what_was_kept_last():
    store = ResponseStore()
    store.keep("resp_1", [{"role": "user"}])
    store.keep("resp_1", [{"role": "assistant"}])
    assert store.items_before(previous("resp_1")) == [{"role": "assistant"}]


def test_a_response_that_is_not_there_is_refused_as_openai_refuses_it():
    with pytest.raises(RequestError) as caught:
        ResponseStore().items_of("resp_9")
    assert str(caught.value) == "Previous response with id 'resp_9' not found."
    assert (caught.value.param, caught.value.code) == (
        "previous_response_id",
        "previous_response_not_found",
    )


def test_an_id_that_is_no_text_is_refused_by_its_field():
    with pytest.raises(ValueError, match="previous_response_id"):
        ResponseStore().items_before(previous(5))


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_response_is_stored_once_when_it_ends(is_stored):
    store, stream = ResponseStore(), StoredResponseStream("m")
    if is_stored:
        stream.store_in(store, [{"role": "user", "content": "Hi"}])
    for event in iter_events(ids(ANSWER)):
        stream.feed(event)
    *_, end = stream.finish("stop")
    identity = end["response"]["id"]
    if is_stored:
        question, *output = store.items_of(identity)
        assert question["content"] == "Hi"
        assert output == end["response"]["output"] != []
    else:
        with pytest.raises(RequestError):
            store.items_of(identity)
    assert stream.finish("stop") == []
