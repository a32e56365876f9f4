"""Messages, contents and conversations, beside those of openai_harmony."""

import asyncio
import copy
import json
import pickle
import subprocess
import sys
from types import SimpleNamespace

import openai_harmony
import pytest
from fastapi import FastAPI
from fastapi.encoders import jsonable_encoder
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from harmony_stream.support.value_kinds import plain_error
from harmony_stream.values import messages, tools
from harmony_stream.values.messages import (
    Author,
    ChannelConfig,
    Content,
    Conversation,
    DecidedList,
    DecidedTuple,
    DeveloperContent,
    Message,
    ReasoningEffort,
    RenderConversationConfig,
    RenderOptions,
    Role,
    SystemContent,
    TextContent,
)
from harmony_stream.values.tools import ToolDescription, ToolNamespaceConfig

OURS = SimpleNamespace(**{**vars(tools), **vars(messages)})
THEIRS = openai_harmony

# --- The same values in both libraries: dicts of fields, and how to build from them ------------

texts = st.text(max_size=8)
maybe = st.none() | texts
json_objects = st.dictionaries(
    texts, st.none() | texts | st.integers() | st.lists(st.booleans(), max_size=2), max_size=2
)
tool_fields = st.fixed_dictionaries(
    {"name": texts, "description": texts}, optional={"parameters": st.none() | json_objects}
)
namespace_fields = st.fixed_dictionaries(
    {"name": texts, "tools": st.lists(tool_fields, max_size=2)}, optional={"description": maybe}
)
tool_maps = st.none() | st.dictionaries(texts, namespace_fields, max_size=2)
channel_fields = st.fixed_dictionaries(
    {"valid_channels": st.lists(texts, max_size=2), "channel_required": st.booleans()}
)
content_fields = st.one_of(
    st.tuples(st.just("TextContent"), st.fixed_dictionaries({"text": texts})),
    st.tuples(
        st.just("SystemContent"),
        st.fixed_dictionaries({}, optional={
            "model_identity": maybe,
            "reasoning_effort": st.none() | st.sampled_from(["Low", "Medium", "High"]),
            "conversation_start_date": maybe,
            "knowledge_cutoff": maybe,
            "channel_config": st.none() | channel_fields,
            "tools": tool_maps,
        }),
    ),
    st.tuples(
        st.just("DeveloperContent"),
        st.fixed_dictionaries({}, optional={"instructions": maybe, "tools": tool_maps}),
    ),
)  # fmt: skip
message_fields = st.fixed_dictionaries(
    {
        "author": st.fixed_dictionaries(
            {"role": st.sampled_from([role.value for role in Role])}, optional={"name": maybe}
        ),
        "content": st.lists(content_fields, max_size=3),
    },
    optional={"channel": maybe, "recipient": maybe, "content_type": maybe},
)


def content_of(library, described):
    kind, fields = described
    return getattr(library, kind)(**fields)


def message_of(library, fields):
    contents = [content_of(library, each) for each in fields["content"]]
    return library.Message(**{**fields, "content": contents})


def conversation_of(library, described):
    return library.Conversation.from_messages([message_of(library, each) for each in described])


def as_text(value):
    """JSON text, in which the order of keys counts."""
    return json.dumps(value)


# --- Laws -------------------------------------------------------------------------------------


@given(message_fields)
def test_a_message_is_written_as_openai_harmony_writes_it(fields):
    ours, theirs = message_of(OURS, fields), message_of(THEIRS, fields)

    assert ours.to_json() == theirs.to_json()
    assert ours.to_dict() == theirs.to_dict()
    assert repr(ours).replace(", response_formats=None", "") == repr(theirs)


@given(st.lists(message_fields, max_size=3))
def test_a_conversation_is_written_as_openai_harmony_writes_it(described):
    ours, theirs = conversation_of(OURS, described), conversation_of(THEIRS, described)

    assert ours.to_json() == theirs.to_json()
    assert Conversation.from_json(theirs.to_json()).to_json() == (
        THEIRS.Conversation.from_json(ours.to_json()).to_json()
    )


@given(content_fields)
def test_a_content_is_written_as_openai_harmony_writes_it(described):
    ours, theirs = content_of(OURS, described), content_of(THEIRS, described)

    assert as_text(ours.to_dict()) == as_text(theirs.to_dict())
    for options in ({}, {"exclude_none": True}, {"exclude_defaults": True}):
        assert as_text(ours.model_dump(**options)) == as_text(theirs.model_dump(**options))
    assert ours.model_dump_json() == theirs.model_dump_json()


@given(st.lists(message_fields, max_size=3))
def test_dumps_pickles_and_copies_of_a_conversation_lose_nothing(described):
    conversation = conversation_of(OURS, described)

    assert Conversation.model_validate(conversation.model_dump()) == conversation
    assert Conversation.model_validate_json(conversation.model_dump_json()) == conversation
    assert Conversation.model_validate(conversation.model_dump(exclude_defaults=True)) == (
        conversation
    )
    assert pickle.loads(pickle.dumps(conversation)) == conversation
    assert copy.deepcopy(conversation) == conversation


@given(message_fields)
def test_a_dict_is_read_alike_by_all_that_read_it(fields):
    written = message_of(OURS, fields).to_dict()
    again = Message.from_dict(written)

    assert Message.from_json(json.dumps(written)) == again
    assert Message.model_validate(written) == again
    assert list(Conversation.from_dict({"messages": [written]})) == [again]
    assert Message.from_dict(again.to_dict()) == again


@given(message_fields)
def test_a_dict_gives_the_message_back_but_for_nones_that_stand_against_a_default(fields):
    # `to_dict` leaves None out, as in openai_harmony; `model_dump` is for those who need it.
    contents = [
        (kind, {name: value for name, value in content.items() if value is not None})
        for kind, content in fields["content"]
    ]
    message = message_of(OURS, {**fields, "content": contents})

    assert Message.from_dict(message.to_dict()) == message
    assert Message.from_json(message.to_json()) == message


@given(texts, json_objects, maybe)
def test_a_response_format_survives_dicts_and_json(name, schema, description):
    content = DeveloperContent().with_response_format(name, schema, description)
    message = Message.from_role_and_content(Role.DEVELOPER, content)

    assert DeveloperContent.from_dict(content.to_dict()) == content
    assert Message.from_json(message.to_json()) == message
    assert Message.model_validate_json(message.model_dump_json()) == message


# --- Roles and enums --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Role", "ReasoningEffort"])
def test_an_enum_has_the_members_of_openai_harmony_and_prints_like_it(name):
    ours, theirs = getattr(OURS, name), getattr(THEIRS, name)

    assert [(m.name, m.value, str(m), f"{m}") for m in ours] == [
        (m.name, m.value, str(m), f"{m}") for m in theirs
    ]


def test_a_role_equals_its_plain_name():
    assert Message.from_role_and_content("assistant", "a").author.role == "assistant"


def test_an_unknown_role_is_told_with_those_there_are():
    with pytest.raises(ValueError, match=r"^Unknown role: 'judge'; expected one of 'user', .*"):
        Role("judge")


# --- Builders ---------------------------------------------------------------------------------

USER = Author(role="user")
CONFIG = ChannelConfig.require_channels(["final"])
LOOKUP = ToolDescription.new("lookup", "Looks up.")

# A new object, the name of a builder, its arguments, the field it sets, the value it has then.
BUILT = [
    (Message(author=USER), "with_channel", ["final"], "channel", "final"),
    (Message(author=USER), "with_recipient", ["python"], "recipient", "python"),
    (Message(author=USER), "with_recipient", [Role.ASSISTANT], "recipient", "assistant"),
    (Message(author=USER), "with_content_type", ["json"], "content_type", "json"),
    (Message(author=USER), "adding_content", ["a"], "content", [TextContent(text="a")]),
    (Message(author=USER), "adding_content", [SystemContent()], "content", [SystemContent()]),
    (SystemContent(), "with_model_identity", ["Me."], "model_identity", "Me."),
    (SystemContent(), "with_reasoning_effort", ["High"], "reasoning_effort", ReasoningEffort.HIGH),
    (SystemContent(), "with_conversation_start_date", ["2025-06-28"], "conversation_start_date",
     "2025-06-28"),
    (SystemContent(), "with_knowledge_cutoff", ["2024"], "knowledge_cutoff", "2024"),
    (SystemContent(), "with_channel_config", [CONFIG], "channel_config", CONFIG),
    (SystemContent(), "with_required_channels", [("final",)], "channel_config", CONFIG),
    (SystemContent(), "with_browser_tool", [], "tools",
     {"browser": ToolNamespaceConfig.browser()}),
    (SystemContent(), "with_python_tool", [], "tools", {"python": ToolNamespaceConfig.python()}),
    (SystemContent(), "with_tools", [ToolNamespaceConfig(name="n", tools=[])], "tools",
     {"n": ToolNamespaceConfig(name="n", tools=[])}),
    (DeveloperContent(), "with_instructions", ["Be brief."], "instructions", "Be brief."),
    (DeveloperContent(), "with_function_tools", [(LOOKUP,)], "tools",
     {"functions": ToolNamespaceConfig(name="functions", tools=[LOOKUP])}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("built", "builder", "arguments", "field", "value"), BUILT, ids=[row[1] for row in BUILT]
)
def test_a_builder_sets_its_field_and_returns_the_object(built, builder, arguments, field, value):
    assert getattr(built, builder)(*arguments) is built
    assert getattr(built, field) == value


def test_namespaces_add_up_and_one_of_the_same_name_replaces():
    system = SystemContent.new().with_browser_tool().with_python_tool().with_browser_tool()
    developer = DeveloperContent.new().with_function_tools([LOOKUP]).with_function_tools([])

    assert list(system.tools) == ["browser", "python"]
    assert developer.tools["functions"].tools == []


def test_response_formats_add_up_and_show_only_when_there_are_any():
    content = DeveloperContent()
    assert "response_formats" not in content.model_dump()

    content.with_response_format("a", {"type": "object"}).with_response_format("b", {}, "B.")

    assert content.to_dict() == {
        "response_formats": {
            "a": {"name": "a", "schema": {"type": "object"}},
            "b": {"name": "b", "description": "B.", "schema": {}},
        },
        "type": "developer_content",
    }


def test_builders_called_on_one_content_leave_others_alone():
    SystemContent().channel_config.valid_channels.append("more")

    assert SystemContent().channel_config.valid_channels == ["analysis", "commentary", "final"]


# --- Making messages --------------------------------------------------------------------------

TEXT = [TextContent(text="a")]

MADE = [
    (Message(author=USER), []),
    (Message(author={"role": "user"}, content="a"), TEXT),
    (Message(author=USER, content=TextContent(text="a")), TEXT),
    (Message(author=USER, content={"type": "text", "text": "a"}), TEXT),
    (Message(author=USER, content=["a"]), TEXT),
    (Message(author=USER, content=iter(TEXT)), TEXT),
    (Message.from_author_and_content(Author.new("user", None), "a"), TEXT),
    (Message.from_author_and_content(USER, TEXT[0]), TEXT),
    (Message.from_role_and_content("user", "a"), TEXT),
    (Message.from_role_and_content(Role.USER, SystemContent()), [SystemContent()]),
    (Message.from_role_and_contents(Role.USER, TEXT * 2), TEXT * 2),
    (Message.from_role_and_contents("user", iter(TEXT)), TEXT),
    (Message.from_dict({"role": "user", "content": "a"}), TEXT),
    (Message.from_dict({"role": "user", "content": [], "id": 1}), []),
    (Message.from_dict({"author": {"role": "user"}, "content": "a"}), TEXT),
    (Message.model_validate({"author": {"role": "user"}, "content": "a", "id": 1}), TEXT),
    (Message.model_validate({"role": "user", "content": "a", "channel": None}), TEXT),
]


@pytest.mark.parametrize(("message", "content"), MADE)
def test_a_message_is_made_of_what_people_give(message, content):
    assert message == Message(author=USER, content=content)


REFUSED = [
    (lambda: Message(content="a"), "Message.author is missing"),
    (lambda: Message(author="user"), "Message.author: 'user' is not Author or a mapping of its "
     "fields"),
    (lambda: Message(author={"role": "judge"}), "Message.author: Author.role: 'judge' is not one "
     "of 'user', 'assistant', 'system', 'developer', 'tool'"),
    (lambda: Message(author=USER, channel=5), "Message.channel: 5 is not a string or None"),
    (lambda: Message(author=USER, content=5), "Message.content: 5 is not a list, each Content"),
    (lambda: Message(author=USER).adding_content(5), "Message.content: Unknown content variant: "
     "5; expected a string, a Content, or a mapping whose type is one of 'text', "
     "'system_content', 'developer_content'"),
    (lambda: Message(author=USER, content=[{"type": "text"}]),
     "Message.content[0]: TextContent.text is missing"),
    (lambda: Message(author=USER, content=[{"type": []}]), "Message.content[0]: Unknown content "
     "variant: {'type': []}; expected a string, a Content, or a mapping whose type is one of "
     "'text', 'system_content', 'developer_content'"),
    (lambda: Message.from_dict({"content": "a"}), "Author.role is missing"),
    (lambda: Message.from_dict({"role": "user"}), "Message.content: None is not a list, each "
     "Content"),
    (lambda: Message.model_validate({"role": "user", "content": "a", "tool_call_id": "1"}),
     "Message: no field for tool_call_id; leave it out, or read messages of a chat API with "
     "conversation_from_chat"),
    (lambda: SystemContent().with_reasoning_effort("high"), "SystemContent.reasoning_effort: "
     "'high' is not one of 'Low', 'Medium', 'High' or None"),
    (lambda: Conversation(messages=[{}]), "Conversation.messages[0]: Message.author is missing"),
    (lambda: Conversation.from_dict({}), "Conversation.messages is missing in {}"),
    (lambda: Conversation.from_dict({"messages": [{"role": "user", "content": ""}, {}]}),
     "Conversation.messages[1]: Author.role is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "sentence"), REFUSED, ids=[row[1] for row in REFUSED])
def test_an_error_names_the_field_the_value_and_what_is_allowed(make, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole sentence is compared
        make()

    assert str(plain_error(caught.value)) == sentence


def test_the_base_of_contents_cannot_be_written():
    with pytest.raises(NotImplementedError, match=r"Content\.to_dict"):
        Content().to_dict()


def test_a_conversation_iterates_over_its_messages():
    asked = Message.from_role_and_content("user", "a")
    given_list = [asked]
    conversation = Conversation.from_messages(given_list)
    given_list.clear()

    assert list(conversation) == conversation.messages == [asked]
    assert conversation.messages[0] is asked


# How a decided history is put together: before, after, cut, copied. What a renderer makes of the
# mark is in tests/history.
PARTS = {
    "after": lambda decided, other: decided + other,
    "before": lambda decided, other: other + decided,
    "a slice": lambda decided, other: decided[:1],
    "a copy": lambda decided, other: copy.copy(decided),
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("kind", [DecidedList, DecidedTuple])
def test_a_decided_history_stays_one_beside_others_cut_and_copied(kind, part):
    decided = kind([Message.from_role_and_content("user", text) for text in "ab"])
    plain, other = kind.__mro__[1](decided), kind.__mro__[1](decided[:1])

    found = part(decided, other)

    assert type(found) is kind
    assert found == part(plain, other)
    assert type(decided[0]) is Message


def test_a_conversation_has_its_decided_messages_in_a_list_that_is_decided_too():
    message = Message.from_role_and_content("user", "a")
    messages = Conversation(messages=DecidedTuple([message])).messages
    assert type(messages) is type(messages.copy()) is DecidedList
    assert messages == [message]


def test_options_have_the_defaults_of_openai_harmony():
    for name, ours in [
        ("RenderConversationConfig", RenderConversationConfig()),
        ("RenderOptions", RenderOptions()),
    ]:
        assert ours.model_dump() == getattr(THEIRS, name)().model_dump()


# --- As pydantic fields, the way servers use them ---------------------------------------------


class Request(BaseModel):
    previous: list[Message | dict] | None = None
    output: list[Message] = []
    content: Content | None = None


FLAT = {"role": "tool", "tool_call_id": "1", "content": "a"}
NESTED = {"author": {"role": "user"}, "content": [{"type": "text", "text": "a"}]}
MESSAGE = Message.model_validate(NESTED)


@pytest.mark.parametrize("given_as", [FLAT, NESTED])
def test_in_a_union_with_dict_a_dict_stays_one_as_with_openai_harmony(given_as):
    class Reference(BaseModel):
        previous: list[THEIRS.Message | dict]

    assert Request(previous=[given_as]).previous == [given_as]
    assert Reference(previous=[given_as]).previous == [given_as]
    assert Request(previous=[given_as]).model_dump()["previous"] == [given_as]


def test_in_a_union_with_dict_a_message_stays_one():
    request = Request(previous=[MESSAGE])

    assert request.previous[0] is MESSAGE
    assert request.model_dump(exclude_none=True)["previous"] == [NESTED]


@pytest.mark.parametrize("written", [NESTED, MESSAGE.to_dict(), MESSAGE])
def test_a_field_of_messages_takes_dicts_of_both_shapes_and_messages(written):
    request = Request(output=[written])

    assert request.output == [MESSAGE]
    assert Request.model_validate_json(request.model_dump_json()) == request


def test_a_message_of_a_chat_api_is_not_taken_where_fields_would_be_lost():
    with pytest.raises(ValidationError, match="Message: no field for tool_call_id"):
        Request(output=[FLAT])


@given(content_fields)
def test_a_field_of_contents_gives_back_each_kind(described):
    request = Request(content=content_of(OURS, described))

    assert Request.model_validate(request.model_dump()) == request
    assert Request.model_validate_json(request.model_dump_json()) == request


@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_the_json_schema_tells_contents_apart_by_their_type(mode):
    schema = TypeAdapter(Message).json_schema(mode=mode)
    kinds = schema["properties"]["content"]["items"]["anyOf"]

    assert [kind["properties"]["type"]["const"] for kind in kinds] == [
        "text", "system_content", "developer_content",
    ]  # fmt: skip
    assert all("type" in kind["required"] for kind in kinds)
    assert Request.model_json_schema(mode=mode)["properties"].keys() == Request.model_fields.keys()


# --- In FastAPI ---------------------------------------------------------------------------------


class Scored(Message):
    score: int = 0


LOOKUP = ToolDescription.new("lookup", "Looks up.", {"type": "object"})
SYSTEM = SystemContent.new().with_browser_tool()
DEVELOPER = DeveloperContent.new().with_function_tools([LOOKUP])
CONVERSATION = Conversation.from_messages(
    [
        Message.from_role_and_content("system", SYSTEM),
        Message.from_role_and_content(
            "developer", DEVELOPER.model_copy().with_response_format("list", {})
        ),
        MESSAGE,
    ]
)
SCORED = Scored(author=USER, content="a", score=3)
VALUES = [MESSAGE, CONVERSATION, SYSTEM, DEVELOPER, TextContent(text="a"), USER, LOOKUP, SCORED]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_fastapis_encoder_writes_what_a_dump_holds(value):
    encoded = jsonable_encoder({"m": value, "list": [value]})

    assert encoded["m"] == encoded["list"][0] == value._dump_inside(mode="json")
    assert type(value).model_validate(encoded["m"]) == value
    assert jsonable_encoder(value, exclude_none=True) == value._dump_inside(
        mode="json", exclude_none=True
    )


def app_of(annotation, response=None) -> FastAPI:
    """An endpoint that gives back what it takes, as the body of a request."""
    app = FastAPI()

    def echo(x):
        return x

    echo.__annotations__["x"] = annotation
    app.post("/", response_model=response)(echo)
    return app


def call(app: FastAPI, method: str, path: str, body: object = None) -> tuple[int, object]:
    """The status and the JSON that an app answers."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

    async def send(message):
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": method, "path": path, "headers": headers}
    asyncio.run(app({**scope, "query_string": b"", "root_path": ""}, receive, send))
    answer = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], json.loads(answer)


@pytest.mark.parametrize("has_response_model", [True, False])
@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_parameter_of_an_endpoint_is_the_body(value, has_response_model):
    app = app_of(type(value), type(value) if has_response_model else None)
    body = value.model_dump(mode="json")

    assert call(app, "POST", "/", body) == (200, value._dump_inside(mode="json"))
    assert call(app, "GET", "/openapi.json")[0] == 200


@pytest.mark.parametrize("annotation", [list[Message], Message | None, list[Message] | None])
def test_a_parameter_may_be_optional_or_a_list(annotation):
    is_list = annotation != Message | None
    body = [NESTED] if is_list else NESTED

    status, answer = call(app_of(annotation, annotation), "POST", "/", body)

    assert status == 200
    assert (answer[0] if is_list else answer) == MESSAGE.model_dump(mode="json")


def test_a_wrong_body_is_told_with_its_place():
    status, answer = call(app_of(Message), "POST", "/", {"author": {"role": "judge"}})

    assert status == 422
    assert answer["detail"][0]["loc"] == ["body", "author", "role"]
    assert answer["detail"][0]["msg"].startswith("Message.author: Author.role: 'judge' is not one")


def test_importing_the_model_imports_neither_pydantic_nor_tiktoken():
    program = (
        "import sys, harmony_stream.values.messages\n"
        "print({'pydantic', 'tiktoken'} & {*sys.modules})"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert result.stdout.decode().strip() == "set()"
