"""For any token ids in any grouping: a valid client stream, and all text where it belongs."""

from contextlib import contextmanager

from clients import (
    BUILT_IN,
    as_text,
    calls_in,
    calls_of,
    events_of,
    read_ag_ui,
    read_chat,
    read_response,
    read_ui_messages,
    run,
    said,
    spoken,
    text_of,
    texts_of,
)
from hypothesis import given
from hypothesis import strategies as st
from strategies import cut, examples, marked_pieces, places, roles, streams, tokens_of

from harmony_stream.adapters import (
    AgUiStream,
    ChatCompletionStream,
    ResponseStream,
    UiMessageStream,
    Unlabelled,
    Usage,
    chat_completion,
    counted_ids,
    join_chunks,
    response,
)
from harmony_stream.adapters.conversations import (
    conversation_from_chat,
    conversation_from_responses,
)
from harmony_stream.adapters.routing import RouteKind, route
from harmony_stream.errors import RenderError
from harmony_stream.parsing.collect import MessageCollector
from harmony_stream.parsing.parser import EventParser
from harmony_stream.rendering.render import Renderer
from harmony_stream.values.events import Malformed, MessageStart
from harmony_stream.values.messages import Role

reasons = st.sampled_from([None, "stop", "tool_calls", "length"])
reasoning_keys = st.sampled_from(["reasoning", "reasoning_content", "both", None])
spots = st.sampled_from(["content", "reasoning"])

# What models write where clients, or the way back, used to stumble.
_HEADERS = [
    *("<|channel|>final", "<|channel|>commentary", "<|channel|>analysis", "<|channel|>finale"),
    *(
        "",
        " to=assistant<|channel|>final",
        " to=user<|channel|>final",
        "<|channel|>analysis to=all",
    ),
    *(
        f"<|channel|>{channel} to={recipient}{kind}"
        for channel in ("commentary", "analysis")
        for recipient in ("functions.f", "f", "functions.", "functions.functions.", ".", "python")
        for kind in ("", " <|constrain|>json", " code")
    ),
    *(
        "<|channel|>commentary to= functions.f json",
        "Look here<|channel|>commentary to=functions.f",
    ),
    *("<|channel|>commentary to=function.f", "<|channel|>commentary to=functions.fjson"),
    *("<|channel|>commentary to=functions.\ufffd", "<|channel|>commentary to=a+b.c.", " to=x..y"),
    *("Well <|channel|>analysis we should look", "<|channel|>gossip we should<|channel|>final"),
    *("<|channel|>commentary to=assistant we should", "<|channel|>final Here it is:"),
    *("<|channel|>analysis to=browser.find code", "<|channel|>analysis to=browser.open"),
    *("<|channel|>analysis to=browser.search", "<|channel|>analysis to=container.exec"),
]
_CONTENTS = [
    *("", " ", "\n", "{}", "{", "Four.", "So.", '{"a": NaN}'),
    *('{"cursor": "' + digits + '", "pattern": "p"}' for digits in ("7", "\u0663")),
    *('{"query": ["a"], "id": 1}', '{"query": "\\ud800"}', '{"id": "", "cursor": {}}'),
]
# Python reads neither so many digits nor so many brackets.
_LONG = ['{"cursor": "' + "9" * 4301 + '"}', "1" * 4301, "[" * 990 + "]" * 990]
_ENDS = ["<|end|>", "<|call|>", "<|return|>", "<|end|>Stray words.", "", "<|endoftext|>"]
_STARTS = ["<|start|>assistant", "<|start|>user", "<|start|>functions.f to=assistant", "<|start|>"]


def odd_streams(contents):
    message = st.tuples(
        st.sampled_from(_HEADERS),
        st.sampled_from(["<|message|>"] * 5 + [""]),
        st.sampled_from(contents),
        st.sampled_from(_ENDS),
        st.sampled_from(_STARTS[:1] * 4 + _STARTS),
    ).map("".join)
    return st.lists(message, max_size=5).map("".join).map(tokens_of)


@st.composite
def turns(draw):
    """The events of any tokens in any grouping, to the end or cut off anywhere."""
    parser, events = EventParser(draw(roles)), []
    for piece in cut(draw(streams | odd_streams(_CONTENTS)), draw(places)):
        if draw(st.booleans()):
            events += parser.feed_many(piece)
        else:
            events += [event for token in piece for event in parser.feed(token)]
    return [*events, *parser.close()] if draw(st.booleans()) else events


def whole_turns():
    """The events of tokens that are fed at once, so that they may be many."""
    return (streams | odd_streams(_CONTENTS + _LONG)).map(all_events)


def all_events(tokens):
    parser = EventParser()
    return [*parser.feed_many(tokens), *parser.close()]


def fixed(**options):
    return {"ids": counted_ids(), "clock": lambda: 0.0, **options}


def visible(header):
    return as_text(header).is_visible


def reasoning(header):
    return as_text(header).is_reasoning


def without_prefix(name):
    """What a client calls the tool."""
    return name.removeprefix("functions.")


@given(turns(), reasons, reasoning_keys, st.sampled_from(["\n\n", "", " / "]))
@examples(200)
def test_a_chat_client_sees_exactly_the_visible_text_and_every_call(events, reason, key, separator):
    stream = ChatCompletionStream("m", reasoning_key=key, separator=separator, **fixed())
    [choice] = read_chat(run(stream, events, reason))["choices"]
    message = choice["message"]
    assert message["content"] == separator.join(texts_of(events, visible))
    for name in ("reasoning", "reasoning_content"):
        wanted = texts_of(events, reasoning) if key in (name, "both") else []
        assert message.get(name, "") == separator.join(wanted)
    wanted = [(without_prefix(name), text) for name, text in calls_in(events, BUILT_IN, reason)]
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

    def goes_to(kind):
        return lambda header: route(header, (), unlabelled).kind is kind

    assert message["content"] == spoken(events, goes_to(RouteKind.TEXT), unlabelled=unlabelled)
    reasoning = spoken(events, goes_to(RouteKind.REASONING), unlabelled=unlabelled)
    assert message.get("reasoning", "") == reasoning
    reported = [p for p in problems if p.kind in ("without_channel", "unknown_channel")]
    assert len(reported) == len(unlabelled_in(events))


def unlabelled_in(events):
    """The messages of the answer to which no channel gives a meaning."""
    starts = [event.header for event in events if isinstance(event, MessageStart)]
    return [
        each
        for each in said(events)
        if any(each.header is header for header in starts)
        and each.header.role is Role.ASSISTANT
        and each.header.recipient in (None, "user")
        and not each.header.is_known_channel
        and (each.header.recipient is None or each.header.is_visible)
    ]


@given(turns(), reasons, st.booleans())
@examples(200)
def test_a_responses_client_sees_exactly_the_visible_text_and_every_call(events, reason, hides):
    stream = ResponseStream("m", hide_reasoning=hides, **fixed())
    output = read_response(run(stream, events, reason))["output"]
    texts = {"message": [], "reasoning": []}
    for item in output:
        if item["type"] in texts and text_of(item):
            texts[item["type"]].append(text_of(item))
    assert texts["message"] == texts_of(events, visible)
    assert texts["reasoning"] == ([] if hides else texts_of(events, reasoning))
    calls = [item for item in output if item["type"] not in texts]
    wanted = calls_in(events, (), reason)
    assert len(calls) == len(wanted)
    for item, (name, text) in zip(calls, wanted, strict=True):
        if item["type"] != "web_search_call":
            assert text_of(item) == text
            assert name.endswith(item.get("name", "python"))


@given(turns(), reasons)
@examples(150)
def test_a_client_of_blocks_sees_exactly_the_visible_text_and_every_call(events, reason):
    chunks = run(AgUiStream("t", "r", **fixed()), events, reason)
    names = ("TEXT_MESSAGE", "REASONING_MESSAGE", "TOOL_CALL")
    assert_blocks(read_ag_ui(chunks), events, reason, *names)
    chunks = run(UiMessageStream(**fixed()), events, reason)
    assert_blocks(read_ui_messages(chunks), events, reason, "text", "reasoning", "tool-input")


def assert_blocks(blocks, events, reason, text, thought, call):
    def of_kind(wanted):
        return [content for kind, _, content in blocks if kind == wanted and content]

    assert of_kind(text) == texts_of(events, visible)
    assert of_kind(thought) == texts_of(events, reasoning)
    calls = calls_in(events, (), reason)
    wanted = [(without_prefix(name), content) for name, content in calls]
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


# -- What comes back --

TOOL_SETS = st.sampled_from([(), ("f",), ("f", "g.h"), ("python", "all")])


def declared(tools):
    """The functions of a request, as both APIs take them."""
    return [{"type": "function", "name": name} for name in tools]


@given(turns() | whole_turns(), reasons, reasoning_keys, TOOL_SETS)
@examples(300)
def test_what_a_chat_client_was_given_it_can_send_back(events, reason, key, tools):
    options = {"reasoning_key": key, "tools": tools, "show_problems": True}
    whole = chat_completion(events, model="m", reason=reason, **options)
    streamed = read_chat(run(ChatCompletionStream("m", **options), events, reason))
    functions = [{"type": "function", "function": each} for each in declared(tools)]
    for completion in (whole, streamed):
        message = completion["choices"][0]["message"]
        assert_it_renders(
            conversation_from_chat([{"role": "user", "content": "q"}, message], tools=functions)
        )


@given(turns() | whole_turns(), reasons, st.booleans(), TOOL_SETS)
@examples(300)
def test_what_a_responses_client_was_given_it_can_send_back(events, reason, hides, tools):
    options = {"hide_reasoning": hides, "tools": tools, "show_problems": True}
    whole = response(events, model="m", reason=reason, **options)
    streamed = read_response(run(ResponseStream("m", **options), events, reason))
    for each in (whole, streamed):
        items = [{"role": "user", "content": "q"}, *each["output"]]
        assert_it_renders(conversation_from_responses(items, tools=declared(tools)))


def assert_it_renders(conversation):
    renderer = Renderer(profile="guide")
    # A name that just fits into a header without `functions.` does not fit with it.
    with suppress_only(RenderError, "is too long: a header may have 64 tokens"):
        assert renderer.render_conversation_for_completion(conversation, Role.ASSISTANT)


@contextmanager
def suppress_only(kind, words):
    try:
        yield
    except kind as error:
        if words not in str(error):
            raise


# -- Secrets --


@given(turns(), reasons)
@examples(200)
def test_a_client_that_may_not_see_reasoning_gets_no_word_of_it_with_problems(events, reason):
    options = {"unlabelled": Unlabelled("reasoning", "reasoning"), "show_problems": True}
    told = []
    streams = [
        ChatCompletionStream("m", reasoning_key=None, **fixed(on_problem=told.append, **options)),
        *(
            make(hide_reasoning=True, **fixed(**options))
            for make in (
                lambda **fields: ResponseStream("m", **fields),
                lambda **fields: AgUiStream("t", "r", **fields),
                UiMessageStream,
            )
        ),
    ]
    sentences = {"message": set(), "text": set()}
    for stream in streams:
        for problem in problems_in(run(stream, events, reason)):
            for key, values in sentences.items():
                values.add(problem[key])
    assert sentences["text"] <= {""}
    assert sentences["message"] == {
        f"{each.kind} at positions {each.start} to {each.stop}" for each in told
    } | {sentence for sentence in sentences["message"] if sentence.startswith("unanswered_result")}
    kept = events[: count_up_to_return(events)]
    lost = {event.text for event in kept if isinstance(event, Malformed)}
    assert lost <= {each.text for each in told} | {""}


def problems_in(value):
    """All problems anywhere in what a client was sent."""
    if isinstance(value, list):
        return [found for each in value for found in problems_in(each)]
    if not isinstance(value, dict):
        return []
    if {"kind", "message", "choice"} <= set(value):
        return [value]
    return problems_in(list(value.values()))


# -- The end of the answer --


@given(turns(), reasons)
@examples(200)
def test_an_answer_never_grows_by_what_was_sampled_after_it(events, reason):
    kept = events[: count_up_to_return(events)]
    problems = []
    makers = {
        "chat": lambda **fields: ChatCompletionStream("m", **fields),
        "responses": lambda **fields: ResponseStream("m", **fields),
        "AG-UI": lambda **fields: AgUiStream("t", "r", **fields),
        "UI messages": UiMessageStream,
    }
    for make in makers.values():
        problems.clear()
        all_chunks = run(make(**fixed(on_problem=problems.append)), events, reason)
        beyond = [each for each in problems if each.kind == "after_return"]
        wanted_reason = "stop" if len(kept) < len(events) else reason
        assert all_chunks == run(make(**fixed()), kept, wanted_reason)
        rest = events[len(kept) :]
        spans = [(rest[0].start, rest[-1].stop)] if rest else []
        assert [(each.start, each.stop) for each in beyond] == spans


@given(turns())
@examples(200)
def test_a_completion_keeps_what_was_sampled_after_the_answer_apart(events):
    whole, part = collected(events), collected(events[: count_up_to_return(events)])
    for name in ("final_text", "preamble", "visible_text", "reasoning", "tool_calls"):
        assert getattr(whole, name) == getattr(part, name)
    assert whole.messages == part.messages + whole.after_return
    assert part.after_return == ()


def collected(events):
    collector = MessageCollector()
    for event in events:
        collector.feed(event)
    return collector.completion()


def count_up_to_return(events):
    has_spoken = False
    for count, event in enumerate(events, 1):
        has_spoken |= isinstance(event, MessageStart) and event.role is Role.ASSISTANT
        if has_spoken and event.to_dict().get("end") in ("return", "end_of_text"):
            return count
    return len(events)
