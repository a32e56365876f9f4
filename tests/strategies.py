"""What the tests of the parser share: streams to feed it, and short names for feeding them."""

from __future__ import annotations

import itertools
import os

from hypothesis import settings
from hypothesis import strategies as st

from harmony_stream.parsing.parser import EventParser
from harmony_stream.values.events import ContentDelta, Event, Malformed, MessageEnd, MessageStart
from harmony_stream.vocabulary import Vocabulary

VOCABULARY = Vocabulary.default()
SPECIAL = VOCABULARY.special_tokens
FORMATTING = [*VOCABULARY.formatting_tokens]
STOPS = [SPECIAL["<|end|>"], SPECIAL["<|return|>"], SPECIAL["<|call|>"]]
RESERVED = SPECIAL["<|reserved_200013|>"]
UNKNOWN = 201089


def examples(default: int) -> settings:
    """So many examples, or HARMONY_STREAM_EXAMPLES if that is set; the machine may be slow."""
    count = int(os.environ.get("HARMONY_STREAM_EXAMPLES", default))
    return settings(max_examples=count, deadline=None)


# -- Feeding --


def tokens_of(marked_text: str) -> list[int]:
    """The tokens of text in which special tokens are spelled out."""
    return VOCABULARY.tiktoken_encoding.encode(marked_text, allowed_special="all")


def feed_all(parser: EventParser, tokens: list[int]) -> list[Event]:
    """The events of tokens fed one by one, to the end of the stream."""
    events = [event for token in tokens for event in parser.feed(token)]
    return [*events, *parser.close()]


def events_of(tokens: list[int] | str, role: str | None = "assistant", **options) -> list[Event]:
    tokens = tokens_of(tokens) if isinstance(tokens, str) else tokens
    return feed_all(EventParser(role, **options), tokens)


def faults_of(events: list[Event]) -> list[str]:
    return [str(event.error.kind) for event in events if isinstance(event, Malformed)]


def stray_texts_of(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Malformed) and event.text]


def messages_of(events: list[Event]) -> list[tuple]:
    """Each message as (role, name, channel, recipient, content type, text, how it ended)."""
    messages, text = [], ""
    for event in events:
        match event:
            case MessageStart():
                text = ""
            case ContentDelta():
                text += event.text
            case MessageEnd(header=h):
                fields = (h.role.value, h.name, h.channel, h.recipient, h.content_type)
                messages.append((*fields, text, event.end.value))
    return messages


def described(events: list[Event]) -> list[str]:
    """Each event in one line: what, which text, which tokens."""
    return [f"{_description(event)} {event.start}:{event.stop}" for event in events]


def _description(event: Event) -> str:
    match event:
        case MessageStart(header=h):
            recipient = h.recipient and f"to={h.recipient}"
            words = [h.role.value, h.name, h.channel, recipient, h.content_type]
            return " ".join(["start", *filter(None, words)])
        case ContentDelta():
            return repr(event.text)
        case MessageEnd():
            return event.end.value + (" complete" if event.complete else "")
        case Malformed():
            return f"{event.error.kind}({event.text!r})" if event.text else event.error.kind.value


def is_text(token: int) -> bool:
    return token < 199998


def cut(sequence, places):
    """The pieces of a sequence between the places, which need not be sorted or inside it."""
    edges = [0, *sorted(min(place, len(sequence)) for place in places), len(sequence)]
    return [sequence[start:stop] for start, stop in itertools.pairwise(edges)]


# -- Tokens of any kind --

_HEADER_WORDS = [
    *("assistant", "user", "system", "developer", "tool", "analysis", "commentary", "final"),
    *(" to=", "to=", " to", "=", "functions", ".f", ".", ":", " json", "json", " code", "<|"),
    *(" ", "  ", "\n\n", " {", '{"', "?", " assistant", " functions", "python", "\u00a0"),
]
_FRAGMENTS = [
    "<|start|>assistant",
    "<|start|>assistant<|channel|>analysis<|message|>",
    "<|channel|>final<|message|>",
    "<|channel|>commentary to=functions.f <|constrain|>json<|message|>",
    "<|start|>functions.f to=assistant<|channel|>commentary<|message|>",
    "<|start|>user:ines<|message|>",
    "<|channel|>final json",
    "<|end|><|start|>assistant",
    "<|start|>assistant assistant<|end|>",
    "<|start|>assistantfinal<|end|>",
    "<|startoftext|>",
    "<|endoftext|>",
    " \u3000\n",
]
_HEADER_TOKENS = sorted({token for word in _HEADER_WORDS for token in tokens_of(word)})
# Parts of characters: single bytes above 0x7f, and the longer beginnings of emoji.
_PARTS = [t for t in range(256) if VOCABULARY.decode_single_token_bytes(t) >= b"\x80"]
_PARTS += [9552, 28823, 4103, 2524]

text_tokens = (
    st.integers(0, 199997)
    | st.integers(0, 999)
    | st.sampled_from(_PARTS)
    | st.sampled_from(_HEADER_TOKENS)
)
any_token = (
    text_tokens
    | st.sampled_from(FORMATTING)
    | st.sampled_from(FORMATTING)
    | st.sampled_from(_HEADER_TOKENS)
    | st.integers(200000, 201088)
    | st.integers(201089, 2**70)
)
streams = st.lists(
    any_token.map(lambda token: [token])
    | st.sampled_from(_FRAGMENTS).map(tokens_of)
    | st.lists(text_tokens, max_size=8),
    max_size=24,
).map(lambda pieces: [token for piece in pieces for token in piece])
roles = st.sampled_from(["assistant", None, "user", "tool", "system", "developer"])
places = st.lists(st.integers(0, 60), max_size=6)

# Marked text: pieces that are markers or not, without any other "<" in it that might make one.
_CHARACTERS = st.characters(codec="utf-8", exclude_characters="<")
marked_pieces = st.lists(
    st.sampled_from(sorted(SPECIAL, key=SPECIAL.get)[:12])
    | st.sampled_from(["<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>"])
    | st.sampled_from([word for word in _HEADER_WORDS if "<" not in word])
    | st.text(_CHARACTERS, max_size=6),
    max_size=24,
)
