"""Writes the token logs in `examples/`.

    python scripts/make_examples.py

The streams are given as text with the special tokens spelled out, and encoded with the library's
vocabulary, so that the ids are those that a gpt-oss model would use.
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

from harmony_stream import Vocabulary

TARGET = Path(__file__).parent.parent / "examples"

# The completion that OpenAI's format guide lists as ids.
TWO_PLUS_TWO = (
    '<|channel|>analysis<|message|>User asks: "What is 2 + 2?" Simple arithmetic. Provide answer.'
    "<|end|><|start|>assistant<|channel|>final<|message|>2 + 2 = 4.<|return|>"
)

TOOL_CALL = (
    "<|channel|>analysis<|message|>The tide table is not something I know by heart. "
    "There is a function for it.<|end|>"
    "<|start|>assistant<|channel|>commentary to=functions.get_tides <|constrain|>json<|message|>"
    '{"harbour": "Saint-Malo", "day": "2025-10-09"}<|call|>'
)

PREAMBLE_AND_CALLS = (
    "<|channel|>analysis<|message|>Three steps: find the train, book a seat, tell Noor."
    "<|end|>"
    "<|start|>assistant<|channel|>commentary<|message|>I will look up the connection first, "
    "then book the seat and send Noor a note:\n"
    "1. train\n2. seat\n3. note<|end|>"
    "<|start|>assistant<|channel|>commentary to=functions.find_train <|constrain|>json<|message|>"
    '{"from": "Ghent", "to": "Liège", "after": "17:30"}<|call|>'
    "<|start|>assistant<|channel|>commentary to=functions.book_seat <|constrain|>json<|message|>"
    '{"class": 2, "window": true}<|call|>'
    "<|start|>assistant to=python<|channel|>analysis code<|message|>"
    'minutes = 19 * 60 + 12 - (17 * 60 + 41)\nprint(f"{minutes} minutes on the way")<|call|>'
)

EMOJI_AND_CJK = (
    "<|channel|>analysis<|message|>用户想知道怎么泡茶。要简短，带一点表情。🍵<|end|>"
    "<|start|>assistant<|channel|>final<|message|>泡一壶好茶：\n\n"
    "1. 水烧到 85 °C 🌡️\n2. 放入茶叶 🍃🍃\n3. 等三分钟 ⏳\n\n"
    "お茶をどうぞ！차 한 잔 하세요! 👩🏽‍🍳👨‍👩‍👧‍👦 𓆓𠮷<|return|>"
)

# What models and servers get wrong, one after the other: a stop token too many (which is harmless),
# a channel's bare name where <|start|> was due, words behind the channel, a second channel in one
# header, an empty recipient, a message that <|channel|> cuts off, a reserved token, and an id that
# no token has.
MALFORMED = (
    "<|channel|>analysis<|message|>They want the list sorted by name.<|end|><|end|>"
    "commentary<|message|>Sorting the list.<|end|>"
    "<|start|>assistant<|channel|>commentary please sort to=functions.sort <|constrain|>json"
    '<|message|>{"by": "name"}<|call|>'
    "<|start|>assistant<|channel|>analysis<|channel|>commentary to=functions.show<|message|>"
    "{}<|call|>"
    "<|start|>assistant<|channel|>analysis to=<|message|>Done with the tools."
    "<|channel|>final<|message|>Here is the list<|reserved_200017|>: Ada, Grace, "
)
UNKNOWN_ID = 201500
MALFORMED_END = "Mary.<|return|>"

TRUNCATED = (
    "<|channel|>analysis<|message|>A note to the landlord, polite but firm.<|end|>"
    "<|start|>assistant<|channel|>commentary to=functions.send_mail <|constrain|>json<|message|>"
    '{"to": "landlord@example.org", "subject": "The boiler", "body": "Dear Mr Vance, since'
)

CONVERSATION = (
    "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
    "Knowledge cutoff: 2024-06\nCurrent date: 2025-10-09\n\nReasoning: low\n\n"
    "# Valid channels: analysis, commentary, final. Channel must be included for every message.\n"
    "Calls to these tools must go to the commentary channel: 'functions'.<|end|>"
    "<|start|>developer<|message|># Instructions\n\nAnswer in one sentence.\n\n# Tools\n\n"
    "## functions\n\nnamespace functions {\n\n// How high the river stands.\n"
    "type get_gauge = (_: {\nstation: string,\n}) => any;\n\n} // namespace functions<|end|>"
    "<|start|>user<|message|>Is the Rhine high at Cologne today?<|end|>"
    "<|start|>assistant<|channel|>analysis<|message|>Ask the gauge.<|end|>"
    "<|start|>assistant<|channel|>commentary to=functions.get_gauge <|constrain|>json<|message|>"
    '{"station": "Cologne"}<|call|>'
    "<|start|>functions.get_gauge to=assistant<|channel|>commentary<|message|>"
    '{"centimetres": 271, "mean": 321}<|end|>'
    "<|start|>assistant<|channel|>final<|message|>No: at 2.71 m the Rhine stands half a metre "
    "below its mean at Cologne.<|return|>"
)

BATCH = {
    "capital": "<|channel|>final<|message|>The capital of Mongolia is Ulaanbaatar.<|return|>",
    "rhyme": (
        "<|channel|>analysis<|message|>Something with 'stream'.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>Row by row and beam by beam,\n"
        "tokens float along the stream.<|return|>"
    ),
    "cut": "<|channel|>final<|message|>The three largest lakes of Africa are Victoria,",
}


def encode(marked_text: str) -> list[int]:
    """The ids of text in which special tokens are spelled out."""
    return Vocabulary.default().tiktoken_encoding.encode(marked_text, allowed_special="all")


def as_array(tokens: list[int]) -> str:
    """A JSON array, in lines of readable length."""
    return textwrap.fill(json.dumps(tokens), 100) + "\n"


def as_words(tokens: list[int]) -> str:
    """Ids with white space between them."""
    return textwrap.fill(" ".join(map(str, tokens)), 100) + "\n"


def as_lines(streams: dict[str, str]) -> str:
    """A JSON object a line, each with a name and the ids of one stream."""
    records = ({"id": name, "token_ids": encode(text)} for name, text in streams.items())
    return "".join(f"{json.dumps(record)}\n" for record in records)


def logs() -> dict[str, str]:
    """The content of each file, by its name."""
    malformed = [*encode(MALFORMED), UNKNOWN_ID, *encode(MALFORMED_END)]
    return {
        "two_plus_two.json": as_array(encode(TWO_PLUS_TWO)),
        "tool_call.json": as_array(encode(TOOL_CALL)),
        "preamble_and_calls.json": as_array(encode(PREAMBLE_AND_CALLS)),
        "emoji_and_cjk.json": as_array(encode(EMOJI_AND_CJK)),
        "malformed.txt": as_words(malformed),
        "truncated.txt": as_words(encode(TRUNCATED)),
        "conversation.json": as_array(encode(CONVERSATION)),
        "batch.jsonl": as_lines(BATCH),
    }


def main() -> None:
    for name, content in logs().items():
        (TARGET / name).write_text(content, encoding="utf-8")
        print(TARGET / name)


if __name__ == "__main__":
    main()
