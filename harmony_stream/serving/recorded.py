"""An engine without a model: it replays token logs, in time.

Which log answers is told by the request alone, so that many clients can be served at once and a
restart changes nothing: the model's name picks the logs, and the number of turns that the assistant
has had in the conversation picks the next one of them.
"""

from __future__ import annotations

import asyncio
import math
import os
import warnings
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

import attrs

from harmony_stream.logs import LogError, LogWarning, is_whole, read_log
from harmony_stream.logs.readers.source import name_of
from harmony_stream.parsing.parser import EventParser
from harmony_stream.rendering.render import Renderer
from harmony_stream.serving.engine import stop_token_ids
from harmony_stream.serving.errors import RequestError
from harmony_stream.values.events import Malformed, MessageStart
from harmony_stream.values.messages import Conversation, Message, Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harmony_stream.logs.readers.source import LogSource
    from harmony_stream.serving.engine import Prompt

_Span: TypeAlias = tuple[int, int]

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
        sent: the number of those that the backend took; fewer than all if the client went away,
            or wanted no more.
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
        recordings: what to replay; see `load_recordings`. A completion that continues after a stop
            token is replayed as several: see `turns_of_log`.
        speed: tokens per second; None: as fast as they are taken.
        on_end: called with each replay when it is over, also when the client went away.

    Raises:
        TypeError: a completion is not a sequence, or `on_end` is not callable.
        ValueError: the speed is not a finite number above 0.

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
        self._recordings = {model: _turns(model, turns) for model, turns in recordings.items()}
        if speed is not None and not _is_speed(speed):
            raise ValueError(f"speed: {speed!r} is not a number above 0; give tokens per second")
        if not callable(on_end):
            raise TypeError(f"on_end: {on_end!r} is not callable; give a function of one Replay")
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
                replay.sent += 1  # before it goes: behind the last one, this is closed
                yield token
        finally:
            self._on_end(replay)


def _is_speed(value: object) -> bool:
    return isinstance(value, int | float) and 0 < value < math.inf


def _turns(model: str, completions: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    for index, each in enumerate(completions):
        if isinstance(each, str | bytes) or not hasattr(each, "__getitem__"):
            place = f"recordings[{model!r}][{index}]"
            raise TypeError(f"{place}: {each!r} is not a completion; give a list of token ids")
    return [turn for each in completions for turn in turns_of_log(each)]


def turns_of_assistant(messages: Iterable[Message]) -> int:
    """How often the assistant has spoken: messages of its own that follow each other are one turn.

    >>> turns_of_assistant([Message.from_role_and_content("user", "Hi")])
    0
    """
    roles = groupby(message.author.role for message in messages)
    return sum(role is Role.ASSISTANT for role, _ in roles)


# -- Logs ------------------------------------------------------------------------------------------


def load_recordings(
    places: Iterable[LogSource],
    *,
    name: str = ALL,
    report: Callable[[LogError], None] | None = None,
) -> dict[str, list[Sequence[int]]]:
    """The completions of token logs, by model.

    The first model has all of them. Each log is a model as well, by the name of its file (`stdin`
    for standard input); and if it has several completions, each of these: `batch:2`. What the
    assistant says after a stop token is its next completion: see `turns_of_log`.

    Args:
        places: paths or binary streams; see `harmony_stream.logs.read_log`.
        name: of the first model.
        report: called with what cannot be read, and with text that is never served; if there is
            none, a `LogWarning` is issued.

    Raises:
        OSError: a file cannot be read.
        LogError: a log as a whole cannot be read.
        TypeError: a single path is given instead of several.
        ValueError: there is not a single completion.
    """
    if isinstance(places, str | bytes | os.PathLike):
        raise TypeError(f"places: {places!r} is not a list of logs but one; give [{places!r}]")
    everything: list[Sequence[int]] = []
    recordings: dict[str, list[Sequence[int]]] = {name: everything}
    for place in places:
        turns = list(_turns_in(place, report))
        everything += turns
        for model, found in _models(_stem(name_of(place)), turns):
            recordings[_unused(model, recordings)] = found
    if not everything:
        raise ValueError("no completion in any log: there is nothing to serve")
    return recordings


def _turns_in(
    place: LogSource, report: Callable[[LogError], None] | None
) -> Iterator[Sequence[int]]:
    for record in read_log(place, report=report):
        turns, strays = _cut(record.completion)
        yield from turns
        for start, stop in strays:
            reason = f"the text at positions {start} to {stop} is in no turn: it is never served"
            _report(LogError(record.source, record.place, reason), report)


def _report(error: LogError, report: Callable[[LogError], None] | None) -> None:
    if report is None:
        warnings.warn(LogWarning(str(error)), stacklevel=4)
    else:
        report(error)


def _models(stem: str, turns: list[Sequence[int]]) -> Iterable[tuple[str, list[Sequence[int]]]]:
    if turns:
        yield stem, turns
    if len(turns) > 1:
        for number, turn in enumerate(turns, 1):
            yield f"{stem}:{number}", [turn]


def _stem(path: str) -> str:
    """The name of a file less its suffixes: of `runs/a.jsonl.gz`, `a`; of `<stdin>`, `stdin`.

    Bytes that are not UTF-8 become U+FFFD: a client could not ask for a name that has them.
    """
    name = os.path.basename(path)
    stem = name.lstrip(".").partition(".")[0].strip("<>") or name
    return os.fsencode(stem).decode("utf-8", "replace")


def _unused(name: str, used: Mapping[str, object]) -> str:
    numbers = (f"{name}-{number}" for number in range(2, len(used) + 3))
    return next(each for each in (name, *numbers) if each not in used)


def turns_of_log(tokens: Sequence[int]) -> list[Sequence[int]]:
    """The completions in what a log holds, in order: what the assistant sampled in one go.

    A stop token ends a completion. What the assistant says after it, and after the messages of
    others (results of tools, a user), is the next one.

    >>> turns_of_log([200006, 1428, 200008, 12194, 200007, 200006, 173781, 200008, 13225, 200007])
    [[200008, 13225, 200007]]
    >>> turns_of_log([200008, 13225, 200002, 200006, 173781, 200008, 12194, 200002])
    [[200008, 13225, 200002], [200008, 12194, 200002]]
    """
    return _cut(tokens)[0]


def _cut(tokens: Sequence[int]) -> tuple[list[Sequence[int]], list[_Span]]:
    """The completions of a log, and where there is text that is in none of them."""
    begins_as_whole = is_whole(tokens)
    if not begins_as_whole and not any(stop in tokens[:-1] for stop in stop_token_ids()):
        return [tokens], []
    parser = EventParser(None if begins_as_whole else "assistant")
    events = [*parser.feed_many(tokens), *parser.close()]
    starts = [event for event in events if isinstance(event, MessageStart)]
    spans = list(_spans_of_turns(tokens, starts))
    strays = [
        (event.start, event.stop)
        for event in events
        if isinstance(event, Malformed) and event.text.strip() and not _holds(spans, event)
    ]
    return [_completion(tokens[start:stop]) for start, stop in spans], strays


def _spans_of_turns(tokens: Sequence[int], starts: list[MessageStart]) -> Iterator[_Span]:
    """From the first message of the assistant to a stop token, or to a message of another role."""
    ids = stop_token_ids()
    stops = {at + 1 for at, token in enumerate(tokens) if token in ids}
    others = (start.start for start in starts if start.role is not Role.ASSISTANT)
    edges = sorted({*stops, *others, len(tokens)})
    first = None if is_whole(tokens) else edges[bisect_right(edges, 0)]
    spoken = [start.start for start in starts if start.role is Role.ASSISTANT]
    if first is not None and not spoken:
        yield 0, first
    for edge, group in groupby(spoken, lambda start: edges[bisect_right(edges, start)]):
        yield 0 if edge == first else next(group), edge


def _holds(spans: list[_Span], event: Malformed) -> bool:
    """Whether one of the spans, which are in order, has the event in it."""
    before = bisect_right(spans, event.start, key=lambda span: span[0])
    return before > 0 and event.stop <= spans[before - 1][1]


def _completion(turn: Sequence[int]) -> list[int]:
    """The turn as it is sampled: a prompt ends with `<|start|>assistant`."""
    found, opening = list(turn), _opening()
    return found[len(opening) :] if found[: len(opening)] == opening else found


@cache
def _opening() -> list[int]:
    return Renderer().render_conversation_for_completion(Conversation(), Role.ASSISTANT)
