"""A backend on a real socket of 127.0.0.1, in a thread of this process."""

import asyncio
import contextlib
import json
import queue
import socket
import threading
import time

import openai

from harmony_stream import ContentDelta, Vocabulary, iter_events
from harmony_stream.serving import RecordedEngine, Settings, create_app, make_server

PATIENCE = 20


def ids(marked_text):
    return Vocabulary.default().tiktoken_encoding.encode(marked_text, allowed_special="all")


THINKING = "<|channel|>analysis<|message|>The table says it.<|end|>"
ANSWER = f"{THINKING}<|start|>assistant<|channel|>final<|message|>High tide is at noon.<|return|>"
CALL = (
    f"{THINKING}<|start|>assistant<|channel|>commentary<|message|>I'll look.<|end|>"
    "<|start|>assistant<|channel|>commentary to=functions.tide <|constrain|>json<|message|>"
    '{"at": "Oban"}<|call|>'
)
LONG = "<|channel|>final<|message|>" + "wave after wave " * 2000 + "<|return|>"

TIDE = {
    "name": "tide",
    "description": "Tells it.",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
}
CHAT_TOOLS = [{"type": "function", "function": TIDE}]
RESPONSES_TOOLS = [{"type": "function", **TIDE}]


class Recorded(RecordedEngine):
    """Says when it begins."""

    def __init__(self, recordings, begun, **options):
        super().__init__(recordings, **options)
        self._begun = begun

    def sample(self, prompt):
        self._begun.set()
        return super().sample(prompt)


class Backend:
    """What tests ask of a running one."""

    def __init__(self, url):
        self.url = url
        self.begun = threading.Event()
        self.replays = queue.Queue()
        self.clients = contextlib.ExitStack()
        self.problems = []

    def client(self, **options):
        options = {"timeout": PATIENCE, "max_retries": 0, **options}
        client = openai.OpenAI(base_url=f"{self.url}/v1", api_key="any", **options)
        # Closed with the backend: a connection that is only forgotten warns in some other test.
        self.clients.enter_context(client)
        return client

    def async_client(self):
        return openai.AsyncOpenAI(
            base_url=f"{self.url}/v1", api_key="any", timeout=60, max_retries=0
        )

    def replay(self):
        """The next one that is over."""
        return self.replays.get(timeout=PATIENCE)

    def request(self, method, path, **options):
        # The HTTP client that openai brings, whichever it is in this version.
        with openai.DefaultHttpxClient(timeout=PATIENCE) as client:
            return client.request(method, self.url + path, **options)


@contextlib.contextmanager
def running(app, buffer=None):
    """Serves the app; gives its address. The buffer is that of the system, for each connection."""
    server = make_server(app)
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as listening:
        if buffer is not None:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            until(lambda: server.started)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            assert not thread.is_alive()


@contextlib.contextmanager
def serving(recordings, speed=None, engine=None, **settings):
    """Serves recordings, given as marked text or ids by model."""
    recordings = {
        model: [ids(turn) if isinstance(turn, str) else turn for turn in turns]
        for model, turns in recordings.items()
    }
    backend = Backend("")
    engine = engine or Recorded(recordings, backend.begun, speed=speed, on_end=backend.replays.put)
    app = create_app(engine, Settings(on_problem=backend.problems.append, **settings))
    with running(app) as backend.url, backend.clients:
        yield backend


def until(is_so):
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.005)


def spoken(tokens, belongs):
    """The parser's own word: the text of all messages whose header passes."""
    events = iter_events(tokens)
    return "".join(e.text for e in events if isinstance(e, ContentDelta) and belongs(e.header))


# -- With a bare socket --


def chat_socket(url, buffer=None, **fields):
    """A connection that has asked for a chat stream and has read nothing of it."""
    host, _, port = url.removeprefix("http://").partition(":")
    client = socket.socket()
    client.settimeout(PATIENCE)
    if buffer is not None:  # of the system, for bytes that nobody has read
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    client.connect((host, int(port)))
    question = [{"role": "user", "content": "?"}]
    body = json.dumps({"model": "any", "messages": question, "stream": True, **fields}).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    client.sendall(head.encode() + body)
    return client


def received(client, until=b"0\r\n\r\n"):
    """All that comes until these bytes do; they end the body."""
    found = b""
    while until not in found:
        data = client.recv(65536)
        if not data:
            raise ConnectionError(f"closed before {until!r}, after {found[-200:]!r}")
        found += data
    return found


# -- Without a socket --


class Listening:
    """An engine that keeps what it was given, and answers with the same tokens each time."""

    models = ("any",)

    def __init__(self, tokens=(200002,)):
        self.tokens = tokens
        self.prompts = []
        self.read = 0
        self.is_closed = False

    async def sample(self, prompt):
        self.prompts.append(prompt)
        self.read, self.is_closed = 0, False
        try:
            for token in self.tokens:
                self.read += 1
                yield token
        finally:
            self.is_closed = True


class Connection:
    """A connection of ASGI, whose client reads when it is allowed to."""

    def __init__(self):
        self.bodies = []
        self.is_complete = False
        self.reads = asyncio.Event()
        self.reads.set()
        self.gone = asyncio.Event()

    async def receive(self):
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        await self.reads.wait()
        if message["type"] == "http.response.body":
            self.bodies.append(message["body"])
            self.is_complete = not message["more_body"]


async def turns():
    """Let everybody act who can."""
    for _ in range(10):
        await asyncio.sleep(0)


def asked(app, method, path, body=None):
    """Status and body with which an app answers a request: as ASGI has it, in this thread."""
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"host", b"here")],
        "server": ("127.0.0.1", 80),
    }
    sent = []

    async def main():
        requests = [{"type": "http.request", "body": json.dumps(body).encode()}]

        async def receive():
            return requests.pop() if requests else await asyncio.Future()

        async def send(message):
            sent.append(message)

        await app(scope, receive, send)

    asyncio.run(main())
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])
