"""Error objects, as in OpenAI's API, for requests that cannot be served."""

from __future__ import annotations

from typing import Any

import attrs

from harmony_stream.adapters.conversations import ConversationError
from harmony_stream.errors import HarmonyError


@attrs.frozen(auto_exc=True, slots=False, str=False)
class RequestError(HarmonyError):
    """A request that is refused. An engine raises it before its first token.

    Attributes:
        message: the error in words, for the client.
        param: the field of the request at fault.
        code: the error as a word, for programs.
        status: the status of the HTTP response.

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
        """Return the body of the response."""
        is_ours = self.status >= 500
        error = {
            "message": self.message,
            "type": "server_error" if is_ours else "invalid_request_error",
            "param": self.param,
            "code": self.code,
        }
        return {"error": error}


FAILED = RequestError("The server failed while it answered this request.", status=500)
"""Response to an error in the server itself.

Details go to the log and are never sent to the client.
"""


def refusal_of(error: HarmonyError) -> RequestError:
    """Return the error for the client if its request caused an error of the library.

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
