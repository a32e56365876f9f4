"""Messages of the Chat Completions API as a conversation.

Source: `openai.types.chat.ChatCompletionMessageParam`, and the names that servers have for the
chain of thought. The way back of `harmony_stream.adapters.chat_completions`.
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

# Fields whose content harmony cannot hold, and what to do about it.
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
    """The conversation that a request to the Chat Completions API describes.

    A system message opens it, then one developer message with instructions, functions and response
    format, if there are any. An assistant's message becomes its reasoning on `analysis`, then its
    content on `final` (on `commentary`, as a preamble, if it comes with calls), then its calls.

    Args:
        messages: of the roles `system`, `developer`, `user`, `assistant` and `tool`.
        tools: the functions, as the API takes them.
        response_format: of type `text`, `json_object` or `json_schema`.
        reasoning_effort: `low`, `medium` or `high`; `minimal` is low and `xhigh` high.
        date: what the model takes for the current date, such as `2025-06-28`; None tells it none.

    Raises:
        ConversationError: something has no place in a conversation; it names the message.

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
        role = message["role"].one_of(roles, "give one of them; results of functions are tool's")
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
        # Beside reasoning or calls, "" says nothing; alone it is an answer that is empty.
        if content or (content is not None and not found and not calls):
            found.append(said(Role.ASSISTANT, content, "commentary" if calls else "final"))
        if not (found or calls):
            message["content"].fail("is all there is", "give content, reasoning or tool calls")
        return found + calls

    def _call(self, call: Field) -> Message:
        if call["type"].value is not None:
            call["type"].one_of(("function",), "give it as a call of a function")
        function = call["function"]
        recipient = self._calls.recipient(function["name"])
        self._calls.open(call["id"], recipient)
        return called(recipient, json_text(function["arguments"]), "commentary", JSON)

    def _author(self, message: Field) -> str:
        """Who answers: found by the id of the call, or by name where there is none."""
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
    """The chain of thought, which may stand under several names, but must be one."""
    fields = [message[key] for key in _REASONING if message[key].optional_text()]
    for key in () if fields else _REASONING_IN_PARTS:
        if message[key].value:
            message[key].fail("is not read", "give its text as reasoning")
    for other in fields[1:]:
        if other.value != fields[0].value:
            other.fail(f"differs from {fields[0].path}", "give one chain of thought")
    return fields[0].text() if fields else ""


def _answer(message: Field, read: Callable[[Field], str]) -> str | None:
    """Content and refusal, which the user saw both; None if there is neither."""
    texts = [read(field) for key in ("content", "refusal")
             if (field := message[key]).value is not None]  # fmt: skip
    return "".join(texts) if texts else None


def _named(message: Field, made: list[Message]) -> list[Message]:
    """The messages by the participant of that name, if it has one; it is written `role:name`."""
    if message["name"].value is not None:
        for each in made:
            each.author.name = message["name"].word()
    return made
