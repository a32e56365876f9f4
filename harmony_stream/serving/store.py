"""Responses that later requests go on from: what `previous_response_id` refers to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harmony_stream.serving.errors import RequestError

if TYPE_CHECKING:
    from harmony_stream.adapters.conversations.fields import Field

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
        """Keep the items of a response; the oldest one goes if there are too many."""
        self._items[identity] = items
        if len(self._items) > self._most:
            del self._items[next(iter(self._items))]

    def items_of(self, identity: str) -> list[Any]:
        """The items of a response.

        Raises:
            RequestError: it is not there, or not any more.
        """
        if identity not in self._items:
            raise RequestError(
                f"Previous response with id '{identity}' not found.",
                "previous_response_id",
                "previous_response_not_found",
            )
        return self._items[identity]

    def items_before(self, identity: Field) -> list[Any]:
        """The items of the response that a request goes on from; none if it begins anew.

        Raises:
            HarmonyError: there is no such response.
        """
        return [] if identity.value is None else self.items_of(identity.text())
