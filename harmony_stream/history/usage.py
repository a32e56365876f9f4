"""Token counts of a transcript, by channel and kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping


@attrs.frozen
class ChannelUsage:
    """Token counts of one channel: ordinary ones in headers and in contents, and special ones."""

    header: int = 0
    content: int = 0
    special: int = 0

    @property
    def total(self) -> int:
        """The sum of the counts."""
        return self.header + self.content + self.special


@attrs.frozen
class TokenUsage:
    """Numbers of prompted and sampled tokens.

    Attributes:
        by_channel: the counts by channel of the message. The key None is for messages without a
            channel, and for tokens outside of messages.
    """

    by_channel: Mapping[str | None, ChannelUsage]

    @property
    def total(self) -> int:
        """The number of all tokens."""
        return sum(each.total for each in self.by_channel.values())
