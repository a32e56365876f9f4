"""A conversation in the very tokens that were prompted and sampled."""

import contextlib
import functools
import itertools
import json
import os
import re
import struct
import tempfile
import zlib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import (
    SPECIAL,
    UNKNOWN,
    VOCABULARY,
    cut,
    examples,
    places,
    streams,
    tokens_of,
)

from harmony_stream.errors import RenderError
from harmony_stream.history import (
    DropReason,
    HistoryPolicy,
    LastTurns,
    OnTruncated,
    TruncatedMessageError,
    normalize_history,
)
from harmony_stream.history.files import TranscriptWarning
from harmony_stream.history.transcript import ChannelUsage, OnMalformed, TrainingView, Transcript
from harmony_stream.parsing.collect import parse
from harmony_stream.parsing.parser import EventParser
from harmony_stream.rendering.render import Renderer
from harmony_stream.values.events import join_deltas
from harmony_stream.values.messages import Message
from harmony_stream.vocabulary import Vocabulary

START, END, RETURN, CALL = (SPECIAL[f"<|{word}|>"] for word in ("start", "end", "return", "call"))
END_OF_TEXT = SPECIAL["<|endoftext|>"]
RENDERER = Renderer(profile="guide")
QUESTION = "<|start|>user<|message|>2 + 2?<|end|>"
THOUGHT = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
ANSWER = "<|channel|>final<|message|>Four.<|return|>"
CALLING = "<|channel|>analysis to=python code<|message|>2+2<|call|>"
RESULT = "<|start|>python to=assistant<|channel|>analysis<|message|>4<|end|>"
OPENED = "<|start|>assistant"


def new(**options):
    return Transcript(RENDERER, **options)


def user(text="2 + 2?"):
    return Message.from_role_and_content("user", text)


def text_of(tokens):
    return VOCABULARY.decode(tokens)


def texts_of(transcript):
    return [message.content[0].text for message in transcript.messages]


def with_ends(tokens):
    return [END if token in (RETURN, END_OF_TEXT) else token for token in tokens]


def common(left, right):
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))
    return len(list(pairs))


# --- Sessions ------------------------------------------------------------------------------------


def test_what_was_sampled_stands_between_what_was_prompted():
    transcript = new()
    transcript.add_messages([user()])
    assert text_of(transcript.prompt()) == QUESTION + OPENED
    transcript.add_sampled(tokens_of(THOUGHT + CALLING))
    transcript.add_tool_result("python", "4")
    assert text_of(transcript.prompt()) == QUESTION + OPENED + THOUGHT + CALLING + RESULT + OPENED
    transcript.add_sampled(tokens_of(THOUGHT + ANSWER))
    transcript.add_messages([user("Why?")])

    answered = OPENED + ANSWER.replace("return", "end")
    assert text_of(transcript.prompt()) == (
        QUESTION + OPENED + CALLING + RESULT + answered + QUESTION.replace("2 + 2", "Why") + OPENED
    )
    assert [(each.index, each.reason) for each in transcript.dropped] == [
        (1, DropReason.FINISHED_TURN),
        (4, DropReason.FINISHED_TURN),
    ]
    assert [each.message for each in transcript.dropped] == [transcript.messages[1]] * 2


def test_tokens_that_are_not_canonical_stay_as_they_are():
    spelled = [*tokens_of("<|channel|>final<|message|>"), *b"Four", RETURN]
    transcript = new()

    transcript.add_sampled(spelled)

    assert transcript.prompt() == [*tokens_of(OPENED), *with_ends(spelled), *tokens_of(OPENED)]
    assert texts_of(transcript) == [VOCABULARY.decode(list(b"Four"))]


def test_what_was_prompted_may_end_in_a_header_or_in_content():
    for opened in (
        "<|start|>",
        OPENED,
        OPENED + "<|channel|>",
        OPENED + "<|channel|>final<|message|>Fo",
    ):
        transcript = new()
        transcript.add_tokens(tokens_of(QUESTION))
        for token in tokens_of(opened):
            transcript.add_tokens([token])
        assert text_of(transcript.prompt("user")) == QUESTION + opened

        rest = (OPENED + ANSWER).replace("Four", "Fo ur").removeprefix(opened)
        transcript.add_sampled(tokens_of(rest))

        assert texts_of(transcript) == ["2 + 2?", "Fo ur."]
        assert text_of(transcript.prompt("tool")) == (
            QUESTION + opened + rest.replace("return", "end") + "<|start|>tool"
        )


def test_messages_do_not_go_into_the_middle_of_another():
    transcript = new()
    transcript.add_tokens(tokens_of(OPENED))

    with pytest.raises(ValueError, match="the prompt ends inside a message"):
        transcript.add_messages([user()])


def test_the_role_that_was_asked_for_is_the_one_that_is_sampled():
    transcript = new()
    transcript.prompt("user")
    transcript.add_sampled(tokens_of("<|message|>Hello<|end|>"))
    transcript.prompt("user")
    transcript.add_messages([user()])
    transcript.add_sampled(tokens_of(ANSWER))

    assert [message.author.role.value for message in transcript.messages] == [
        "user", "user", "assistant",
    ]  # fmt: skip


def test_results_go_where_the_tool_was_called_last():
    transcript = new()
    for channel in ("commentary", "analysis"):
        transcript.add_sampled(
            tokens_of(f"<|channel|>{channel} to=functions.f<|message|>{{}}<|call|>")
        )
    transcript.add_tool_result("functions.f", "1")

    assert [message.channel for message in transcript.messages[2:]] == ["analysis"]


# --- Whose a result is ---------------------------------------------------------------------------


def calling(*recipients, **options):
    """A transcript in which these tools were called, and wait."""
    transcript = new(**options)
    transcript.add_messages([user()])
    for recipient in recipients:
        head = "" if transcript.messages[-1].recipient is None else OPENED
        text = f"{head}<|channel|>commentary to={recipient} json<|message|>{{}}<|call|>"
        transcript.feed_many(tokens_of(text))
    return transcript


def result(name, text="4.2 m"):
    message = Message.from_author_and_content({"role": "tool", "name": name}, text)
    return message.with_channel("commentary").with_recipient("assistant")


# What was called, the name that is given, and the call that it answers.
RESOLVED = [
    (["functions.tide"], "functions.tide", "functions.tide"),
    (["functions.tide"], "tide", "functions.tide"),
    (["functions.tide"], "function.tide", "functions.tide"),
    (["functions.tide"], "functions.functions.tide", "functions.tide"),
    (["functions.functions.tide"], "tide", "functions.functions.tide"),
    (["functions.functions.tide"], "functions.tide", "functions.functions.tide"),
    (["function.tide"], "functions.tide", "function.tide"),
    (["tide"], "functions.tide", "tide"),
    (["tide", "functions.tide"], "tide", "tide"),
    (["tide", "functions.tide"], "functions.tide", "functions.tide"),
    (["browser.search"], "search", "browser.search"),
    (["browser.search"], "functions.browser.search", "browser.search"),
    (["functions.browser.search"], "browser.search", "functions.browser.search"),
    (["functions.tide", "functions.hail"], "hail", "functions.hail"),
    (["functions.search", "browser.search"], "browser.search", "browser.search"),
    (["python"], "python", "python"),
    (["functions.functions"], "functions", "functions.functions"),
]


@pytest.mark.parametrize(("called", "given", "answered"), RESOLVED)
def test_a_result_is_written_with_the_name_that_was_called(called, given, answered):
    transcript = calling(*called)
    transcript.add_tool_result(given, "4.2 m")

    assert transcript.messages[-1] == result(answered)
    expected = f"<|start|>{answered} to=assistant<|channel|>commentary<|message|>4.2 m<|end|>"
    assert text_of(transcript.prompt()).endswith(expected + OPENED)


# What was called, the name that is given, and the sentence that refuses it.
UNRESOLVED = [
    ([], "tide", "tool 'tide' is not a tool that was called; calls that wait: none; add its call"),
    ([], "functions.tide", "calls that wait: none; add its call before its result"),
    (["functions.tide"], "hail", "calls that wait: 'functions.tide'; give the recipient of one"),
    (["functions.tide"], "functions.hail", "'functions.hail' is not a tool that was called"),
    (["functions.tide"], "browser.tide", "'browser.tide' is not a tool that was called"),
    (["browser.search"], "functions.search", "'functions.search' is not a tool that was called"),
    (["functions.tide"], "functions.", "'functions.' is not a tool that was called"),
    (["functions.tide"], "functions", "'functions' is not a tool that was called"),
    (["functions.tide"], "ide", "'ide' is not a tool that was called"),
    (["functions.tide"], "Tide", "'Tide' is not a tool that was called"),
    (["functions.tide"], "", "'' is not a tool that was called"),
    (["functions.tide"], None, "None is not a tool that was called"),
    (["functions.tide"], "no name", "'no name' is not a tool that was called"),
    (["functions.search", "browser.search"], "search",
     "tool 'search' is not the name of one call but of several: 'browser.search', "
     "'functions.search'; give the recipient of one"),
]  # fmt: skip


@pytest.mark.parametrize(("called", "given", "sentence"), UNRESOLVED)
def test_a_result_that_answers_no_call_or_several_is_refused(called, given, sentence):
    transcript = calling(*called)
    transcript.end_sample()
    before = (len(transcript), transcript.messages)

    with pytest.raises(ValueError, match=re.escape(sentence)):
        transcript.add_tool_result(given, "4.2 m")

    assert (len(transcript), transcript.messages) == before


def test_a_call_is_answered_once():
    transcript = calling("functions.tide", "functions.tide", "functions.hail")
    for name in ("tide", "functions.tide"):
        transcript.add_tool_result(name, "4.2 m")

    with pytest.raises(ValueError, match=r"'functions\.tide' is not waited for: each of its calls"):
        transcript.add_tool_result("functions.tide", "again")
    with pytest.raises(ValueError, match=r"'tide' is not a tool .* wait: 'functions\.hail';"):
        transcript.add_tool_result("tide", "again")
    transcript.add_tool_result("hail", "none")


def test_a_tool_that_was_answered_does_not_hide_one_that_waits():
    transcript = calling("functions.search")
    transcript.add_tool_result("search", "nothing")
    transcript.feed_many(tokens_of("<|channel|>analysis to=browser.search<|message|>{}<|call|>"))
    transcript.add_tool_result("search", "found")

    assert (transcript.messages[-1].author.name, transcript.messages[-1].channel) == (
        "browser.search", "analysis",
    )  # fmt: skip


CALL_MESSAGE = Message.from_role_and_content("assistant", "{}").with_recipient("functions.tide")
CALL_TEXT = "<|start|>assistant<|channel|>analysis to=functions.tide<|message|>{}<|call|>"


def test_calls_that_were_prompted_or_cut_off_are_answered_too():
    def add(transcript, way):
        match way:
            case "messages":
                transcript.add_messages([user(), CALL_MESSAGE.with_channel("analysis")])
            case "tokens":
                transcript.add_tokens(tokens_of(CALL_TEXT))
            case "cut":
                transcript.add_sampled(tokens_of(CALL_TEXT.removeprefix(OPENED))[:-1])
            case "still sampled":
                transcript.feed_many(tokens_of(CALL_TEXT.removeprefix(OPENED))[:-1])
            case "no end":
                transcript.add_tokens(tokens_of(CALL_TEXT.removesuffix("<|call|>") + OPENED)[:-2])
                transcript.add_tokens(tokens_of(OPENED + "<|channel|>final<|message|>?<|end|>"))

    for way in ("messages", "tokens", "cut", "still sampled", "no end"):
        transcript = new()
        add(transcript, way)
        transcript.add_tool_result("tide", "4.2 m")
        assert transcript.messages[-1] == result("functions.tide").with_channel("analysis")


def test_results_that_were_prompted_answer_and_those_that_were_sampled_do_not():
    for add in (
        lambda transcript: transcript.add_messages([result("functions.tide")]),
        lambda transcript: transcript.add_tokens(RENDERER.render(result("functions.tide"))),
    ):
        transcript = calling("functions.tide")
        add(transcript)
        with pytest.raises(ValueError, match="is not waited for"):
            transcript.add_tool_result("functions.tide", "again")

    transcript = calling("functions.tide")
    transcript.add_sampled(RENDERER.render(result("functions.tide", "invented")))
    transcript.add_tool_result("tide", "4.2 m")
    assert texts_of(transcript)[-2:] == ["invented", "4.2 m"]


def test_a_loaded_transcript_knows_which_calls_wait(tmp_path):
    transcript = calling("functions.tide", "functions.hail")
    transcript.add_tool_result("tide", "4.2 m")
    transcript.save(tmp_path / "a.jsonl")

    loaded = Transcript.load(tmp_path / "a.jsonl", RENDERER)

    with pytest.raises(ValueError, match="is not waited for"):
        loaded.add_tool_result("functions.tide", "again")
    loaded.add_tool_result("hail", "none")


@pytest.mark.parametrize("name", ["tide", "functions.functions.tide", "function.tide"])
def test_messages_with_a_result_that_is_named_like_its_call_are_refused(name):
    for transcript, messages, place in (
        (calling("functions.tide"), [result(name)], 0),
        (new(), [user(), CALL_MESSAGE, result(name)], 2),
        (new(), iter([CALL_MESSAGE, CALL_MESSAGE, result("functions.tide"), result(name)]), 3),
    ):
        transcript.end_sample()
        before = len(transcript)
        with pytest.raises(ValueError, match=re.escape(
            f"message {place}: tool {name!r} is not the name of a call that waits, but is like "
            "'functions.tide'; give the recipient of the call"
        )):  # fmt: skip
            transcript.add_messages(messages)
        assert len(transcript) == before


def test_messages_with_results_whose_calls_are_elsewhere_are_taken():
    transcript = calling("functions.tide")
    names = ["functions.hail", "python", "browser.tide", "functions.tide", "functions.tide", "tide"]
    transcript.add_messages([*map(result, names), user()])

    assert [message.author.name for message in transcript.messages[2:-1]] == names
    # The name of a call that has its result is no misspelling of one that waits.
    transcript = calling("tide", "functions.tide")
    transcript.add_messages([result("tide"), result("tide"), result("functions.tide")])
    with pytest.raises(RenderError):
        transcript.add_messages([Message.from_role_and_content("tool", "?")])


def test_an_empty_transcript_prompts_for_its_first_message():
    transcript = new()

    assert (transcript.add_sampled([]), transcript.feed_many([])) == ([], [])
    assert (len(transcript), transcript.messages, transcript.usage.total) == (0, (), 0)
    assert text_of(transcript.prompt()) == OPENED
    assert transcript.common_prefix == 0


@pytest.mark.parametrize("add", ["feed", "add_tokens", "feed_many", "add_sampled"])
def test_what_is_no_token_is_refused_before_anything_changes(add):
    transcript = new()
    transcript.add_messages([user()])
    before = (len(transcript), transcript.prompt())

    for bad, error in ((-1, ValueError), (1.5, TypeError), ("a", TypeError)):
        with pytest.raises(error):
            getattr(transcript, add)(bad if add == "feed" else [13225, bad])

    assert (len(transcript), transcript.prompt()) == before


def test_unknown_choices_are_refused():
    for wrong in ({"policy": "all"}, {"truncated": "maybe"}, {"next_role": "robot"}):
        with pytest.raises(ValueError, match=r"all|maybe|robot"):
            new().prompt(**wrong)
    with pytest.raises(ValueError, match="mend"):
        new(malformed="mend")


def test_a_transcript_makes_a_renderer_if_it_is_given_none():
    transcript = Transcript()
    transcript.add_messages([user()])

    assert text_of(transcript.prompt()) == QUESTION + OPENED


# --- What was cut off ----------------------------------------------------------------------------


def test_a_message_that_was_cut_off_is_refused_kept_or_dropped():
    transcript = new()
    transcript.add_messages([user()])
    transcript.add_sampled(tokens_of(THOUGHT + ANSWER)[:-1])

    with pytest.raises(TruncatedMessageError, match=r"message 2 \(final\) was cut off"):
        transcript.prompt()
    kept = transcript.prompt(truncated="keep")
    assert text_of(kept) == QUESTION + OPENED + ANSWER.replace("return", "end") + OPENED
    dropped = transcript.prompt(truncated="drop")
    assert text_of(dropped) == QUESTION + OPENED + THOUGHT.removesuffix(OPENED) + OPENED
    assert [each.reason for each in transcript.dropped] == [DropReason.TRUNCATED]


def test_a_call_that_was_cut_off_is_closed_as_a_call_and_stays_if_it_is_answered():
    transcript = new()
    transcript.add_sampled(tokens_of(CALLING)[:-1])
    with pytest.raises(TruncatedMessageError):
        transcript.prompt()

    transcript.add_tool_result("python", "4")

    for truncated in OnTruncated:
        assert text_of(transcript.prompt(truncated=truncated)) == OPENED + CALLING + RESULT + OPENED


ENDED = ANSWER.replace("return", "end")
UNFINISHED = ["<|channel|>", "<|channel|>final", ENDED + OPENED, ENDED + OPENED + "<|channel|>"]


@pytest.mark.parametrize("sampled", UNFINISHED)
def test_a_header_that_was_cut_off_is_reported_and_left_out_of_prompts(sampled):
    transcript = new()
    transcript.add_messages([user()])
    transcript.prompt()
    transcript.add_sampled(tokens_of(sampled))
    transcript.add_messages([user()])
    with pytest.raises(TruncatedMessageError, match="no channel"):
        transcript.prompt()

    prompt = transcript.prompt(truncated="keep")

    said = OPENED + ENDED if ENDED in sampled else ""
    assert text_of(prompt) == QUESTION + said + QUESTION + OPENED
    index = 1 + bool(said)
    assert [(each.index, each.message, each.reason) for each in transcript.dropped] == [
        (index, None, DropReason.UNFINISHED_HEADER)
    ]
    assert transcript.usage.total == len(transcript)


# --- What was sampled after the answer -----------------------------------------------------------

INVENTED = {
    "a question and an answer": ("<|start|>user<|message|>And?<|end|>" + OPENED + ANSWER, 2),
    "a call": (OPENED + CALLING, 1),
    "more text": (" And so on.", 1),
    "a message that was cut off": (OPENED + "<|channel|>final<|message|>Mo", 1),
    "a header that was cut off": (OPENED + "<|channel|>", 1),
    "messages and a header": (OPENED + ANSWER + OPENED, 2),
}


@pytest.mark.parametrize(("invented", "count"), INVENTED.values(), ids=INVENTED)
def test_what_was_sampled_after_return_is_in_no_prompt_and_in_dropped(invented, count, tmp_path):
    transcript = new()
    transcript.add_messages([user()])
    transcript.prompt()
    transcript.add_sampled(tokens_of(ANSWER + invented))
    transcript.save(tmp_path / "it.jsonl")

    for each in (transcript, Transcript.load(tmp_path / "it.jsonl")):
        each.add_messages([user()])
        for policy in HistoryPolicy:
            prompt = each.prompt(policy=policy)
            assert text_of(prompt) == QUESTION + OPENED + ENDED + QUESTION + OPENED
        reasons = [dropped.reason for dropped in each.dropped]
        assert reasons == [DropReason.AFTER_RETURN] * count
        each.add_sampled(tokens_of(ANSWER))  # the next sample may answer again
        assert text_of(each.prompt()).endswith(OPENED + ENDED + OPENED)


def test_a_call_after_return_waits_for_no_result():
    transcript = new()
    transcript.add_sampled(tokens_of(ANSWER + OPENED + CALLING))
    with pytest.raises(ValueError, match="calls that wait: none"):
        transcript.add_tool_result(transcript.messages[1].recipient, "42")


# --- What is malformed ---------------------------------------------------------------------------

# What was sampled after `<|start|>assistant`; what the repaired prompt holds of it.
REPAIRS = {
    "a sound message keeps its tokens": (ANSWER, OPENED + ANSWER.replace("return", "end")),
    "a channel twice": (
        "<|channel|>analysis<|channel|>final<|message|>Four.<|end|>",
        "<|start|>assistant<|channel|>final<|message|>Four.<|end|>",
    ),
    "a recipient with something glued to it": (
        '<|channel|>commentary to=functions.f{"a"<|message|>{}<|call|>',
        "<|start|>assistant<|channel|>commentary to=functions.f<|message|>{}<|call|>",
    ),
    "no end": (
        "<|channel|>analysis<|message|>Hm.<|start|>assistant<|channel|>final<|message|>4<|end|>",
        "<|start|>assistant<|channel|>analysis<|message|>Hm.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>4<|end|>",
    ),
    "another channel inside content": (
        "<|channel|>analysis<|message|>Hm.<|channel|>final<|message|>4<|end|>",
        "<|start|>assistant<|channel|>analysis<|message|>Hm.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>4<|end|>",
    ),
    "stray text": (
        "<|channel|>analysis<|message|>Hm.<|end|>so<|start|>assistant<|channel|>final<|message|>4<|end|>",
        "<|start|>assistant<|channel|>analysis<|message|>Hm.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>4<|end|>",
    ),
    "no message marker": (
        "<|channel|>final Four<|end|>",
        "<|start|>assistant<|channel|>final<|message|>Four<|end|>",
    ),
    "cut off in a header": (
        "<|channel|>final Four",
        "<|start|>assistant<|channel|>final<|message|>Four<|end|>",
    ),
    "a header that cannot be written": (
        "<|channel|><|x a b<|message|>4<|end|>",
        "<|start|>assistant<|channel|><|x a b<|message|>4<|end|>",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("sampled", "repaired"), REPAIRS.values(), ids=REPAIRS)
def test_malformed_messages_are_written_anew_if_so_wanted(sampled, repaired):
    transcript = new(malformed=OnMalformed.REPAIR)

    transcript.add_sampled(tokens_of(sampled))

    prompt = transcript.prompt(policy="keep", truncated="keep")
    assert text_of(prompt) == repaired + OPENED


@pytest.mark.parametrize(("sampled", "repaired"), REPAIRS.values(), ids=REPAIRS)
def test_otherwise_malformed_messages_stay_token_by_token(sampled, repaired):
    transcript = new()

    transcript.add_sampled(tokens_of(sampled))

    expected = OPENED + sampled.replace("<|return|>", "<|end|>")
    prompt = text_of(transcript.prompt(policy="keep", truncated="keep"))
    assert prompt in (expected + OPENED, expected + "<|end|>" + OPENED)


def test_messages_beside_a_malformed_one_keep_their_spelling():
    spelled = [*tokens_of("<|channel|>analysis<|message|>"), *b"Hm", END]
    fault = tokens_of("<|start|>assistant<|channel|>final<|channel|>final<|message|>4<|return|>")
    transcript = new(malformed="repair")

    transcript.add_sampled([*spelled, *fault])

    written = tokens_of("<|start|>assistant<|channel|>final<|message|>4<|end|>")
    assert transcript.prompt(policy="keep") == [*tokens_of(OPENED), *spelled, *written,
                                                *tokens_of(OPENED)]  # fmt: skip


def test_what_was_prompted_is_never_repaired():
    transcript = new(malformed="repair")
    transcript.add_tokens(tokens_of("<|start|>user<|message|>a<|start|>user<|message|>b<|end|>"))

    assert text_of(transcript.prompt()).count("<|end|>") == 1


# --- Usage and training --------------------------------------------------------------------------


def test_usage_is_counted_by_channel():
    transcript = new()
    transcript.add_messages([user()])
    transcript.add_sampled(tokens_of(THOUGHT + CALLING))

    assert transcript.usage.by_channel == {
        None: ChannelUsage(header=1, content=len(tokens_of("2 + 2?")), special=3),
        "analysis": ChannelUsage(
            header=len(tokens_of("assistantanalysis"))
            + len(tokens_of("assistantanalysis to=python code")),
            content=len(tokens_of("Hm.")) + len(tokens_of("2+2")),
            special=8,
        ),
    }


def test_what_streams_is_counted_at_once():
    transcript = new()
    counts = []
    for token in tokens_of("<|channel|>final<|message|>Four"):
        transcript.feed(token)
        counts.append((transcript.usage.total, len(transcript), [*transcript.usage.by_channel]))

    assert counts == [(3, 3, [None]), (4, 4, [None]), (5, 5, ["final"]), (6, 6, ["final"])]


def test_trainers_see_what_was_sampled_with_its_return():
    transcript = new()
    transcript.add_messages([user()])
    prompt = transcript.prompt()
    sampled = tokens_of(THOUGHT + ANSWER)
    transcript.add_sampled(sampled)
    transcript.add_messages([result("python", "4")])
    rest = tokens_of(RESULT.replace("analysis", "commentary"))

    assert transcript.training() == TrainingView(
        [*prompt, *sampled, *rest], [0] * len(prompt) + [1] * len(sampled) + [0] * len(rest)
    )


# --- Laws ----------------------------------------------------------------------------------------

# Pieces of sessions, as (what is done, with what).
words = st.sampled_from(["", "Hm.", "Tide? 潮", "🙂", "<|end|> "])
sound_messages = st.builds(
    "".join,
    st.lists(
        st.builds("<|channel|>{}<|message|>{}<|end|><|start|>assistant".format,
                  st.sampled_from(["analysis", "commentary"]),
                  words.filter(lambda text: "<" not in text)),
        max_size=2,
    ),
)  # fmt: skip
sound_samples = st.builds(
    lambda before, last: tokens_of(before + last),
    sound_messages,
    st.sampled_from([ANSWER, CALLING]),
)
sound_steps = st.lists(
    st.tuples(st.just("messages"), words)
    | st.tuples(st.just("result"), words)
    | st.tuples(st.just("sampled"), sound_samples),
    max_size=10,
)
any_steps = st.lists(
    st.tuples(st.just("messages"), words)
    | st.tuples(st.just("result"), words)
    | st.tuples(st.just("tokens"), streams)
    | st.tuples(st.just("sampled"), sound_samples)
    | st.tuples(st.just("sampled"), sound_samples.map(lambda tokens: tokens[:-1]))
    | st.tuples(st.just("sampled"), streams),
    max_size=8,
)
policies = st.sampled_from([*HistoryPolicy, LastTurns(1), LastTurns(2)])
malformed = st.sampled_from(list(OnMalformed))


def do(transcript, step):
    what, value = step
    match what:
        case "tokens":
            transcript.add_tokens(value)
        case "sampled":
            transcript.add_sampled(value)
        case _ if transcript._is_open():
            transcript.add_tokens([END])
        case "messages":
            transcript.add_messages([user(value)])
        case "result":
            try:
                transcript.add_tool_result("python", value)
            except ValueError:  # nobody has called it
                transcript.add_messages([result("python", value)])


tool_names = st.sampled_from(
    ["tide", "functions.tide", "functions.functions.tide", "functions.hail", "browser.tide", "hail"]
)


@given(st.lists(st.tuples(st.booleans(), tool_names), max_size=12))
@examples(150)
def test_every_result_answers_a_call_that_has_none_and_is_named_as_it(steps):
    transcript, waiting = new(), []
    for is_call, name in steps:
        if is_call:
            text = f"<|channel|>analysis to={name}<|message|>{{}}<|call|>"
            transcript.add_sampled(tokens_of(text))
            waiting.append(name)
            continue
        count = len(transcript.messages)
        try:
            transcript.add_tool_result(name, "4.2 m")
        except ValueError:
            assert len(transcript.messages) == count
            assert name not in waiting
        else:
            waiting.remove(transcript.messages[-1].author.name)


@given(any_steps, malformed)
@examples(150)
def test_the_total_of_usage_is_the_number_of_tokens(steps, malformed):
    transcript = new(malformed=malformed)
    for step in steps:
        do(transcript, step)
        assert transcript.usage.total == len(transcript) == len(transcript.training().loss_mask)


@given(any_steps, st.lists(streams | sound_samples, max_size=3))
@examples(150)
def test_with_nothing_dropped_a_prompt_begins_with_the_last_and_what_was_sampled(steps, samples):
    transcript = new()
    for step in steps:
        do(transcript, step)
    for sampled in samples:
        prompt = transcript.prompt(policy="keep", truncated="keep")
        unfinished = len(transcript.dropped)
        transcript.add_sampled(sampled)

        following = transcript.prompt(policy="keep", truncated="keep")

        if len(transcript.dropped) == unfinished:
            expected = with_ends([*prompt, *sampled])
            assert following[: len(expected)] == (expected if sampled else prompt)


@given(any_steps, malformed, st.data())
@examples(150)
def test_the_common_prefix_is_what_comparing_finds(steps, malformed, data):
    transcript, seen = new(malformed=malformed), []
    for step in steps:
        prompt = transcript.prompt(policy=data.draw(policies), truncated=data.draw(
            st.sampled_from(["keep", "drop"])))  # fmt: skip
        assert transcript.common_prefix == common(seen, prompt)
        do(transcript, step)
        seen = [*prompt, *step[1]] if step[0] == "sampled" else prompt


@given(any_steps)
@example([("sampled", [199998, 200007])])
@examples(150)
def test_messages_are_those_of_the_parser(steps):
    transcript = new()
    for step in steps:
        count = len(transcript.messages)
        opened = transcript._tokens[transcript._pending :] if transcript._is_open() else None
        do(transcript, step)
        if step[0] == "sampled" and opened is None:
            assert transcript.messages[count:] == parse(step[1]).messages


@given(sound_steps, policies)
@examples(150)
def test_transcripts_and_lists_of_messages_are_decided_alike(steps, policy):
    transcript = new()
    for step in steps:
        do(transcript, step)
        transcript.prompt(policy=policy)

    assert transcript.messages == parse(transcript.training().tokens, role=None).messages
    history = normalize_history(transcript.messages, policy)
    assert parse(transcript.prompt(policy=policy), role=None).messages == history.messages
    assert transcript.dropped == history.dropped


@given(any_steps, policies, malformed)
@examples(150)
def test_what_was_asked_before_does_not_matter(steps, policy, malformed):
    asked, unasked = new(malformed=malformed), new(malformed=malformed)
    for step in steps:
        for truncated in ("keep", "drop"):
            asked.prompt(policy=policy, truncated=truncated)
        do(asked, step)
        do(unasked, step)

    for truncated in ("keep", "drop"):
        answer = asked.prompt(policy=policy, truncated=truncated)
        assert unasked.prompt(policy=policy, truncated=truncated) == answer
        assert asked.dropped == unasked.dropped


@given(any_steps, streams | sound_samples, places, malformed)
@examples(150)
def test_streaming_gives_the_same_events_and_the_same_transcript(steps, sampled, places, malformed):
    whole, single, chunked = (new(malformed=malformed) for _ in range(3))
    for step in steps:
        for each in (whole, single, chunked):
            do(each, step)
    opened = whole._tokens[whole._pending :] + ([] if whole._is_open() else tokens_of(OPENED))
    parser = EventParser.after(opened)

    events = whole.add_sampled(sampled)
    by_token = [event for token in sampled for event in single.feed(token)]
    by_chunk = [event for chunk in cut(sampled, places) for event in chunked.feed_many(chunk)]

    expected = [event for token in sampled for event in parser.feed(token)]
    assert by_token == expected
    assert single.end_sample() == chunked.end_sample()
    assert single.end_sample() == ()
    assert (not sampled) or events == [
        *EventParser.after(opened).feed_many(sampled),
        *parser.close(),
    ]
    assert is_same(whole, single)
    assert is_same(whole, chunked)
    assert join_deltas(by_token) == join_deltas(by_chunk)


def is_same(left, right):
    """Whether nothing that can be asked tells two transcripts apart."""
    return all(
        (each(left) == each(right))
        for each in (
            lambda transcript: transcript.training(),
            lambda transcript: transcript.messages,
            lambda transcript: transcript.usage,
            lambda transcript: transcript.prompt(policy="keep", truncated="keep"),
            lambda transcript: transcript.prompt(truncated="drop"),
            lambda transcript: transcript.dropped,
        )
    )


# --- Files ---------------------------------------------------------------------------------------

SUFFIXES = [".jsonl", ".bin"]


def fits(step):
    return not isinstance(step[1], list) or max(step[1], default=0) < 2**32


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(steps=any_steps.map(lambda steps: [step for step in steps if fits(step)]),
       malformed=malformed, rest=streams | sound_samples)  # fmt: skip
@examples(60)
def test_what_was_saved_is_loaded_and_goes_on(suffix, steps, malformed, rest):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"session{suffix}"
        transcript = new(malformed=malformed)
        for step in steps:
            do(transcript, step)
            transcript.save(path)
        transcript.save(path)

        loaded = Transcript.load(path, RENDERER)

        whole = path.with_name(f"whole{suffix}")
        transcript.save(whole)
        again = Transcript.load(whole, RENDERER)
        for each in (transcript, loaded, again):
            each.add_sampled(rest)
        assert is_same(transcript, loaded)
        assert is_same(transcript, again)
        assert sorted(os.listdir(folder)) == sorted([path.name, whole.name])


CUT = pytest.mark.filterwarnings("ignore::harmony_stream.history.files.TranscriptWarning")


@CUT
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_a_crash_cut_anywhere_is_loaded_up_to_there(suffix, tmp_path):
    path, part = tmp_path / f"session{suffix}", tmp_path / f"part{suffix}"
    transcript = new()
    transcript.add_messages([user()])
    transcript.save(path)
    head = path.stat().st_size
    transcript.add_sampled(tokens_of(THOUGHT + ANSWER))
    transcript.save(path)
    data = path.read_bytes()

    for length in range(head, len(data) + 1):
        part.write_bytes(data[:length])
        loaded = Transcript.load(part, RENDERER)
        assert texts_of(loaded) in (["2 + 2?"], ["2 + 2?", "Hm.", "Four."])
        loaded.add_messages([user()])
        loaded.save(part)
        assert texts_of(Transcript.load(part, RENDERER)) == texts_of(loaded)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_only_what_is_new_is_written(suffix, tmp_path):
    path = tmp_path / f"session{suffix}"
    transcript = new()
    transcript.add_messages([user()])
    transcript.save(path)
    before, inode = path.read_bytes(), path.stat().st_ino

    transcript.add_sampled(tokens_of(ANSWER))
    transcript.save(path)
    assert path.stat().st_ino == inode
    assert path.read_bytes().startswith(before)
    loaded = Transcript.load(path, RENDERER)
    loaded.add_messages([user()])
    loaded.save(path)
    assert path.stat().st_ino == inode


OTHER = b"x"


def replaced_by_another(path, size):
    other = path.with_name("other")
    other.write_bytes(OTHER * size)
    other.replace(path)


def overwritten(path, size):
    path.write_bytes(OTHER * size)


def overwritten_with_its_time_kept(path, size):
    before = path.stat()
    path.write_bytes(OTHER * size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def shortened(path, size):
    os.truncate(path, size - 1)


def made_longer(path, size):
    path.write_bytes(path.read_bytes() + OTHER)


def gone(path, size):
    path.unlink()


def swapped_for_a_link(path, size):
    overwritten(path.with_name("other"), size)
    path.unlink()
    path.symlink_to("other")


CHANGES = [
    *(replaced_by_another, overwritten, overwritten_with_its_time_kept, shortened, made_longer),
    *(gone, swapped_for_a_link),
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("is_loaded", [False, True])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_others_changed_is_not_appended_to(suffix, is_loaded, change, tmp_path):
    path = tmp_path / f"session{suffix}"
    transcript = new()
    transcript.add_messages([user()])
    transcript.save(path)
    if is_loaded:
        transcript = Transcript.load(path, RENDERER)
    change(path, path.stat().st_size)

    transcript.add_sampled(tokens_of(ANSWER))
    transcript.save(path)

    assert is_same(Transcript.load(path, RENDERER), transcript)
    assert {each.name for each in tmp_path.iterdir()} <= {path.name, "other"}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_is_appended_to_by_any_of_its_names(suffix, tmp_path, monkeypatch):
    path, link = tmp_path / f"session{suffix}", tmp_path / f"link{suffix}"
    monkeypatch.chdir(tmp_path)
    link.symlink_to(path.name)
    transcript = new()
    transcript.save(path.name)
    inode = path.stat().st_ino
    for name in (path, os.path.relpath(path), link, f"../{tmp_path.name}/{path.name}"):
        transcript.add_messages([user()])
        transcript.save(name)
    os.mkdir("below")
    monkeypatch.chdir("below")
    transcript.save(path.name)  # the same name, in another folder

    assert (path.stat().st_ino, link.is_symlink()) == (inode, True)
    for name in (path, path.name):
        assert is_same(Transcript.load(name, RENDERER), transcript)


@pytest.mark.parametrize(("old", "renamed"), [SUFFIXES, SUFFIXES[::-1]])
def test_a_file_that_was_renamed_is_written_anew_in_the_layout_of_its_name(old, renamed, tmp_path):
    path = tmp_path / f"session{renamed}"
    new().save(tmp_path / f"session{old}")
    (tmp_path / f"session{old}").rename(path)

    transcript = Transcript.load(path, RENDERER)
    transcript.add_messages([user()])
    transcript.save(path)

    assert is_same(Transcript.load(path, RENDERER), transcript)
    assert path.read_bytes().startswith(BINARY) == (renamed == ".bin")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_transcript_goes_into_a_fifo_as_a_whole_each_time(suffix, tmp_path):
    fifo, path = tmp_path / f"fifo{suffix}", tmp_path / f"session{suffix}"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    transcript = new()
    for _ in range(2):
        transcript.add_messages([user()])
        transcript.save(fifo)
        path.write_bytes(os.read(reader, 1 << 16))
        assert is_same(Transcript.load(path, RENDERER), transcript)
    os.close(reader)
    assert fifo.is_fifo()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_keeps_its_mode(suffix, tmp_path):
    path = tmp_path / f"session{suffix}"
    path.touch(0o600)
    new().save(path)

    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(IsADirectoryError) as caught:
        new().save(tmp_path)
    assert caught.value.filename == str(tmp_path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_sample_may_be_saved_while_it_runs(suffix, tmp_path):
    path = tmp_path / f"session{suffix}"
    transcript = new()
    for token in tokens_of(THOUGHT + ANSWER):
        transcript.feed(token)
        transcript.save(path)

    assert is_same(Transcript.load(path, RENDERER), transcript)


def test_binary_files_are_smaller_and_hold_no_larger_ids(tmp_path):
    transcript = new()
    transcript.add_sampled([*tokens_of("<|channel|>final<|message|>"), *[199_000] * 1000, END])
    transcript.save(tmp_path / "a.jsonl")
    transcript.save(tmp_path / "a.bin")
    assert (tmp_path / "a.bin").stat().st_size < 4500 < (tmp_path / "a.jsonl").stat().st_size

    transcript.add_sampled([UNKNOWN, 2**32])
    with pytest.raises(ValueError, match=r"token 4294967296 does not fit .* save as JSON lines"):
        transcript.save(tmp_path / "a.bin")
    transcript.save(tmp_path / "a.jsonl")
    assert is_same(Transcript.load(tmp_path / "a.jsonl", RENDERER), transcript)


HEAD = b'{"format": "harmony_stream.transcript", "version": 1, "vocabulary": "o200k_harmony", '
HEAD += b'"malformed": "keep"}'
BINARY = b"harmony_stream transcript\n"
NESTED = b"[" * 100_000


def framed(*payloads):
    return BINARY + b"".join(
        struct.pack("<II", len(each), zlib.crc32(each)) + each for each in payloads
    )


def record(prompted=b"[]", sampled=b"[]"):
    return HEAD + b'\n{"prompted": ' + prompted + b', "sampled": ' + sampled + b"}\n"


# What a first line, or the first record of a binary file, may hold that is no head.
NO_HEADS = {
    "another object": (b"{}", "is not a transcript of version 1, but {}"),
    "a list": (b"[1]", "is not a transcript of version 1"),
    "a number": (b"5", "is not a transcript of version 1, but 5"),
    "a text": (b'"format"', "is not a transcript of version 1, but 'format'"),
    "null": (b"null", "is not a transcript of version 1, but None"),
    "not a number": (b"NaN", "is not a transcript of version 1, but nan"),
    "a later version": (HEAD.replace(b"1", b"2"), "not a transcript of version 1"),
    "a version that is true": (HEAD.replace(b"1", b"true"), "not a transcript of version 1"),
    "a version that is a list": (HEAD.replace(b"1", b"[1]"), "not a transcript of version 1"),
    "another vocabulary": (HEAD.replace(b"o200k", b"other"),
                           "of the vocabulary 'other_harmony', not of 'o200k_harmony'"),
    "a vocabulary that is a list": (HEAD.replace(b'"o200k_harmony"', b"[[1]]"),
                                    "of the vocabulary \\[\\[1\\]\\], not of"),
    "an unknown choice": (HEAD.replace(b"keep", b"lose"), "malformed is 'lose', not one of keep, "),
    "a choice that is a list": (HEAD.replace(b'"keep"', b"[]"), "malformed is \\[\\], not one of"),
    "no choice": (HEAD.replace(b"malformed", b"x"), "malformed is None, not one of keep, repair"),
    "no JSON": (b"hello", "not JSON: Expecting value"),
    "no UTF-8": (b'"\xff"', "can't decode byte 0xff"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), "can't decode byte 0xff"),
    "zeros": (b"\0\0", "not JSON"),
    "deep nesting": (NESTED, "JSON that is nested too deeply"),
    "half deep nesting": (b"[" * 400 + b"]" * 400, "not a transcript of version 1"),
    "too many digits": (b"9" * 5000, "digits"),
}  # fmt: skip
RECORDS = {
    "an unknown record": (HEAD + b'\n{"said": [1]}\n', "line 2: {'said': .* is not an object"),
    "half a record": (HEAD + b'\n{"prompted": [1]}\n', "line 2: .* is not an object of prompted"),
    "a record that has more": (record(b"[]", b'[], "more": 1'), "line 2: .* is not an object"),
    "a list": (HEAD + b"\n[1]\n", "line 2: \\[1\\] is not an object of prompted and sampled"),
    "a number": (HEAD + b"\n5\n", "damaged: line 2: 5 is not an object"),
    "null": (HEAD + b"\nnull\n", "line 2: None is not an object"),
    "no JSON": (record() + b"{,}\n", "line 3: not JSON: Expecting property name"),
    "an empty line": (record() + b"\n" + HEAD, "line 3: not JSON"),
    "no UTF-8": (record() + b'"\xff"\n', "line 3: .* can't decode byte 0xff"),
    "deep nesting": (record() + NESTED + b"\n", "line 3: JSON that is nested too deeply"),
    "deep tokens": (record(b"[" * 400 + b"]" * 400), "line 2: prompted\\[0\\] is "),
    "too many digits": (record(b"[" + b"9" * 5000 + b"]"), "line 2: .*digits"),
    "tokens that are null": (record(b"null"), "prompted is None, not a list of tokens"),
    "tokens that are a number": (record(b"[]", b"5"), "sampled is 5, not a list of tokens"),
    "tokens that are a text": (record(b'"12"'), "prompted is '12', not a list"),
    "tokens that are an object": (record(b"{}"), "prompted is {}, not a list"),
    "a negative token": (record(b"[1, -5]"), "line 2: prompted\\[1\\] is -5, not a token id"),
    "a float": (record(b"[]", b"[5.0]"), "line 2: sampled\\[0\\] is 5.0, not a token id"),
    "not a number": (record(b"[NaN]"), "prompted\\[0\\] is nan, not a token id"),
    "infinity": (record(b"[1e999]"), "prompted\\[0\\] is inf, not a token id"),
    "true": (record(b"[true]"), "prompted\\[0\\] is True, not a token id"),
    "a null": (record(b"[null]"), "prompted\\[0\\] is None, not a token id"),
    "a text": (record(b'["5"]'), "prompted\\[0\\] is '5', not a token id"),
    "a list of tokens": (record(b"[[5]]"), "prompted\\[0\\] is \\[5\\], not a token id"),
    "a number behind it": (record() + b"5", "line 3: 5 is not an object"),
    "a binary file without a head": (BINARY, "the header is missing"),
    "a binary file with half a head": (framed(HEAD)[:-1], "the header is missing"),
    "a binary file with a wrong sum": (
        BINARY + struct.pack("<II", 2, 7) + b"{}" + struct.pack("<II", 2, 7) + b"{}",
        "damaged at byte 26"),
    "a length beyond the end, with a record behind it": (
        framed(HEAD) + struct.pack("<IIII", 2**31, 7, 1, 5) + framed(b"\1\0\0\0\5\0\0\0")[26:],
        f"damaged at byte {len(framed(HEAD))}"),
    "five bytes": (framed(HEAD, b"12345"), "5 bytes are not a list of tokens"),
    "more prompted than there is": (framed(HEAD, struct.pack("<II", 9, 5)),
                                    f"at byte {len(framed(HEAD))}: 9 tokens were prompted, but"),
    "a record without tokens": (framed(HEAD, b"", HEAD), f"damaged at byte {len(framed(HEAD))}"),
}  # fmt: skip
DAMAGES = {
    "an empty file": (b"", "is not a transcript, or is damaged: the header is missing"),
    "half a line": (HEAD[:-5], "is not a transcript, or is damaged: the header is missing"),
    **RECORDS,
    **{f"{name} for a head": (data + b"\n", text) for name, (data, text) in NO_HEADS.items()},
    **{f"{name}, framed": (framed(data), text) for name, (data, text) in NO_HEADS.items()},
}


@pytest.mark.parametrize(("data", "sentence"), DAMAGES.values(), ids=DAMAGES)
def test_what_is_no_transcript_is_refused_by_name(data, sentence, tmp_path):
    path = tmp_path / "session"
    path.write_bytes(data)

    with pytest.raises(ValueError, match=sentence) as caught:
        Transcript.load(path, RENDERER)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < 1000


def test_what_cannot_be_read_is_an_error_of_the_system(tmp_path):
    with pytest.raises(IsADirectoryError):
        Transcript.load(tmp_path, RENDERER)
    with pytest.raises(FileNotFoundError):
        Transcript.load(tmp_path / "nothing", RENDERER)


def saved(steps, suffix, folder):
    """The bytes of a file, and what is in it."""
    transcript, path = new(), Path(folder) / f"session{suffix}"
    for step in steps:
        do(transcript, step)
    transcript.save(path)
    return path.read_bytes(), Transcript.load(path, RENDERER)


STEPS = [("messages", "2 + 2?"), ("sampled", tokens_of(ANSWER)), ("messages", "3 + 3?")]
EDITS = {
    "Windows' line breaks": lambda data: data.replace(b"\n", b"\r\n"),
    "a byte-order mark": lambda data: b"\xef\xbb\xbf" + data,
    "no last line break": lambda data: data.removesuffix(b"\n"),
    "zeros at its end": lambda data: data + bytes(4096),
    "half a record at its end": lambda data: data + b'{"prompted": [',
}
CUTS = [EDITS["zeros at its end"], EDITS["half a record at its end"]]


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_lines_that_an_editor_or_a_crash_has_changed_are_all_read(edit, tmp_path):
    path = tmp_path / "session.jsonl"
    data, wanted = saved(STEPS, ".jsonl", tmp_path)
    path.write_bytes(edit(data))

    with pytest.warns(TranscriptWarning) if edit in CUTS else contextlib.nullcontext():
        found = Transcript.load(path, RENDERER)
    assert is_same(found, wanted)
    found.add_messages([user("And 4 + 4?")])
    found.save(path)
    assert is_same(Transcript.load(path, RENDERER), found)


@pytest.mark.parametrize("rest", [bytes(1), bytes(8), bytes(4096), b"\5", b"\5\0\0\0\7\7\7\7\1"])
def test_what_a_crash_left_at_the_end_of_a_binary_file_is_left_out(rest, tmp_path):
    path = tmp_path / "session.bin"
    data, wanted = saved(STEPS, ".bin", tmp_path)
    path.write_bytes(data + rest)

    sentence = f"{path}: the last {len(rest)} bytes are no whole record; they are left out"
    with pytest.warns(TranscriptWarning, match=f"^{re.escape(sentence)}$"):
        found = Transcript.load(path, RENDERER)
    assert is_same(found, wanted)
    found.add_messages([user("And 4 + 4?")])
    found.save(path)
    assert is_same(Transcript.load(path, RENDERER), found)


# JSON of all kinds, and what stands in transcripts.
fields = st.sampled_from(["format", "version", "vocabulary", "malformed", "prompted", "sampled"])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
values = st.recursive(
    scalars, lambda each: st.lists(each, max_size=4) | st.dictionaries(fields, each, max_size=4)
)
heads = st.just(json.loads(HEAD))
records = st.fixed_dictionaries({"prompted": st.lists(scalars), "sampled": st.lists(scalars)})
lines = (values | heads | records).map(lambda value: json.dumps(value).encode())
odd_lines = st.lists(lines | st.binary(max_size=9), max_size=4).map(b"\n".join)
lines_with_a_head = st.builds(lambda rest, end: HEAD + b"\n" + rest + end, odd_lines,
                              st.sampled_from([b"", b"\n", b"\r\n"]))  # fmt: skip
payloads = st.binary(max_size=16) | st.lists(st.integers(0, 9), max_size=6).map(
    lambda numbers: struct.pack(f"<{len(numbers)}I", *numbers)
)
odd_frames = st.lists(payloads | lines, max_size=3).map(lambda each: framed(*each))
frames_with_a_head = st.lists(payloads, max_size=3).map(lambda each: framed(HEAD, *each))


@functools.cache
def saved_bytes(suffix):
    with tempfile.TemporaryDirectory() as folder:
        return saved(STEPS, suffix, folder)[0]


@st.composite
def damaged_files(draw):
    """A good file with one part cut out, doubled, moved or written over."""
    data = saved_bytes(draw(st.sampled_from(SUFFIXES)))
    first, stop = sorted(draw(st.tuples(*[st.integers(0, len(data))] * 2)))
    part, to = data[first:stop], draw(st.integers(0, len(data)))
    middle = draw(st.sampled_from([b"", part * 2, bytes(len(part))]) | st.binary(max_size=12))
    changed = data[:first] + middle + data[stop:]
    return draw(st.sampled_from([changed, changed[:to] + part + changed[to:]]))


@CUT
@given(
    st.one_of(st.binary(), odd_lines, lines_with_a_head, odd_frames, frames_with_a_head,
              damaged_files())
)  # fmt: skip
@examples(500)
def test_any_bytes_are_a_transcript_or_an_error_that_names_the_file(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.bin"
        path.write_bytes(data)
        error = None
        try:
            transcript = Transcript.load(path, RENDERER)
        except ValueError as caught:
            error = caught
        if error is None:
            again = path.with_name("again.jsonl")
            transcript.save(again)
            assert is_same(Transcript.load(again, RENDERER), transcript)
        else:
            assert type(error) is ValueError
            assert str(error).startswith(str(path))


def test_other_vocabularies_have_transcripts_too(tmp_path):
    encoding = VOCABULARY.tiktoken_encoding
    other = Vocabulary.from_tiktoken(encoding, special_tokens={"<|end|>": 200013})
    transcript = Transcript(Renderer(other, "guide"))
    transcript.add_messages([user()])

    assert transcript.prompt()[-3] == 200013
