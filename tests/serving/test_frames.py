"""The frames of a completion: engines that fail, also while they are closed."""

import asyncio
import json

import pytest
from backend_harness import ANSWER, Listening, ids

from harmony_stream import iter_events
from harmony_stream.adapters import ChatCompletionStream, ResponseStream, counted_ids, sse
from harmony_stream.serving import Prompt, Sampling
from harmony_stream.serving.frames import frames_of

STREAMS = {
    "chat": (ChatCompletionStream, sse.CHAT_COMPLETIONS),
    "responses": (ResponseStream, sse.RESPONSES),
}


def frames(engine, kind="chat", **options):
    make, framing = STREAMS[kind]
    stream = make("any", ids=counted_ids(), clock=lambda: 5.0)
    sampling = Sampling(engine, Prompt("any", (), [1, 2, 3]))
    return frames_of(sampling, framing.writer(stream), "any", **options)


async def all_of(frames):
    return [frame async for frame in frames]


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("shows_usage", [True, False])
def test_they_are_those_of_the_chunks(kind, shows_usage):
    tokens = ids(ANSWER)
    make, framing = STREAMS[kind]
    stream = make("any", ids=counted_ids(), clock=lambda: 5.0)
    sampling = Sampling(Listening(tokens), Prompt("any", (), [1, 2, 3]))

    def ending():
        reason, usage = sampling.ending()
        return reason, usage if shows_usage else None

    chain = framing.aframes(stream.aiterate(sampling.events(), ending))
    found = asyncio.run(all_of(frames(Listening(tokens), kind, shows_usage=shows_usage)))
    assert b"".join(found) == b"".join(asyncio.run(all_of(chain)))


def test_each_delta_comes_before_the_next_token_is_read():
    engine = Listening(ids(ANSWER))

    async def read_at_each_frame():
        return [(engine.read, engine.is_closed) async for _ in frames(engine)]

    *first, (read, is_closed) = asyncio.run(read_at_each_frame())
    starts = [event.stop for event in iter_events(ids(ANSWER))]
    assert {read for read, _ in first} <= set(starts)
    assert len(first) == len(set(first)) > 5
    assert (read, is_closed) == (len(ids(ANSWER)), True)


class Stubborn(Listening):
    """Fails when it is closed."""

    async def sample(self, prompt):
        try:
            for token in ids(ANSWER)[:8]:
                yield token
            await asyncio.sleep(30)
        finally:
            raise RuntimeError("cannot stop")


def test_an_engine_that_fails_while_it_is_closed_for_a_client_that_left_is_logged(caplog):
    async def main():
        found = frames(Stubborn())
        await anext(found)
        await found.aclose()

    asyncio.run(main())
    assert "a stream of any failed" in caplog.text
    assert "cannot stop" in caplog.text


def test_an_engine_that_fails_while_it_is_closed_at_the_end_fails_its_stream(caplog):
    class Ending(Listening):
        async def sample(self, prompt):
            try:
                async for token in super().sample(prompt):
                    yield token
            except GeneratorExit:
                raise RuntimeError("cannot stop") from None

    found = b"".join(asyncio.run(all_of(frames(Ending([*ids(ANSWER), 5])))))
    assert b"The server failed" in found
    assert "cannot stop" in caplog.text


def test_a_stream_whose_end_cannot_be_written_fails(caplog):
    class Unwritten:
        def feed(self, event):
            return b""

        def finish(self, reason, usage):
            return json.dumps({"usage": object()})

        def fail(self, message):
            return b"failed"

    sampling = Sampling(Listening(), Prompt("any", (), []))
    found = asyncio.run(all_of(frames_of(sampling, Unwritten(), "any")))
    assert found == [b"failed"]
    assert "not JSON serializable" in caplog.text


class Ready:
    """An engine whose tokens are all ready, so that it never waits."""

    models = ("any",)

    def __init__(self):
        self.read = 0

    async def sample(self, prompt):
        for token in [*ids("<|channel|>final<|message|>"), *[13225] * 100_000]:
            self.read += 1
            yield token


@pytest.mark.parametrize(
    "read",
    [frames, lambda engine: Sampling(engine, Prompt("any", (), [1, 2, 3])).events()],
    ids=["frames", "events"],
)
def test_an_engine_that_never_waits_leaves_turns_to_others(read):
    engine = Ready()

    async def main():
        others = []

        async def other():
            while True:
                others.append(engine.read)
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        found = read(engine)
        async for _ in found:
            if engine.read == 1000:
                break
        task.cancel()
        await found.aclose()
        return others

    others = asyncio.run(main())
    assert 50 <= len(others) <= 70
    assert engine.read == 1000


class Failing:
    """A writer that fails at the end, or at the last event."""

    def __init__(self, fails_at):
        self.fails_at = fails_at

    def feed(self, event):
        if self.fails_at == type(event).__name__:
            raise RuntimeError("no feed")
        return type(event).__name__.encode() + b" "

    def finish(self, reason, usage):
        raise RuntimeError("no finish")

    def fail(self, message):
        return b"failed"


@pytest.mark.parametrize(
    ("fails_at", "last"),
    [("finish", b"ContentDelta MessageEnd failed"), ("MessageEnd", b"ContentDelta failed")],
)
def test_the_last_text_is_sent_even_if_the_end_fails(fails_at, last, caplog):
    prompt = Prompt("any", (), [1, 2, 3], max_tokens=4)
    sampling = Sampling(Listening(ids(ANSWER)), prompt)
    found = asyncio.run(all_of(frames_of(sampling, Failing(fails_at), "any")))
    assert b"".join(found).endswith(last)
    assert "a stream of any failed" in caplog.text
