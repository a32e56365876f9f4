"""Both ways to a client, an engine that is read and one that pushes, on real sockets."""

import asyncio
import contextlib
import functools
import importlib.util
import time
from pathlib import Path

import pytest
from backend_harness import PATIENCE, chat_socket, ids, received, running, until

from harmony_stream import parse
from harmony_stream.adapters import join_chunks, sse
from harmony_stream.serving import PushResponse, Settings, create_app

EXAMPLE = Path(__file__).parents[2] / "examples" / "backend" / "push.py"
WAIT = None  # for ever
START = ids("<|channel|>final<|message|>")
ANSWER = [*START, *ids("High tide is at noon. 潮は正午です。<|return|>")]
ENDLESS = [*START, *ids(" wave after wave") * 100_000]


class Read:
    """A backend over an engine that is read; the streams at work, by their number of tokens."""

    models = ("any",)

    def __init__(self, logs, step, keep_alive):
        self.logs, self.step = iter(logs), step
        self.at_work = {}
        self.app = create_app(self, Settings(keep_alive=keep_alive))

    async def sample(self, prompt):
        key = object()
        self.at_work[key] = 0
        try:
            for token in next(self.logs):
                await (asyncio.Event().wait() if token is WAIT else asyncio.sleep(self.step))
                self.at_work[key] += 1
                yield token
        finally:
            del self.at_work[key]


class Pushed:
    """The same over the program of examples/, whose engine pushes."""

    def __init__(self, logs, step, keep_alive, limit=20_000):
        spec = importlib.util.spec_from_file_location("push", EXAMPLE)
        self.program = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.program)
        self.logs, self.step = logs, step
        self.program.sample = self.sample
        self.program.MAX_TOKENS = 10**9
        self.program.PushResponse = functools.partial(
            PushResponse, keep_alive=keep_alive, limit=limit
        )
        self.app = self.program.app

    def sample(self, lengths):
        time.sleep(self.step)
        sampled = {key: self.logs[key][length] for key, length in lengths.items()}
        return {key: token for key, token in sampled.items() if token is not WAIT}

    @property
    def at_work(self):
        streams = self.program.engine.streams
        return {key: stream.length for key, stream in list(streams.items())}


@pytest.fixture(params=[Read, Pushed])
def way(request):
    return request.param


@pytest.fixture
def serve(way):
    """Serves logs, one for each request; gives the address and the backend."""
    with contextlib.ExitStack() as stack:

        def begun(*logs, step=0.0005, keep_alive=15.0):
            backend = way(logs, step, keep_alive)
            return stack.enter_context(running(backend.app, buffer=4096)), backend

        yield begun


def chunks_in(data):
    """The chunks of chat in a response, which is sent in pieces."""
    body, found = data.partition(b"\r\n\r\n")[2], b""
    while body:
        size, _, body = body.partition(b"\r\n")
        found += body[: int(size, 16)]
        body = body[int(size, 16) + 2 :]
    events = sse.Decoder().feed(found)
    assert events[-1].is_done
    return [event.json() for event in events[:-1]]


def answer_in(data):
    return join_chunks(chunks_in(data))["choices"][0]["message"]["content"]


def test_a_stream_arrives_whole(serve):
    url, backend = serve(ANSWER)
    with chat_socket(url) as client:
        data = received(client)
    assert answer_in(data) == parse(ANSWER).final_text
    assert backend.at_work == {}


@pytest.mark.parametrize("log", [ENDLESS, [*ANSWER[:8], WAIT]], ids=["in the middle", "waiting"])
def test_a_client_that_disconnects_ends_the_work(serve, log):
    url, backend = serve(log)
    with chat_socket(url) as client:
        received(client, b"High" if log[-1] is WAIT else b"wave")
        assert len(backend.at_work) == 1
    until(lambda: not backend.at_work)


def test_a_client_that_disconnects_before_the_first_token_ends_the_work(serve):
    url, backend = serve([WAIT])
    with chat_socket(url) as client:
        received(client, b"\r\n\r\n")
    until(lambda: not backend.at_work)


def test_comments_are_sent_while_the_engine_waits(serve):
    url, backend = serve([*ANSWER[:6], WAIT], keep_alive=0.05)
    with chat_socket(url) as client:
        begun = time.monotonic()
        data = b""
        while data.count(sse.KEEP_ALIVE) < 3:
            data += received(client, sse.KEEP_ALIVE)
        assert 0.1 < time.monotonic() - begun < PATIENCE
        assert data.index(b"High") < data.index(sse.KEEP_ALIVE)
    until(lambda: not backend.at_work)


def test_no_comments_are_sent_while_tokens_come(serve):
    url, _ = serve(ANSWER, step=0.01, keep_alive=0.5)
    with chat_socket(url) as client:
        assert sse.KEEP_ALIVE not in received(client)


def test_streams_do_not_disturb_one_another(serve):
    logs = [[*START, *ids(f" number {number}" * 20 + "<|return|>")] for number in range(20)]
    url, backend = serve(*logs)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(chat_socket(url)) for _ in logs]
        clients[7].close()
        found = {answer_in(received(client)) for client in clients if client is not clients[7]}
    assert len(found) == 19  # which request gets which log is open
    assert found <= {parse(log).final_text for log in logs}
    until(lambda: not backend.at_work)


def test_a_client_that_does_not_read_holds_up_nobody_and_little_memory(serve):
    url, backend = serve(ENDLESS, ANSWER, step=0)
    with chat_socket(url, buffer=4096) as lazy:
        received(lazy, b"\r\n\r\n")
        # Read: the engine waits for the client. Pushed: the stream is dropped.
        seen = stalled(backend)
        assert seen < 2000
        with chat_socket(url) as other:
            assert answer_in(received(other)) == parse(ANSWER).final_text
        assert sum(backend.at_work.values()) == seen
    until(lambda: not backend.at_work)


def stalled(backend):
    """Wait until the engine gets no further, or is further than all buffers allow."""
    seen = -1
    while seen != (seen := sum(backend.at_work.values())) and seen < 2000:
        time.sleep(0.2)
    return seen


def test_a_server_that_stops_ends_open_streams_in_time_even_those_of_clients_that_do_not_read(way):
    logs = [[*ANSWER[:6], WAIT], ENDLESS, [WAIT]]
    backend = way(logs, 0, 15.0, *([10**9] if way is Pushed else []))
    with contextlib.ExitStack() as clients:
        with running(backend.app, buffer=4096) as url:
            for _ in logs:
                client = clients.enter_context(chat_socket(url, buffer=4096))
                received(client, b"\r\n\r\n")
            until(lambda: len(backend.at_work) == 3)
            stalled(backend)
            begun = time.monotonic()
        assert time.monotonic() - begun < 3
    assert not backend.at_work


def test_a_client_that_did_not_read_is_told_so_by_the_end_of_its_connection(caplog):
    backend = Pushed([ENDLESS], 0, 15.0)
    with running(backend.app, buffer=4096) as url, chat_socket(url, buffer=4096) as lazy:
        begun = received(lazy, b"wave")
        until(lambda: not backend.at_work)
        with pytest.raises(ConnectionError, match="closed before"):
            received(lazy)
    assert b"wave" in begun
    assert "a client does not read: its stream is closed" in caplog.text


def test_a_step_that_fails_ends_its_streams_with_an_error(caplog):
    backend = Pushed([ANSWER[:5]] * 2, 0.0005, 15.0)  # there is no sixth token
    with running(backend.app) as url:
        with chat_socket(url) as client:
            data = received(client)
        assert b"The server failed." in data
        assert data.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
        assert not backend.at_work
        with chat_socket(url) as client:  # the engine steps on
            assert b"The server failed." in received(client)
    assert "a step failed" in caplog.text


def test_the_program_ends_a_stream_at_its_limit():
    backend = Pushed([ENDLESS], 0.0005, 15.0)
    backend.program.MAX_TOKENS = 10
    with running(backend.app) as url, chat_socket(url) as client:
        *_, last, usage = chunks_in(received(client))
    assert last["choices"][0]["finish_reason"] == "length"
    assert usage["usage"]["completion_tokens"] == 10
