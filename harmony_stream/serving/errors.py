"""What a client gets when a request cannot be served: error objects as OpenAI's API has them."""

from __future__ import annotations

from typing import Any

import attrs

from harmony_stream.adapters.conversations import ConversationError
from harmony_stream.errors import HarmonyError


@attrs.frozen(auto_exc=True, slots=False, str=False)
class RequestError(HarmonyError):
    """A request that is refused. An engine raises it before its first token.

    Attributes:
        message: what is wrong, for the client.
        param: the field of the request at fault.
        code: a word that programs can look for.
        status: of the HTTP response.

    >>> error = RequestError("The model `x` does not exist.", "model", "model_not_found", 404)
    >>> error.to_dict()["error"]["type"]
    'invalid_request_error'
    """

    message: str
    param: str | None = None
    code: str | None = None
    status: int = 400

    def __str__(self) -> str:
        return self.message

    def to_dict(self) -> dict[str, Any]:
        """The body of the response."""
        is_ours = self.status >= 500
        error = {
            "message": self.message,
            "type": "server_error" if is_ours else "invalid_request_error",
            "param": self.param,
            "code": self.code,
        }
        return {"error": error}


FAILED = RequestError("The server failed while it answered this request.", status=500)
"""Of faults in the server itself; what they are stands in its log."""


def refusal_of(error: HarmonyError) -> RequestError:
    """What is said to the client about an error of the library, which its request caused.

    >>> from harmony_stream.adapters.conversations import conversation_from_chat
    >>> try:
    ...     conversation_from_chat([{"role": "bot"}])
    ... except HarmonyError as error:
    ...     refusal_of(error).param
    'messages[0].role'
    """
    if isinstance(error, RequestError):
        return error
    param = error.field if isinstance(error, ConversationError) else None
    return RequestError(str(error), param)
