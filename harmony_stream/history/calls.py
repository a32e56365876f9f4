"""The calls of a transcript that no tool has answered: whose a result is.

A result that names its tool otherwise than the call did answers nobody: the model reads the name
as it is written.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from harmony_stream.values.messages import Role

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harmony_stream.values.header import Header

# The namespace of functions, as models and callers write it: once, twice, or in the singular.
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
        self._channels: dict[str, str | None] = {}  # of the last call of each tool

    def copy(self) -> OpenCalls:
        """The same calls, which go on by themselves."""
        copied = OpenCalls()
        copied._waiting, copied._channels = self._waiting.copy(), self._channels.copy()
        return copied

    def add(self, header: Header) -> None:
        """Take a message: a call waits, a result answers a call of exactly its name."""
        if header.is_tool_call and header.recipient is not None:
            self._waiting[header.recipient] += 1
            self._channels[header.recipient] = header.channel
        elif header.role is Role.TOOL and self._waiting[header.name or ""]:
            self._waiting[header.name or ""] -= 1

    def channel(self, recipient: str) -> str | None:
        """The channel on which the tool was called last."""
        return self._channels[recipient]

    def like(self, name: str) -> list[str]:
        """The recipients that wait and that a result of this name may be meant for."""
        waiting = sorted(+self._waiting)
        if name in waiting:
            return [name]
        return [each for each in waiting if name and _is_like(name, each)]

    def recipient(self, name: str) -> str:
        """The recipient that a result of this name answers.

        Raises:
            ValueError: there is none, or there are several.
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
        """Refuse the name of a result that is not that of its call, but like it.

        A name that is like none passes: its call may be older than the transcript.

        Raises:
            ValueError: says how the call has it.
        """
        found = self.like(name)
        if found and name not in found and name not in self._channels:
            reason = f"is not the name of a call that waits, but is like {_listed(found)}"
            raise ValueError(f"tool {name!r} {reason}; give the recipient of the call")


def _is_like(name: str, recipient: str) -> bool:
    """Whether a name without a namespace, or with that of functions, is this recipient's.

    >>> _is_like("find", "browser.find"), _is_like("functions.find", "browser.find")
    (True, False)
    """
    if "." not in name:
        return recipient.rpartition(".")[2] == name
    return _FUNCTIONS.sub("", name, count=1) == _FUNCTIONS.sub("", recipient, count=1)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
