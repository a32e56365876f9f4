import json

import attrs
import pytest
from strategies import tokens_of

from harmony_stream.parsing.collect import parse
from harmony_stream.values.completion import Completion, ToolCall, message_of
from harmony_stream.values.events import EndKind
from harmony_stream.values.header import Header
from harmony_stream.values.messages import Role

TURN = (
    "<|channel|>analysis<|message|>Think.<|end|>"
    "<|start|>assistant<|channel|>commentary<|message|>I look it up.<|end|>"
    "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>"
    "<|start|>functions.f to=assistant<|channel|>commentary<|message|>[1]<|end|>"
    "<|start|>assistant<|channel|>analysis to=python code<|message|>print(1)<|end|>"
    "<|start|>assistant<|channel|>gossip<|message|>Well.<|end|>"
    "<|start|>assistant<|message|>Bare.<|end|>"
    "<|start|>assistant<|channel|>final<|message|>Done.<|return|>"
)


def completion_of(text):
    return parse(tokens_of(text))


def test_a_message_has_the_fields_of_its_header():
    header = Header(Role.TOOL, "functions.f", "commentary", "assistant", "<|constrain|>json")
    assert message_of(header, "42").to_dict() == {
        "role": "tool",
        "name": "functions.f",
        "content": [{"type": "text", "text": "42"}],
        "channel": "commentary",
        "recipient": "assistant",
        "content_type": "<|constrain|>json",
    }


def test_a_completion_tells_apart_what_is_for_whom():
    completion = completion_of(TURN)
    assert completion.reasoning == "Think.\n\nWell."
    assert completion.preamble == "I look it up."
    assert completion.final_text == "Bare.\n\nDone."
    assert completion.visible_text == "I look it up.\n\nBare.\n\nDone."
    assert completion.after_return == ()
    assert completion.end is EndKind.RETURN
    assert completion.faults == ()
    assert len(completion.messages) == len(completion.ends) == 8


NEXT = "<|start|>assistant<|channel|>final<|message|>"


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        (f"<|message|>a<|end|>{NEXT}b<|return|>", "a\n\nb"),
        (f"<|message|><|end|>{NEXT}b<|return|>", "b"),
        (f"<|message|>a<|end|>{NEXT}<|end|>{NEXT}b<|end|>{NEXT}", "a\n\nb"),
        (f"<|message|>a\n<|end|>{NEXT} b", "a\n\n\n b"),
        ("<|message|><|end|>", ""),
    ],
)
def test_a_blank_line_is_between_messages_that_become_one_text(text, joined):
    completion = completion_of(text)
    assert completion.final_text == completion.visible_text == joined


USER = "<|start|>user<|message|>And 3 + 3?<|end|>"
AFTER_RETURN = [
    # tokens, the answer, texts of what came after it
    (f"{NEXT}4<|return|>", "4", []),
    (f"{NEXT}4<|return|>{USER}{NEXT}6<|return|>", "4", ["And 3 + 3?", "6"]),
    (f"{NEXT}4<|return|>more<|end|>", "4", ["more"]),
    (f"{NEXT}4<|endoftext|>{NEXT}5<|endoftext|>", "4", ["5"]),
    (f"{NEXT}4<|end|>{NEXT}5<|return|>{NEXT}6<|return|>{NEXT}7", "4\n\n5", ["6", "7"]),
    # A prompt's message may end in any way; an invented one ends sampling too.
    (f"<|start|>user<|message|>2 + 2?<|return|>{NEXT}4<|return|>", "4", []),
    (f"{NEXT}4<|end|><|start|>user<|message|>?<|return|>{NEXT}6<|end|>", "4", ["6"]),
    # After a call a log goes on with the result and the answer.
    (f"<|start|>assistant to=f<|message|>1<|call|>{NEXT}4<|end|>{NEXT}5", "4\n\n5", []),
]


@pytest.mark.parametrize(("text", "answer", "after"), AFTER_RETURN)
def test_an_answer_never_grows_by_what_was_sampled_after_return(text, answer, after):
    completion = parse(tokens_of(text), role=None)
    assert completion.final_text == completion.visible_text == answer
    assert [message.content[0].text for message in completion.after_return] == after
    count = len(completion.messages) - len(after)
    assert completion.after_return == completion.messages[count:]


def test_thoughts_preambles_and_calls_after_return_do_not_count():
    more = f"{NEXT}Done.<|return|><|start|>assistant" + TURN
    completion = completion_of(TURN + "<|start|>assistant" + TURN)
    assert completion.tool_calls == completion_of(TURN).tool_calls
    assert completion.preamble == "I look it up."
    assert completion.reasoning == "Think.\n\nWell."
    assert len(completion.messages) == len(completion.ends) == 16
    assert len(completion.after_return) == 8
    assert parse(tokens_of(more), role=None).tool_calls == ()


def test_tool_calls_are_found_on_any_channel():
    assert completion_of(TURN).tool_calls == (
        ToolCall("functions.f", "{}", True, 2, "json", "commentary"),
        ToolCall("python", "print(1)", True, 4, "code", "analysis"),
    )


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("<|channel|>commentary to=f<|message|>{}<|call|>", True),
        ("<|channel|>commentary to=f<|message|>{}<|end|>", True),
        ("<|channel|>commentary to=f<|message|>{}<|return|>", True),
        ("<|channel|>commentary to=f<|message|>{}", False),
        ("<|channel|>commentary to=f<|message|>{}<|endoftext|>", False),
        ("<|channel|>commentary to=f<|message|>{}<|start|>", False),
        ("<|channel|>commentary to=f{}<|call|>", False),
    ],
)
def test_a_call_is_complete_if_it_came_to_its_end(text, complete):
    (call,) = completion_of(text).tool_calls
    assert (call.name, call.arguments, call.complete) == ("f", "{}", complete)


@pytest.mark.parametrize("text", ["", "<|end|>", "<|start|>assistant"])
def test_an_empty_completion_says_nothing(text):
    completion = completion_of(text)
    assert completion == Completion((), (), ())
    assert completion.end is None
    assert completion.final_text == completion.preamble == completion.reasoning == ""
    assert completion.visible_text == ""
    assert completion.tool_calls == ()


def test_a_completion_as_a_dictionary_survives_json():
    found = completion_of("<|channel|><|message|>a<|end|>").to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["messages"] == [
        {"role": "assistant", "name": None, "content": [{"type": "text", "text": "a"}]}
    ]
    assert [end["type"] for end in found["ends"]] == ["message_end"]
    assert [fault["error"]["kind"] for fault in found["faults"]] == ["empty_channel"]


def test_a_completion_and_a_call_are_frozen():
    completion = completion_of(TURN)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        completion.messages = ()
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        completion.tool_calls[0].complete = True
