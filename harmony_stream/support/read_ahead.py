"""An async source that a task of its own reads, so that its reader notices silence.

A reader that waits for the next item can do nothing else, and it cannot stop waiting either:
cancelling the wait would cancel the source. So each stream has one task that reads the source. The
timer is set again only when it fires. An item therefore costs neither a task nor a timer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

from harmony_stream.support.closing import closing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable

_Item = TypeVar("_Item")

# A source that never waits would otherwise change tasks for each item, which costs 10 us.
_MOST_AHEAD = 16


async def read_ahead(source: AsyncIterable[_Item], seconds: float) -> AsyncGenerator[_Item | None]:
    """Yield the items of a source, and None whenever the next one takes too long.

    All of the source runs in one task. It is closed with this generator, even while it waits. Its
    errors are raised here, after the items before them.

    Args:
        source: the source, which is read up to 16 items ahead.
        seconds: the time without an item after which None is yielded, repeatedly.
    """
    ahead = _Ahead(source, seconds)
    async with closing(ahead):
        while True:
            while ahead.items:
                yield ahead.items.popleft()
            if ahead.task.done():
                break
            if not await ahead.has_news():
                yield None
        ahead.task.result()  # raises the error of the source, or its cancellation


class _Ahead(Generic[_Item]):
    """The task that reads, and the timer of the reader."""

    def __init__(self, source: AsyncIterable[_Item], seconds: float) -> None:
        self.items: deque[_Item] = deque()
        self._seconds = seconds
        self._is_closed = False
        # The reader waits only if there are no items, and the task only if there are too many.
        self._reader: asyncio.Future[bool] | None = None
        self._room: asyncio.Future[bool] | None = None
        self._waiting_since = 0.0
        self._loop = asyncio.get_running_loop()
        self.task = self._loop.create_task(self._read(source))
        self.task.add_done_callback(lambda _: _resolve(self._reader, True))
        self._timer = self._loop.call_later(seconds, self._on_timer)

    async def _read(self, source: AsyncIterable[_Item]) -> None:
        # The source is closed in the task that ran it: its time limits and groups depend on that.
        async with closing(source):
            async for item in source:
                self._put(item)
                if len(self.items) >= _MOST_AHEAD:
                    self._room = self._loop.create_future()
                    await self._room

    def _put(self, item: _Item) -> None:
        if self._is_closed:  # the source has swallowed the cancellation
            raise asyncio.CancelledError
        self.items.append(item)
        _resolve(self._reader, True)

    async def has_news(self) -> bool:
        """Wait. Return true if there are items or the task is done, false if neither came."""
        _resolve(self._room, True)
        self._waiting_since = self._loop.time()
        self._reader = self._loop.create_future()
        try:
            return await self._reader
        finally:
            self._reader = None

    def _on_timer(self) -> None:
        now = self._loop.time()
        due = self._waiting_since + self._seconds
        if self._reader is None or now >= due:
            _resolve(self._reader, False)
            due = now + self._seconds
        self._timer = self._loop.call_at(due, self._on_timer)

    async def aclose(self) -> None:
        """Close the source, and raise the error of that, if there is one.

        An error that the reader has not reached is nobody's business any more.
        """
        self._timer.cancel()
        self._is_closed = True
        was_done = self.task.done()
        self.task.cancel()
        await asyncio.wait([self.task])
        error = None if self.task.cancelled() else self.task.exception()
        if error is not None and not was_done:
            raise error


def _resolve(future: asyncio.Future[bool] | None, result: bool) -> None:
    if future is not None and not future.done():
        future.set_result(result)
