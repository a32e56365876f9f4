"""The HTTP side: routes and errors."""

from __future__ import annotations

from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from harmony_stream.adapters import Chunk, sse
from harmony_stream.adapters.conversations import conversation_from_chat
from harmony_stream.errors import HarmonyError
from harmony_stream.history import normalize_history
from harmony_stream.rendering.profiles import GUIDE
from harmony_stream.rendering.render import Renderer
from harmony_stream.serving.engine import Engine, Prompt, Sampling, check_engine
from harmony_stream.serving.errors import FAILED, RequestError, refusal_of
from harmony_stream.serving.frames import frames_of
from harmony_stream.serving.hiding import shown
from harmony_stream.serving.recorded import RecordedEngine
from harmony_stream.serving.requests import Asked, body_from, chat_request, responses_request
from harmony_stream.serving.response import FramesResponse, disconnected, while_connected
from harmony_stream.serving.settings import Settings
from harmony_stream.serving.store import ResponseStore
from harmony_stream.support.closing import closing
from harmony_stream.values.messages import Conversation, RenderConversationConfig, Role

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from harmony_stream.adapters.options import Reason, Usage
    from harmony_stream.values.events import Event

# The status that Nginx logs when the client has closed the connection.
_CLIENT_CLOSED_REQUEST = 499

# The page contains its style and script, and loads nothing else.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

# `normalize_history` has already dropped the messages that do not go back, by its own rule.
_AS_IT_IS = RenderConversationConfig(auto_drop_analysis=False)


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
        writer = _EventsOfPage(sampling, hides_reasoning=self._settings.hides_reasoning)
        frames = frames_of(sampling, writer, "events")
        return FramesResponse(frames, sse.EVENTS.headers, self._settings.keep_alive)

    # -- Turns --

    async def _answer(self, request: Request, asked: Asked) -> Response:
        sampling = await self._sample(asked.model, asked.conversation, asked.max_tokens)
        if asked.streams:
            frames = frames_of(sampling, asked.writer, asked.model, shows_usage=asked.shows_usage)
            return FramesResponse(frames, asked.headers, self._settings.keep_alive)
        chunks = asked.stream.aiterate(sampling.events(), sampling.ending)
        found = await while_connected(disconnected(request.receive), _all(chunks))
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


def _render(conversation: Conversation) -> list[int]:
    """Return the prompt. It runs outside the event loop, so each thread has its own renderer."""
    renderer = Renderer(profile=GUIDE)
    return renderer.render_conversation_for_completion(conversation, Role.ASSISTANT, _AS_IT_IS)


async def _all(chunks: AsyncIterator[Chunk]) -> list[Chunk]:
    async with closing(chunks):
        return [chunk async for chunk in chunks]


class _EventsOfPage:
    """Writes the events, then one that ends the stream, without which a browser would reconnect."""

    def __init__(self, sampling: Sampling, *, hides_reasoning: bool) -> None:
        self._sampling = sampling
        self._hides_reasoning = hides_reasoning

    def feed(self, event: Event) -> bytes:
        found = shown(event) if self._hides_reasoning else event.to_dict()
        return b"" if found is None else sse.EVENTS.encode(found)

    def finish(self, reason: Reason | None, usage: Usage | None) -> bytes:
        return self._end(None)

    def fail(self, message: str) -> bytes:
        return self._end(message)

    def _end(self, error: str | None) -> bytes:
        count = self._sampling.count
        return sse.EVENTS.encode({"type": "end_of_stream", "tokens": count, "error": error})


def _speed(text: str | None) -> float | None:
    try:
        speed = float(text) if text else None
    except ValueError:
        speed = 0.0
    if speed is not None and not 0 < speed < float("inf"):
        raise RequestError("speed must be a positive number of tokens per second", "speed")
    return speed


# -- Responses of HTTP -----------------------------------------------------------------------------


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
