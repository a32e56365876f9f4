"""What the backend asks of an engine: token ids for a prompt, and nothing else."""

from __future__ import annotations

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


def stop_token_ids() -> tuple[int, ...]:
    """The ids of the tokens that end a sample.

    >>> stop_token_ids()
    (200002, 200012, 199999)
    """
    ids = Vocabulary.default().special_tokens
    return tuple(ids[token] for token in _STOP_TOKENS)


@attrs.frozen
class Prompt:
    """What an engine is given.

    Attributes:
        model: one of the engine's models.
        messages: the conversation, thinking of finished turns left out.
        tokens: the same as token ids, up to the `<|start|>assistant` behind which to sample.
        max_tokens: after so many the backend reads no more; None: as many as there are.
        speed: tokens per second that the client would like to see. Only the page asks for it.
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
        """The names under which clients ask for it."""

    def sample(self, prompt: Prompt) -> AsyncIterator[int]:
        """The tokens of one completion, stop token included, as they come.

        An asynchronous generator is closed at the stop token, at `max_tokens`, and when the client
        goes away, also while it waits: a `finally` in it is the place to stop the work.

        Raises:
            RequestError: the engine cannot serve this prompt. In a generator, whose code does not
                run before the first token is asked for, it would come too late to be an answer.
        """


def check_engine(engine: object) -> None:
    """Refuse what is not an `Engine`, before there is a request.

    Raises:
        TypeError: names the attribute at fault.

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
        raise TypeError(f"engine.sample gives no asynchronous iterator; {remedy}")


def _check_models(models: object) -> None:
    if isinstance(models, str) or not isinstance(models, Sequence) or not models:
        remedy = "give a list or a tuple of at least one name"
        raise TypeError(f"engine.models {models!r} is not a sequence of names; {remedy}")
    for index, name in enumerate(models):
        if not isinstance(name, str) or not name:
            raise TypeError(f"engine.models[{index}] {name!r} is not a name; give a string")


class Sampling:
    """One completion on its way: the engine's tokens as events, and what they took.

    Attributes:
        count: how many tokens were read.
    """

    def __init__(self, engine: Engine, prompt: Prompt) -> None:
        self.count = 0
        self._stops = frozenset(prompt.stop_token_ids)
        self._limit = prompt.max_tokens
        self._prompted = len(prompt.tokens)  # now: the list is the engine's to change
        self._tokens = engine.sample(prompt)
        self._reason: Reason | None = None

    async def events(self) -> AsyncGenerator[Event]:
        """The events; closing this closes the engine's generator.

        That is closed at the sample's last token, before a client has taken its events.
        """
        parser = EventParser()
        last: list[Event] = []
        async with closing(self._tokens):
            async for token in self._tokens:
                events = parser.feed(token)
                self.count += 1
                if self._is_last(operator.index(token)):
                    last += events
                    break
                for event in events:
                    yield event
        for event in (*last, *parser.close()):
            yield event

    def _is_last(self, token: int) -> bool:
        """Whether the sample ends with this token. One more, the stop token, would be too many."""
        if token in self._stops:
            return True
        if self.count == self._limit:
            self._reason = "length"
        return self._reason is not None

    def ending(self) -> Ending:
        """Why it stopped, and what it took: for the streams of `harmony_stream.adapters`."""
        return self._reason, Usage(self._prompted, self.count)
