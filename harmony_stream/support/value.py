"""Records: values that people build and servers pass around, such as messages and tools.

A *record* is an attrs class that also answers to the pydantic names openai_harmony's users call
(`model_dump`, `model_validate`, `dict(message)`, ...), can be a field of a pydantic model and the
body of a FastAPI endpoint, and can be subclassed with fields of one's own, as a pydantic model can.
Its rules, all taken from openai_harmony 0.0.8 unless a line says otherwise:

- fields are given by keyword; names that no field has are ignored;
- each field has a *kind*, made from its annotation, which takes what pydantic's lax mode takes
  (a mapping for a record, any iterable for a list, a name for an enum member) and otherwise
  raises a `ValueError` that names the field, the value, and what is allowed;
- that error is a pydantic `ValidationError` too, where pydantic is loaded;
- fields can be set, and are then checked again (0.0.8 finds out only when it renders).

pydantic is never imported for any of this, with one exception: a subclass may have fields of types
that no record of this library has (dates, numbers, models), and those pydantic reads, if there is
one.
"""

# ruff: noqa: ANN401 - telling values of any type apart is the work of this module

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum
from functools import cached_property, partial
from inspect import get_annotations
from reprlib import repr as short
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    Optional,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

import attrs

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from types import ModuleType

# Inside the class `Record`, `dict` is a method.
_Fields: TypeAlias = dict[str, Any]

# --- Errors -----------------------------------------------------------------------------------


class FieldError(ValueError):
    """A value that a field cannot hold.

    Attributes:
        place: the way to it: names of fields and keys, numbers of items.
        value: what was given instead.
    """

    def __init__(self, sentence: str, place: tuple[str | int, ...] = (), value: Any = None) -> None:
        super().__init__(sentence, place, value)
        self.place = place
        self.value = value

    def __str__(self) -> str:
        return str(self.args[0])


_Made = TypeVar("_Made")


def within(path: str | _Path, make: Callable[[Any], _Made], value: object) -> _Made:
    """What `make` makes of `value`; its errors name the path on which they came up."""
    try:
        return make(value)
    except ValueError as error:
        inner = plain_error(error)
        place = path.place if isinstance(path, _Path) else ()
        raise FieldError(f"{path}: {inner}", (*place, *inner.place), inner.value) from None


def plain_error(error: ValueError) -> FieldError:
    """The error of a record in one sentence, also if it was raised as pydantic's."""
    inner: BaseException | None = error
    while isinstance(inner, ValueError):
        if isinstance(inner, FieldError):
            return inner
        inner = inner.__context__  # `_familiar` was raised in its place
    return FieldError(str(error))


def _familiar(owner: type, error: FieldError) -> ValueError:
    """The error as 0.0.8 raises it. Who has not loaded pydantic cannot catch its errors."""
    pydantic_core: ModuleType | None = sys.modules.get("pydantic_core")
    if pydantic_core is None:
        return error
    kind = pydantic_core.PydanticCustomError("value_error", "{sentence}", {"sentence": str(error)})
    line = {"type": kind, "loc": error.place, "input": error.value}
    familiar: ValueError = pydantic_core.ValidationError.from_exception_data(owner.__name__, [line])
    return familiar


# --- Kinds: what a field may hold -------------------------------------------------------------


class _Path(NamedTuple):
    """Where a value stands: a field of a record, and the way from there."""

    owner: str
    place: tuple[str | int, ...]
    note: str = ""

    def __str__(self) -> str:
        field, *rest = self.place
        return f"{self.owner}.{field}" + "".join(f"[{step!r}]" for step in rest) + self.note

    def to(self, step: str | int) -> _Path:
        return _Path(self.owner, (*self.place, step))


# The spellings of true and false that pydantic takes.
_TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "off", "0"})


class _FieldKind:
    """What a field may hold: how to read a value, and how to say it in words and JSON schema."""

    def __init__(self, *, optional: bool = False) -> None:
        self.optional = optional

    noun: ClassVar[str]
    json_type: ClassVar[str]

    def read(self, value: object, path: _Path) -> Any:
        """The value as this kind; `path` names the field in errors."""
        return None if value is None and self.optional else self.take(value, path)

    def take(self, value: object, path: _Path) -> Any:
        raise NotImplementedError

    def unfit(self, value: object, path: _Path) -> FieldError:
        allowed = self.in_words() + (" or None" if self.optional else "")
        return FieldError(f"{path}: {short(value)} is not {allowed}", path.place, value)

    def in_words(self) -> str:
        return self.noun

    def json_schema(self) -> dict[str, Any]:
        """The kind as JSON schema, null included."""
        schema = self.schema()
        return {"anyOf": [schema, {"type": "null"}]} if self.optional else schema

    def schema(self) -> dict[str, Any]:
        return {"type": self.json_type}


class _Text(_FieldKind):
    noun = "a string"
    json_type = "string"

    def take(self, value: object, path: _Path) -> str:
        if isinstance(value, str):
            return str.__str__(value)  # the text of a str enum's member, not the member
        if isinstance(value, bytes | bytearray):
            return within(path, bytes.decode, bytes(value))
        raise self.unfit(value, path)


class _Flag(_FieldKind):
    noun = "true or false"
    json_type = "boolean"

    def take(self, value: object, path: _Path) -> bool:
        word = str(value).lower() if isinstance(value, int | str) else ""
        if word not in _TRUE | _FALSE:
            raise self.unfit(value, path)
        return word in _TRUE


class _Object(_FieldKind):
    noun = "a mapping"
    json_type = "object"

    def take(self, value: object, path: _Path) -> dict[Any, Any]:
        if isinstance(value, Mapping):
            return dict(value)
        raise self.unfit(value, path)


class _Choice(_FieldKind):
    def __init__(self, members: dict[str, Enum], *, optional: bool = False) -> None:
        super().__init__(optional=optional)
        self.members = members

    def take(self, value: object, path: _Path) -> Enum:
        member = self.members.get(str.__str__(value)) if isinstance(value, str) else None
        if member is None:
            raise self.unfit(value, path)
        return member

    def in_words(self) -> str:
        return "one of " + ", ".join(map(repr, self.members))

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.members)}


class _Nested(_FieldKind):
    def __init__(self, record: type[Record], *, optional: bool = False) -> None:
        super().__init__(optional=optional)
        self.record = record

    def take(self, value: object, path: _Path) -> Record:
        if isinstance(value, self.record):
            return value
        return within(path, self.record.model_validate, value)

    def in_words(self) -> str:
        return self.record.__name__

    def schema(self) -> dict[str, Any]:
        return self.record.model_json_schema()


class OfItsKind:
    """A list or tuple whose class says something: a field that takes it makes `as_list` of it."""

    __slots__ = ()

    as_list: ClassVar[type[list[Any]]]


class _List(_FieldKind):
    def __init__(self, item: _FieldKind, *, optional: bool = False) -> None:
        super().__init__(optional=optional)
        self.item = item

    def take(self, value: object, path: _Path) -> list[Any]:
        if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping | Record):
            raise self.unfit(value, path)
        items = [self.item.read(each, path.to(i)) for i, each in enumerate(value)]
        return value.as_list(items) if isinstance(value, OfItsKind) else items

    def in_words(self) -> str:
        return f"a list, each {self.item.in_words()}"

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.item.json_schema()}


class _Named(_FieldKind):
    def __init__(self, item: _FieldKind, *, optional: bool = False) -> None:
        super().__init__(optional=optional)
        self.item = item

    def take(self, value: object, path: _Path) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise self.unfit(value, path)
        of_key = path._replace(note=" (key)")
        return {
            _Text().read(name, of_key): self.item.read(each, path.to(name))
            for name, each in value.items()
        }

    def in_words(self) -> str:
        return f"a mapping from names, each to {self.item.in_words()}"

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.item.json_schema()}


class _Foreign(_FieldKind):
    """A type of somebody else's, in a subclass: pydantic reads it, and without it all are taken."""

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

    def take(self, value: object, path: _Path) -> Any:
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


_PLAIN: dict[Any, type[_FieldKind]] = {str: _Text, bool: _Flag, dict[str, Any]: _Object}


def _kind(hint: Any, *, optional: bool = False) -> _FieldKind:
    """The kind an annotation asks for."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (UnionType, Union) and len(arguments) == 2 and arguments[1] is NoneType:
        return _kind(arguments[0], optional=True)
    if origin is not Annotated and hint in _PLAIN:
        return _PLAIN[hint](optional=optional)
    if origin is list:
        return _List(_kind(*arguments), optional=optional)
    if origin is dict and arguments[0] is str:
        return _Named(_kind(arguments[1]), optional=optional)
    if isinstance(hint, type) and issubclass(hint, Record):
        return _Nested(hint, optional=optional)
    if isinstance(hint, type) and issubclass(hint, str) and issubclass(hint, Enum):
        return _Choice({member.value: member for member in hint}, optional=optional)
    return _Foreign(Optional[hint] if optional else hint)  # noqa: UP045 - of any hint


# --- What a record looks like to others -------------------------------------------------------

# Metadata of a field that no dump shows while it is None: one that openai_harmony does not have.
ONLY_WHEN_SET = "only_when_set"


class FieldInfo(NamedTuple):
    """What `model_fields` tells of a field; the names are pydantic's.

    Attributes:
        annotation: its type.
        default: its value if none is given; `...` if there is no such value.
        default_factory: makes that value, or None.
    """

    annotation: Any
    default: Any
    default_factory: Callable[[], Any] | None

    @classmethod
    def of(cls, annotation: Any, attribute: attrs.Attribute[Any]) -> FieldInfo:
        """The info of an attrs attribute."""
        default: Any = attribute.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
            return cls(annotation, ..., default.factory)
        return cls(annotation, ... if default is attrs.NOTHING else default, None)

    def is_required(self) -> bool:
        """Whether the field must be given."""
        return self.default is ... and self.default_factory is None

    def get_default(self) -> Any:
        """The value if none is given, shared with no other record."""
        if self.default_factory is not None:
            return self.default_factory()
        return self.default if self.default.__hash__ else copy.deepcopy(self.default)


class _DataclassView:
    """A record as a dataclass: by these attributes FastAPI knows the body of a request.

    They also tell its encoder, and pydantic where it serializes an `Any`, what is in the record:
    what a dump holds of a record that is part of something else.
    """

    def __init__(self, attribute: str) -> None:
        self.attribute = attribute

    def __get__(self, record: Record | None, owner: type[Record]) -> Any:
        view = getattr(_dataclass_of(owner), self.attribute)
        if record is None or self.attribute != "__dataclass_fields__":
            return view
        return {name: view[name] for name, _ in record._inside()}


def _dataclass_of(owner: type[Record]) -> type:
    made: type | None = vars(owner).get("_dataclass")
    if made is None:
        from dataclasses import make_dataclass

        names = [*owner._marks, *owner.model_fields]
        made = make_dataclass(owner.__name__, names, init=False, repr=False, eq=False)
        owner._dataclass = made
    return made


# What pydantic tells a serializer about the dump under way.
_DUMP_OPTIONS = (
    "mode", "include", "exclude", "exclude_unset", "exclude_defaults", "exclude_none",
)  # fmt: skip


class _Dump(NamedTuple):
    """How values inside a record are dumped."""

    mode: str
    exclude_defaults: bool
    exclude_none: bool

    def plain(self, value: Any) -> Any:
        if isinstance(value, Record):
            return value._dump_inside(**self._asdict())
        if isinstance(value, dict):
            return {key: self.plain(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.plain(each) for each in value]
        if hasattr(value, "model_dump"):
            return value.model_dump(**self._asdict())
        return _jsonable(value) if self.mode == "json" else value


def _selected(value: Any, include: Any, exclude: Any) -> Any:
    """What of a dumped value is wanted: names, numbers of items, or what goes on inside."""
    parts = []
    for key, each in enumerate(value) if isinstance(value, list) else value.items():
        wanted = True if include is None else _rule(include, key, value)
        unwanted = None if exclude is None else _rule(exclude, key, value)
        if wanted is None or _is_whole(unwanted):
            continue
        if isinstance(each, dict | list):
            each = _selected(each, None if _is_whole(wanted) else wanted, unwanted)
        parts.append((key, each))
    return [each for _, each in parts] if isinstance(value, list) else dict(parts)


def _rule(rules: Any, key: Any, value: Any) -> Any:
    """What is said of a key; of an item also by its place from the end, or of all items."""
    found = rules if isinstance(rules, Mapping) else dict.fromkeys(rules, True)
    keys = [key, key - len(value), "__all__"] if isinstance(value, list) else [key]
    return next((found[each] for each in keys if each in found), None)


def _is_whole(rule: Any) -> bool:
    return rule is True or rule is ...


def _jsonable(value: Any) -> Any:
    """A value as JSON has it; of types that only subclasses have, as pydantic writes them."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | int | float):
        return value
    try:
        from pydantic_core import to_jsonable_python
    except ImportError:
        return value
    return to_jsonable_python(value)


# --- Records ----------------------------------------------------------------------------------


@dataclass_transform(kw_only_default=True, field_specifiers=(attrs.field,))
class Record:
    """What every value of the data model can do. Each subclass is an attrs class by itself.

    >>> from harmony_stream.values.messages import Message
    >>> class Rated(Message):
    ...     rating: int = 0
    >>> rated = Rated(author={"role": "user"}, content="Hi", rating=5)
    >>> rated.model_dump(include={"channel", "rating"})
    {'channel': None, 'rating': 5}
    """

    __attrs_attrs__: ClassVar[tuple[attrs.Attribute[Any], ...]] = ()
    __dataclass_fields__: ClassVar[Any] = _DataclassView("__dataclass_fields__")
    __dataclass_params__: ClassVar[Any] = _DataclassView("__dataclass_params__")
    _dataclass: ClassVar[type]
    # Names that are no fields, but stand in dumps of a record inside something else.
    _marks: ClassVar[tuple[str, ...]] = ()

    # By field, in order:
    _kinds: ClassVar[dict[str, _FieldKind]] = {}
    _readers: ClassVar[dict[str, Callable[[Any], Any]]] = {}
    # The defaults that need not be made anew each time.
    _constants: ClassVar[dict[str, Any]] = {}
    model_fields: ClassVar[dict[str, FieldInfo]] = {}
    """The fields by name, as pydantic has them."""

    model_config: ClassVar[_Fields] = {}
    """Nothing, as in 0.0.8."""
    model_computed_fields: ClassVar[_Fields] = {}
    """None, as in 0.0.8."""
    model_extra: ClassVar[None] = None
    """Nothing: names that no field has are ignored."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _refuse_what_pydantic_would_do(cls)
        hints = {name: _hint(cls, hint) for name, hint in get_annotations(cls).items()}
        for name, default in list(vars(cls).items()):
            if hasattr(default, "default_factory") and hasattr(default, "is_required"):
                setattr(cls, name, _field_of(default, f"{cls.__name__}.{name}"))
                hints[name] = Annotated[hints[name], default] if default.metadata else hints[name]
        # In place. `on_setattr`: `__setattr__` below reads values for all.
        attrs.define(
            cls,
            slots=False,
            kw_only=True,
            init=False,
            eq=False,
            repr=False,
            on_setattr=attrs.setters.NO_OP,
            field_transformer=lambda _, fields: [f for f in fields if f.name[0] != "_"],
        )
        cls._learn(hints)

    @classmethod
    def _learn(cls, hints: _Fields) -> None:
        kinds, infos = cls._kinds, cls.model_fields
        cls._kinds, cls._readers, cls.model_fields = {}, {}, {}
        for attribute in cls.__attrs_attrs__:
            name = attribute.name
            is_inherited = name not in hints
            hint = infos[name].annotation if is_inherited else hints[name]
            cls._kinds[name] = kinds[name] if is_inherited else _kind(hint)
            cls._readers[name] = _reader(attribute, cls._kinds[name], cls.__name__)
            cls.model_fields[name] = FieldInfo.of(hint, attribute)
        defaults = {name: info.default for name, info in cls.model_fields.items()}
        cls._constants = {
            name: default
            for name, default in defaults.items()
            if default is not ... and default.__hash__
        }

    def __init__(self, **fields: Any) -> None:
        try:
            self._fill(fields)
        except FieldError as error:
            raise _familiar(type(self), error) from None

    def _fill(self, fields: _Fields) -> None:
        own = self.__dict__
        for name, read in self._readers.items():
            if name in fields:
                own[name] = read(fields[name])
            elif name in self._constants:
                own[name] = self._constants[name]
            else:
                own[name] = self._made_default(name, fields)

    def _made_default(self, name: str, fields: _Fields) -> Any:
        info = self.model_fields[name]
        if info.is_required():
            raise FieldError(f"{type(self).__name__}.{name} is missing", (name,), fields)
        return info.get_default()

    def __setattr__(self, name: str, value: Any) -> None:
        reader = self._readers.get(name)
        if reader is not None:
            value = reader(value)
        elif name[0] != "_" and not hasattr(type(self), name):
            raise NoFieldError(f'"{type(self).__name__}" object has no field "{name}"')
        object.__setattr__(self, name, value)

    # Written once for all records: to have attrs make them for each costs 0.4 ms at import.

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # a record can change

    def __repr__(self) -> str:
        given = [name for name in self._kinds if name in self.__dict__]
        fields = (f"{name}={getattr(self, name)!r}" for name in given)
        return f"{type(self).__qualname__}({', '.join(fields)})"

    def __iter__(self) -> Iterator[Any]:
        """Pairs of name and value, so that `dict` of a record gives its fields as they are.

        >>> from harmony_stream.values.messages import Author
        >>> dict(Author(role="user"))
        {'role': <Role.USER: 'user'>, 'name': None}
        """
        return self._present(_Dump("python", exclude_defaults=False, exclude_none=False))

    # -- As pydantic has it -----------------------------------------------------------------------

    def model_dump(
        self,
        *,
        mode: str = "python",
        include: Collection[Any] | Mapping[Any, Any] | None = None,
        exclude: Collection[Any] | Mapping[Any, Any] | None = None,
        exclude_unset: bool = False,
        exclude_defaults: bool = False,
        exclude_none: bool = False,
        **_ignored: Any,
    ) -> _Fields:
        """The fields as a dict in the shape of the constructor, as pydantic's method of this name.

        Contents inside a message carry their `type`, so that `model_validate` gives the message
        back (0.0.8 loses their text: openai/harmony#78). `include` and `exclude` are as pydantic
        has them: names of fields, or a mapping that goes on inside (`{"author": {"name"}}`,
        `{"content": {0}}`, `{"content": {"__all__": {"type"}}}`). Which fields were given is not
        remembered: `exclude_unset` is taken as `exclude_defaults`.

        >>> from harmony_stream.values.tools import ToolDescription
        >>> ToolDescription.new("lookup", "Looks up.").model_dump(exclude_none=True)
        {'name': 'lookup', 'description': 'Looks up.'}
        """
        nested = _Dump(mode, exclude_defaults or exclude_unset, exclude_none)
        dumped: _Fields = {name: nested.plain(value) for name, value in self._present(nested)}
        if include is None and exclude is None:
            return dumped
        return dict(_selected(dumped, include, exclude))

    def _present(self, dump: _Dump) -> Iterator[tuple[str, Any]]:
        for attribute in self.__attrs_attrs__:
            name = attribute.name
            if name not in self.__dict__:  # made by `model_construct`
                continue
            value = getattr(self, name)
            if value is None and (dump.exclude_none or attribute.metadata.get(ONLY_WHEN_SET)):
                continue
            if dump.exclude_defaults and self._is_default(name, value):
                continue
            yield name, value

    def _is_default(self, name: str, value: Any) -> bool:
        info = self.model_fields[name]
        return not info.is_required() and bool(value == info.get_default())

    def _inside(self) -> Iterator[tuple[str, Any]]:
        """The fields of a record that is part of something else, and what marks it there."""
        yield from ((name, getattr(self, name)) for name in self._marks)
        yield from self._present(_Dump("python", exclude_defaults=False, exclude_none=False))

    def _dump_inside(self, **options: Any) -> _Fields:
        """The dump of a record that is part of something else."""
        marks = {name: getattr(self, name) for name in self._marks}
        return {**marks, **self.model_dump(**options)}

    @classmethod
    def _names_beyond(cls, base: type[Record]) -> list[str]:
        """The fields that a subclass of `base` adds, in order."""
        return [name for name in cls.model_fields if name not in base.model_fields]

    def _beyond(self, base: type[Record]) -> _Fields:
        """The dump of what a subclass of `base` adds."""
        return {} if type(self) is base else self.model_dump(include=self._names_beyond(base))

    def model_dump_json(self, *, indent: int | None = None, **options: Any) -> str:
        """`model_dump` as JSON text, with pydantic's separators and without ASCII escapes.

        >>> from harmony_stream.values.tools import ToolDescription
        >>> ToolDescription.new("lookup", "Looks up.").model_dump_json(exclude_none=True)
        '{"name":"lookup","description":"Looks up."}'
        """
        separators = (",", ":") if indent is None else (",", ": ")
        plain = self.model_dump(**{**options, "mode": "json"})
        return json.dumps(plain, indent=indent, separators=separators, ensure_ascii=False)

    @property
    def model_fields_set(self) -> AbstractSet[str]:
        """The fields that differ from their defaults; which were given is not remembered.

        >>> from harmony_stream.values.messages import Author
        >>> Author(role="user", name=None).model_fields_set
        {'role'}
        """
        return {name for name, value in self.__dict__.items() if not self._is_default(name, value)}

    @classmethod
    def model_validate(cls, obj: Any, **_ignored: Any) -> Self:
        """An instance as it is, or one made from a mapping; otherwise a `ValueError`.

        >>> from harmony_stream.values.tools import ToolDescription
        >>> ToolDescription.model_validate({"name": "lookup", "description": "Looks up."})
        ToolDescription(name='lookup', description='Looks up.', parameters=None)
        """
        if isinstance(obj, cls):
            return obj
        try:
            made: Self = cls._from_plain(obj)
        except ValueError as error:
            raise _familiar(cls, plain_error(error)) from None
        return made

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **_ignored: Any) -> Self:
        """`model_validate` of JSON text.

        >>> from harmony_stream.values.tools import ToolDescription
        >>> ToolDescription.model_validate_json('{"name": "f", "description": "Does f."}').name
        'f'
        """
        try:
            value = json.loads(json_data)
        except (ValueError, RecursionError) as error:
            raise _familiar(cls, FieldError(f"not JSON: {error}", (), json_data)) from None
        return cls.model_validate(value)

    @classmethod
    def _from_plain(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            return cls(**{name: value[name] for name in cls._kinds if name in value})
        sentence = f"{short(value)} is not {cls.__name__} or a mapping of its fields"
        raise FieldError(sentence, (), value)

    @classmethod
    def model_construct(cls, _fields_set: Any = None, **values: Any) -> Self:
        """A record of these values and the defaults, all unchecked, without what else is missing.

        >>> from harmony_stream.values.tools import ToolDescription
        >>> ToolDescription.model_construct(name="f")
        ToolDescription(name='f', parameters=None)
        """
        made = cls.__new__(cls)
        for name, info in cls.model_fields.items():
            if name in values or not info.is_required():
                made.__dict__[name] = values[name] if name in values else info.get_default()
        return made

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy, its own parts shared unless `deep`, with fields set as in `update`.

        >>> from harmony_stream.values.tools import ToolDescription
        >>> ToolDescription.new("f", "Does f.").model_copy(update={"name": "g"}).name
        'g'
        """
        made = copy.deepcopy(self) if deep else copy.copy(self)
        for name, value in (update or {}).items():
            setattr(made, name, value)
        return made

    @classmethod
    def model_json_schema(cls, **_ignored: Any) -> _Fields:
        """What the fields hold, as JSON schema; schemas of records inside stand where they belong.

        >>> from harmony_stream.values.messages import TextContent
        >>> TextContent.model_json_schema()["properties"]
        {'text': {'type': 'string'}}
        """
        return {
            "type": "object",
            "title": cls.__name__,
            "properties": {name: kind.json_schema() for name, kind in cls._kinds.items()},
            "required": [name for name, info in cls.model_fields.items() if info.is_required()],
        }

    @classmethod
    def model_rebuild(cls, **_ignored: Any) -> None:
        """Do nothing: a record is complete when its class is."""

    @classmethod
    def schema_json(cls, **options: Any) -> str:
        """`model_json_schema` as JSON text; options are those of `json.dumps`.

        >>> from harmony_stream.values.messages import TextContent
        >>> '"title": "TextContent"' in TextContent.schema_json()
        True
        """
        return json.dumps(cls.model_json_schema(), **options)

    # The names that pydantic 1 had, and 2 still takes.
    dict = model_dump
    json = model_dump_json
    copy = model_copy
    construct = model_construct
    schema = model_json_schema
    validate = model_validate
    parse_obj = model_validate
    parse_raw = model_validate_json

    # The two hooks by which pydantic learns of a foreign class; only pydantic calls them. In a
    # union such as `Message | dict`, a dict stays one, as with 0.0.8: instances are the strict
    # match, mappings the lax one.

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> Any:
        read = {"type": "no-info", "function": cls.model_validate}
        return {
            "type": "lax-or-strict",
            "lax_schema": {"type": "function-plain", "function": read},
            "strict_schema": {"type": "is-instance", "cls": cls},
            "serialization": {"type": "function-plain", "function": cls._write, "info_arg": True},
        }

    @classmethod
    def __get_pydantic_json_schema__(cls, _core_schema: Any, _handler: Any) -> _Fields:
        return cls.model_json_schema()

    @classmethod
    def _write(cls, value: Any, info: Any) -> _Fields:
        if not isinstance(value, cls):  # another member of a union
            from pydantic_core import PydanticSerializationUnexpectedValue

            raise PydanticSerializationUnexpectedValue(f"expected {cls.__name__}")
        return value._dump_inside(**{name: getattr(info, name) for name in _DUMP_OPTIONS})


class NoFieldError(AttributeError, ValueError):
    """A field that a record does not have was set: pydantic makes a `ValueError` of that."""


def _reader(attribute: attrs.Attribute[Any], kind: _FieldKind, owner: str) -> Callable[[Any], Any]:
    """What makes a value of this field of what was given for it."""
    read = partial(kind.read, path=_Path(owner, (attribute.name,)))
    first: Any = attribute.converter
    return read if first is None else lambda value: read(first(value))


# --- Subclasses -------------------------------------------------------------------------------


def _hint(owner: type, hint: Any) -> Any:
    """An annotation as a type; of one that cannot be found where the class is made, `Any`."""
    if not isinstance(hint, str):
        return hint
    module = vars(sys.modules[owner.__module__])
    try:
        return eval(hint, dict(vars(owner)), dict(module))
    except NameError:
        return Any


def _field_of(given: Any, path: str) -> Any:
    """Of a `Field(...)` of pydantic, the field as attrs has it; what it demands is in the hint."""
    for option in ("alias", "validation_alias", "serialization_alias", "exclude", "frozen"):
        if getattr(given, option) is not None:
            raise TypeError(f"{path}: {option} is not an option of a record's fields; leave it out")
    if given.default_factory is not None:
        return attrs.field(factory=given.default_factory)
    return attrs.field() if given.is_required() else attrs.field(default=given.default)


# What a pydantic model would call or keep to, and no record does.
_NOT_OBEYED = {"Config", "model_config", "model_post_init"}


def _refuse_what_pydantic_would_do(cls: type) -> None:
    for name, value in vars(cls).items():
        if name in _NOT_OBEYED or type(value).__name__ == "PydanticDescriptorProxy":
            raise TypeError(
                f"{cls.__name__}.{name}: a subclass of {cls.__mro__[1].__name__} is not a pydantic "
                "model: its validators, serializers, computed fields and configuration would not "
                "be used; give it fields and methods only"
            )
