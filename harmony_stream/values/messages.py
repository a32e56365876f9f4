"""Messages and conversations as values, which people build and servers pass around.

The classes, names and dicts are those of openai_harmony 0.0.8. `harmony_stream.support.value`
describes what a value can do and accepts. A message is an author, a list of contents, and three
fields of its header::

    Message(author=Author(role, name), content=[...], channel, recipient, content_type)

Contents are `TextContent`, and for the first messages of a prompt `SystemContent` and
`DeveloperContent`, which the renderer writes out as text. Dates are arguments: nothing here reads
the clock.
"""

# ruff: noqa: ANN401 - dicts, and the data that servers pass, hold values of any type

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, ClassVar, Self

import attrs

from harmony_stream.support.value import ONLY_WHEN_SET, Value
from harmony_stream.support.value_kinds import FieldError, OfItsKind, within
from harmony_stream.values.tools import ToolDescription, ToolNamespaceConfig


# Not StrEnum, here and below: f"{Role.USER}" is "Role.USER" in openai_harmony.
class Role(str, Enum):  # noqa: UP042
    """The role of an author (the format guide, "Roles"). It is a `str`, equal to its plain name.

    >>> Role("tool") is Role.TOOL, Role.TOOL == "tool"
    (True, True)
    """

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    DEVELOPER = "developer"
    TOOL = "tool"

    @classmethod
    def _missing_(cls, value: object) -> Role:
        allowed = ", ".join(repr(role.value) for role in cls)
        raise ValueError(f"Unknown role: {value!r}; expected one of {allowed}")

    __hash__ = str.__hash__  # a role is equal to its text, so their hashes are too


class ReasoningEffort(str, Enum):  # noqa: UP042
    """The reasoning effort (the format guide, "System message format"), written in lower case."""

    LOW = "Low"
    MEDIUM = "Medium"
    HIGH = "High"


class Author(Value):
    """The author of a message: a role and, for tools, the name that replaces it in the header.

    >>> Author(role="user")
    Author(role=<Role.USER: 'user'>, name=None)
    """

    role: Role
    name: str | None = None

    @classmethod
    def new(cls, role: Role | str, name: str) -> Self:
        """Return an author with a name.

        >>> Author.new(Role.TOOL, "functions.get_weather").name
        'functions.get_weather'
        """
        return cls.model_validate({"role": role, "name": name})


class ChannelConfig(Value):
    """The channels that the system message names.

    If `channel_required` is true, each message must name one of them.

    >>> ChannelConfig.require_channels(["analysis", "final"])
    ChannelConfig(valid_channels=['analysis', 'final'], channel_required=True)
    """

    valid_channels: list[str]
    channel_required: bool

    @classmethod
    def require_channels(cls, channels: Iterable[str]) -> Self:
        """Return a config with these channels, one of which each message must name."""
        return cls(valid_channels=list(channels), channel_required=True)


# --- Contents ---------------------------------------------------------------------------------


class Content(Value):
    """One part of a message, the base of the kinds below, which `type` distinguishes in dicts.

    >>> Content.model_validate({"type": "text", "text": "Hello"})
    TextContent(text='Hello')
    """

    _type: ClassVar[str] = ""
    _marks = ("type",)

    def to_dict(self) -> dict[str, Any]:
        """Return the part as a dict with its `type`. Each kind of content implements this."""
        raise NotImplementedError(f"{type(self).__name__}.to_dict")

    @classmethod
    def _from_plain(cls, value: Any) -> Any:
        if cls is not Content:
            return super()._from_plain(value)
        if isinstance(value, str):
            return TextContent(text=value)
        if not isinstance(value, Mapping) or value.get("type") not in tuple(_CONTENTS):
            known = ", ".join(map(repr, _CONTENTS))
            sentence = (
                f"Unknown content variant: {short(value)}; "
                f"expected a string, a Content, or a mapping whose type is one of {known}"
            )
            raise FieldError(sentence, (), value)
        return _CONTENTS[value["type"]].model_validate(value)

    @classmethod
    def model_json_schema(cls, **options: Any) -> dict[str, Any]:
        """Return the fields as JSON schema; for `Content` itself, one schema for each kind."""
        if cls is not Content:
            return super().model_json_schema(**options)
        return {"anyOf": [_tagged_schema(kind) for kind in _CONTENTS.values()]}

    # The last in this class, since `type` is not the built-in class from here on.
    @property
    def type(self) -> str:
        """The kind as in dicts, which is `text`, `system_content` or `developer_content`.

        >>> TextContent(text="Hello").type
        'text'
        """
        return self._type


class TextContent(Content):
    """Text, which a prompt contains unchanged.

    >>> TextContent(text="Hello").to_dict()
    {'type': 'text', 'text': 'Hello'}
    """

    _type = "text"

    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return the type, the text, and the fields that a subclass adds."""
        return {"type": self._type, "text": self.text, **self._beyond(TextContent)}


class _WithTools(Content):
    """The base of the contents of the system and developer messages, with namespaces of tools."""

    if TYPE_CHECKING:
        tools: dict[str, ToolNamespaceConfig] | None

    @classmethod
    def new(cls) -> Self:
        """Return a content with all its defaults."""
        return cls.model_validate({})

    def with_tools(self, ns_config: ToolNamespaceConfig) -> Self:
        """Add a namespace, or replace the one of its name, and return the content itself."""
        self.tools = {**(self.tools or {}), ns_config.name: ns_config}
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are not None, and the type, which is last as in openai_harmony.

        A None in place of another default is therefore lost, as there. `model_dump` keeps it.
        """
        return {**self.model_dump(exclude_none=True), "type": self._type}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Self:
        """Return the content from a dict that `to_dict` returned."""
        return cls.model_validate(raw)


class SystemContent(_WithTools):
    """The system message: the model's identity, dates, effort, channels and built-in tools.

    The defaults are openai_harmony's (the format guide, "System message format").

    >>> system = SystemContent.new().with_conversation_start_date("2025-06-28").with_browser_tool()
    >>> system.conversation_start_date, list(system.tools)
    ('2025-06-28', ['browser'])
    """

    _type = "system_content"

    model_identity: str | None = "You are ChatGPT, a large language model trained by OpenAI."
    reasoning_effort: ReasoningEffort | None = ReasoningEffort.MEDIUM
    conversation_start_date: str | None = None
    knowledge_cutoff: str | None = "2024-06"
    channel_config: ChannelConfig | None = attrs.field(
        factory=lambda: ChannelConfig.require_channels(["analysis", "commentary", "final"])
    )
    tools: dict[str, ToolNamespaceConfig] | None = None

    def with_model_identity(self, model_identity: str) -> Self:
        """Set the first sentence, and return the content itself, as all `with_` methods do."""
        self.model_identity = model_identity
        return self

    def with_reasoning_effort(self, reasoning_effort: ReasoningEffort) -> Self:
        """Set the reasoning effort."""
        self.reasoning_effort = reasoning_effort
        return self

    def with_conversation_start_date(self, conversation_start_date: str) -> Self:
        """Set the date that is given to the model as the current date."""
        self.conversation_start_date = conversation_start_date
        return self

    def with_knowledge_cutoff(self, knowledge_cutoff: str) -> Self:
        """Set the date at which the model's knowledge ends."""
        self.knowledge_cutoff = knowledge_cutoff
        return self

    def with_channel_config(self, channel_config: ChannelConfig) -> Self:
        """Set the channels, and the flag that requires them."""
        self.channel_config = channel_config
        return self

    def with_required_channels(self, channels: Iterable[str]) -> Self:
        """Set the channels, and require each message to name one."""
        return self.with_channel_config(ChannelConfig.require_channels(channels))

    def with_browser_tool(self) -> Self:
        """Add the built-in browser."""
        return self.with_tools(ToolNamespaceConfig.browser())

    def with_python_tool(self) -> Self:
        """Add the built-in Python."""
        return self.with_tools(ToolNamespaceConfig.python())


class ResponseFormat(Value):
    """A JSON schema that answers should follow (the format guide, "Structured output")."""

    name: str
    description: str | None = None
    schema: dict[str, Any]  # type: ignore[assignment]  # hides the method of this name


class DeveloperContent(_WithTools):
    """The developer message: instructions, functions and response formats.

    openai_harmony has no response formats, so `to_dict` contains them only if there are any.

    >>> DeveloperContent.new().with_instructions("Be brief.").to_dict()
    {'instructions': 'Be brief.', 'type': 'developer_content'}
    """

    _type = "developer_content"

    instructions: str | None = None
    tools: dict[str, ToolNamespaceConfig] | None = None
    response_formats: dict[str, ResponseFormat] | None = attrs.field(
        default=None, metadata={ONLY_WHEN_SET: True}
    )

    def with_instructions(self, instructions: str) -> Self:
        """Set the instructions (the system prompt of other formats)."""
        self.instructions = instructions
        return self

    def with_function_tools(self, tools: Iterable[ToolDescription]) -> Self:
        """Set the functions, which are in the namespace `functions`."""
        return self.with_tools(ToolNamespaceConfig(name="functions", tools=list(tools)))

    def with_response_format(
        self, name: str, schema: Mapping[str, Any], description: str | None = None
    ) -> Self:
        """Add a response format, or replace the one of its name.

        The prompt alone does not force the model to follow it. Sampling with a grammar does.

        >>> content = DeveloperContent.new().with_response_format("list", {"type": "array"})
        >>> content.to_dict()["response_formats"]["list"]
        {'name': 'list', 'schema': {'type': 'array'}}
        """
        added = ResponseFormat(name=name, description=description, schema=dict(schema))
        self.response_formats = {**(self.response_formats or {}), name: added}
        return self


_CONTENTS: dict[str, type[Content]] = {
    kind._type: kind for kind in (TextContent, SystemContent, DeveloperContent)
}


def _tagged_schema(kind: type[Content]) -> dict[str, Any]:
    schema = kind.model_json_schema()
    schema["properties"]["type"] = {"const": kind._type}
    schema["required"].append("type")
    return schema


# --- Messages ---------------------------------------------------------------------------------


def _as_contents(value: object) -> object:
    """Return a single content as a list, and anything else unchanged."""
    return [value] if isinstance(value, str | Mapping | Content) else value


class Message(Value):
    """One message: its author, contents, channel, recipient and content type.

    As an extension of openai_harmony, contents may also be plain strings and dicts, or a single one
    without the list.

    >>> message = Message(author={"role": "assistant"}, content="Hi!", channel="final")
    >>> message.author.role, message.content
    (<Role.ASSISTANT: 'assistant'>, [TextContent(text='Hi!')])
    """

    author: Author
    content: list[Content] = attrs.field(factory=list, converter=_as_contents)
    channel: str | None = None
    recipient: str | None = None
    content_type: str | None = None

    @classmethod
    def from_author_and_content(cls, author: Author, content: str | Content) -> Self:
        """Return a message with one content.

        >>> tool = Author.new(Role.TOOL, "functions.f")
        >>> Message.from_author_and_content(tool, "42").author.name
        'functions.f'
        """
        return cls.model_validate({"author": author, "content": [content]})

    @classmethod
    def from_role_and_content(cls, role: Role | str, content: str | Content) -> Self:
        """Return a message with one content, by an author without a name.

        >>> Message.from_role_and_content(Role.USER, "What is 2 + 2?").content[0].text
        'What is 2 + 2?'
        """
        return cls.from_role_and_contents(role, [content])

    @classmethod
    def from_role_and_contents(cls, role: Role | str, contents: Iterable[str | Content]) -> Self:
        """Return a message with several contents, by an author without a name.

        >>> len(Message.from_role_and_contents(Role.USER, [TextContent(text="a"), "b"]).content)
        2
        """
        return cls.model_validate({"author": {"role": role}, "content": contents})

    def adding_content(self, content: str | Content) -> Self:
        """Append a content, and return the message itself, as the `with_` methods do.

        >>> Message.from_role_and_content("user", "a").adding_content("b").content
        [TextContent(text='a'), TextContent(text='b')]
        """
        self.content.append(within("Message.content", Content.model_validate, content))
        return self

    def with_channel(self, channel: str) -> Self:
        """Set the channel."""
        self.channel = channel
        return self

    def with_recipient(self, recipient: str) -> Self:
        """Set the recipient."""
        self.recipient = recipient
        return self

    def with_content_type(self, content_type: str) -> Self:
        """Set the content type."""
        self.content_type = content_type
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the message as a dict, in which the author's fields are beside the others.

        It is the dict that openai_harmony writes.

        >>> Message.from_role_and_content("user", "Hi").to_dict()
        {'role': <Role.USER: 'user'>, 'name': None, 'content': [{'type': 'text', 'text': 'Hi'}]}
        """
        return {
            **self.author.model_dump(),
            "content": [content.to_dict() for content in self.content],
            **{name: word for name in _HEADER if (word := getattr(self, name)) is not None},
            **self._beyond(Message),
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON text, in ASCII as in openai_harmony."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the message from a dict that `to_dict` or `model_dump` returned.

        Content may be a plain string, as openai_harmony's Rust side writes it. Names that no field
        has are ignored.

        >>> Message.from_dict({"role": "user", "content": "Hi"}).content
        [TextContent(text='Hi')]
        """
        author = data["author"] if "author" in data else Author.model_validate(data)
        rest = {name: data.get(name) for name in ("content", *_HEADER)}
        own = {name: data[name] for name in cls._names_beyond(Message) if name in data}
        return cls.model_validate({"author": author, **rest, **own})

    @classmethod
    def from_json(cls, payload: str | bytes) -> Self:
        """Return the message from a text that `to_json` returned.

        >>> Message.from_json('{"role": "user", "content": "Hi"}').author.role
        <Role.USER: 'user'>
        """
        return cls.from_dict(json.loads(payload))

    @classmethod
    def _from_plain(cls, value: Any) -> Any:
        """Read both shapes; the flat one, which chat APIs share, only if nothing is lost."""
        flat = _FLAT.union(cls._names_beyond(Message))
        if isinstance(value, Mapping) and "role" in value and "author" not in value:
            if value.keys() <= flat:
                return cls.from_dict(value)
            others = ", ".join(sorted(map(str, value.keys() - flat)))
            raise FieldError(
                f"{cls.__name__}: no field for {others}; leave it out, or read messages of a chat "
                "API with conversation_from_chat",
                (),
                value,
            )
        return super()._from_plain(value)


_HEADER = ("channel", "recipient", "content_type")
_FLAT = {"role", "name", "content", *_HEADER}


class Decided(OfItsKind):
    """The mark of a history that contains only what goes back to the model.

    `normalize_history` sets it. A renderer without a config then drops nothing. The mark is the
    class of the list or tuple. It therefore survives appending, copying and pickling, and changes
    neither JSON nor comparisons.
    """

    __slots__ = ()


class DecidedList(list[Message], Decided):
    """The messages of a conversation that was made from a decided history."""

    __slots__ = ()

    def __add__(self, other: Iterable[Message]) -> DecidedList:  # type: ignore[override]
        return DecidedList([*self, *other])

    def __radd__(self, other: Iterable[Message]) -> DecidedList:
        return DecidedList([*other, *self])

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return DecidedList(found) if isinstance(place, slice) else found

    def copy(self) -> DecidedList:
        return DecidedList(self)


class DecidedTuple(tuple[Message, ...], Decided):
    """A decided history, which stays one if it is sliced, or if messages are added at its ends.

    >>> question = Message.from_role_and_content("user", "Hi")
    >>> type(DecidedTuple() + [question]).__name__
    'DecidedTuple'
    """

    __slots__ = ()

    def __add__(self, other: Iterable[Message]) -> DecidedTuple:  # type: ignore[override]
        return DecidedTuple((*self, *other))

    def __radd__(self, other: Iterable[Message]) -> DecidedTuple:
        return DecidedTuple((*other, *self))

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return DecidedTuple(found) if isinstance(place, slice) else found


Decided.as_list = DecidedList


class Conversation(Value):
    """Messages in order. Iterating yields them.

    If it is made from the messages of a `History`, it remembers that nothing more may be dropped.

    >>> [message.content[0].text for message in Conversation(messages=[
    ...     Message.from_role_and_content("user", "Hi"),
    ... ])]
    ['Hi']
    """

    messages: list[Message] = attrs.field(factory=list)

    @classmethod
    def from_messages(cls, messages: Iterable[Message]) -> Self:
        """Return a conversation of these messages, with a list of its own."""
        is_decided = isinstance(getattr(messages, "messages", messages), Decided)
        return cls(messages=DecidedList(messages) if is_decided else list(messages))

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    def to_dict(self) -> dict[str, Any]:
        """Return all messages as dicts, as openai_harmony writes them.

        >>> Conversation().to_dict()
        {'messages': []}
        """
        return {"messages": [message.to_dict() for message in self.messages]}

    def to_json(self) -> str:
        """Return `to_dict` as JSON text, in ASCII as in openai_harmony."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, data: Mapping[str, Sequence[Any]]) -> Self:
        """Return the conversation from a dict that `to_dict` returned.

        Each message is read by `Message.from_dict`.

        >>> Conversation.from_dict({"messages": [{"role": "user", "content": []}]}).to_dict()
        {'messages': [{'role': <Role.USER: 'user'>, 'name': None, 'content': []}]}
        """
        if "messages" not in data:
            raise ValueError(f"Conversation.messages is missing in {short(data)}")
        return cls(
            messages=[
                within(f"Conversation.messages[{i}]", Message.from_dict, message)
                for i, message in enumerate(data["messages"])
            ]
        )

    @classmethod
    def from_json(cls, payload: str | bytes) -> Self:
        """Return the conversation from a text that `to_json` returned.

        >>> Conversation.from_json('{"messages": []}')
        Conversation(messages=[])
        """
        return cls.from_dict(json.loads(payload))


# --- Options of the renderer ------------------------------------------------------------------


class RenderConversationConfig(Value):
    """The option to drop analysis of finished turns from a prompt, as in openai_harmony.

    Without a config, the renderer drops it, unless the history was normalised before.

    >>> RenderConversationConfig()
    RenderConversationConfig(auto_drop_analysis=True)
    """

    auto_drop_analysis: bool = True


class RenderOptions(Value):
    """Facts of a conversation that a single message does not contain.

    `conversation_has_function_tools` is true if the conversation offers functions.

    >>> RenderOptions()
    RenderOptions(conversation_has_function_tools=False)
    """

    conversation_has_function_tools: bool = False
