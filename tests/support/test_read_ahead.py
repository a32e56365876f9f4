"""Sources that a task reads ahead of their reader: order, silence, and how they are closed."""

import asyncio
import contextvars
import gc
import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from harmony_stream.support.read_ahead import read_ahead

LONG = 30.0
SHORT = 0.02


def run(main):
    """What it returns; afterwards no task is left, and the loop was told of no error."""
    errors = []

    async def watched():
        asyncio.get_running_loop().set_exception_handler(lambda _, told: errors.append(told))
        found = await main
        gc.collect(1)  # what is young: all takes seconds among all tests
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return found

    found = asyncio.run(watched())
    gc.collect(1)
    assert errors == []
    return found


async def all_of(items):
    return [item async for item in items]


class Source:
    """Items after pauses, in seconds (None: without a pause), then perhaps an error."""

    def __init__(self, *pauses, error=None):
        self.pauses, self.error = pauses, error
        self.given = 0
        self.closed_by = None
        self.tasks = set()

    async def items(self):
        try:
            for number, pause in enumerate(self.pauses):
                self.tasks.add(asyncio.current_task())
                if pause is not None:
                    await asyncio.sleep(pause)
                self.given += 1
                yield number
            if self.error is not None:
                raise self.error
        except BaseException as error:
            self.closed_by = type(error)
            raise
        finally:
            self.tasks.add(asyncio.current_task())


# -- Items and silence --


@given(st.lists(st.sampled_from([None, None, 0]), max_size=60))
@examples(100)
def test_all_items_come_in_order_however_the_source_waits(pauses):
    source = Source(*pauses)
    assert run(all_of(read_ahead(source.items(), LONG))) == list(range(len(pauses)))
    assert len(source.tasks) == 1


def test_silence_is_reported_repeatedly_and_not_before_its_time():
    async def main():
        items = read_ahead(Source(0, 10 * SHORT, 10 * SHORT).items(), SHORT)
        return [(item, time.monotonic()) async for item in items]

    found = run(main())
    assert [item for item, _ in found if item is not None] == [0, 1, 2]
    nones = [at for item, at in found if item is None]
    assert len(nones) >= 6
    assert all(after - before > SHORT * 0.9 for before, after in itertools.pairwise(nones))


def test_a_source_that_is_never_silent_for_long_is_not_called_silent():
    found = run(all_of(read_ahead(Source(*[0.01] * 30).items(), 0.2)))
    assert found == list(range(30))


def test_a_reader_that_takes_its_time_hears_of_silence_only_after_it_has_waited():
    async def main():
        items = read_ahead(Source(0, 0.15).items(), 0.1)
        found = [await anext(items)]
        await asyncio.sleep(0.12)  # as long as a silence, but nobody waits
        found += [item async for item in items]
        return found

    assert run(main()) == [0, 1]


def test_a_source_is_read_sixteen_items_ahead_and_no_more():
    async def main():
        source = Source(*[None] * 40)
        items = read_ahead(source.items(), LONG)
        await anext(items)
        await asyncio.sleep(SHORT)
        first = source.given
        assert [item async for item in items] == list(range(1, 40))
        return first

    assert run(main()) == 16


def test_the_source_runs_in_one_task_so_that_its_time_limits_hold():
    async def limited():
        async with asyncio.timeout(LONG):
            yield 1
            await asyncio.sleep(2 * SHORT)  # the reader is told of silence meanwhile
            yield 2

    variable = contextvars.ContextVar("variable", default="unset")

    async def remembering():
        variable.set("set")
        yield variable.get()
        await asyncio.sleep(0)
        yield variable.get()

    found = run(all_of(read_ahead(limited(), SHORT / 2)))
    assert [item for item in found if item is not None] == [1, 2]
    assert run(all_of(read_ahead(remembering(), LONG))) == ["set", "set"]


# -- Errors --


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17])
@pytest.mark.parametrize("pause", [None, 0])
def test_an_error_of_the_source_reaches_the_reader_after_the_items_before_it(count, pause):
    async def main():
        source = Source(*[pause] * count, error=RuntimeError("the engine died"))
        items = read_ahead(source.items(), LONG)
        assert [await anext(items) for _ in range(count)] == list(range(count))
        with pytest.raises(RuntimeError, match="the engine died"):
            await anext(items)

    run(main())


def test_an_error_that_was_read_ahead_does_not_reach_a_reader_that_leaves_before_it():
    async def main():
        items = read_ahead(Source(None, None, error=RuntimeError("died")).items(), LONG)
        await anext(items)
        await items.aclose()

    run(main())


def test_an_error_while_the_source_is_closed_reaches_whoever_closes_it():
    async def source():
        try:
            yield 1
            await asyncio.sleep(LONG)
        finally:
            raise RuntimeError("cannot stop")

    async def main():
        items = read_ahead(source(), LONG)
        await anext(items)
        with pytest.raises(RuntimeError, match="cannot stop"):
            await items.aclose()

    run(main())


def test_a_source_that_was_cancelled_by_others_cancels_its_reader():
    async def main():
        with pytest.raises(asyncio.CancelledError):
            await all_of(read_ahead(Source(None, error=asyncio.CancelledError()).items(), LONG))

    run(main())


# -- The reader leaves --

WHERE = {
    "while the source waits": ((None, LONG), asyncio.CancelledError),
    "while the source has more": ((None,) * 40, GeneratorExit),
    "after the source has ended": ((None, None), None),
}


@pytest.mark.parametrize("is_cancelled", [True, False])
@pytest.mark.parametrize(("pauses", "closed_by"), WHERE.values(), ids=WHERE)
def test_a_reader_that_leaves_closes_the_source_at_once(pauses, closed_by, is_cancelled):
    source = Source(*pauses)

    async def read():
        items = read_ahead(source.items(), LONG)
        try:
            await anext(items)
            await asyncio.sleep(LONG if is_cancelled else 0)
        finally:
            await items.aclose()

    async def main():
        reading = asyncio.create_task(read())
        await asyncio.sleep(SHORT)
        reading.cancel()
        await asyncio.wait([reading])
        return reading.cancelled()

    assert run(main()) is is_cancelled
    assert source.closed_by is closed_by
    assert len(source.tasks) == 1


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_reader_that_is_cancelled_while_it_waits_closes_the_source(rounds):
    class Closing(Source):
        is_closed = False

        def __aiter__(self):
            return self

        async def __anext__(self):
            await asyncio.sleep(LONG)

        async def aclose(self):
            self.is_closed = True

    source = Closing()

    async def main():
        reading = asyncio.create_task(all_of(read_ahead(source, LONG)))
        for _ in range(rounds):  # of the loop: the reader begins, then the task, then both wait
            await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await asyncio.sleep(0)

    run(main())
    assert source.is_closed


def test_a_source_that_swallows_its_cancellation_is_closed_at_its_next_item():
    closed = []

    async def stubborn():
        try:
            yield 0
            try:
                await asyncio.sleep(LONG)
            except asyncio.CancelledError:
                yield 1
            yield 2
        finally:
            closed.append(True)

    async def main():
        items = read_ahead(stubborn(), LONG)
        await anext(items)
        await asyncio.sleep(0)
        await items.aclose()

    run(main())
    assert closed == [True]


def test_a_reader_that_is_cancelled_again_does_not_wait_for_a_source_that_closes_slowly():
    closed = []

    async def slow():
        try:
            yield 0
            await asyncio.sleep(LONG)
        finally:
            await asyncio.sleep(2 * SHORT)
            closed.append(True)

    async def main():
        reading = asyncio.create_task(all_of(read_ahead(slow(), LONG)))
        await asyncio.sleep(SHORT)
        for _ in range(2):
            reading.cancel()
            await asyncio.sleep(0.001)
        assert reading.cancelled()
        assert closed == []
        await asyncio.sleep(4 * SHORT)

    run(main())
    assert closed == [True]


def test_a_reader_that_is_forgotten_closes_the_source_too():
    source = Source(None, LONG)

    async def main():
        items = read_ahead(source.items(), LONG)
        await anext(items)
        del items
        gc.collect(1)  # what is young: all takes seconds among all tests
        await asyncio.sleep(SHORT)

    run(main())
    assert source.closed_by is asyncio.CancelledError
