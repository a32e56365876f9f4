"""Which reasoning a renderer leaves out of a prompt by itself: two rules, by headers alone.

`harmony_stream.history` decides by the same rules, with more to choose from. What it has decided is
marked (`harmony_stream.messages.Decided`), and nothing here is asked then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harmony_stream.messages import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harmony_stream.header import Header


def analysis_cutoff(headers: Sequence[tuple[Role, str | None]]) -> int:
    """Where the dropping of analysis ends, by openai_harmony's rule; 0: nothing is dropped.

    If the last message of the assistant is final, analysis before the *first* final message goes,
    whoever wrote it.

    Args:
        headers: role and channel of each message.

    >>> analysis_cutoff([(Role.ASSISTANT, "analysis"), (Role.ASSISTANT, "final")])
    1
    """
    last = next((channel for role, channel in reversed(headers) if role is Role.ASSISTANT), None)
    if last != "final":
        return 0
    return next(index for index, (_, channel) in enumerate(headers) if channel == "final")


def is_reasoning_of_a_turn(header: Header) -> bool:
    """Whether a message goes once its turn is finished: the assistant's analysis, unless a call."""
    return (
        header.role is Role.ASSISTANT and header.channel == "analysis" and not header.is_tool_call
    )


def is_answer(header: Header) -> bool:
    """Whether a turn is finished, if this is the assistant's last message in it."""
    return header.role is Role.ASSISTANT and header.channel == "final" and not header.is_tool_call


def reasoning_of_finished_turns(headers: Iterable[Header]) -> list[int]:
    """The indexes of what goes by the rule of the format guide.

    The format guide, "Handling reasoning output in subsequent sampling". A user message opens a
    turn; it is finished if the assistant's last message in it is its answer.

    >>> from harmony_stream.header import Header
    >>> thought, answer = (Header(Role.ASSISTANT, None, each) for each in ("analysis", "final"))
    >>> reasoning_of_finished_turns([thought, answer, Header(Role.USER), thought, answer])
    [0, 3]
    """
    found: list[int] = []
    of_turn: list[int] = []
    is_finished = False
    for index, header in enumerate(headers):
        if header.role is Role.USER:
            found += of_turn if is_finished else []
            of_turn, is_finished = [], False
        elif header.role is Role.ASSISTANT:
            of_turn += [index] if is_reasoning_of_a_turn(header) else []
            is_finished = is_answer(header)
    return found + (of_turn if is_finished else [])
