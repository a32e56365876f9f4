import copy
import json
import pickle

import pytest
from strategies import events_of

from harmony_stream.values.events import (
    ContentDelta,
    EndKind,
    HarmonyParseError,
    Malformed,
    MessageEnd,
    MessageStart,
    copies,
    extend_joining,
    join_deltas,
)
from harmony_stream.values.faults import FaultKind
from harmony_stream.values.header import Header
from harmony_stream.values.messages import Role

HEADER = Header(Role.ASSISTANT, None, "commentary", "functions.f", "<|constrain|>json")
ERROR = HarmonyParseError(
    FaultKind.EXPECTED_START, 7, 12606, "commentary", "EXPECT_START", "", ("<|start|>",)
)
START = MessageStart(HEADER, 2, 3, 9)
DELTA = ContentDelta(HEADER, 2, "{}", 9, 10)
END = MessageEnd(HEADER, 2, EndKind.CALL, True, 10, 11)
FAULT = Malformed(ERROR, "stray", 11, 13)
ALL = [START, DELTA, END, FAULT]


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        (
            START,
            {
                "type": "message_start",
                "index": 2,
                "header": {
                    "role": "assistant",
                    "name": None,
                    "channel": "commentary",
                    "recipient": "functions.f",
                    "content_type": "<|constrain|>json",
                },
                "start": 3,
                "stop": 9,
            },
        ),
        (DELTA, {"type": "content_delta", "index": 2, "text": "{}", "start": 9, "stop": 10}),
        (
            END,
            {
                "type": "message_end",
                "index": 2,
                "end": "call",
                "complete": True,
                "start": 10,
                "stop": 11,
            },
        ),
        (
            FAULT,
            {
                "type": "malformed",
                "error": ERROR.to_dict(),
                "text": "stray",
                "start": 11,
                "stop": 13,
            },
        ),
    ],
)
def test_an_event_as_a_dictionary_has_a_type_and_survives_json(event, fields):
    assert event.to_dict() == fields
    assert json.loads(json.dumps(event.to_dict())) == fields


@pytest.mark.parametrize("event", [START, DELTA, END])
def test_an_event_of_a_message_knows_role_channel_and_recipient(event):
    fields = (event.role, event.channel, event.recipient)
    assert fields == (Role.ASSISTANT, "commentary", "functions.f")


@pytest.mark.parametrize("event", ALL)
def test_events_are_values(event):
    for twin in (copy.copy(event), pickle.loads(pickle.dumps(event))):
        assert twin == event
        assert hash(twin) == hash(event)
    assert [other for other in ALL if other == event] == [event]


@pytest.mark.parametrize("event", ALL)
def test_events_have_no_room_for_other_attributes(event):
    with pytest.raises(AttributeError):
        event.other = 1


def test_all_events_of_a_message_share_one_header():
    start, *others = events_of("<|channel|>final<|message|>a b<|end|>")
    assert len(others) == 3
    assert all(event.header is start.header for event in others)


def test_each_end_has_a_kind_named_after_it():
    assert [kind.value for kind in EndKind] == [
        "end",
        "return",
        "call",
        "end_of_text",
        "implicit",
        "truncated",
    ]


def delta(text, start, index=0):
    return ContentDelta(HEADER, index, text, start, start + 1)


def test_adjacent_text_of_one_message_is_joined_and_spans_all_of_it():
    assert join_deltas([delta("a", 3), delta("b", 4), delta("c", 7)]) == [
        ContentDelta(HEADER, 0, "abc", 3, 8)
    ]


@pytest.mark.parametrize(
    "events",
    [
        [],
        [START, DELTA, END, FAULT],
        [delta("a", 3), FAULT, delta("b", 4)],
        [delta("a", 3), delta("b", 4, index=1)],
    ],
)
def test_nothing_else_is_joined(events):
    assert join_deltas(events) == events


APART = [
    [START, DELTA, END],
    [delta("a", 3), delta("b", 4, index=1), FAULT, delta("c", 5, index=1)],
]


@pytest.mark.parametrize("events", APART)
def test_events_that_are_not_joined_are_appended_as_they_are(events):
    found = []
    extend_joining(found, events)
    assert found == events


WORDS_OF_FAULTS = [
    ((12606, "commentary"), "token 12606 ('commentary') at position 7"),
    ((None, "<|"), "'<|' at position 7"),  # of marked text, which has no tokens
    ((None, ""), "the end of the stream at position 7"),
]


@pytest.mark.parametrize(("fields", "words"), WORDS_OF_FAULTS)
def test_a_fault_says_which_token_or_text_or_end_is_at_fault(fields, words):
    error = HarmonyParseError(
        FaultKind.EXPECTED_START, 7, *fields, "EXPECT_START", "", ("<|start|>",)
    )
    assert words in str(error)


def test_joining_goes_on_with_what_was_joined_before():
    events = [START, delta("a", 3)]
    extend_joining(events, iter([delta("b", 4), END]))
    assert events == [START, ContentDelta(HEADER, 0, "ab", 3, 5), END]


def test_a_fault_of_the_parser_is_equal_to_one_of_equal_fields():
    [first], [second] = (
        [event for event in events_of("<|channel|>final<|message|>a<|message|>")
         if isinstance(event, Malformed)]
        for _ in range(2)
    )  # fmt: skip
    assert (first, hash(first)) == (second, hash(second))
    assert (first.kind, str(first.error)) == (first.error.kind, str(second.error))
    made = Malformed(first.error, first.text, first.start, first.stop)
    assert (made.error, made.kind, repr(made)) == (made.error, first.kind, repr(first))
    assert repr(first) == f"Malformed(error={first.error!r}, text='', start=4, stop=5)"
    match first:
        case Malformed(error, "", 4, 5):
            assert error.position == 4


def test_copies_of_a_step_follow_it_token_by_token():
    fields = (FaultKind.UNKNOWN_TOKEN, None, 999999, "\ufffd", "CONTENT", "", ("text",))
    header = Header(Role.ASSISTANT, None, "final")
    step = [ContentDelta(header, 2, "\ufffd", 3, 4), Malformed(fields, "", 3, 4)]
    found = list(copies(step, 2))
    assert found[0] == ContentDelta(header, 2, "\ufffd", 4, 5)
    assert found[1].error == HarmonyParseError(FaultKind.UNKNOWN_TOKEN, 4, *fields[2:])
    assert [(event.start, event.stop) for event in found] == [(4, 5), (4, 5), (5, 6), (5, 6)]
    assert list(copies([], 7)) == list(copies(step, 0)) == []
