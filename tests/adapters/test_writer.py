"""A writer's bytes are those of the stream's chunks, whatever is fed, and in whatever way."""

import sys

import attrs
import pytest
from clients import events_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import cut, examples, places, roles, streams, tokens_of

from harmony_stream.adapters import (
    AgUiStream,
    ChatCompletionStream,
    ClientStream,
    ResponseStream,
    UiMessageStream,
    Unlabelled,
    Usage,
    counted_ids,
    sse,
    writer,
)
from harmony_stream.parsing.parser import EventParser
from harmony_stream.values.events import ContentDelta

DONE = b"data: [DONE]\n\n"


def chat(hide_reasoning=False, reasoning_key="reasoning", **options):
    return ChatCompletionStream(
        'a "model"', reasoning_key=None if hide_reasoning else reasoning_key, **options
    )


PROTOCOLS = {
    "chat": (chat, sse.CHAT_COMPLETIONS),
    "responses": (lambda **options: ResponseStream("m", **options), sse.RESPONSES),
    "AG-UI": (lambda **options: AgUiStream("t\u2028", "r", **options), sse.AG_UI),
    "UI messages": (UiMessageStream, sse.UI_MESSAGES),
}
each_protocol = pytest.mark.parametrize(
    ("stream_of", "framing"), PROTOCOLS.values(), ids=list(PROTOCOLS)
)
without_choices = pytest.mark.parametrize(
    ("stream_of", "framing"), [*PROTOCOLS.values()][1:], ids=[*PROTOCOLS][1:]
)


def new(stream_of, **options):
    return stream_of(ids=counted_ids(), clock=lambda: 0.0, **options)


def joined(framing, chunks):
    return b"".join(map(framing.encode, chunks))


# -- The law --

_PIECES = [
    *("<|channel|>final<|message|>", "<|channel|>analysis<|message|>", "<|message|>", "<|end|>"),
    *("<|channel|>commentary to=functions.f <|constrain|>json<|message|>", "<|start|>assistant"),
    *('<|channel|>commentary to=functions.a"\u2028b<|message|>', "<|call|>", "<|return|>"),
    *("<|channel|>analysis to=python code<|message|>", "<|channel|>gossip<|message|>"),
    *("<|channel|>analysis to=browser.search<|message|>", "<|start|>functions.f to=assistant"),
    *("<|channel|>analysis to=container.exec<|message|>", "<|channel|>analysis we should"),
    *("<|start|>user<|message|>", "Look.", " {}", "\u2028🦆", '"', "\n\n"),
]
_ODD_TEXTS = [
    *('"', "\\", "\r\n", "\0", "\x7f", "\x85", "\u2028", "\u2029", "\ud83e", "\udd86", "🦆"),
    *(writer._TEXT, f'"{writer._TEXT}"', writer._NUMBER, "%d", "%b", "{}", "{0}", "x" * 40),
]


@st.composite
def turns(draw):
    """Events of any tokens in any grouping, some with odd texts, some missing."""
    pieces = st.lists(st.sampled_from(_PIECES), max_size=16).map("".join).map(tokens_of)
    parser, events = EventParser(draw(roles)), []
    for piece in cut(draw(pieces | streams), draw(places)):
        if draw(st.booleans()):
            events += parser.feed_many(piece)
        else:
            events += [event for token in piece for event in parser.feed(token)]
    if draw(st.booleans()):
        events += parser.close()
    texts = iter(draw(st.lists(st.none() | st.sampled_from(_ODD_TEXTS), max_size=9)))
    events = [with_text(event, texts) for event in events]
    missing = draw(st.sets(st.integers(0, 20), max_size=1))
    return [event for number, event in enumerate(events) if number not in missing]


def with_text(event, texts):
    text = next(texts, None) if isinstance(event, ContentDelta) else None
    return event if text is None else attrs.evolve(event, text=text)


entry = st.fixed_dictionaries(
    {"token": st.sampled_from(["a", "\u2028"]), "bytes": st.sampled_from([None, [97]])},
    optional={"top_logprobs": st.just([{"token": "b", "logprob": float("-inf")}])},
)
logprobs = st.none() | st.builds(
    lambda entry, number: [{**entry, "logprob": number}] * 60,
    entry,
    st.sampled_from([-0.5, float("-inf")]),
)
common_options = {
    "hide_reasoning": st.booleans(),
    "tools": st.sampled_from([(), ("f",), ("python", 'a"\u2028b')]),
    "show_problems": st.booleans(),
    "unlabelled": st.builds(
        Unlabelled, *[st.sampled_from(["content", "reasoning"]) for _ in range(2)]
    ),
}
chat_options = {
    "separator": st.sampled_from(["\n\n", "", " / \u2028"]),
    "reasoning_key": st.sampled_from(["reasoning", "reasoning_content", "both", None]),
}
fields = {"fields": st.sampled_from([None, {"note": 'x"\u2028\ud83e', "n": 0.5}])}
OPTIONS = {
    "chat": st.fixed_dictionaries(common_options | chat_options | fields),
    "responses": st.fixed_dictionaries(common_options | fields),
    "AG-UI": st.fixed_dictionaries(common_options),
    "UI messages": st.fixed_dictionaries(common_options),
}
usages = st.none() | st.just(Usage(3, 9))
reasons = st.sampled_from([None, "stop", "tool_calls", "length"])


def outcome(call, *arguments, **options):
    """What a call returns or raises."""
    try:
        return call(*arguments, **options)
    except ValueError as error:
        return str(error)


def state(value):
    """What a stream knows; equal for streams that go on alike."""
    if isinstance(value, dict):
        return {key: state(each) for key, each in value.items() if not callable(each)}
    return state(vars(value)) if isinstance(value, ClientStream) else value


class Pair:
    """A stream fed by a writer, and one like it whose chunks are encoded."""

    def __init__(self, protocol, options):
        make, self.framing = PROTOCOLS[protocol]
        self.told, other = [], []
        self.fast = new(make, on_problem=self.told.append, **options)
        self.slow = new(make, on_problem=other.append, **options)
        self.writer, self.other = self.framing.writer(self.fast), other

    def feed(self, event, by_hand, **options):
        if by_hand:
            found = outcome(lambda: joined(self.framing, self.fast.feed(event, **options)))
        else:
            found = outcome(self.writer.feed, event, **options)
        assert found == outcome(lambda: joined(self.framing, self.slow.feed(event, **options)))
        self.assert_alike()

    def end(self, name, *arguments):
        found = outcome(getattr(self.writer, name), *arguments)
        wanted = joined(self.framing, getattr(self.slow, name)(*arguments)) + self.framing.end()
        assert found == wanted
        self.assert_alike()
        assert self.writer.finish() == self.writer.fail("late") == b""

    def assert_alike(self):
        assert state(self.fast) == state(self.slow)
        assert self.told == self.other


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(st.data())
@examples(150)
def test_a_writer_writes_what_the_chunks_of_the_stream_are_encoded_to(protocol, data):
    pair = Pair(protocol, data.draw(OPTIONS[protocol]))
    # The stream itself may be fed in between.
    hands = data.draw(st.lists(st.booleans(), min_size=1, max_size=6))
    events, entries = data.draw(turns()), data.draw(logprobs)
    for number, event in enumerate(events):
        pair.feed(event, hands[number % len(hands)], logprobs=entries)
    if data.draw(st.booleans()):
        pair.end("finish", data.draw(reasons), data.draw(usages))
    else:
        pair.end("fail", "the engine\u2028died")
    for event in events[:3]:
        pair.feed(event, False)


@given(st.data())
@examples(150)
def test_it_does_so_for_each_choice(data):
    pair = Pair("chat", data.draw(OPTIONS["chat"]))
    left = [list(data.draw(turns())) for _ in range(3)]
    entries = data.draw(logprobs)
    for number in data.draw(st.lists(st.integers(0, 2), max_size=60)):
        if left[number]:
            event = left[number].pop(0)
            pair.feed(event, data.draw(st.booleans()), choice=number, logprobs=entries)
    for number in data.draw(st.lists(st.integers(0, 2), max_size=2)):
        reason = data.draw(reasons)
        found = pair.writer.finish(reason, choice=number)
        assert found == joined(pair.framing, pair.slow.finish(reason, choice=number))
        for event in left[number]:
            pair.feed(event, False, choice=number)
    pair.end("finish", data.draw(reasons), data.draw(usages))


# -- By hand --

THINK = "<|channel|>analysis<|message|>Hm, so it is.<|end|><|start|>assistant"
CALL = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>"
TURN = (
    f'{THINK}{CALL}{{"a": "b"}}<|call|><|start|>assistant{THINK}<|channel|>final<|message|>It is.'
)
ANSWER = "<|channel|>final<|message|>Four, I think.<|end|>"
CUT_OFF = {"finish": ("length", Usage(1, 2)), "fail": ("the engine died",)}


@each_protocol
@pytest.mark.parametrize("end", CUT_OFF)
def test_a_turn_is_written_as_its_chunks_are(end, stream_of, framing):
    writer, stream = framing.writer(new(stream_of)), new(stream_of)
    for event in events_of(TURN):
        assert writer.feed(event) == joined(framing, stream.feed(event))
    arguments = CUT_OFF[end]
    wanted = joined(framing, getattr(stream, end)(*arguments)) + framing.end()
    assert getattr(writer, end)(*arguments) == wanted
    assert writer.finish() == writer.fail("again") == b""


@each_protocol
def test_a_message_that_was_replaced_behind_the_writers_back_is_not_written_to(stream_of, framing):
    stream, other = new(stream_of), new(stream_of)
    writer = framing.writer(stream)
    events = events_of("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant" + ANSWER)
    for event in events:
        by_hand = not isinstance(event, ContentDelta)
        feed = (lambda event: joined(framing, stream.feed(event))) if by_hand else writer.feed
        assert feed(event) == joined(framing, other.feed(event))
    stream.finish()
    with pytest.raises(ValueError, match="the stream is finished"):
        writer.feed(events[1])


def test_a_text_that_a_chunk_has_twice_is_written_twice():
    writer = sse.CHAT_COMPLETIONS.writer(new(chat, reasoning_key="both"))
    start, first, second, *_ = events_of(THINK)
    writer.feed(start)
    for event in (first, second):
        found = writer.feed(event)
        delta = f'{{"reasoning":"{event.text}","reasoning_content":"{event.text}"}}'
        assert f'"delta":{delta}'.encode() in found


def test_every_text_of_a_message_is_one_chunk_that_is_made_once():
    made = []

    class Counting(AgUiStream):
        def _delta_chunk(self, text, logprobs=None):
            made.append(text)
            return super()._delta_chunk(text, logprobs)

    writer = sse.AG_UI.writer(Counting("t", "r"))
    texts = [event for event in events_of(TURN) if isinstance(event, ContentDelta)]
    written = [writer.feed(event) for event in events_of(TURN)]
    assert sum(b"_CONTENT" in frame or b"_ARGS" in frame for frame in written) == len(texts) > 12
    assert len(made) == 4


@each_protocol
def test_reasoning_that_is_hidden_is_counted_and_not_written(stream_of, framing):
    writer = framing.writer(new(stream_of, hide_reasoning=True))
    start, *thoughts, end = events_of("<|channel|>analysis<|message|>Hm, so it is.<|end|>")
    assert writer.feed(start)
    assert [writer.feed(event) for event in thoughts] == [b""] * 6
    writer.feed(end)
    finished = writer.finish("stop", Usage(1, 9))
    assert b'"reasoning_tokens":6' in finished or b'"reasoningTokens":6' in finished


@each_protocol
def test_what_the_stream_refuses_is_refused(stream_of, framing):
    writer = framing.writer(new(stream_of))
    start, text, *_ = events_of("<|channel|>final<|message|>Four.<|return|>")
    with pytest.raises(ValueError, match="without the start of its message"):
        writer.feed(text)
    with pytest.raises(ValueError, match="reason is 'why'"):
        writer.finish("why")
    writer.feed(start)
    writer.finish()
    with pytest.raises(ValueError, match="the stream is finished"):
        writer.feed(text)


@without_choices
def test_a_choice_that_a_protocol_does_not_have_is_refused(stream_of, framing):
    writer = framing.writer(new(stream_of))
    events = events_of("<|channel|>final<|message|>Four.<|return|>")
    sentence = "choice is 1, but this protocol has only choice 0; make a stream for each"
    for event in events:
        with pytest.raises(ValueError, match=sentence):
            writer.feed(event, choice=1)
        writer.feed(event, choice=0)
    with pytest.raises(ValueError, match=sentence):
        writer.finish(choice=1)
    assert writer.finish(choice=0)
    assert writer.finish() == framing.end()


def test_one_choice_ends_and_the_end_is_written_once_after_all_of_them():
    writer = sse.CHAT_COMPLETIONS.writer(new(chat))
    start, text, *_ = events_of("<|channel|>final<|message|>Four.<|return|>")
    for number in (0, 1):
        assert writer.feed(start, choice=number).count(b'"role"') == 1
        assert b"Four" in writer.feed(text, choice=number)
    for number in (1, 0):
        ended = writer.finish("length", choice=number)
        assert b'"finish_reason":"length"' in ended
        assert DONE not in ended
        assert writer.finish(choice=number) == b""
        with pytest.raises(ValueError, match="is finished"):
            writer.feed(text, choice=number)
    assert writer.finish() == DONE
    assert writer.finish() == writer.fail("late") == b""


def test_the_usage_comes_before_the_end():
    writer = sse.CHAT_COMPLETIONS.writer(new(chat))
    writer.finish("stop", choice=0)
    ended = writer.finish(usage=Usage(1, 2))
    assert ended.endswith(DONE)
    assert b'"completion_tokens":2' in ended


class Lines(ClientStream):
    """A stream of one's own."""

    def feed(self, event, *, logprobs=None):
        return [{"text": event.text}] if isinstance(event, ContentDelta) else []

    def finish(self, reason=None, usage=None):
        return [{"reason": reason}]

    def fail(self, message):
        return [{"error": message}]


def test_a_stream_of_ones_own_is_written_too():
    written = sse.AG_UI.writer(Lines())
    found = [written.feed(event) for event in events_of("<|channel|>final<|message|>Four.")]
    assert b"".join(found) == b'data: {"text":"Four"}\n\ndata: {"text":"."}\n\n'
    assert written.finish("stop") == b'data: {"reason":"stop"}\n\n'
    assert sse.AG_UI.writer(Lines()).fail("x") == b'data: {"error":"x"}\n\n'


OPEN = events_of("<|channel|>final<|message|>Four.")[:3]


@each_protocol
def test_an_open_message_adds_less_than_a_kilobyte(stream_of, framing):
    writer = framing.writer(stream_of())
    for event in OPEN:
        writer.feed(event)
    [template] = writer._templates.values()
    kept = [writer, writer._templates, template, template.parts, template.numbered, *template.parts]
    assert sum(map(sys.getsizeof, kept)) < 1000


@each_protocol
@pytest.mark.parametrize(
    "end",
    [
        lambda writer: writer.feed(events_of("<|channel|>final<|message|>Four.<|end|>")[3]),
        lambda writer: writer.finish(choice=0),
        lambda writer: writer.finish(),
        lambda writer: writer.fail("the engine died"),
    ],
)
def test_nothing_is_kept_of_a_message_that_has_ended(end, stream_of, framing):
    writer = framing.writer(stream_of())
    for event in OPEN:
        writer.feed(event)
    assert list(writer._templates) == [0]
    end(writer)
    assert not writer._templates


class Redacting(ChatCompletionStream):
    def feed(self, event, **options):
        chunks = super().feed(event, **options)
        for chunk in chunks:
            delta = chunk["choices"][0]["delta"]
            if delta.get("content"):
                delta["content"] = "***"
        return chunks


class Counting(AgUiStream):
    def feed(self, event, **options):
        return [{"type": "CUSTOM", "name": type(event).__name__}, *super().feed(event, **options)]


@pytest.mark.parametrize(
    ("make", "framing"),
    [
        (lambda: Redacting("m", ids=counted_ids(), clock=lambda: 5.0), sse.CHAT_COMPLETIONS),
        (lambda: Counting("t", "r", ids=counted_ids()), sse.AG_UI),
    ],
)
def test_what_a_subclass_makes_of_feed_is_written(make, framing):
    events = events_of("<|channel|>final<|message|>Four is it.<|return|>")
    stream, writer = make(), framing.writer(make())
    for event in events:
        assert writer.feed(event) == b"".join(map(framing.encode, stream.feed(event)))


@each_protocol
def test_a_delta_of_another_message_is_refused_by_the_writer_too(stream_of, framing):
    thoughts = events_of("<|channel|>analysis<|message|>SECRET<|end|>")
    answer = events_of("<|channel|>final<|message|>Four<|end|>")
    writer = framing.writer(stream_of())
    for event in (thoughts[0], answer[0], answer[1]):
        writer.feed(event)
    with pytest.raises(ValueError, match="belongs to another message than the one that is open"):
        writer.feed(thoughts[1])
    assert b"SECRET" not in writer.feed(answer[2]) + writer.finish("stop")


def test_log_probabilities_are_those_of_all_tokens_so_far():
    stream = ChatCompletionStream("m")
    writer = sse.CHAT_COMPLETIONS.writer(stream)
    start, *deltas = events_of("<|channel|>final<|message|>Four is it.")
    writer.feed(start)
    with pytest.raises(ValueError, match="logprobs has 1 entries, and a text ends with token 4"):
        writer.feed(deltas[0], logprobs=[{"token": "Four", "logprob": -0.1}])
    entries = [{"token": str(n), "logprob": -0.1} for n in range(4)]
    assert b'"token":"3"' in writer.feed(deltas[0], logprobs=entries)


def test_usage_is_refused_with_a_choice_since_it_would_not_be_sent():
    stream = ChatCompletionStream("m")
    with pytest.raises(ValueError, match=r"usage counts all choices: give it to the finish\(\)"):
        stream.finish("stop", Usage(1, 2), choice=0)
    assert stream.finish("stop", Usage(1, 2))[-1]["usage"]["total_tokens"] == 3


@each_protocol
def test_ids_may_look_like_places_to_fill(stream_of, framing):
    def ids(prefix):
        return f"{prefix}%d%b%%s"

    options = {"ids": ids, "clock": lambda: 0.0}
    stream, writer = stream_of(**options), framing.writer(stream_of(**options))
    for event in events_of("<|channel|>final<|message|>100 % of %d<|return|>"):
        assert writer.feed(event) == b"".join(map(framing.encode, stream.feed(event)))
