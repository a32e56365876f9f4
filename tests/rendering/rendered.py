"""Messages to render, their parts, and the way back: what the tests of rendering share."""

import pytest
from hypothesis import strategies as st
from strategies import VOCABULARY, events_of

from harmony_stream.errors import RenderError
from harmony_stream.parsing.collect import MessageCollector
from harmony_stream.rendering.profiles import PROFILES
from harmony_stream.rendering.render import Renderer
from harmony_stream.values.messages import Author, Conversation, Message, Role

RENDERERS = {name: Renderer(profile=name) for name in PROFILES}
CALL = ("commentary", "functions.f")

TYPE_WORDS = st.sampled_from(["json", "code", "<|constrain|>json"])
PLAIN_NAMES = st.from_regex(r"[a-z]{2,5}(\.[a-z]{1,3})?", fullmatch=True).filter(
    lambda name: name not in {role.value for role in Role}
)
CHANNELS = st.sampled_from(["analysis", "commentary", "final"])
CONTENTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["<|end|>", "<|start|>system"]
)


def text_of(tokens):
    return VOCABULARY.decode(tokens)


def assistant(text="", channel=None, recipient=None, content_type=None, name=None):
    author = {"role": "assistant", "name": name}
    return Message(author=author, content=text, channel=channel, recipient=recipient,
                   content_type=content_type)  # fmt: skip


def result(text="", channel="commentary", recipient="assistant", name="functions.f"):
    author = Author(role=Role.TOOL, name=name)
    return Message(author=author, content=text, channel=channel, recipient=recipient)


def user(text=""):
    return Message.from_role_and_content(Role.USER, text)


def messages_read_in(tokens):
    """The messages that a strict parser reads."""
    collector = MessageCollector()
    read = [collector.feed(event) for event in events_of(tokens, None, strict=True)]
    return [message for message in read if message]


def conversation(*messages):
    return Conversation.from_messages(messages)


def assert_refused(renderer, message, sentence):
    """A message is refused alone, and among others with its place."""
    with pytest.raises(RenderError) as alone:
        renderer.render(message)
    with pytest.raises(RenderError) as among_others:
        renderer.render_conversation(conversation(user(), message))

    assert str(alone.value) == sentence
    assert str(among_others.value) == f"message 1: {sentence}"
