"""Conversations as words, one letter for each kind of message."""

from hypothesis import strategies as st

from harmony_stream.history import HistoryPolicy, LastTurns
from harmony_stream.values.header import Header
from harmony_stream.values.messages import Message, Role

POLICIES = [*HistoryPolicy, LastTurns(0), LastTurns(1), LastTurns(2)]

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


def message_of(letter, text=""):
    header = HEADERS[letter]
    author = {"role": header.role, "name": header.name}
    return Message(author=author, content=text, channel=header.channel,
                   recipient=header.recipient, content_type=header.content_type)  # fmt: skip


def messages_of(word):
    return [message_of(letter, f"{place}") for place, letter in enumerate(word)]


words = st.text(st.sampled_from("".join(HEADERS)), max_size=16) | st.text(
    st.sampled_from("uafcrCR"), max_size=24
)
policies = st.sampled_from(POLICIES)
