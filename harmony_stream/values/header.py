"""The header of a message, and the spelling of roles and recipients.

The format guide, "Message format" and "Receiving tool calls".
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import attrs

from harmony_stream.values.messages import Role

KNOWN_CHANNELS = ("analysis", "commentary", "final")


KNOWN_ROLES = tuple(role.value for role in Role)


CONSTRAIN_MARKER = "<|constrain|>"


USUAL_TYPES = ("json", "code")


# Recipients that are not tools: the model addresses itself, everybody, nobody, another role than a
# tool's, or a channel.
_NOT_TOOLS = {"assistant", "self", "all", "none", "user", "developer", "system", *KNOWN_CHANNELS}


# Of these, the ones that hide what is on a channel which is visible by itself.
_PRIVATE = ("assistant", "self", "analysis")


REPEATED_ROLE = re.compile(rf"({'|'.join(KNOWN_ROLES)})\1*(?::?({'|'.join(KNOWN_CHANNELS)})[:.]?)?")


def is_tool(recipient: str | None) -> bool:
    """Return whether a recipient can be a tool; letter case and punctuation around it do not count.

    >>> is_tool("functions.f"), is_tool("assistant"), is_tool("User."), is_tool("user:bob")
    (True, False, False, False)
    """
    return recipient is not None and _addressee(recipient) not in _NOT_TOOLS


def _addressee(recipient: str) -> str:
    return recipient.strip("./+-").partition(":")[0].casefold()


@attrs.frozen
class Header:
    """Author, channel, recipient and type of a message.

    One object for each message, shared by all its events.

    Attributes:
        role: the author's role.
        name: of a tool, or of a named author; else None.
        channel: `analysis`, `commentary`, `final`, or another word in that place; None without one.
        recipient: the name after `to=`, or None.
        content_type: as openai_harmony gives it: `<|constrain|>json`, or the bare word `json`.

    >>> header = Header(Role.ASSISTANT, None, "commentary", "functions.f", "<|constrain|>json")
    >>> header.constrain, header.data_type, header.is_tool_call, header.is_visible
    ('json', 'json', True, False)
    """

    role: Role
    name: str | None = None
    channel: str | None = None
    recipient: str | None = None
    content_type: str | None = None

    @property
    def constrain(self) -> str | None:
        """The type named after `<|constrain|>`, or None."""
        marked = self.content_type is not None and self.content_type.startswith(CONSTRAIN_MARKER)
        return self.data_type if marked else None

    @property
    def data_type(self) -> str | None:
        """The type in either spelling: `json` for `<|constrain|>json` and for `json`."""
        return self.content_type and self.content_type.removeprefix(CONSTRAIN_MARKER)

    @property
    def is_tool_call(self) -> bool:
        """True if the assistant calls a tool, on whatever channel."""
        return self.role is Role.ASSISTANT and is_tool(self.recipient)

    @property
    def is_visible(self) -> bool:
        """True if a person may see the content: an answer, a preamble, or a text without a channel.

        The answer is visible whomever it addresses, as long as that is not a tool.
        """
        if self.role is not Role.ASSISTANT or is_tool(self.recipient):
            return False
        if self.channel == "final":
            return True
        is_private = _addressee(self.recipient or "") in _PRIVATE
        return self.channel in ("commentary", None) and not is_private

    @property
    def is_reasoning(self) -> bool:
        """True for everything of the assistant that is neither a tool call nor visible."""
        return self.role is Role.ASSISTANT and not self.is_tool_call and not self.is_visible

    @property
    def is_known_channel(self) -> bool:
        """True if the channel is one of the three that the format guide names."""
        return self.channel in KNOWN_CHANNELS

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-ready values."""
        return {
            "role": self.role.value,
            "name": self.name,
            "channel": self.channel,
            "recipient": self.recipient,
            "content_type": self.content_type,
        }


def name_of(role: Role) -> str | None:
    """Return `tool` for the role of a tool without a name: openai_harmony writes its tools so."""
    return role.value if role is Role.TOOL else None


@lru_cache(maxsize=256)  # the rules ask up to five times about the word of a header
def known_role(word: str) -> tuple[Role, str | None] | None:
    """Return the role and the name of `role` or `role:name`, in any letter case."""
    role, colon, name = word.partition(":")
    if role.lower() not in KNOWN_ROLES or (colon and not name):
        return None
    known = Role(role.lower())
    return known, readable(name) if name else name_of(known)


def is_role_word(word: str) -> bool:
    """Return whether a word is read as a role: `user`, `user:name`, `useruser`, `userfinal`.

    >>> is_role_word("assistantfinal"), is_role_word("functions.f")
    (True, False)
    """
    return bool(known_role(word) or REPEATED_ROLE.fullmatch(word.lower()))


def readable(text: str) -> str:
    """Return the text with U+FFFD for broken bytes."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
