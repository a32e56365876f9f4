"""The role of a message: a table of the ways in which a header says who writes.

Format guide, "Roles": a header begins with one of five roles, or with the name of a tool. Models
also leave the role out, say it twice, or put the channel in its place. `ROLE_RULES` has a row for
each of these; the first that fits counts.

Two mistakes matter most, and the rows are in the order that avoids them: reasoning must not pass
for an answer, so a channel's name is the channel even where a role or a name may be; and what the
model says must not vanish in a name, so a word is a tool's name only where a tool can speak.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harmony_stream.values.faults import FaultKind
from harmony_stream.values.header import (
    KNOWN_CHANNELS,
    REPEATED_ROLE,
    is_role_word,
    is_tool,
    known_role,
    name_of,
    readable,
)
from harmony_stream.values.header_words import NAME, Word
from harmony_stream.values.messages import Role

if TYPE_CHECKING:
    from collections.abc import Callable


class RoleCase(NamedTuple):
    """The facts that decide who writes a message.

    Attributes:
        role, name: the author that the prompt gave; the assistant if it gave none.
        word: the word in the role's place. In a header whose role the prompt gave, its first word,
            provided that this is in no field's place.
        bare: the first word of the role section that is in no field's place.
        channel, recipient: the fields that were read before.
        closed: True if `<|message|>` ended the header.
        has_channel_section: True if the header has `<|channel|>`.
        is_finished: True if the role section has ended, so that it can be called empty.
    """

    role: Role
    name: str | None
    word: Word | None
    bare: Word | None
    channel: str | None
    recipient: str | None
    closed: bool
    has_channel_section: bool
    is_finished: bool

    @property
    def known(self) -> tuple[Role, str | None] | None:
        """The known role that the word spells, and the name glued to it."""
        return None if self.word is None else known_role(self.word.text)

    def channel_in(self, word: Word | None) -> str | None:
        """Return the channel that a word means because no channel was marked, or None."""
        if word is None or not self.closed or self.has_channel_section:
            return None
        return _channel_in(word.text)

    @property
    def is_refused(self) -> bool:
        """True if the word is neither a role nor the name of a tool."""
        word = self.word
        if word is None or is_role_word(word.text):
            return False
        if word.is_channel or not NAME.fullmatch(word.text):
            return True
        if self.channel == "final" or is_tool(self.recipient):  # tools neither answer nor call
            return True
        if self.recipient is None and word.text.lower().startswith(Role.ASSISTANT.value):
            return True  # the assistant, and what it says glued to its role
        # A lone word is text: only more of a header makes a name of it.
        return not self.closed and (self.channel or self.recipient) is None


class Author(NamedTuple):
    """The author of a message and its channel, which may be in the role's place.

    Attributes:
        word: the word that says so, where it should not be.
    """

    role: Role
    name: str | None
    channel: str | None
    word: Word | None = None


class RoleRule(NamedTuple):
    """A way in which a header says who writes.

    Attributes:
        spells_role: True for headers that `<|start|>` opened.
        reads: returns the author, or None if the rule does not fit.
        fault: the breach of the format, or None.
        leaves_word: True if the word is text of no field.
        guide: the section of the format guide.
        example: a header for which this is the first rule that fits.
    """

    spells_role: bool
    reads: Callable[[RoleCase], Author | None]
    fault: FaultKind | None
    leaves_word: bool
    guide: str
    example: str


def author_of(case: RoleCase, *, spells_role: bool) -> tuple[Author, RoleRule]:
    """Return the author of a message, and the first rule that fits.

    Args:
        case: the facts.
        spells_role: True if `<|start|>` opened the header.
    """
    rules = (rule for rule in ROLE_RULES if rule.spells_role is spells_role)
    return next((author, rule) for rule in rules if (author := rule.reads(case)))


def _channel_for_name(case: RoleCase) -> Author | None:
    """`assistant:analysis`: the channel where a name may be."""
    if case.known is None or case.channel is not None or not case.closed:
        return None
    role, name = case.known
    channel = _channel_in(name or "")
    return None if channel is None else Author(role, name_of(role), channel, case.word)


def _channel_after_role(case: RoleCase) -> Author | None:
    """`assistant analysis`: the channel without its marker."""
    if case.known is None or case.channel is not None:
        return None
    channel = case.channel_in(case.bare)
    return None if channel is None else Author(*case.known, channel, case.bare)


def _known_role(case: RoleCase) -> Author | None:
    """`user`, `User:ines`."""
    return None if case.known is None else Author(*case.known, case.channel)


def _channel_for_role(case: RoleCase) -> Author | None:
    """`analysis`: the channel where the role should be."""
    channel = case.channel_in(case.word)
    return None if channel is None else _given_with_word(case)._replace(channel=channel)


def _glued_role(case: RoleCase) -> Author | None:
    """`assistantfinal`, `assistantassistant`: the special tokens between them were stripped."""
    glued = case.word and REPEATED_ROLE.fullmatch(case.word.text.lower())
    if not glued:
        return None
    role = Role(glued[1])
    return Author(role, name_of(role), case.channel or glued[2], case.word)


def _given_role_glued(case: RoleCase) -> Author | None:
    """`assistantfinal`: the given role again. Another role is text here."""
    author = _glued_role(case)
    is_given = author is not None and author.role is case.role
    return author._replace(name=case.name) if author and is_given else None


def _second_channel(case: RoleCase) -> Author | None:
    """`analysis` where the role should be, although `<|channel|>` came."""
    is_channel = case.is_refused and case.word is not None and case.word.is_channel
    return _given_with_word(case) if is_channel else None


def _no_role(case: RoleCase) -> Author | None:
    """Prose, or a name where no tool can speak."""
    return _given_with_word(case) if case.is_refused else None


def _tool(case: RoleCase) -> Author | None:
    """The name of a tool."""
    return None if case.word is None else Author(Role.TOOL, readable(case.word.text), case.channel)


def _missing_role(case: RoleCase) -> Author | None:
    """No word at all."""
    return _given_role(case) if case.is_finished else None


def _given_role(case: RoleCase) -> Author:
    """Nothing about its author."""
    return Author(case.role, case.name, case.channel)


def _given_with_word(case: RoleCase) -> Author:
    return Author(case.role, case.name, case.channel, case.word)


_UNKNOWN, _UNPARSED = FaultKind.UNKNOWN_ROLE, FaultKind.UNPARSED_HEADER_TEXT
_ROLES, _CHANNELS, _FORMAT, _CHAT, _RESULTS = (
    "Roles", "Channels", "Message format", "Chat conversation format", "Handling tool calls",
)  # fmt: skip

# fmt: off
ROLE_RULES: tuple[RoleRule, ...] = (
    # opened by <|start|>, rule, fault, leaves its word, section of the guide, example
    RoleRule(True, _channel_for_name, _UNKNOWN, False, _CHANNELS,
             "<|start|>assistant:analysis<|message|>"),
    RoleRule(True, _channel_after_role, _UNPARSED, False, _CHANNELS,
             "<|start|>assistant analysis<|message|>"),
    RoleRule(True, _known_role, None, False, _ROLES,
             "<|start|>user<|message|>"),
    RoleRule(True, _channel_for_role, _UNKNOWN, False, _CHANNELS,
             "<|start|>analysis<|message|>"),
    RoleRule(True, _glued_role, _UNKNOWN, False, _FORMAT,
             "<|start|>assistantfinal<|message|>"),
    RoleRule(True, _second_channel, _UNKNOWN, False, _FORMAT,
             "<|start|>analysis<|channel|>final<|message|>"),
    RoleRule(True, _no_role, _UNKNOWN, True, _ROLES,
             "<|start|>bot<|channel|>final<|message|>"),
    RoleRule(True, _tool, None, False, _RESULTS,
             "<|start|>functions.f to=assistant<|channel|>commentary<|message|>"),
    RoleRule(True, _missing_role, _UNKNOWN, False, _FORMAT,
             "<|start|><|channel|>final<|message|>"),
    RoleRule(True, _given_role, None, False, _FORMAT,
             "<|start|> to=functions.f<|end|>"),
    RoleRule(False, _channel_for_role, _UNKNOWN, False, _CHANNELS,
             " analysis<|message|>"),
    RoleRule(False, _given_role_glued, _UNKNOWN, False, _FORMAT,
             "assistantfinal<|message|>"),
    RoleRule(False, _given_role, None, False, _CHAT,
             "<|channel|>final<|message|>"),
)
# fmt: on
"""The ways in which a header says who writes. The first that fits counts."""


def _channel_in(text: str) -> str | None:
    """Return the known channel that a word means where none is expected: also `Analysis:`."""
    channel = text.rstrip(".:").lower()
    return channel if channel in KNOWN_CHANNELS else None


def without_role(word: Word) -> Word:
    """Return what is glued to the role of the assistant, without that role.

    >>> from harmony_stream.values.header_words import Section, TextPosition, WordKind
    >>> word = Word(WordKind.ROLE, "assistantHello", TextPosition(0, 0), Section.ROLE)
    >>> without_role(word).text
    'Hello'
    """
    role = Role.ASSISTANT.value
    if not word.text.lower().startswith(role):
        return word
    return word._replace(text=word.text[len(role) :], place=word.after(len(role)))
