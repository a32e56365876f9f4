"""Jobs that turn conversations into tokens."""

from __future__ import annotations

from functools import partial
from itertools import count as count_up

import harmony_stream
from benchmarks import conversations
from benchmarks.job import Job
from benchmarks.jobs.tokens import encode
from harmony_stream import (
    Conversation,
    HistoryPolicy,
    Message,
    RenderConversationConfig,
    Renderer,
    Role,
    Transcript,
    parse,
)

SAMPLED_CALL = encode(conversations.SAMPLED_CALL)
SAMPLED_ANSWER = encode(
    f"<|channel|>analysis<|message|>{conversations.WORDS}<|end|>"
    f"<|start|>assistant<|channel|>final<|message|>{conversations.WORDS}<|return|>"
)


_ALL = RenderConversationConfig(auto_drop_analysis=False)


def _prompt(renderer: Renderer, chat: Conversation) -> list[int]:
    return renderer.render_conversation_for_completion(chat, Role.ASSISTANT)


def render(count: int, cached: bool, profile: str) -> Job:
    """The prompt of a conversation of that many messages."""
    chat = conversations.conversation(harmony_stream, count)
    warm = Renderer(profile=profile)

    def run() -> list[int]:
        return _prompt(warm if cached else Renderer(profile=profile), chat)

    return Job(run, 1, run())


def turn(count: int, profile: str) -> Job:
    """A sampled call is parsed, its result is added, and the next prompt is rendered."""
    chat = conversations.conversation(harmony_stream, count)
    result = conversations.tool_result(harmony_stream)
    renderer = Renderer(profile=profile)

    def run() -> list[int]:
        grown = [*chat.messages, *parse(SAMPLED_CALL).messages, result]
        return renderer.render_conversation_for_completion(
            Conversation.from_messages(grown), Role.ASSISTANT, _ALL
        )

    return Job(run, 1, len(run()))


def transcript_turn(count: int, profile: str) -> Job:
    """The same turn of a transcript. It grows from run to run, which nothing is gained from."""
    chat = conversations.conversation(harmony_stream, count)
    transcript = Transcript(Renderer(profile=profile))
    transcript.add_messages(chat.messages)
    # It keeps the sampled tokens, where the others write the call again: only lengths are equal.
    run = partial(_call, transcript, HistoryPolicy.KEEP)
    return Job(run, 1, len(run()))


def _call(
    transcript: Transcript, policy: HistoryPolicy = HistoryPolicy.FINISHED_TURNS
) -> list[int]:
    transcript.feed_many(SAMPLED_CALL)
    transcript.add_messages([conversations.tool_result(harmony_stream)])
    return transcript.prompt(policy=policy)


# -- Long transcripts --


def _ask(transcript: Transcript) -> None:
    question = f"What does it say? {conversations.WORDS}"
    transcript.add_messages([Message.from_role_and_content("user", question)])


def _task(size: int) -> Transcript:
    """Return one question with calls, which keeps all."""
    transcript = Transcript()
    _ask(transcript)
    while len(transcript) < size:
        _call(transcript)
    return transcript


def _chat(size: int) -> Transcript:
    """Return questions with one call each, whose reasoning goes when they are answered."""
    transcript = Transcript()
    for number in count_up(1):
        _ask(transcript)
        _call(transcript)
        transcript.add_sampled(SAMPLED_ANSWER)
        if number % 50 == 0 and len(transcript.prompt()) > size:
            break
    _ask(transcript)
    return transcript


_SESSIONS = {"task": _task, "chat": _chat}


def long_turn(session: str, size: int) -> Job:
    """A turn of a transcript whose prompt has about that many tokens."""
    return Job(partial(_call, _SESSIONS[session](size)))


def copy_of_prompt(session: str, size: int) -> Job:
    """A bare copy of as many tokens."""
    tokens = (SAMPLED_CALL * (size // len(SAMPLED_CALL) + 1))[:size]
    return Job(lambda: tokens[:])
