"""The HTTP side: routes, streams that end with their clients, and errors."""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from harmony_stream.adapters import Chunk, sse
from harmony_stream.adapters.conversations import conversation_from_chat
from harmony_stream.errors import HarmonyError
from harmony_stream.history import normalize_history
from harmony_stream.rendering.profiles import GUIDE
from harmony_stream.rendering.render import Renderer
from harmony_stream.serving.engine import Engine, Prompt, Sampling, check_engine
from harmony_stream.serving.errors import FAILED, RequestError, refusal_of
from harmony_stream.serving.hiding import shown, visible
from harmony_stream.serving.recorded import RecordedEngine
from harmony_stream.serving.requests import Asked, body_from, chat_request, responses_request
from harmony_stream.serving.settings import Settings
from harmony_stream.serving.store import ResponseStore
from harmony_stream.support.closing import closing
from harmony_stream.values.messages import Conversation, RenderConversationConfig, Role

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

    from starlette.types import Receive, Scope, Send

    from harmony_stream.values.events import Event

_LOG = logging.getLogger("harmony_stream.serving")

# The status that Nginx logs when the client has closed the connection.
_CLIENT_CLOSED_REQUEST = 499

# The page contains its style and script, and loads nothing else.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

# `normalize_history` has already dropped the messages that do not go back, by its own rule.
_AS_IT_IS = RenderConversationConfig(auto_drop_analysis=False)

_Result = TypeVar("_Result")


def create_app(engine: Engine, settings: Settings | None = None) -> Starlette:
    """Return an app with `/v1/chat/completions`, `/v1/responses` and `/v1/models`.

    A `RecordedEngine` also gets `/events` and a page. Other engines get them if `settings.page` is
    true.

    Args:
        engine: the source of tokens.
        settings: the settings of the backend, or None for the defaults.

    Raises:
        TypeError: if the engine or the settings are not usable.

    >>> from harmony_stream.serving import RecordedEngine
    >>> app = create_app(RecordedEngine({"greeting": [[200005, 17196, 200008, 13225, 200002]]}))
    >>> [route.path for route in app.routes][:2]
    ['/', '/events']
    """
    settings = Settings() if settings is None else settings
    if not isinstance(settings, Settings):
        raise TypeError(f"settings: {settings!r} is not a Settings object; give one, or None")
    check_engine(engine)
    backend = _Backend(engine, settings)
    has_page = isinstance(engine, RecordedEngine) if settings.page is None else settings.page
    page = [Route("/", _page), Route("/events", backend.events)] if has_page else []
    return Starlette(
        routes=[
            *page,
            Route("/v1/models", backend.models),
            Route("/v1/models/{model:path}", backend.model),
            Route("/v1/chat/completions", backend.chat_completions, methods=["POST"]),
            Route("/v1/responses", backend.responses, methods=["POST"]),
        ],
        exception_handlers={
            HarmonyError: _refuse,
            HTTPException: _no_such_url,
            ClientDisconnect: _gone,
            Exception: _fail,
        },
    )


class _Backend:
    """State that the routes share."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._engine = engine
        self._settings = settings
        self._store = ResponseStore()
        self._created = settings.now()

    # -- Routes --

    async def models(self, request: Request) -> Response:
        return _json({"object": "list", "data": list(map(self._model, self._engine.models))})

    async def model(self, request: Request) -> Response:
        name = request.path_params["model"]
        self._check_model(name)
        return _json(self._model(name))

    async def chat_completions(self, request: Request) -> Response:
        body = body_from(await request.body())
        return await self._answer(request, chat_request(body, self._settings))

    async def responses(self, request: Request) -> Response:
        body = body_from(await request.body())
        return await self._answer(request, responses_request(body, self._settings, self._store))

    async def events(self, request: Request) -> Response:
        """Return the parser's own events for the page: `?model=NAME&input=TEXT&speed=NUMBER`."""
        query = request.query_params
        question = {"role": "user", "content": query.get("input", "")}
        conversation = conversation_from_chat([question], date=self._settings.today())
        model = query.get("model", self._engine.models[0])
        sampling = await self._sample(model, conversation, speed=_speed(query.get("speed")))
        show = shown if self._settings.hides_reasoning else _whole
        chunks = _event_chunks(sampling, show)
        return _Frames(sse.EVENTS, chunks, self._settings.keep_alive)

    # -- Turns --

    async def _answer(self, request: Request, asked: Asked) -> Response:
        sampling = await self._sample(asked.model, asked.conversation, asked.max_tokens)
        chunks = self._chunks(asked, sampling)
        if asked.streams:
            chunks = _until_failure(asked, chunks)
        if asked.show is not None:
            chunks = visible(chunks, asked.show)
        if asked.streams:
            return _Frames(asked.framing, chunks, self._settings.keep_alive)
        found = await _while_connected(request, _all(chunks))
        return _json(asked.whole(found))

    async def _sample(
        self,
        model: str,
        conversation: Conversation,
        max_tokens: int | None = None,
        speed: float | None = None,
    ) -> Sampling:
        self._check_model(model)
        messages = normalize_history(conversation).messages
        tokens = await run_in_threadpool(_render, Conversation.from_messages(messages))
        return Sampling(self._engine, Prompt(model, messages, tokens, max_tokens, speed))

    async def _chunks(self, asked: Asked, sampling: Sampling) -> AsyncIterator[Chunk]:
        def ending() -> Any:  # noqa: ANN401
            reason, usage = sampling.ending()
            return reason, usage if asked.shows_usage else None

        chunks = asked.stream.aiterate(sampling.events(), ending)
        async with closing(chunks):
            async for chunk in chunks:
                self._remember(asked, chunk)
                yield chunk

    def _remember(self, asked: Asked, chunk: Chunk) -> None:
        """Keep a finished response before the client receives its end and can refer to it."""
        if asked.items is not None and chunk["type"] in _ENDS_OF_RESPONSES:
            response = chunk["response"]
            self._store.keep(response["id"], [*asked.items, *response["output"]])

    # -- Models --

    def _model(self, name: str) -> dict[str, Any]:
        return {
            "id": name,
            "object": "model",
            "created": self._created,
            "owned_by": "harmony-stream",
        }

    def _check_model(self, name: str) -> None:
        if name not in self._engine.models:
            message = f"The model `{name}` does not exist."
            raise RequestError(message, "model", "model_not_found", 404)


_ENDS_OF_RESPONSES = ("response.completed", "response.incomplete")


def _render(conversation: Conversation) -> list[int]:
    """Return the prompt. It runs outside the event loop, so each thread has its own renderer."""
    renderer = Renderer(profile=GUIDE)
    return renderer.render_conversation_for_completion(conversation, Role.ASSISTANT, _AS_IT_IS)


async def _all(chunks: AsyncIterator[Chunk]) -> list[Chunk]:
    async with closing(chunks):
        return [chunk async for chunk in chunks]


async def _until_failure(asked: Asked, chunks: AsyncIterator[Chunk]) -> AsyncIterator[Chunk]:
    """Yield the chunks, and if the engine fails, the error that ends the stream."""
    try:
        async with closing(chunks):
            async for chunk in chunks:
                yield chunk
    except Exception:
        _LOG.exception("a stream of %s failed", asked.model)
        for chunk in asked.stream.fail(FAILED.message):
            yield chunk


def _whole(event: Event) -> Chunk | None:
    return event.to_dict()


async def _event_chunks(
    sampling: Sampling, show: Callable[[Event], Chunk | None]
) -> AsyncIterator[Chunk]:
    """Yield the events, then one that ends the stream, without which a browser would reconnect."""
    failure = None
    chunks = visible(sampling.events(), show)
    try:
        async with closing(chunks):
            async for chunk in chunks:
                yield chunk
    except Exception:
        _LOG.exception("a stream of events failed")
        failure = FAILED.message
    yield {"type": "end_of_stream", "tokens": sampling.count, "error": failure}


async def _while_connected(request: Request, work: Coroutine[Any, Any, _Result]) -> _Result:
    """Return the result of the work, which is cancelled when the client disconnects.

    Raises:
        ClientDisconnect: if the client disconnects.
    """
    tasks = asyncio.ensure_future(work), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done():
            raise ClientDisconnect
        return tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _speed(text: str | None) -> float | None:
    try:
        speed = float(text) if text else None
    except ValueError:
        speed = 0.0
    if speed is not None and not 0 < speed < float("inf"):
        raise RequestError("speed must be a positive number of tokens per second", "speed")
    return speed


# -- Responses of HTTP -----------------------------------------------------------------------------


class _Frames(StreamingResponse):
    """A response of Server-Sent Events.

    When the client disconnects, the frames are closed, and with them the engine's generator.
    """

    def __init__(
        self, framing: sse.Framing, chunks: AsyncIterator[Chunk], keep_alive: float
    ) -> None:
        frames = framing.aframes(chunks, keep_alive=keep_alive)
        super().__init__(frames, headers=framing.headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with closing(self.body_iterator):
            await super().__call__(scope, receive, send)


def _json(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(sse.to_json(value), status, headers, media_type="application/json")


async def _page(request: Request) -> Response:
    page = resources.files(__package__).joinpath("events.html").read_text("utf-8")
    return HTMLResponse(page, headers={"Content-Security-Policy": _POLICY})


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, HarmonyError)
    refusal = refusal_of(error)
    return _json(refusal.to_dict(), refusal.status)


async def _no_such_url(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    place = f"{request.method} {request.url.path}"
    is_there = error.status_code == HTTPStatus.METHOD_NOT_ALLOWED
    message = f"Not allowed: {place}" if is_there else f"Invalid URL ({place})"
    refusal = RequestError(message, status=error.status_code)
    return _json(refusal.to_dict(), refusal.status, error.headers)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=_CLIENT_CLOSED_REQUEST)


async def _fail(request: Request, error: Exception) -> Response:
    # The server closes the connection after an error of the app: a client must not reuse it.
    return _json(FAILED.to_dict(), FAILED.status, {"Connection": "close"})
