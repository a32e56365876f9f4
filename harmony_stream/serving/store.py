"""Responses that later requests continue: those that `previous_response_id` refers to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harmony_stream.adapters import ResponseStream
from harmony_stream.serving.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from harmony_stream.adapters import Chunk
    from harmony_stream.adapters.conversations.fields import Field
    from harmony_stream.adapters.options import Reason, Usage

_MOST = 1000


class ResponseStore:
    """The items of the last responses, in memory: input and output together.

    >>> store = ResponseStore()
    >>> store.keep("resp_1", [{"role": "user", "content": "Hi"}])
    >>> store.items_of("resp_1")
    [{'role': 'user', 'content': 'Hi'}]
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._items: dict[str, list[Any]] = {}

    def keep(self, identity: str, items: list[Any]) -> None:
        """Keep the items of a response, and drop the oldest response if there are too many."""
        self._items[identity] = items
        if len(self._items) > self._most:
            del self._items[next(iter(self._items))]

    def items_of(self, identity: str) -> list[Any]:
        """Return the items of a response.

        Raises:
            RequestError: if the response does not exist or was dropped.
        """
        if identity not in self._items:
            raise RequestError(
                f"Previous response with id '{identity}' not found.",
                "previous_response_id",
                "previous_response_not_found",
            )
        return self._items[identity]

    def items_before(self, identity: Field) -> list[Any]:
        """Return the items of the response that a request continues, or `[]` if it continues none.

        Raises:
            HarmonyError: if the response does not exist.
        """
        return [] if identity.value is None else self.items_of(identity.text())


class StoredResponseStream(ResponseStream):
    """A response that is stored when it ends, before its client can refer to it."""

    _keep: Callable[[Chunk], None] | None = None

    def store_in(self, store: ResponseStore, items: list[Any]) -> None:
        """Store the response in this store when it ends, after these input items."""
        self._keep = lambda response: store.keep(response["id"], [*items, *response["output"]])

    def finish(self, reason: Reason | None = None, usage: Usage | None = None) -> list[Chunk]:
        """End the response, store it, and return its last chunks. A second call returns `[]`."""
        chunks = super().finish(reason, usage)
        if chunks and self._keep is not None:
            self._keep(chunks[-1]["response"])
        return chunks
