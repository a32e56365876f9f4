"""The interface of an engine, which returns token ids for a prompt and nothing else."""

from __future__ import annotations

import asyncio
import inspect
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import attrs

from harmony_stream.adapters.options import Ending, Reason, Usage
from harmony_stream.parsing.parser import EventParser
from harmony_stream.support.closing import closing
from harmony_stream.vocabulary import FormattingToken, Vocabulary

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from harmony_stream.values.events import Event
    from harmony_stream.values.messages import Message

# Format guide, "Special tokens": the first two end inference. The model's generation config lists
# the third as well.
_STOP_TOKENS = (FormattingToken.RETURN, FormattingToken.CALL, FormattingToken.END_OF_TEXT)


# An engine whose tokens are ready never waits. Then neither other streams nor a disconnect would be
# noticed, so the event loop gets a turn after this many tokens: 0.5 us for each.
_A_TURN = 16


def stop_token_ids() -> tuple[int, ...]:
    """Return the ids of the tokens that end a sample.

    >>> stop_token_ids()
    (200002, 200012, 199999)
    """
    ids = Vocabulary.default().special_tokens
    return tuple(ids[token] for token in _STOP_TOKENS)


@attrs.frozen
class Prompt:
    """The input of an engine.

    Attributes:
        model: one of the engine's models.
        messages: the conversation, without the reasoning of finished turns.
        tokens: the conversation as token ids, which end with `<|start|>assistant`.
        max_tokens: the number of tokens after which the backend stops reading; None: no limit.
        speed: the tokens per second that the client requests. Only the page sets it.
        stop_token_ids: the tokens that end a sample: `<|return|>`, `<|call|>`, `<|endoftext|>`.
            The backend reads nothing after one of them.
    """

    model: str
    messages: tuple[Message, ...]
    tokens: list[int]
    max_tokens: int | None = None
    speed: float | None = None
    stop_token_ids: tuple[int, ...] = attrs.field(factory=stop_token_ids)


class Engine(Protocol):
    """A source of tokens."""

    @property
    def models(self) -> Sequence[str]:
        """The names that clients use in `model`."""

    def sample(self, prompt: Prompt) -> AsyncIterator[int]:
        """Return the tokens of one completion as they are sampled, with the stop token.

        An asynchronous generator is closed at the stop token, at `max_tokens`, and when the client
        disconnects, even while it waits. Stop the work in a `finally` block of it.

        Raises:
            RequestError: if the engine cannot serve this prompt. Raise it before you return the
                generator: raised inside the generator, it can no longer set the HTTP status.
        """


def check_engine(engine: object) -> None:
    """Raise TypeError if this is not an `Engine`, before the first request.

    Raises:
        TypeError: if an attribute is missing or wrong. The error names the attribute.

    >>> check_engine("gpt-oss-20b")
    Traceback (most recent call last):
      ...
    TypeError: engine: 'gpt-oss-20b' has no models; give a sequence of at least one name
    """
    if isinstance(engine, type):
        raise TypeError(f"engine: {engine!r} is a class, not an object; give an instance of it")
    if not hasattr(engine, "models"):
        raise TypeError(f"engine: {engine!r} has no models; give a sequence of at least one name")
    _check_models(engine.models)
    sample = getattr(engine, "sample", None)
    if not callable(sample):
        raise TypeError("engine.sample is not callable; give a method that takes a Prompt")
    if inspect.iscoroutinefunction(sample) or inspect.isgeneratorfunction(sample):
        remedy = "make it an asynchronous generator (async def, and yield)"
        raise TypeError(f"engine.sample does not return an asynchronous iterator; {remedy}")


def _check_models(models: object) -> None:
    if isinstance(models, str) or not isinstance(models, Sequence) or not models:
        remedy = "give a list or a tuple of at least one name"
        raise TypeError(f"engine.models {models!r} is not a sequence of names; {remedy}")
    for index, name in enumerate(models):
        if not isinstance(name, str) or not name:
            raise TypeError(f"engine.models[{index}] {name!r} is not a name; give a string")


class Sampling:
    """One running completion: the engine's tokens as events, and their usage.

    Attributes:
        tokens: the engine's tokens.
        count: the number of tokens read so far.
        is_over: true if the last token was read, after which the engine is to be closed.
    """

    def __init__(self, engine: Engine, prompt: Prompt) -> None:
        self.count = 0
        self.is_over = False
        self._stops = frozenset(prompt.stop_token_ids)
        self._limit = prompt.max_tokens
        self._prompted = len(prompt.tokens)  # counted now, since the engine may change the list
        self.tokens = engine.sample(prompt)
        if not hasattr(self.tokens, "__aiter__"):
            kind = type(self.tokens).__name__
            remedy = "make it an asynchronous generator (async def, and yield)"
            raise TypeError(f"engine.sample returned {kind}, not an async iterator; {remedy}")
        self._reason: Reason | None = None
        self._parser = EventParser()
        self._last: Sequence[Event] = ()

    async def events(self) -> AsyncGenerator[Event]:
        """Yield the events. Closing this generator closes the engine's generator.

        The engine's generator is closed at the sample's last token, before a client has taken its
        events.
        """
        async with closing(self.tokens):
            async for token in self.tokens:
                for event in self.read(token):
                    yield event
                if self.is_over:
                    break
                await self.give_way()
        for event in self.close():
            yield event

    async def give_way(self) -> None:
        """Give other tasks a turn now and then, even if the engine never waits for its tokens."""
        if self.count % _A_TURN == 0:
            await asyncio.sleep(0)

    def read(self, token: int) -> Sequence[Event]:
        """Take one token and return its events; those of the last token come from `close`."""
        events = self._parser.feed(token)
        self.count += 1
        if self._is_last(operator.index(token)):
            self.is_over = True
            self._last = events
            return ()
        return events

    def close(self) -> list[Event]:
        """Return the events of the last token and those that end the parser's stream."""
        return [*self._last, *self._parser.close()]

    def _is_last(self, token: int) -> bool:
        """Return whether the sample ends with this token.

        At `max_tokens` it ends at once: one more token, even a stop token, would be too many.
        """
        if token in self._stops:
            return True
        if self.count == self._limit:
            self._reason = "length"
        return self._reason is not None

    def ending(self) -> Ending:
        """Return the finish reason and the usage, for the streams of `harmony_stream.adapters`."""
        return self._reason, Usage(self._prompted, self.count)
