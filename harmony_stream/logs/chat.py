"""Messages as chat completions have them: what trainers and the model's chat template read.

Thinking is a message's `thinking`, as in the chat template of gpt-oss; calls are `tool_calls`;
preambles and the answer are `content`. Where several messages become one text, a blank line is
between them. `<|return|>` ends an answer: what was sampled after it is a message of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harmony_stream.adapters.arguments import NO_ARGUMENTS, lack_arguments
from harmony_stream.adapters.routing import route
from harmony_stream.messages import Role
from harmony_stream.parsing.collect import BLANK_LINE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harmony_stream.header import Header


class Said(NamedTuple):
    """A message of a log.

    Attributes:
        header: who said it, to whom.
        text: what.
        is_complete: whether its own end token ended it.
        returned: whether that is `<|return|>`.
    """

    header: Header
    text: str
    is_complete: bool
    returned: bool


_FUNCTIONS = "functions."


def chat_messages(messages: Iterable[Said]) -> list[dict[str, Any]]:
    """What a log says as chat messages; what the assistant says in a row becomes one.

    Calls are numbered, so that the same log gives the same ids; a tool's message answers the last
    call of that tool.

    >>> from harmony_stream.header import Header
    >>> thinking = Said(Header(Role.ASSISTANT, None, "analysis"), "Hm.", True, False)
    >>> answer = Said(Header(Role.ASSISTANT, None, "final"), "Yes.", True, True)
    >>> chat_messages([thinking, answer])
    [{'role': 'assistant', 'content': 'Yes.', 'thinking': 'Hm.'}]
    """
    chat: list[dict[str, Any]] = []
    last_calls: dict[str, str] = {}
    number = 0
    has_returned = False
    for said in messages:
        header, text = said.header, said.text
        if header.role is not Role.ASSISTANT:
            chat.append(_other(header, text, last_calls))
            continue
        if not chat or chat[-1]["role"] != "assistant" or has_returned:
            chat.append({"role": "assistant", "content": ""})
        has_returned = said.returned
        if header.is_tool_call:
            last_calls[str(header.recipient)] = call_id = f"call_{number}"
            number += 1
            chat[-1].setdefault("tool_calls", []).append(_call(said, call_id))
        elif header.is_reasoning:
            chat[-1]["thinking"] = _joined(chat[-1].get("thinking", ""), text)
        else:
            chat[-1]["content"] = _joined(chat[-1]["content"], text)
    return chat


def _joined(text: str, more: str) -> str:
    """The texts of two messages as one; nothing is between them if one is empty."""
    return BLANK_LINE.join(filter(None, (text, more)))


def _call(said: Said, call_id: str) -> dict[str, Any]:
    arguments = said.text
    if said.is_complete and lack_arguments(route(said.header), said.header, arguments):
        arguments = NO_ARGUMENTS  # readers parse them: an empty text is no JSON
    function = {"name": str(said.header.recipient).removeprefix(_FUNCTIONS), "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def _other(header: Header, text: str, last_calls: dict[str, str]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": header.role.value, "content": text}
    if header.name is not None:
        message["name"] = header.name.removeprefix(_FUNCTIONS)
    if header.role is Role.TOOL and header.name in last_calls:
        message["tool_call_id"] = last_calls[header.name]
    return message
