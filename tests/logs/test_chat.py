"""Chat messages of logs: all that was said is in them, and where a client would see it."""

import pytest
from hypothesis import given
from strategies import events_of, examples, streams

from harmony_stream.adapters.routing import STRAY
from harmony_stream.logs.chat import chat_messages, said_in
from harmony_stream.values.events import ContentDelta, Malformed

CALL_OF_F = {
    "id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"},
}  # fmt: skip
NEXT = "<|start|>assistant"

SPOKEN = [
    ("Let me see.<|channel|>commentary to=functions.f<|message|>{}<|call|>",
     {"content": "Let me see.", "tool_calls": [CALL_OF_F]}),
    ("<|channel|>final Sure, here.<|message|>Four.<|return|>", {"content": "Sure, here.\n\nFour."}),
    (f"<|channel|>final<|message|>One.<|end|>stray {NEXT}<|channel|>final<|message|>Two.<|end|>",
     {"content": "One.\n\nstray \n\nTwo."}),
    ("<|channel|>analysis We think.<|message|>Hm.<|end|>",
     {"content": "", "thinking": "We think.\n\nHm."}),
    ("<|channel|>commentary to=functions.<|message|>{}<|call|>", {"content": "{}"}),
    ("<|channel|>final<|message|>One.<|end|> two<|start|>", {"content": "One.\n\n two"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), SPOKEN)
def test_chat_has_the_text_that_belongs_to_no_message_or_no_tool(text, message):
    found = chat_messages(said_in(events_of(text)))
    assert found == [{"role": "assistant", **message}]


ONE = "<|channel|>final<|message|>One.<|end|>"


@pytest.mark.parametrize(
    ("said", "cut"),
    [
        ("", "<|channel|>ana"),
        (ONE, f"{NEXT}<|channel|>ana"),
        (ONE, f"{NEXT}<|channel|>commentary to=functions.f"),
    ],
)
def test_a_header_that_was_cut_off_is_nothing_that_was_said(said, cut):
    assert chat_messages(said_in(events_of(said + cut))) == chat_messages(said_in(events_of(said)))


def test_text_in_the_header_of_somebody_else_is_theirs():
    text = "<|channel|>final<|message|>One.<|end|><|start|>user to=a x y<|message|>And?<|end|>"
    [_, *others] = chat_messages(said_in(events_of(text)))
    assert others == [{"role": "user", "content": "x y"}, {"role": "user", "content": "And?"}]


@given(streams)
@examples(200)
def test_no_character_of_a_log_is_missing_in_chat(tokens):
    events = events_of(tokens)
    texts = [
        event.text
        for event in events
        if isinstance(event, ContentDelta) or (isinstance(event, Malformed) and event.kind in STRAY)
    ]
    found = [said.text for said in said_in(events)]
    assert sorted("".join("".join(found).split())) == sorted("".join("".join(texts).split()))
