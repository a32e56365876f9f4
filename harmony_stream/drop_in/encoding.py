"""`HarmonyEncoding`: openai_harmony's class for reading and writing.

Names, arguments and results are those of openai_harmony 0.0.8 on well-formed input.
`docs/migrating.md` lists the differences.
"""

from __future__ import annotations

import operator
import os
import re
import sys
from collections.abc import Iterator
from enum import Enum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal, NoReturn

from harmony_stream.drop_in.familiar import familiar_error_of, message_of_text
from harmony_stream.errors import HarmonyError
from harmony_stream.parsing.collect import MessageCollector
from harmony_stream.parsing.parser import EventParser
from harmony_stream.rendering.profiles import OPENAI_0_0_8, PROFILES, Profile, get_profile
from harmony_stream.rendering.render import Renderer
from harmony_stream.vocabulary import FormattingToken, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from collections.abc import Set as AbstractSet
    from typing import SupportsIndex

    from harmony_stream.values.messages import (
        Conversation,
        Message,
        RenderConversationConfig,
        RenderOptions,
        Role,
    )

__all__ = [
    "HarmonyEncoding",
    "HarmonyEncodingName",
    "load_harmony_encoding",
    "raise_disallowed_special_token",
]

PROFILE_VARIABLE = "HARMONY_STREAM_PROFILE"
"""Name of the environment variable with the profile of encodings that are loaded without one."""

_ACTION_ENDS = (FormattingToken.RETURN, FormattingToken.CALL)
_ENDS = (*_ACTION_ENDS, FormattingToken.END)


# Not StrEnum, since the reprs and the members are those of openai_harmony.
class HarmonyEncodingName(str, Enum):  # noqa: UP042
    """The names of encodings that can be loaded, of which there is one.

    >>> str(HarmonyEncodingName.HARMONY_GPT_OSS)
    'HarmonyGptOss'
    """

    HARMONY_GPT_OSS = "HarmonyGptOss"

    def __str__(self) -> str:
        return self.value


class HarmonyEncoding:
    """Text to tokens and back, conversations to tokens, tokens to messages.

    Args:
        vocabulary: the vocabulary, by default o200k_harmony.
        profile: the layout of prompts, see `harmony_stream.rendering.profiles`.

    Usually made by `load_harmony_encoding`, which returns the same object each time.

    >>> encoding = load_harmony_encoding("HarmonyGptOss")
    >>> encoding.decode(encoding.encode("hello world"))
    'hello world'
    """

    def __init__(
        self, vocabulary: Vocabulary | None = None, profile: Profile | str = OPENAI_0_0_8
    ) -> None:
        self.vocabulary = vocabulary or Vocabulary.default()
        """The vocabulary."""
        self.profile = get_profile(profile)
        """The layout of prompts."""

    def __repr__(self) -> str:
        return f"<HarmonyEncoding {self.name!r}, profile {self.profile.name!r}>"

    def __reduce__(self) -> tuple[type[HarmonyEncoding], tuple[Vocabulary, Profile]]:
        return HarmonyEncoding, (self.vocabulary, self.profile)

    # -- Names ------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """`HarmonyGptOss`, or the vocabulary's name if the encoding has its own vocabulary.

        >>> HarmonyEncoding().name
        'HarmonyGptOss'
        """
        if self.vocabulary is Vocabulary.default():
            return HarmonyEncodingName.HARMONY_GPT_OSS.value
        return self.vocabulary.name

    @cached_property
    def special_tokens_set(self) -> frozenset[str]:
        """The texts of all special tokens.

        >>> "<|start|>" in HarmonyEncoding().special_tokens_set
        True
        """
        return frozenset(self.vocabulary.special_tokens)

    def is_special_token(self, token: SupportsIndex) -> bool:
        """Return whether this is the id of a special token.

        >>> HarmonyEncoding().is_special_token(200006)
        True
        """
        return self.vocabulary.is_special_token(operator.index(token))

    def stop_tokens(self) -> list[int]:
        """Return the sorted ids that end a message: of `<|return|>`, `<|end|>` and `<|call|>`.

        >>> HarmonyEncoding().stop_tokens()
        [200002, 200007, 200012]
        """
        return self._ids(_ENDS)

    def stop_tokens_for_assistant_actions(self) -> list[int]:
        """Return the sorted ids that end sampling: of `<|return|>` and `<|call|>`.

        >>> HarmonyEncoding().stop_tokens_for_assistant_actions()
        [200002, 200012]
        """
        return self._ids(_ACTION_ENDS)

    def _ids(self, which: Iterable[FormattingToken]) -> list[int]:
        return sorted(self.vocabulary.special_tokens[token] for token in which)

    # -- Text and tokens --------------------------------------------------------------------------

    def encode(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = frozenset(),
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> list[int]:
        """Return the tokens of a text.

        Args:
            text: the text. Lone surrogates in it become U+FFFD.
            allowed_special: special tokens whose spelling becomes one token.
            disallowed_special: spellings that must not occur; "all" means all that are not
                allowed. A spelling that is neither allowed nor disallowed is ordinary text.

        Raises:
            HarmonyError: if a disallowed spelling occurs.

        >>> encoding = HarmonyEncoding()
        >>> encoding.encode("<|start|>", allowed_special="all")
        [200006]
        >>> encoding.encode("<|start|>", disallowed_special=())
        [27, 91, 5236, 91, 29]
        """
        allowed = self.special_tokens_set if allowed_special == "all" else set(allowed_special)
        if disallowed_special == "all":
            disallowed = self.special_tokens_set - allowed
        else:
            disallowed = frozenset(disallowed_special)
        if disallowed and (found := _pattern_of(disallowed).search(text)):
            raise_disallowed_special_token(found[0])
        tiktoken_encoding = self.vocabulary.tiktoken_encoding
        return tiktoken_encoding.encode(text, allowed_special=allowed, disallowed_special=())

    def decode(self, tokens: Iterable[SupportsIndex], errors: str = "replace") -> str:
        """Return the text of tokens, with special ones spelled out.

        `errors` is that of `bytes.decode`.

        Raises:
            HarmonyError: if a token is not in the vocabulary.

        >>> HarmonyEncoding().decode([200006, 173781])
        '<|start|>assistant'
        """
        return self._decode_bytes(tokens).decode("utf-8", errors)

    def decode_utf8(self, tokens: Iterable[SupportsIndex]) -> str:
        """Return the text of tokens whose joined bytes are whole characters.

        Raises:
            HarmonyError: if the bytes are not valid UTF-8, or a token is not in the vocabulary.

        >>> HarmonyEncoding().decode_utf8([9552])
        Traceback (most recent call last):
            ...
        harmony_stream.errors.HarmonyError: Could not decode tokens: Invalid utf-8 sequence: \
unexpected end of data from index 1
        """
        try:
            return self._decode_bytes(tokens).decode()
        except UnicodeDecodeError as error:
            raise HarmonyError(
                "Could not decode tokens: Invalid utf-8 sequence: "
                f"{error.reason} from index {error.start}"
            ) from None

    def _decode_bytes(self, tokens: Iterable[SupportsIndex]) -> bytes:
        ids = list(map(operator.index, tokens))
        try:
            return self.vocabulary.decode_bytes(ids)
        except KeyError:
            lookup, is_special = self.vocabulary.lookup, self.vocabulary.is_special_token
            wrong = next(id_ for id_ in ids if not is_special(id_) and lookup(id_) is None)
            raise HarmonyError(f"Invalid token for decoding: {wrong}") from None

    # -- Conversations to tokens ------------------------------------------------------------------

    @cached_property
    def renderer(self) -> Renderer:
        """The renderer, which caches the tokens of messages that it has written."""
        return Renderer(self.vocabulary, self.profile)

    def render(self, message: Message, render_options: RenderOptions | None = None) -> list[int]:
        """Return the tokens of one message, from `<|start|>` to its end.

        >>> from harmony_stream.values.messages import Message
        >>> encoding = HarmonyEncoding()
        >>> encoding.decode(encoding.render(Message.from_role_and_content("user", "Hi")))
        '<|start|>user<|message|>Hi<|end|>'
        """
        return self.renderer.render(message, render_options)

    def render_conversation(
        self, conversation: Conversation, config: RenderConversationConfig | None = None
    ) -> list[int]:
        """Return the tokens of all messages but the reasoning that `auto_drop_analysis` drops."""
        return self.renderer.render_conversation(conversation, config)

    def render_conversation_for_completion(
        self,
        conversation: Conversation,
        next_turn_role: Role,
        config: RenderConversationConfig | None = None,
    ) -> list[int]:
        """Return the tokens of `render_conversation` and the start of the message to sample.

        >>> from harmony_stream.values.messages import Conversation, Role
        >>> encoding = HarmonyEncoding()
        >>> encoding.render_conversation_for_completion(Conversation(), Role.ASSISTANT)
        [200006, 173781]
        """
        return self.renderer.render_conversation_for_completion(
            conversation, next_turn_role, config
        )

    def render_conversation_for_training(
        self, conversation: Conversation, config: RenderConversationConfig | None = None
    ) -> list[int]:
        """Return the tokens of `render_conversation`, but a last answer ends with `<|return|>`."""
        return self.renderer.render_conversation_for_training(conversation, config)

    # -- Tokens to messages -----------------------------------------------------------------------

    def parse_messages_from_completion_tokens(
        self,
        tokens: Sequence[SupportsIndex],
        role: Role | str | None = None,
        *,
        strict: bool = True,
    ) -> list[Message]:
        """Return the messages of a whole completion.

        Args:
            tokens: the completion, which may end anywhere inside content.
            role: the role that ends the prompt; None if the tokens begin at `<|start|>`.
            strict: true to raise for the faults that openai_harmony raises for, and repair the
                others. If false, all are repaired. `harmony_stream.parse` also reports repairs.

        Raises:
            HarmonyError: if there is a fault, in strict mode.

        >>> encoding = HarmonyEncoding()
        >>> encoding.parse_messages_from_completion_tokens(
        ...     [200005, 17196, 200008, 13225, 200002], "assistant"
        ... )[0].channel
        'final'
        """
        tokens = list(tokens) if isinstance(tokens, Iterator) else tokens
        parser = parser_for(self, role, strict=strict)
        events = [*parser.feed_many(tokens), *parser.close()]
        if strict and (error := familiar_error_of(self.vocabulary, role, tokens, events)):
            raise error
        collector, messages = MessageCollector(), []
        for event in events:
            message = collector.feed(event) or message_of_text(event, role)
            if message:
                messages.append(message)
        return messages


def load_harmony_encoding(
    name: HarmonyEncodingName | str,
    *,
    profile: Profile | str | None = None,
    vocabulary: Vocabulary | None = None,
) -> HarmonyEncoding:
    """Return the encoding of that name, one object for each profile and vocabulary.

    Args:
        name: `HarmonyEncodingName.HARMONY_GPT_OSS`, or its value.
        profile: the layout of prompts: `openai-0.0.8`, `oss-0.0.11` or `guide`. By default it is
            the one that the environment variable `HARMONY_STREAM_PROFILE` names at the time of
            the call, or else `openai-0.0.8`.
        vocabulary: a vocabulary other than o200k_harmony.

    Raises:
        ValueError: if there is no encoding or no profile of that name.

    >>> encoding = load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)
    >>> encoding is load_harmony_encoding("HarmonyGptOss")
    True
    """
    allowed = HarmonyEncodingName.HARMONY_GPT_OSS.value
    if name != allowed:
        raise ValueError(f"Invalid HarmonyEncodingName: {name}; expected {allowed}")
    chosen = _profile_of_environment() if profile is None else get_profile(profile)
    return _load(chosen, vocabulary or Vocabulary.default())


def _profile_of_environment() -> Profile:
    """Return the profile for code that was written for openai_harmony and so passes none."""
    name = os.environ.get(PROFILE_VARIABLE, "")
    if name and name not in PROFILES:
        allowed = ", ".join(PROFILES)
        raise ValueError(f"{PROFILE_VARIABLE}: {name!r} is not a profile; use one of {allowed}")
    return PROFILES[name] if name else OPENAI_0_0_8


@lru_cache(maxsize=32)
def _load(profile: Profile, vocabulary: Vocabulary) -> HarmonyEncoding:
    return HarmonyEncoding(vocabulary, profile)


# -- Parsers --


def parser_for(encoding: HarmonyEncoding, role: Role | str | None, *, strict: bool) -> EventParser:
    """Return a tolerant parser, whose headers have no limit if openai_harmony's faults are raised.

    Without `strict`, a header that never ends becomes content, which is still streamed.
    """
    if strict:
        return EventParser(role, vocabulary=encoding.vocabulary, max_header_tokens=sys.maxsize)
    return EventParser(role, vocabulary=encoding.vocabulary)


# -- Disallowed text --


@lru_cache(maxsize=8)
def _pattern_of(texts: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(texts))))


def raise_disallowed_special_token(token: str) -> NoReturn:
    """Raise the error for text that spells out a special token, with the remedy.

    >>> raise_disallowed_special_token("<|end|>")
    Traceback (most recent call last):
        ...
    harmony_stream.errors.HarmonyError: Encountered text corresponding to disallowed special \
token '<|end|>'. To encode ...
    """
    raise HarmonyError(
        f"Encountered text corresponding to disallowed special token {token!r}. "
        f"To encode it as that token, pass allowed_special={{{token!r}, ...}}; to encode it as "
        f"ordinary text, pass disallowed_special=(enc.special_tokens_set - {{{token!r}}}), or "
        "disallowed_special=() for all special tokens."
    )
