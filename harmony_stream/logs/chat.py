"""Messages in the form of chat completions, which trainers and the model's chat template read.

Reasoning is a message's `thinking`, as in the chat template of gpt-oss; calls are `tool_calls`;
preambles and the answer are `content`. If several messages become one text, a blank line is between
them. `<|return|>` ends an answer: what was sampled after it is a message of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harmony_stream.adapters.arguments import NO_ARGUMENTS, lack_arguments
from harmony_stream.adapters.routing import CALLS, STRAY, RouteKind, Unlabelled, route, stray_route
from harmony_stream.values.completion import BLANK_LINE
from harmony_stream.values.fold import EndedMessage, Fold
from harmony_stream.values.header import Header
from harmony_stream.values.messages import Role
from harmony_stream.values.tools import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harmony_stream.values.events import Event, Malformed


class Said(NamedTuple):
    """A message of a log, or text outside of any, with a header made for it.

    Attributes:
        header: its author, channel and recipient.
        text: its content.
        is_complete: True if its own end token ended it.
        ends_answer: True if that token ends the answer.
    """

    header: Header
    text: str
    is_complete: bool
    ends_answer: bool


_REASONING = Header(Role.ASSISTANT, None, "analysis")


def said_in(events: Iterable[Event]) -> Iterator[Said]:
    """Yield the messages of these events, and the text outside of messages.

    Text in the header of another author's message belongs to that author, not to the assistant. A
    header that was cut off yields nothing, since clients do not receive it either.

    >>> from harmony_stream.logs.batch import events_of
    >>> [said.text for said in said_in(events_of([200008, 13225, 200007, 12194]))]
    ['Hello', 'Hi']
    """
    fold = Fold()
    held: list[Malformed] = []  # it may be in the header of the next message
    for event in events:
        found = fold.feed(event)
        if isinstance(found, EndedMessage):
            start, end = found.start, found.end
            for fault in held:
                is_in_header = start.start <= fault.start < start.stop
                yield _stray(fault, start.header if is_in_header else None)
            held = []
            yield Said(end.header, found.text, end.complete, end.end.ends_answer)
        elif found is not None and found.kind in STRAY and found.text.strip():
            held.append(found)
    for fault in held:
        yield _stray(fault, None)


def _stray(fault: Malformed, header: Header | None) -> Said:
    if header is None or header.role is Role.ASSISTANT:
        is_hidden = stray_route(fault, header, Unlabelled()).kind is RouteKind.REASONING
        header = _REASONING if is_hidden else Header(Role.ASSISTANT)
    return Said(header, fault.text, True, False)


def chat_messages(messages: Iterable[Said]) -> list[dict[str, Any]]:
    """Return chat messages; consecutive messages of the assistant become one.

    Ids of calls are numbers, so that the same log gives the same ids. A tool's message answers the
    last call of that tool.

    >>> from harmony_stream.values.header import Header
    >>> reasoning = Said(Header(Role.ASSISTANT, None, "analysis"), "Hm.", True, False)
    >>> answer = Said(Header(Role.ASSISTANT, None, "final"), "Yes.", True, True)
    >>> chat_messages([reasoning, answer])
    [{'role': 'assistant', 'content': 'Yes.', 'thinking': 'Hm.'}]
    """
    chat: list[dict[str, Any]] = []
    last_calls: dict[str, str] = {}
    number = 0
    has_answered = False
    for said in messages:
        header, text = said.header, said.text
        if header.role is not Role.ASSISTANT:
            chat.append(_other(header, text, last_calls))
            continue
        if not chat or chat[-1]["role"] != "assistant" or has_answered:
            chat.append({"role": "assistant", "content": ""})
        has_answered = said.ends_answer
        kind = route(header).kind
        if kind in CALLS:
            last_calls[str(header.recipient)] = call_id = f"call_{number}"
            number += 1
            chat[-1].setdefault("tool_calls", []).append(_call(said, call_id))
        elif kind is RouteKind.REASONING:
            chat[-1]["thinking"] = _joined(chat[-1].get("thinking", ""), text)
        else:
            chat[-1]["content"] = _joined(chat[-1]["content"], text)
    return chat


def _joined(text: str, more: str) -> str:
    """Join the texts of two messages; nothing is between them if one is empty."""
    return BLANK_LINE.join(filter(None, (text, more)))


def _call(said: Said, call_id: str) -> dict[str, Any]:
    arguments = said.text
    if said.is_complete and lack_arguments(route(said.header), said.header, arguments):
        arguments = NO_ARGUMENTS  # readers parse them, and an empty text is not JSON
    function = {
        "name": str(said.header.recipient).removeprefix(f"{FUNCTIONS}."),
        "arguments": arguments,
    }
    return {"id": call_id, "type": "function", "function": function}


def _other(header: Header, text: str, last_calls: dict[str, str]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": header.role.value, "content": text}
    if header.name is not None:
        message["name"] = header.name.removeprefix(f"{FUNCTIONS}.")
    if header.role is Role.TOOL and header.name in last_calls:
        message["tool_call_id"] = last_calls[header.name]
    return message
