"""`import harmony_stream as openai_harmony`: code that was written for openai_harmony runs on."""

import inspect
import os
import re
import subprocess
import sys
from enum import Enum
from functools import cached_property
from pathlib import Path
from types import ModuleType

import attrs
import openai_harmony as reference
import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import harmony_stream as openai_harmony
from harmony_stream import (
    Author,
    Conversation,
    DeveloperContent,
    HarmonyEncodingName,
    HarmonyError,
    Message,
    ReasoningEffort,
    RenderConversationConfig,
    RenderOptions,
    Role,
    StreamableParser,
    StreamState,
    SystemContent,
    TextContent,
    ToolDescription,
    ToolNamespaceConfig,
    load_harmony_encoding,
)

# --- Names and signatures -------------------------------------------------------------------------


def is_theirs(name: str) -> bool:
    """Whether a name was made by openai_harmony, rather than imported into it."""
    value = getattr(reference, name)
    module = getattr(value, "__module__", "")
    is_public = not name.startswith("_") and not isinstance(value, ModuleType)
    return is_public and module.split(".")[0] == "openai_harmony" and name != "T"


NAMES = sorted({*reference.__all__, *filter(is_theirs, dir(reference))})
CLASSES = [name for name in NAMES if inspect.isclass(getattr(reference, name))]
FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(reference, name))]
# What a class has from pydantic or the language is no affair of openai_harmony.
METHODS = [
    (name, method)
    for name in CLASSES
    for method in vars(getattr(reference, name))
    if not method.startswith("_") and not method.startswith("model_")
]


@pytest.mark.parametrize("name", NAMES)
def test_each_public_name_is_there(name):
    assert hasattr(openai_harmony, name)
    assert name in openai_harmony.__all__


def test_star_import_gives_all_that_it_gives_there():
    assert set(reference.__all__) <= set(openai_harmony.__all__)


def parameters_of(function):
    return [each for each in inspect.signature(function).parameters.values() if each.name != "self"]


def assert_takes_the_same(ours, theirs):
    """Each call that is right there is right here: by position, by name, and without defaults."""
    our, their = parameters_of(ours), parameters_of(theirs)
    by_name = {each.name: each for each in our}
    for place, parameter in enumerate(their):
        twin = by_name.pop(parameter.name)
        assert twin.kind is parameter.kind
        assert (twin.default is twin.empty) is (parameter.default is parameter.empty)
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            assert our[place] is twin
    assert all(extra.default is not extra.empty for extra in by_name.values())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_takes_the_same_arguments(name):
    assert_takes_the_same(getattr(openai_harmony, name), getattr(reference, name))


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_each_method_and_property_is_there_and_takes_the_same_arguments(name, method):
    their_class, our_class = getattr(reference, name), getattr(openai_harmony, name)
    theirs, ours = getattr(their_class, method), getattr(our_class, method)

    if isinstance(theirs, Enum):
        assert our_class(theirs.value).name == theirs.name
    elif callable(theirs):
        assert_takes_the_same(ours, theirs)
    else:
        assert isinstance(ours, property | cached_property)


@pytest.mark.parametrize("name", [name for name in CLASSES if name != "HarmonyEncoding"])
def test_each_class_is_made_from_the_same_arguments(name):
    theirs, ours = getattr(reference, name), getattr(openai_harmony, name)

    if issubclass(theirs, Enum):
        assert {each.name: each.value for each in ours} == {
            each.name: each.value for each in theirs
        }
    elif issubclass(theirs, Exception):
        assert str(ours("a sentence")) == str(theirs("a sentence"))
    elif hasattr(theirs, "model_fields"):
        fields = attrs.fields_dict(ours)
        assert list(theirs.model_fields) == [each for each in fields if each in theirs.model_fields]
        for field, info in theirs.model_fields.items():
            assert (fields[field].default is attrs.NOTHING) is info.is_required()
    else:
        assert_takes_the_same(ours, theirs)


def test_errors_are_runtime_errors_and_enums_are_text_as_there():
    assert issubclass(HarmonyError, RuntimeError)
    assert Role.ASSISTANT == "assistant"
    assert f"{Role.USER}" == f"{reference.Role.USER}"
    assert str(HarmonyEncodingName.HARMONY_GPT_OSS) == "HarmonyGptOss"
    with pytest.raises(ValueError, match="Unknown role: 'nobody'"):
        Role("nobody")


def test_a_special_token_that_is_not_allowed_is_refused_by_hand_in_the_same_words():
    for library in (reference, openai_harmony):
        with pytest.raises(
            library.HarmonyError, match=r"^Encountered text corresponding to disallowed special "
        ):
            library.raise_disallowed_special_token("<|end|>")


def run(program: str, **environment: str) -> str:
    """What a program prints in a Python of its own."""
    command = [sys.executable, "-c", program]
    result = subprocess.run(
        command, capture_output=True, check=True, env={**os.environ, **environment}
    )
    return result.stdout.decode().strip()


def test_the_module_may_stand_in_for_openai_harmony_in_code_that_is_not_ones_own():
    printed = run(
        "import sys, harmony_stream\n"
        "sys.modules['openai_harmony'] = harmony_stream\n"
        "import importlib, pickle, openai_harmony, openai_harmony as oh\n"
        "from openai_harmony import Message, StreamableParser, load_harmony_encoding\n"
        "from openai_harmony import *\n"
        "assert importlib.import_module('openai_harmony') is oh is harmony_stream\n"
        "assert Message is harmony_stream.Message and HarmonyError is oh.HarmonyError\n"
        "message = pickle.loads(pickle.dumps(Message.from_role_and_content(Role.USER, 'Hi')))\n"
        "encoding = load_harmony_encoding(oh.HarmonyEncodingName.HARMONY_GPT_OSS)\n"
        "print(encoding.decode(encoding.render(message)))"
    )

    assert printed == "<|start|>user<|message|>Hi<|end|>"


def test_code_that_loads_the_encoding_itself_writes_in_the_layout_that_the_environment_names():
    program = (
        "import harmony_stream as h; e = h.load_harmony_encoding('HarmonyGptOss');"
        "m = h.Message.from_role_and_content('assistant', '{}').with_channel('commentary');"
        "print(e.decode(e.render(m.with_recipient('functions.f').with_content_type('json'))))"
    )

    oss = run(program, HARMONY_STREAM_PROFILE="oss-0.0.11")

    assert oss.startswith(
        "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json"
    )
    assert oss != run(program)


def test_the_programs_of_the_page_on_migrating_run():
    page = Path(__file__).parent.parent / "docs" / "migrating.md"
    programs = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)

    assert len(programs) == 4
    for program in programs:
        run(f"tokens = [200005, 17196, 200008, 13225, 200002]\n{program}")


# A model may do without the other two; no conversation is rendered with them.
NEEDED = [token for token in openai_harmony.FormattingToken if "oftext" not in token.value]


@pytest.mark.parametrize("token", NEEDED)
def test_a_vocabulary_without_a_formatting_token_is_refused_before_anything_is_rendered(token):
    official = openai_harmony.Vocabulary.default().tiktoken_encoding
    special = {text: id_ for text, id_ in official._special_tokens.items() if text != token.value}
    lame = tiktoken.Encoding(
        "lame",
        pat_str=official._pat_str,
        mergeable_ranks=official._mergeable_ranks,
        special_tokens=special,
    )

    with pytest.raises(openai_harmony.LoadError, match=re.escape(token.value)):
        openai_harmony.Vocabulary.from_tiktoken(lame)


# --- Prompts: the same tokens as the wheel's ------------------------------------------------------
# Each function builds the same conversation with the library that it is given.

WEATHER = {
    "type": "object",
    "properties": {
        "place": {"type": "string", "description": "A town, e.g. Porto"},
        "unit": {"type": "string", "enum": ["kelvin", "celsius"], "default": "celsius"},
    },
    "required": ["place"],
}
EVERYTHING = {
    "description": "all of it",
    "type": "object",
    "properties": {
        "titled": {"type": "string", "title": "TITLED", "examples": ["moss", "fern"]},
        "nullable": {"type": "string", "nullable": True, "default": "none yet"},
        "choice": {"type": "string", "enum": ["a", "b"]},
        "list": {"type": "array", "items": {"type": "string"}, "description": 'As ["Porto"]'},
        "either": {
            "oneOf": [
                {"type": "string", "default": "left"},
                {"type": "number", "description": "right"},
            ],
            "description": "one of two",
            "default": 20,
        },
    },
}


def conversation(*contents, system=None, developer=None):
    """A builder: contents are (role, text, **header fields) for messages behind the first two."""

    def build(library):
        messages = []
        if system is not None:
            messages.append(
                library.Message.from_role_and_content(library.Role.SYSTEM, system(library))
            )
        if developer is not None:
            messages.append(
                library.Message.from_role_and_content(library.Role.DEVELOPER, developer(library))
            )
        for role, text, fields in contents:
            author = library.Author(role=library.Role(role), name=fields.get("name"))
            message = library.Message.from_author_and_content(author, text)
            for field in ("channel", "recipient", "content_type"):
                if field in fields:
                    message = getattr(message, f"with_{field}")(fields[field])
            messages.append(message)
        return library.Conversation.from_messages(messages)

    return build


def dated(library):
    return library.SystemContent.new().with_conversation_start_date("2026-01-30")


def with_effort(effort):
    return lambda library: (
        library.SystemContent.new()
        .with_model_identity("You are ChatGPT, a large language model trained by OpenAI.")
        .with_reasoning_effort(library.ReasoningEffort[effort])
    )


def instructed(library):
    return library.DeveloperContent.new().with_instructions("Answer like a lighthouse keeper.")


def with_functions(library):
    tools = [
        library.ToolDescription.new("whereabouts", "Where the user is."),
        library.ToolDescription.new("weather", "The weather of a town.", parameters=WEATHER),
        library.ToolDescription.new("everything", "Takes anything.", EVERYTHING),
    ]
    return instructed(library).with_function_tools(tools)


USER = ("user", "What is 2 + 2?", {})
THOUGHT = ("assistant", "That is “easy”.", {"channel": "analysis"})
ANSWER = ("assistant", "4", {"channel": "final"})
CALL = (
    "assistant",
    '{"place": "Porto"}',
    {
        "channel": "commentary",
        "recipient": "functions.weather",
        "content_type": "<|constrain|>json",
    },
)
RESULT = ("tool", '{"sun": true}', {"name": "functions.weather"})
FULL_RESULT = (
    "tool",
    "[]",
    {"name": "browser.search", "channel": "commentary", "recipient": "assistant"},
)

CONVERSATIONS = {
    "nothing": conversation(),
    "a system message and a question": conversation(USER, system=dated),
    **{
        f"{effort} effort{' with instructions' if developer else ''}": conversation(
            USER, system=with_effort(effort), developer=developer
        )
        for effort in ("LOW", "MEDIUM", "HIGH")
        for developer in (None, instructed)
    },
    "two channels": conversation(
        USER, system=lambda library: dated(library).with_required_channels(["analysis", "final"])
    ),
    "a channel config": conversation(
        USER,
        system=lambda library: dated(library).with_channel_config(
            library.ChannelConfig(valid_channels=["final"], channel_required=False)
        ),
    ),
    "dates": conversation(
        USER, system=lambda library: dated(library).with_knowledge_cutoff("2021-01")
    ),
    "functions": conversation(USER, system=dated, developer=with_functions),
    "the browser": conversation(system=lambda library: dated(library).with_browser_tool()),
    "the browser and functions": conversation(
        system=lambda library: dated(library).with_browser_tool(), developer=with_functions
    ),
    "the browser and python": conversation(
        system=lambda library: dated(library).with_browser_tool().with_python_tool()
    ),
    "a tool of one's own": conversation(
        system=lambda library: dated(library).with_tools(
            library.ToolNamespaceConfig(
                name="garden", description="Plants.", tools=[library.ToolDescription.new("dig", "")]
            )
        )
    ),
    "a finished turn": conversation(USER, THOUGHT, ANSWER, USER),
    "an open tool call": conversation(USER, THOUGHT, CALL, RESULT),
    "two finished turns": conversation(USER, THOUGHT, ANSWER, USER, THOUGHT, ANSWER),
    "a last answer": conversation(USER, ANSWER),
    "a result with its header": conversation(FULL_RESULT),
}


@pytest.fixture(scope="module")
def theirs(official_vocabulary_file):
    return reference.load_harmony_encoding(reference.HarmonyEncodingName.HARMONY_GPT_OSS)


@pytest.fixture(scope="module")
def encoding():
    return openai_harmony.load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)


@pytest.mark.parametrize("name", CONVERSATIONS)
@pytest.mark.parametrize("drop", [None, True, False])
def test_conversations_become_the_same_tokens(theirs, encoding, name, drop):
    build = CONVERSATIONS[name]
    tokens = {}
    for library, each in [(reference, theirs), (openai_harmony, encoding)]:
        config = None if drop is None else library.RenderConversationConfig(auto_drop_analysis=drop)
        built, role = build(library), library.Role.ASSISTANT
        tokens[library] = (
            each.render_conversation(built, config),
            each.render_conversation_for_training(built, config=config),
            each.render_conversation_for_completion(built, role, config=config),
            [each.render(message) for message in built],
            [
                each.render(message, library.RenderOptions(conversation_has_function_tools=True))
                for message in built.messages
            ],
        )

    assert tokens[openai_harmony] == tokens[reference]


def test_training_ends_a_last_answer_with_return_and_history_with_end(encoding):
    built = CONVERSATIONS["a last answer"](openai_harmony)

    training = encoding.render_conversation_for_training(built)
    history = encoding.render_conversation(built)

    assert encoding.decode([training[-1], history[-1]]) == "<|return|><|end|>"
    assert training[:-1] == history[:-1]


def test_what_is_no_message_cannot_become_one(encoding):
    with pytest.raises(ValueError, match="messages"):
        Conversation.from_messages([SystemContent.new()])


def test_contents_in_the_wrong_message_are_refused_as_there(theirs, encoding):
    for library, each in [(reference, theirs), (openai_harmony, encoding)]:
        message = library.Message.from_role_and_content(
            library.Role.USER, library.SystemContent.new()
        )
        with pytest.raises(RuntimeError, match="SystemContent may only appear in system messages"):
            each.render(message)


# --- Completions: the messages that the wheel's test-suite expects --------------------------------


def said(text, channel=None, recipient=None, content_type=None):
    message = Message.from_role_and_content(Role.ASSISTANT, text)
    for builder, value in [
        (message.with_channel, channel),
        (message.with_recipient, recipient),
        (message.with_content_type, content_type),
    ]:
        if value is not None:
            message = builder(value)
    return message


ARGUMENTS = '{"place": "Porto"}'
CALLED = said(ARGUMENTS, "commentary", "functions.weather", "<|constrain|>json")

# name: (role, what was sampled, what it says)
COMPLETIONS = {
    "thought and answer": (
        Role.ASSISTANT,
        "<|channel|>analysis<|message|>Easy.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>4<|return|>",
        [said("Easy.", "analysis"), said("4", "final")],
    ),
    "a call on the analysis channel": (
        Role.ASSISTANT,
        "<|channel|>analysis<|message|>Look it up.<|end|>"
        f"<|start|>assistant<|channel|>analysis to=weather code<|message|>{ARGUMENTS}<|call|>",
        [said("Look it up.", "analysis"), said(ARGUMENTS, "analysis", "weather", "code")],
    ),
    "the recipient in front of the channel": (
        None,
        "<|start|>assistant to=functions.weather<|channel|>commentary <|constrain|>json<|message|>"
        f"{ARGUMENTS}<|call|>",
        [CALLED],
    ),
    "a type glued to the channel": (
        None,
        "<|start|>assistant to=functions.weather<|channel|>commentary<|constrain|>json<|message|>"
        f"{ARGUMENTS}<|call|>",
        [CALLED],
    ),
    "a type glued to the recipient": (
        None,
        "<|start|>assistant<|channel|>commentary to=functions.weather<|constrain|>json<|message|>"
        f"{ARGUMENTS}<|call|>",
        [CALLED],
    ),
    "a constrained answer": (
        None,
        f"<|start|>assistant<|channel|>final <|constrain|>json<|message|>{ARGUMENTS}<|return|>",
        [said(ARGUMENTS, "final", None, "<|constrain|>json")],
    ),
    "a cut answer": (
        Role.ASSISTANT,
        "<|channel|>final<|message|>It is",
        [said("It is", "final")],
    ),
}


@pytest.mark.parametrize("name", COMPLETIONS)
def test_completions_say_what_they_say_at_once_and_token_by_token(encoding, name):
    role, text, expected = COMPLETIONS[name]
    tokens = encoding.encode(text, allowed_special="all")

    parser = openai_harmony.StreamableParser(encoding, role)
    for token in tokens:
        parser.process(token)

    assert parser.process_eos().messages == expected
    assert encoding.parse_messages_from_completion_tokens(tokens, role) == expected


def test_a_call_survives_the_way_to_messages_and_back(encoding):
    _, text, expected = COMPLETIONS["the recipient in front of the channel"]

    rendered = encoding.render_conversation(Conversation.from_messages(expected))

    assert encoding.decode_utf8(rendered) == text
    assert rendered == encoding.encode(text, allowed_special="all")


TAIL = (
    "<|start|>assistant<|channel|>analysis<|message|>No.<|end|>"
    "<|start|>assistant to=functions.weather<|channel|>commentary json<|message|>{}<|call|>"
)
TAIL_MESSAGES = [said("No.", "analysis"), said("{}", "commentary", "functions.weather", "json")]


@pytest.mark.parametrize(
    ("head", "first"),
    [
        ("I would rather not<|end|>", said("I would rather not")),
        ("<|channel|>analysis I would rather not<|end|>", said("I would rather not", "analysis")),
        ("... Let's look.<|end|>", said("... Let's look.")),
    ],
)
def test_a_header_without_message_token_raises_or_is_content(encoding, head, first):
    tokens = encoding.encode(head + TAIL, allowed_special="all")

    strict = openai_harmony.StreamableParser(encoding, Role.ASSISTANT, strict=True)
    with pytest.raises(HarmonyError, match="unexpected tokens remaining in message header"):
        [strict.process(token) for token in tokens]
    with pytest.raises(HarmonyError, match="unexpected tokens remaining in message header"):
        encoding.parse_messages_from_completion_tokens(tokens, Role.ASSISTANT)

    forgiving = openai_harmony.StreamableParser(encoding, Role.ASSISTANT, strict=False)
    for token in tokens:
        forgiving.process(token)
    assert forgiving.messages == [first, *TAIL_MESSAGES]
    assert encoding.parse_messages_from_completion_tokens(tokens, Role.ASSISTANT, strict=False) == [
        first,
        *TAIL_MESSAGES,
    ]


BROKEN = [9552]  # b" \xf0\x9f": a space, and the first half of an emoji


@pytest.mark.parametrize(
    ("broken", "text"),
    [
        (BROKEN * 2, " \ufffd \ufffd"),
        ([*BROKEN, 55, 56], " \ufffdXY"),
        ([*BROKEN, 9559], " \ufffd interesting"),
    ],
)
def test_broken_characters_are_replaced_and_nothing_behind_them_is_lost(encoding, broken, text):
    with pytest.raises(HarmonyError, match="Invalid utf-8"):
        encoding.decode_utf8(broken)
    parser = StreamableParser(encoding, None)
    for token in encoding.encode("<|start|>assistant<|message|>", allowed_special="all"):
        parser.process(token)

    tokens = [*broken, *encoding.encode(" story")]
    deltas = [parser.process(token).last_content_delta or "" for token in tokens]

    assert "".join(deltas) == parser.current_content == f"{text} story"
    assert parser.process_eos().messages == [said(f"{text} story")]


@examples(60)
@given(text=st.text())
def test_the_deltas_are_the_text_whatever_the_script(text):
    encoding = load_harmony_encoding("HarmonyGptOss")
    parser = StreamableParser(encoding, Role.ASSISTANT).process(200008)

    deltas = [
        parser.process(token).last_content_delta
        for token in encoding.encode(text, disallowed_special=())
    ]

    assert "".join(filter(None, deltas)) == text
    assert parser.process_eos().messages == [said(text)]


# --- Values ---------------------------------------------------------------------------------------


def test_messages_become_dicts_and_json_and_come_back():
    for message in [*TAIL_MESSAGES, *CONVERSATIONS["functions"](openai_harmony)]:
        theirs = reference.Message.from_dict(message.to_dict())
        assert message.to_json() == theirs.to_json()
        assert Message.from_dict(theirs.to_dict()) == message

    built = CONVERSATIONS["the browser and functions"](openai_harmony)
    assert Conversation.from_json(built.to_json()) == built


def test_values_are_built_step_by_step_and_changed_in_place():
    message = Message.from_author_and_content(
        Author.new(Role.TOOL, "functions.f"), TextContent(text="a")
    )

    assert message.adding_content("b") is message
    assert message.with_channel("commentary") is message
    message.recipient = Role.ASSISTANT
    assert [content.text for content in message.content] == ["a", "b"]
    assert message.to_dict()["recipient"] == "assistant"
    assert SystemContent.new().reasoning_effort is ReasoningEffort.MEDIUM
    assert (
        "functions"
        in DeveloperContent.new().with_function_tools([ToolDescription.new("f", "")]).tools
    )
    for name in ("browser", "python"):
        ours, theirs = (
            getattr(ToolNamespaceConfig, name)(),
            getattr(reference.ToolNamespaceConfig, name)(),
        )
        assert ours.model_dump() == theirs.model_dump()
    assert RenderOptions().conversation_has_function_tools is False
    assert RenderConversationConfig().auto_drop_analysis is True


# --- Loops of servers -----------------------------------------------------------------------------
# The ways in which servers are known to use the parser, in words of our own.

TURN = (
    "<|channel|>analysis<|message|>Look 🦩 up.<|end|>"
    "<|start|>assistant<|channel|>commentary<|message|>One moment.<|end|>"
    "<|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>"
    f"{ARGUMENTS}<|call|>"
)


def test_a_loop_that_polls_before_and_after_each_token_sees_each_change(encoding):
    """Chat servers route deltas by channel and recipient, and count calls by messages."""
    parser = StreamableParser(encoding, role=Role.ASSISTANT)
    reasoning, shown, calls = "", "", []
    finished = 0

    for token in encoding.encode(TURN, allowed_special="all"):
        before = parser.current_recipient
        parser.process(token)
        delta = parser.last_content_delta or ""
        if parser.current_recipient and parser.current_recipient != before:
            calls.append({"name": parser.current_recipient.split("functions.")[1], "arguments": ""})
        if parser.current_recipient:
            calls[-1]["arguments"] += delta
        elif parser.current_channel == "analysis":
            reasoning += delta
        elif parser.current_role == Role.ASSISTANT:
            shown += delta
        if len(parser.messages) > finished:
            finished = len(parser.messages)
            assert parser.messages[-1].author.role == "assistant"

    assert (reasoning, shown) == ("Look 🦩 up.", "One moment.")
    assert calls == [{"name": "weather", "arguments": ARGUMENTS}]
    assert finished == 3


def test_a_loop_that_takes_the_new_messages_of_each_chunk_gets_each_once(encoding):
    """Response servers keep one parser for many chunks, and slice its messages."""
    parser = StreamableParser(encoding, role=Role.ASSISTANT)
    tokens = encoding.encode(TURN, allowed_special="all")
    collected = []

    for start in range(0, len(tokens), 5):
        known = len(parser.messages)
        for token in tokens[start : start + 5]:
            parser.process(token)
        collected += parser.messages[known:]

    assert [message.channel for message in collected] == ["analysis", "commentary", "commentary"]


def test_a_loop_that_diffs_the_content_so_far_gets_all_of_it(encoding):
    parser = StreamableParser(encoding, role=Role.ASSISTANT)
    sent = ""

    for token in encoding.encode(
        "<|channel|>final<|message|>Flamingos 🦩 stand.", allowed_special="all"
    ):
        parser.process(token)
        if parser.state == StreamState.CONTENT and parser.current_channel == "final":
            sent += parser.current_content[len(sent) :]

    assert sent == "Flamingos 🦩 stand."


def test_a_loop_that_waits_for_the_state_sees_each_message_end(encoding):
    """Demos print a line break when the next message is due."""
    parser = StreamableParser(encoding, role=Role.ASSISTANT)
    lines, line = [], ""

    for token in encoding.encode(TURN, allowed_special="all"):
        parser.process(token)
        line += parser.last_content_delta or ""
        if parser.state == StreamState.EXPECT_START:
            lines.append(line)
            line = ""

    assert lines == ["Look 🦩 up.", "One moment.", ARGUMENTS]


def test_the_result_of_a_tool_is_rendered_into_the_running_parser(encoding):
    """Agents keep one token list and one parser for a turn with tools in it."""
    parser = StreamableParser(encoding, role=Role.ASSISTANT)
    for token in encoding.encode(TURN, allowed_special="all"):
        parser.process(token)
    call = parser.messages[-1]
    assert parser.tokens[-1] in encoding.stop_tokens_for_assistant_actions()

    result = (
        Message.from_author_and_content(Author.new(Role.TOOL, call.recipient), '{"sun": true}')
        .with_channel("commentary")
        .with_recipient(Role.ASSISTANT)
    )
    for token in encoding.render(result):
        parser.process(token)
    for token in encoding.encode("<|start|>assistant", allowed_special="all"):
        parser.process(token)
    for token in encoding.encode("<|channel|>final<|message|>Sun<|return|>", allowed_special="all"):
        parser.process(token)

    assert parser.messages[3:] == [result, said("Sun", "final")]
    assert parser.messages[3].author == Author.new(Role.TOOL, "functions.weather")


def test_messages_of_the_parser_go_back_into_a_prompt_after_a_change(encoding):
    parser = StreamableParser(encoding, role=Role.ASSISTANT)
    for token in encoding.encode(TURN, allowed_special="all"):
        parser.process(token)

    messages = parser.messages
    for message in messages:
        if message.recipient and message.recipient.startswith("functions."):
            message.recipient = message.recipient.replace("weather", "forecast")
    prompt = encoding.render_conversation_for_completion(
        Conversation.from_messages(messages),
        Role.ASSISTANT,
        config=RenderConversationConfig(auto_drop_analysis=False),
    )

    text = encoding.decode(prompt)
    assert text.startswith("<|start|>assistant<|channel|>analysis<|message|>Look 🦩 up.<|end|>")
    assert "to=functions.forecast" in text
    assert text.endswith("<|call|><|start|>assistant")


def test_who_catches_the_error_and_goes_on_loses_no_text(encoding):
    """Servers wrap `process` in try and except, since models do break the format."""
    parser = StreamableParser(encoding, role=Role.ASSISTANT)
    text = "<|channel|>analysis<|message|>Hm.<|end|>It is 4.<|return|>"
    errors = 0

    for token in encoding.encode(text, allowed_special="all"):
        try:
            parser.process(token)
        except openai_harmony.HarmonyError:
            errors += 1
            continue

    assert errors == 1
    assert [message.content[0].text for message in parser.messages] == ["Hm.", "It is 4."]


def test_a_completion_that_cannot_be_parsed_falls_back_to_its_text(encoding):
    tokens = encoding.encode("<|start|>?<|message|>Hi<|end|>", allowed_special="all")

    try:
        encoding.parse_messages_from_completion_tokens(tokens)
    except HarmonyError as error:
        fallback = encoding.decode(tokens)
        sentence = str(error)

    assert fallback == "<|start|>?<|message|>Hi<|end|>"
    assert re.match(r"Unknown role: \?", sentence)


def test_stop_tokens_tell_that_it_is_the_turn_of_a_tool_or_a_user(encoding):
    stop = set(encoding.stop_tokens_for_assistant_actions())
    tokens = encoding.encode(TURN, allowed_special="all")

    assert [encoding.decode([token]) for token in tokens if token in stop] == ["<|call|>"]
    assert stop < set(encoding.stop_tokens())
    assert sum(map(encoding.is_special_token, tokens)) == 12
