"""A conversation in the very tokens that were prompted and sampled."""

import itertools
import os
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sessions import (
    ANSWER,
    CALLING,
    OPENED,
    QUESTION,
    RENDERER,
    RESULT,
    SUFFIXES,
    THOUGHT,
    is_same,
    new,
    texts_of,
    user,
)
from strategies import (
    SPECIAL,
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


def text_of(tokens):
    return VOCABULARY.decode(tokens)


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


# --- Files ---------------------------------------------------------------------------------------


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
    assert path.read_bytes().startswith(b"harmony_stream transcript") == (renamed == ".bin")


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


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_with_zeros_at_its_end_is_written_anew_as_a_whole(suffix, tmp_path):
    path = tmp_path / f"session{suffix}"
    transcript = new()
    transcript.add_messages([user()])
    transcript.save(path)
    path.write_bytes(path.read_bytes() + bytes(4096))

    with pytest.warns(TranscriptWarning, match="the last 4096 bytes are no whole record"):
        loaded = Transcript.load(path, RENDERER)
    loaded.add_sampled(tokens_of(ANSWER))
    loaded.save(path)

    assert bytes(8) not in path.read_bytes()
    assert is_same(Transcript.load(path, RENDERER), loaded)


def test_what_cannot_be_read_is_an_error_of_the_system(tmp_path):
    with pytest.raises(IsADirectoryError):
        Transcript.load(tmp_path, RENDERER)
    with pytest.raises(FileNotFoundError):
        Transcript.load(tmp_path / "nothing", RENDERER)


def test_other_vocabularies_have_transcripts_too(tmp_path):
    encoding = VOCABULARY.tiktoken_encoding
    other = Vocabulary.from_tiktoken(encoding, special_tokens={"<|end|>": 200013})
    transcript = Transcript(Renderer(other, "guide"))
    transcript.add_messages([user()])

    assert transcript.prompt()[-3] == 200013
