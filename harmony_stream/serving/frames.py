"""The frames of a completion that an engine samples: from a token to bytes in one generator."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from harmony_stream.serving.errors import FAILED
from harmony_stream.support.closing import closing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from harmony_stream.adapters.options import Reason, Usage
    from harmony_stream.serving.engine import Sampling
    from harmony_stream.values.events import Event

_LOG = logging.getLogger("harmony_stream.serving")


class EventWriter(Protocol):
    """Turns events into frames, as the writers of `harmony_stream.adapters.sse` do."""

    def feed(self, event: Event) -> bytes:
        """Take one event and return the frames that follow from it."""

    def finish(self, reason: Reason | None, usage: Usage | None) -> bytes:
        """End the stream and return its last frames."""

    def fail(self, message: str) -> bytes:
        """End the stream with an error for the client."""


async def frames_of(
    sampling: Sampling, writer: EventWriter, name: str, *, shows_usage: bool = True
) -> AsyncGenerator[bytes]:
    """Yield the frames of a completion, and if the engine fails, the error that ends the stream.

    Closing this generator closes the engine's generator.

    Args:
        sampling: the completion.
        writer: the writer of the client's protocol.
        name: the name of the stream in the log.
        shows_usage: true if the client receives the usage.
    """
    is_left = False
    last: list[bytes] = []
    try:
        async with closing(sampling.tokens):
            async for token in sampling.tokens:
                for event in sampling.read(token):
                    if frames := writer.feed(event):
                        try:
                            yield frames
                        except GeneratorExit:
                            is_left = True
                            raise
                if sampling.is_over:
                    break
                await sampling.give_way()
        last += map(writer.feed, sampling.close())
        reason, usage = sampling.ending()
        last.append(writer.finish(reason, usage if shows_usage else None))
    except Exception:
        _LOG.exception("a stream of %s failed", name)
        if is_left:  # the engine failed when it was closed
            return
        last.append(writer.fail(FAILED.message))
    yield b"".join(last)
