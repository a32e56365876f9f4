"""Values of a request, each with its path, so that an error can say where it stands."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from reprlib import repr as short
from typing import Any, NoReturn

import attrs

from harmony_stream.errors import HarmonyError

# What the parser reads back as one name. U+FFFD stands for bytes of the model's that are no text.
_NAME = re.compile(r"[\w./+:\ufffd-]+")


@attrs.frozen(auto_exc=True, slots=False, str=False)
class ConversationError(HarmonyError, ValueError):
    """A request cannot be made a conversation without losing or inventing something.

    Attributes:
        index: place of the message, or input item, in the request; None for what is none.
        field: path of the value at fault, such as `messages[3].tool_call_id`.
        value: what stands there: text, numbers and None as they are, anything else as Python
            shows it, shortened.
        reason: what is wrong with it.
        remedy: what to do about it.

    >>> str(ConversationError(2, "messages[2].role", "bot", "is no role", "give user or assistant"))
    "messages[2].role 'bot' is no role; give user or assistant"
    """

    index: int | None
    field: str
    value: str | int | float | None
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.field} {short(self.value)} {self.reason}; {self.remedy}"


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Objects of OpenAI's client as the dicts that they stand for."""
    return value.model_dump() if hasattr(value, "model_dump") else value


@attrs.frozen
class Field:
    """A value of the request, and where it stands. Objects of OpenAI's client are taken for dicts.

    Attributes:
        value: as it was given; None if it is not there.
        path: from the argument on.
        index: of the message or item that it belongs to.
    """

    value: Any = attrs.field(converter=_plain)
    path: str
    index: int | None = None

    def __getitem__(self, key: str) -> Field:
        """A field of an object."""
        if not isinstance(self.value, Mapping):
            self.fail("is no object", "give a dict")
        return Field(self.value.get(key), f"{self.path}.{key}", self.index)

    def each(self) -> list[Field]:
        """The elements of a list; none if it is not there."""
        return [
            Field(value, f"{self.path}[{number}]", self.index)
            for number, value in enumerate(self._list())
        ]

    def entries(self) -> list[Field]:
        """The elements of the list whose indexes errors name."""
        return [attrs.evolve(field, index=number) for number, field in enumerate(self.each())]

    def _list(self) -> Iterable[Any]:
        if self.value is None:
            return ()
        if isinstance(self.value, str | bytes | Mapping) or not isinstance(self.value, Iterable):
            self.fail("is no list", "give a list")
        return self.value

    def text(self) -> str:
        """The value, which must be a string."""
        if not isinstance(self.value, str):
            self.fail("is no string", "give a string")
        return self.value

    def optional_text(self) -> str:
        """The string; "" if it is not there."""
        return "" if self.value is None else self.text()

    def word(self) -> str:
        """The value, which must be fit to be a name in a header."""
        if not _NAME.fullmatch(self.text()):
            reason = "is no name" if self.value else "is empty"
            self.fail(reason, "give a name of letters, digits and _ $ . / + : -")
        return self.text()

    def one_of(self, known: Collection[str], remedy: str) -> str:
        """The value, which must be one of the strings that are known."""
        if not isinstance(self.value, str) or self.value not in known:
            self.fail(f"is not one of {', '.join(known)}", remedy)
        return self.value

    def fail(self, reason: str, remedy: str) -> NoReturn:
        """Raise what is wrong with the value."""
        raise self.error(reason, remedy)

    def error(self, reason: str, remedy: str) -> ConversationError:
        """Return what is wrong with the value."""
        is_plain = self.value is None or isinstance(self.value, str | int | float)
        value = self.value if is_plain else short(self.value)
        return ConversationError(self.index, self.path, value, reason, remedy)
