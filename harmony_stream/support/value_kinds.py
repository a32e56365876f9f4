"""The kinds of fields: what each field of a value may hold.

Each field of a `Value` has a *kind*, made from its annotation by `kind_of`. A kind reads what
pydantic's lax mode reads (a mapping for a nested value, any iterable for a list, a name for an enum
member). For anything else it raises a `FieldError` that names the field, what was given, and what
is allowed. Kinds also provide the words of errors and the JSON schema.

`Value` is made with kinds, so kinds cannot import it. They need only a part of it, `Nestable`.
"""

# ruff: noqa: ANN401 - distinguishing values of any type is the work of this module

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cached_property
from reprlib import repr as short
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    Optional,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

if TYPE_CHECKING:
    from types import ModuleType

# --- Errors -----------------------------------------------------------------------------------


class FieldError(ValueError):
    """A value that a field cannot hold.

    Attributes:
        place: the path to it: names of fields, keys, indexes of items.
        value: the value that was given.
    """

    def __init__(self, sentence: str, place: tuple[str | int, ...] = (), value: Any = None) -> None:
        super().__init__(sentence, place, value)
        self.place = place
        self.value = value

    def __str__(self) -> str:
        return str(self.args[0])


_Made = TypeVar("_Made")


def within(path: str | FieldPath, make: Callable[[Any], _Made], value: object) -> _Made:
    """Return `make(value)`, and put the path before the sentence of an error that it raises.

    Raises:
        FieldError: if `make` raises a `ValueError`.
    """
    try:
        return make(value)
    except ValueError as error:
        inner = plain_error(error)
        place = path.place if isinstance(path, FieldPath) else ()
        raise FieldError(f"{path}: {inner}", (*place, *inner.place), inner.value) from None


def plain_error(error: ValueError) -> FieldError:
    """Return the error of a value in one sentence, also if it was raised as pydantic's."""
    inner: BaseException | None = error
    while isinstance(inner, ValueError):
        if isinstance(inner, FieldError):
            return inner
        inner = inner.__context__  # `familiar_error` was raised in its place
    return FieldError(str(error))


def familiar_error(owner: type, error: FieldError) -> ValueError:
    """Return the error as openai_harmony raises it, or as it is if pydantic is not loaded."""
    # A caller who has not loaded pydantic cannot catch its errors.
    pydantic_core: ModuleType | None = sys.modules.get("pydantic_core")
    if pydantic_core is None:
        return error
    kind = pydantic_core.PydanticCustomError("value_error", "{sentence}", {"sentence": str(error)})
    line = {"type": kind, "loc": error.place, "input": error.value}
    familiar: ValueError = pydantic_core.ValidationError.from_exception_data(owner.__name__, [line])
    return familiar


class FieldPath(NamedTuple):
    """The path to a part of a field, for errors."""

    owner: str
    place: tuple[str | int, ...]
    is_key: bool = False

    def __str__(self) -> str:
        field, *steps = self.place[:-2] if self.is_key else self.place
        inside = "".join(f"[{step!r}]" for step in steps)
        return f"{self.owner}.{field}{inside}{' (key)' if self.is_key else ''}"

    def to(self, step: str | int) -> FieldPath:
        """Return the path with one more step, which is a key or an index."""
        return FieldPath(self.owner, (*self.place, step))

    def to_key(self, key: object) -> FieldPath:
        """Return the path to a key itself, as in pydantic."""
        step = key if isinstance(key, int) else str(key)
        return FieldPath(self.owner, (*self.place, step, "[key]"), is_key=True)


# --- Classes that kinds know ------------------------------------------------------------------


class Nestable:
    """The base of `Value`, with what kinds and dumps need of the class of a nested value."""

    if TYPE_CHECKING:

        @classmethod
        def model_validate(cls, obj: Any) -> Any: ...

        @classmethod
        def model_json_schema(cls) -> dict[str, Any]: ...

        def _dump_inside(self, **options: Any) -> dict[str, Any]: ...


class OfItsKind:
    """A list or tuple whose class has a meaning. A field that reads it makes an `as_list` of it."""

    __slots__ = ()

    as_list: ClassVar[type[list[Any]]]


# --- Kinds ------------------------------------------------------------------------------------

# The spellings of true and false that pydantic reads.
_FLAGS = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "off", "0"), False),
}


def _spelling(value: object) -> str | None:
    """Return the text of a string, of a member of a str enum or of bytes; None for the rest."""
    if isinstance(value, str):
        return str.__str__(value)  # the text of a member, not the member
    # Bytes that are not UTF-8 spell nothing that is allowed, replaced or not.
    return bytes(value).decode(errors="replace") if isinstance(value, bytes | bytearray) else None


def _name(key: object, path: FieldPath) -> str:
    """Return the key of a mapping as text."""
    return key if type(key) is str else TextKind().read(key, path.to_key(key))


class FieldKind:
    """One kind, which reads a field, and names what is allowed in words and as JSON schema."""

    def __init__(self, *, optional: bool = False) -> None:
        self.optional = optional

    noun: ClassVar[str]
    json_type: ClassVar[str]

    def read(self, value: object, path: FieldPath) -> Any:
        """Return the value as this kind; `path` names the field in errors.

        Raises:
            FieldError: if the field cannot hold the value.
        """
        return None if value is None and self.optional else self.take(value, path)

    def take(self, value: object, path: FieldPath) -> Any:
        raise NotImplementedError

    def unfit(self, value: object, path: FieldPath) -> FieldError:
        allowed = self.in_words() + (" or None" if self.optional else "")
        return FieldError(f"{path}: {short(value)} is not {allowed}", path.place, value)

    def in_words(self) -> str:
        return self.noun

    def json_schema(self) -> dict[str, Any]:
        """Return the kind as JSON schema, null included."""
        schema = self.schema()
        return {"anyOf": [schema, {"type": "null"}]} if self.optional else schema

    def schema(self) -> dict[str, Any]:
        return {"type": self.json_type}


class TextKind(FieldKind):
    noun = "a string"
    json_type = "string"

    def take(self, value: object, path: FieldPath) -> str:
        if isinstance(value, str):
            return str.__str__(value)  # the text of a str enum's member, not the member
        if isinstance(value, bytes | bytearray):
            return within(path, bytes.decode, bytes(value))
        raise self.unfit(value, path)


class FlagKind(FieldKind):
    noun = "true or false"
    json_type = "boolean"

    def take(self, value: object, path: FieldPath) -> bool:
        if isinstance(value, int | float) and value in (0, 1):
            return bool(value)
        spelling = _spelling(value) if isinstance(value, str | bytes) else None
        flag = None if spelling is None else _FLAGS.get(spelling.lower())
        if flag is None:
            raise self.unfit(value, path)
        return flag


class ObjectKind(FieldKind):
    """A mapping of anything. `dict[str, Any]` accepts any keys, like openai_harmony's `dict`."""

    noun = "a mapping"
    json_type = "object"

    def take(self, value: object, path: FieldPath) -> dict[Any, Any]:
        if isinstance(value, Mapping):
            return dict(value)
        raise self.unfit(value, path)


class ChoiceKind(FieldKind):
    """A member of a str enum."""

    def __init__(self, members: dict[str, Enum], *, optional: bool = False) -> None:
        super().__init__(optional=optional)
        self.members = members

    def take(self, value: object, path: FieldPath) -> Enum:
        spelling = _spelling(value)
        member = None if spelling is None else self.members.get(spelling)
        if member is None:
            raise self.unfit(value, path)
        return member

    def in_words(self) -> str:
        return "one of " + ", ".join(map(repr, self.members))

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.members)}


class NestedKind(FieldKind):
    """A nested value."""

    def __init__(self, nested: type[Nestable], *, optional: bool = False) -> None:
        super().__init__(optional=optional)
        self.nested = nested

    def take(self, value: object, path: FieldPath) -> Nestable:
        if isinstance(value, self.nested):
            return value
        made: Nestable = within(path, self.nested.model_validate, value)
        return made

    def in_words(self) -> str:
        return self.nested.__name__

    def schema(self) -> dict[str, Any]:
        return self.nested.model_json_schema()


# Types that are iterable, but not lists. Iterating a value yields its fields.
_NO_LISTS = (str, bytes, bytearray, Mapping, Nestable)


class ListKind(FieldKind):
    def __init__(self, item: FieldKind, *, optional: bool = False) -> None:
        super().__init__(optional=optional)
        self.item = item

    def take(self, value: object, path: FieldPath) -> list[Any]:
        if not isinstance(value, Iterable) or isinstance(value, _NO_LISTS):
            raise self.unfit(value, path)
        items = [self.item.read(each, path.to(i)) for i, each in enumerate(value)]
        return value.as_list(items) if isinstance(value, OfItsKind) else items

    def in_words(self) -> str:
        return f"a list, each {self.item.in_words()}"

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.item.json_schema()}


class NamedKind(FieldKind):
    """A mapping from names to items of one kind."""

    def __init__(self, item: FieldKind, *, optional: bool = False) -> None:
        super().__init__(optional=optional)
        self.item = item

    def take(self, value: object, path: FieldPath) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise self.unfit(value, path)
        return {_name(key, path): self.item.read(each, path.to(key)) for key, each in value.items()}

    def in_words(self) -> str:
        return f"a mapping from names, each to {self.item.in_words()}"

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.item.json_schema()}


class ForeignKind(FieldKind):
    """A type that only subclasses have. pydantic reads it. Without pydantic, anything passes."""

    def __init__(self, hint: Any) -> None:
        super().__init__()
        self.hint = hint

    @cached_property
    def adapter(self) -> Any:
        try:
            from pydantic import TypeAdapter
        except ImportError:
            return None
        return TypeAdapter(self.hint)

    def in_words(self) -> str:
        return self.hint.__name__ if isinstance(self.hint, type) else str(self.hint)

    def take(self, value: object, path: FieldPath) -> Any:
        if self.adapter is None:
            return value
        try:
            return self.adapter.validate_python(value)
        except ValueError as error:
            first = error.errors()[0]  # type: ignore[attr-defined]
            sentence = f"{path}: {short(value)} is refused: {first['msg']}"
            raise FieldError(sentence, (*path.place, *first["loc"]), value) from None

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {} if self.adapter is None else self.adapter.json_schema()
        return schema


_PLAIN: dict[Any, type[FieldKind]] = {str: TextKind, bool: FlagKind, dict[str, Any]: ObjectKind}


def kind_of(hint: Any, *, optional: bool = False) -> FieldKind:
    """Return the kind for an annotation."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (UnionType, Union) and len(arguments) == 2 and arguments[1] is NoneType:
        return kind_of(arguments[0], optional=True)
    if origin is not Annotated and hint in _PLAIN:
        return _PLAIN[hint](optional=optional)
    if origin is list:
        return ListKind(kind_of(*arguments), optional=optional)
    if origin is dict and arguments[0] is str:
        return NamedKind(kind_of(arguments[1]), optional=optional)
    if isinstance(hint, type) and issubclass(hint, Nestable):
        return NestedKind(hint, optional=optional)
    if isinstance(hint, type) and issubclass(hint, str) and issubclass(hint, Enum):
        return ChoiceKind({member.value: member for member in hint}, optional=optional)
    return ForeignKind(Optional[hint] if optional else hint)  # noqa: UP045 - of any hint
