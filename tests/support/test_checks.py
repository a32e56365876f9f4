"""Values that are not usable are refused, with what to give."""

import asyncio
import math
from functools import partial

import pytest

from harmony_stream.support.checks import check_function, check_seconds


@pytest.mark.parametrize("value", [0.001, 1, 15.0, 1e9])
def test_times_are_numbers_above_0(value):
    check_seconds("wait", value)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (0, ValueError), (-1, ValueError), (math.inf, ValueError), (math.nan, ValueError),
        (1.1e9, ValueError), (True, TypeError), ("5", TypeError), (None, TypeError),
    ],
)  # fmt: skip
def test_other_times_are_refused(value, error):
    with pytest.raises(error, match=rf"^wait: {value!r} is not a number of seconds above 0"):
        check_seconds("wait", value)


def generator():
    yield


class Slow:
    async def __call__(self):
        pass


@pytest.mark.parametrize(
    ("value", "count"), [(print, 3), (lambda: 1, 0), (partial(max, 1), 1), (int, 1)]
)
def test_functions_take_their_arguments(value, count):
    check_function("made", value, count)


@pytest.mark.parametrize("value", [5, asyncio.sleep, generator, Slow(), None])
def test_what_is_no_plain_function_is_refused(value):
    with pytest.raises(TypeError, match=r"^made: .* is not a plain function; give one of 0"):
        check_function("made", value, 0)


def test_a_function_of_other_arguments_is_refused():
    with pytest.raises(TypeError, match="is not a function of 2 arguments; give one that is"):
        check_function("made", lambda: 1, 2)
