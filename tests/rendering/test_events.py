"""Events are written as the tokens that they were read from, or mended."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rendered import CHANNELS, CONTENTS, PLAIN_NAMES, TYPE_WORDS, text_of
from strategies import VOCABULARY, events_of, examples, tokens_of

from harmony_stream.parsing.parser import EventParser
from harmony_stream.rendering.events import render_events

# The layout of the guide, written here by hand: an author, and what may follow.
AUTHORS = st.sampled_from(["user", "system", "developer:ann", "tool", "assistant", "assistant:bob"])


@st.composite
def guide_texts(draw):
    author = draw(AUTHORS | PLAIN_NAMES)
    is_tool = not author.startswith(("user", "system", "developer", "assistant"))
    channel = draw(st.sampled_from(["analysis", "commentary"]) if is_tool else st.none() | CHANNELS)
    to = f" to={draw(st.just('assistant') if is_tool else PLAIN_NAMES)}"
    to = to if is_tool else draw(st.sampled_from(["", to]))
    follows = channel is not None and author.startswith("assistant")
    head = author + ("" if follows else to)
    if channel:
        head += f"<|channel|>{channel}" + (to if follows else "")
    kind = draw(st.none() | TYPE_WORDS)
    head += f" {kind}" if kind else ""
    end = draw(st.sampled_from(["<|end|>", "<|return|>", "<|call|>", "<|endoftext|>"]))
    return f"<|start|>{head}<|message|>", draw(CONTENTS), end


def tokens_of_texts(texts):
    encode = VOCABULARY.tiktoken_encoding.encode_ordinary
    return [
        token
        for head, content, end in texts
        for token in [*tokens_of(head), *encode(content), *tokens_of(end)]
    ]


@examples(150)
@given(texts=st.lists(guide_texts(), max_size=4), breaks_off=st.booleans())
def test_events_are_written_as_the_tokens_they_were_read_from(texts, breaks_off):
    if texts and breaks_off:
        texts[-1] = (*texts[-1][:2], "")
    tokens = tokens_of_texts(texts)

    assert render_events(events_of(tokens, None, strict=True)) == tokens


@examples(50)
@given(texts=st.lists(guide_texts(), max_size=3), channel=CHANNELS)
def test_events_after_a_prompt_are_written_without_it(texts, channel):
    head = f"<|start|>assistant<|channel|>{channel}<|message|>"
    tokens = tokens_of_texts([(head, "2 + 2", "<|end|>"), *texts])

    for held in range(2, 1 + len(tokens_of(head))):
        parser = EventParser.after(tokens[:held])
        events = [*parser.feed_many(tokens[held:]), *parser.close()]
        assert render_events(events) == tokens[held:]


def test_a_completion_is_written_without_the_start_that_the_prompt_held():
    completion = tokens_of("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|message|>a")

    assert render_events(events_of(completion, "assistant")) == completion


MENDED = {
    "<|start|>assistant<|message|>a<|start|>user<|message|>b<|end|>":
        "<|start|>assistant<|message|>a<|end|><|start|>user<|message|>b<|end|>",
    "<|start|>assistant to=f<|message|>a<|start|>user<|message|>b<|end|>":
        "<|start|>assistant to=f<|message|>a<|call|><|start|>user<|message|>b<|end|>",
    "stray<|start|>user<|message|>b<|end|>": "<|start|>user<|message|>b<|end|>",
    "<|start|>assistant to=f<|channel|>final<|constrain|>json<|message|>a<|call|>":
        "<|start|>assistant<|channel|>final to=f <|constrain|>json<|message|>a<|call|>",
}  # fmt: skip


@pytest.mark.parametrize(("text", "written"), MENDED.items())
def test_other_streams_come_out_mended(text, written):
    assert text_of(render_events(events_of(tokens_of(text), None))) == written


def test_events_may_be_written_before_the_last_has_come():
    events = EventParser().feed_many(tokens_of("<|message|>so far"))

    assert text_of(render_events(events)) == "<|message|>so far"
