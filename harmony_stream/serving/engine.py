"""What the backend asks of an engine: token ids for a prompt, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

from harmony_stream.adapters.turn import Ending, Reason, Usage, closing
from harmony_stream.parsing.parser import EventParser

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from harmony_stream.messages import Message
    from harmony_stream.parsing.events import Event


@attrs.frozen
class Prompt:
    """What an engine is given.

    Attributes:
        model: one of the engine's models.
        messages: the conversation, thinking of finished turns left out.
        tokens: the same as token ids, up to the `<|start|>assistant` behind which to sample.
        max_tokens: after so many the backend reads no more; None: as many as there are.
        speed: tokens per second that the client would like to see. Only the page asks for it.
    """

    model: str
    messages: tuple[Message, ...]
    tokens: list[int]
    max_tokens: int | None = None
    speed: float | None = None


class Engine(Protocol):
    """A source of tokens."""

    @property
    def models(self) -> Sequence[str]:
        """The names under which clients ask for it."""

    def sample(self, prompt: Prompt) -> AsyncIterator[int]:
        """The tokens of one completion, stop token included, as they come.

        An asynchronous generator is closed when the client goes away, also while it waits: a
        `finally` in it is the place to stop the work.

        Raises:
            RequestError: the engine cannot serve this prompt. In a generator, whose code does not
                run before the first token is asked for, it would come too late to be an answer.
        """


class Sampling:
    """One completion on its way: the engine's tokens as events, and what they took.

    Attributes:
        count: how many tokens were read.
    """

    def __init__(self, engine: Engine, prompt: Prompt) -> None:
        self.count = 0
        self._prompt = prompt
        self._tokens = engine.sample(prompt)
        self._reason: Reason | None = None

    async def events(self) -> AsyncGenerator[Event]:
        """The events; closing this closes the engine's generator."""
        parser = EventParser()
        async with closing(self._tokens):
            async for token in self._tokens:
                if self.count == self._prompt.max_tokens:
                    self._reason = "length"
                    break
                self.count += 1
                for event in parser.feed(token):
                    yield event
        for event in parser.close():
            yield event

    def ending(self) -> Ending:
        """Why it stopped, and what it took: for the streams of `harmony_stream.adapters`."""
        return self._reason, Usage(len(self._prompt.tokens), self.count)
