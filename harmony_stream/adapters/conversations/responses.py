"""Input items of the Responses API as a conversation.

Source: `openai.types.responses.ResponseInputItemParam`. It is the inverse of
`harmony_stream.adapters.responses`. A table holds each kind of item with the method that reads it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from harmony_stream.adapters.conversations.common import (
    JSON,
    Calls,
    answer_text,
    assembled,
    called,
    compact_json,
    content_text,
    developer_of,
    effort_of,
    functions_of,
    instructed,
    json_text,
    returned,
    said,
)
from harmony_stream.adapters.conversations.fields import Field
from harmony_stream.values.messages import Conversation, Message, Role, SystemContent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from harmony_stream.adapters.conversations.fields import ConversationError
    from harmony_stream.values.messages import ReasoningEffort

_ROLES = ("user", "assistant", "system", "developer")

# `phase` of an assistant's message: exactly harmony's two visible channels.
_CHANNELS = {"commentary": "commentary", "final_answer": "final"}

# The API's names for the built-in tools, and the methods that add them to the system message.
_BUILT_IN: dict[str, Callable[[SystemContent], SystemContent]] = {
    "web_search": SystemContent.with_browser_tool,
    "web_search_preview": SystemContent.with_browser_tool,
    "code_interpreter": SystemContent.with_python_tool,
}

# Actions of the browser: the function, and the fields that are its arguments.
_ACTIONS = {
    "search": ("search", ("query",)),
    "open_page": ("open", ("url",)),
    "find_in_page": ("find", ("pattern", "url")),
    "find": ("find", ("pattern", "url")),
}

# Calls, and the status of one that was cut off. Searches do not have the status `incomplete`.
_CUT_OFF = {
    "function_call": ("incomplete",),
    "custom_tool_call": ("incomplete",),
    "code_interpreter_call": ("incomplete",),
    "web_search_call": ("incomplete", "failed"),
    "mcp_call": ("incomplete",),
}

_CURSOR = re.compile(r"-?\d{1,18}")


def conversation_from_responses(
    input_items: str | Iterable[Mapping[str, Any]],
    instructions: str | None = None,
    *,
    tools: Iterable[Mapping[str, Any]] | None = None,
    text: Mapping[str, Any] | None = None,
    reasoning: Mapping[str, Any] | None = None,
    date: str | None = None,
    on_left_out: Callable[[ConversationError], None] | None = None,
) -> Conversation:
    """Return the conversation that a request to the Responses API describes.

    Each item becomes a message: `message`, `reasoning`, `function_call`, `custom_tool_call` and
    their outputs. A `message` of the assistant goes to `final`, unless its `phase` names another
    channel. The items of tools that the server runs (`code_interpreter_call`, `web_search_call` and
    `mcp_call`) become the call, and the result if they hold it. A truncated call, which
    `ResponseStream` sends, is left out: a prompt would show it as if it had been made.

    Args:
        input_items: the API's `input`, which is the user's text, or items.
        instructions: instructions that come before those of the items.
        tools: functions; `web_search` (`web_search_preview`) is the built-in browser, and
            `code_interpreter` the built-in Python.
        text: an object with `format`, of type `text`, `json_object` or `json_schema`.
        reasoning: an object with `effort`: `low`, `medium` or `high`; `minimal` is low and `xhigh`
            high.
        date: the date given to the model, such as `2025-06-28`, or None.
        on_left_out: a function that is called for each call that is left out.

    Raises:
        ConversationError: if a conversation cannot express a value. The error names the item.

    >>> conversation = conversation_from_responses([
    ...     {"role": "user", "content": "Tide at Oban?"},
    ...     {"type": "function_call", "call_id": "c1", "name": "tide", "arguments": "{}"},
    ...     {"type": "function_call_output", "call_id": "c1", "output": "2.4 m"},
    ... ], "Be brief.")
    >>> [(message.author.role.value, message.author.name) for message in conversation]
    [('system', None), ('developer', None), ('user', None), ('assistant', None), \
('tool', 'functions.tide')]
    """
    system = SystemContent(
        reasoning_effort=_effort(Field(reasoning, "reasoning")), conversation_start_date=date
    )
    declared = Field(tools, "tools").each()
    functions = functions_of([tool for tool in declared if _is_function(system, tool)])
    form = _format(Field(text, "text"))
    given = Field(instructions, "instructions").optional_text()
    reader = _Reader((function.name for function in functions), on_left_out)
    read = reader.read_all(Field(input_items, "input"))
    return assembled(system, developer_of(functions, form, None), [*instructed(given), *read])


def _effort(reasoning: Field) -> ReasoningEffort:
    return effort_of(reasoning if reasoning.value is None else reasoning["effort"])


def _is_function(system: SystemContent, tool: Field) -> bool:
    """Return whether the tool is a function; a built-in one is added to the system message."""
    kind = tool["type"].one_of(("function", *_BUILT_IN), "declare it as a function")
    if kind in _BUILT_IN:
        _BUILT_IN[kind](system)
    return kind == "function"


def _format(text: Field) -> Field:
    if text.value is None:
        return text
    if text["verbosity"].value not in (None, "medium"):
        text["verbosity"].fail("is not supported by gpt-oss", "put it in the instructions")
    return text["format"]


class _Reader:
    """Reads items one after the other."""

    def __init__(
        self,
        declared: Iterable[str],
        on_left_out: Callable[[ConversationError], None] | None,
    ) -> None:
        self._calls = Calls(frozenset(declared))
        self._on_left_out = on_left_out
        self._kinds: dict[str, Callable[[Field], list[Message]]] = {
            "message": self._message,
            "reasoning": self._reasoning,
            "function_call": self._function_call,
            "function_call_output": self._output,
            "custom_tool_call": self._custom_call,
            "custom_tool_call_output": self._output,
            "code_interpreter_call": self._code,
            "web_search_call": self._web_search,
            "mcp_call": self._server_tool,
        }

    def read_all(self, items: Field) -> list[Message]:
        if isinstance(items.value, str):
            return [said(Role.USER, items.value)]
        return [message for item in items.entries() for message in self._read(item)]

    def _read(self, item: Field) -> list[Message]:
        kind = item["type"]
        if kind.value is None and item["role"].value is not None:
            return self._message(item)
        if kind.value == "item_reference":
            kind.fail("refers to an item that is stored elsewhere", "give the item itself")
        remedy = "put it in words as a message, or leave it out"
        read = self._kinds[kind.one_of(self._kinds, remedy)]
        if item["status"].value in _CUT_OFF.get(kind.value, ()):
            return self._leave_out(item)
        return read(item)

    def _leave_out(self, item: Field) -> list[Message]:
        """Leave out a truncated call, which a prompt would show as if it had been made."""
        self._calls.leave_out(item["call_id"])
        if self._on_left_out is not None:
            reason = "says that the call was cut off"
            self._on_left_out(item["status"].error(reason, "the item is left out of the prompt"))
        return []

    # -- Texts --

    def _message(self, item: Field) -> list[Message]:
        role = item["role"].one_of(_ROLES, "give one of them")
        if role == "assistant":
            # Only parsed completions have a phase.
            read = answer_text if item["phase"].value is None else content_text
            return [said(Role.ASSISTANT, read(item["content"]), _channel(item["phase"]))]
        text = content_text(item["content"])
        return [said(Role.USER, text)] if role == "user" else instructed(text)

    def _reasoning(self, item: Field) -> list[Message]:
        """Return one message with the content or else the summary, or none if there is no text."""
        parts = item["content"].each() or item["summary"].each()
        text = "\n".join(part["text"].text() for part in parts)
        if not text and item["encrypted_content"].value:
            item["encrypted_content"].fail("cannot be read", "give the reasoning's content")
        return [said(Role.ASSISTANT, text, "analysis")] if text else []

    # -- Calls that the client makes --

    def _function_call(self, item: Field) -> list[Message]:
        return [called(self._open(item), json_text(item["arguments"]), "commentary", JSON)]

    def _custom_call(self, item: Field) -> list[Message]:
        return [called(self._open(item), item["input"].text(), "commentary", None)]

    def _open(self, item: Field) -> str:
        recipient = self._calls.recipient(item["name"])
        self._calls.open(item["call_id"], recipient)
        return recipient

    def _output(self, item: Field) -> list[Message]:
        author = self._calls.answer(item["call_id"])
        return [returned(author, content_text(item["output"]), "commentary")]

    # -- Calls that the server makes. Format guide, "Built in tools": they go to analysis. --

    def _code(self, item: Field) -> list[Message]:
        messages = [called("python", item["code"].text(), "analysis", "code")]
        if outputs := item["outputs"].each():
            messages.append(returned("python", "".join(map(_log, outputs)), "analysis"))
        return messages

    def _web_search(self, item: Field) -> list[Message]:
        """Return the call alone, since the API's item does not hold the search results."""
        action = item["action"]
        function, keys = _ACTIONS[action["type"].one_of(_ACTIONS, "leave the item out")]
        if action["queries"].value not in (None, [], [action["query"].value]):
            action["queries"].fail("are more than one", "give one item for each query")
        arguments: dict[str, Any] = {}
        for key in keys:
            text = action[key].text()
            arguments |= _page(text) if key == "url" else {key: text}
        content = compact_json(arguments)
        return [called(f"browser.{function}", content, "analysis", "code")]

    def _server_tool(self, item: Field) -> list[Message]:
        name = f"{item['server_label'].word()}.{item['name'].word()}"
        messages = [called(name, json_text(item["arguments"]), "commentary", JSON)]
        results = [item[key] for key in ("output", "error") if item[key].value is not None]
        return messages + [returned(name, result.text(), "commentary") for result in results]


def _channel(phase: Field) -> str:
    if phase.value is None:
        return "final"
    return _CHANNELS[phase.one_of(_CHANNELS, "give one of them, or none")]


def _log(output: Field) -> str:
    output["type"].one_of(("logs",), "gpt-oss reads only text: leave it out")
    return output["logs"].text()


def _page(url: str) -> dict[str, Any]:
    """Return the page that an address names: `cursor:NUMBER` is an earlier result, -1 the last.

    >>> _page("cursor:2"), _page("cursor:-1"), _page("https://tides.example")
    ({'cursor': 2}, {}, {'id': 'https://tides.example'})
    """
    cursor = url.removeprefix("cursor:")
    # Python refuses to read very many digits, and no page number needs them.
    if cursor == url or not _CURSOR.fullmatch(cursor):
        return {"id": url}
    return {} if cursor == "-1" else {"cursor": int(cursor)}
