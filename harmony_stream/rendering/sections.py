"""The texts of system and developer messages, section by section.

Format guide, "System message format", "Developer message format", "Defining available tools" and
"Structured output". Sections are set apart by blank lines; what is None is left out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harmony_stream.rendering.typescript import lines_of, tool_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harmony_stream.messages import (
        ChannelConfig,
        DeveloperContent,
        ResponseFormat,
        SystemContent,
    )
    from harmony_stream.rendering.profiles import Profile
    from harmony_stream.tools import ToolNamespaceConfig

FUNCTIONS = "functions"
_CALLS_NOTE = f"Calls to these tools must go to the commentary channel: '{FUNCTIONS}'."


def system_text(content: SystemContent, profile: Profile, *, has_functions: bool) -> str:
    """The text of a system message; with functions in the conversation it says where calls go.

    >>> from harmony_stream.messages import SystemContent
    >>> from harmony_stream.rendering.profiles import GUIDE
    >>> print(system_text(SystemContent(channel_config=None), GUIDE, has_functions=False))
    You are ChatGPT, a large language model trained by OpenAI.
    Knowledge cutoff: 2024-06
    <BLANKLINE>
    Reasoning: medium
    """
    return "\n\n".join(_system_sections(content, profile, has_functions=has_functions))


def developer_text(content: DeveloperContent, profile: Profile) -> str:
    """The text of a developer message: instructions, tools, response formats.

    >>> from harmony_stream.messages import DeveloperContent
    >>> from harmony_stream.rendering.profiles import GUIDE
    >>> print(developer_text(DeveloperContent(instructions="Be brief."), GUIDE))
    # Instructions
    <BLANKLINE>
    Be brief.
    """
    return "\n\n".join(_developer_sections(content, profile))


def has_function_tools(content: DeveloperContent) -> bool:
    """Whether functions are declared, so that the system message must say where calls go."""
    namespace = (content.tools or {}).get(FUNCTIONS)
    return namespace is not None and bool(namespace.tools)


def _system_sections(
    content: SystemContent, profile: Profile, *, has_functions: bool
) -> Iterator[str]:
    identity = (
        ("", content.model_identity),
        ("Knowledge cutoff: ", content.knowledge_cutoff),
        ("Current date: ", content.conversation_start_date),
    )
    if lines := [label + value for label, value in identity if value is not None]:
        yield "\n".join(lines)
    if content.reasoning_effort is not None:
        yield f"Reasoning: {content.reasoning_effort.value.lower()}"
    if content.tools:
        yield from _tool_sections(content.tools, profile)
    if content.channel_config is not None and content.channel_config.valid_channels:
        yield _channels(content.channel_config, has_functions=has_functions)


def _channels(config: ChannelConfig, *, has_functions: bool) -> str:
    required = " Channel must be included for every message." if config.channel_required else ""
    note = f"\n{_CALLS_NOTE}" if has_functions else ""
    return f"# Valid channels: {', '.join(config.valid_channels)}.{required}{note}"


def _developer_sections(content: DeveloperContent, profile: Profile) -> Iterator[str]:
    if content.instructions is not None:
        yield "# Instructions"
        yield content.instructions
    if content.tools:
        yield from _tool_sections(content.tools, profile)
    if content.response_formats:
        yield "# Response Formats"
        for response_format in content.response_formats.values():
            yield from _response_format(response_format)


def _tool_sections(tools: Mapping[str, ToolNamespaceConfig], profile: Profile) -> Iterator[str]:
    yield "# Tools"
    # The wheels sort them, by key and not by name.
    for key in sorted(tools):
        yield "\n".join(_namespace_lines(tools[key], profile))


def _namespace_lines(namespace: ToolNamespaceConfig, profile: Profile) -> Iterator[str]:
    yield f"## {namespace.name}"
    yield ""
    # Before a namespace the description is a comment; without one, as in python, it is prose.
    mark = "// " if namespace.tools else ""
    for line in lines_of(namespace.description or ""):
        yield mark + line
    if namespace.tools:
        yield f"namespace {namespace.name} {{"
        names = [tool.name for tool in namespace.tools]
        for tool in namespace.tools:
            yield f"\n{tool_type(tool, profile, names)}"
        yield f"\n}} // namespace {namespace.name}"


def _response_format(response_format: ResponseFormat) -> Iterator[str]:
    yield f"## {response_format.name}"
    comments = [f"// {line}" for line in lines_of(response_format.description or "")]
    schema = json.dumps(response_format.schema, ensure_ascii=False, separators=(",", ":"))
    yield "\n".join([*comments, schema])
