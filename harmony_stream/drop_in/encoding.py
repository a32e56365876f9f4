"""`HarmonyEncoding`: the familiar roof of openai_harmony over both sides, reading and writing.

Names, arguments and results are those of openai_harmony 0.0.8 on well-formed input. What differs
is listed in `docs/migrating.md`.
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
"""Names the environment variable with the profile of encodings that are loaded without one."""

_ACTION_ENDS = (FormattingToken.RETURN, FormattingToken.CALL)
_ENDS = (*_ACTION_ENDS, FormattingToken.END)


# Not StrEnum: the reprs and the members are those of openai_harmony.
class HarmonyEncodingName(str, Enum):  # noqa: UP042
    """The encodings that can be loaded by name: there is one.

    >>> str(HarmonyEncodingName.HARMONY_GPT_OSS)
    'HarmonyGptOss'
    """

    HARMONY_GPT_OSS = "HarmonyGptOss"

    def __str__(self) -> str:
        return self.value


class HarmonyEncoding:
    """Text to tokens and back, conversations to tokens, tokens to messages.

    Args:
        vocabulary: which tokens; o200k_harmony if none is given.
        profile: the layout of prompts, see `harmony_stream.rendering.profiles`.

    Usually made by `load_harmony_encoding`, which gives the same object each time.

    >>> encoding = load_harmony_encoding("HarmonyGptOss")
    >>> encoding.decode(encoding.encode("hello world"))
    'hello world'
    """

    def __init__(
        self, vocabulary: Vocabulary | None = None, profile: Profile | str = OPENAI_0_0_8
    ) -> None:
        self.vocabulary = vocabulary or Vocabulary.default()
        """The tokens."""
        self.profile = get_profile(profile)
        """The layout of prompts."""

    def __repr__(self) -> str:
        return f"<HarmonyEncoding {self.name!r}, profile {self.profile.name!r}>"

    def __reduce__(self) -> tuple[type[HarmonyEncoding], tuple[Vocabulary, Profile]]:
        return HarmonyEncoding, (self.vocabulary, self.profile)

    # -- Names ------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """`HarmonyGptOss`; of an encoding with its own vocabulary, that one's name.

        >>> HarmonyEncoding().name
        'HarmonyGptOss'
        """
        if self.vocabulary is Vocabulary.default():
            return HarmonyEncodingName.HARMONY_GPT_OSS.value
        return self.vocabulary.name

    @cached_property
    def special_tokens_set(self) -> frozenset[str]:
        """How all special tokens are spelled.

        >>> "<|start|>" in HarmonyEncoding().special_tokens_set
        True
        """
        return frozenset(self.vocabulary.special_tokens)

    def is_special_token(self, token: SupportsIndex) -> bool:
        """Whether this is the id of a special token.

        >>> HarmonyEncoding().is_special_token(200006)
        True
        """
        return self.vocabulary.is_special_token(operator.index(token))

    def stop_tokens(self) -> list[int]:
        """What ends a message: `<|return|>`, `<|end|>`, `<|call|>`; sorted.

        >>> HarmonyEncoding().stop_tokens()
        [200002, 200007, 200012]
        """
        return self._ids(_ENDS)

    def stop_tokens_for_assistant_actions(self) -> list[int]:
        """What ends sampling: `<|return|>` and `<|call|>`; sorted.

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
        """The tokens of a text.

        Args:
            text: lone surrogates in it become U+FFFD.
            allowed_special: special tokens that become one token where the text spells them out.
            disallowed_special: spellings that must not occur; "all" means all that are not
                allowed. What is neither allowed nor disallowed is ordinary text.

        Raises:
            HarmonyError: a disallowed spelling occurs.

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
        """The text of tokens, special ones spelled out; `errors` as in `bytes.decode`.

        Raises:
            HarmonyError: a token is not in the vocabulary.

        >>> HarmonyEncoding().decode([200006, 173781])
        '<|start|>assistant'
        """
        return self._decode_bytes(tokens).decode("utf-8", errors)

    def decode_utf8(self, tokens: Iterable[SupportsIndex]) -> str:
        """The text of tokens that are whole characters together.

        Raises:
            HarmonyError: they are not, or a token is not in the vocabulary.

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
        """What writes the tokens; it keeps those of messages that it has written before."""
        return Renderer(self.vocabulary, self.profile)

    def render(self, message: Message, render_options: RenderOptions | None = None) -> list[int]:
        """The tokens of one message, from `<|start|>` to its end.

        >>> from harmony_stream.values.messages import Message
        >>> encoding = HarmonyEncoding()
        >>> encoding.decode(encoding.render(Message.from_role_and_content("user", "Hi")))
        '<|start|>user<|message|>Hi<|end|>'
        """
        return self.renderer.render(message, render_options)

    def render_conversation(
        self, conversation: Conversation, config: RenderConversationConfig | None = None
    ) -> list[int]:
        """The tokens of all messages, less the analysis that `auto_drop_analysis` drops."""
        return self.renderer.render_conversation(conversation, config)

    def render_conversation_for_completion(
        self,
        conversation: Conversation,
        next_turn_role: Role,
        config: RenderConversationConfig | None = None,
    ) -> list[int]:
        """The same, and the start of the message that is to be sampled.

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
        """The same as `render_conversation`, but a last final message closes with `<|return|>`."""
        return self.renderer.render_conversation_for_training(conversation, config)

    # -- Tokens to messages -----------------------------------------------------------------------

    def parse_messages_from_completion_tokens(
        self,
        tokens: Sequence[SupportsIndex],
        role: Role | str | None = None,
        *,
        strict: bool = True,
    ) -> list[Message]:
        """The messages of a whole completion.

        Args:
            tokens: the completion; it may end anywhere inside content.
            role: whose header the prompt opened; None if the tokens begin at `<|start|>`.
            strict: raise for the faults that openai_harmony raises for, repair the others. If
                not, repair all. `harmony_stream.parse` also tells what was repaired.

        Raises:
            HarmonyError: a fault, in strict mode.

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
    """The encoding of that name; one object for each profile and vocabulary.

    Args:
        name: `HarmonyEncodingName.HARMONY_GPT_OSS`, or its value.
        profile: the layout of prompts: `openai-0.0.8`, `oss-0.0.11` or `guide`. If none is given,
            the one that the environment variable `HARMONY_STREAM_PROFILE` names at the time of
            the call, or else `openai-0.0.8`.
        vocabulary: other tokens than o200k_harmony's.

    Raises:
        ValueError: there is no encoding, or no profile, of that name.

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
    """The profile for code that was not written for this library and so names none."""
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
    """A tolerant parser. Where openai_harmony's faults are raised, headers have no limit, as there.

    Without strictness, a header that never ends becomes content, which streams on.
    """
    if strict:
        return EventParser(role, vocabulary=encoding.vocabulary, max_header_tokens=sys.maxsize)
    return EventParser(role, vocabulary=encoding.vocabulary)


# -- Disallowed text --


@lru_cache(maxsize=8)
def _pattern_of(texts: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(texts))))


def raise_disallowed_special_token(token: str) -> NoReturn:
    """Refuse text that spells out a special token, and say what to do about it.

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
