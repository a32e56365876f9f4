"""How long the next turn of a long transcript takes, and how much of that is the copy.

One turn: add the tokens of a sampled call (in two pieces), add the tool's result, ask for the next
prompt. Timed at several lengths by turns, beside a bare copy of as many tokens, in two sessions:
a task with one question, which keeps everything, and a chat, where each answer makes the thinking
before it go. Times are minimum and median.

    python benchmarks/transcript.py --rounds 20 --tokens 250000 500000 1000000
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from side_by_side import Timing, time_by_turns

from harmony_stream.history.transcript import Transcript
from harmony_stream.values.messages import Message
from harmony_stream.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

WORDS = (
    "The harbour master keeps a ledger of every ship that passed the point since spring, "
    "with its draught, its cargo and the hour at which the pilot came aboard. "
)
CALL = (
    f"<|channel|>analysis<|message|>{WORDS * 3}<|end|><|start|>assistant<|channel|>commentary"
    ' to=functions.tide <|constrain|>json<|message|>{"harbour": "Oban", "day": 3}<|call|>'
)
ANSWER = (
    f"<|channel|>analysis<|message|>{WORDS}<|end|>"
    f"<|start|>assistant<|channel|>final<|message|>{WORDS}<|return|>"
)


def tokens_of(marked_text: str) -> list[int]:
    """The tokens of text that spells out its special tokens."""
    return Vocabulary.default().tiktoken_encoding.encode(marked_text, allowed_special="all")


SAMPLED_CALL, SAMPLED_ANSWER = tokens_of(CALL), tokens_of(ANSWER)


def ask(transcript: Transcript) -> None:
    """Add a question."""
    transcript.add_messages([Message.from_role_and_content("user", f"What does it say? {WORDS}")])


def call(transcript: Transcript) -> list[int]:
    """One turn of the model with its tools; gives the next prompt."""
    half = len(SAMPLED_CALL) // 2
    transcript.feed_many(SAMPLED_CALL[:half])
    transcript.feed_many(SAMPLED_CALL[half:])
    transcript.add_tool_result("functions.tide", f'{{"metres": 4, "note": "{WORDS}"}}')
    return transcript.prompt()


def task(size: int) -> Transcript:
    """One question and as many calls as make so many tokens."""
    transcript = Transcript()
    ask(transcript)
    while len(transcript) < size:
        call(transcript)
    return transcript


def chat(size: int) -> Transcript:
    """Questions with one call each, answered, until the prompt has so many tokens."""
    transcript = Transcript()
    length = 0
    while length < size:
        for _ in range(50):
            ask(transcript)
            call(transcript)
            transcript.add_sampled(SAMPLED_ANSWER)
        length = len(transcript.prompt())
    ask(transcript)
    return transcript


def jobs_of(name: str, transcript: Transcript) -> dict[str, Callable[[], object]]:
    """A turn, and a copy of as many tokens as its prompt has."""
    tokens = transcript.prompt()
    label = f"{name}, {len(tokens):9,} tokens"
    return {f"{label}, next turn": lambda: call(transcript), f"{label}, copy": lambda: tokens[:]}


def line(name: str, timing: Timing) -> str:
    """A name and its times."""
    return f"{name:38} {timing.minimum * 1e3:8.3f} ms {timing.median * 1e3:8.3f} ms"


def main() -> None:
    """Build the sessions, run all jobs by turns, and print their times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tokens", type=int, nargs="+", default=[250_000, 500_000, 1_000_000])
    options = parser.parse_args()
    jobs: dict[str, Callable[[], object]] = {}
    for size in options.tokens:
        jobs |= jobs_of("task", task(size)) | jobs_of("chat", chat(size))
    for name, timing in time_by_turns(jobs, options.rounds).items():
        print(line(name, timing))


if __name__ == "__main__":
    main()
