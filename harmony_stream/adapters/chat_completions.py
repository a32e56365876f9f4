"""The Chat Completions API of OpenAI: `chat.completion.chunk` objects, and the whole object.

Source: `openai.types.chat.ChatCompletionChunk`, and what `openai.lib.streaming.chat` accumulates.
An index counts the calls of a choice from 0, and id and name are sent once. `content` is visible
text only: reasoning is in `reasoning` or left out, never in `content`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal, TypeAlias, Unpack

from harmony_stream.adapters.base import (
    Chunk,
    ClientStream,
    CompletionStream,
    LogProbability,
    events_of,
)
from harmony_stream.adapters.options import (
    Reason,
    StreamOptions,
    Usage,
    check_ending,
    check_message,
    random_id,
)
from harmony_stream.adapters.routing import Route, RouteKind
from harmony_stream.values.completion import BLANK_LINE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harmony_stream.adapters.problems import Problem
    from harmony_stream.values.completion import Completion
    from harmony_stream.values.events import Event

ReasoningKey: TypeAlias = Literal["reasoning", "reasoning_content", "both"] | None

# vLLM and Ollama write `reasoning`, SGLang and llama.cpp `reasoning_content`.
_REASONING_KEYS: dict[ReasoningKey, tuple[str, ...]] = {
    "reasoning": ("reasoning",),
    "reasoning_content": ("reasoning_content",),
    "both": ("reasoning", "reasoning_content"),
    None: (),
}

_FIRST_DELTA = {"role": "assistant", "content": ""}

PROBLEMS = "harmony_problems"
"""Key of the problems, in the delta and so in the message, for a client that asked for them."""


class ChatCompletionStream(ClientStream):
    """Turns a parser's events into chunks of the Chat Completions API.

    `feed(event)` for each event, then `finish(reason, usage)`, and send the chunks that they
    return. If there are several choices, each has its own parser, and you pass its number with its
    events. Visible text is `content`. A call is a tool call on any channel. Calls of `python` and
    `browser.*`, which the server runs, are not shown but reported.

    Args:
        model: the name of the model in the chunks.
        reasoning_key: the delta's key for the reasoning: `reasoning`, `reasoning_content`,
            `both`, or None to hide it.
        separator: text between the texts of two messages, in `content` and in the reasoning. It is
            sent with the first text of the later one.
        fields: more fields of each chunk, such as `system_fingerprint`.
        options: see `StreamOptions`.

    >>> from harmony_stream import EventParser
    >>> stream = ChatCompletionStream("gpt-oss-20b")
    >>> for event in EventParser().feed_many([200005, 17196, 200008, 13225, 200002]):
    ...     for chunk in stream.feed(event):
    ...         print(chunk["choices"][0]["delta"])
    {'role': 'assistant', 'content': ''}
    {'content': 'Hello'}
    >>> [chunk["choices"][0]["finish_reason"] for chunk in stream.finish()]
    ['stop']
    """

    protocol = "Chat Completions"

    def __init__(
        self,
        model: str,
        *,
        reasoning_key: ReasoningKey = "reasoning",
        separator: str = BLANK_LINE,
        fields: Chunk | None = None,
        **options: Unpack[StreamOptions],
    ) -> None:
        if reasoning_key not in _REASONING_KEYS:
            allowed = tuple(_REASONING_KEYS)
            raise ValueError(f"reasoning_key is {reasoning_key!r}, expected one of {allowed}")
        if not isinstance(separator, str):
            raise TypeError(f"separator is {separator!r}, expected a string; it may be empty")
        self._keys = _REASONING_KEYS[reasoning_key]
        self._separator = separator
        self._options = options
        self._choices: dict[int, _Choice] = {}
        self._is_finished = False
        self._envelope: Chunk = {
            "id": options.get("ids", random_id)("chatcmpl-"),
            "object": "chat.completion.chunk",
            "created": int(options.get("clock", time.time)()),
            "model": model,
            **(fields or {}),
        }

    def feed(
        self, event: Event, *, choice: int = 0, logprobs: Sequence[LogProbability] | None = None
    ) -> list[Chunk]:
        """Take one event of a choice's parser and return the chunks that follow from it.

        Args:
            event: an event from any method that feeds the parser.
            choice: the number of the choice that the event belongs to.
            logprobs: one entry for each token fed to that parser so far, if there are any. The
                event's span selects those of its text. They are sent with `content` only.

        Raises:
            ValueError: if the choice or the stream is finished.
        """
        turn = self._choices.get(choice)
        if turn is not None:
            return turn.feed(event, logprobs=logprobs)
        return self._open(choice) + self._choices[choice].feed(event, logprobs=logprobs)

    def finish(
        self,
        reason: Reason | None = None,
        usage: Usage | None = None,
        *,
        choice: int | None = None,
    ) -> list[Chunk]:
        """End the stream, or one choice of it, and return the last chunks.

        It returns `[]` if the stream or the choice has ended already.

        Args:
            reason: the reason why the engine stopped. `stop`: by itself. `length`: at its limit.
                `tool_calls`: by itself, and a call that the tokens leave open is complete.
                None: `length` if the tokens end inside a message or a header, else `stop`.
                The client sees `tool_calls` if a complete call was shown and nothing was cut off.
            usage: the token counts of all choices together, sent in a chunk of its own at the end.
            choice: the only choice to end; the stream stays open for the others.

        Raises:
            ValueError: if the reason is another one, or usage is given with a choice.
            TypeError: if usage is not a `Usage`.
        """
        check_ending(reason, usage)
        if choice is not None and usage is not None:
            raise ValueError("usage counts all choices: give it to the finish() without a choice")
        if self._is_finished:
            return []
        chunks = [] if (choice or 0) in self._choices else self._open(choice or 0)
        if choice is not None:
            return chunks + self._choices[choice].finish(reason)
        for turn in self._choices.values():
            chunks += turn.finish(reason)
        self._is_finished = True
        return chunks + ([] if usage is None else [self._usage(usage)])

    def fail(self, message: str) -> list[Chunk]:
        """End the stream with an error object, which OpenAI's client raises as an exception.

        Raises:
            TypeError: if the message is not a string.
        """
        check_message(message)
        if self._is_finished:
            return []
        chunks = [] if self._choices else self._open(0)
        for turn in self._choices.values():
            chunks += turn._give_up()
        self._is_finished = True
        return chunks + self._choices[0]._failure(message)

    def _turn(self, choice: int) -> CompletionStream | None:
        # A subclass may change what `feed` returns.
        is_ours = type(self).feed is ChatCompletionStream.feed
        return self._choices.get(choice) if is_ours else None

    def _feed_choice(
        self, choice: int, event: Event, logprobs: Sequence[LogProbability] | None
    ) -> list[Chunk]:
        return self.feed(event, choice=choice, logprobs=logprobs)

    def _finish_choice(
        self, choice: int, reason: Reason | None, usage: Usage | None
    ) -> list[Chunk]:
        return self.finish(reason, usage, choice=choice)

    def _open(self, choice: int) -> list[Chunk]:
        """Open a choice and all before it, since clients take the first to arrive for choice 0."""
        if self._is_finished:
            raise ValueError("the stream is finished: make a new one for the next turn")
        if choice < 0:
            raise ValueError(f"choice is {choice}, expected a number from 0")
        chunks = []
        for number in range(len(self._choices), choice + 1):
            turn = _Choice(self._envelope, number, self._keys, self._separator, self._options)
            self._choices[number] = turn
            chunks += turn._opening()
        return chunks

    def _usage(self, usage: Usage) -> Chunk:
        if (reasoning_tokens := usage.reasoning_tokens) is None:
            reasoning_tokens = sum(turn._reasoning_tokens for turn in self._choices.values())
        return {
            **self._envelope,
            "choices": [],
            "usage": {
                "prompt_tokens": usage.input_tokens,
                "completion_tokens": usage.output_tokens,
                "total_tokens": usage.total_tokens,
                "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
                "completion_tokens_details": {"reasoning_tokens": reasoning_tokens},
            },
        }


class _Choice(CompletionStream):
    """One choice of a stream."""

    def __init__(
        self,
        envelope: Chunk,
        choice: int,
        reasoning_keys: tuple[str, ...],
        separator: str,
        options: StreamOptions,
    ) -> None:
        super().__init__(hide_reasoning=not reasoning_keys, **options)
        self._envelope = envelope
        self._choice = choice
        self._keys = reasoning_keys
        self._separator = separator
        self._calls = 0
        self._problems = 0
        # The kinds of text that the client has received.
        self._heard: set[RouteKind] = set()
        # Of the open message.
        self._text_keys: tuple[str, ...] = ()
        self._is_call = False

    def _chunk(self, delta: Chunk, finish_reason: str | None = None) -> Chunk:
        choice = {"index": self._choice, "delta": delta, "finish_reason": finish_reason}
        return {**self._envelope, "choices": [choice]}

    def _shows(self, route: Route) -> bool:
        return route.kind not in (RouteKind.CODE, RouteKind.WEB_SEARCH)

    def _is_for_client(self, route: Route) -> bool:
        return route.kind in (RouteKind.FUNCTION, RouteKind.SERVER_TOOL)

    def _give_up(self) -> list[Chunk]:
        """End the choice where it is and return its last reports."""
        self._is_finished, self._message.is_open = True, False
        return self._report_rest()

    def _begin(self) -> list[Chunk]:
        return [self._chunk(dict(_FIRST_DELTA))]

    def _start(self, route: Route) -> list[Chunk]:
        # Decided once for each message, since `_delta_chunk` is called for each token.
        self._text_keys = {RouteKind.TEXT: ("content",), RouteKind.REASONING: self._keys}.get(
            route.kind, ()
        )
        if route.kind in self._heard:
            self._message.separator = self._separator
        self._is_call = self._is_for_client(route)
        if not self._is_call:
            return []
        call = {
            "index": self._calls,
            "id": self._new_id("call_"),
            "type": "function",
            "function": {"name": route.full_name, "arguments": ""},
        }
        return [self._chunk({"tool_calls": [call]})]

    def _has_logprobs(self, route: Route) -> bool:
        return route.kind is RouteKind.TEXT

    def _delta_chunk(self, text: str, logprobs: list[Chunk] | None = None) -> Chunk | None:
        if self._text_keys:
            delta: Chunk = dict.fromkeys(self._text_keys, text)
        elif self._is_call:
            delta = {"tool_calls": [{"index": self._calls, "function": {"arguments": text}}]}
        else:
            return None
        # As `_chunk` makes it, without the call.
        choice: Chunk = {"index": self._choice, "delta": delta, "finish_reason": None}
        if logprobs is not None:
            choice["logprobs"] = {"content": logprobs, "refusal": None}
        return {**self._envelope, "choices": [choice]}

    def _end(self, route: Route, is_complete: bool) -> list[Chunk]:
        has_text = self._message.separator is None
        if self._text_keys and has_text:
            self._heard.add(route.kind)
        self._calls += self._is_call
        return []

    def _problem(self, problem: Problem) -> list[Chunk]:
        entry = {"index": self._problems, **problem.to_dict()}
        self._problems += 1
        return [self._chunk({PROBLEMS: [entry]})]

    def _closing(self, reason: Reason, usage: Usage | None) -> list[Chunk]:
        return [self._chunk({}, reason)]

    def _failure(self, message: str) -> list[Chunk]:
        error = {"message": message, "type": "server_error", "param": None, "code": None}
        return [{"error": error}]


def chat_completion(
    source: Completion | Iterable[Event],
    *,
    model: str,
    reason: Reason | None = None,
    usage: Usage | None = None,
    logprobs: Sequence[LogProbability] | None = None,
    reasoning_key: ReasoningKey = "reasoning",
    separator: str = BLANK_LINE,
    fields: Chunk | None = None,
    **options: Unpack[StreamOptions],
) -> Chunk:
    """Return the `chat.completion` object that the stream of a finished turn would have built.

    Args:
        source: a `Completion`, or the events, which also hold the tokens of each text.
        model: the name of the model in the object.
        reason: see `ChatCompletionStream.finish`.
        usage: the token counts; reasoning tokens are counted if they are not given.
        logprobs: one entry for each token.
        reasoning_key: see `ChatCompletionStream`.
        separator: see `ChatCompletionStream`.
        fields: more fields of the object.
        options: see `StreamOptions`.

    Raises:
        ValueError: if the reason is another one, or the start of an event's message is missing.

    >>> import harmony_stream
    >>> completion = harmony_stream.parse([200005, 17196, 200008, 13225, 200002])
    >>> chat_completion(completion, model="gpt-oss-20b")["choices"][0]["message"]
    {'role': 'assistant', 'content': 'Hello'}
    """
    stream = ChatCompletionStream(
        model, reasoning_key=reasoning_key, separator=separator, fields=fields, **options
    )
    chunks: list[Chunk] = []
    for event in events_of(source):
        chunks += stream.feed(event, logprobs=logprobs)
    return join_chunks(chunks + stream.finish(reason, usage))


def join_chunks(chunks: Iterable[Chunk]) -> Chunk:
    """Return the `chat.completion` object that all chunks of a stream build.

    Raises:
        ValueError: if there are no chunks.

    >>> stream = ChatCompletionStream("gpt-oss-20b")
    >>> join_chunks(stream.finish())["choices"][0]["finish_reason"]
    'stop'
    """
    choices: dict[int, Chunk] = {}
    whole: Chunk = {}
    for chunk in chunks:
        whole = {**whole, **chunk}
        for piece in chunk["choices"]:
            choice = choices.setdefault(piece["index"], {"index": piece["index"], "message": {}})
            _add_delta(choice["message"], piece["delta"])
            choice["finish_reason"] = piece["finish_reason"]
            if "logprobs" in piece:
                entries = choice.setdefault("logprobs", {"content": [], "refusal": None})
                entries["content"] += piece["logprobs"]["content"]
    if not whole:
        raise ValueError("no chunks: a stream has at least the one that ends it")
    for choice in choices.values():
        _join_texts(choice["message"])
    ordered = [choices[index] for index in sorted(choices)]
    return {**whole, "object": "chat.completion", "choices": ordered}


def _add_delta(message: Chunk, delta: Chunk) -> None:
    """Add a delta to a message whose texts are lists of pieces, so that the cost stays linear."""
    for key, value in delta.items():
        if key == "role":
            message[key] = value
        elif isinstance(value, str):
            message.setdefault(key, []).append(value)
        elif key == "tool_calls":
            _add_calls(message.setdefault(key, []), value)
        else:
            message.setdefault(key, []).extend(value)


def _add_calls(calls: list[Chunk], pieces: list[Chunk]) -> None:
    for piece in pieces:
        if piece["index"] == len(calls):
            function = {"name": piece["function"]["name"], "arguments": []}
            calls.append({"id": piece["id"], "type": piece["type"], "function": function})
        calls[piece["index"]]["function"]["arguments"].append(piece["function"]["arguments"])


def _join_texts(message: Chunk) -> None:
    for key, value in message.items():
        if key not in ("role", "tool_calls", PROBLEMS):
            message[key] = "".join(value)
    for call in message.get("tool_calls", ()):
        call["function"]["arguments"] = "".join(call["function"]["arguments"])
