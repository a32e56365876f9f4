"""Messages and conversations as values: what people build, and what servers pass around."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable


class Role(str, Enum):  # noqa: UP042 - openai_harmony's: f"{role}" is "Role.USER" there
    """Who writes a message. A `str`, so that `role == "assistant"` holds."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    DEVELOPER = "developer"
    TOOL = "tool"


@attrs.define(kw_only=True)
class Author:
    """Who writes a message: a role, and for tools a name."""

    role: Role = attrs.field(converter=Role)
    name: str | None = None

    @classmethod
    def new(cls, role: Role, name: str) -> Author:
        """The author `role` with a name."""
        return cls(role=role, name=name)


@attrs.define(kw_only=True)
class Content:
    """One part of a message."""

    def to_dict(self) -> dict[str, Any]:
        """The part as JSON-ready values."""
        raise NotImplementedError


@attrs.define(kw_only=True)
class TextContent(Content):
    """Plain text."""

    text: str

    def to_dict(self) -> dict[str, Any]:
        """The text with its type tag."""
        return {"type": "text", "text": self.text}


@attrs.define(kw_only=True)
class Message:
    """One message: who, on which channel, to whom, of which type, and its parts."""

    author: Author
    content: list[Content] = attrs.field(factory=list)
    channel: str | None = None
    recipient: str | None = None
    content_type: str | None = None

    @classmethod
    def from_author_and_content(cls, author: Author, content: str | Content) -> Message:
        """A message of one part."""
        return cls(author=author).adding_content(content)

    @classmethod
    def from_role_and_content(cls, role: Role | str, content: str | Content) -> Message:
        """A message of one part, by an author without a name."""
        return cls.from_author_and_content(Author(role=role), content)

    @classmethod
    def from_role_and_contents(cls, role: Role | str, contents: Iterable[Content]) -> Message:
        """A message of several parts, by an author without a name."""
        return cls(author=Author(role=role), content=list(contents))

    def adding_content(self, content: str | Content) -> Message:
        """Add one part and return the message itself."""
        self.content.append(TextContent(text=content) if isinstance(content, str) else content)
        return self

    def with_channel(self, channel: str) -> Message:
        """Set the channel and return the message itself."""
        self.channel = channel
        return self

    def with_recipient(self, recipient: str) -> Message:
        """Set the recipient and return the message itself."""
        self.recipient = recipient
        return self

    def with_content_type(self, content_type: str) -> Message:
        """Set the content type and return the message itself."""
        self.content_type = content_type
        return self
