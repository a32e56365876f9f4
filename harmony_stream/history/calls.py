"""The calls of a transcript without a result, which match results to their calls.

A result whose tool has another name than in the call does not match it, since the model reads the
name as it is written.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from harmony_stream.values.messages import Role

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harmony_stream.values.header import Header

# The namespace of functions as models and callers write it: once, twice, or in the singular.
_FUNCTIONS = re.compile(r"(functions?\.)+")


class OpenCalls:
    """Calls that wait for their results, by recipient.

    >>> from harmony_stream.values.header import Header
    >>> calls = OpenCalls()
    >>> calls.add(Header(Role.ASSISTANT, None, "analysis", "functions.tide"))
    >>> calls.recipient("tide"), calls.channel("functions.tide")
    ('functions.tide', 'analysis')
    """

    def __init__(self) -> None:
        self._waiting: Counter[str] = Counter()
        self._channels: dict[str, str | None] = {}  # the channel of each tool's last call

    def copy(self) -> OpenCalls:
        """Return an independent copy of the calls."""
        copied = OpenCalls()
        copied._waiting, copied._channels = self._waiting.copy(), self._channels.copy()
        return copied

    def add(self, header: Header) -> None:
        """Take a message: a call waits, and a result matches a call of exactly its name."""
        if header.is_tool_call and header.recipient is not None:
            self._waiting[header.recipient] += 1
            self._channels[header.recipient] = header.channel
        elif header.role is Role.TOOL and self._waiting[header.name or ""]:
            self._waiting[header.name or ""] -= 1

    def channel(self, recipient: str) -> str | None:
        """Return the channel on which the tool was called last."""
        return self._channels[recipient]

    def like(self, name: str) -> list[str]:
        """Return the waiting recipients that a result of this name may be meant for."""
        waiting = sorted(+self._waiting)
        if name in waiting:
            return [name]
        return [each for each in waiting if name and _is_like(name, each)]

    def recipient(self, name: str) -> str:
        """Return the recipient of the call that a result of this name matches.

        Raises:
            ValueError: if there is none, or more than one.
        """
        found = self.like(name)
        if len(found) == 1:
            return found[0]
        if found:
            reason = f"is not the name of one call but of several: {_listed(found)}"
            raise ValueError(f"tool {name!r} {reason}; give the recipient of one")
        if name in self._channels:
            reason = "is not waited for: each of its calls has a result"
            raise ValueError(f"tool {name!r} {reason}; give one result for each call")
        waiting = sorted(+self._waiting)
        remedy = "give the recipient of one" if waiting else "add its call before its result"
        reason = f"is not a tool that was called; calls that wait: {_listed(waiting) or 'none'}"
        raise ValueError(f"tool {name!r} {reason}; {remedy}")

    def check(self, name: str) -> None:
        """Refuse a result's name that differs from its call's name but is like it.

        A name that is like none passes, since its call may be older than the transcript.

        Raises:
            ValueError: if it is like one. The error gives the name in the call.
        """
        found = self.like(name)
        if found and name not in found and name not in self._channels:
            reason = f"is not the name of a call that waits, but is like {_listed(found)}"
            raise ValueError(f"tool {name!r} {reason}; give the recipient of the call")


def _is_like(name: str, recipient: str) -> bool:
    """Return whether a name without a namespace, or with that of functions, is this recipient's.

    >>> _is_like("find", "browser.find"), _is_like("functions.find", "browser.find")
    (True, False)
    """
    if "." not in name:
        return recipient.rpartition(".")[2] == name
    return _FUNCTIONS.sub("", name, count=1) == _FUNCTIONS.sub("", recipient, count=1)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
