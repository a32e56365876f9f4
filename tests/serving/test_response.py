"""Responses of frames: comments in silence, one message at a time, and an end with the client."""

import asyncio
from contextlib import suppress

import pytest
from backend_harness import Connection, turns
from starlette.requests import ClientDisconnect

from harmony_stream.adapters.sse import KEEP_ALIVE
from harmony_stream.serving.response import FramesResponse, while_connected

LONG = 30.0


class Frames:
    """Frames that come when a test sends them; None ends them."""

    def __init__(self):
        self.queue = asyncio.Queue()
        self.closed_by = None
        self.is_closed = False

    async def __call__(self):
        try:
            while (frame := await self.queue.get()) is not None:
                yield frame
        except BaseException as error:
            self.closed_by = type(error)
            raise
        finally:
            self.is_closed = True


class Watched(Connection):
    """A connection that refuses messages while it sends another one."""

    is_busy = False

    async def send(self, message):
        assert not self.is_busy
        self.is_busy = True
        await asyncio.sleep(0)
        await super().send(message)
        self.is_busy = False


def answered(test, *, keep_alive=LONG, connection=Watched):
    """Run a test with a response, and check that nothing of it is left."""

    async def main():
        frames, client = Frames(), connection()
        response = FramesResponse(frames(), {}, keep_alive)
        task = asyncio.create_task(response({}, client.receive, client.send))
        await turns()
        await test(frames, client, task)
        client.gone.set()
        await asyncio.wait([task])
        assert frames.is_closed
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return task.result()

    return asyncio.run(main())


def test_frames_are_sent_as_they_come_and_the_body_ends_with_them():
    async def test(frames, client, task):
        for frame in (b"a", b"b"):
            frames.queue.put_nowait(frame)
            await turns()
            assert client.bodies[-1] == frame
        frames.queue.put_nowait(None)
        await task
        assert (client.bodies, client.is_complete) == ([b"a", b"b", b""], True)

    answered(test)


def test_comments_are_sent_in_silence_and_never_with_another_message():
    async def test(frames, client, task):
        for _ in range(20):
            await asyncio.sleep(0.011)
            frames.queue.put_nowait(b"a")
        frames.queue.put_nowait(None)
        await task
        assert client.bodies.count(b"a") == 20
        assert client.bodies.count(KEEP_ALIVE) >= 5

    answered(test, keep_alive=0.01)


def test_a_frame_that_comes_while_a_comment_is_sent_waits_for_it():
    async def test(frames, client, task):
        client.reads.clear()
        await asyncio.sleep(0.05)
        frames.queue.put_nowait(b"a")
        frames.queue.put_nowait(None)
        await turns()
        client.reads.set()
        await task
        assert client.bodies == [KEEP_ALIVE, b"a", b""]

    answered(test, keep_alive=0.01)


def test_no_comment_is_sent_to_a_client_that_has_not_read_the_last_frame():
    async def test(frames, client, task):
        client.reads.clear()
        frames.queue.put_nowait(b"a")
        await asyncio.sleep(0.05)
        client.reads.set()
        frames.queue.put_nowait(None)
        await task
        assert client.bodies == [b"a", b""]

    answered(test, keep_alive=0.02)


def test_a_silence_is_counted_from_the_last_frame():
    async def test(frames, client, task):
        for _ in range(6):
            await asyncio.sleep(0.05)
            frames.queue.put_nowait(b"a")
        await turns()
        assert client.bodies == [b"a"] * 6

    answered(test, keep_alive=0.2)


# -- The client leaves --

WHERE = {
    "while it waits for a frame": (False, False, asyncio.CancelledError),
    "while a frame is sent": (True, True, GeneratorExit),
    "while a comment is sent": (True, False, asyncio.CancelledError),
}


@pytest.mark.parametrize(("blocks", "has_frame", "closed_by"), WHERE.values(), ids=WHERE)
def test_a_client_that_disconnects_closes_the_frames(blocks, has_frame, closed_by):
    async def test(frames, client, task):
        if blocks:
            client.reads.clear()
        if has_frame:
            frames.queue.put_nowait(b"a")
        await asyncio.sleep(0.05)
        client.gone.set()
        await task
        assert frames.closed_by is closed_by
        assert not client.is_complete

    answered(test, keep_alive=0.02)


@pytest.mark.parametrize("silent", [True, False])
def test_a_server_that_raises_for_a_client_that_is_gone_closes_the_frames_quietly(silent):
    class Raising(Watched):
        async def send(self, message):
            if message["type"] == "http.response.body":
                raise OSError("gone")
            await super().send(message)

    async def test(frames, client, task):
        if silent:
            await asyncio.sleep(0.1)  # the comment has raised
            assert not task.done()
        frames.queue.put_nowait(b"a")
        await task

    answered(test, keep_alive=0.02, connection=Raising)


def test_a_client_that_disconnects_after_a_comment_was_refused_leaves_no_error():
    class Raising(Watched):
        async def send(self, message):
            if message.get("body") == KEEP_ALIVE:
                raise OSError("gone")
            await super().send(message)

    async def test(frames, client, task):
        await asyncio.sleep(0.1)
        client.gone.set()

    answered(test, keep_alive=0.02, connection=Raising)


def test_what_is_left_of_the_request_is_not_the_end_of_the_connection():
    class Asking(Connection):
        left = 3

        async def receive(self):
            self.left -= 1
            if self.left >= 0:
                return {"type": "http.request", "body": b"", "more_body": False}
            return await super().receive()

    async def test(frames, client, task):
        frames.queue.put_nowait(b"a")
        frames.queue.put_nowait(None)
        await task
        assert client.is_complete

    answered(test, connection=Asking)


def test_work_that_is_done_together_with_the_connection_counts():
    async def at_once(value=None):
        return value

    assert asyncio.run(while_connected(at_once(), at_once(5))) == 5
    with pytest.raises(ClientDisconnect):
        asyncio.run(while_connected(at_once(), asyncio.sleep(LONG)))


def test_an_engine_that_swallows_its_cancellation_is_stopped_at_the_next_frame():
    read = []

    async def stubborn():
        for number in range(20):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.02)
            read.append(number)
            yield b"frame"

    async def main():
        client = Connection()
        response = FramesResponse(stubborn(), {}, LONG)
        task = asyncio.create_task(response({}, client.receive, client.send))
        while not client.bodies:
            await asyncio.sleep(0.001)
        client.gone.set()
        await asyncio.wait_for(task, LONG)
        return client.bodies

    assert asyncio.run(main()) == [b"frame"]
    assert read == [0, 1]
