"""Server-Sent Events: what is framed is read back, wherever the bytes are cut."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from harmony_stream.adapters import AgUiStream, ChatCompletionStream, ClientStream, sse
from harmony_stream.adapters.sse import AG_UI, EVENTS, RESPONSES, Decoder, ServerSentEvent

FRAMINGS = {
    "chat completions": (sse.CHAT_COMPLETIONS, b'data: {"type":"a"}\n\n', b"data: [DONE]\n\n"),
    "responses": (sse.RESPONSES, b'event: a\ndata: {"type":"a"}\n\n', b""),
    "AG-UI": (sse.AG_UI, b'data: {"type":"a"}\n\n', b""),
    "the parser's own events": (sse.EVENTS, b'event: a\ndata: {"type":"a"}\n\n', b""),
    "UI messages": (sse.UI_MESSAGES, b'data: {"type":"a"}\n\n', b"data: [DONE]\n\n"),
}


@pytest.mark.parametrize(("framing", "frame", "end"), FRAMINGS.values(), ids=list(FRAMINGS))
def test_each_protocol_has_its_frames_and_its_end(framing, frame, end):
    assert framing.encode({"type": "a"}) == frame
    assert framing.end() == end
    assert b"".join(framing.frames([{"type": "a"}, {"type": "a"}])) == frame + frame + end


@pytest.mark.parametrize(("framing", "frame", "end"), FRAMINGS.values(), ids=list(FRAMINGS))
def test_a_writer_has_the_frames_and_the_end_of_its_protocol(framing, frame, end):
    class Finished(ClientStream):
        feed = fail = None

        def finish(self, reason=None, usage=None):
            return [{"type": "a"}]

    assert framing.writer(Finished()).finish() == frame + end


def test_the_headers_keep_caches_and_proxies_from_holding_the_stream_back():
    assert sse.CHAT_COMPLETIONS.headers == sse.HEADERS
    assert sse.HEADERS["Content-Type"] == "text/event-stream; charset=utf-8"
    assert sse.UI_MESSAGES.headers["x-vercel-ai-ui-message-stream"] == "v1"


def test_half_a_character_is_replaced():
    assert json.loads(sse.CHAT_COMPLETIONS.encode({"text": "a\ud83e"})[6:]) == {"text": "a\ufffd"}


# -- Decoding --

# bytes -> events
STREAMS = {
    "one event": (b"data: a\n\n", [ServerSentEvent("a")]),
    "no space": (b"data:a\n\n", [ServerSentEvent("a")]),
    "one space is dropped": (b"data:  a\n\n", [ServerSentEvent(" a")]),
    "several lines": (b"data: a\ndata\ndata: b\n\n", [ServerSentEvent("a\n\nb")]),
    "a name": (
        b"event: x\ndata: a\n\ndata: b\n\n",
        [ServerSentEvent("a", "x"), ServerSentEvent("b")],
    ),
    "an empty name": (b"event:\ndata: a\n\n", [ServerSentEvent("a")]),
    "an id stays": (
        b"id: 7\ndata: a\n\ndata: b\n\n",
        [ServerSentEvent("a", id="7"), ServerSentEvent("b", id="7")],
    ),
    "an id with a null is none": (b"id: 7\0\ndata: a\n\n", [ServerSentEvent("a")]),
    "a retry": (b"retry: 250\ndata: a\n\n", [ServerSentEvent("a", retry=250)]),
    "a retry that is no number": (
        b"retry: soon\nretry: \xc2\xb2\nretry: " + b"9" * 5000 + b"\ndata: a\n\n",
        [ServerSentEvent("a")],
    ),
    "comments": (b": keep-alive\n\n: x\ndata: a\n\n", [ServerSentEvent("a")]),
    "unknown fields": (b"colour: red\ndata: a\n\n", [ServerSentEvent("a")]),
    "an event without data": (b"event: x\n\ndata: a\n\n", [ServerSentEvent("a")]),
    "carriage returns": (b"data: a\r\rdata: b\r\r", [ServerSentEvent("a"), ServerSentEvent("b")]),
    "both": (b"data: a\r\ndata: b\r\n\r\n", [ServerSentEvent("a\nb")]),
    "a mixture": (b"data: a\rdata: b\n\r\n", [ServerSentEvent("a\nb")]),
    "a mark of byte order": (b"\xef\xbb\xbfdata: a\n\n", [ServerSentEvent("a")]),
    "a mark further down is no mark": (
        b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\ndata: c\n\n",
        [ServerSentEvent("a"), ServerSentEvent("c")],
    ),
    "two marks": (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: c\n\n", [ServerSentEvent("c")]),
    "other ends of lines": (
        "data: a\u2028b\x85c\x0bd\n\n".encode(),
        [ServerSentEvent("a\u2028b\x85c\x0bd")],
    ),
    "an event cut off": (b"data: a\n\ndata: b\n", [ServerSentEvent("a")]),
    "no text": (b"data: \xff\n\n", [ServerSentEvent("\ufffd")]),
    "the end": (b"data: [DONE]\n\n", [ServerSentEvent("[DONE]")]),
}


@pytest.mark.parametrize(("data", "events"), STREAMS.values(), ids=list(STREAMS))
def test_bytes_are_read_as_the_standard_says_however_they_are_cut(data, events):
    for size in (1, 2, 3, len(data)):
        decoder = Decoder()
        pieces = [data[place : place + size] for place in range(0, len(data), size)]
        found = [event for piece in pieces for event in [*decoder.feed(piece), *decoder.feed(b"")]]
        assert found == events
        assert decoder.is_between_events == (not data.endswith(b"b\n"))


def test_the_end_is_told_from_data():
    assert ServerSentEvent("[DONE]").is_done
    assert not ServerSentEvent("{}").is_done
    assert ServerSentEvent('{"a": 1}').json() == {"a": 1}


@given(st.lists(st.text(), max_size=4), st.lists(st.integers(1, 9), max_size=9))
@examples(200)
def test_what_is_framed_is_read_back(texts, sizes):
    chunks = [{"type": "t", "text": text} for text in texts]
    data = b"".join(sse.RESPONSES.frames(chunks))
    decoder, found = Decoder(), []
    for size in [*sizes, len(data)]:
        found += decoder.feed(data[:size])
        data = data[size:]
    assert [event.json() for event in found] == chunks
    assert decoder.is_between_events


# -- Keeping a connection alive --


def collect(chunks, framing=sse.CHAT_COMPLETIONS, **options):
    async def run():
        return [frame async for frame in framing.aframes(chunks, **options)]

    return asyncio.run(run())


async def chunks_after(*seconds):
    for number, each in enumerate(seconds):
        await asyncio.sleep(each)
        yield {"n": number}


WANTED = [b'data: {"n":0}\n\n', b'data: {"n":1}\n\n', b"data: [DONE]\n\n"]


@pytest.mark.parametrize("keep_alive", [None, 30.0])
def test_frames_of_chunks_that_come_asynchronously(keep_alive):
    assert collect(chunks_after(0, 0), keep_alive=keep_alive) == WANTED
    assert collect(chunks_after(0, 0), sse.AG_UI, keep_alive=keep_alive) == WANTED[:2]


def test_comments_are_sent_while_nothing_else_comes():
    found = collect(chunks_after(0, 0.25), keep_alive=0.02)
    assert [frame for frame in found if frame != sse.KEEP_ALIVE] == WANTED
    assert found[0] == WANTED[0]
    assert found.count(sse.KEEP_ALIVE) >= 2
    assert Decoder().feed(b"".join(found))[0].json() == {"n": 0}


@pytest.mark.parametrize("keep_alive", [None, 0.01])
def test_a_reader_that_goes_away_closes_the_chunks(keep_alive):
    closed = []

    async def engine():
        try:
            yield {"n": 0}
            await asyncio.sleep(0.05 if keep_alive else 0)
            yield {"n": 1}
        finally:
            closed.append(True)

    async def read():
        frames = sse.CHAT_COMPLETIONS.aframes(engine(), keep_alive=keep_alive)
        await anext(frames)
        if keep_alive:
            assert await anext(frames) == sse.KEEP_ALIVE
        await frames.aclose()
        assert closed == [True]

    asyncio.run(read())


def test_an_engine_that_breaks_breaks_the_frames():
    async def engine():
        yield {"n": 0}
        raise RuntimeError("the engine died")

    with pytest.raises(RuntimeError, match="the engine died"):
        collect(engine(), keep_alive=30.0)


def test_chunks_need_not_be_a_generator():
    class Chunks:
        left = 2

        def __aiter__(self):
            return self

        async def __anext__(self):
            self.left -= 1
            if self.left < 0:
                raise StopAsyncIteration
            return {"n": 1 - self.left}

    assert collect(Chunks()) == WANTED


@pytest.mark.parametrize(
    ("framing", "stream", "sentence"),
    [
        (AG_UI, ChatCompletionStream("m"), "a ChatCompletionStream speaks Chat Completions, and"),
        (RESPONSES, AgUiStream("t", "r"), "this framing is for Responses; use the framing of that"),
        (EVENTS, None, "None is not a client stream; give an object such as AgUiStream"),
        (AG_UI, AgUiStream, "is not a client stream"),
    ],
)
def test_a_writer_is_refused_for_a_stream_of_another_protocol(framing, stream, sentence):
    with pytest.raises(TypeError, match=sentence):
        framing.writer(stream)


@pytest.mark.parametrize(
    ("seconds", "error"), [(0, ValueError), (-1, ValueError), ("5", TypeError)]
)
def test_keep_alive_is_a_time(seconds, error):
    async def chunks():
        yield {}

    async def read():
        return [frame async for frame in AG_UI.aframes(chunks(), keep_alive=seconds)]

    with pytest.raises(error, match=r"keep_alive: .* is not a number of seconds above 0"):
        asyncio.run(read())
