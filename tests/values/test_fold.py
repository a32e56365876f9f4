"""Messages put together from events."""

import pytest
from hypothesis import given
from strategies import events_of, examples, streams

from harmony_stream.parsing.parser import EventParser
from harmony_stream.values.events import (
    ContentDelta,
    EndKind,
    Malformed,
    MessageEnd,
    MessageStart,
    join_deltas,
)
from harmony_stream.values.fold import EndedMessage, Fold
from harmony_stream.values.header import Header
from harmony_stream.values.messages import Role

HEADER = Header(Role.ASSISTANT, None, "final")
DELTA = ContentDelta(HEADER, 2, "Hi", 5, 6)
END = MessageEnd(HEADER, 2, EndKind.END, True, 6, 7)


def test_a_message_is_given_with_its_end_and_its_text_in_one_piece():
    start, first, second, end = events_of("<|channel|>final<|message|>a b<|end|>")
    fold = Fold()
    assert [fold.feed(event) for event in (start, first, second)] == [None] * 3
    assert (fold.start, fold.text) == (start, "a b")
    assert fold.feed(end) == EndedMessage(start, "a b", end, ())
    assert (fold.start, fold.text) == (None, "")


def test_a_fault_inside_a_message_is_part_of_it_and_one_outside_is_returned():
    events = events_of("<|channel|><|message|>a<|end|> b<|start|>user<|message|>c<|end|>")
    found = list(filter(None, map(Fold().feed, events)))
    assert [type(each) for each in found] == [EndedMessage, Malformed, EndedMessage]
    assert [fault.kind.value for fault in found[0].faults] == ["empty_channel"]
    assert (found[1].text, found[2].faults) == (" b", ())


@pytest.mark.parametrize(("events", "text"), [([DELTA, END], "Hi"), ([END], "")])
def test_a_message_whose_start_was_not_fed_begins_at_its_first_event(events, text):
    fold = Fold()
    *others, ended = map(fold.feed, events)
    place = events[0].start
    assert others == [None] * len(others)
    assert ended == EndedMessage(MessageStart(HEADER, 2, place, place), text, END, ())


def test_a_start_forgets_the_message_before_it():
    fold = Fold()
    start = MessageStart(HEADER, 0, 0, 3)
    fold.feed(DELTA)
    fold.feed(start)
    assert (fold.start, fold.text) == (start, "")


@given(streams)
@examples(100)
def test_all_events_of_a_stream_are_in_what_the_fold_gives(tokens):
    parser = EventParser(None)
    events = [*parser.feed_many(tokens), *parser.close()]
    again = []
    for found in filter(None, map(Fold().feed, events)):
        if isinstance(found, Malformed):
            again.append(found)
            continue
        inside = [event for event in events if _is_between(event, found)]
        again += [found.start, *inside, found.end]
        assert "".join(e.text for e in inside if isinstance(e, ContentDelta)) == found.text
        assert tuple(e for e in inside if isinstance(e, Malformed)) == found.faults
    assert join_deltas(again) == join_deltas(events)


def _is_between(event, found):
    """Whether an event came between the start and the end of a message."""
    if isinstance(event, Malformed):
        return any(event is fault for fault in found.faults)
    return isinstance(event, ContentDelta) and event.index == found.start.index
