"""Conversations to render, for any library with openai_harmony's names.

Only the standard library: the workers of the wheels use it as well.
"""

# ruff: noqa: ANN401 - the libraries have the same names, but share no types

from __future__ import annotations

from typing import Any

WORDS = (
    "The harbour master keeps a ledger of every ship that passed the point since spring, "
    "with its draught, its cargo and the hour at which the pilot came aboard. "
)
_PARAMETERS = {
    "type": "object",
    "properties": {
        "harbour": {"type": "string", "description": "The harbour and the coast, e.g. Oban, UK"},
        "unit": {"type": "string", "enum": ["metres", "fathoms"], "default": "metres"},
    },
    "required": ["harbour"],
}
SAMPLED_CALL = (
    f"<|channel|>analysis<|message|>{WORDS * 3}<|end|><|start|>assistant<|channel|>commentary"
    ' to=functions.tide_1 <|constrain|>json<|message|>{"harbour": "Oban", "day": 3}<|call|>'
)


def _opening(library: Any) -> list[Any]:
    """Return a system message, and a developer message with ten functions."""
    functions = [
        library.ToolDescription.new(f"tide_{number}", "Gives the tide at a harbour.", _PARAMETERS)
        for number in range(10)
    ]
    system = library.SystemContent.new().with_conversation_start_date("2025-06-28")
    developer = library.DeveloperContent.new().with_instructions("Answer in one sentence.")
    developer.with_function_tools(functions)
    of = library.Message.from_role_and_content
    return [of(library.Role.SYSTEM, system), of(library.Role.DEVELOPER, developer)]


def tool_result(library: Any, number: int = 4) -> Any:
    """Return the result of a call."""
    tool = library.Author.new(library.Role.TOOL, "functions.tide_1")
    result = library.Message.from_author_and_content(tool, f'{{"metres": {number}}}')
    return result.with_recipient("assistant").with_channel("commentary")


def turn(library: Any, number: int) -> list[Any]:
    """Return five messages: a question, reasoning, a call, its result, an answer."""
    of, role = library.Message.from_role_and_content, library.Role
    call = of(role.ASSISTANT, f'{{"harbour": "Oban {number}"}}').with_channel("commentary")
    return [
        of(role.USER, f"How high is the tide on day {number}? {WORDS}"),
        of(role.ASSISTANT, f"Day {number}: I need the tide. {WORDS}").with_channel("analysis"),
        call.with_recipient("functions.tide_1").with_content_type("<|constrain|>json"),
        tool_result(library, number),
        of(role.ASSISTANT, f"On day {number} it is high. {WORDS * 2}").with_channel("final"),
    ]


def conversation(library: Any, count: int) -> Any:
    """Return a conversation of that many messages."""
    made = _opening(library)
    while len(made) < count:
        made += turn(library, len(made))
    return library.Conversation.from_messages(made[:count])


def plain(messages: list[Any]) -> list[list[str | None]]:
    """Return what messages say, as JSON."""
    return [
        [each.channel, each.recipient, each.content_type, *(part.text for part in each.content)]
        for each in messages
    ]
