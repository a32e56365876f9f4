"""What of a conversation goes back to the model."""

# ruff: noqa: RUF005 - sums of decided histories are what is tested; unpacked they are plain lists

import copy
import json
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from letters import HEADERS, message_of, messages_of, policies, words
from reference import Wheel
from strategies import events_of, examples

from harmony_stream.history import (
    HistoryPolicy,
    normalize_history,
)
from harmony_stream.history.transcript import Transcript
from harmony_stream.parsing.collect import MessageCollector
from harmony_stream.rendering.header import header_of
from harmony_stream.rendering.profiles import PROFILES
from harmony_stream.rendering.render import Renderer
from harmony_stream.values.messages import Conversation, Message, RenderConversationConfig

CASES = {
    case["id"]: case
    for case in json.loads(Path(__file__).parents[1].joinpath("cases/history.json").read_text())
    if case["id"].startswith("drop-")
}
KEEP_ALL = RenderConversationConfig(auto_drop_analysis=False)


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


# --- The document --------------------------------------------------------------------------------

DOCUMENT = Path(__file__).parents[2].joinpath("docs/history.md").read_text("utf-8")


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL))
def test_the_programs_of_the_document_run(code):
    exec(compile(code, "history.md", "exec"), {})
