"""What all four client streams do alike: from the first event to the end, and with faults."""

import asyncio
import json
import pickle

import attrs
import pytest
from clients import (
    calls_of,
    events_of,
    read_ag_ui,
    read_chat,
    read_response,
    read_ui_messages,
    run,
    text_of,
)
from strategies import tokens_of

from harmony_stream.adapters import (
    AgUiStream,
    ChatCompletionStream,
    ResponseStream,
    UiMessageStream,
    Unlabelled,
    Usage,
    base,
    counted_ids,
)
from harmony_stream.parsing.collect import parse
from harmony_stream.values.events import (
    ContentDelta,
    EndKind,
    HarmonyParseError,
    Malformed,
    MessageEnd,
    MessageStart,
)
from harmony_stream.values.faults import FaultKind
from harmony_stream.values.header import Header
from harmony_stream.values.messages import Role

THINK = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
PLAN = "<|channel|>commentary<|message|>Plan.<|end|><|start|>assistant"
CALL = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>"
ANSWER = "<|channel|>final<|message|>Four.<|return|>"


# -- One shape for what the four clients have --


@attrs.frozen
class Heard:
    """What a client has: its texts, its thoughts and its calls."""

    texts: list
    thoughts: list
    calls: list


def chat(chunks):
    message = read_chat(chunks)["choices"][0]["message"]
    texts = [text for text in message["content"].split("\n\n") if text]
    thoughts = [text for text in (message.get("reasoning") or "").split("\n\n") if text]
    return Heard(texts, thoughts, calls_of(message))


def responses(chunks):
    output = read_response(chunks)["output"]
    of_kind = lambda kind: [item for item in output if item["type"] == kind]  # noqa: E731
    calls = [(item["name"], item["arguments"]) for item in of_kind("function_call")]
    texts, thoughts = of_kind("message"), of_kind("reasoning")
    return Heard(list(map(text_of, texts)), list(map(text_of, thoughts)), calls)


def blocks(read, text, thought, call):
    def heard(chunks):
        found = read(chunks)
        calls = [(name, content) for kind, name, content in found if kind == call]
        texts, thoughts = (
            [content for kind, _, content in found if kind == wanted] for wanted in (text, thought)
        )
        return Heard(texts, thoughts, calls)

    return heard


STREAMS = {
    "chat": (
        lambda hides=False, **options: ChatCompletionStream(
            "m", reasoning_key=None if hides else "reasoning", **options
        ),
        chat,
    ),
    "responses": (
        lambda hides=False, **options: ResponseStream("m", hide_reasoning=hides, **options),
        responses,
    ),
    "AG-UI": (
        lambda hides=False, **options: AgUiStream("t", "r", hide_reasoning=hides, **options),
        blocks(read_ag_ui, "TEXT_MESSAGE", "REASONING_MESSAGE", "TOOL_CALL"),
    ),
    "UI messages": (
        lambda hides=False, **options: UiMessageStream(hide_reasoning=hides, **options),
        blocks(read_ui_messages, "text", "reasoning", "tool-input"),
    ),
}
each_kind = pytest.mark.parametrize(
    "stream_of", [each[0] for each in STREAMS.values()], ids=list(STREAMS)
)
each_stream = pytest.mark.parametrize(("stream_of", "heard"), STREAMS.values(), ids=list(STREAMS))


def heard_of(stream_of, heard, events, **options):
    """What a client has, and the kinds of the problems that the server was told."""
    problems = []
    stream = stream_of(ids=counted_ids(), on_problem=problems.append, **options)
    return heard(run(stream, events)), [problem.kind for problem in problems]


# -- A stream from its beginning to its end --

TURN = THINK + PLAN + ANSWER


@each_stream
def test_generators_give_what_feeding_and_finishing_give(stream_of, heard):
    usage, asked = Usage(1, 2), []

    def ending():
        asked.append("ending")
        return "length", usage

    async def slowly():
        for event in events_of(TURN):
            await asyncio.sleep(0)
            yield event

    async def collect(stream):
        return [chunk async for chunk in stream.aiterate(slowly(), ending)]

    def new():
        return stream_of(ids=counted_ids(), clock=lambda: 1)

    wanted = run(new(), events_of(TURN), "length", usage)
    assert list(new().iterate(events_of(TURN), ending)) == wanted
    assert asyncio.run(collect(new())) == wanted
    assert asked == ["ending", "ending"]
    assert heard(wanted).texts


@each_stream
def test_a_reader_that_goes_away_closes_the_source(stream_of, heard):
    closed = []

    async def engine():
        try:
            for event in events_of(TURN):
                yield event
        finally:
            closed.append(True)

    async def read_one():
        chunks = stream_of().aiterate(engine())
        await anext(chunks)
        await chunks.aclose()

    asyncio.run(read_one())
    assert closed == [True]


@each_stream
def test_after_its_end_a_stream_gives_nothing_and_takes_nothing(stream_of, heard):
    stream, events = stream_of(), events_of(TURN)
    assert heard(run(stream, events)).thoughts == ["Hm."]
    assert stream.finish() == stream.fail("too late") == []
    with pytest.raises(ValueError, match="is finished: make a new one for the next turn"):
        stream.feed(events[0])


@each_stream
@pytest.mark.parametrize("number", [1, -1])
def test_what_belongs_to_no_message_that_was_started_is_refused(number, stream_of, heard):
    event = events_of(ANSWER)[number]
    sentence = r"^\w+ \d:\d \(final channel\) comes without the start of its message$"
    with pytest.raises(ValueError, match=sentence):
        stream_of().feed(event)


@each_kind
@pytest.mark.parametrize("number", [1, 2])
def test_what_another_parser_emits_never_gets_into_an_open_message(number, stream_of):
    thoughts = events_of("<|channel|>analysis<|message|>SECRET<|end|>")
    start, *_ = events_of(ANSWER)
    stream = stream_of()
    stream.feed(thoughts[0])
    stream.feed(start)
    with pytest.raises(ValueError, match="belongs to another message than the one that is open"):
        stream.feed(thoughts[number])


@each_stream
def test_events_that_are_equal_but_not_the_same_belong_to_a_message(stream_of, heard):
    copies = [pickle.loads(pickle.dumps(event)) for event in events_of(ANSWER)]
    assert heard(run(stream_of(), copies)).texts == ["Four."]


@each_kind
@pytest.mark.parametrize("thing", [13225, "a", None, [], ()])
def test_what_is_no_event_is_refused(thing, stream_of):
    with pytest.raises(TypeError, match=f"a {type(thing).__name__} is not an event: call feed"):
        stream_of().feed(thing)


@each_kind
def test_an_end_with_wrong_arguments_ends_nothing(stream_of):
    stream = stream_of()
    for event in events_of(ANSWER):
        stream.feed(event)
    with pytest.raises(TypeError, match=r"usage is .*; give a Usage"):
        stream.finish("stop", {"prompt_tokens": 1})
    with pytest.raises(TypeError, match="message is RuntimeError"):
        stream.fail(RuntimeError("x"))
    assert "stop" in json.dumps(stream.finish("stop")) or stream.protocol != "Chat Completions"


@each_kind
@pytest.mark.parametrize("tools", ["get_weather", [{"name": "f"}], 5, [None]])
def test_tools_are_names(tools, stream_of):
    with pytest.raises(TypeError, match=r"^tools is .*; give the names of the functions"):
        stream_of(tools=tools).feed(events_of(ANSWER)[0])


@each_kind
def test_the_places_of_unlabelled_text_are_checked(stream_of):
    with pytest.raises(TypeError, match=r"unlabelled is 'reasoning'; give an Unlabelled"):
        stream_of(unlabelled="reasoning").feed(events_of(ANSWER)[0])
    with pytest.raises(ValueError, match="without_channel"):
        Unlabelled(without_channel="hidden")


@each_stream
def test_a_failure_is_told_and_ends_the_stream(stream_of, heard):
    stream = stream_of()
    fed = [chunk for event in events_of(ANSWER)[:2] for chunk in stream.feed(event)]
    failed = json.dumps(stream.fail("the engine died"))
    assert "the engine died" in failed
    assert "Four" in json.dumps(fed)
    assert stream.finish() == stream.fail("again") == []


@each_stream
def test_why_an_engine_stopped_must_be_known_before_anything_changes(stream_of, heard):
    stream = stream_of()
    chunks = [chunk for event in events_of(ANSWER) for chunk in stream.feed(event)]
    with pytest.raises(ValueError, match="reason is 'content_filter', expected one of"):
        stream.finish("content_filter")
    assert heard(chunks + stream.finish("stop")).texts == ["Four."]


# the tokens, the calls that a client has, and the kinds of the problems
CALLS = [
    (CALL + "1<|call|>", [("f", "1")], []),
    (CALL + "<|call|>", [("f", "{}")], ["arguments_not_json"]),
    (CALL + "ls<|call|>", [("f", "ls")], ["arguments_not_json"]),
    (CALL + "1", [("f", "1")], ["incomplete_call"]),
    (CALL + "1<|start|>assistant" + ANSWER, [("f", "1")], ["missing_end", "incomplete_call"]),
]


@each_stream
@pytest.mark.parametrize(("text", "calls", "reported"), CALLS)
def test_a_call_is_told_with_whatever_is_wrong_with_it(text, calls, reported, stream_of, heard):
    found, problems = heard_of(stream_of, heard, events_of(text))
    assert (found.calls, problems) == (calls, reported)


def test_a_call_that_a_protocol_has_no_place_for_is_hidden_and_reported():
    stream_of, heard = STREAMS["chat"]
    text = "<|channel|>analysis to=browser.search<|message|>{}<|call|>"
    found, problems = heard_of(stream_of, heard, events_of(text))
    assert (found.calls, problems) == ([], ["hidden_call"])


# -- For writers: test_writer.py compares all of their bytes --


@each_stream
def test_a_writer_makes_one_chunk_for_all_texts_of_a_message(stream_of, heard):
    stream, alike = (stream_of(ids=counted_ids(), clock=lambda: 1) for _ in range(2))
    start, text, *_ = events_of(ANSWER)
    assert stream._feed_choice(0, start, None) == alike.feed(start)
    turn = stream._turn(0)
    assert turn._delta_chunk("Four") == turn._delta_chunk("Four")
    assert [turn._delta_chunk("Four")] == alike.feed(text)
    assert stream._turn(1) is None
    assert stream._finish_choice(0, "stop", None)


@pytest.mark.parametrize("stream_of", [STREAMS[name][0] for name in [*STREAMS][1:]])
def test_a_protocol_without_choices_has_only_the_first(stream_of):
    sentence = "choice is 2, but this protocol has only choice 0; make a stream for each"
    with pytest.raises(ValueError, match=sentence):
        stream_of()._feed_choice(2, events_of(ANSWER)[0], None)
    with pytest.raises(ValueError, match=sentence):
        stream_of()._finish_choice(2, None, None)


def test_a_stream_of_ones_own_needs_no_more_than_three_methods():
    class Silent(base.ClientStream):
        def feed(self, event, *, logprobs=None):
            return [{}]

        def finish(self, reason=None, usage=None):
            return []

        def fail(self, message):
            return []

    stream = Silent()
    assert stream._turn(0) is None
    assert stream._feed_choice(0, events_of(ANSWER)[0], None) == [{}]
    assert stream._finish_choice(0, None, None) == stream.fail("") == []


def test_a_completion_has_the_events_of_its_turn():
    completion = parse(tokens_of(TURN))
    assert base.events_of(completion) == completion.events
    events = events_of(TURN)
    assert base.events_of(events) is events


@pytest.mark.parametrize(
    ("number", "written"), [(-0.5, -0.5), (float("-inf"), -9999.0), (float("nan"), -9999.0)]
)
def test_log_probabilities_are_numbers_that_json_has(number, written):
    entry = {"token": "a", "logprob": number, "bytes": [97]}
    found = base.finite({**entry, "top_logprobs": [entry]})
    assert found == {**entry, "logprob": written, "top_logprobs": [{**entry, "logprob": written}]}
    assert base.finite({**entry, "top_logprobs": []})["top_logprobs"] == []


# -- Words outside of messages --


def fault(kind, text="", start=0, stop=1, written=""):
    error = HarmonyParseError(kind, start, None, "word", "ROLE", written, ("<|message|>",))
    return Malformed(error, text, start, stop)


def message(header, text, start=4, end=EndKind.END, words=""):
    """A message, and before it the fault of the words in its header."""
    deltas = [ContentDelta(header, 0, text, start + 3, start + 4)] if text else []
    stop = start + 4
    faults = [fault(UNPARSED, words, start + 1, start + 2)] if words else []
    return [
        *faults,
        MessageStart(header, 0, start, start + 3),
        *deltas,
        MessageEnd(header, 0, end, True, stop, stop + 1),
    ]


ASKED = Header(Role.USER)
ANSWERED = Header(Role.ASSISTANT, None, "final")
RETURNED = Header(Role.TOOL, "functions.f", "commentary", "assistant")
UNPARSED, UNKNOWN = FaultKind.UNPARSED_HEADER_TEXT, FaultKind.UNKNOWN_ROLE
EXPECTED = FaultKind.EXPECTED_START

# events, the texts that a client has
WORDS = [
    (message(ANSWERED, "Yes.", words="Let me look."), ["Let me look.", "Yes."]),
    ([fault(UNPARSED, "Let me look."), *message(ANSWERED, "Yes.")], ["Let me look.", "Yes."]),
    ([fault(UNKNOWN, "Sure."), *message(ANSWERED, "Yes.")], ["Sure.", "Yes."]),
    ([fault(EXPECTED, "Sure."), *message(ANSWERED, "Yes.")], ["Sure.", "Yes."]),
    ([*message(ANSWERED, "Yes."), fault(EXPECTED, "So.", 9, 10)], ["Yes.", "So."]),
    ([fault(UNPARSED, "Sure."), fault(FaultKind.EMPTY_CHANNEL), *message(ANSWERED, "Yes.")],
     ["Sure.", "Yes."]),
    ([fault(EXPECTED, "Sure."), *message(ANSWERED, "Yes.", words="Now")], ["Sure.", "Now", "Yes."]),
    ([fault(UNPARSED, "Sure.")], ["Sure."]),
    # Words between messages may be the answer; those in a header of another's message are not.
    ([*message(ASKED, "2?"), fault(EXPECTED, "Two.", 9, 10), *message(ASKED, "3?", 11)], ["Two."]),
    ([fault(EXPECTED, "Two."), *message(ASKED, "3?", 4, words="I ask.")], ["Two."]),
    ([*message(ASKED, "2 + 2?", words="I ask."), *message(ANSWERED, "4", 9)], ["4"]),
    ([*message(RETURNED, "9", words="result"), *message(ANSWERED, "4", 9)], ["4"]),
    # Fields of headers are no text.
    ([fault(FaultKind.UNEXPECTED_START, "assistant to=f"), *message(ANSWERED, "Yes.")], ["Yes."]),
    ([fault(FaultKind.MISSING_MESSAGE, "final"), *message(ANSWERED, "Yes.")], ["Yes."]),
    ([*message(ANSWERED, "Yes."), fault(FaultKind.TRUNCATED_IN_HEADER, "fin", 9, 10)], ["Yes."]),
]  # fmt: skip


@each_stream
@pytest.mark.parametrize(("events", "texts"), WORDS)
def test_words_that_belong_to_no_message_are_text_like_any_other(events, texts, stream_of, heard):
    found, reported = heard_of(stream_of, heard, events)
    assert (found.texts, found.thoughts) == (texts, [])
    faults = [event.error.kind for event in events if isinstance(event, Malformed)]
    assert [kind for kind in reported if kind != "unanswered_result"] == faults


@each_stream
def test_they_go_where_text_without_a_channel_goes(stream_of, heard):
    events = [fault(UNPARSED, "Let me look."), *message(ANSWERED, "Yes.")]
    options = {"unlabelled": Unlabelled(without_channel="reasoning")}
    found, _ = heard_of(stream_of, heard, events, **options)
    assert found == Heard(["Yes."], ["Let me look."], [])
    hidden, reported = heard_of(stream_of, heard, events, hides=True, **options)
    assert hidden == Heard(["Yes."], [], [])
    assert reported == ["unparsed_header_text"]


# What of a header goes where: tokens, texts, thoughts.
WHERE = [
    ("Let me look.<|channel|>analysis<|message|>Hm.<|end|>", ["Let me look."], ["Hm."]),
    ("<|channel|>analysis we should look<|message|>Hm.<|end|>", [], ["we should look", "Hm."]),
    ("Well <|channel|>analysis we should look<|message|>Hm.<|end|>", [],
     ["Well we should look", "Hm."]),
    ("<|channel|>analysis we should look<|channel|>final<|message|>Four.<|end|>", ["Four."],
     ["we should look"]),
    ("<|channel|>gossip we should look<|message|>Hm.<|end|>", [], ["we should look", "Hm."]),
    ("<|channel|>analysis I should to=functions.f ask<|message|>Hm.<|end|>", [],
     ["I should ask"]),
    ("<|channel|>commentary to=assistant we should<|message|>Hm.<|end|>", [],
     ["we should", "Hm."]),
    ("<|channel|>final Here it is:<|message|>Four.<|end|>", ["Here it is:", "Four."], []),
    ("<|channel|>commentary Let me see<|message|>Hm.<|end|>", ["Let me see", "Hm."], []),
]  # fmt: skip


@each_stream
@pytest.mark.parametrize(("text", "texts", "thoughts"), WHERE)
def test_words_behind_the_name_of_a_hidden_channel_are_hidden(
    text, texts, thoughts, stream_of, heard
):
    events = events_of(text)
    found, _ = heard_of(stream_of, heard, events)
    assert (found.texts, found.thoughts) == (texts, thoughts)
    hidden, _ = heard_of(stream_of, heard, events, hides=True)
    assert (hidden.texts, hidden.thoughts) == (texts, [])


@each_stream
def test_a_message_that_was_left_open_ends_before_them(stream_of, heard):
    start, delta, _ = message(ANSWERED, "Four.")
    events = [start, delta, fault(EXPECTED, "Five.", 9, 10)]
    found, _ = heard_of(stream_of, heard, events)
    assert found.texts == ["Four.", "Five."]
    last = str(run(stream_of(), events)[-1])
    assert "cancelled" not in last and "length" not in last and "incomplete'" not in last  # noqa: PT018


def test_they_are_counted_as_reasoning_if_they_go_there():
    unlabelled = Unlabelled(without_channel="reasoning")
    chunks = run(
        ChatCompletionStream("m", unlabelled=unlabelled),
        [fault(EXPECTED, "Let me look.", 0, 3), *message(ANSWERED, "Yes.")],
        usage=Usage(1, 9),
    )
    assert chunks[-1]["usage"]["completion_tokens_details"] == {"reasoning_tokens": 3}


def test_they_have_their_log_probabilities():
    entries = [{"token": str(n), "logprob": -0.5} for n in range(9)]
    events = [fault(UNPARSED, "Let me look.", 1, 3), *message(ANSWERED, "Yes.", 2)]
    chunks = run(ChatCompletionStream("m"), events, logprobs=entries)
    found = [
        chunk["choices"][0]["logprobs"]["content"]
        for chunk in chunks
        if "logprobs" in chunk["choices"][0]
    ]
    assert found == [entries[1:3], entries[5:6]]


# -- Recipients that a space broke --

HAIL = Header(Role.ASSISTANT, None, "commentary", None, "json")
WRITTEN = "<|channel|>commentary to= functions.hail json"
BROKEN = [
    [fault(UNPARSED, "functions.hail", 2, 3, WRITTEN), *message(HAIL, "{}", 0)],
    [fault(EXPECTED, "functions.hail", 2, 3, WRITTEN), *message(HAIL, "{}", 0)],
    message(attrs.evolve(HAIL, content_type="functions.hail"), "{}"),
    message(attrs.evolve(HAIL, recipient="functions.", content_type="hail"), "{}"),
]


@each_stream
@pytest.mark.parametrize("events", BROKEN)
def test_a_call_whose_recipient_a_space_broke_is_made_if_it_is_declared(events, stream_of, heard):
    found, reported = heard_of(stream_of, heard, events, tools=["hail"])
    assert found == Heard([], [], [("hail", "{}")])
    assert reported[-1] == "resolved_name"
    undeclared, reported = heard_of(stream_of, heard, events, tools=["other"])
    assert undeclared.calls == []
    assert "".join(undeclared.texts).endswith("{}")
    assert "resolved_name" not in reported


SAMPLED = [
    "<|channel|>commentary to= functions.hail<|message|>",
    "<|channel|>commentary to= functions.hail <|constrain|>json<|message|>",
    "<|channel|>commentary to= functions.hail json<|message|>",
    "<|channel|>commentary to= hail json<|message|>",
    '<|channel|>commentary to="functions.hail"<|message|>',
    "<|channel|>commentary to=`functions.hail` <|constrain|>json<|message|>",
    "<|channel|>commentary to==functions.hail<|message|>",
    "<|channel|>commentary to: functions.hail json<|message|>",
    "<|channel|>commentary TO=functions.hail<|message|>",
    "<|channel|>commentary to=functions hail<|message|>",
    "<|channel|>commentary to= hail<|message|>",
    "<|channel|>commentary to= hail <|constrain|>json<|message|>",
    " to= hail<|channel|>commentary<|message|>",
    "<|channel|>commentary to =functions.hail<|message|>",
    "<|channel|>commentary to = functions.hail code<|message|>",
    "<|channel|>commentary to=functions. hail<|message|>",
    "<|channel|>commentary to=functions .hail<|message|>",
    " to= functions.hail<|channel|>commentary json<|message|>",
    "<|end|> to= functions.hail<|channel|>commentary json<|message|>",
    "<|channel|>analysis to= functions.functions.hailjson code<|message|>",
]


@each_stream
@pytest.mark.parametrize("header", SAMPLED)
def test_a_recipient_that_a_space_broke_is_read_from_tokens(header, stream_of, heard):
    events = events_of(f"{header}{{}}<|call|>")
    found, reported = heard_of(stream_of, heard, events, tools=["hail", "other"])
    assert found == Heard([], [], [("hail", "{}")])
    assert [kind for kind in reported if kind not in {*FaultKind}] == ["resolved_name"]


def test_a_resolved_name_is_reported_with_both_names():
    problems = []
    stream = ChatCompletionStream("m", tools=["shell"], on_problem=problems.append)
    run(stream, events_of("<|channel|>commentary to=functions.shelljson<|message|>{}<|call|>"))
    [problem] = problems
    assert problem.message == (
        "the recipient 'functions.shelljson', at positions 0 to 9, is resolved to the declared "
        "'shell'"
    )


# -- What a client that may not see reasoning is told of problems --

SECRET = [
    fault(UNPARSED, "the secret plan", written="<|channel|>commentary the secret plan"),
    fault(FaultKind.MISSING_MESSAGE, "", 3, 4, "<|channel|>analysis the secret plan"),
    *message(Header(Role.ASSISTANT, None, "the_secret_channel"), "Hm."),
]


@each_stream
def test_problems_quote_nothing_to_a_client_that_may_not_see_reasoning(stream_of, heard):
    shown = run(stream_of(show_problems=True), SECRET)
    assert "secret" in str(shown)
    problems = []
    options = {"unlabelled": Unlabelled(without_channel="reasoning"), "show_problems": True}
    chunks = run(stream_of(hides=True, on_problem=problems.append, **options), SECRET)
    assert "secret" not in str(chunks)
    assert "unparsed_header_text at positions 0 to 1" in str(chunks)
    assert [each for each in problems if "secret" not in each.message] == []
    assert "unparsed_header_text" in [problem.kind for problem in problems]


# -- After the answer --


@each_stream
def test_what_follows_return_is_reported_once_with_its_span(stream_of, heard):
    text = f"{ANSWER}<|start|>user<|message|>And?<|end|>Stray.<|start|>assistant{CALL}1"
    for end in (lambda stream: stream.finish("length"), lambda stream: stream.fail("broken")):
        problems = []
        stream = stream_of(ids=counted_ids(), on_problem=problems.append, show_problems=True)
        events = events_of(text)
        chunks = [chunk for event in events for chunk in stream.feed(event)] + end(stream)
        assert [problem.kind for problem in problems] == ["after_return"]
        assert (problems[0].start, problems[0].stop) == (6, events[-1].stop)
        assert "after_return" in str(chunks)
        for word in ("And", "Stray", "TOOL_CALL", "tool-input", "function_call", "'tool_calls': ["):
            assert word not in str(chunks)


@each_stream
def test_words_outside_of_messages_do_not_make_a_prompts_end_the_end(stream_of, heard):
    text = "<|end|>Stray.<|start|>user<|message|>2 + 2?<|return|><|start|>assistant" + ANSWER
    found, reported = heard_of(stream_of, heard, events_of(text))
    assert (found.texts, reported) == (["Stray.", "Four."], ["expected_start"])


@each_stream
def test_a_calls_end_does_not_end_the_turn(stream_of, heard):
    text = (
        f"{CALL}1<|call|><|start|>functions.f to=assistant<|channel|>commentary<|message|>9<|end|>"
    )
    found, _ = heard_of(stream_of, heard, events_of(f"{text}<|start|>assistant{ANSWER}"))
    assert found == Heard(["Four."], [], [("f", "1")])


# -- Cost --


@each_stream
def test_a_stream_has_so_few_attributes_that_python_reads_them_fast(stream_of, heard):
    stream = stream_of()
    run(stream, events_of(ANSWER))
    objects = [stream, *getattr(stream, "_choices", {}).values()]
    assert max(len(vars(each)) for each in objects) <= 30


# -- The separator of Chat Completions --


def deltas_of(text, **options):
    chunks = run(ChatCompletionStream("m", **options), events_of(text))
    return [chunk["choices"][0]["delta"] for chunk in chunks][1:-1]


def test_the_separator_comes_with_the_first_text_of_the_next_message():
    text = f"{PLAN}<|channel|>final<|message|><|end|><|start|>assistant{THINK}{ANSWER}"
    assert deltas_of(text) == [
        {"content": "Plan"},
        {"content": "."},
        {"reasoning": "Hm"},
        {"reasoning": "."},
        {"content": "\n\nFour"},
        {"content": "."},
    ]


def test_thoughts_are_apart_under_each_key_and_nowhere_if_they_are_hidden():
    both = deltas_of(THINK + THINK + ANSWER, reasoning_key="both")
    keys = ("reasoning", "reasoning_content")
    assert both[2] == dict.fromkeys(keys, "\n\nHm")
    hidden = deltas_of(THINK + THINK + ANSWER, reasoning_key=None)
    assert hidden == [{"content": "Four"}, {"content": "."}]


def test_the_separator_has_no_tokens():
    events = events_of(PLAN + ANSWER)
    entries = [{"token": str(n), "logprob": -0.5} for n in range(20)]
    chunks = run(ChatCompletionStream("m"), events, logprobs=entries)
    found = [
        (choice["delta"]["content"], len(choice["logprobs"]["content"]))
        for choice in (chunk["choices"][0] for chunk in chunks)
        if "logprobs" in choice
    ]
    assert found == [("Plan", 1), (".", 1), ("\n\nFour", 1), (".", 1)]


def test_each_choice_has_separators_of_its_own():
    stream = ChatCompletionStream("m", separator=" | ")
    chunks = []
    for choice in (0, 1):
        for event in events_of((PLAN if choice else "") + ANSWER):
            chunks += stream.feed(event, choice=choice)
    choices = read_chat(chunks + stream.finish())["choices"]
    assert [choice["message"]["content"] for choice in choices] == ["Four.", "Plan. | Four."]


def test_log_probabilities_that_are_missing_are_refused():
    start, delta, *_ = events_of(ANSWER)
    stream = ChatCompletionStream("m")
    stream.feed(start)
    with pytest.raises(ValueError, match="logprobs has 0 entries, and a text ends with token 4"):
        stream.feed(delta, logprobs=[])
