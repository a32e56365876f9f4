"""Parts that conversations from both APIs share: texts, messages, calls, and the opening.

Format guide, "System message format", "Developer message format" and "Function calling".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from harmony_stream.adapters.names import bare_name
from harmony_stream.values.header import CONSTRAIN_MARKER
from harmony_stream.values.messages import (
    Author,
    Conversation,
    DeveloperContent,
    Message,
    ReasoningEffort,
    Role,
    SystemContent,
    TextContent,
)
from harmony_stream.values.tools import FUNCTIONS, ToolDescription

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from harmony_stream.adapters.conversations.fields import Field

JSON = f"{CONSTRAIN_MARKER}json"

# The model has three efforts. Its reasoning cannot be switched off, so `none` is refused.
_EFFORTS = {
    "minimal": ReasoningEffort.LOW,
    "low": ReasoningEffort.LOW,
    "medium": ReasoningEffort.MEDIUM,
    "high": ReasoningEffort.HIGH,
    "xhigh": ReasoningEffort.HIGH,
}

# The types of part that hold text, and the key of the text in each.
_TEXT_PARTS = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
}

# A name with a namespace: `browser.search`.
_HAS_NAMESPACE = re.compile(r"[\w-]+\..+")

# The beginning of a completion that a server did not parse.
_MARKUP = re.compile(r"\s*(<\|start\|>assistant)?<\|channel\|>[^\n]*?<\|message\|>")


# --- Texts ---------------------------------------------------------------------------------------


def content_text(content: Field) -> str:
    """Return the text of content, which is a string, or parts that are joined unchanged.

    >>> parts = [{"type": "text", "text": "Low "}, {"type": "text", "text": "tide"}]
    >>> from harmony_stream.adapters.conversations.fields import Field
    >>> content_text(Field(parts, "content"))
    'Low tide'
    """
    if content.value is None:
        content.fail("is missing", 'give a string, which may be ""')
    if isinstance(content.value, str):
        return content.value
    return "".join(map(_part_text, content.each()))


def _part_text(part: Field) -> str:
    remedy = "gpt-oss reads only text: put it in words, or leave it out"
    return part[_TEXT_PARTS[part["type"].one_of(_TEXT_PARTS, remedy)]].text()


def answer_text(content: Field) -> str:
    """Return the text of the assistant's content, which must not be an unparsed completion."""
    text = content_text(content)
    if _MARKUP.match(text):
        reason = "is a completion in harmony's own markup"
        content.fail(reason, "parse it first, and give reasoning, content and tool calls apart")
    return text


def compact_json(value: object) -> str:
    """Return JSON without spaces, as in the format guide and in most of the model's output."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def json_text(value: Field) -> str:
    """Return a string unchanged, and an object as JSON.

    >>> from harmony_stream.adapters.conversations.fields import Field
    >>> json_text(Field({"city": "Łódź"}, "arguments")), json_text(Field('"as it is"', "arguments"))
    ('{"city":"Łódź"}', '"as it is"')
    """
    if isinstance(value.value, str):
        return value.value
    if not isinstance(value.value, Mapping):
        value.fail("is neither JSON text nor an object", 'give one of them, "{}" for no arguments')
    try:
        return compact_json(value.value)
    except (TypeError, ValueError, RecursionError):
        value.fail("cannot be written as JSON", "give it as JSON text")


# --- Messages ------------------------------------------------------------------------------------


def said(role: Role, text: str, channel: str | None = None) -> Message:
    """Return a message without a recipient."""
    return Message(author=Author(role=role), content=[TextContent(text=text)], channel=channel)


def called(recipient: str, text: str, channel: str, content_type: str | None) -> Message:
    """Return a tool call of the assistant. Format guide, "Receiving tool calls"."""
    message = said(Role.ASSISTANT, text, channel)
    message.recipient, message.content_type = recipient, content_type
    return message


def returned(tool: str, text: str, channel: str) -> Message:
    """Return a tool result. Format guide, "Handling tool calls"."""
    message = said(Role.TOOL, text, channel).with_recipient("assistant")
    message.author.name = tool
    return message


def instructed(text: str) -> list[Message]:
    """Return instructions from any role as a message; an empty text gives none."""
    instructions = DeveloperContent(instructions=text)
    return [Message.from_role_and_content(Role.DEVELOPER, instructions)] if text else []


# --- Calls ---------------------------------------------------------------------------------------


class Calls:
    """The calls made so far, which match results to their calls.

    Args:
        declared: names of the functions that the request declares.

    >>> calls = Calls(["get_weather"])
    >>> from harmony_stream.adapters.conversations.fields import Field
    >>> calls.recipient(Field("get_weather", "name")), calls.recipient(Field("web.find", "name"))
    ('functions.get_weather', 'web.find')
    """

    def __init__(self, declared: Collection[str]) -> None:
        self._declared = declared
        self._recipients: dict[str, str] = {}
        self._open: set[str] = set()
        self._cut_off: set[str] = set()

    def recipient(self, name: Field) -> str:
        """Return the recipient of a call of this name.

        A namespace is kept unless a function has the name. It is the inverse of
        `harmony_stream.adapters.routing.tool_route`.
        """
        word = name.word()
        if not bare_name(word):
            name.fail("does not name a function", "give the function's name")
        if word not in self._declared and _HAS_NAMESPACE.fullmatch(word):
            return word
        return f"{FUNCTIONS}.{word}"

    def open(self, identity: Field, recipient: str) -> None:
        """Note a call. A call without an id cannot be answered by id."""
        if not (found := identity.optional_text()):
            return
        if found in self._open:
            identity.fail("is the id of an earlier call too", "give each call an id of its own")
        self._recipients[found] = recipient
        self._open.add(found)

    def leave_out(self, identity: Field) -> None:
        """Note a call that was cut off, so that it cannot be answered."""
        self._cut_off.add(identity.optional_text())

    def answer(self, identity: Field) -> str:
        """Return the recipient of the call that is answered."""
        found = identity.text()
        if found in self._cut_off:
            identity.fail("is the id of a call that was cut off", "leave out the result")
        if found not in self._recipients:
            known = ", ".join(map(repr, self._recipients)) or "none"
            remedy = (
                f"put the call before its result, or leave out the result (ids so far: {known})"
            )
            identity.fail("is not the id of an earlier call", remedy)
        if found not in self._open:
            identity.fail("is answered already", "give one result for each call")
        self._open.remove(found)
        return self._recipients[found]


# --- The opening ---------------------------------------------------------------------------------


def effort_of(effort: Field) -> ReasoningEffort:
    """Return the reasoning effort, or medium if the request has none, as in openai_harmony.

    >>> from harmony_stream.adapters.conversations.fields import Field
    >>> effort_of(Field("minimal", "reasoning_effort"))
    <ReasoningEffort.LOW: 'Low'>
    """
    if effort.value is None:
        return ReasoningEffort.MEDIUM
    word = effort.text().lower()
    if word == "none":
        effort.fail("is not available: gpt-oss always reasons", "give low, or drop the reasoning")
    lowered = attrs.evolve(effort, value=word)
    return _EFFORTS[lowered.one_of(_EFFORTS, "give low, medium or high")]


def functions_of(functions: Iterable[Field]) -> list[ToolDescription]:
    """Return the functions that the request declares. Format guide, "Defining available tools"."""
    found: dict[str, ToolDescription] = {}
    for function in functions:
        name, parameters = function["name"].word(), function["parameters"]
        if name in found:
            function["name"].fail("is declared twice", "give each function a name of its own")
        found[name] = ToolDescription(
            name=name,
            description=function["description"].optional_text(),
            parameters=None if parameters.value is None else _schema(parameters),
        )
    return list(found.values())


def _schema(schema: Field) -> dict[str, Any]:
    if not isinstance(schema.value, Mapping):
        schema.fail("is not a JSON schema", "give a dict")
    return dict(schema.value)


def developer_of(
    functions: list[ToolDescription], form: Field, holder: str | None
) -> DeveloperContent:
    """Return functions and the format of the answer. Format guide, "Structured output".

    Args:
        functions: the functions that the request declares.
        form: the request's format; its value is None if it has none.
        holder: the key of the object with name and schema; None if they are in the format itself.
    """
    content = DeveloperContent()
    if functions:
        content.with_function_tools(functions)
    if form.value is None:
        return content
    kinds = ("text", "json_object", "json_schema")
    kind = form["type"].one_of(kinds, "give one of them, and a grammar to the engine")
    if kind == "json_object":
        content.with_response_format(kind, {"type": "object"})
    if kind == "json_schema":
        named = form if holder is None else form[holder]
        name, description = named["name"].word(), named["description"].optional_text()
        content.with_response_format(name, _schema(named["schema"]), description or None)
    return content


def assembled(
    system: SystemContent, developer: DeveloperContent, messages: Iterable[Message]
) -> Conversation:
    """Return the conversation: the system message, the developer message, and the others.

    Adjacent instructions become one message, and the first one gets the tools and the formats.
    Later instructions stay in their place, since they apply from there on.
    """
    joined = list(_joined(messages))
    if joined and joined[0].author.role is Role.DEVELOPER:
        developer.instructions = _instructions(joined.pop(0))
    opening = [Message.from_role_and_content(Role.SYSTEM, system)]
    if developer != DeveloperContent():
        opening.append(Message.from_role_and_content(Role.DEVELOPER, developer))
    return Conversation(messages=[*opening, *joined])


def _joined(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages, with adjacent instructions joined into one."""
    texts: list[str] = []
    for message in messages:
        if message.author.role is Role.DEVELOPER:
            texts.append(_instructions(message))
        else:
            yield from instructed("\n\n".join(texts))
            texts = []
            yield message
    yield from instructed("\n\n".join(texts))


def _instructions(message: Message) -> str:
    content = message.content[0]
    assert isinstance(content, DeveloperContent)
    return content.instructions or ""
