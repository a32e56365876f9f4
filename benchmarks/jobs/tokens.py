"""The tokens of named texts, in our environment."""

from __future__ import annotations

from benchmarks.texts import COMPLETIONS, TEXTS
from harmony_stream import Vocabulary


def encode(marked_text: str) -> list[int]:
    """Return marked text as token ids."""
    return Vocabulary.default().tiktoken_encoding.encode(marked_text, allowed_special="all")


def tokens_of(text: str) -> list[int]:
    """Return the tokens of a completion."""
    return encode(COMPLETIONS[text])


def tokens_of_length(length: int) -> list[int]:
    """Return one message of that many tokens, which does not end."""
    head, body = encode("<|channel|>final<|message|>"), encode(TEXTS["mixed"])
    return (head + body * (length // len(body) + 1))[:length]
