"""An engine without a model: it replays token logs, in time.

Which log answers is told by the request alone, so that many clients can be served at once and a
restart changes nothing: the model's name picks the logs, and the number of turns that the assistant
has had in the conversation picks the next one of them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

import attrs

from harmony_stream.logs import is_whole, read_log
from harmony_stream.messages import Conversation, Message, Role
from harmony_stream.parsing.events import MessageStart
from harmony_stream.parsing.parser import EventParser
from harmony_stream.rendering.render import Renderer
from harmony_stream.serving.errors import RequestError

if TYPE_CHECKING:
    from harmony_stream.logs import LogError
    from harmony_stream.serving.engine import Prompt

Recordings: TypeAlias = Mapping[str, Sequence[Sequence[int]]]
"""By model: the completions with which it answers the turns of a conversation, in order."""

ALL = "gpt-oss-20b"
"""The model that has all logs, one after the other."""


@attrs.define
class Replay:
    """One completion that was asked for.

    Attributes:
        model: whose.
        turn: which of its completions, from 1.
        total: the number of its tokens.
        sent: how many of them were taken; fewer than all if the client went away, or wanted no
            more.
    """

    model: str
    turn: int
    total: int
    sent: int = 0

    def __str__(self) -> str:
        sent = f"{self.sent} of {self.total}" if self.sent < self.total else str(self.total)
        return f"{self.model}, turn {self.turn}: {sent} tokens"


def _ignore(replay: Replay) -> None:
    pass


class RecordedEngine:
    """Replays completions: an `Engine`.

    Args:
        recordings: what to replay; see `load_recordings`.
        speed: tokens per second; None: as fast as they are taken.
        on_end: called with each replay when it is over, also when the client went away.

    >>> engine = RecordedEngine({"greeting": [[200005, 17196, 200008, 13225, 200002]]})
    >>> engine.models
    ['greeting']
    """

    def __init__(
        self,
        recordings: Recordings,
        *,
        speed: float | None = None,
        on_end: Callable[[Replay], None] = _ignore,
    ) -> None:
        self._recordings = recordings
        self._speed = speed
        self._on_end = on_end

    @property
    def models(self) -> Sequence[str]:
        """The names of the recordings."""
        return list(self._recordings)

    def sample(self, prompt: Prompt) -> AsyncIterator[int]:
        """Replay the completion whose turn it is.

        Raises:
            RequestError: the conversation has more turns than were recorded.
        """
        completions = self._recordings[prompt.model]
        turn = turns_of_assistant(prompt.messages)
        if turn >= len(completions):
            raise RequestError(
                f"The recording `{prompt.model}` has {len(completions)} turns, and this "
                f"conversation asks for turn {turn + 1}. Begin a new one, or serve more logs.",
                code="recording_over",
            )
        tokens = completions[turn]
        replay = Replay(prompt.model, turn + 1, len(tokens))
        return self._replay(tokens, replay, prompt.speed or self._speed)

    async def _replay(
        self, tokens: Sequence[int], replay: Replay, speed: float | None
    ) -> AsyncIterator[int]:
        now = asyncio.get_running_loop().time
        begin = now()
        try:
            for token in tokens:
                due = begin + replay.sent / speed if speed else 0.0
                await asyncio.sleep(max(0.0, due - now()))  # even 0 lets other streams go on
                yield token
                replay.sent += 1
        finally:
            self._on_end(replay)


def turns_of_assistant(messages: Iterable[Message]) -> int:
    """How often the assistant has spoken: messages of its own that follow each other are one turn.

    >>> turns_of_assistant([Message.from_role_and_content("user", "Hi")])
    0
    """
    roles = groupby(message.author.role for message in messages)
    return sum(role is Role.ASSISTANT for role, _ in roles)


# -- Logs ------------------------------------------------------------------------------------------


def load_recordings(
    paths: Iterable[str | os.PathLike[str]],
    *,
    name: str = ALL,
    report: Callable[[LogError], None] | None = None,
) -> dict[str, list[Sequence[int]]]:
    """The completions of token logs, by model.

    The first model has all of them. Each log is a model as well, by the name of its file; and if
    it has several completions, each of these: `batch:2`. A whole stream, which begins with
    `<|start|>`, is taken for the turns of the assistant in it.

    Args:
        paths: of the logs; see `harmony_stream.logs.read_log`.
        name: of the first model.
        report: called with what cannot be read; if there is none, a `LogWarning` is issued.

    Raises:
        OSError: a file cannot be read.
        LogError: a log as a whole cannot be read.
        ValueError: there is not a single completion.
    """
    everything: list[Sequence[int]] = []
    recordings: dict[str, list[Sequence[int]]] = {name: everything}
    for path in paths:
        records = read_log(os.fspath(path), report=report)
        turns = [turn for record in records for turn in turns_of_log(record.completion)]
        everything += turns
        for model, found in _models(_stem(path), turns):
            recordings[_unused(model, recordings)] = found
    if not everything:
        raise ValueError("no completion in any log: there is nothing to serve")
    return recordings


def _models(stem: str, turns: list[Sequence[int]]) -> Iterable[tuple[str, list[Sequence[int]]]]:
    if turns:
        yield stem, turns
    if len(turns) > 1:
        for number, turn in enumerate(turns, 1):
            yield f"{stem}:{number}", [turn]


def _stem(path: str | os.PathLike[str]) -> str:
    """The name of a file less its suffixes: of `runs/a.jsonl.gz`, `a`."""
    name = os.path.basename(os.fspath(path))
    return name.lstrip(".").partition(".")[0] or name


def _unused(name: str, used: Mapping[str, object]) -> str:
    numbers = (f"{name}-{number}" for number in range(2, len(used) + 3))
    return next(each for each in (name, *numbers) if each not in used)


def turns_of_log(tokens: Sequence[int]) -> list[Sequence[int]]:
    """The completions in what a log holds: itself, or the assistant's turns of a whole stream.

    >>> turns_of_log([200006, 1428, 200008, 12194, 200007, 200006, 173781, 200008, 13225, 200007])
    [[200008, 13225, 200007]]
    """
    if not is_whole(tokens):
        return [tokens]
    opening = _opening()
    found: list[Sequence[int]] = []
    for role, start, stop in _runs(tokens):
        if role is Role.ASSISTANT:
            turn = list(tokens[start:stop])
            begins_as_prompts_end = turn[: len(opening)] == opening
            found.append(turn[len(opening) :] if begins_as_prompts_end else turn)
    return found


def _opening() -> list[int]:
    """`<|start|>assistant`: with it a prompt ends, and so it is no part of a completion."""
    return Renderer().render_conversation_for_completion(Conversation(), Role.ASSISTANT)


def _runs(tokens: Sequence[int]) -> list[tuple[Role, int, int]]:
    """Which role wrote which tokens; messages of one role that follow each other are one run."""
    parser = EventParser(None)
    events = [*parser.feed_many(tokens), *parser.close()]
    starts = [event for event in events if isinstance(event, MessageStart)]
    firsts = [(role, next(group).start) for role, group in groupby(starts, lambda it: it.role)]
    stops = [start for _, start in firsts[1:]] + [len(tokens)]
    return [(role, start, stop) for (role, start), stop in zip(firsts, stops, strict=True)]
