"""Requests of both APIs, and short forms of what they become."""

import json
import pathlib

from hypothesis import strategies as st

from harmony_stream import parse
from harmony_stream.adapters.conversations import (
    conversation_from_chat,
    conversation_from_responses,
)
from harmony_stream.rendering.render import Renderer
from harmony_stream.values.messages import Author, Message, Role

ROOT = pathlib.Path(__file__).parents[2]
CASES = json.loads((ROOT / "tests" / "cases" / "history.json").read_text("utf-8"))

QUESTION = {"role": "user", "content": "q"}
TIDE = {
    "name": "tide",
    "description": "Height of the tide.",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
}
FUNCTION = {"type": "function", "function": TIDE}
LIST = {"type": "array", "items": {"type": "string"}}


# -- Short names --


def calling(name="tide", arguments="{}", **fields):
    """An assistant's chat message with one call."""
    call = {"type": "function", "function": {"name": name, "arguments": arguments}, **fields}
    return {"role": "assistant", "tool_calls": [call]}


def brief(message):
    return (
        message.author.name or message.author.role.value,
        message.recipient,
        message.channel,
        message.content_type and message.content_type.removeprefix("<|constrain|>"),
        "".join(part.text for part in message.content),
    )


def chat(*messages, **options):
    """Short forms of the messages behind the system message."""
    return [brief(each) for each in conversation_from_chat(messages, **options).messages[1:]]


def items(*given, **options):
    return [brief(each) for each in conversation_from_responses(given, **options).messages[1:]]


def opening(read, *given, **options):
    """Contents of the system and the developer message (None if there is none)."""
    messages = read(*given, **options).messages
    has_developer = len(messages) > 1 and messages[1].author.role is Role.DEVELOPER
    return messages[0].content[0], messages[1].content[0] if has_developer else None


def answer(text, channel="final"):
    return ("assistant", None, channel, None, text)


def call(recipient, text="{}", channel="commentary", content_type="json"):
    return ("assistant", recipient, channel, content_type, text)


def result(name, text, channel="commentary"):
    return (name, "assistant", channel, None, text)


def user(text="q"):
    return ("user", None, None, None, text)


def brief_of(wanted):
    fields = (wanted["recipient"], wanted["channel"], wanted["content_type"], wanted["content"])
    return (wanted["name"] or wanted["role"], *fields)


MARKUP = "<|channel|>final<|message|>Low.<|return|>"


# -- Turns --

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
SOME_WORDS = WORDS.filter(bool)
TOOLS = st.sampled_from(["functions.tide", "functions.moon_phase", "container.exec"])


def assistant(text, channel, recipient=None, content_type=None):
    author = Author(role=Role.ASSISTANT)
    return Message(
        author=author, content=text, channel=channel, recipient=recipient, content_type=content_type
    )


@st.composite
def turns(draw):
    """What the guide lets the model say in one go: thinking, then an answer or calls."""
    messages = [assistant(text, "analysis") for text in draw(st.lists(SOME_WORDS, max_size=1))]
    recipients = draw(st.lists(TOOLS, max_size=3))
    if not recipients:
        # Beside thinking an empty answer is not told from one that was cut off.
        return [*messages, assistant(draw(SOME_WORDS if messages else WORDS), "final")]
    preambles = draw(st.lists(SOME_WORDS, max_size=1))
    messages += [assistant(text, "commentary") for text in preambles]
    # A call without arguments comes back with `{}`, which clients are given.
    arguments = WORDS.filter(str.strip)
    calls = [assistant(draw(arguments), "commentary", to, "<|constrain|>json") for to in recipients]
    return messages + calls


def sampled(messages):
    """The completion that says this, as the parser reads it from tokens."""
    renderer = Renderer(profile="guide")
    tokens = [token for message in messages for token in renderer.render(message)]
    completion = parse(tokens, None)
    assert list(completion.messages) == messages
    return completion
