"""Headers: how they are laid out, and which are refused since they would be read otherwise."""

import inspect

import pytest
from rendered import (
    CALL,
    RENDERERS,
    assert_refused,
    assistant,
    messages_read_in,
    result,
    text_of,
)
from strategies import VOCABULARY, tokens_of

from harmony_stream.errors import RenderError
from harmony_stream.parsing.parser import EventParser
from harmony_stream.rendering.header import MAX_HEADER_TOKENS, NAMES, is_channel, is_tool_name
from harmony_stream.rendering.profiles import PROFILES

# A message, and what stands between its <|start|> and its content in each profile.
HEADERS = {
    "an answer": (
        assistant("", "final"),
        "assistant<|channel|>final",
        "assistant<|channel|>final",
        "assistant<|channel|>final",
    ),
    "a call": (
        assistant("", *CALL, "<|constrain|>json"),
        "assistant to=functions.f<|channel|>commentary <|constrain|>json",
        "assistant<|channel|>commentary to=functions.f <|constrain|>json",
        "assistant<|channel|>commentary to=functions.f <|constrain|>json",
    ),
    "a call with the type bare": (
        assistant("", *CALL, "json"),
        "assistant to=functions.f<|channel|>commentary json",
        "assistant<|channel|>commentary to=functions.f <|constrain|>json",
        "assistant<|channel|>commentary to=functions.f <|constrain|>json",
    ),
    "a call with a space after the marker": (
        assistant("", *CALL, "<|constrain|> json"),
        "assistant to=functions.f<|channel|>commentary <|constrain|> json",
        "assistant<|channel|>commentary to=functions.f <|constrain|> json",
        "assistant<|channel|>commentary to=functions.f <|constrain|>json",
    ),
    "a call of python": (
        assistant("", "analysis", "python", "code"),
        "assistant to=python<|channel|>analysis code",
        "assistant to=python<|channel|>analysis <|constrain|>code",
        "assistant<|channel|>analysis to=python code",
    ),
    "a call without a channel": (
        assistant("", None, "functions.f", "<|constrain|>json"),
        "assistant to=functions.f <|constrain|>json",
        "assistant to=functions.f <|constrain|>json",
        "assistant to=functions.f <|constrain|>json",
    ),
    "a named author": (
        assistant("", *CALL, name="bob"),
        "assistant:bob to=functions.f<|channel|>commentary",
        "assistant:bob<|channel|>commentary to=functions.f",
        "assistant:bob<|channel|>commentary to=functions.f",
    ),
    "a message to all": (
        assistant("", "final", "all"),
        "assistant<|channel|>final",
        "assistant<|channel|>final",
        "assistant<|channel|>final",
    ),
    "a result": (
        result(),
        "functions.f to=assistant<|channel|>commentary",
        "functions.f<|channel|>commentary to=assistant",
        "functions.f to=assistant<|channel|>commentary",
    ),
    "a result to nobody": (
        result(recipient=None),
        "functions.f<|channel|>commentary",
        "functions.f<|channel|>commentary",
        "functions.f to=assistant<|channel|>commentary",
    ),
    "a result without a channel": (
        result(channel=None),
        "functions.f to=assistant",
        "functions.f to=assistant",
        "functions.f to=assistant<|channel|>commentary",
    ),
    "a result without anything": (
        result(channel=None, recipient="all"),
        "functions.f",
        "functions.f",
        "functions.f<|channel|>commentary",
    ),
    "a result of python": (
        result("", "analysis", name="python"),
        "python to=assistant<|channel|>analysis",
        "python to=assistant<|channel|>analysis",
        "python to=assistant<|channel|>analysis",
    ),
}


@pytest.mark.parametrize(("message", *"abc"), HEADERS.values(), ids=HEADERS)
def test_headers_are_laid_out_by_profile(message, a, b, c):
    for name, header in zip(PROFILES, (a, b, c), strict=True):
        text = text_of(RENDERERS[name].render(message))
        assert text.rpartition("<|message|>")[0] == f"<|start|>{header}"


REFUSALS = {
    "a tool without a name": (result(name=None),
                              "author.name is missing. Tools should have a name!"),
    "a tool with an empty name": (result(name=""),
                                  "author.name '' is missing. Tools should have a name!"),
    "a tool that is a role": (result(name="System"),
                              "author.name 'System' of a tool would be read as another role"),
    "a tool that is a named role": (
        result(name="user:x"), "author.name 'user:x' of a tool would be read as another role"),
    "a tool that is a recipient": (result(name="to=functions.f"),
                                   "author.name 'to=functions.f' would be read as a recipient"),
    "a channel that is a recipient": (assistant("", "to=functions.f"),
                                      "channel 'to=functions.f' would be read as a recipient"),
    "a type that is a recipient": (assistant("", "final", None, "<|constrain|> to=f"),
                                   "content_type 'to=f' would be read as a recipient"),
    "white space in a name": (assistant("", name="a\u2028b"),
                              "author.name 'a\\u2028b' holds white space, "
                              "which ends a word of a header"),
    "white space in a channel": (assistant("", "final\n"),
                                 "channel 'final\\n' holds white space, "
                                 "which ends a word of a header"),
    "a marker in a type": (assistant("", "final", None, "<|constrain|>json<|message|>"),
                           "content_type 'json<|message|>' holds <|, "
                           "with which only special tokens begin"),
    "half a character in a text": (
        assistant("caf\udce9!", "final"),
        "content '\\udce9' holds half a character (a surrogate) at place 3; leave it out"),
    "half a character in a channel": (
        assistant("", "a\ud800"), "channel 'a\\ud800' holds half a character (a surrogate)"),
    "an author with an empty name": (
        assistant("", "final", name=""),
        "author.name '' is empty, and would be read as a tool's"),
    "a tool that is a channel": (result("", None, None, name="analysis"),
                                 "author.name 'analysis' of a tool would be read as a channel"),
    "an empty channel": (assistant("", ""), "channel '' is empty"),
    "an empty recipient": (assistant("", "commentary", ""), "recipient '' is empty"),
    "an empty type": (assistant("", "final", content_type=""), "content_type '' is empty"),
    "a marker of a type alone": (assistant("", "final", content_type="<|constrain|> "),
                                 "content_type '' is empty"),
    "a recipient with content glued to it": (
        assistant("", "commentary", "functions.a;b"),
        f"recipient 'functions.a;b' would be read with recipient 'functions.a'; {NAMES}"),
    "a recipient that nobody sees": (
        assistant("", "commentary", "\u200b"),
        f"recipient '\\u200b' would be read with recipient None; {NAMES}"),
    "a recipient that ends a comment": (
        assistant("", "commentary", "*/"),
        f"recipient '*/' would be read with recipient None; {NAMES}"),
    "a control character": (
        assistant("", "commentary", "f\0"),
        f"recipient 'f\\x00' would be read with recipient 'f'; {NAMES}"),
    "content glued to a channel": (
        assistant("", "final{"), f"channel 'final{{' would be read with channel 'final'; {NAMES}"),
    "a type that is no type": (
        assistant("", "final", content_type="a-"),
        f"content_type 'a-' would be read with content_type None; {NAMES}"),
    "a tool's name that is none": (
        result(name="f;g"), f"author.name 'f;g' would be read with role 'assistant'; {NAMES}"),
    "a tool that answers on final": (
        result("", "final"), "channel 'final' would be read with role 'assistant'"),
    "a tool that calls another": (
        result(recipient="functions.g"),
        "recipient 'functions.g' would be read with role 'assistant'"),
}  # fmt: skip


@pytest.mark.parametrize(("message", "sentence"), REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("renderer", RENDERERS.values(), ids=RENDERERS)
def test_a_message_is_refused_for(message, sentence, renderer):
    assert_refused(renderer, message, sentence)


# What one layout can write and another cannot: the words stand beside others there.
REFUSED_BY = [
    (assistant("?", content_type="final"), PROFILES,
     "content_type 'final' would be read with channel 'final'"),
    (assistant("?", content_type="assistant"), ["openai-0.0.8", "guide"],
     f"content_type 'assistant' would be read with content_type None; {NAMES}"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "refusing", "sentence"), REFUSED_BY)
@pytest.mark.parametrize("name", PROFILES)
def test_a_header_is_refused_where_the_layout_makes_it_another(message, refusing, sentence, name):
    if name not in refusing:
        assert RENDERERS[name].render(message)
        return
    with pytest.raises(RenderError) as caught:
        RENDERERS[name].render(message)
    assert str(caught.value).startswith(sentence)


def test_a_header_may_be_as_long_as_parsers_read_it():
    limit = inspect.signature(EventParser).parameters["max_header_tokens"].default
    rest = len(tokens_of("assistant:<|channel|>final"))
    letter = "\u1780"  # one token, wherever it stands
    message = assistant("", "final", name=letter * (limit - rest + 1))
    with pytest.raises(RenderError, match=r"author.name '.*' is too long: a header may"):
        RENDERERS["guide"].render(message)
    message.author.name = letter * (limit - rest)

    tokens = RENDERERS["guide"].render(message)

    assert tokens.index(VOCABULARY.special_tokens["<|message|>"]) == 1 + limit == 65
    assert messages_read_in(tokens) == [message]
    assert limit == MAX_HEADER_TOKENS


# a word, whether a tool can be called by it, and whether it can be a channel
WORDS = [
    ("functions.f", True, True),
    ("港口", True, True),
    ("a/b", True, True),
    ("a//b", False, True),
    ("final", True, True),
    ("assistant:final", True, True),
    ("f = () => any;", False, False),
    ("to=f", False, False),
    ("f\n", False, False),
    ("<|end|>", False, False),
    ("", False, False),
]


@pytest.mark.parametrize(("word", "names_a_tool", "is_one"), WORDS)
def test_a_word_is_a_name_or_a_channel_if_it_is_read_back_as_one(word, names_a_tool, is_one):
    assert (is_tool_name(word), is_channel(word)) == (names_a_tool, is_one)
