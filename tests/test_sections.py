"""Texts of system and developer messages, held to the format guide's examples, byte for byte."""

import pytest

from harmony_stream.messages import (
    ChannelConfig,
    DeveloperContent,
    ReasoningEffort,
    SystemContent,
)
from harmony_stream.rendering.profiles import GUIDE, PROFILES
from harmony_stream.rendering.sections import developer_text, has_function_tools, system_text
from harmony_stream.tools import ToolDescription, ToolNamespaceConfig

IDENTITY = """\
You are ChatGPT, a large language model trained by OpenAI.
Knowledge cutoff: 2024-06
Current date: 2025-06-28

Reasoning: high
"""
CHANNELS = """
# Valid channels: analysis, commentary, final. Channel must be included for every message."""
CALLS_NOTE = """
Calls to these tools must go to the commentary channel: 'functions'."""

FUNCTIONS = """\
# Instructions

Use a friendly tone.

# Tools

## functions

namespace functions {

// Gets the location of the user.
type get_location = () => any;

// Gets the current weather in the provided location.
type get_current_weather = (_: {
// The city and state, e.g. San Francisco, CA
location: string,
format?: "celsius" | "fahrenheit", // default: celsius
}) => any;

// Gets the current weather in the provided list of locations.
type get_multiple_weathers = (_: {
// List of city and state, e.g. ["San Francisco, CA", "New York, NY"]
locations: string[],
format?: "celsius" | "fahrenheit", // default: celsius
}) => any;

} // namespace functions"""

BROWSER = """
# Tools

## browser

// Tool for browsing.
// The `cursor` appears in brackets before each browsing display: `[{cursor}]`.
// Cite information from the tool using the following format:
// `【{cursor}†L{line_start}(-L{line_end})?】`, for example: `【6†L9-L11】` or `【8†L3】`.
// Do not quote more than 10 words directly from the tool output.
// sources=web (default: web)
namespace browser {

// Searches for information related to `query` and displays `topn` results.
type search = (_: {
query: string,
topn?: number, // default: 10
source?: string,
}) => any;

// Opens the link `id` from the page indicated by `cursor` starting at line number `loc`, \
showing `num_lines` lines.
// Valid link ids are displayed with the formatting: `【{id}†.*】`.
// If `cursor` is not provided, the most recent page is implied.
// If `id` is a string, it is treated as a fully qualified URL associated with `source`.
// If `loc` is not provided, the viewport will be positioned at the beginning of the document \
or centered on the most relevant passage, if available.
// Use this function without `id` to scroll to a new location of an opened page.
type open = (_: {
id?: number | string, // default: -1
cursor?: number, // default: -1
loc?: number, // default: -1
num_lines?: number, // default: -1
view_source?: boolean, // default: false
source?: string,
}) => any;

// Finds exact matches of `pattern` in the current page, or the page given by `cursor`.
type find = (_: {
pattern: string,
cursor?: number, // default: -1
}) => any;

} // namespace browser
"""

PYTHON = """
# Tools

## python

Use this tool to execute Python code in your chain of thought. The code will not be shown to the \
user. This tool should be used for internal reasoning, but not for code that is intended to be \
visible to the user (e.g. when creating plots, tables, or files).

When you send a message containing Python code to python, it will be executed in a stateful \
Jupyter notebook environment. python will respond with the output of the execution or time out \
after 120.0 seconds. The drive at '/mnt/data' can be used to save and persist user files. Internet \
access for this session is UNKNOWN. Depends on the cluster.
"""

SHOPPING = """\
# Instructions

You are a helpful shopping assistant

# Response Formats

## shopping_list

{"properties":{"items":{"type":"array","description":"entries on the shopping list",\
"items":{"type":"string"}}},"type":"object"}"""


def system():
    content = SystemContent.new().with_conversation_start_date("2025-06-28")
    return content.with_reasoning_effort(ReasoningEffort.HIGH)


def weather(name, description, **place):
    unit = {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"}
    properties = {**place, "format": unit}
    parameters = {"type": "object", "properties": properties, "required": list(place)}
    return ToolDescription.new(name, description, parameters)


def functions():
    city = {"type": "string", "description": "The city and state, e.g. San Francisco, CA"}
    cities = {
        "type": "array",
        "items": {"type": "string"},
        "description": 'List of city and state, e.g. ["San Francisco, CA", "New York, NY"]',
    }
    tools = [
        ToolDescription.new("get_location", "Gets the location of the user."),
        weather("get_current_weather", "Gets the current weather in the provided location.",
                location=city),
        weather("get_multiple_weathers",
                "Gets the current weather in the provided list of locations.", locations=cities),
    ]  # fmt: skip
    return (
        DeveloperContent.new().with_instructions("Use a friendly tone.").with_function_tools(tools)
    )


def shopping():
    items = {
        "type": "array",
        "description": "entries on the shopping list",
        "items": {"type": "string"},
    }
    schema = {"properties": {"items": items}, "type": "object"}
    content = DeveloperContent.new().with_instructions("You are a helpful shopping assistant")
    return content.with_response_format("shopping_list", schema)


SYSTEM_EXAMPLES = {
    "plain": (system(), False, IDENTITY + CHANNELS),
    "with functions": (system(), True, IDENTITY + CHANNELS + CALLS_NOTE),
    "with the browser": (system().with_browser_tool(), False, IDENTITY + BROWSER + CHANNELS),
    "with python": (system().with_python_tool(), False, IDENTITY + PYTHON + CHANNELS),
}


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize(
    ("content", "has_functions", "text"), SYSTEM_EXAMPLES.values(), ids=SYSTEM_EXAMPLES
)
def test_the_guide_s_system_messages_are_written(content, has_functions, text, profile):
    assert system_text(content, profile, has_functions=has_functions) == text


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize(
    ("content", "text"), [(functions(), FUNCTIONS), (shopping(), SHOPPING)],
    ids=["functions", "structured output"],
)  # fmt: skip
def test_the_guide_s_developer_messages_are_written(content, text, profile):
    assert developer_text(content, profile) == text


NOTHING = {
    "model_identity": None,
    "knowledge_cutoff": None,
    "reasoning_effort": None,
    "channel_config": None,
}
LAMP = ToolNamespaceConfig(name="lamp", description="Light.\n\nBlinks.", tools=[])
LAMP_TOOL = ToolNamespaceConfig(
    name="lamp", description="Light.\n\nBlinks.", tools=[ToolDescription.new("on", "")]
)

SYSTEM_TEXTS = {
    "nothing": ({}, ""),
    "an identity": ({"model_identity": "You are Pilot."}, "You are Pilot."),
    "a date without a cutoff": ({"conversation_start_date": "2031-04-05"},
                                "Current date: 2031-04-05"),
    "an effort": ({"reasoning_effort": ReasoningEffort.LOW}, "Reasoning: low"),
    "no channels": ({"channel_config": ChannelConfig.require_channels([])}, ""),
    "channels that are not required": (
        {"channel_config": ChannelConfig(valid_channels=["a", "b"], channel_required=False)},
        "# Valid channels: a, b."),
    "a tool of prose": ({"tools": {"lamp": LAMP}}, "# Tools\n\n## lamp\n\nLight.\n\nBlinks."),
    "a tool with a description": (
        {"tools": {"lamp": LAMP_TOOL}},
        "# Tools\n\n## lamp\n\n// Light.\n// \n// Blinks.\nnamespace lamp {\n\n"
        "type on = () => any;\n\n} // namespace lamp"),
    "an empty tool": ({"tools": {"a": ToolNamespaceConfig(name="a", tools=[])}},
                      "# Tools\n\n## a\n"),
    "tools in the order of their keys": (
        {"tools": {"z": ToolNamespaceConfig(name="a", description="1", tools=[]), "b": LAMP}},
        "# Tools\n\n## lamp\n\nLight.\n\nBlinks.\n\n## a\n\n1"),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "text"), SYSTEM_TEXTS.values(), ids=SYSTEM_TEXTS)
def test_a_system_message_with(fields, text):
    assert system_text(SystemContent(**{**NOTHING, **fields}), GUIDE, has_functions=False) == text


DEVELOPER_TEXTS = {
    "nothing": (DeveloperContent.new(), ""),
    "empty instructions": (DeveloperContent(instructions=""), "# Instructions\n\n"),
    "no tools": (DeveloperContent(tools={}), ""),
    "two response formats": (
        DeveloperContent.new()
        .with_response_format("b", {"type": "string", "title": "é"}, "For b.\nOr so.")
        .with_response_format("a", {}),
        '# Response Formats\n\n## b\n\n// For b.\n// Or so.\n{"type":"string","title":"é"}\n\n'
        "## a\n\n{}"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "text"), DEVELOPER_TEXTS.values(), ids=DEVELOPER_TEXTS)
def test_a_developer_message_with(content, text):
    assert developer_text(content, GUIDE) == text


@pytest.mark.parametrize(
    ("content", "has_functions"),
    [
        (functions(), True),
        (DeveloperContent.new(), False),
        (DeveloperContent.new().with_function_tools([]), False),
        (DeveloperContent.new().with_tools(LAMP_TOOL), False),
        # The key counts, as in the wheels, and not the name.
        (DeveloperContent(tools={"functions": LAMP_TOOL}), True),
    ],
)
def test_functions_are_declared_by_a_namespace_of_that_name_with_tools_in_it(
    content, has_functions
):
    assert has_function_tools(content) is has_functions


def test_the_types_of_one_tool_are_not_named_like_another_tool():
    node = {"properties": {"next": {"$ref": "#"}}}
    tools = [ToolDescription.new("f", "", node), ToolDescription.new("f_parameters", "")]
    content = DeveloperContent.new().with_function_tools(tools)

    text = developer_text(content, GUIDE)

    assert text.count("type f_parameters_2 = {") == text.count("type f_parameters = ()") == 1
