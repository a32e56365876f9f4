"""How many tokens a transcript holds, by channel and kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping


@attrs.frozen
class ChannelUsage:
    """Tokens of one channel: ordinary ones in headers and in contents, and special ones."""

    header: int = 0
    content: int = 0
    special: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.header + self.content + self.special


@attrs.frozen
class TokenUsage:
    """How many tokens were prompted and sampled.

    Attributes:
        by_channel: by the channel of their message; None for messages without one, and for tokens
            of no message.
    """

    by_channel: Mapping[str | None, ChannelUsage]

    @property
    def total(self) -> int:
        """The number of all tokens."""
        return sum(each.total for each in self.by_channel.values())
