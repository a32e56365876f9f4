"""How long rendering takes, side by side with openai-harmony 0.0.8, in one run.

A conversation of 50 messages with nothing cached, then with everything; and the next turn of a
conversation of 200 messages, of which the last two are new. Times are minimum and median, and so
are ratios.

    python benchmarks/rendering.py --rounds 50
"""

# ruff: noqa: ANN401 - what is measured is the same for two libraries that share no types

from __future__ import annotations

import argparse
import tempfile
from typing import TYPE_CHECKING, Any

import openai_harmony
from parsing import provide_official_file
from side_by_side import ratio, time_by_turns

from harmony_stream.rendering.render import Renderer
from harmony_stream.values import messages, tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORDS = (
    "The harbour master keeps a ledger of every ship that passed the point since spring, "
    "with its draught, its cargo and the hour at which the pilot came aboard. "
)
PARAMETERS = {
    "type": "object",
    "properties": {
        "harbour": {"type": "string", "description": "The harbour and the coast, e.g. Oban, UK"},
        "unit": {"type": "string", "enum": ["metres", "fathoms"], "default": "metres"},
    },
    "required": ["harbour"],
}


def opening(library: Any, tool_description: Any) -> list[Any]:
    """System and developer message, with ten functions."""
    functions = [
        tool_description.new(f"tide_{number}", "Gives the tide at a harbour.", PARAMETERS)
        for number in range(10)
    ]
    system = library.SystemContent.new().with_conversation_start_date("2025-06-28")
    developer = library.DeveloperContent.new().with_instructions("Answer in one sentence.")
    developer.with_function_tools(functions)
    of = library.Message.from_role_and_content
    return [of(library.Role.SYSTEM, system), of(library.Role.DEVELOPER, developer)]


def turn(library: Any, number: int) -> list[Any]:
    """Five messages: a question, a thought, a call, its result, an answer."""
    of, role = library.Message.from_role_and_content, library.Role
    call = of(role.ASSISTANT, f'{{"harbour": "Oban {number}"}}').with_channel("commentary")
    tool = library.Author.new(role.TOOL, "functions.tide_1")
    result = library.Message.from_author_and_content(tool, f'{{"metres": {number}}}')
    return [
        of(role.USER, f"How high is the tide on day {number}? {WORDS}"),
        of(role.ASSISTANT, f"Day {number}: I need the tide. {WORDS}").with_channel("analysis"),
        call.with_recipient("functions.tide_1").with_content_type("<|constrain|>json"),
        result.with_recipient("assistant").with_channel("commentary"),
        of(role.ASSISTANT, f"On day {number} it is high. {WORDS * 2}").with_channel("final"),
    ]


def conversation(library: Any, tool_description: Any, count: int) -> Any:
    """A conversation of that many messages."""
    made = opening(library, tool_description)
    while len(made) < count:
        made += turn(library, len(made))
    return library.Conversation.from_messages(made[:count])


def conversations_in(library: Any, tool_description: Any) -> dict[int, Any]:
    """The conversations that are rendered, by their number of messages."""
    return {count: conversation(library, tool_description, count) for count in (50, 200)}


def next_turns(start: Any, count: int) -> Iterator[Any]:
    """Conversations that differ from *start* by their last two messages."""
    for number in range(count):
        grown = [*start.messages[:-2], *turn(messages, 10_000 + number)[:2]]
        yield messages.Conversation.from_messages(grown)


def main() -> None:
    """Run all jobs by turns and print their times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        provide_official_file(folder)
        encoding = openai_harmony.load_harmony_encoding("HarmonyGptOss")
    ours = conversations_in(messages, tools.ToolDescription)
    theirs = conversations_in(openai_harmony, openai_harmony.ToolDescription)
    renderer = Renderer()
    for count in ours:
        expected = encoding.render_conversation(theirs[count])
        assert renderer.render_conversation(ours[count]) == expected
    # Made before the clock runs; one more than rounds, for the warm-up.
    turns = iter(list(next_turns(ours[200], rounds + 1)))

    def reference(count: int) -> Callable[[], object]:
        return lambda: encoding.render_conversation_for_completion(
            theirs[count], openai_harmony.Role.ASSISTANT
        )

    def complete(made: Renderer, chat: Any) -> list[int]:
        return made.render_conversation_for_completion(chat, messages.Role.ASSISTANT)

    jobs = {
        "openai-harmony, 50": reference(50),
        "nothing cached, 50": lambda: complete(Renderer(), ours[50]),
        "all cached, 50": lambda: complete(renderer, ours[50]),
        "openai-harmony, 200": reference(200),
        "next turn, 200": lambda: complete(renderer, next(turns)),
    }
    timings = time_by_turns(jobs, rounds)
    for name, timing in timings.items():
        slow = timings[f"openai-harmony, {name.rpartition(' ')[2]}"]
        times = f"{timing.minimum * 1e6:8.0f} us {timing.median * 1e6:8.0f} us"
        print(f"{name + ' messages':30} {times} {ratio(slow, timing)} as fast")


if __name__ == "__main__":
    main()
