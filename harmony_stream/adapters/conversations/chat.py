"""Messages of the Chat Completions API as a conversation.

Source: `openai.types.chat.ChatCompletionMessageParam`, and the names that servers use for the
reasoning. It is the inverse of `harmony_stream.adapters.chat_completions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harmony_stream.adapters.conversations.common import (
    JSON,
    Calls,
    answer_text,
    assembled,
    called,
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

# vLLM and Ollama's /v1 write the first, SGLang and llama.cpp the second, Hugging Face the third.
_REASONING = ("reasoning", "reasoning_content", "thinking")

# OpenRouter and LiteLLM write these beside the text.
_REASONING_IN_PARTS = ("reasoning_details", "thinking_blocks")

# Fields whose content harmony cannot express, and the remedy for each.
_NOT_HELD = {
    "audio": "give its transcript as content",
    "function_call": "give it in tool_calls",
}

# Fields that only the assistant's messages have.
_OF_ASSISTANT = (*_REASONING, "refusal", "tool_calls")


def conversation_from_chat(
    messages: Iterable[Mapping[str, Any]],
    *,
    tools: Iterable[Mapping[str, Any]] | None = None,
    response_format: Mapping[str, Any] | None = None,
    reasoning_effort: str | None = None,
    date: str | None = None,
) -> Conversation:
    """Return the conversation that a request to the Chat Completions API describes.

    It begins with a system message, then one developer message with instructions, functions and
    response format, if there are any. A message of the assistant becomes its reasoning on
    `analysis`, then its content on `final`, then its calls. Content beside calls is a preamble, on
    `commentary`.

    Args:
        messages: messages of the roles `system`, `developer`, `user`, `assistant` and `tool`.
        tools: the functions, as the API expects them.
        response_format: a format of type `text`, `json_object` or `json_schema`.
        reasoning_effort: `low`, `medium` or `high`; `minimal` is low and `xhigh` high.
        date: the date given to the model, such as `2025-06-28`, or None.

    Raises:
        ConversationError: if a conversation cannot express a value. The error names the message.

    >>> conversation = conversation_from_chat([
    ...     {"role": "system", "content": "Be brief."},
    ...     {"role": "user", "content": "Tide at Oban?"},
    ...     {"role": "assistant", "reasoning": "Ask.", "tool_calls": [
    ...         {"id": "c1", "function": {"name": "tide", "arguments": {"at": "Oban"}}}]},
    ...     {"role": "tool", "tool_call_id": "c1", "content": "2.4 m"},
    ... ])
    >>> for message in conversation.messages[3:]:
    ...     print(message.channel, message.recipient, message.content[0].text)
    analysis None Ask.
    commentary functions.tide {"at":"Oban"}
    commentary assistant 2.4 m
    """
    system = SystemContent(
        reasoning_effort=effort_of(Field(reasoning_effort, "reasoning_effort")),
        conversation_start_date=date,
    )
    functions = functions_of(map(_function, Field(tools, "tools").each()))
    form = Field(response_format, "response_format")
    reader = _Reader(function.name for function in functions)
    read = map(reader.read, Field(messages, "messages").entries())
    return assembled(
        system,
        developer_of(functions, form, "json_schema"),
        (message for group in read for message in group),
    )


def _function(tool: Field) -> Field:
    tool["type"].one_of(("function",), "declare it as a function")
    return tool["function"]


class _Reader:
    """Reads messages one after the other."""

    def __init__(self, declared: Iterable[str]) -> None:
        self._calls = Calls(frozenset(declared))

    def read(self, message: Field) -> list[Message]:
        roles = [role.value for role in Role]
        role = message["role"].one_of(roles, "give one of them; tool results have role tool")
        _refuse_what_is_not_held(message, role)
        if role == "assistant":
            return _named(message, self._assistant(message))
        text = content_text(message["content"])
        if role == "tool":
            return [returned(self._author(message), text, "commentary")]
        if role == "user":
            return _named(message, [said(Role.USER, text)])
        if message["name"].value is not None:
            message["name"].fail("has no place in instructions", "leave it out")
        return instructed(text)

    def _assistant(self, message: Field) -> list[Message]:
        reasoning = _reasoning(message)
        is_parsed = bool(reasoning or message["tool_calls"].value)
        content = _answer(message, content_text if is_parsed else answer_text)
        calls = [self._call(call) for call in message["tool_calls"].each()]
        found = [said(Role.ASSISTANT, reasoning, "analysis")] if reasoning else []
        # Beside reasoning or calls, "" means nothing; alone it is an empty answer.
        if content or (content is not None and not found and not calls):
            found.append(said(Role.ASSISTANT, content, "commentary" if calls else "final"))
        if not (found or calls):
            message["content"].fail("is not enough", "give content, reasoning or tool calls")
        return found + calls

    def _call(self, call: Field) -> Message:
        if call["type"].value is not None:
            call["type"].one_of(("function",), "give it as a call of a function")
        function = call["function"]
        recipient = self._calls.recipient(function["name"])
        self._calls.open(call["id"], recipient)
        return called(recipient, json_text(function["arguments"]), "commentary", JSON)

    def _author(self, message: Field) -> str:
        """Return the tool of the result, by the id of its call, or by name if there is no id."""
        identity, name = message["tool_call_id"], message["name"]
        named = None if name.value is None else self._calls.recipient(name)
        if identity.value in (None, ""):
            return named or identity.fail("is missing", "give the id of the call, or a name")
        author = self._calls.answer(identity)
        if named not in (None, author):
            name.fail(f"did not get the call, {author} did", "give the name of the call, or none")
        return author


def _refuse_what_is_not_held(message: Field, role: str) -> None:
    for key, remedy in _NOT_HELD.items():
        if message[key].value is not None:
            message[key].fail("has no place in harmony", remedy)
    for key in () if role == "assistant" else _OF_ASSISTANT:
        if message[key].value:
            message[key].fail(f"has no place in a message of role {role}", "leave it out")


def _reasoning(message: Field) -> str:
    """Return the reasoning, which may be under several names but must be the same under each."""
    fields = [message[key] for key in _REASONING if message[key].optional_text()]
    for key in () if fields else _REASONING_IN_PARTS:
        if message[key].value:
            message[key].fail("is not read", "give its text as reasoning")
    for other in fields[1:]:
        if other.value != fields[0].value:
            other.fail(f"differs from {fields[0].path}", "give one text of reasoning")
    return fields[0].text() if fields else ""


def _answer(message: Field, read: Callable[[Field], str]) -> str | None:
    """Return content and refusal, since the user saw both, or None if there is neither."""
    texts = [read(field) for key in ("content", "refusal")
             if (field := message[key]).value is not None]  # fmt: skip
    return "".join(texts) if texts else None


def _named(message: Field, made: list[Message]) -> list[Message]:
    """Return the messages with the participant's name as their author, written `role:name`."""
    if message["name"].value is not None:
        for each in made:
            each.author.name = message["name"].word()
    return made
