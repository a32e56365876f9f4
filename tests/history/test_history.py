"""What of a conversation goes back to the model."""

# ruff: noqa: RUF005 - sums of decided histories are what is tested; unpacked they are plain lists

import copy
import json
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reference import Wheel
from strategies import events_of, examples, streams, tokens_of

from harmony_stream.errors import HarmonyError
from harmony_stream.history import (
    Dropped,
    DropReason,
    HistoryPolicy,
    LastTurns,
    OnTruncated,
    TruncatedMessageError,
    messages_to_drop,
    normalize_history,
)
from harmony_stream.history.policy import Turns, get_policy
from harmony_stream.history.transcript import Transcript
from harmony_stream.parsing.collect import MessageCollector, parse
from harmony_stream.rendering.header import header_of
from harmony_stream.rendering.profiles import PROFILES
from harmony_stream.rendering.render import Renderer
from harmony_stream.values.header import Header
from harmony_stream.values.messages import Conversation, Message, RenderConversationConfig, Role

CASES = {
    case["id"]: case
    for case in json.loads(Path(__file__).parents[1].joinpath("cases/history.json").read_text())
    if case["id"].startswith("drop-")
}
KEEP_ALL = RenderConversationConfig(auto_drop_analysis=False)
POLICIES = [*HistoryPolicy, LastTurns(0), LastTurns(1), LastTurns(2)]
NEVER_PARTING = [policy for policy in POLICIES if policy is not HistoryPolicy.UPSTREAM]

# One letter for each kind of message, so that a conversation is a word.
HEADERS = {
    "s": Header(Role.SYSTEM),
    "d": Header(Role.DEVELOPER),
    "u": Header(Role.USER),
    "a": Header(Role.ASSISTANT, None, "analysis"),  # a thought
    "p": Header(Role.ASSISTANT, None, "commentary"),  # a preamble
    "f": Header(Role.ASSISTANT, None, "final"),  # the answer
    "c": Header(Role.ASSISTANT, None, "commentary", "functions.f", "<|constrain|>json"),
    "r": Header(Role.TOOL, "functions.f", "commentary", "assistant"),
    "C": Header(Role.ASSISTANT, None, "analysis", "python", "code"),  # a built-in tool
    "R": Header(Role.TOOL, "python", "analysis", "assistant"),
    "x": Header(Role.ASSISTANT, None, "final", "functions.f"),  # a call on final
    "m": Header(Role.ASSISTANT, None, "analysis", "assistant"),  # a thought for itself
    "n": Header(Role.ASSISTANT),  # an answer without a channel
    "o": Header(Role.ASSISTANT, None, "reflection"),  # an unknown channel
    "U": Header(Role.USER, None, "analysis"),
    "F": Header(Role.USER, None, "final"),
}
RESULTS = {"r": "c", "R": "C"}


def message_of(letter, text=""):
    header = HEADERS[letter]
    author = {"role": header.role, "name": header.name}
    return Message(author=author, content=text, channel=header.channel,
                   recipient=header.recipient, content_type=header.content_type)  # fmt: skip


def messages_of(word):
    return [message_of(letter, f"{place}") for place, letter in enumerate(word)]


def what_stays(word, policy=HistoryPolicy.FINISHED_TURNS):
    gone = messages_to_drop([HEADERS[letter] for letter in word], policy)
    return "".join("." if place in gone else letter for place, letter in enumerate(word))


# --- The decision --------------------------------------------------------------------------------

DECISIONS = {
    "the thoughts of a finished turn go": ("suafu", "su.fu"),
    "those of each finished turn": ("uafuafu", "u.fu.fu"),
    "an open turn keeps everything": ("uacra", "uacra"),
    "calls and results of a finished turn stay": ("uacrapcraf", "u.cr.pcr.f"),
    "those on analysis too": ("uaCRaf", "u.CR.f"),
    "a turn that was left open keeps its thoughts": ("uacruafu", "uacru.fu"),
    "a preamble does not finish a turn": ("uapu", "uapu"),
    "an answer without a channel neither": ("uanu", "uanu"),
    "a call on final neither": ("uaxu", "uaxu"),
    "who thinks on after an answer has not finished": ("uafa", "uafa"),
    "two answers in one turn": ("uafaf", "u.f.f"),
    "what comes before the first question is a turn": ("afuaf", ".fu.f"),
    "a question ends it, also after one message": ("auf", "auf"),
    "a thought for oneself is a thought": ("umf", "u.f"),
    "an unknown channel is not known to be thinking": ("uof", "uof"),
    "only the assistant thinks": ("UafUaf", "U.fU.f"),
    "only the assistant answers": ("uaF", "uaF"),
    "a result after the answer leaves the turn finished": ("uafr", "u.fr"),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("word", "stays"), DECISIONS.values(), ids=DECISIONS)
def test_thoughts_of_finished_turns_go(word, stays):
    assert what_stays(word) == stays


OTHER_POLICIES = [
    ("uafuafuafu", HistoryPolicy.KEEP, "uafuafuafu"),
    ("uafuafuafu", LastTurns(0), "u.fu.fu.fu"),
    ("uafuafuafu", LastTurns(1), "u.fu.fuafu"),
    ("uafuafuafu", LastTurns(2), "u.fuafuafu"),
    ("uafuafuafu", LastTurns(3), "uafuafuafu"),
    ("uafuafuafu", LastTurns(9), "uafuafuafu"),
    ("uafuacuafua", LastTurns(1), "u.fuacuafua"),
    ("uafuaf", LastTurns(1), "u.fuaf"),
    ("uafuafa", LastTurns(1), "uafuafa"),
    ("uafuaf", HistoryPolicy.UPSTREAM, "u.fuaf"),
    ("uafuafa", HistoryPolicy.UPSTREAM, "uafuafa"),
    ("uaCRafu", HistoryPolicy.UPSTREAM, "u....fu"),
    ("uFUaf", HistoryPolicy.UPSTREAM, "uFUaf"),
    ("UaxuF", HistoryPolicy.UPSTREAM, "..xuF"),
    ("ua", HistoryPolicy.UPSTREAM, "ua"),
]


@pytest.mark.parametrize(("word", "policy", "stays"), OTHER_POLICIES)
def test_other_policies_keep_more_or_what_openai_harmony_keeps(word, policy, stays):
    assert what_stays(word, policy) == stays


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_peers_drop(case):
    messages = [Message.from_dict(raw) for raw in case["conversation"]["messages"]]
    # A rule by channels only parts built-in calls from what they were made for; and openai_harmony
    # stops at the first final message.
    policy = "upstream" if case["id"] == "drop-010" else "finished_turns"

    history = normalize_history(messages, policy)

    gone = [each.index for each in history.dropped]
    kept = [index for index in range(len(messages)) if index not in gone]
    assert kept == case["expected"]["kept_indices"]
    assert [each.to_dict() for each in history.messages] == [
        messages[index].to_dict() for index in kept
    ]


@pytest.mark.parametrize("policy", HistoryPolicy)
def test_policies_go_by_their_names_too(policy):
    assert get_policy(policy.value) is policy


def test_an_unknown_policy_is_refused_as_is_a_negative_count():
    with pytest.raises(ValueError, match="'all' is not a valid HistoryPolicy"):
        messages_to_drop([], "all")
    with pytest.raises(ValueError, match=r"LastTurns\.count: -1 is below 0"):
        LastTurns(-1)
    for count in (1.5, True, "1"):
        with pytest.raises(TypeError, match="is not a whole number"):
            LastTurns(count)


def test_turns_are_counted_as_they_come():
    turns = Turns()
    for letter in "uafu" + "acr" * 1000:
        turns.add(HEADERS[letter])

    assert (len(turns), turns.count, turns.decided(HistoryPolicy.FINISHED_TURNS)) == (2, 3004, 1)


DECIDED = [
    ("uafuaf", HistoryPolicy.FINISHED_TURNS, 1),
    ("uafuaf", HistoryPolicy.KEEP, 1),
    ("uafuaf", LastTurns(0), 1),
    # The last finished turn stays; it may cease to be finished, and the one before stays then.
    ("uafuaf", LastTurns(1), 0),
    ("uafuafuaf", LastTurns(1), 1),
    ("uafuafuafu", LastTurns(1), 1),
    ("uafuafuaf", LastTurns(2), 0),
    ("uafuacuafuaf", LastTurns(1), 2),
]


@pytest.mark.parametrize(("word", "policy", "count"), DECIDED)
def test_so_many_turns_are_decided_for_good(word, policy, count):
    turns = Turns()
    for letter in word:
        turns.add(HEADERS[letter])

    assert turns.decided(policy) == count


# --- Laws ----------------------------------------------------------------------------------------

words = st.text(st.sampled_from("".join(HEADERS)), max_size=16) | st.text(
    st.sampled_from("uafcrCR"), max_size=24
)
policies = st.sampled_from(POLICIES)


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


@given(words, st.sampled_from(NEVER_PARTING))
@examples(300)
def test_a_call_and_its_result_are_never_parted(word, policy):
    stays = what_stays(word, policy)

    assert all(stays[place] == letter for place, letter in enumerate(word) if letter in "cCxrR")


@given(words, st.sampled_from(NEVER_PARTING))
@examples(200)
def test_only_thoughts_go_and_none_of_an_open_turn(word, policy):
    stays = what_stays(word, policy)

    assert {letter for letter, left in zip(word, stays, strict=True) if left == "."} <= {"a", "m"}
    last = stays[max(stays.rfind(letter) for letter in "uUF") + 1 :]
    spoken = [letter for letter in word[len(word) - len(last) :] if letter in "apfcCxmno"]
    assert "." not in last or spoken[-1] == "f"


@given(words, st.integers(0, 4))
@examples(200)
def test_to_keep_more_turns_keeps_more_thoughts(word, count):
    fewer = messages_to_drop([HEADERS[letter] for letter in word], LastTurns(count + 1))
    more = messages_to_drop([HEADERS[letter] for letter in word], LastTurns(count))

    assert fewer.keys() <= more.keys()


@given(words, words, policies)
@example("uafuaf", "a", LastTurns(1))
@example("uafuafuaf", "a", LastTurns(2))
@examples(300)
def test_what_is_decided_for_good_stays_decided(word, more, policy):
    turns = Turns()
    for letter in word:
        turns.add(HEADERS[letter])
    decided, cutoff = turns.decided(policy), turns.cutoff(policy)
    before = turns.dropped(policy, 0, decided)

    for letter in more:
        turns.add(HEADERS[letter])

    assert turns.cutoff(policy) != cutoff or turns.dropped(policy, 0, decided) == before


@pytest.fixture(scope="module", params=["openai-0.0.8", "oss-0.0.11"])
def wheel(request, official_vocabulary_file):
    made = Wheel(request.param)
    yield made.or_skip()
    made.close()


@pytest.mark.slow
@examples(60)
@given(word=words)
def test_upstream_drops_what_both_wheels_drop(wheel, word):
    raw = Conversation.from_messages(messages_of(word)).to_dict()
    config = {"auto_drop_analysis": True}
    expected = wheel.tokens("render_conversation", conversation=raw, config=config)

    history = normalize_history(messages_of(word), HistoryPolicy.UPSTREAM)

    left = Conversation.from_messages(history.messages)
    assert Renderer(profile=wheel.profile).render_conversation(left, KEEP_ALL) == expected


# --- Decided once --------------------------------------------------------------------------------

PROFILE_NAMES = st.sampled_from([*PROFILES])


def words_of(message):
    """A message as a word of one letter."""
    header = header_of(message)
    return next(letter for letter, each in HEADERS.items() if each == header)


def read_back(tokens):
    """The messages that the tokens say, types in the spelling of the letters."""
    messages = [m for m in map(MessageCollector().feed, events_of(tokens, None, strict=True)) if m]
    for message in messages:
        word = (message.content_type or "").removeprefix("<|constrain|>")
        message.content_type = {"json": "<|constrain|>json", "code": "code"}.get(word)
    return messages


ROADS = {
    "its conversation": lambda history: history.conversation(),
    "messages": lambda history: Conversation(messages=history.messages),
    "from_messages": lambda history: Conversation.from_messages(history.messages),
    "a conversation's messages": lambda history: Conversation(
        messages=history.conversation().messages
    ),
    "from a conversation": lambda history: Conversation.from_messages(history.conversation()),
    "model_validate": lambda history: Conversation.model_validate({"messages": history.messages}),
    "set": lambda history: with_messages(Conversation(), history.messages),
    "a tuple in front": lambda history: Conversation(messages=() + history.messages),
    "a list in front": lambda history: Conversation.from_messages([] + history.messages),
    "a list behind": lambda history: Conversation.from_messages(history.messages + []),
    "a list's sum": lambda history: Conversation(messages=history.conversation().messages + []),
    "a list's sum in front": lambda history: Conversation(
        messages=[] + history.conversation().messages
    ),
    "a slice": lambda history: Conversation(messages=history.messages[:]),
    "a list's slice": lambda history: Conversation(messages=history.conversation().messages[:]),
    "a list's copy": lambda history: Conversation(messages=history.conversation().messages.copy()),
    "copy": lambda history: copy.copy(history.conversation()),
    "deepcopy": lambda history: copy.deepcopy(history).conversation(),
    "deepcopy of it": lambda history: copy.deepcopy(history.conversation()),
    "model_copy": lambda history: history.conversation().model_copy(deep=True),
    "pickle": lambda history: pickle.loads(pickle.dumps(history)).conversation(),
    "pickle of it": lambda history: pickle.loads(pickle.dumps(history.conversation())),
}


def with_messages(conversation, messages):
    conversation.messages = messages
    return conversation


@pytest.mark.parametrize("road", ROADS.values(), ids=ROADS)
@pytest.mark.parametrize("profile", PROFILES)
def test_what_was_decided_is_not_pruned_again(road, profile):
    word = "uaCRafuaf"
    conversation = road(normalize_history(messages_of(word), HistoryPolicy.KEEP))
    conversation.messages.append(message_of("u", "And now?"))
    conversation.messages += [message_of("a"), message_of("f")]

    tokens = Renderer(profile=profile).render_conversation(conversation)

    assert "".join(map(words_of, read_back(tokens))) == word + "uaf"


@given(words, policies, PROFILE_NAMES)
@examples(200)
def test_a_decided_history_is_in_the_prompt_whole(word, policy, profile):
    history = normalize_history(messages_of(word), policy)
    renderer = Renderer(profile=profile)

    tokens = renderer.render_conversation(history.conversation())

    assert read_back(tokens) == list(history.messages)
    training = renderer.render_conversation_for_training(history.conversation())
    completion = renderer.render_conversation_for_completion(history.conversation(), "user")
    assert training[:-1] == tokens[:-1]
    assert completion[: len(tokens)] == tokens


def test_a_config_that_is_given_is_obeyed_also_for_a_decided_history():
    history = normalize_history(messages_of("uaf"), HistoryPolicy.KEEP)
    drop = RenderConversationConfig(auto_drop_analysis=True)

    tokens = Renderer().render_conversation(history.conversation(), drop)

    assert "".join(map(words_of, read_back(tokens))) == "uf"


def test_the_mark_of_a_decided_history_is_seen_by_nothing_but_the_renderer():
    messages = messages_of("uaf")
    decided = normalize_history(messages, HistoryPolicy.KEEP)
    plain, marked = Conversation.from_messages(messages), decided.conversation()

    assert decided.messages == tuple(messages)
    assert decided.messages[0] is messages[0] is marked.messages[0]
    assert marked == plain
    assert marked.messages == messages
    assert repr(marked) == repr(plain)
    assert marked.to_dict() == plain.to_dict()
    assert marked.to_json() == plain.to_json()
    assert marked.model_dump() == plain.model_dump()
    assert type(marked.model_dump()["messages"]) is type(marked.to_dict()["messages"]) is list
    assert marked.model_dump_json() == plain.model_dump_json()


@pytest.mark.parametrize("profile", PROFILES)
def test_a_plain_list_is_not_known_to_be_decided(profile):
    messages = normalize_history(messages_of("uaf"), HistoryPolicy.KEEP).messages
    conversation = Conversation(messages=[*messages, message_of("u")])

    tokens = Renderer(profile=profile).render_conversation(conversation)

    assert "".join(map(words_of, read_back(tokens))) == "ufu"


@given(words)
@examples(200)
def test_the_guide_s_layout_drops_by_itself_what_the_default_policy_drops(word):
    renderer = Renderer(profile="guide")

    by_itself = renderer.render_conversation(Conversation(messages=messages_of(word)))

    decided = normalize_history(messages_of(word)).conversation()
    assert by_itself == renderer.render_conversation(decided)
    asked = RenderConversationConfig(auto_drop_analysis=True)
    assert by_itself == renderer.render_conversation(decided, asked)


def test_a_result_without_a_channel_is_on_commentary_in_a_transcript_too():
    transcript = Transcript()
    call, result = message_of("c", "{}"), message_of("r", "2.4 m")
    result.channel = result.recipient = None

    transcript.add_messages([call, result])

    assert transcript.messages == (call, message_of("r", "2.4 m"))


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


# --- The document --------------------------------------------------------------------------------

DOCUMENT = Path(__file__).parents[2].joinpath("docs/history.md").read_text("utf-8")


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL))
def test_the_programs_of_the_document_run(code):
    exec(compile(code, "history.md", "exec"), {})
