"""An engine without a model, which replays token logs at a given speed.

The request alone selects the completion, so that many clients can be served at once and a restart
changes nothing. The model's name selects the logs. The number of the assistant's turns in the
conversation selects the next completion in them.
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
"""The completions of each model, which answer the turns of a conversation in order."""

ALL = "gpt-oss-20b"
"""The name of the model that has all logs, one after the other."""


@attrs.define
class Replay:
    """One replay of a completion.

    Attributes:
        model: the model that was requested.
        turn: the number of the completion among the model's, from 1.
        total: the number of its tokens.
        sent: the number of tokens that the backend took. It is smaller than `total` if the client
            disconnected or set a lower limit.
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
        recordings: the completions to replay; see `load_recordings`. A completion that continues
            after a stop token is replayed as several: see `turns_of_log`.
        speed: tokens per second; None: as fast as they are read.
        on_end: a function that is called with each replay at its end, also if the client
            disconnects.

    Raises:
        TypeError: if a completion is not a sequence, or `on_end` is not callable.
        ValueError: if the speed is not a finite number above 0.

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
        """Replay the completion of the conversation's next turn.

        Raises:
            RequestError: if the conversation has more turns than were recorded.
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
                await asyncio.sleep(max(0.0, due - now()))  # even 0 lets other streams continue
                replay.sent += 1  # before the yield: this is closed after the last one
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
    """Return the number of the assistant's turns. Adjacent messages of the assistant are one turn.

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
    """Return the completions of token logs, by model.

    The first model has all of them. Each log is also a model, named after its file (`stdin` for
    standard input). If a log has several completions, each is a model too: `batch:2`. Messages of
    the assistant after a stop token are its next completion: see `turns_of_log`.

    Args:
        places: paths or binary streams; see `harmony_stream.logs.read_log`.
        name: the name of the first model.
        report: a function that is called with each error of a record, and with text that is never
            served. Without it, a `LogWarning` is issued.

    Raises:
        OSError: if a file cannot be read.
        LogError: if a log as a whole cannot be read.
        TypeError: if a single path is given instead of several.
        ValueError: if there are no completions.
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
        raise ValueError("the logs do not contain a completion: there is nothing to serve")
    return recordings


def _turns_in(
    place: LogSource, report: Callable[[LogError], None] | None
) -> Iterator[Sequence[int]]:
    for record in read_log(place, report=report):
        turns, strays = _cut(record.completion)
        yield from turns
        for start, stop in strays:
            reason = f"the text at positions {start} to {stop} is not in a turn: it is never served"
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
    """Return a file's name without suffixes: `a` for `runs/a.jsonl.gz`, `stdin` for `<stdin>`.

    Bytes that are not UTF-8 become U+FFFD, since a client could not request a name with them.
    """
    name = os.path.basename(path)
    stem = name.lstrip(".").partition(".")[0].strip("<>") or name
    return os.fsencode(stem).decode("utf-8", "replace")


def _unused(name: str, used: Mapping[str, object]) -> str:
    numbers = (f"{name}-{number}" for number in range(2, len(used) + 3))
    return next(each for each in (name, *numbers) if each not in used)


def turns_of_log(tokens: Sequence[int]) -> list[Sequence[int]]:
    """Return the completions in the tokens of a log, in order.

    A stop token ends a completion. The next one begins with the assistant's next message, directly
    after it or after messages of others (tool results, a user).

    >>> turns_of_log([200006, 1428, 200008, 12194, 200007, 200006, 173781, 200008, 13225, 200007])
    [[200008, 13225, 200007]]
    >>> turns_of_log([200008, 13225, 200002, 200006, 173781, 200008, 12194, 200002])
    [[200008, 13225, 200002], [200008, 12194, 200002]]
    """
    return _cut(tokens)[0]


def _cut(tokens: Sequence[int]) -> tuple[list[Sequence[int]], list[_Span]]:
    """Return the completions of a log, and the spans of text outside of them."""
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
    """Yield the spans from a message of the assistant to a stop token or to another role."""
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
    """Return whether one of the spans, which are in order, contains the event."""
    before = bisect_right(spans, event.start, key=lambda span: span[0])
    return before > 0 and event.stop <= spans[before - 1][1]


def _completion(turn: Sequence[int]) -> list[int]:
    """Return the turn as it is sampled after a prompt that ends with `<|start|>assistant`."""
    found, opening = list(turn), _opening()
    return found[len(opening) :] if found[: len(opening)] == opening else found


@cache
def _opening() -> list[int]:
    return Renderer().render_conversation_for_completion(Conversation(), Role.ASSISTANT)
