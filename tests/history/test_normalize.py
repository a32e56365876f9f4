"""Messages, events and completions, made into the messages that go back to the model."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from letters import POLICIES, message_of, messages_of, policies, words
from strategies import events_of, examples, streams, tokens_of

from harmony_stream.errors import HarmonyError
from harmony_stream.history import (
    Dropped,
    DropReason,
    HistoryPolicy,
    OnTruncated,
    TruncatedMessageError,
    normalize_history,
)
from harmony_stream.parsing.collect import parse
from harmony_stream.rendering.render import Renderer
from harmony_stream.values.messages import Conversation

# --- What may be given ---------------------------------------------------------------------------

SAMPLED = (
    "<|channel|>analysis<|message|>Hm.<|end|>"
    "<|start|>assistant<|channel|>final<|message|>Four.<|return|>"
)
CUT_ANSWER = SAMPLED.removesuffix("<|return|>")
CUT_CALL = "<|channel|>commentary to=functions.f<|message|>{"


def completion_of(marked_text):
    return parse(tokens_of(marked_text))


def texts_of(history):
    return [message.content[0].text for message in history.messages]


def test_messages_events_and_completions_mix():
    question = message_of("u", "2 + 2?")
    items = [
        question,
        *events_of(SAMPLED),
        message_of("u", "Why?"),
        completion_of(SAMPLED),
        question,
    ]

    history = normalize_history(items)

    assert texts_of(history) == ["2 + 2?", "Four.", "Why?", "Four.", "2 + 2?"]
    assert [each.index for each in history.dropped] == [1, 4]


def test_a_completion_alone_and_a_conversation_are_taken_too():
    messages = completion_of(SAMPLED).messages

    assert normalize_history(completion_of(SAMPLED)).messages == messages[1:]
    assert normalize_history(Conversation.from_messages(messages)).messages == messages[1:]


@given(streams)
@examples(100)
def test_events_are_the_same_as_their_completion(tokens):
    events, completion = events_of(tokens), parse(tokens)
    before = copy.deepcopy(completion)

    by_events = normalize_history(events, truncated="keep")

    assert by_events == normalize_history(completion, truncated="keep")
    assert completion == before


def test_a_return_becomes_an_end():
    history = normalize_history([message_of("u"), completion_of(SAMPLED)])

    tokens = Renderer(profile="guide").render_conversation(
        Conversation.from_messages(history.messages)
    )
    assert tokens == tokens_of(
        "<|start|>user<|message|><|end|><|start|>assistant<|channel|>final<|message|>Four.<|end|>"
    )


ANSWERED = "<|channel|>final<|message|>Four.<|return|>"


def test_what_was_sampled_after_return_does_not_go_back_to_the_model():
    more = ANSWERED + "<|start|>user<|message|>And?<|end|><|start|>assistant" + CUT_CALL
    question, asked = message_of("u"), events_of("<|start|>user<|message|>?<|end|>")
    for items in ([question, completion_of(more)], [*asked, *events_of(more)]):
        for policy in POLICIES:
            history = normalize_history([*items, question], policy)
            assert len(history.messages) == 3
            after = [(each.index, each.reason) for each in history.dropped]
            assert after == [(index, DropReason.AFTER_RETURN) for index in (2, 3)]


def test_each_completion_among_events_has_its_own_answer():
    history = normalize_history([*events_of(ANSWERED), *events_of(ANSWERED)])
    assert (texts_of(history), history.dropped) == (["Four.", "Four."], ())


def test_in_a_whole_conversation_a_return_ends_an_answer_and_not_the_conversation():
    turn = "<|start|>user<|message|>?<|end|><|start|>assistant" + ANSWERED
    history = normalize_history(parse(tokens_of(turn + turn), role=None))
    assert (texts_of(history), history.dropped) == (["?", "Four."] * 2, ())


def test_the_report_says_what_went_and_why():
    history = normalize_history(completion_of(SAMPLED))

    thought = completion_of(SAMPLED).messages[0]
    assert history.dropped == (Dropped(0, thought, DropReason.FINISHED_TURN),)
    upstream = normalize_history(completion_of(SAMPLED), HistoryPolicy.UPSTREAM)
    assert upstream.dropped == (Dropped(0, thought, DropReason.BEFORE_FIRST_FINAL),)


def test_anything_else_is_refused_with_its_place():
    with pytest.raises(TypeError, match="item 1 is a dict, expected Message, Completion, or"):
        normalize_history([message_of("u"), {"role": "user"}])


# --- Messages that were cut off ------------------------------------------------------------------


def test_a_message_that_was_cut_off_is_refused_unless_somebody_decides():
    with pytest.raises(TruncatedMessageError) as caught:
        normalize_history([message_of("u"), completion_of(CUT_ANSWER)])

    assert (caught.value.message_index, caught.value.channel) == (2, "final")
    assert isinstance(caught.value, HarmonyError)
    assert pickle.loads(pickle.dumps(caught.value)) == caught.value
    assert str(TruncatedMessageError(0, None)).startswith("message 0 (no channel) was cut off")


CUTS = {
    "one that is kept counts as if it had ended": (CUT_ANSWER, "keep", ["Four."], ["Hm."]),
    "one that is dropped as if it had never begun": (CUT_ANSWER, "drop", ["Hm."], ["Four."]),
    "a thought": ("<|channel|>analysis<|message|>Hm", "drop", [], ["Hm"]),
    "a call": (CUT_CALL, "drop", [], ["{"]),
    "a call that is kept": (CUT_CALL, "keep", ["{"], []),
    "only what the end of the stream cut off": (SAMPLED, "drop", ["Four."], ["Hm."]),
}


@pytest.mark.parametrize(("sampled", "truncated", "stay", "go"), CUTS.values(), ids=CUTS)
def test_what_was_cut_off_is_kept_or_dropped(sampled, truncated, stay, go):
    history = normalize_history(completion_of(sampled), truncated=truncated)

    assert texts_of(history) == stay
    assert [each.message.content[0].text for each in history.dropped] == go


def test_events_that_just_stop_were_cut_off():
    start, delta, *_ = events_of(CUT_CALL)

    for events in ([start], [start, delta], [start, delta, start, delta]):
        history = normalize_history(events, truncated=OnTruncated.DROP)
        assert {each.reason for each in history.dropped} == {DropReason.TRUNCATED}
        assert history.messages == ()
    assert len(normalize_history([start, delta, start], truncated="keep").messages) == 2


def test_a_call_that_was_answered_stays_though_it_was_cut_off():
    items = [completion_of(CUT_CALL), message_of("R"), message_of("r"), message_of("r")]

    for truncated in OnTruncated:
        assert normalize_history(items, truncated=truncated).dropped == ()


@pytest.mark.parametrize("between", ["u", "a", "C"])
def test_an_answer_that_comes_too_late_does_not_count(between):
    items = [completion_of(CUT_CALL), message_of(between), message_of("r")]

    assert [each.index for each in normalize_history(items, truncated="drop").dropped] == [0]


def test_a_result_answers_calls_only():
    items = [completion_of("<|channel|>analysis to=assistant<|message|>Hm"), message_of("r")]

    assert [each.index for each in normalize_history(items, truncated="drop").dropped] == [0]


cut_texts = st.sampled_from([CUT_ANSWER, CUT_CALL, "<|channel|>analysis<|message|>Hm", SAMPLED])
mixed = st.lists(
    words.map(messages_of) | cut_texts.map(lambda text: [completion_of(text)]), max_size=6
)


@given(mixed, policies, st.sampled_from(["keep", "drop"]))
@examples(300)
def test_deciding_twice_is_deciding_once_also_of_what_was_cut_off(lists, policy, truncated):
    once = normalize_history([item for items in lists for item in items], policy,
                             truncated=truncated)  # fmt: skip

    again = normalize_history(once.messages, policy)

    assert (again.messages, again.dropped) == (once.messages, ())


# --- Laws


@given(words, policies)
@examples(300)
def test_deciding_twice_is_deciding_once(word, policy):
    once = normalize_history(messages_of(word), policy)

    again = normalize_history(once.messages, policy)

    assert again.messages == once.messages
    assert again.dropped == ()


@given(words, policies)
@examples(300)
def test_what_stays_and_what_goes_is_all_there_was_in_order(word, policy):
    messages = messages_of(word)
    before = copy.deepcopy(messages)

    history = normalize_history(messages, policy)

    gone = {each.index: each.message for each in history.dropped}
    rest = iter(history.messages)
    assert [gone[i] if i in gone else next(rest) for i in range(len(word))] == messages == before
    assert list(gone) == sorted(gone)
