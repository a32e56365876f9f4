"""Sources are closed where they stand, however their reader leaves."""

import asyncio

import pytest

from harmony_stream.support.closing import closing


class Source:
    """An async iterator that notes when it is closed, as a generator would not tell."""

    def __init__(self):
        self.closed = 0

    async def aclose(self):
        self.closed += 1


def test_a_source_is_closed_once_when_its_reader_is_done():
    source = Source()

    async def read():
        async with closing(source):
            assert source.closed == 0

    asyncio.run(read())
    assert source.closed == 1


def test_a_generator_is_closed_where_its_reader_breaks_off():
    left = []

    async def count():
        try:
            for number in range(9):
                yield number
        finally:
            left.append("closed")

    async def read():
        numbers = count()
        async with closing(numbers):
            async for number in numbers:
                if number == 2:
                    break
        return list(left)

    assert asyncio.run(read()) == ["closed"]


def test_an_error_of_the_reader_closes_the_source_and_passes():
    source = Source()

    async def read():
        async with closing(source):
            raise KeyError("reader")

    with pytest.raises(KeyError, match="reader"):
        asyncio.run(read())
    assert source.closed == 1


def test_what_cannot_be_closed_is_left_alone():
    async def read():
        async with closing([1, 2]):
            return "read"

    assert asyncio.run(read()) == "read"
