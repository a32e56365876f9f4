"""How long rendering takes, side by side with openai-harmony 0.0.8, in one run.

Three tasks: a conversation of 50 messages with nothing cached; the same twice, so that everything
is; and the next turn of a conversation of 200 messages, which differs by its last two. Rounds of
both libraries take turns, so that a busy machine slows both.

    python benchmarks/rendering.py            # all
    python benchmarks/rendering.py --rounds 5
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai_harmony

from harmony_stream import messages, tools
from harmony_stream.rendering.render import Renderer

sys.path.insert(0, str(Path(__file__).resolve().parent))

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


def seconds(task: Callable[[], object]) -> float:
    """How long one call takes."""
    begin = time.perf_counter()
    task()
    return time.perf_counter() - begin


def compare(
    title: str,
    ours: Callable[[], Callable[[], object]],
    theirs: Callable[[], Callable[[], object]],
    rounds: int,
) -> None:
    """Print both times and their ratio; what prepares a call is not measured."""
    pairs = [(seconds(ours()), seconds(theirs())) for _ in range(rounds)]
    mine, other = zip(*pairs, strict=True)
    print(
        f"{title:42} minimum {min(mine) * 1e6:8.0f} us, openai-harmony {min(other) * 1e6:8.0f} us"
        f", {min(other) / min(mine):6.1f} times as fast"
        f"; medians {statistics.median(mine) * 1e6:.0f}, {statistics.median(other) * 1e6:.0f}"
    )


def main() -> None:
    """Run all tasks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50)
    rounds = parser.parse_args().rounds
    reference = openai_harmony.load_harmony_encoding("HarmonyGptOss")
    Renderer().encode("load the vocabulary")
    ours = {count: conversation(messages, tools.ToolDescription, count) for count in (50, 200)}
    theirs = {
        count: conversation(openai_harmony, openai_harmony.ToolDescription, count)
        for count in (50, 200)
    }
    for count in (50, 200):
        assert Renderer().render_conversation(ours[count]) == reference.render_conversation(
            theirs[count]
        )

    def cold() -> Callable[[], object]:
        renderer = Renderer()
        return lambda: renderer.render_conversation_for_completion(
            ours[50], messages.Role.ASSISTANT
        )

    def reference_of(count: int) -> Callable[[], Callable[[], object]]:
        return lambda: (
            lambda: reference.render_conversation_for_completion(
                theirs[count], openai_harmony.Role.ASSISTANT
            )
        )

    renderer = Renderer()
    number = 0

    def next_turn() -> Callable[[], object]:
        nonlocal number
        number += 1
        grown = messages.Conversation.from_messages(
            [*ours[200].messages[:198], *turn(messages, 10_000 + number)[:2]]
        )
        return lambda: renderer.render_conversation_for_completion(grown, messages.Role.ASSISTANT)

    compare("50 messages, nothing cached", cold, reference_of(50), rounds)
    renderer.render_conversation(ours[50])
    compare(
        "50 messages, all cached",
        lambda: (
            lambda: renderer.render_conversation_for_completion(ours[50], messages.Role.ASSISTANT)
        ),
        reference_of(50),
        rounds,
    )
    renderer.render_conversation(ours[200])
    compare("next turn of 200 messages", next_turn, reference_of(200), rounds)


if __name__ == "__main__":
    main()
