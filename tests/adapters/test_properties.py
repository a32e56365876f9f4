"""For any token ids in any grouping: a valid client stream, and all text where it belongs."""

from clients import (
    calls_of,
    events_of,
    read_ag_ui,
    read_chat,
    read_response,
    read_ui_messages,
    run,
    spoken,
    text_of,
)
from hypothesis import given
from hypothesis import strategies as st
from strategies import cut, examples, marked_pieces, places, roles, streams

from harmony_stream.adapters import (
    AgUiStream,
    ChatCompletionStream,
    ResponseStream,
    UiMessageStream,
    Unlabelled,
    Usage,
    counted_ids,
    join_chunks,
)
from harmony_stream.adapters.routing import Kind, route
from harmony_stream.messages import Role
from harmony_stream.parsing.events import ContentDelta, MessageStart
from harmony_stream.parsing.parser import EventParser

reasons = st.sampled_from([None, "stop", "tool_calls", "length"])
reasoning_keys = st.sampled_from(["reasoning", "reasoning_content", "both", None])
spots = st.sampled_from(["content", "reasoning"])


@st.composite
def turns(draw):
    """The events of any tokens in any grouping, to the end or cut off anywhere."""
    parser, events = EventParser(draw(roles)), []
    for piece in cut(draw(streams), draw(places)):
        if draw(st.booleans()):
            events += parser.feed_many(piece)
        else:
            events += [event for token in piece for event in parser.feed(token)]
    return [*events, *parser.close()] if draw(st.booleans()) else events


def fixed(**options):
    return {"ids": counted_ids(), "clock": lambda: 0.0, **options}


def visible(header):
    return header.is_visible


def reasoning(header):
    return header.is_reasoning


def calls_in(events, hidden=()):
    """Name and text of each call that the parser read."""
    calls = {}
    for event in events:
        if isinstance(event, MessageStart) and event.header.is_tool_call:
            calls[event.index] = [event.header.recipient, ""]
        elif isinstance(event, ContentDelta) and event.header.is_tool_call:
            calls[event.index][1] += event.text
    return [(name, text) for name, text in calls.values() if name not in hidden]


BUILT_IN = ("python", "browser.search", "browser.open", "browser.find")


def without_prefix(name):
    """What a client calls the tool."""
    return name.removeprefix("functions.") or name


@given(turns(), reasons, reasoning_keys)
@examples(200)
def test_a_chat_client_sees_exactly_the_visible_text_and_every_call(events, reason, key):
    chunks = run(ChatCompletionStream("m", reasoning_key=key, **fixed()), events, reason)
    [choice] = read_chat(chunks)["choices"]
    message = choice["message"]
    assert message["content"] == spoken(events, visible)
    for name in ("reasoning", "reasoning_content"):
        wanted = spoken(events, reasoning) if key in (name, "both") else ""
        assert message.get(name, "") == wanted
    wanted = [(without_prefix(name), text) for name, text in calls_in(events, BUILT_IN)]
    assert calls_of(message) == wanted
    assert choice["finish_reason"] != "tool_calls" or wanted


@given(turns(), spots, spots)
@examples(100)
def test_text_that_no_channel_labels_goes_where_it_is_sent_and_nowhere_else(
    events, without_channel, on_unknown_channel
):
    unlabelled = Unlabelled(without_channel, on_unknown_channel)
    problems = []
    stream = ChatCompletionStream("m", unlabelled=unlabelled, on_problem=problems.append, **fixed())
    message = read_chat(run(stream, events))["choices"][0]["message"]

    def shown(header):
        return route(header, (), unlabelled).kind is Kind.TEXT

    assert message["content"] == spoken(events, shown)
    assert message.get("reasoning", "") == spoken(
        events, lambda header: route(header, (), unlabelled).kind is Kind.REASONING
    )
    unlabelled_starts = [
        event
        for event in events
        if isinstance(event, MessageStart)
        and event.role is Role.ASSISTANT
        and event.recipient is None
        and not event.header.is_known_channel
    ]
    reported = [p for p in problems if p.kind in ("without_channel", "unknown_channel")]
    assert len(reported) == len(unlabelled_starts)


@given(turns(), reasons, st.booleans())
@examples(200)
def test_a_responses_client_sees_exactly_the_visible_text_and_every_call(events, reason, hides):
    stream = ResponseStream("m", hide_reasoning=hides, **fixed())
    output = read_response(run(stream, events, reason))["output"]
    texts = dict.fromkeys(("message", "reasoning"), "")
    for item in output:
        if item["type"] in texts:
            texts[item["type"]] += text_of(item)
    assert texts["message"] == spoken(events, visible)
    assert texts["reasoning"] == ("" if hides else spoken(events, reasoning))
    calls = [item for item in output if item["type"] not in texts]
    wanted = calls_in(events)
    assert len(calls) == len(wanted)
    for item, (name, text) in zip(calls, wanted, strict=True):
        if item["type"] != "web_search_call":
            assert text_of(item) == text
            assert name.endswith(item.get("name", "python"))


@given(turns(), reasons)
@examples(150)
def test_a_client_of_blocks_sees_exactly_the_visible_text_and_every_call(events, reason):
    chunks = run(AgUiStream("t", "r", **fixed()), events, reason)
    assert_blocks(read_ag_ui(chunks), events, "TEXT_MESSAGE", "REASONING_MESSAGE", "TOOL_CALL")
    chunks = run(UiMessageStream(**fixed()), events, reason)
    assert_blocks(read_ui_messages(chunks), events, "text", "reasoning", "tool-input")


def assert_blocks(blocks, events, text, thought, call):
    def joined(wanted):
        return "".join(content for kind, _, content in blocks if kind == wanted)

    assert joined(text) == spoken(events, visible)
    assert joined(thought) == spoken(events, reasoning)
    wanted = [(without_prefix(name), content) for name, content in calls_in(events)]
    assert [(name, content) for kind, name, content in blocks if kind == call] == wanted


@given(streams, places, st.integers(0, 9))
@examples(100)
def test_how_tokens_are_grouped_makes_no_difference_to_a_client(tokens, places, seed):
    parser, grouped = EventParser(), []
    for piece in cut(tokens, places):
        grouped += parser.feed_many(piece)
    grouped += parser.close()
    usage = Usage(seed, len(tokens))
    one, other = (
        run(ChatCompletionStream("m", **fixed(show_problems=True)), events, None, usage)
        for events in (events_of(tokens), grouped)
    )
    assert join_chunks(one) == join_chunks(other)
    one, other = (
        run(ResponseStream("m", **fixed(show_problems=True)), events, None, usage)[-1]["response"]
        for events in (events_of(tokens), grouped)
    )
    assert one == other


@given(st.lists(turns(), min_size=1, max_size=3), st.randoms(use_true_random=False))
@examples(50)
def test_choices_do_not_mix(turns, random):
    stream, chunks = ChatCompletionStream("m", **fixed()), []
    order = [choice for choice, events in enumerate(turns) for _ in events]
    random.shuffle(order)
    left = [iter(events) for events in turns]
    for choice in order:
        chunks += stream.feed(next(left[choice]), choice=choice)
    chunks += stream.finish(choice=len(turns) - 1)
    chunks += stream.finish()
    choices = read_chat(chunks)["choices"]
    contents = [choice["message"]["content"] for choice in choices]
    assert contents == [spoken(events, visible) for events in turns]


@given(marked_pieces, st.integers(1, 9))
@examples(50)
def test_marked_text_gives_valid_streams_too(pieces, size):
    parser, text, events = EventParser(), "".join(pieces), []
    for place in range(0, len(text), size):
        events += parser.feed_text(text[place : place + size])
    events += parser.close()
    message = read_chat(run(ChatCompletionStream("m", **fixed()), events))["choices"][0]["message"]
    assert message["content"] == spoken(events, visible)
    read_response(run(ResponseStream("m", **fixed()), events))
