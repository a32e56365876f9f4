"""Turns, and what a client of blocks has of each: shared by the tests of AG-UI and UI messages."""

import attrs

from harmony_stream.adapters import AgUiStream, UiMessageStream, counted_ids
from harmony_stream.support.json_text import MAX_DEPTH

THINK = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
CALL = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>"
CODE = "<|channel|>analysis to=python code<|message|>"
SEARCH = "<|channel|>analysis to=browser.search<|message|>"
EXEC = "<|channel|>analysis to=container.exec<|message|>"
ANSWER = "<|channel|>final<|message|>Four.<|return|>"
RESULT = "<|start|>{} to=assistant<|channel|>commentary<|message|>9<|end|><|start|>assistant"


def ag_ui(**options):
    return AgUiStream("thread", "run", ids=counted_ids(), **options)


def ui_messages(**options):
    return UiMessageStream(ids=counted_ids(), **options)


@attrs.frozen
class Turn:
    """A turn, and what a client has of it.

    Attributes:
        text: the tokens, as marked text.
        blocks: kind (one of the words below), tool and text of each block.
        inputs: the end of each call in a UI message stream: the input, or an error.
        reported: kinds of the problems that the server hears of.
        options: of the stream.
    """

    text: str
    blocks: list
    inputs: list = attrs.field(factory=list)
    reported: list = attrs.field(factory=list)
    options: dict = attrs.field(factory=dict)


TEXT, THOUGHT = ("text", None, "Four."), ("reasoning", None, "Hm.")
NOT_JSON = {
    "no JSON": "ls -R",
    "not a number": '{"a": NaN}',
    "nested too deeply": "[" * 5_000 + "]" * 5_000,
    "nested one level too deeply": "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
}
# JSON, but none that Python, or a client, can read.
NOT_SENT = {
    "a number beyond floats": "1e999",
    "a number with too many digits": "1" * 5000,
    "half a character": '"\\ud83e"',
}

TURNS = {
    "thinking and an answer": Turn(THINK + ANSWER, [THOUGHT, TEXT]),
    "thinking is hidden": Turn(THINK + ANSWER, [TEXT], options={"hide_reasoning": True}),
    "nothing at all": Turn("", []),
    "a message without text": Turn("<|channel|>final<|message|><|end|>", [("text", None, "")]),
    "two calls of one function": Turn(
        f"{CALL}1<|call|><|start|>assistant{CALL}[2]<|call|>",
        [("call", "f", "1"), ("call", "f", "[2]")],
        [1, [2]],
    ),
    "code is no JSON": Turn(CODE + "1+1<|call|>", [("call", "python", "1+1")], ["1+1"]),
    "a search": Turn(SEARCH + "{}<|call|>", [("call", "browser.search", "{}")], [{}]),
    "another tool": Turn(EXEC + "{}<|call|>", [("call", "container.exec", "{}")], [{}]),
    "a call cut off": Turn(
        CALL + "{}", [("call", "f", "{}")], ["cut off"], reported=["incomplete_call"]
    ),
    "a text cut off": Turn("<|channel|>final<|message|>Four.", [TEXT]),
    "text without a channel": Turn("<|message|>Four.", [TEXT], reported=["without_channel"]),
    "a prompt in the stream": Turn("<|end|><|start|>user<|message|>What?<|end|>", []),
    "a call without arguments": Turn(
        CALL + " <|call|>", [("call", "f", " {}")], [{}], ["arguments_not_json"]
    ),
    "another tool without arguments": Turn(
        EXEC + "<|call|>", [("call", "container.exec", "{}")], [{}]
    ),
    "code without a line": Turn(CODE + "<|call|>", [("call", "python", "")], [""]),
    "a call without arguments that was cut off": Turn(
        CALL, [("call", "f", "")], ["cut off"], ["incomplete_call"]
    ),
    "a name that is spelled otherwise": Turn(
        "<|channel|>commentary to=functions.functions.F <|constrain|>json<|message|>{}<|call|>",
        [("call", "f", "{}")],
        [{}],
        ["resolved_name"],
        {"tools": ["f"]},
    ),
    "a call of no name": Turn(
        "<|channel|>analysis to=functions.<|message|>Hm.<|call|>",
        [THOUGHT],
        reported=["nameless_call"],
    ),
    "more after the answer": Turn(
        f"{ANSWER}<|start|>assistant{CALL}1<|call|>", [TEXT], reported=["after_return"]
    ),
    "text that belongs to no message": Turn(
        f"<|channel|>final<|message|>Four.<|end|>Five.<|start|>assistant{ANSWER}",
        [TEXT, ("text", None, "Five."), TEXT],
        reported=["expected_start"],
    ),
    **{
        f"arguments that are {name}": Turn(
            f"{CALL}{text}<|call|>", [("call", "f", text)], ["not JSON"], ["arguments_not_json"]
        )
        for name, text in NOT_JSON.items()
    },
    **{
        f"arguments that are {name}": Turn(
            f"{CALL}{text}<|call|>", [("call", "f", text)], ["not JSON"]
        )
        for name, text in NOT_SENT.items()
    },
}
