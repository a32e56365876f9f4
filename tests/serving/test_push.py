"""Responses whose bytes are pushed: joined, bounded, and closed once."""

import asyncio

import pytest
from backend_harness import Connection, turns
from starlette.responses import Response

from harmony_stream.adapters import sse
from harmony_stream.serving import PushResponse

LONG = 30.0


class Pushing:
    """A response on such a connection, and how often it was closed."""

    def __init__(self, **options):
        self.closed = 0
        self.connection = Connection()
        self.response = PushResponse(sse.AG_UI.headers, self.close, **options)

    def close(self):
        self.closed += 1

    async def __aenter__(self):
        app = self.response({}, self.connection.receive, self.connection.send)
        self.task = asyncio.create_task(app)
        await turns()
        return self

    async def __aexit__(self, *error):
        self.connection.gone.set()
        await self.task
        assert asyncio.all_tasks() == {asyncio.current_task()}


def pushed(**options):
    """Decorates a test that has such a response and a loop."""

    def decorate(test):
        def run():
            async def main():
                async with Pushing(**options) as pushing:
                    await test(pushing, pushing.response, pushing.connection)

            asyncio.run(main())

        run.__name__ = test.__name__
        return run

    return decorate


def test_it_is_a_response_for_starlette_and_fastapi():
    response = PushResponse(sse.UI_MESSAGES.headers, print)
    assert isinstance(response, Response)
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["x-vercel-ai-ui-message-stream"] == "v1"


@pushed()
async def test_bytes_are_sent_at_once_and_those_of_one_step_together(pushing, response, connection):
    assert response.write(b"a")
    assert response.write(b"b")
    assert response.write(b"")
    await turns()
    assert response.write(b"c")
    await turns()
    assert connection.bodies == [b"ab", b"c"]


@pushed()
async def test_bytes_that_the_connection_cannot_take_are_joined(pushing, response, connection):
    connection.reads.clear()
    for letter in (b"a", b"b", b"c", b"d"):
        assert response.write(letter)
        await turns()
    connection.reads.set()
    await turns()
    assert connection.bodies == [b"a", b"bcd"]


@pushed()
async def test_what_was_written_before_the_end_is_sent(pushing, response, connection):
    connection.reads.clear()
    response.write(b"a")
    await turns()
    response.write(b"b")
    response.end()
    response.end()
    connection.reads.set()
    await pushing.task
    assert (connection.bodies, connection.is_complete) == ([b"a", b"b", b""], True)
    assert (pushing.closed, response.is_closed) == (0, True)


@pushed()
async def test_nothing_is_written_after_the_end(pushing, response, connection):
    response.end()
    with pytest.raises(ValueError, match=r"the response has ended: write before you call end\(\)"):
        response.write(b"a")


@pushed(keep_alive=0.02)
async def test_silence_is_filled_with_comments(pushing, response, connection):
    await asyncio.sleep(0.1)
    assert set(connection.bodies) == {sse.KEEP_ALIVE}
    assert 2 <= len(connection.bodies) <= 5


# -- Clients that leave --


@pushed()
async def test_a_client_that_disconnects_closes_the_response_once(pushing, response, connection):
    response.write(b"a")
    await turns()
    connection.gone.set()
    await pushing.task
    assert (pushing.closed, response.is_closed) == (1, True)
    assert not response.write(b"b")
    assert not response.write(b"")
    response.end()
    assert (pushing.closed, connection.bodies) == (1, [b"a"])


@pushed()
async def test_a_client_that_disconnects_after_the_end_stops_nothing(pushing, response, connection):
    connection.reads.clear()
    response.write(b"a")
    response.end()
    connection.gone.set()
    await pushing.task
    assert (pushing.closed, response.is_closed, connection.bodies) == (0, True, [])


@pushed()
async def test_a_response_that_is_cancelled_is_closed(pushing, response, connection):
    pushing.task.cancel()
    await asyncio.wait([pushing.task])
    assert pushing.task.cancelled()
    assert (pushing.closed, response.is_closed) == (1, True)
    pushing.task = asyncio.sleep(0)


# -- Clients that do not read --


@pushed(limit=100)
async def test_a_client_that_does_not_read_is_dropped(pushing, response, connection):
    connection.reads.clear()
    written = 0
    while response.write(b"0123456789"):
        written += 10
        await turns()
        assert pushing.closed == 0
    # One write is with the connection, and what waits may be over the limit by one more.
    assert written == 10 + 100 + 10
    assert (pushing.closed, response.is_closed) == (1, True)
    await pushing.task
    assert (pushing.closed, connection.bodies, connection.is_complete) == (1, [], False)


@pushed(limit=100)
async def test_a_client_that_reads_is_not_dropped_for_much_at_once(pushing, response, connection):
    for _ in range(20):
        assert response.write(b"0123456789" * 20)
    await turns()
    assert response.write(b"!")
    await turns()
    assert list(map(len, connection.bodies)) == [4000, 1]


@pushed(limit=100)
async def test_long_last_frames_of_a_slow_client_are_sent(pushing, response, connection):
    connection.reads.clear()
    response.write(b"a")
    await turns()
    assert response.write(b"b" * 1000)
    response.end()
    connection.reads.set()
    await pushing.task
    assert connection.is_complete


@pushed(limit=100)
async def test_a_client_that_reads_again_in_time_loses_nothing(pushing, response, connection):
    for _ in range(5):
        connection.reads.clear()
        for _ in range(10):
            assert response.write(b"0123456789")
            await turns()
        connection.reads.set()
        await turns()
    assert b"".join(connection.bodies) == b"0123456789" * 50


def test_no_client_is_dropped_before_the_response_begins():
    async def main():
        pushing = Pushing(limit=100)
        for _ in range(100):
            assert pushing.response.write(b"0123456789")
        async with pushing:
            assert pushing.connection.bodies == [b"0123456789" * 100]
            assert pushing.response.write(b"!")
        assert pushing.closed == 1

    asyncio.run(main())


@pushed(limit=10)
async def test_the_end_after_a_drop_does_not_complete_the_body(pushing, response, connection):
    connection.reads.clear()
    while response.write(b"0123456789"):
        await turns()
    response.end()
    connection.reads.set()
    await pushing.task
    assert (pushing.closed, connection.is_complete) == (1, False)


@pushed()
async def test_a_response_that_is_closed_in_its_own_turn_is_not_completed(
    pushing, response, connection
):
    response._close()
    response.end()
    await pushing.task
    assert (pushing.closed, connection.is_complete) == (1, False)


def test_an_error_of_on_close_stays_out_of_the_step(caplog):
    def fail():
        raise RuntimeError("cannot stop")

    async def main():
        response = PushResponse(sse.AG_UI.headers, fail)
        response._close()
        assert not response.write(b"a")

    asyncio.run(main())
    assert "on_close of a response failed" in caplog.text


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"on_close": 5}, TypeError, "on_close: 5 is not a plain function"),
        ({"on_close": asyncio.sleep}, TypeError, "is not a plain function"),
        ({"keep_alive": 0}, ValueError, "keep_alive: 0 is not a number of seconds above 0"),
        ({"keep_alive": None}, TypeError, "keep_alive: None is not a number of seconds"),
        ({"limit": 0}, ValueError, "limit: 0 is not a number of bytes above 0; give 262144"),
        ({"limit": 1.5}, ValueError, "limit: 1.5 is not a number of bytes"),
    ],
)
def test_arguments_are_checked_when_they_are_passed(options, error, sentence):
    with pytest.raises(error, match=sentence):
        PushResponse(**{"headers": sse.AG_UI.headers, "on_close": lambda: None, **options})


@pytest.mark.parametrize("data", ["a", None, [b"a"], bytearray(b"a")])
def test_only_bytes_are_written(data):
    response = PushResponse(sse.AG_UI.headers, lambda: None)
    with pytest.raises(TypeError, match=f"data is {type(data).__name__}, not bytes"):
        response.write(data)


def test_bytes_written_before_the_response_begins_are_sent():
    async def main():
        pushing = Pushing()
        pushing.response.write(b"a")
        pushing.response.write(b"b")
        pushing.response.end()
        async with pushing:
            await pushing.task
            pushing.task = asyncio.sleep(0)
        return pushing.connection.bodies

    assert asyncio.run(main()) == [b"ab", b""]


@pushed()
async def test_a_response_is_sent_once(pushing, response, connection):
    response.end()
    await pushing.task
    with pytest.raises(RuntimeError, match="a PushResponse is sent once: make one for each"):
        await response({}, connection.receive, connection.send)
    assert pushing.closed == 0
