"""Values of a request, each with its path, so that an error can name the place."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from reprlib import repr as short
from typing import Any, NoReturn

import attrs

from harmony_stream.errors import HarmonyError

# A name that the parser reads back as one name. U+FFFD replaces the model's bytes that are not
# text.
_NAME = re.compile(r"[\w./+:\ufffd-]+")


@attrs.frozen(auto_exc=True, slots=False, str=False)
class ConversationError(HarmonyError, ValueError):
    """A request cannot be made a conversation without losing or inventing something.

    Attributes:
        index: position of the message or input item in the request; None for other values.
        field: path of the value at fault, such as `messages[3].tool_call_id`.
        value: the value: text, numbers and None unchanged, anything else as its `repr`, shortened.
        reason: the reason why it is wrong.
        remedy: the remedy.

    >>> str(ConversationError(2, "messages[2].role", "bot", "is not a role", "use user or tool"))
    "messages[2].role 'bot' is not a role; use user or tool"
    """

    index: int | None
    field: str
    value: str | int | float | None
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.field} {short(self.value)} {self.reason}; {self.remedy}"


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Return objects of OpenAI's client as the dicts that they represent."""
    return value.model_dump() if hasattr(value, "model_dump") else value


@attrs.frozen
class Field:
    """A value of the request with its path. Objects of OpenAI's client are read as dicts.

    Attributes:
        value: the value as it was passed, or None if it is missing.
        path: the path of the value, which begins with the argument.
        index: the index of the message or item that it belongs to.
    """

    value: Any = attrs.field(converter=_plain)
    path: str
    index: int | None = None

    def __getitem__(self, key: str) -> Field:
        """Return a field of an object."""
        if not isinstance(self.value, Mapping):
            self.fail("is not an object", "give a dict")
        return Field(self.value.get(key), f"{self.path}.{key}", self.index)

    def each(self) -> list[Field]:
        """Return the elements of a list, `[]` if it is missing."""
        return [
            Field(value, f"{self.path}[{number}]", self.index)
            for number, value in enumerate(self._list())
        ]

    def entries(self) -> list[Field]:
        """Return the elements of the list, with the indexes that errors name."""
        return [attrs.evolve(field, index=number) for number, field in enumerate(self.each())]

    def _list(self) -> Iterable[Any]:
        if self.value is None:
            return ()
        if isinstance(self.value, str | bytes | Mapping) or not isinstance(self.value, Iterable):
            self.fail("is not a list", "give a list")
        return self.value

    def text(self) -> str:
        """Return the value, which must be a string."""
        if not isinstance(self.value, str):
            self.fail("is not a string", "give a string")
        return self.value

    def optional_text(self) -> str:
        """Return the string, or "" if it is missing."""
        return "" if self.value is None else self.text()

    def word(self) -> str:
        """Return the value, which must be valid as a name in a header."""
        if not _NAME.fullmatch(self.text()):
            reason = "is not a name" if self.value else "is empty"
            self.fail(reason, "give a name of letters, digits and _ $ . / + : -")
        return self.text()

    def one_of(self, known: Collection[str], remedy: str) -> str:
        """Return the value, which must be one of the known strings."""
        if not isinstance(self.value, str) or self.value not in known:
            self.fail(f"is not one of {', '.join(known)}", remedy)
        return self.value

    def fail(self, reason: str, remedy: str) -> NoReturn:
        """Raise the error about the value."""
        raise self.error(reason, remedy)

    def error(self, reason: str, remedy: str) -> ConversationError:
        """Return the error about the value."""
        is_plain = self.value is None or isinstance(self.value, str | int | float)
        value = self.value if is_plain else short(self.value)
        return ConversationError(self.index, self.path, value, reason, remedy)
