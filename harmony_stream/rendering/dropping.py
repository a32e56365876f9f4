"""The reasoning that a renderer itself drops from a prompt: two rules, by headers alone.

`harmony_stream.history` decides by these rules and others. It marks decided messages
(`harmony_stream.values.messages.Decided`), to which this module is not applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harmony_stream.values.header import is_tool
from harmony_stream.values.messages import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harmony_stream.values.messages import Message


def analysis_cutoff(headers: Sequence[tuple[Role, str | None]]) -> int:
    """Return the index before which analysis is dropped, by openai_harmony's rule; 0: none is.

    If the last message of the assistant is final, analysis before the *first* final message is
    dropped, whatever its role.

    Args:
        headers: role and channel of each message.

    >>> analysis_cutoff([(Role.ASSISTANT, "analysis"), (Role.ASSISTANT, "final")])
    1
    """
    last = next((channel for role, channel in reversed(headers) if role is Role.ASSISTANT), None)
    if last != "final":
        return 0
    return next(index for index, (_, channel) in enumerate(headers) if channel == "final")


def goes_with_its_turn(role: Role, channel: str | None, recipient: str | None) -> bool:
    """Return whether a message is reasoning, which is dropped once its turn is finished."""
    return channel == "analysis" and role is Role.ASSISTANT and not is_tool(recipient)


def finishes_its_turn(role: Role, channel: str | None, recipient: str | None) -> bool:
    """Return whether a message is an answer, which finishes its turn if no other one follows."""
    return channel == "final" and role is Role.ASSISTANT and not is_tool(recipient)


def reasoning_of_finished_turns(messages: Iterable[Message]) -> list[int]:
    """Return the indexes of the reasoning that the rule of the format guide drops.

    The format guide, "Handling reasoning output in subsequent sampling". A user message opens a
    turn. The turn is finished if the assistant's last message in it is its answer.

    >>> from harmony_stream.values.messages import Message
    >>> of = Message.from_role_and_content
    >>> turn = [of("user", "2 + 2?"), of("assistant", "Hm.").with_channel("analysis"),
    ...         of("assistant", "4").with_channel("final")]
    >>> reasoning_of_finished_turns([*turn, *turn])
    [1, 4]
    """
    found: list[int] = []
    of_turn: list[int] = []
    is_finished = False
    for index, message in enumerate(messages):
        role, channel, recipient = message.author.role, message.channel, message.recipient
        if role is Role.USER:
            found += of_turn if is_finished else []
            of_turn, is_finished = [], False
        elif role is Role.ASSISTANT:
            if goes_with_its_turn(role, channel, recipient):
                of_turn.append(index)
            is_finished = finishes_its_turn(role, channel, recipient)
    return found + (of_turn if is_finished else [])
