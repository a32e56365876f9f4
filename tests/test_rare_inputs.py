"""Rare inputs that once went wrong: other integers and strings, odd vocabularies and names."""

import copy
import pickle

import numpy
import pytest

from harmony_stream import (
    Author,
    ContentDelta,
    EventParser,
    Malformed,
    Message,
    Renderer,
    RenderError,
    Role,
    Vocabulary,
    parse,
    render_events,
)
from harmony_stream.parsing.header_tokens import _cached_reader

VOCABULARY = Vocabulary.default()
ENCODING = VOCABULARY.tiktoken_encoding


def tokens_of(text):
    return ENCODING.encode(text, allowed_special="all")


TOKENS = tokens_of("<|channel|>final<|message|>Hello, 世界 🦆<|return|>")


class Index:
    """An integer of another kind, as a tensor's item is: comparable, but not to be divided."""

    def __init__(self, number):
        self.number = number

    def __index__(self):
        return self.number


KINDS = [Index, numpy.int32, numpy.int64, numpy.uint32, numpy.uint64, numpy.array]


@pytest.fixture
def cold():
    """A vocabulary in which nothing was looked up yet."""
    return Vocabulary.from_tiktoken(ENCODING)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("feed", ["feed", "feed_many"])
def test_integers_of_any_kind_are_taken_however_cold_the_tables_are(kind, feed, cold):
    tokens = list(map(kind, TOKENS))
    parser = EventParser(vocabulary=cold)
    if feed == "feed":
        events = [event for token in tokens for event in parser.feed(token)]
    else:
        events = parser.feed_many(tokens)
    text = "".join(event.text for event in events if isinstance(event, ContentDelta))
    assert text == "Hello, 世界 🦆"


def test_small_integers_of_numpy_are_taken(cold):
    parser = EventParser(vocabulary=cold)
    parser.feed_many(tokens_of("<|channel|>final<|message|>"))
    events = parser.feed_many([numpy.uint8(65), numpy.int8(66)])
    assert events[0].text == VOCABULARY.decode([65, 66])


def test_a_closed_parser_says_so_before_it_looks_at_the_token():
    parser = EventParser()
    parser.close()
    for feed in (lambda: parser.feed(-1), lambda: parser.feed_many([-1])):
        with pytest.raises(ValueError, match=r"reset\(\)"):
            feed()


TEXT_FOR_TOKENS = [
    lambda: EventParser().feed("<|start|>"),
    lambda: EventParser().feed(b"<|start|>"),
    lambda: EventParser().feed_many("<|start|>"),
    lambda: parse("<|start|>"),
    lambda: EventParser.after("<|start|>"),
]


@pytest.mark.parametrize("feed", TEXT_FOR_TOKENS)
def test_text_where_tokens_belong_is_told_where_it_belongs(feed):
    with pytest.raises(TypeError, match=r"feed_text\(\) takes marked text"):
        feed()


class Word(str):
    __slots__ = ()


@pytest.mark.parametrize("kind", [Word, numpy.str_])
def test_strings_of_any_kind_are_text(kind):
    parser = EventParser()
    events = parser.feed_text(kind("<|channel|>final<|message|>é漢"))
    events += parser.feed_text("<|end|>")
    assert [getattr(event, "text", None) for event in events] == [None, "é漢", None]


@pytest.mark.parametrize("limit", [1, 64])
@pytest.mark.parametrize(
    "text",
    [
        "<|start|>" + "a" * 514 + "<|message|>hi<|end|>",
        "<|channel|>漢json",
        "<|reserved_200001|>\u3000  assistant <|channel|>é  to=f\u3000漢",
    ],
)
def test_where_text_is_cut_does_not_matter_at_the_limit_of_a_header(text, limit):
    def events_of(chunks):
        parser = EventParser(max_header_tokens=limit)
        fed = [event for chunk in chunks for event in parser.feed_text(chunk)]
        return [*fed, *parser.close()]

    def shape(events):
        texts = {}
        for event in events:
            if isinstance(event, ContentDelta):
                texts[event.index] = texts.get(event.index, "") + event.text
        others = [event for event in events if not isinstance(event, ContentDelta)]
        assert all(event.start <= event.stop for event in events)
        return texts, others

    assert shape(events_of([text])) == shape(events_of(list(text)))


DUCK = tokens_of("🦆")[:1]
IN_CONTENT = tokens_of("<|start|>assistant<|channel|>final<|message|>ab") + DUCK
PROMPTS = [
    tokens_of("<|start|>user<|message|>q<|end|>hello"),
    tokens_of("<|start|>user<|message|>q<|end|>") + DUCK,
    IN_CONTENT,
]


@pytest.mark.parametrize("prompt", PROMPTS, ids=repr)
@pytest.mark.parametrize("end", ["<|start|>", "<|end|>"])
def test_nothing_of_a_prompt_is_emitted_whatever_it_left_open(prompt, end):
    parser = EventParser.after(prompt)
    events = [*parser.feed(VOCABULARY.special_tokens[end]), *parser.close()]
    assert not [event for event in events if isinstance(event, ContentDelta)]
    faults = [(e.error.kind, e.error.token) for e in events if isinstance(e, Malformed)]
    is_broken_off = prompt is IN_CONTENT and end == "<|start|>"
    wanted = [("missing_end", VOCABULARY.special_tokens[end])] if is_broken_off else []
    assert faults == wanted


def test_stray_text_that_a_prompt_began_is_reported_from_the_first_fed_token_on():
    parser = EventParser.after(tokens_of("<|start|>user<|message|>q<|end|>hello"))
    events = parser.feed_many(tokens_of(" there<|start|>"))
    (fault,) = events
    assert (fault.text, fault.error.token_text, fault.start, fault.stop) == (
        " there",
        " there",
        0,
        1,
    )


class Louder(EventParser):
    __slots__ = ()


def test_a_copy_is_of_the_same_class():
    assert type(Louder().copy()) is Louder


def test_a_deep_copy_shares_the_vocabulary(cold):
    parser = EventParser(vocabulary=cold)
    assert copy.deepcopy(parser)._vocabulary is cold
    assert copy.deepcopy(cold) is cold


def test_a_pickle_holds_the_default_vocabulary_by_reference():
    parser = EventParser()
    parser.feed_many(TOKENS[:4])
    pickled = pickle.dumps(parser)
    assert len(pickled) < 2000
    assert pickle.loads(pickled).feed_many(TOKENS[4:]) == parser.feed_many(TOKENS[4:])


@pytest.mark.parametrize("encode", [str, str.encode])
def test_a_marker_of_any_script_is_found_in_text_and_in_bytes(encode):
    vocabulary = Vocabulary.from_tiktoken(ENCODING, special_tokens={"‹｜stop｜›": 200020})
    given = encode("<|channel|>final<|message|>é‹｜stop｜›")
    start, delta, fault = EventParser(vocabulary=vocabulary).feed_text(given)
    assert (start.channel, delta.text, fault.error.token) == ("final", "é", 200020)


FORGERS = [
    (Author.new(Role.TOOL, "assistantassistant"), "another role"),
    (Author.new(Role.TOOL, "assistantfinal"), "another role"),
    (Author.new(Role.TOOL, "tool:x"), "another role"),
    (Author.new(Role.TOOL, "analysis"), "a channel"),
    (Author.new(Role.USER, ""), "is empty"),
]


@pytest.mark.parametrize(("author", "reason"), FORGERS)
def test_a_name_that_would_be_read_as_something_else_is_refused(author, reason):
    with pytest.raises(RenderError, match=reason):
        Renderer().render(Message.from_author_and_content(author, "x"))


GLUED = [
    "<|channel|>commentary to=functions.f<|constrain|>json<|message|>{}<|call|>",
    " to=functions.f<|constrain|>json<|message|>{}<|call|>",
    "<|constrain|>json<|channel|>final<|message|>{}<|return|>",
    " to=functions.f<|channel|>commentary<|constrain|>json<|message|>{}<|call|>",
]


@pytest.mark.parametrize("text", GLUED)
def test_a_glued_constrain_is_mended_and_nothing_is_cut_off(text):
    tokens = tokens_of(text)
    rendered = render_events(EventParser(strict=True).feed_many(tokens))
    assert parse(rendered, strict=True).messages == parse(tokens).messages


def test_headers_that_all_differ_are_remembered_in_bounds():
    pieces = [
        f"<|start|>assistant to=f.t{n}<|channel|>final<|message|>x<|end|>" for n in range(700)
    ]
    tokens = tokens_of("".join(pieces))
    for _ in range(2):
        parsed = parse(tokens, role=None, strict=True)
        assert [message.recipient for message in parsed.messages] == [f"f.t{n}" for n in range(700)]
    assert VOCABULARY.table(_cached_reader).cache_info().currsize <= 512
