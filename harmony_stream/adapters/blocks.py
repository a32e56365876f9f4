"""Streams made of blocks: each message is a start, deltas and an end, all with one id.

AG-UI and UI messages differ in names, which are in their tables, and in the end of a call.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Unpack

import attrs

from harmony_stream.adapters.base import Chunk, CompletionStream
from harmony_stream.adapters.routing import CALLS, Route, RouteKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harmony_stream.adapters.options import StreamOptions, Usage


@attrs.frozen
class Block:
    """One kind of block.

    Attributes:
        key: the key of the id, in all chunks of the block.
        prefix: the prefix of the id.
        starts: the chunks that open it.
        delta: type of the chunks that hold text.
        delta_key: the key of that text.
        ends: types of the chunks that close it.
    """

    key: str
    prefix: str
    starts: tuple[Chunk, ...]
    delta: str
    delta_key: str
    ends: tuple[str, ...]


class BlockStream(CompletionStream):
    """A turn as blocks, without log probabilities, which the protocols cannot express."""

    _blocks: ClassVar[Mapping[RouteKind, Block]]

    def __init__(self, *, hide_reasoning: bool = False, **options: Unpack[StreamOptions]) -> None:
        super().__init__(hide_reasoning=hide_reasoning, **options)
        # Of the open message.
        self._block: Block | None = None
        self._identity: Chunk = {}
        # Calls without a result yet, by the tool's name, the oldest first.
        self._unanswered: dict[str, list[str]] = {}

    def _block_of(self, route: Route) -> Block | None:
        if route.kind is RouteKind.REASONING and self._hides_reasoning:
            return None
        return self._blocks.get(route.kind)

    def _keeps(self, route: Route) -> bool:
        return route.kind in CALLS or route.kind is RouteKind.RESULT

    def _start(self, route: Route) -> list[Chunk]:
        self._block = block = self._block_of(route)
        if block is None:
            return []
        identifier = self._new_id(block.prefix)
        self._identity = {block.key: identifier}
        named = {}
        if route.kind in CALLS:
            self._unanswered.setdefault(route.full_name, []).append(identifier)
            named = self._tool(route)
        return [{**start, **self._identity, **named} for start in block.starts]

    def _delta_chunk(self, text: str, logprobs: list[Chunk] | None = None) -> Chunk | None:
        block = self._block
        if block is None:
            return None
        return {"type": block.delta, **self._identity, block.delta_key: text}

    def _end(self, route: Route, is_complete: bool) -> list[Chunk]:
        if route.kind in CALLS:
            return self._call_end(route, self._message.text, is_complete)
        if route.kind is RouteKind.RESULT:
            return self._answer(route)
        block = self._block
        return [{"type": end, **self._identity} for end in block.ends] if block else []

    def _answer(self, route: Route) -> list[Chunk]:
        calls, message = self._unanswered.get(route.name), self._message
        if not calls:
            return self._report("unanswered_result", message.stop, message.stop)
        return self._result(calls.pop(0), message.text)

    @staticmethod
    @abstractmethod
    def _tool(route: Route) -> Chunk:
        """Return the fields about the tool in the chunk that opens a call."""

    @abstractmethod
    def _call_end(self, route: Route, arguments: str, is_complete: bool) -> list[Chunk]:
        """Return the chunks that close a call."""

    @abstractmethod
    def _result(self, call: str, text: str) -> list[Chunk]:
        """Return the chunks of the tool result for the call with this id."""

    def _usage(self, usage: Usage) -> Chunk:
        return {
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "totalTokens": usage.total_tokens,
            "reasoningTokens": self._reasoning_tokens_of(usage),
            "cachedInputTokens": usage.cached_tokens,
        }
