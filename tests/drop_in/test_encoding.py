"""HarmonyEncoding beside openai_harmony's: text, tokens, names, stop tokens, loading."""

import copy
import pickle
import re

import numpy
import openai_harmony
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import SPECIAL, UNKNOWN, examples

from harmony_stream.drop_in import familiar
from harmony_stream.drop_in.encoding import (
    HarmonyEncoding,
    HarmonyEncodingName,
    load_harmony_encoding,
)
from harmony_stream.errors import HarmonyError
from harmony_stream.values import messages
from harmony_stream.values.faults import FaultKind
from harmony_stream.values.messages import Message, RenderConversationConfig, RenderOptions, Role
from harmony_stream.vocabulary import Vocabulary

OURS = load_harmony_encoding("HarmonyGptOss")


@pytest.fixture(scope="module")
def theirs(official_vocabulary_file):
    return openai_harmony.load_harmony_encoding("HarmonyGptOss")


# --- Loading --------------------------------------------------------------------------------------


def test_loading_gives_one_object_for_the_name_and_the_enum():
    assert load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS) is OURS
    assert load_harmony_encoding("HarmonyGptOss", profile="openai-0.0.8") is OURS
    assert load_harmony_encoding("HarmonyGptOss", vocabulary=Vocabulary.default()) is OURS


@pytest.mark.parametrize("profile", ["openai-0.0.8", "oss-0.0.11", "guide"])
def test_the_environment_chooses_the_profile_of_those_who_name_none(profile, monkeypatch):
    monkeypatch.setenv("HARMONY_STREAM_PROFILE", profile)

    chosen = load_harmony_encoding("HarmonyGptOss")

    assert chosen is load_harmony_encoding("HarmonyGptOss", profile=profile)
    assert load_harmony_encoding("HarmonyGptOss", profile="guide").profile.name == "guide"


def test_an_empty_profile_in_the_environment_is_none(monkeypatch):
    monkeypatch.setenv("HARMONY_STREAM_PROFILE", "")

    assert load_harmony_encoding("HarmonyGptOss") is OURS


def test_an_unknown_profile_in_the_environment_is_told_with_the_variable(monkeypatch):
    monkeypatch.setenv("HARMONY_STREAM_PROFILE", "oss")

    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole sentence is compared
        load_harmony_encoding("HarmonyGptOss")

    assert str(caught.value) == (
        "HARMONY_STREAM_PROFILE: 'oss' is not a profile; use one of openai-0.0.8, oss-0.0.11, guide"
    )


def test_each_profile_and_each_vocabulary_has_an_encoding_of_its_own():
    guide = load_harmony_encoding("HarmonyGptOss", profile="guide")
    other = Vocabulary.from_tiktoken(
        Vocabulary.default().tiktoken_encoding, special_tokens={"<|call|>": 200013}
    )
    moved = load_harmony_encoding("HarmonyGptOss", vocabulary=other)

    assert guide is load_harmony_encoding("HarmonyGptOss", profile="guide")
    assert guide is not OURS
    assert moved is load_harmony_encoding("HarmonyGptOss", vocabulary=other)
    assert moved.stop_tokens_for_assistant_actions() == [200002, 200013]
    assert moved.name == other.name


@pytest.mark.parametrize("name", ["o200k_harmony", "", None, 5])
def test_an_unknown_name_is_a_value_error_as_there(theirs, name):
    sentence = f"Invalid HarmonyEncodingName: {name}"

    with pytest.raises(ValueError, match=sentence):
        openai_harmony.load_harmony_encoding(name)
    with pytest.raises(ValueError, match=f"{sentence}; expected HarmonyGptOss"):
        load_harmony_encoding(name)


def test_an_unknown_profile_names_those_that_there_are():
    with pytest.raises(ValueError, match=r"'openai-1'; expected one of openai-0\.0\.8, "):
        load_harmony_encoding("HarmonyGptOss", profile="openai-1")


def test_an_encoding_says_what_it_is_and_can_be_copied_and_pickled():
    twin = pickle.loads(pickle.dumps(OURS))

    assert repr(OURS) == "<HarmonyEncoding 'HarmonyGptOss', profile 'openai-0.0.8'>"
    assert repr(twin) == repr(copy.deepcopy(OURS)) == repr(OURS)
    assert twin.vocabulary is OURS.vocabulary


# --- Names and stop tokens ------------------------------------------------------------------------


def test_the_name_is_the_same(theirs):
    assert OURS.name == theirs.name == str(HarmonyEncodingName.HARMONY_GPT_OSS)


def test_special_tokens_are_the_same(theirs):
    assert OURS.special_tokens_set == theirs.special_tokens_set
    assert OURS.special_tokens_set is OURS.special_tokens_set
    for token in [0, 12194, *range(199990, 201100)]:
        assert OURS.is_special_token(token) == theirs.is_special_token(token)


def test_stop_tokens_are_the_same_in_an_order_that_is_always_the_same(theirs):
    assert OURS.stop_tokens() == sorted(theirs.stop_tokens())
    assert OURS.stop_tokens_for_assistant_actions() == sorted(
        theirs.stop_tokens_for_assistant_actions()
    )


def test_a_list_of_stop_tokens_belongs_to_who_asked_for_it():
    OURS.stop_tokens().clear()

    assert len(OURS.stop_tokens()) == 3


# --- Encoding -------------------------------------------------------------------------------------

texts = st.text() | st.lists(
    st.sampled_from([*sorted(SPECIAL)[:9], "<|start|>", "<|end|>", "Hi", " ", "<|", "|>", "\ud83d"])
).map("".join)
spellings = st.sampled_from(["<|start|>", "<|end|>", "<|channel|>", "<|no such|>", "Hi"])
specials = st.just("all") | st.sets(spellings) | st.lists(spellings).map(tuple)


def outcome(encoding, text, options):
    try:
        return encoding.encode(text, **options)
    except (HarmonyError, openai_harmony.HarmonyError) as error:
        return str(error)[: len("Encountered text corresponding to disallowed special token '")]


@examples(150)
@given(
    text=texts,
    options=st.fixed_dictionaries(
        {}, optional={"allowed_special": specials, "disallowed_special": specials}
    ),
)
@example(text="\ud83d\ude00 \udc00", options={})
@example(text="a<|start|>b", options={"allowed_special": "all"})
@example(text="a<|start|>b", options={"disallowed_special": ()})
@example(text="a<|start|>b", options={"disallowed_special": ["b"]})
def test_text_is_encoded_the_same_or_refused_the_same(theirs, text, options):
    assert outcome(OURS, text, options) == outcome(theirs, text, options)


def test_a_refusal_names_the_text_and_the_three_ways_out():
    with pytest.raises(HarmonyError) as caught:
        OURS.encode("a <|start|> b <|end|>")

    sentence = str(caught.value)
    assert sentence.startswith(
        "Encountered text corresponding to disallowed special token '<|start|>'."
    )
    for remedy in ["allowed_special={'<|start|>', ...}", "disallowed_special=()"]:
        assert remedy in sentence
    assert isinstance(caught.value, RuntimeError)


def test_a_refusal_is_the_same_again_and_for_other_sets():
    for _ in range(2):
        with pytest.raises(HarmonyError, match="special token 'b'"):
            OURS.encode("abc", disallowed_special={"b"})
        assert OURS.encode("abc", disallowed_special={"d"}) == OURS.encode("abc")


# --- Decoding -------------------------------------------------------------------------------------

tokens = st.lists(
    st.integers(0, 201088) | st.integers(0, 255) | st.sampled_from([9552, 4103, 200006]), max_size=8
)


@examples(150)
@given(ids=tokens, errors=st.sampled_from(["replace", "ignore", "backslashreplace"]))
def test_tokens_are_decoded_the_same(theirs, ids, errors):
    assert OURS.decode(ids) == theirs.decode(ids)
    assert OURS.decode(ids, errors=errors) == theirs.decode(ids, errors=errors)


@examples(150)
@given(ids=tokens)
def test_whole_characters_only_are_decoded_the_same_or_refused(theirs, ids):
    try:
        expected = theirs.decode_utf8(ids)
    except openai_harmony.HarmonyError as error:
        place = re.search(r"from index \d+$", str(error))[0]
        with pytest.raises(HarmonyError, match=r"^Could not decode tokens: Invalid utf-8 sequence"):
            OURS.decode_utf8(ids)
        with pytest.raises(HarmonyError, match=rf"{place}$"):
            OURS.decode_utf8(ids)
    else:
        assert OURS.decode_utf8(ids) == expected


@pytest.mark.parametrize("method", ["decode", "decode_utf8"])
@pytest.mark.parametrize("token", [UNKNOWN, 99999999])
def test_an_unknown_token_is_refused_with_its_id(theirs, method, token):
    for encoding, error in [(theirs, openai_harmony.HarmonyError), (OURS, HarmonyError)]:
        with pytest.raises(error, match=f"Invalid token for decoding: {token}"):
            getattr(encoding, method)([12194, 200006, token, token + 1])


@pytest.mark.parametrize("method", ["decode", "decode_utf8"])
def test_a_negative_token_is_refused_too(method):
    with pytest.raises(HarmonyError, match="Invalid token for decoding: -1"):
        getattr(OURS, method)([-1])


@pytest.mark.parametrize("wrong", [[5.0], ["a"], [200006.0], 5, None])
def test_what_is_no_list_of_integers_is_a_type_error_as_there(theirs, wrong):
    for encoding in (theirs, OURS):
        with pytest.raises(TypeError):
            encoding.decode(wrong)
        with pytest.raises(TypeError):
            encoding.decode_utf8(wrong)


def test_errors_of_the_codec_come_through(theirs):
    for encoding in (theirs, OURS):
        with pytest.raises(UnicodeDecodeError):
            encoding.decode([9552], errors="strict")
        with pytest.raises(LookupError):
            encoding.decode([9552], errors="no such")


def test_integers_of_numpy_are_tokens():
    ids = numpy.array([200006, 12194])

    assert OURS.decode(ids) == OURS.decode_utf8(ids) == "<|start|>Hi"
    assert OURS.is_special_token(ids[0])
    with pytest.raises(TypeError):
        OURS.is_special_token(5.0)


# --- Conversations --------------------------------------------------------------------------------


def both(build):
    """The same value in both libraries."""
    return build(openai_harmony), build(messages)


def turn(library):
    message = library.Message.from_role_and_content
    return library.Conversation.from_messages(
        [
            message(
                library.Role.SYSTEM,
                library.SystemContent.new().with_conversation_start_date("2026-01-30"),
            ),
            message(library.Role.USER, "What is 2 + 2?"),
            message(library.Role.ASSISTANT, "Easy.").with_channel("analysis"),
            message(library.Role.ASSISTANT, "4").with_channel("final"),
        ]
    )


def test_conversations_are_rendered_the_same(theirs):
    their_turn, our_turn = both(turn)
    keep = RenderConversationConfig(auto_drop_analysis=False)
    their_keep = openai_harmony.RenderConversationConfig(auto_drop_analysis=False)

    for method in ("render_conversation", "render_conversation_for_training"):
        expected = getattr(theirs, method)
        assert getattr(OURS, method)(our_turn) == expected(their_turn)
        assert getattr(OURS, method)(our_turn, keep) == expected(their_turn, their_keep)
        assert getattr(OURS, method)(our_turn, config=keep) == expected(their_turn, their_keep)
    assert OURS.render_conversation_for_completion(
        our_turn, Role.ASSISTANT
    ) == theirs.render_conversation_for_completion(their_turn, openai_harmony.Role.ASSISTANT)
    assert OURS.render_conversation_for_completion(
        our_turn, Role.USER, config=keep
    ) == theirs.render_conversation_for_completion(
        their_turn, openai_harmony.Role.USER, config=their_keep
    )


def test_single_messages_are_rendered_the_same(theirs):
    options = RenderOptions(conversation_has_function_tools=True)
    their_options = openai_harmony.RenderOptions(conversation_has_function_tools=True)

    for theirs_each, ours_each in zip(*both(turn), strict=True):
        assert OURS.render(ours_each) == theirs.render(theirs_each)
        assert OURS.render(ours_each, options) == theirs.render(theirs_each, their_options)
        assert OURS.render(ours_each, render_options=options) == OURS.render(ours_each, options)


def test_a_profile_changes_the_layout():
    call = Message.from_role_and_content(Role.ASSISTANT, "{}").with_channel("commentary")
    call = call.with_recipient("functions.f").with_content_type("json")

    layouts = {
        profile: load_harmony_encoding("HarmonyGptOss", profile=profile)
        for profile in ("openai-0.0.8", "oss-0.0.11", "guide")
    }

    written = {name: each.decode(each.render(call)) for name, each in layouts.items()}
    assert written == {
        "openai-0.0.8": (
            "<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{}<|call|>"
        ),
        "oss-0.0.11": (
            "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>"
            "{}<|call|>"
        ),
        "guide": (
            "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>"
            "{}<|call|>"
        ),
    }


# --- Completions ----------------------------------------------------------------------------------


def test_the_role_may_be_given_as_text_and_tokens_as_any_iterable():
    ids = OURS.encode("<|channel|>final<|message|>Hi<|return|>", allowed_special="all")

    expected = OURS.parse_messages_from_completion_tokens(ids, Role.ASSISTANT)
    assert OURS.parse_messages_from_completion_tokens(tuple(ids), "assistant") == expected
    assert OURS.parse_messages_from_completion_tokens(numpy.array(ids), role="assistant")
    assert expected[0].content[0].text == "Hi"


def test_of_the_faults_of_one_header_the_one_is_raised_that_openai_harmony_finds_first(theirs):
    ids = OURS.encode("<|start|>who? a b<|channel|><|message|>", allowed_special="all")

    for encoding, error in [(theirs, openai_harmony.HarmonyError), (OURS, HarmonyError)]:
        with pytest.raises(error, match=r"^channel marker present but no channel value found"):
            encoding.parse_messages_from_completion_tokens(ids)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Hi", "Unexpected token 12194 while expecting start token 200006"),
        ("<|start|><|message|>", "message header did not contain a role"),
        ("<|start|>who?<|message|>", "Unknown role: who?"),
        ("<|start|>user<|channel|>", "Unexpected EOS while waiting for message header to complete"),
        (
            "<|start|>user<|channel|>final<|end|>",
            "Unexpected EOS while waiting for message header to complete",
        ),
        (
            "<|start|>user<|channel|>final Hi, you<|end|>",
            "Unexpected EOS while waiting for message header to complete",
        ),
        (
            "<|start|>user<|channel|>final Hi, you all<|start|>assistant",
            "Unexpected EOS while waiting for message header to complete",
        ),
        (
            "<|start|>user<|channel|>final Hi, you all<|end|><|start|>user<|message|>",
            'unexpected tokens remaining in message header: Some("Hi, you all")',
        ),
        (
            "<|start|>user<|channel|>final Hi, you all<|start|>user<|message|>",
            'unexpected tokens remaining in message header: Some("Hi, you all")',
        ),
        ("<|start|>user<|end|>Hi", "Unexpected EOS while waiting for message header to complete"),
        (
            "<|start|>user<|channel|>final Hi, you all<|message|>",
            'unexpected tokens remaining in message header: Some("Hi , you all")',
        ),
    ],
)
def test_a_fault_is_raised_in_both_libraries_words(theirs, text, phrase):
    ids = OURS.encode(text, allowed_special="all")

    with pytest.raises(HarmonyError, match=f"^{re.escape(phrase)}: .* at position "):
        OURS.parse_messages_from_completion_tokens(iter(ids))
    with pytest.raises(openai_harmony.HarmonyError, match=f"^{re.escape(phrase.split('(')[0])}"):
        theirs.parse_messages_from_completion_tokens(ids)


def test_the_first_header_at_fault_is_the_one_that_is_raised():
    ids = OURS.encode(
        "<|start|>who?<|message|>Hi<|end|>Hi<|start|>user<|channel|><|message|>",
        allowed_special="all",
    )

    with pytest.raises(HarmonyError, match=r"^Unknown role: who\?"):
        OURS.parse_messages_from_completion_tokens(ids)


# What a completion says besides its messages: (role, completion, all that it says).
LEFT = [
    ("assistant", "Let me look.<|channel|>final<|message|>4<|return|>", ["Let me look.", "4"]),
    (None, "<|start|>what?<|message|>4<|end|>", ["what?", "4"]),
    ("assistant", "<|channel|>final The answer is 4.<|start|>assistant", ["The answer is 4."]),
    ("assistant", "<|channel|>final The answer is 4.<|end|>", ["The answer is 4."]),
    ("assistant", "<|channel|>final<|message|>4<|end|>Bye.<|start|>assistant", ["4", "Bye."]),
    ("assistant", "<|channel|>final<|message|>4<|end|>Bye.<|end|>", ["4", "Bye."]),
    ("user", "<|message|>4<|end|>Bye.<|start|>assistant", ["4", "Bye."]),
    (None, "<|start|>assistant:42<|end|>", [":42"]),
    # A header without words says nothing.
    ("assistant", "<|channel|>final<|message|>4<|end|>assistant<|start|>", ["4"]),
    ("assistant", "<|channel|>commentary to=functions.f<|start|>assistant", []),
    ("assistant", "<|channel|>commentary to=functions.f", []),
]


@pytest.mark.parametrize(("role", "text", "said"), LEFT)
def test_without_strictness_all_text_is_in_a_message(role, text, said):
    ids = OURS.encode(text, allowed_special="all")

    parsed = OURS.parse_messages_from_completion_tokens(ids, role, strict=False)

    assert [message.content[0].text for message in parsed] == said
    assert [message.author.role for message in parsed] == [Role(role or "assistant")] * len(said)


@pytest.mark.parametrize(("role", "text", "said"), [row for row in LEFT if row[2]])
def test_strictly_no_text_is_lost_without_an_error(role, text, said):
    ids = OURS.encode(text, allowed_special="all")

    with pytest.raises(HarmonyError):
        OURS.parse_messages_from_completion_tokens(ids, role)


def test_what_openai_harmony_takes_for_text_is_no_error(theirs):
    ids = OURS.encode(
        "<|channel|>analysis<|message|>Hm<|channel|>final It is 4.<|return|>", allowed_special="all"
    )

    theirs.parse_messages_from_completion_tokens(ids, openai_harmony.Role.ASSISTANT)
    parsed = OURS.parse_messages_from_completion_tokens(ids, "assistant")

    texts = [(message.channel, message.content[0].text) for message in parsed]
    assert texts == [("analysis", "Hm"), ("final", "It is 4.")]


def test_nothing_is_raised_for_what_is_repaired_silently():
    repaired = set(FaultKind) - set(familiar._PHRASES)
    ids = OURS.encode("<|start|>user<|message|>a<|constrain|>b<|end|>", allowed_special="all")

    assert OURS.parse_messages_from_completion_tokens(ids)[0].content[0].text == "ab"
    assert repaired == {
        *(FaultKind.MISSING_END, FaultKind.UNEXPECTED_MARKER),
        *(FaultKind.DUPLICATE_CHANNEL, FaultKind.DUPLICATE_RECIPIENT),
        *(FaultKind.DUPLICATE_CONSTRAIN, FaultKind.EMPTY_RECIPIENT, FaultKind.EMPTY_CONSTRAIN),
        *(FaultKind.UNKNOWN_TOKEN, FaultKind.INVALID_UTF8_IN_HEADER),
    }


@pytest.mark.parametrize("text", ["<|start|>assistant<|channel|>final<|message|>4<|return|>"])
@pytest.mark.parametrize("head", ["", "<|start|>user"])
def test_a_second_start_after_nothing_but_a_role_is_no_error(head, text):
    ids = OURS.encode(head + text, allowed_special="all")

    role = None if head else "assistant"
    assert len(OURS.parse_messages_from_completion_tokens(ids, role)) == 1


def test_an_encoding_made_by_hand_is_that_of_the_default():
    assert repr(HarmonyEncoding()) == repr(OURS)
