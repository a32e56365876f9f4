"""Sessions: what the tests of transcripts and of their files share."""

from harmony_stream.history.transcript import Transcript
from harmony_stream.rendering.render import Renderer
from harmony_stream.values.messages import Message

RENDERER = Renderer(profile="guide")
QUESTION = "<|start|>user<|message|>2 + 2?<|end|>"
THOUGHT = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
ANSWER = "<|channel|>final<|message|>Four.<|return|>"
CALLING = "<|channel|>analysis to=python code<|message|>2+2<|call|>"
RESULT = "<|start|>python to=assistant<|channel|>analysis<|message|>4<|end|>"
OPENED = "<|start|>assistant"


def new(**options):
    return Transcript(RENDERER, **options)


def user(text="2 + 2?"):
    return Message.from_role_and_content("user", text)


def texts_of(transcript):
    return [message.content[0].text for message in transcript.messages]


def is_same(left, right):
    """Whether nothing that can be asked tells two transcripts apart."""
    return all(
        (each(left) == each(right))
        for each in (
            lambda transcript: transcript.training(),
            lambda transcript: transcript.messages,
            lambda transcript: transcript.usage,
            lambda transcript: transcript.prompt(policy="keep", truncated="keep"),
            lambda transcript: transcript.prompt(truncated="drop"),
            lambda transcript: transcript.dropped,
        )
    )


SUFFIXES = [".jsonl", ".bin"]
