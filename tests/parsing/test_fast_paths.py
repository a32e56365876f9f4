"""The fast paths of the parser against the machine alone, which has none.

Whatever is fed, and in whatever portions: the events, the state and the header are the machine's.
"""

import copy
import pickle

from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    FORMATTING,
    RESERVED,
    STOPS,
    UNKNOWN,
    VOCABULARY,
    examples,
    roles,
    streams,
    tokens_of,
)

from harmony_stream.parsing.items import Piece, piece_of
from harmony_stream.parsing.machine import Machine
from harmony_stream.parsing.parser import EventParser
from harmony_stream.parsing.states import TokenKind
from harmony_stream.values.events import join_deltas
from harmony_stream.values.messages import Role

HEADERS = [
    "<|channel|>final<|message|>",
    "<|start|>assistant<|channel|>final<|message|>",
    "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>",
    "<|start|>assistant to=f<|channel|>commentary<|message|>",
    "<|start|>functions.f to=assistant<|channel|>commentary<|message|>",
    "<|start|>user<|message|>",
    "<|start|>assistant<|channel|>final odd words<|message|>",  # a fault
]
# Tokens that are parts of characters, and whole ones, some of which break them.
CHARACTERS = [*tokens_of("👩‍🍳🏴‍☠️🧑🏽‍🚀🦥"), 158, 222, 94, 117, 13225, 2375]
OTHERS = [*STOPS, *FORMATTING, *FORMATTING, RESERVED, UNKNOWN, 2**70]
PORTIONS = st.one_of(
    st.sampled_from(HEADERS).map(tokens_of),
    # Headers that break off, and go on in another way than one that is known.
    st.tuples(st.sampled_from(HEADERS), st.integers(0, 6)).map(lambda h: tokens_of(h[0])[: h[1]]),
    st.lists(st.sampled_from(CHARACTERS), max_size=12),
    st.lists(st.sampled_from(OTHERS), max_size=1),
    # A model in a loop.
    st.tuples(st.sampled_from([*OTHERS, 220, *CHARACTERS]), st.integers(2, 9)).map(
        lambda pair: [pair[0]] * pair[1]
    ),
)
MESSAGES = st.lists(PORTIONS, max_size=14).map(lambda lists: [t for each in lists for t in each])
STREAMS = st.one_of(MESSAGES, MESSAGES, streams)
LIMITS = st.sampled_from([1, 2, 3, 5, 6, 64])


class Slow:
    """A parser that has the machine and nothing else."""

    def __init__(self, role, limit=64):
        self.machine = Machine(VOCABULARY, None if role is None else Role(role), None, limit)
        self.position = 0

    def feed(self, token):
        self.position += 1
        return self.machine.step(piece_of(VOCABULARY, token, self.position - 1, self.position))

    def close(self):
        place = self.position
        end = Piece(TokenKind.END_OF_STREAM, None, b"", place, place)
        return join_deltas(self.machine.step(end))


@given(STREAMS, roles, LIMITS)
@examples(300)
def test_each_token_gives_the_events_and_the_state_of_the_machine(tokens, role, limit):
    slow, fast = Slow(role, limit), EventParser(role, max_header_tokens=limit)
    for token in tokens:
        assert [*fast.feed(token)] == slow.feed(token)
        assert (fast.state, fast.header) == (slow.machine.state, slow.machine.header_so_far())
    assert [*fast.close()] == slow.close()


@given(STREAMS, roles, LIMITS, st.lists(st.integers(0, 12), min_size=1))
@examples(300)
def test_portions_of_any_size_give_the_events_of_the_machine(tokens, role, limit, sizes):
    slow, fast = Slow(role, limit), EventParser(role, max_header_tokens=limit)
    first = 0
    for size in [*sizes, len(tokens)]:
        portion = tokens[first : first + size]
        first += size
        by_one = size == 12  # now and then token by token, without a look at the state
        found = [e for t in portion for e in fast.feed(t)] if by_one else fast.feed_many(portion)
        wanted = [event for token in portion for event in slow.feed(token)]
        assert (join_deltas(found) if by_one else found) == join_deltas(wanted)
    assert [*fast.close()] == slow.close()


@given(STREAMS, roles, st.sampled_from([copy.copy, lambda p: pickle.loads(pickle.dumps(p))]))
@examples(150)
def test_a_copy_made_anywhere_goes_on_as_the_parser_does(tokens, role, duplicate):
    slow, fast = Slow(role), EventParser(role)
    for number, token in enumerate(tokens):
        if number % 3 == 0:
            fast.feed_many([])
            older, fast = fast, duplicate(fast)
            assert older.feed(token) == duplicate(fast).feed(token)
        assert [*fast.feed(token)] == slow.feed(token)
    assert [*fast.close()] == slow.close()


@given(MESSAGES, MESSAGES)
@examples(150)
def test_after_a_prompt_the_tokens_give_the_same_by_one_and_at_once(prompt, tokens):
    by_one, at_once = EventParser.after(prompt), EventParser.after(prompt)
    found = [event for token in tokens for event in by_one.feed(token)]
    assert at_once.feed_many(tokens) == join_deltas(found)
    assert at_once.close() == by_one.close()


@given(MESSAGES, st.integers(0, 20))
@examples(150)
def test_a_parser_that_is_reset_in_a_known_header_begins_again(tokens, place):
    parser = EventParser()
    wanted = EventParser().feed_many(tokens)
    for token in tokens[:place]:
        parser.feed(token)
    parser.reset()
    assert parser.feed_many(tokens) == wanted


def test_a_header_that_came_before_is_the_same_object_whatever_way_it_comes():
    tokens = tokens_of(f"{HEADERS[1]}a<|end|>" * 3)
    by_one = EventParser(None)
    events = [event for token in tokens for event in by_one.feed(token)]
    events += EventParser(None).feed_many(tokens)
    assert len({id(event.header) for event in events}) == 1
