"""Messages, conversations and events -> tokens: the mirror of `harmony_stream.parsing`.

Two laws make injection impossible. Text is always encoded as ordinary text, so that no content and
no header field ever yields the id of a special token. And a header field that could be read as
something else is refused: each header is read back before it is written.

Theory of the cache: a chat server renders the same messages again at each turn. `Renderer` keeps
the tokens of messages under their whole value, so a changed message is another key and never
returns old tokens. The texts in a key are those of the messages themselves, which Python hashes
once. Tools and schemas are in the key as bytes. The cache has two generations of bounded size. An
entry that is used moves to the young one; the others are dropped with the old one.
"""

from __future__ import annotations

import marshal
from enum import Enum
from typing import TYPE_CHECKING

import attrs

from harmony_stream.errors import RenderError, RenderFormattingTokenError
from harmony_stream.rendering.dropping import analysis_cutoff, reasoning_of_finished_turns
from harmony_stream.rendering.header import (
    MAX_HEADER_TOKENS,
    check_header,
    check_text,
    header_of,
    header_runs,
    too_long,
)
from harmony_stream.rendering.profiles import OPENAI_0_0_8, Profile, get_profile
from harmony_stream.rendering.sections import developer_text, has_function_tools, system_text
from harmony_stream.support.value import Value
from harmony_stream.values.header import CONSTRAIN_MARKER, Header
from harmony_stream.values.header_words import Section
from harmony_stream.values.messages import (
    Decided,
    DeveloperContent,
    RenderConversationConfig,
    RenderOptions,
    Role,
    SystemContent,
    TextContent,
)
from harmony_stream.vocabulary import FormattingToken, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from harmony_stream.values.messages import Content, Conversation, Message

# Tokens kept by one renderer, in each of its two generations: about 20 MB.
_CACHED_TOKENS = 2**19

# Headers kept by one renderer: a session has a dozen.
_CACHED_HEADERS = 1024
_DEFAULT_OPTIONS = RenderOptions()
_NOTHING_ELSE = (Header(Role.ASSISTANT), Header(Role.ASSISTANT, None, None, "all"))
_OPENINGS = {
    Section.ROLE: FormattingToken.START,
    Section.CHANNEL: FormattingToken.CHANNEL,
    Section.CONSTRAIN: FormattingToken.CONSTRAIN,
}


class Renderer:
    """Writes messages in the layout of a profile.

    >>> from harmony_stream.values.messages import Conversation, Message, Role
    >>> renderer = Renderer()
    >>> question = Message.from_role_and_content(Role.USER, "What is 2 + 2?")
    >>> tokens = renderer.render_conversation_for_completion(
    ...     Conversation.from_messages([question]), Role.ASSISTANT)
    >>> renderer.vocabulary.decode(tokens)
    '<|start|>user<|message|>What is 2 + 2?<|end|><|start|>assistant'
    """

    def __init__(
        self, vocabulary: Vocabulary | None = None, profile: Profile | str = OPENAI_0_0_8
    ) -> None:
        self.vocabulary = vocabulary or Vocabulary.default()
        self.profile = get_profile(profile)
        self._young: dict[Hashable, list[int]] = {}
        self._old: dict[Hashable, list[int]] = {}
        self._young_size = 0
        self._headers: dict[Header, list[int]] = {}

    # -- conversations ----------------------------------------------------------------------------

    def render(self, message: Message, render_options: RenderOptions | None = None) -> list[int]:
        """Return one message, from `<|start|>` to its end token."""
        options = render_options or _DEFAULT_OPTIONS
        return list(self._tokens(message, options.conversation_has_function_tools))

    def render_conversation(
        self, conversation: Conversation, config: RenderConversationConfig | None = None
    ) -> list[int]:
        """Return all messages but the reasoning that `auto_drop_analysis` drops.

        Without a config nothing is dropped from a history that `normalize_history` has decided.
        From other messages the profile decides: the format guide's drops the reasoning of finished
        turns, and those of openai_harmony's wheels drop what openai_harmony drops.
        """
        messages = conversation.messages
        left_out = self._left_out(messages, config)
        has_functions = any(map(_declares_functions, messages))
        tokens: list[int] = []
        for index, message in enumerate(messages):
            if index not in left_out:
                tokens += self._tokens(message, has_functions, index)
        return tokens

    def render_conversation_for_completion(
        self,
        conversation: Conversation,
        next_turn_role: Role,
        config: RenderConversationConfig | None = None,
    ) -> list[int]:
        """Return all messages and the start of the message to sample."""
        tokens = self.render_conversation(conversation, config)
        tokens.append(self.token(FormattingToken.START))
        return tokens + self.encode(Role(next_turn_role).value)

    def render_conversation_for_training(
        self, conversation: Conversation, config: RenderConversationConfig | None = None
    ) -> list[int]:
        """Return all messages, but a last answer ends with `<|return|>`, as the model samples it.

        Format guide, "Chat conversation format": `<|return|>` is correct for training targets, and
        `<|end|>` everywhere in the history.
        """
        tokens = self.render_conversation(conversation, config)
        last = conversation.messages[-1] if conversation.messages else None
        if last is not None and last.author.role is Role.ASSISTANT and last.channel == "final":
            tokens[-1] = self.token(FormattingToken.RETURN)
        return tokens

    # -- what is dropped --------------------------------------------------------------------------

    def _left_out(
        self, messages: Sequence[Message], config: RenderConversationConfig | None
    ) -> set[int]:
        """Return the indexes of the messages that a prompt does not contain."""
        drops = not isinstance(messages, Decided) if config is None else config.auto_drop_analysis
        left_out = self._dropped(messages) if drops else set()
        if self.profile.tidies:
            left_out |= {index for index, each in enumerate(messages) if _says_nothing(each)}
        return left_out

    def _dropped(self, messages: Sequence[Message]) -> set[int]:
        if self.profile.drops_by_turns:
            return set(reasoning_of_finished_turns(messages))
        cutoff = analysis_cutoff([(each.author.role, each.channel) for each in messages])
        return {index for index in range(cutoff) if messages[index].channel == "analysis"}

    # -- messages ---------------------------------------------------------------------------------

    def _tokens(self, message: Message, has_functions: bool, index: int | None = None) -> list[int]:
        """Return the tokens of a message, which the caller must not change."""
        key = _key(message, has_functions)
        found = self._young.get(key)
        if found is not None:
            return found
        found = self._old.get(key)
        if found is None:
            try:
                found = self._render(message, has_functions)
            except RenderError as error:
                raise attrs.evolve(error, message_index=index) from None
        if key is not None:
            self._keep(key, found)
        return found

    def _keep(self, key: Hashable, tokens: list[int]) -> None:
        if self._young_size > _CACHED_TOKENS:
            self._old, self._young, self._young_size = self._young, {}, 0
        self._young[key] = tokens
        self._young_size += len(tokens)

    def _render(self, message: Message, has_functions: bool) -> list[int]:
        header = self._header_of(message)
        tokens = self.header_tokens(header)
        for part in message.content:
            text = self._text(part, header.role, has_functions)
            check_text(text)
            tokens += self.encode(text)
        tokens.append(self.token(self._end_of(message, header)))
        return tokens

    def _header_of(self, message: Message) -> Header:
        author, channel, recipient = message.author, message.channel, message.recipient
        if self.profile.tidies and author.role is Role.TOOL:
            recipient = "assistant" if recipient is None else recipient
            channel = "commentary" if channel is None else channel
        if recipient == "all":  # no recipient: openai_harmony leaves it out
            recipient = None
        content_type = self._type_of(message.content_type)
        return Header(author.role, author.name, channel, recipient, content_type)

    def _type_of(self, content_type: str | None) -> str | None:
        """Return the content type in the spelling of the profile."""
        if content_type is None:
            return None
        word = content_type.removeprefix(CONSTRAIN_MARKER)
        is_marked = word != content_type
        if self.profile.tidies:
            word = word.strip()
        constrained = self.profile.constrained
        if is_marked or constrained is None or word in constrained:
            return CONSTRAIN_MARKER + word
        return word

    def _end_of(self, message: Message, header: Header) -> FormattingToken:
        is_call = header.role is Role.ASSISTANT and message.recipient is not None
        if self.profile.tidies:
            is_call = header.is_tool_call
        return FormattingToken.CALL if is_call else FormattingToken.END

    def _text(self, part: Content, role: Role, has_functions: bool) -> str:
        if isinstance(part, TextContent):
            return part.text
        if isinstance(part, SystemContent) and role is Role.SYSTEM:
            return system_text(part, self.profile, has_functions=has_functions)
        if isinstance(part, DeveloperContent) and role is Role.DEVELOPER:
            return developer_text(part, self.profile)
        kind = type(part).__name__
        owner = kind.removesuffix("Content").lower()
        reason = f"may only appear in {owner} messages, found in {role.value.capitalize()}"
        raise RenderError(kind, None, reason)

    # -- tokens -----------------------------------------------------------------------------------

    def encode(self, text: str) -> list[int]:
        """Return the text as ordinary tokens, even if it spells out special ones."""
        return self.vocabulary.tiktoken_encoding.encode_ordinary(text)

    def token(self, which: FormattingToken) -> int:
        """Return the id of a formatting token."""
        found = self.vocabulary.special_tokens.get(which)
        if found is None:
            reason = f"has no id in the vocabulary {self.vocabulary.name}"
            raise RenderFormattingTokenError("formatting token", str(which), reason)
        return found

    def header_tokens(self, header: Header) -> list[int]:
        """Return `<|start|>`, the header in the order of the profile, and `<|message|>`.

        Raises:
            RenderError: if it would not be read back unchanged.
        """
        found = self._headers.get(header)
        if found is None:
            found = self._header_tokens(header)
            if len(self._headers) >= _CACHED_HEADERS:
                self._headers.clear()
            self._headers[header] = found
        return list(found)

    def _header_tokens(self, header: Header) -> list[int]:
        check_header(header, self.profile)
        tokens: list[int] = []
        for run in header_runs(header, self.profile):
            tokens += [self.token(_OPENINGS[run.section]), *self.encode(run.text)]
        inner = len(tokens) - 1  # parsers count the tokens between <|start|> and <|message|>
        if inner > MAX_HEADER_TOKENS:
            raise too_long(header, inner)
        return [*tokens, self.token(FormattingToken.MESSAGE)]


def _says_nothing(message: Message) -> bool:
    """Return whether a message is an empty one of the assistant, without any other field.

    Chat histories contain such messages; vLLM and TensorRT-LLM leave them out as well.
    """
    for part in message.content:
        if not isinstance(part, TextContent) or part.text:
            return False
    return header_of(message) in _NOTHING_ELSE


# --- Cache keys ----------------------------------------------------------------------------------


def _declares_functions(message: Message) -> bool:
    return message.author.role is Role.DEVELOPER and any(
        isinstance(part, DeveloperContent) and has_function_tools(part) for part in message.content
    )


def _key(message: Message, has_functions: bool) -> Hashable:
    """Return the message's whole value, or None if a part of it cannot be a key."""
    author, parts = message.author, message.content
    value: Hashable
    if len(parts) == 1 and type(parts[0]) is TextContent:
        value = parts[0].text
    else:
        try:
            # Not the values themselves: 1, 1.0 and True are equal but printed differently, and
            # equal dicts may differ in order. Version 2 does not mark shared objects.
            value = (has_functions, marshal.dumps([_plain(part) for part in parts], 2))
        except ValueError:  # also raised for a value that contains itself
            return None
    return (
        author.role, author.name, message.channel, message.recipient, message.content_type, value
    )  # fmt: skip


def _plain(value: object) -> object:
    """Return values as lists of all their fields, for marshal; JSON as it is: marshal takes it."""
    if isinstance(value, Value):
        fields = (field.name for field in attrs.fields(type(value)))
        return [type(value).__name__, *(_plain(getattr(value, name)) for name in fields)]
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict) and any(isinstance(each, Value) for each in value.values()):
        return [(key, _plain(each)) for key, each in value.items()]
    return value.value if isinstance(value, Enum) else value
