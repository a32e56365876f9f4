"""The laws that hold for any sequence of tokens whatever; README.md has them in words."""

import itertools
import pickle
import re
import sys
import tracemalloc

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import (
    RESERVED,
    SPECIAL,
    UNKNOWN,
    VOCABULARY,
    cut,
    events_of,
    examples,
    faults_of,
    feed_all,
    is_text,
    marked_pieces,
    messages_of,
    places,
    roles,
    stray_texts_of,
    streams,
    tokens_of,
)

from harmony_stream.parsing.parser import EventParser
from harmony_stream.parsing.states import State
from harmony_stream.values.events import (
    ContentDelta,
    HarmonyParseError,
    Malformed,
    MessageEnd,
    MessageStart,
    join_deltas,
)


def caught(call, *arguments):
    """What a strict parser returned, or the error that it raised."""
    try:
        return list(call(*arguments)), None
    except HarmonyParseError as error:
        return list(error.events), error


# -- 1. Tolerant never raises; strict raises exactly where tolerant reports --


@given(streams, roles)
@examples(250)
def test_the_strict_mode_raises_the_first_fault_of_each_token_and_goes_on_as_the_tolerant(
    tokens, role
):
    tolerant, strict = EventParser(role), EventParser(role, strict=True)
    for token in tokens:
        assert_same_step(tolerant.feed(token), *caught(strict.feed, token))
        assert (strict.state, strict.position) == (tolerant.state, tolerant.position)
    assert_same_step(tolerant.close(), *caught(strict.close))


def assert_same_step(reported, returned, error):
    faults = [event for event in reported if isinstance(event, Malformed)]
    assert (error and error.to_dict()) == (faults[0].error.to_dict() if faults else None)
    assert returned == join_deltas(event for event in reported if event not in faults[:1])


@given(streams, roles)
@examples(150)
def test_of_a_chunk_the_strict_mode_takes_the_tokens_up_to_the_first_fault(tokens, role):
    strict, tolerant = EventParser(role, strict=True), EventParser(role)
    returned, error = caught(strict.feed_many, tokens)
    taken = tolerant.feed_many(tokens[: strict.position])
    assert strict.position == len(tokens) or error is not None
    assert_same_step(taken, returned, error)
    assert strict.feed_many([]) == []
    assert join_deltas(strict_rest(strict, tokens)) == join_deltas(
        [*tolerant.feed_many(tokens[tolerant.position :]), *tolerant.close()]
    )


def strict_rest(strict, tokens):
    """All events of the rest, the faults of a strict parser put back where they were raised."""
    twin = EventParser(None)
    twin.__setstate__({**strict.__getstate__(), "_strict": False})
    return [*twin.feed_many(tokens[strict.position :]), *twin.close()]


@given(streams, roles, st.integers(1, 12))
@examples(150)
def test_no_stream_makes_the_tolerant_mode_raise_however_short_headers_must_be(
    tokens, role, max_header_tokens
):
    events = events_of(tokens, role, max_header_tokens=max_header_tokens)
    assert_grammar(events)
    assert_nothing_lost(tokens, role, max_header_tokens=max_header_tokens)


# -- The grammar of events --


@given(streams, roles)
@examples(250)
def test_events_follow_their_grammar(tokens, role):
    assert_grammar(events_of(tokens, role))


def assert_grammar(events):
    """(Malformed | MessageStart (ContentDelta | Malformed)* MessageEnd)*, counted from 0."""
    header, index = None, -1
    for event in events:
        match event:
            case Malformed():
                assert header is None or event.text == ""
            case MessageStart():
                assert header is None
                header, index = event.header, index + 1
                assert event.index == index
            case ContentDelta():
                assert event.header is header
                assert event.index == index
                assert event.text
                event.text.encode()
            case MessageEnd():
                assert event.header is header
                assert event.index == index
                header = None
    assert header is None


# -- 2. The content of a message --


@given(streams, roles)
@examples(250)
def test_the_text_of_a_message_is_its_tokens_decoded(tokens, role):
    for start, *between, end in closed_messages(events_of(tokens, role), tokens):
        deltas = [event.text for event in between if isinstance(event, ContentDelta)]
        assert "".join(deltas) == decode(tokens[start.stop : end.start])


def closed_messages(events, tokens):
    """The events of each message whose header `<|message|>` ended."""
    for place, event in enumerate(events):
        if isinstance(event, MessageStart) and ends_with_marker(tokens[event.start : event.stop]):
            stop = next(p for p in range(place, len(events)) if isinstance(events[p], MessageEnd))
            yield events[place : stop + 1]


def ends_with_marker(header):
    return header[-1:] == [SPECIAL["<|message|>"]]


def decode(tokens):
    """What tokens say: special ones nothing, unknown ones U+FFFD; both end a run of bytes."""
    runs = [b""]
    for token in tokens:
        if is_text(token):
            runs[-1] += VOCABULARY.decode_single_token_bytes(token)
        else:
            runs += ["\ufffd".encode() if token >= UNKNOWN else b"", b""]
    return "".join(run.decode("utf-8", "replace") for run in runs)


# -- 3. No text is lost --


@given(streams, roles)
@examples(300)
def test_each_token_of_text_is_in_exactly_one_header_delta_or_malformed_text(tokens, role):
    assert_nothing_lost(tokens, role)


def assert_nothing_lost(tokens, role, **options):
    parser = EventParser(role, **options)
    states, events = [], []
    for token in tokens:
        states.append(parser.state)
        events += parser.feed(token)
    events += parser.close()
    spans = spans_of(events)
    assert_never_go_back(events, len(tokens))
    kept = {place for start, stop in spans for place in range(start, stop)}
    for first, lost in runs_of_lost_text(tokens, kept):
        assert may_be_lost(states[first], lost), (first, lost)


def spans_of(events):
    """All but those of faults without text, which only point, and of words inside a header."""
    inside = {id(fault) for fault, _ in left_over_in(events)}
    kept = [e for e in events if not isinstance(e, Malformed) or (e.text and id(e) not in inside)]
    return [(e.start, e.stop) for e in kept]


def left_over_in(events):
    """Faults with the left-over words of a header, each with the start of its message."""
    for fault, start in itertools.pairwise(events):
        is_left_over = isinstance(fault, Malformed) and fault.text and fault.stop > start.start
        if is_left_over and isinstance(start, MessageStart):
            yield fault, start


def assert_never_go_back(events, length):
    edges = [edge for span in spans_of(events) for edge in span]
    assert edges == sorted(edges)
    assert all(0 <= edge <= length for edge in edges)
    for fault, start in left_over_in(events):
        assert start.start <= fault.start < fault.stop <= start.stop


def runs_of_lost_text(tokens, kept):
    """Each run of text that is in no event: where it begins, and its bytes."""
    run, first = b"", 0
    for place, token in enumerate([*tokens, RESERVED]):
        if is_text(token) and place not in kept:
            first = place if not run else first
            run += VOCABULARY.decode_single_token_bytes(token)
        elif run:
            yield first, run
            run = b""


ROLE = re.compile(r"\s*((system|developer|user|assistant|tool)\s*)?", re.IGNORECASE)


def may_be_lost(state, lost):
    text = lost.decode("utf-8", "replace")
    if state is State.EXPECT_START:
        return text.isspace()
    return state is State.ROLE and ROLE.fullmatch(text) is not None


@given(streams, roles)
@examples(150)
def test_text_that_belongs_to_no_message_is_that_of_its_span(tokens, role):
    events = events_of(tokens, role)
    inside = {id(fault) for fault, _ in left_over_in(events)}
    for event in events:
        if isinstance(event, Malformed) and event.text:
            text = decode_joined(tokens[event.start : event.stop])
            if id(event) in inside:  # words of it, with the fields of the header between them
                assert is_subsequence(event.text.split(), text)
            else:
                assert event.text == text


def decode_joined(tokens):
    """What the text among tokens says, U+FFFD for unknown ones."""
    known = [
        VOCABULARY.decode([token], errors="surrogateescape") if is_text(token) else "\ufffd"
        for token in tokens
        if is_text(token) or token >= UNKNOWN
    ]
    return "".join(known).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def is_subsequence(words, text):
    place = 0
    for word in words:
        place = text.find(word, place) + len(word)
        if place < len(word):
            return False
    return True


PROSE = st.lists(st.text("qxzQXZ4!?.,é答案", min_size=1, max_size=5), min_size=2, max_size=5).map(
    " ".join
)
# Before the prose, after it in the header, and what ends the header.
HEADS = ["<|start|>assistant ", "<|start|>assistant:!", "<|start|>!", "<|end|>", "", " ", ":"]
CHANNELS = ["", "<|channel|>final ", "<|channel|>commentary to=functions.f "]
TAILS = ["", " to=functions.f", "<|channel|>analysis", " <|constrain|>json", "<|channel|>final x"]
ENDS = ["<|message|>Hi<|end|>", "<|end|>", "<|return|>", "<|call|>", "<|start|>assistant", ""]


@given(
    PROSE,
    st.sampled_from(HEADS),
    st.sampled_from(CHANNELS),
    st.sampled_from(TAILS),
    st.sampled_from(ENDS),
    st.booleans(),
)
@examples(400)
def test_prose_in_a_header_is_in_the_text_of_an_event(prose, head, channel, tail, end, is_text):
    marked = head + channel + prose + tail + end
    events = text_events([marked], "assistant") if is_text else events_of(marked)
    texts = [event.text for event in events if isinstance(event, ContentDelta | Malformed)]
    assert prose in "".join(texts)
    assert faults_of(events)


def is_prose(text):
    """Whether text says something, and neither names a recipient nor spells a marker."""
    return bool(text.strip()) and "to=" not in text and "<|" not in text


@pytest.mark.parametrize("role", ["assistant", "user", "Assistant"])
@pytest.mark.parametrize("end", ["<|end|>", "<|return|>", "<|start|>", ""])
@given(answer=st.text(min_size=1).filter(is_prose))
@examples(30)
def test_only_a_header_that_is_its_role_alone_ends_in_silence(role, end, answer):
    events = events_of(f"<|start|>{role}:{answer}{end}", role=None)
    texts = [event.text for event in events if isinstance(event, ContentDelta | Malformed)]
    assert faults_of(events)
    assert answer.strip() in "".join(texts)
    silence = events_of(f"<|start|>{role}{end}", role=None)
    assert faults_of(silence) == (["unexpected_start"] if end == "<|start|>" else [])


# -- 4. Grouping, copies, pickles, resets --


@given(streams, roles, places)
@examples(200)
def test_how_tokens_are_grouped_does_not_matter(tokens, role, places):
    parser = EventParser(role)
    events = [event for piece in cut(tokens, places) for event in parser.feed_many(piece)]
    assert join_deltas([*events, *parser.close()]) == join_deltas(events_of(tokens, role))


@given(streams, roles, places, st.sampled_from(["copy", "pickle", "both ways of feeding"]))
@examples(200)
def test_a_parser_may_be_copied_or_pickled_at_any_point(tokens, role, places, how):
    parser, events = EventParser(role), []
    for number, piece in enumerate(cut(tokens, places)):
        if how == "both ways of feeding" and number % 2:
            events += parser.feed_many(piece)
            continue
        events += [event for token in piece for event in parser.feed(token)]
        old, parser = parser, twin_of(parser, how)
        old.feed_many([*tokens, UNKNOWN])  # what becomes of the old one is nothing to the new one
    assert join_deltas([*events, *parser.close()]) == join_deltas(events_of(tokens, role))


def twin_of(parser, how):
    return pickle.loads(pickle.dumps(parser)) if how == "pickle" else parser.copy()


@given(streams, streams, roles, st.booleans())
@examples(150)
def test_after_a_reset_a_parser_is_as_new(before, tokens, role, is_closed):
    parser = EventParser(role)
    parser.feed_many(before)
    if is_closed:
        parser.close()
    parser.reset()
    assert feed_all(parser, tokens) == events_of(tokens, role)


@given(streams, streams, streams)
@examples(150)
def test_after_a_reset_a_parser_stands_at_the_end_of_its_prompt_again(prompt, before, tokens):
    parser = EventParser.after(prompt)
    feed_all(parser, before)
    parser.reset()
    assert feed_all(parser, tokens) == feed_all(EventParser.after(prompt), tokens)


# -- 5. What strict accepts --


@given(streams, roles)
@examples(200)
def test_what_the_strict_mode_accepts_gives_the_same_events_in_the_tolerant(tokens, role):
    try:
        events = events_of(tokens, role, strict=True)
    except HarmonyParseError:
        assert faults_of(events_of(tokens, role)) != []
    else:
        assert events == events_of(tokens, role)
        assert faults_of(events) == []


# -- 6. Memory is bounded by one header --


def size_of(parser):
    return len(pickle.dumps(parser)) + sys.getsizeof(parser)


@pytest.mark.parametrize(
    "endless",
    [
        "<|channel|>final<|message|>" + "word " * 20,
        "<|channel|>final<|message|>" + "👩‍👩‍👧 " * 4,
        "word " * 20,
        " \n" * 20,
        "<|end|>" * 20,
        "<|start|>" * 20,
        "<|channel|>" * 20,
        "<|channel|>final<|message|>a<|end|><|start|>assistant" * 4,
    ],
)
def test_a_parser_does_not_grow_with_what_it_has_read(endless):
    tokens = tokens_of(endless)
    parser, sizes = EventParser(), []
    for _ in range(40):
        for token in tokens:
            parser.feed(token)
        sizes.append(size_of(parser))
    assert max(sizes[20:]) <= max(sizes[:20]) + 16  # numbers get longer, nothing else


def test_200_000_tokens_leave_nothing_in_memory():
    tokens = tokens_of("<|channel|>final<|message|>" + "some words 👩‍👩‍👧 漢字 " * 50)
    parser = EventParser()
    parser.feed_many(tokens)
    tracemalloc.start()
    try:
        for _ in range(200_000 // len(tokens)):
            parser.feed_many(tokens[3:])
        assert tracemalloc.get_traced_memory()[0] < 8_000
    finally:
        tracemalloc.stop()


def test_a_parser_inside_content_is_under_2_kilobytes():
    parser = EventParser()
    parser.feed_many(tokens_of("<|channel|>final<|message|>" + "word " * 1000))
    machine = parser._machine
    own = [getattr(parser, name) for name in parser.__getstate__() if name != "_vocabulary"]
    own += [getattr(machine, name) for name in machine.__slots__ if name != "_vocabulary"]
    assert sys.getsizeof(parser) + sum(map(sys.getsizeof, own)) < 2_000


# -- Marked text --


@given(marked_pieces, roles, places, st.booleans())
@examples(200)
def test_where_marked_text_is_cut_does_not_matter(pieces, role, places, as_bytes):
    text = "".join(pieces).encode() if as_bytes else "".join(pieces)
    assert text_events(cut(text, places), role) == text_events([text], role)


@given(st.text(), places)
@examples(100)
def test_text_of_any_kind_may_be_cut_anywhere(text, places):
    text = "<|channel|>final<|message|>" + text.replace("x", "<|").replace("y", "|>")
    assert text_events(cut(text, places), None) == text_events([text], None)


@given(marked_pieces, roles)
@examples(150)
def test_of_a_chunk_of_text_the_strict_mode_takes_what_stands_before_the_first_fault(pieces, role):
    text = "".join(pieces) + "<|en"
    strict, events, error = EventParser(role, strict=True), [], True
    while error:
        more, error = caught(strict.feed_text, text[strict.position :])
        events += more
    for more, _ in (caught(strict.feed_text, "d|>"), caught(strict.close)):
        events += more
    tolerant = text_events([text + "d|>"], role)
    assert messages_of(events) == messages_of(tolerant)


def text_events(chunks, role, **options):
    parser = EventParser(role, **options)
    events = [event for chunk in chunks for event in parser.feed_text(chunk)]
    return join_deltas([*events, *parser.close()])


@given(marked_pieces, roles, places)
@examples(150)
def test_bytes_and_characters_say_the_same(pieces, role, places):
    text = "".join(pieces)
    options = {"max_header_tokens": 1000}  # a limit counts bytes in the one, characters in other
    from_bytes = text_events(cut(text.encode(), places), role, **options)
    assert content_of(from_bytes) == content_of(text_events([text], role, **options))


@given(marked_pieces, roles)
@examples(200)
def test_tokens_and_their_text_say_the_same(pieces, role):
    tokens = [token for piece in pieces for token in tokens_of(piece)]
    options = {"max_header_tokens": 1000}
    from_text = text_events(["".join(pieces)], role, **options)
    assert content_of(from_text) == content_of(events_of(tokens, role, **options))


def content_of(events):
    """What was read, white space around text of no message aside: a token cannot be cut there."""
    return messages_of(events), faults_of(events), [text.strip() for text in stray_texts_of(events)]


@given(marked_pieces, roles)
@examples(150)
def test_no_text_of_marked_text_is_lost(pieces, role):
    text = "".join(pieces)
    events = text_events([text], role)
    spans = spans_of(events)
    assert_never_go_back(events, len(text))
    kept = {place for start, stop in spans for place in range(start, stop)}
    lost = "".join(c if place not in kept else "\0" for place, c in enumerate(text))
    parts = re.split(r"\0|<\|\w+\|>", lost)
    assert [part for part in parts if not ROLE.fullmatch(part)] == []


# -- Prompts --


@given(streams, streams)
@examples(200)
def test_a_parser_after_a_prompt_emits_nothing_of_the_prompt(prompt, tokens):
    events = feed_all(EventParser.after(prompt), tokens)
    assert_grammar(events)
    assert_never_go_back(events, len(tokens))
    for event in events:
        assert 0 <= event.start <= event.stop <= len(tokens)
        assert not isinstance(event, Malformed) or event.error.position >= 0


WELL_FORMED = tokens_of(
    "<|start|>system<|message|>Be brief.<|end|><|start|>user<|message|>👩‍👩‍👧?<|end|>"
    "<|start|>assistant<|channel|>analysis<|message|>Think 🦆.<|end|>"
    "<|start|>assistant to=functions.f<|channel|>commentary <|constrain|>json<|message|>{}<|call|>"
    "<|start|>functions.f to=assistant<|channel|>commentary<|message|>[1]<|end|>"
    "<|start|>assistant<|channel|>final<|message|>Done 漢字<|return|>"
)


@pytest.mark.parametrize("length", range(len(WELL_FORMED) + 1))
def test_a_stream_cut_in_prompt_and_completion_gives_the_messages_of_the_whole(length):
    whole = events_of(WELL_FORMED, role=None)
    after = feed_all(EventParser.after(WELL_FORMED[:length]), WELL_FORMED[length:])
    expected = events_behind(whole, length)
    assert messages_of(after) == messages_of(expected)
    assert faults_of(after) == []


def events_behind(events, length):
    """What the tokens from `length` on gave; a message that began before begins anew."""
    behind, current = [], None
    for event in events:
        if isinstance(event, MessageStart):
            current = event
        if event.stop > length and not isinstance(event, MessageStart):
            behind += [current, event] if not behind else [event]
        elif event.stop > length:
            behind.append(event)
    return behind


@given(st.integers(0, len(WELL_FORMED)), streams)
@examples(100)
def test_what_follows_a_prompt_is_read_as_in_the_whole_stream(length, tokens):
    whole = EventParser(None)
    whole.feed_many(WELL_FORMED[:length])
    assume(whole.state is not State.ROLE)  # there the role is the prompt's, not a word to judge
    events = feed_all(whole, tokens)
    others = feed_all(EventParser.after(WELL_FORMED[:length]), tokens)
    # Faults of the prompt are not the completion's; and the text of one comes first.
    found = [place for place in places_of_faults(events, length) if place[1] >= 0]
    assert sorted(found) == sorted(places_of_faults(others, 0))
    for message, other in zip(messages_of(events), messages_of(others), strict=True):
        assert fields_of(message) == fields_of(other)
        assert message[5].endswith(other[5])  # words of an unfinished header may be content


def places_of_faults(events, length):
    errors = [event.error for event in events if isinstance(event, Malformed)]
    return [(error.kind, error.position - length) for error in errors]


def fields_of(message):
    return *message[:5], message[6]


def test_a_reserved_or_unknown_token_is_no_part_of_the_text():
    tokens = [*tokens_of("<|message|>a"), RESERVED, UNKNOWN, SPECIAL["<|end|>"]]
    events = events_of(tokens)
    assert [message[5] for message in messages_of(events)] == ["a\ufffd"]
    assert faults_of(events) == ["unexpected_marker", "unknown_token"]
