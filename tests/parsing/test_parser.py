import asyncio
import copy
import cProfile
import math
import pickle
import sys
import tracemalloc
from functools import partial

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    RESERVED,
    SPECIAL,
    UNKNOWN,
    VOCABULARY,
    described,
    events_of,
    examples,
    faults_of,
    feed_all,
    messages_of,
    stray_texts_of,
    tokens_of,
)

from harmony_stream.parsing.parser import EventParser, aiter_events, iter_events
from harmony_stream.parsing.states import State
from harmony_stream.values.events import (
    ContentDelta,
    HarmonyParseError,
    Malformed,
    MessageStart,
    join_deltas,
)
from harmony_stream.values.faults import FaultKind
from harmony_stream.values.messages import Role
from harmony_stream.vocabulary import FormattingToken, Vocabulary

ANSWER = tokens_of("<|channel|>final<|message|>Hello world<|return|>")
EVENTS = ["start assistant final 0:3", "'Hello' 3:4", "' world' 4:5", "return complete 5:6"]
HEADER = tokens_of("<|channel|>final<|message|>")
BROKEN = tokens_of("<|channel|><|message|>Hi<|return|>")


def fed(text, role="assistant", **options):
    parser = EventParser(role, **options)
    parser.feed_many(tokens_of(text))
    return parser


# -- Feeding --


@pytest.mark.parametrize("role", ["assistant", Role.ASSISTANT])
def test_a_completion_is_fed_token_by_token(role):
    assert described(feed_all(EventParser(role), ANSWER)) == EVENTS


def test_feed_gives_a_tuple_of_what_follows_from_one_token():
    parser = EventParser()
    found = [parser.feed(token) for token in ANSWER]
    assert [type(events) for events in found] == [tuple] * 6
    assert [len(events) for events in found] == [0, 0, 1, 1, 1, 1]


def test_feed_many_gives_a_list_in_which_text_is_joined():
    events = EventParser().feed_many(ANSWER)
    assert type(events) is list
    assert described(events) == [EVENTS[0], "'Hello world' 3:5", EVENTS[3]]


@pytest.mark.parametrize("kind", [list, tuple, iter, numpy.array, lambda t: map(numpy.uint32, t)])
def test_feed_many_takes_tokens_of_any_kind(kind):
    assert messages_of(EventParser().feed_many(kind(ANSWER))) == messages_of(events_of(ANSWER))


@pytest.mark.parametrize("kind", [int, numpy.int64, numpy.uint32, numpy.int32])
def test_feed_takes_integers_of_any_kind(kind):
    tokens = [kind(token) for token in ANSWER]
    assert described(feed_all(EventParser(), tokens)) == EVENTS
    assert all(type(event.start) is int for event in events_of(tokens))


def test_feed_many_takes_more_tokens_than_it_looks_up_at_once():
    tokens = [*HEADER, *tokens_of("word 🦆 ") * 5000, *ANSWER[-1:]]
    (start, delta, end) = EventParser().feed_many(tokens)
    assert delta.text == "word 🦆 " * 5000
    assert (start.stop, delta.stop, end.stop) == (3, len(tokens) - 1, len(tokens))


def test_feed_many_takes_tokens_that_were_never_seen_before():
    vocabulary = Vocabulary.from_tiktoken(VOCABULARY.tiktoken_encoding)
    parser = EventParser(vocabulary=vocabulary)
    events = parser.feed_many([*ANSWER[:5], 2**70, UNKNOWN, *ANSWER[4:]])
    assert messages_of(events)[0][5] == "Hello world\ufffd\ufffd world"


# Tokens of one byte: the beginning of a character, one that goes on in it, and ASCII.
BYTES = [VOCABULARY.tiktoken_encoding.encode_single_token(bytes([byte])) for byte in range(256)]
FIRST, NEXT, ASCII = BYTES[0xF0], BYTES[0x9F], BYTES[0x21]


@pytest.mark.parametrize(
    ("tokens", "events"),
    [
        ([ASCII, FIRST], ["'!' 3:4"]),
        ([ASCII, FIRST, NEXT], ["'!' 3:4"]),
        ([FIRST, NEXT], []),
        ([ASCII, FIRST, NEXT, ASCII, FIRST], ["'!\ufffd!' 3:7"]),
        ([ASCII, *tokens_of("é")], ["'!é' 3:5"]),
    ],
)
def test_the_span_of_text_ends_before_the_tokens_of_an_unfinished_character(tokens, events):
    parser = EventParser()
    parser.feed_many(HEADER)
    assert described(parser.feed_many(tokens)) == events
    rest = described(parser.close())
    assert rest[-1] == f"truncated {3 + len(tokens)}:{3 + len(tokens)}"
    if tokens[-1] in (FIRST, NEXT):
        stop = 3 + len(tokens) - (2 if tokens[-1] == NEXT else 1)
        assert rest[0] == f"'\ufffd' {stop}:{3 + len(tokens)}"


@given(st.lists(st.sampled_from(BYTES), max_size=8), st.integers(0, 8))
@examples(300)
def test_feed_and_feed_many_give_the_same_with_each_call_wherever_bytes_are_cut(tokens, place):
    one, many = EventParser(), EventParser()
    for part in (HEADER, tokens[:place], tokens[place:]):
        by_token = [event for token in part for event in one.feed(token)]
        assert many.feed_many(part) == join_deltas(by_token)
    assert one.close() == many.close()


@given(st.binary(max_size=8), st.integers(0, 8))
@examples(300)
def test_text_in_bytes_has_the_same_spans_wherever_it_is_cut(data, place):
    whole, single = EventParser(), EventParser()
    for parser in (whole, single):
        parser.feed_text(b"<|channel|>final<|message|>")
    for part in (data[:place], data[place:]):
        by_byte = [event for byte in part for event in single.feed_text(bytes([byte]))]
        assert whole.feed_text(part) == join_deltas(by_byte)
    assert whole.close() == single.close()


@pytest.mark.parametrize("feed", [EventParser.feed_many, feed_all], ids=["many", "one by one"])
def test_headers_that_are_not_whole_are_kept_as_they_come(feed):
    text = "<|start|>user<|start|>user<|message|>a<|end|><|start|>user<|end|><|start|>user"
    events = list(feed(EventParser(None), tokens_of(text)))
    assert [message[5] for message in messages_of(events)] == ["a"]
    assert faults_of(events) == ["unexpected_start"]


def test_the_faults_of_a_header_taken_at_once_stand_where_they_stood():
    text = "<|start|>!! a to=<|channel|><|message|>"
    events = EventParser(None).feed_many(tokens_of(text))
    assert described(events) == described(events_of(text, None))[:-1]
    assert [event.start for event in events] == [1, 0, 2, 3, 6]


# -- What is no token --

NO_TOKENS = [
    (-1, ValueError, "token -1 is negative: token ids count from 0"),
    (-(2**70), ValueError, "is negative"),
    (5.0, TypeError, "'float' object cannot be interpreted as an integer"),
    (numpy.float64(5), TypeError, "cannot be interpreted as an integer"),
    ("5", TypeError, r"a token is an integer: feed_text\(\) takes marked text"),
    (None, TypeError, "'NoneType' object cannot be interpreted as an integer"),
]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("way", ["", "<|message|>", "<|message|>Hi"])
@pytest.mark.parametrize(("token", "error", "sentence"), NO_TOKENS)
def test_what_is_no_token_is_refused_before_anything_changes(token, error, sentence, way, strict):
    parser = fed(way, strict=strict)
    parser.feed_many([13225] * bool(way))  # the tables of this token are warm
    before = pickle.dumps(parser)
    with pytest.raises(error, match=sentence):
        parser.feed(token)
    with pytest.raises(error, match=sentence):
        parser.feed_many([13225, token])
    assert pickle.dumps(parser) == before


@pytest.mark.parametrize("tokens", ["", "5", b"\5\0"])
def test_text_is_no_list_of_tokens(tokens):
    with pytest.raises(TypeError, match=r"tokens are integers: feed_text\(\) takes marked text"):
        fed("<|message|>").feed_many(tokens)


@pytest.mark.parametrize("token", [2**64, 2**70, 10**30])
def test_an_integer_however_large_is_an_unknown_token(token):
    assert faults_of(events_of([*HEADER, token])) == ["unknown_token"]
    assert faults_of(EventParser().feed_many([*HEADER, token])) == ["unknown_token"]
    with pytest.raises(ValueError, match="is negative"):
        EventParser().feed_many([token, -1])


def test_a_parser_takes_one_kind_of_input():
    tokens, text = EventParser(), EventParser()
    tokens.feed(HEADER[0])
    text.feed_text("<|channel|>")
    sentence = r"tokens or marked text, not both: reset\(\) it first"
    for call in (
        lambda: tokens.feed_text("a"),
        lambda: text.feed(1),
        lambda: text.feed_many([1]),
        lambda: text.feed_many([]),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()
    with pytest.raises(ValueError, match="took str before"):
        text.feed_text(b"a")
    assert (tokens.position, text.position) == (1, 11)


def test_a_parser_of_text_inside_content_does_not_take_tokens_for_it():
    parser = EventParser()
    parser.feed_text("<|message|>a")
    with pytest.raises(ValueError, match="not both"):
        parser.feed(13225)


@pytest.mark.parametrize("role", ["robot", "Assistant", ""])
def test_a_role_that_does_not_exist_is_refused(role):
    with pytest.raises(ValueError, match=f"Unknown role: {role!r}; expected one of"):
        EventParser(role)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_header_must_be_allowed_to_be_a_token_long(limit):
    with pytest.raises(ValueError, match=f"max_header_tokens is {limit}; give .* 1 or more"):
        EventParser(max_header_tokens=limit)


@pytest.mark.parametrize("limit", [1.5, 64.0, math.inf, math.nan, "64", None])
@pytest.mark.parametrize("make", [EventParser, partial(EventParser.after, [])])
def test_the_limit_of_a_header_is_an_integer(make, limit):
    with pytest.raises(TypeError, match=f"max_header_tokens is {limit!r}, which is not an integer"):
        make(max_header_tokens=limit)


# -- The strict mode --


def test_the_strict_mode_raises_with_what_was_read_and_goes_on():
    parser = EventParser(strict=True)
    with pytest.raises(HarmonyParseError) as caught:
        parser.feed_many(BROKEN)
    assert caught.value.kind is FaultKind.EMPTY_CHANNEL
    assert described(caught.value.events) == ["start assistant 0:2"]
    assert (parser.position, parser.state) == (2, State.CONTENT)
    events = parser.feed_many(BROKEN[parser.position :])
    assert described(events) == ["'Hi' 2:3", "return complete 3:4"]


def test_the_error_holds_the_events_of_its_own_call_only():
    parser = EventParser(strict=True)
    parser.feed_many([*HEADER, 13225])
    with pytest.raises(HarmonyParseError) as caught:
        parser.feed_many([2375, 2375, RESERVED, 2375])
    assert described(caught.value.events) == ["' world world' 4:6"]


def test_the_error_of_a_tolerant_parser_has_no_events():
    (fault,) = [e for e in EventParser().feed_many(BROKEN) if hasattr(e, "error")]
    assert fault.error.events == ()


def test_of_two_faults_of_a_token_the_strict_mode_raises_the_first():
    parser = EventParser(strict=True)
    with pytest.raises(HarmonyParseError) as caught:
        parser.feed_many(tokens_of("<|channel|> to=<|message|>"))
    assert caught.value.kind is FaultKind.EMPTY_RECIPIENT
    assert faults_of(caught.value.events) == ["empty_channel"]


def test_close_raises_too_and_the_parser_is_closed_all_the_same():
    parser = fed("<|channel|>final", strict=True)
    with pytest.raises(HarmonyParseError, match="the stream ended at position 2 inside a header"):
        parser.close()
    assert parser.close() == ()
    with pytest.raises(ValueError, match="was closed"):
        parser.feed(1)


def test_a_fault_says_where_it_stood():
    parser = fed("<|channel|>final <|message|>Hi", strict=True)
    with pytest.raises(HarmonyParseError) as caught:
        parser.feed(RESERVED)
    assert caught.value.to_dict() == {
        "kind": "unexpected_marker",
        "position": 5,
        "token": RESERVED,
        "token_text": "<|reserved_200013|>",
        "state": "CONTENT",
        "header_text": "",
        "expected": ["<|end|>", "<|return|>", "<|call|>", "<|endoftext|>", "text"],
        "message": (
            "token 200013 ('<|reserved_200013|>') at position 5 has no meaning in state CONTENT; "
            "expected <|end|>, <|return|>, <|call|>, <|endoftext|> or text"
        ),
    }


@pytest.mark.parametrize(
    ("role", "text", "sentence"),
    [
        (None, "commentary<|end|>",
         "token 12606 ('comment') at position 0 where <|start|> was expected"),
        ("assistant", "<|channel|>final Hi<|return|>",
         "token 200002 ('<|return|>') at position 3 where <|message|> was expected: the header is "
         "not finished, header text so far: '<|channel|>final Hi'"),
        ("assistant", "<|channel|>final<|channel|>analysis<|message|>",
         "a second channel, token 200005 ('<|channel|>'), at position 2, in header "
         "'<|channel|>final<|channel|>analysis'; expected one"),
        ("assistant", "<|channel|><|message|>",
         "no channel value before token 200008 ('<|message|>') at position 1, in header "
         "'<|channel|>'; expected analysis, commentary or final"),
        (None, "<|start|>!!<|message|>",
         "unknown role: '!!' at position 1, in header '!!'; expected user, "
         "assistant, system, developer, tool or the name of a tool"),
        ("assistant", "<|channel|>final a b<|message|>",
         "unexpected words 'a b' at position 2 remain in header "
         "'<|channel|>final a b'; expected to=NAME or one content type"),
        ("assistant", "<|channel|>final",
         "the stream ended at position 2 inside a header, header text so far: "
         "'<|channel|>final'; expected <|constrain|>, <|message|> or text"),
        ("assistant", "<|message|>a<|start|>",
         "token 200006 ('<|start|>') at position 2 inside the content of a message; expected "
         "<|end|>, <|return|>, <|call|>, <|endoftext|> or text first"),
        ("assistant", "<|channel|>final<|start|>",
         "token 200006 ('<|start|>') at position 2 inside a header, header text so far: "
         "'<|channel|>final'; expected <|constrain|>, <|message|> or text"),
        ("assistant", "<|channel|>final to=<|message|>",
         "no recipient value in 'to=' at position 2, in header "
         "'<|channel|>final to='; expected the name of a tool"),
    ],
)  # fmt: skip
def test_a_fault_is_a_sentence_that_helps(role, text, sentence):
    with pytest.raises(HarmonyParseError) as caught:
        events_of(text, role, strict=True)
    assert str(caught.value) == sentence


def test_a_fault_in_marked_text_names_no_token():
    parser = EventParser(None, strict=True)
    with pytest.raises(HarmonyParseError) as caught:
        parser.feed_text("Hi<|message|>")
    assert (caught.value.token, caught.value.token_text) == (None, "Hi")


class Counting(EventParser):
    """A subclass with attributes of both kinds."""

    __slots__ = ("__dict__", "seen")

    def feed(self, token):
        self.seen = getattr(self, "seen", 0) + 1
        self.label = "counting"
        return super().feed(token)


class Marked(Counting):
    __slots__ = "mark"


@pytest.mark.parametrize("kind", [Counting, Marked])
@pytest.mark.parametrize(
    "copied", [EventParser.copy, copy.copy, lambda parser: pickle.loads(pickle.dumps(parser))]
)
def test_what_a_subclass_adds_goes_with_a_copy(kind, copied):
    parser = kind()
    parser.feed(SPECIAL["<|channel|>"])
    if kind is Marked:
        parser.mark = "here"
    twin = copied(parser)
    twin.feed(17196)
    assert (twin.seen, twin.label, parser.seen) == (2, "counting", 1)
    assert getattr(twin, "mark", "here") == "here"
    assert hasattr(twin, "mark") is (kind is Marked)


def test_a_reset_leaves_what_a_subclass_adds():
    parser = Counting.after([SPECIAL["<|start|>"]])
    parser.feed(173781)
    parser.reset()
    assert (parser.seen, parser.position) == (1, 0)


# -- Cost --


@pytest.mark.parametrize(
    "piece",
    [
        [SPECIAL["<|constrain|>"]],
        [RESERVED],
        [UNKNOWN],
        [SPECIAL["<|start|>"]],
        tokens_of("<|start|>assistant"),
        tokens_of("<|start|>assistant<|channel|><|reserved_200013|><|message|>"),
        [*tokens_of("<|start|>assistant"), *[RESERVED] * 60, SPECIAL["<|message|>"]],
    ],
)
def test_a_fault_keeps_at_most_600_bytes(piece):
    stream = [SPECIAL["<|message|>"], *piece * (10_000 // len(piece))]
    parser = EventParser()
    parser.feed_many(stream)
    parser.reset()
    tracemalloc.start()
    try:
        events = parser.feed_many(stream)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    faults = sum(isinstance(event, Malformed) for event in events)
    assert faults > 1000
    assert kept < 600 * len(events)


HEADERS = {
    "tokens": lambda n: tokens_of(" x") * n,
    "markers": lambda n: [RESERVED] * n,
    "channels": lambda n: [SPECIAL["<|channel|>"], 87] * (n // 2),
    "emoji": lambda n: tokens_of("🦩") * (n // 3),
    "text": lambda n: ["x "] * n,
    "text in bytes": lambda n: ["é ".encode()] * n,
}


@pytest.mark.parametrize("kind", HEADERS)
def test_a_long_header_costs_what_its_tokens_cost(kind):
    short, long = (_lines_run(HEADERS[kind](count)) for count in (1000, 4000))
    assert long < 5 * short


def _lines_run(items):
    """How many calls it takes to read a header of so many items: the same in each run."""
    parser = EventParser(max_header_tokens=10**6)
    feed = parser.feed if isinstance(items[0], int) else parser.feed_text
    profile = cProfile.Profile(builtins=False)
    profile.enable()
    for item in items:
        feed(item)
    if isinstance(items[0], int):
        parser.feed(SPECIAL["<|message|>"])
    parser.close()
    profile.disable()
    return sum(entry.callcount for entry in profile.getstats())


# -- A life: close, reset, copy, pickle --


def test_a_closed_parser_takes_nothing_until_it_is_reset():
    parser = fed("<|message|>Hi")
    assert described(parser.close()) == ["truncated 2:2"]
    assert parser.close() == ()
    for call in (
        lambda: parser.feed(1),
        lambda: parser.feed_many([]),
        lambda: parser.feed_text(""),
    ):
        with pytest.raises(ValueError, match=r"closed: reset\(\) the parser before feeding more"):
            call()
    parser.reset()
    assert described(feed_all(parser, ANSWER)) == EVENTS


def test_half_a_marker_at_the_end_of_text_is_text():
    parser = EventParser()
    parser.feed_text("<|message|>a<|en")
    assert described(parser.close()) == ["'<|en' 12:16", "truncated 16:16"]


def test_a_parser_says_where_it_is():
    assert repr(EventParser()) == "<EventParser in ROLE at position 0>"
    assert repr(fed("<|channel|>final<|message|>Hi")) == "<EventParser in CONTENT at position 4>"


def test_a_parser_that_was_reset_takes_the_other_kind_of_input():
    parser = fed("<|message|>Hi")
    parser.reset()
    assert described(parser.feed_text("<|message|>a<|")) == ["start assistant 0:11", "'a' 11:12"]
    parser.reset()
    assert described(parser.feed_many(ANSWER[:3])) == EVENTS[:1]
    assert parser.close() != ()


def test_the_limit_for_text_does_not_outlast_a_reset():
    parser = EventParser(max_header_tokens=1)
    assert described(parser.feed_text("<|message|>")) == ["start assistant 0:11"]
    parser.reset()
    assert faults_of(parser.feed_many(HEADER)) == ["missing_message", "unexpected_marker"]


def test_options_outlast_resets_copies_and_pickles():
    parser = fed("<|message|>", strict=True, max_header_tokens=2)
    parser.reset()
    for twin in (parser, parser.copy(), pickle.loads(pickle.dumps(parser))):
        with pytest.raises(HarmonyParseError):
            twin.feed_many(tokens_of(" to=f<|channel|>final"))


@pytest.mark.parametrize(
    "copied", [EventParser.copy, copy.copy, lambda parser: pickle.loads(pickle.dumps(parser))]
)
@pytest.mark.parametrize("length", range(len(ANSWER)))
def test_a_copy_goes_its_own_way(copied, length):
    parser = EventParser()
    parser.feed_many(ANSWER[:length])
    twin = copied(parser)
    parser.feed_many(BROKEN)
    assert (twin.position, twin.state) == (length, fed_state(length))
    rest = [*twin.feed_many(ANSWER[length:]), *twin.close()]
    assert join_deltas(rest)[-1] == events_of(ANSWER)[-1]


def fed_state(length):
    parser = EventParser()
    parser.feed_many(ANSWER[:length])
    return parser.state


def test_a_copy_of_text_holds_the_same_half_marker():
    parser = EventParser()
    parser.feed_text("<|message|>a<|en")
    twin = parser.copy()
    assert described(parser.feed_text("x")) == ["'<|enx' 12:17"]
    assert described(twin.feed_text("d|>")) == ["end complete 12:19"]


def test_a_pickle_refers_to_the_vocabulary_and_does_not_hold_it():
    parser = fed("<|message|>Hi")
    assert len(pickle.dumps(parser)) < 3000
    assert pickle.loads(pickle.dumps(parser))._vocabulary is VOCABULARY


# -- What is known --


@pytest.mark.parametrize(
    ("role", "text", "state", "header"),
    [
        (None, "", "EXPECT_START", None),
        (None, " ", "EXPECT_START", None),
        ("assistant", "", "ROLE", ("assistant", None, None)),
        ("user", "", "ROLE", ("user", None, None)),
        (None, "<|start|>user", "ROLE", ("user", None, None)),
        ("assistant", "<|channel|>", "CHANNEL", ("assistant", None, None)),
        ("assistant", "<|channel|>commentary to=f", "CHANNEL", ("assistant", "commentary", "f")),
        ("assistant", "<|constrain|>json", "CONSTRAIN", ("assistant", None, None)),
        ("assistant", "<|channel|>final<|message|>", "CONTENT", ("assistant", "final", None)),
        ("assistant", "<|channel|>final<|message|>a<|end|>", "EXPECT_START", None),
    ],
)
def test_state_position_and_header_are_known_at_any_time(role, text, state, header):
    parser = fed(text, role)
    found = parser.header
    assert parser.state == state
    assert parser.position == len(tokens_of(text))
    assert (found and (found.role, found.channel, found.recipient)) == header


def test_the_header_of_a_message_is_that_of_its_events():
    parser = EventParser()
    (start,) = parser.feed_many(HEADER)
    assert parser.header is start.header


def test_asking_changes_nothing():
    parser = fed("<|channel|>final to=", strict=True)
    before = pickle.dumps(parser)
    assert (parser.state, parser.position) == ("CHANNEL", 4)
    assert parser.header.channel == "final"
    assert pickle.dumps(parser) == before


# -- After a prompt --

PROMPT = "<|start|>user<|message|>Hi<|end|><|start|>assistant"


def after(prompt, **options):
    return EventParser.after(tokens_of(prompt), **options)


@pytest.mark.parametrize("prompt", [PROMPT, "<|start|>assistant", "<|start|> Assistant "])
def test_after_a_prompt_a_completion_is_read_as_after_its_role(prompt):
    assert described(feed_all(after(prompt), ANSWER)) == EVENTS


@pytest.mark.parametrize(
    "tokens", [ANSWER, [*HEADER, 9552], [13225], BROKEN, [RESERVED], [], [199998, 200007]]
)
def test_a_prompt_that_ends_in_its_role_is_the_same_as_the_role(tokens):
    assert feed_all(after(PROMPT), tokens) == events_of(tokens)


def test_words_of_the_prompt_that_no_field_took_are_no_text_of_the_stream():
    prompt = "<|start|>functions.f to=assistant<|channel|>commentary"
    events = feed_all(after(prompt), tokens_of('"<|channel|>final<|message|>x'))
    assert stray_texts_of(events) == ['"']


def test_a_prompt_may_end_in_the_role_of_another():
    events = feed_all(after("<|start|>functions.f to=assistant"), tokens_of("<|message|>1<|end|>"))
    assert described(events) == [
        "start tool functions.f to=assistant 0:1",
        "'1' 1:2",
        "end complete 2:3",
    ]
    assert messages_of(feed_all(after("<|start|>user:ines"), ANSWER))[0][:3] == (
        "user",
        "ines",
        "final",
    )
    assert after("<|start|>tool").header.name == "tool"


def test_a_prompt_may_end_inside_a_header():
    events = feed_all(
        after(PROMPT + "<|channel|>commentary to=fun"), tokens_of("ctions.f<|message|>")
    )
    assert described(events) == ["start assistant commentary to=functions.f 0:3", "truncated 3:3"]


def test_words_of_the_prompt_are_not_content_of_the_completion():
    parser = after(PROMPT + "<|channel|>final Hel")
    events = feed_all(parser, tokens_of("lo<|end|>"))
    assert described(events) == [
        "start assistant final 0:0",
        "missing_message 1:2",
        "'lo' 0:1",
        "end 1:2",
    ]


def test_a_prompt_may_end_inside_content():
    parser = after(PROMPT + "<|channel|>final<|message|>Once")
    assert (parser.state, parser.position, parser.header.channel) == ("CONTENT", 0, "final")
    assert described(parser.feed(13225)) == ["start assistant final 0:0", "'Hello' 0:1"]
    assert described(parser.feed(13225)) == ["'Hello' 1:2"]
    assert described(parser.close()) == ["truncated 2:2"]


@pytest.mark.parametrize(
    ("tokens", "events"),
    [
        ([], ["start assistant 0:0", "truncated 0:0"]),
        ([SPECIAL["<|end|>"]], ["start assistant 0:0", "end complete 0:1"]),
        ([RESERVED], ["start assistant 0:0", "unexpected_marker 0:1", "truncated 1:1"]),
    ],
)
def test_a_message_that_stands_in_the_prompt_starts_with_whatever_comes_first(tokens, events):
    assert described(feed_all(after("<|start|>assistant<|message|>a"), tokens)) == events


def test_a_character_may_be_cut_between_prompt_and_completion():
    text = [*tokens_of("<|start|>assistant<|message|>"), 28823]
    events = feed_all(EventParser.after(text), [102, SPECIAL["<|end|>"]])
    assert described(events) == ["start assistant 0:0", "'👩' 0:1", "end complete 1:2"]


def test_a_prompt_may_end_between_messages():
    parser = after("<|start|>user<|message|>Hi<|end|>")
    assert (parser.state, parser.header) == ("EXPECT_START", None)
    events = feed_all(parser, tokens_of("<|start|>assistant<|message|>a<|end|>"))
    assert described(events) == ["start assistant 0:3", "'a' 3:4", "end complete 4:5"]


def test_a_broken_prompt_is_not_the_fault_of_the_completion():
    parser = after("<|channel|><|message|>a<|end|><|start|>assistant", strict=True)
    assert described(feed_all(parser, ANSWER)) == EVENTS


def test_a_role_may_be_repeated_after_a_prompt():
    events = feed_all(after(PROMPT, strict=True), tokens_of("<|start|>assistant<|message|>"))
    assert described(events) == ["start assistant 0:3", "truncated 3:3"]


def test_the_very_start_is_the_prompts_unless_that_only_gives_the_role():
    for prompt in ("<|start|>user<|message|>Hi<|end|>", "<|start|>assistant<|channel|>"):
        assert faults_of(feed_all(after(prompt), [SPECIAL["<|startoftext|>"]])) != []
    assert faults_of(feed_all(after(PROMPT), [SPECIAL["<|startoftext|>"]])) == []
    assert faults_of(feed_all(EventParser.after([]), [SPECIAL["<|startoftext|>"]])) == []


def test_text_may_follow_a_prompt_of_tokens():
    parser = after(PROMPT + "<|channel|>final<|message|>Once")
    events = [*parser.feed_text(" upon<|return|>"), *parser.close()]
    assert described(events) == [
        "start assistant final 0:0",
        "' upon' 0:5",
        "return complete 5:15",
    ]


def test_after_a_reset_the_prompt_still_stands():
    parser = after(PROMPT + "<|channel|>final<|message|>Once")
    first = feed_all(parser, [13225])
    parser.reset()
    assert feed_all(parser, [13225]) == first
    assert isinstance(first[0], MessageStart)


def test_options_hold_after_a_prompt():
    parser = after(PROMPT, strict=True, max_header_tokens=1)
    with pytest.raises(HarmonyParseError):
        parser.feed_many(HEADER)
    parser.reset()
    with pytest.raises(HarmonyParseError):
        parser.feed_many(HEADER)


# -- Other vocabularies --


def test_formatting_tokens_may_have_other_ids():
    moved = {FormattingToken.CALL: 300000, FormattingToken.MESSAGE: 300001}
    vocabulary = Vocabulary.from_tiktoken(VOCABULARY.tiktoken_encoding, special_tokens=moved)
    tokens = [moved.get(VOCABULARY.formatting_tokens.get(token), token) for token in ANSWER]
    assert described(events_of(tokens, vocabulary=vocabulary)) == EVENTS
    assert described(events_of([300001, 13225, 300000], vocabulary=vocabulary)) == [
        "start assistant 0:1",
        "'Hello' 1:2",
        "call complete 2:3",
    ]
    assert faults_of(events_of(ANSWER, vocabulary=vocabulary)) != []


# -- Iterating --


def test_events_may_be_iterated_over():
    assert described(iter_events(ANSWER)) == EVENTS
    assert described(iter_events(tokens_of("<|start|>user<|message|>a"), None)) == [
        "start user 0:3",
        "'a' 3:4",
        "truncated 4:4",
    ]


def test_events_come_as_soon_as_their_tokens():
    taken = []
    tokens = (taken.append(token) or token for token in ANSWER)
    first = next(iter_events(tokens))
    assert isinstance(first, MessageStart)
    assert taken == ANSWER[:3]


def test_events_of_asynchronous_tokens_are_the_same():
    async def engine(tokens):
        for token in tokens:
            yield token

    async def all_events(tokens, *arguments, **options):
        return [event async for event in aiter_events(engine(tokens), *arguments, **options)]

    assert described(asyncio.run(all_events(ANSWER))) == EVENTS
    assert described(asyncio.run(all_events(ANSWER[:4], "user"))) == [
        "start user final 0:3",
        "'Hello' 3:4",
        "truncated 4:4",
    ]
    with pytest.raises(HarmonyParseError):
        asyncio.run(all_events(BROKEN, strict=True))


def test_iterating_may_be_strict_and_use_another_vocabulary():
    with pytest.raises(HarmonyParseError):
        list(iter_events(BROKEN, strict=True))
    vocabulary = Vocabulary.from_tiktoken(
        VOCABULARY.tiktoken_encoding, special_tokens={"<|call|>": 300000}
    )
    events = list(iter_events([*HEADER, 300000], vocabulary=vocabulary))
    assert described(events)[-1] == "call complete 3:4"


def test_the_text_of_a_delta_is_shared_and_not_made_again():
    (first,), (second,) = (fed("<|message|>").feed(13225) for _ in range(2))
    assert isinstance(first, ContentDelta)
    assert first.text is second.text
    assert sys.getsizeof(first) < 100


@pytest.mark.parametrize("tokens", [[5.0], ["a"], [None], [[]], [-5], [13225, -1], [13225, "a"]])
def test_what_is_no_token_is_refused_in_content_and_nothing_is_taken(tokens):
    parser = EventParser()
    parser.feed_many(HEADER)
    position = parser.position
    for feed in (parser.feed_many, lambda each: [parser.feed(token) for token in each[-1:]]):
        with pytest.raises((TypeError, ValueError)):
            feed(tokens)
        assert parser.position == position


def test_marked_text_is_refused_in_a_header_of_tokens_that_is_known():
    for _ in range(2):  # the second time the header is known
        parser = EventParser()
        parser.feed(SPECIAL["<|channel|>"])
        with pytest.raises(ValueError, match="tokens or marked text, not both"):
            parser.feed_text("final")
        assert parser.feed_many(tokens_of("final<|message|>"))[0].channel == "final"


def test_state_and_header_can_be_asked_for_in_a_header_that_is_known():
    polled = []
    for _ in range(2):  # the second time the header is known
        parser = EventParser(None)
        polled.append([])
        for token in tokens_of("<|start|>assistant to=f<|channel|>final<|message|>"):
            parser.feed(token)
            header = parser.header
            polled[-1].append((parser.state, parser.position, header and header.recipient))
            assert parser.header == header
    assert polled[0] == polled[1]
    assert polled[0][3] == (State.ROLE, 4, "f")


@pytest.mark.parametrize(
    ("tokens", "events"),
    [
        ("", []),
        ("a b", ["'a b' 3:5"]),
        ("🦥", ["'🦥' 3:6"]),
        ("a🦥b", ["'a🦥b' 3:8"]),
    ],
)
def test_a_few_tokens_give_one_delta_the_second_time_as_the_first(tokens, events):
    for _ in range(2):  # the first time they are looked up
        parser = fed("<|channel|>final<|message|>")
        assert described(parser.feed_many(tokens_of(tokens))) == events


def test_a_few_tokens_may_end_in_a_character_that_more_of_them_finish():
    *most, last = tokens_of("a🦥")
    for _ in range(2):
        parser = fed("<|channel|>final<|message|>")
        assert described(parser.feed_many(most)) == ["'a' 3:4"]
        assert parser.feed_many(most[:0]) == []
        assert described(parser.feed_many([last])) == ["'🦥' 4:7"]


def test_characters_in_parts_are_the_same_the_second_time():
    tokens = tokens_of("<|channel|>final<|message|>a🦥🪐 b<|end|>")
    first, second = (described(feed_all(EventParser(), tokens)) for _ in range(2))
    assert second == first == [
        "start assistant final 0:3", "'a' 3:4", "'🦥' 4:7", "'🪐' 7:10", "' b' 10:11",
        "end complete 11:12",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "token", "events"),
    [
        ("<|channel|>final<|message|>", "<|message|>", ["unexpected_marker {0}:{1}"]),
        ("<|channel|>final<|message|>", UNKNOWN, ["'\ufffd' {0}:{1}", "unknown_token {0}:{1}"]),
        ("<|message|><|end|>", "<|end|>", []),
        ("<|message|><|end|>", RESERVED, ["unexpected_marker {0}:{1}"]),
        ("<|message|><|end|><|start|>", "<|start|>", ["unexpected_start {0}:{1}"]),
    ],
)
def test_a_token_that_comes_again_and_again_makes_the_same_of_each(before, token, events):
    parser = fed(before)
    token = token if token in (UNKNOWN, RESERVED) else SPECIAL[token]
    start = parser.position
    wanted = [each.format(n, n + 1) for n in range(start, start + 40) for each in events]
    found = parser.feed_many([token] * 40)
    assert described(found) == wanted
    assert parser.position == start + 40
    places = [event.error.position for event in found if isinstance(event, Malformed)]
    assert places == [event.start for event in found if isinstance(event, Malformed)]


def test_what_comes_again_and_again_may_begin_otherwise():
    parser = fed("<|channel|>final<|message|>a")
    found = parser.feed_many([158, *[SPECIAL["<|start|>"]] * 5])
    assert described(found) == [
        "'\ufffd' 4:5", "missing_end 5:6", "implicit 5:5",
        "unexpected_start 6:7", "unexpected_start 7:8", "unexpected_start 8:9",
        "unexpected_start 9:10",
    ]  # fmt: skip
    assert described(parser.feed_many(tokens_of("user<|message|>"))) == ["start user 9:12"]


@pytest.mark.parametrize("token", [numpy.array(172), numpy.array(200005), 2**70, -1, -201089, 1.0])
def test_what_is_no_plain_token_goes_the_slow_way_in_content(token):
    parser, slow = fed("<|channel|>final<|message|>"), fed("<|channel|>final<|message|>")
    try:
        wanted = slow.feed_many([int(token)] if token != 1.0 else [token])
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            parser.feed(token)
    else:
        assert list(parser.feed(token)) == wanted


def test_a_fault_ends_a_character_of_which_parts_are_remembered():
    for _ in range(2):
        parser = fed("<|channel|>final<|message|>")
        assert parser.feed(158) == ()
        assert described(parser.feed(RESERVED)) == ["'\ufffd' 3:4", "unexpected_marker 4:5"]
        assert described(parser.feed(13225)) == ["'Hello' 5:6"]


def test_tokens_are_refused_after_marked_text_that_is_held_back_also_if_their_header_is_known():
    for _ in range(2):  # the second time the header is known
        EventParser().feed_many(HEADER)
        parser = EventParser()
        assert parser.feed_text("<|chan") == []
        for token in HEADER:
            with pytest.raises(ValueError, match="tokens or marked text, not both"):
                parser.feed(token)
        events = parser.feed_text("nel|>final<|message|>hi")
        assert described([*events, *parser.close()])[1:] == ["'hi' 27:29", "truncated 29:29"]


@pytest.mark.parametrize("odd", [numpy.array([5, 6]), numpy.array([[5]]), "a", None, 1.5])
def test_what_is_no_integer_is_a_type_error_in_content_too(odd):
    parser = fed("<|channel|>final<|message|>")
    for feed in (parser.feed, lambda token: parser.feed_many([token, token])):
        with pytest.raises(TypeError):
            feed(odd)
    assert parser.position == 3


class Compared(int):
    """A token that counts how often it is compared."""

    count = 0
    __hash__ = int.__hash__

    def __eq__(self, other):
        Compared.count += 1
        return int(self) == other

    def __ne__(self, other):
        return not self == other


def test_tokens_between_messages_are_not_searched_for_a_header_each():
    tokens = [Compared(token) for token in [220, 197] * 200]
    Compared.count = 0
    EventParser(None, max_header_tokens=1000).feed_many(tokens)
    assert Compared.count < 5 * len(tokens)


@pytest.mark.parametrize("role", ["assistant", None])
def test_a_token_that_means_something_at_the_very_start_means_it_once(role):
    tokens = [SPECIAL["<|startoftext|>"]] * 12
    by_one, at_once = EventParser(role), EventParser(role)
    found = [event for token in tokens for event in by_one.feed(token)]
    assert at_once.feed_many(tokens) == found
    assert described(at_once.close()) == described(by_one.close())
