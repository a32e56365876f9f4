"""The texts of system and developer messages, section by section.

Format guide, "System message format", "Developer message format", "Defining available tools" and
"Structured output". Blank lines separate sections, and a field that is None is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harmony_stream.errors import RenderError
from harmony_stream.rendering.header import NAMES, is_channel, is_tool_name
from harmony_stream.rendering.typescript import tool_type
from harmony_stream.rendering.typescript.text import comment_lines, description_lines, lines_of
from harmony_stream.support.json_text import NestingError, dumps
from harmony_stream.values.tools import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harmony_stream.rendering.profiles import Profile
    from harmony_stream.values.messages import (
        ChannelConfig,
        DeveloperContent,
        ResponseFormat,
        SystemContent,
    )
    from harmony_stream.values.tools import ToolNamespaceConfig

_CALLS_NOTE = f"Calls to these tools must go to the commentary channel: '{FUNCTIONS}'."


def system_text(content: SystemContent, profile: Profile, *, has_functions: bool) -> str:
    """Return the text of a system message, which with functions names the channel of calls.

    >>> from harmony_stream.values.messages import SystemContent
    >>> from harmony_stream.rendering.profiles import GUIDE
    >>> print(system_text(SystemContent(channel_config=None), GUIDE, has_functions=False))
    You are ChatGPT, a large language model trained by OpenAI.
    Knowledge cutoff: 2024-06
    <BLANKLINE>
    Reasoning: medium
    """
    return "\n\n".join(_system_sections(content, profile, has_functions=has_functions))


def developer_text(content: DeveloperContent, profile: Profile) -> str:
    """Return the text of a developer message: instructions, tools, response formats.

    >>> from harmony_stream.values.messages import DeveloperContent
    >>> from harmony_stream.rendering.profiles import GUIDE
    >>> print(developer_text(DeveloperContent(instructions="Be brief."), GUIDE))
    # Instructions
    <BLANKLINE>
    Be brief.
    """
    return "\n\n".join(_developer_sections(content, profile))


def has_function_tools(content: DeveloperContent) -> bool:
    """Return whether functions are declared, so that the system message names their channel."""
    namespace = (content.tools or {}).get(FUNCTIONS)
    return namespace is not None and bool(namespace.tools)


def _system_sections(
    content: SystemContent, profile: Profile, *, has_functions: bool
) -> Iterator[str]:
    identity = (
        ("", content.model_identity),
        ("Knowledge cutoff: ", _line("knowledge_cutoff", content.knowledge_cutoff)),
        ("Current date: ", _line("conversation_start_date", content.conversation_start_date)),
    )
    if lines := [label + value for label, value in identity if value is not None]:
        yield "\n".join(lines)
    if content.reasoning_effort is not None:
        yield f"Reasoning: {content.reasoning_effort.value.lower()}"
    if content.tools:
        yield from _tool_sections(content.tools, profile)
    if content.channel_config is not None and content.channel_config.valid_channels:
        yield _channels(content.channel_config, has_functions=has_functions)


def _line(field: str, value: str | None) -> str | None:
    """Return the value, which must be one line, since a line break could forge a section."""
    if value is not None and value.splitlines() not in ([], [value]):
        raise RenderError(field, value, "holds a line break; give it in one line")
    return value


def _channels(config: ChannelConfig, *, has_functions: bool) -> str:
    for number, channel in enumerate(config.valid_channels):
        if not is_channel(channel):
            field = f"channel_config.valid_channels[{number}]"
            raise RenderError(field, channel, "is not a channel that a message can be written on")
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
    # openai_harmony's wheels sort them by key, not by name.
    namespaces = [tools[key] for key in sorted(tools)]
    if profile.tidies:
        namespaces = [each for each in namespaces if not _declares_nothing(each)]
    if namespaces:
        yield "# Tools"
    for namespace in namespaces:
        yield "\n".join(_namespace_lines(namespace, profile))


def _declares_nothing(namespace: ToolNamespaceConfig) -> bool:
    """Return whether this is `functions` without functions, from an empty list of tools.

    Any other namespace without functions is a tool that takes text.
    """
    return namespace.name == FUNCTIONS and not namespace.tools and not namespace.description


def _namespace_lines(namespace: ToolNamespaceConfig, profile: Profile) -> Iterator[str]:
    _check_name("namespace", namespace.name)
    yield f"## {namespace.name}"
    yield ""
    description = namespace.description or ""
    if not namespace.tools:  # prose, like that of python
        yield from lines_of(description)
        return
    yield from description_lines(description, profile, "description of the namespace")
    yield f"namespace {namespace.name} {{"
    names = [tool.name for tool in namespace.tools]
    for number, tool in enumerate(namespace.tools):
        place = f"tools[{number}]"
        _check_name(f"{place}.name", tool.name)
        yield f"\n{tool_type(tool, profile, names, place)}"
    yield f"\n}} // namespace {namespace.name}"


def _check_name(field: str, name: str) -> None:
    if not is_tool_name(name):
        raise RenderError(field, name, f"is not a name that a call can have; {NAMES}")


def _response_format(response_format: ResponseFormat) -> Iterator[str]:
    name = _line("response_formats.name", response_format.name)
    yield f"## {name}"
    comments = comment_lines(response_format.description) if response_format.description else []
    try:
        schema = dumps(response_format.schema, ensure_ascii=False, separators=(",", ":"))
    except NestingError as error:
        raise RenderError("schema of response format", name, f"is {error}") from None
    yield "\n".join([*comments, schema])
