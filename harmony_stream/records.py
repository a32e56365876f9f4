"""Records: values that people build and servers pass around, such as messages and tools.

A *record* is an attrs class that also answers to the pydantic names openai_harmony's users call
(`model_dump`, `model_validate`, ...) and can be a field of a pydantic model, without importing
pydantic. Its rules, all taken from openai_harmony 0.0.8 unless a line says otherwise:

- fields are given by keyword; names that no field has are ignored;
- each field has a *kind*, made from its annotation, which takes what pydantic's lax mode takes
  (a mapping for a record, any iterable for a list, a name for an enum member) and otherwise
  raises a `ValueError` that names the field, the value, and what is allowed;
- fields can be set, and are then checked again (0.0.8 finds out only when it renders).
"""

# ruff: noqa: ANN401 - telling values of any type apart is the work of this module

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum
from functools import partial
from reprlib import repr as short
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    NamedTuple,
    Self,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import attrs

# --- Kinds: what a field may hold -------------------------------------------------------------

# The spellings of true and false that pydantic takes.
_TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "off", "0"})


class _Kind:
    """What a field may hold: how to read a value, and how to say it in words and JSON schema."""

    def __init__(self, *, optional: bool = False) -> None:
        self.optional = optional

    noun: ClassVar[str]
    json_type: ClassVar[str]

    def read(self, value: object, path: str) -> Any:
        """The value as this kind; `path` names the field in errors."""
        return None if value is None and self.optional else self.take(value, path)

    def take(self, value: object, path: str) -> Any:
        raise NotImplementedError

    def unfit(self, value: object, path: str) -> ValueError:
        allowed = self.in_words() + (" or None" if self.optional else "")
        return ValueError(f"{path}: {short(value)} is not {allowed}")

    def in_words(self) -> str:
        return self.noun

    def json_schema(self) -> dict[str, Any]:
        """The kind as JSON schema, null included."""
        schema = self.schema()
        return {"anyOf": [schema, {"type": "null"}]} if self.optional else schema

    def schema(self) -> dict[str, Any]:
        return {"type": self.json_type}


class _Text(_Kind):
    noun = "a string"
    json_type = "string"

    def take(self, value: object, path: str) -> str:
        if isinstance(value, str):
            return str.__str__(value)  # the text of a str enum's member, not the member
        if isinstance(value, bytes | bytearray):
            return within(path, bytes.decode, bytes(value))
        raise self.unfit(value, path)


class _Flag(_Kind):
    noun = "true or false"
    json_type = "boolean"

    def take(self, value: object, path: str) -> bool:
        word = str(value).lower() if isinstance(value, int | str) else ""
        if word not in _TRUE | _FALSE:
            raise self.unfit(value, path)
        return word in _TRUE


class _Object(_Kind):
    noun = "a mapping"
    json_type = "object"

    def take(self, value: object, path: str) -> dict[Any, Any]:
        if isinstance(value, Mapping):
            return dict(value)
        raise self.unfit(value, path)


class _Choice(_Kind):
    def __init__(self, members: dict[str, Enum], *, optional: bool = False) -> None:
        super().__init__(optional=optional)
        self.members = members

    def take(self, value: object, path: str) -> Enum:
        member = self.members.get(str.__str__(value)) if isinstance(value, str) else None
        if member is None:
            raise self.unfit(value, path)
        return member

    def in_words(self) -> str:
        return "one of " + ", ".join(map(repr, self.members))

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.members)}


class _Nested(_Kind):
    def __init__(self, record: type[Record], *, optional: bool = False) -> None:
        super().__init__(optional=optional)
        self.record = record

    def take(self, value: object, path: str) -> Record:
        if isinstance(value, self.record):
            return value
        return within(path, self.record.model_validate, value)

    def in_words(self) -> str:
        return self.record.__name__

    def schema(self) -> dict[str, Any]:
        return self.record._json_schema()


class OfItsKind:
    """A list or tuple whose class says something: a field that takes it makes `as_list` of it."""

    __slots__ = ()

    as_list: ClassVar[type[list[Any]]]


class _List(_Kind):
    def __init__(self, item: _Kind, *, optional: bool = False) -> None:
        super().__init__(optional=optional)
        self.item = item

    def take(self, value: object, path: str) -> list[Any]:
        if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
            raise self.unfit(value, path)
        items = [self.item.read(each, f"{path}[{i}]") for i, each in enumerate(value)]
        return value.as_list(items) if isinstance(value, OfItsKind) else items

    def in_words(self) -> str:
        return f"a list, each {self.item.in_words()}"

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.item.json_schema()}


class _Named(_Kind):
    def __init__(self, item: _Kind, *, optional: bool = False) -> None:
        super().__init__(optional=optional)
        self.item = item

    def take(self, value: object, path: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise self.unfit(value, path)
        return {
            _Text().read(name, f"{path} (key)"): self.item.read(each, f"{path}[{name!r}]")
            for name, each in value.items()
        }

    def in_words(self) -> str:
        return f"a mapping from names, each to {self.item.in_words()}"

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.item.json_schema()}


_PLAIN: dict[Any, type[_Kind]] = {str: _Text, bool: _Flag, dict[str, Any]: _Object}


def _kind(hint: Any, *, optional: bool = False) -> _Kind:
    """The kind an annotation asks for."""
    if get_origin(hint) is UnionType:
        return _kind(get_args(hint)[0], optional=True)
    if hint in _PLAIN:
        return _PLAIN[hint](optional=optional)
    if get_origin(hint) is list:
        return _List(_kind(*get_args(hint)), optional=optional)
    if get_origin(hint) is dict:
        return _Named(_kind(get_args(hint)[1]), optional=optional)
    if issubclass(hint, Enum):
        return _Choice({member.value: member for member in hint}, optional=optional)
    return _Nested(hint, optional=optional)


_Made = TypeVar("_Made")


def within(path: str, make: Callable[[Any], _Made], value: object) -> _Made:
    """What `make` makes of `value`; its errors name the path on which they came up."""
    try:
        return make(value)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


# --- Records ----------------------------------------------------------------------------------

# What pydantic tells a serializer about the dump under way.
_DUMP_OPTIONS = (
    "mode", "include", "exclude", "exclude_unset", "exclude_defaults", "exclude_none",
)  # fmt: skip

# Metadata of a field that no dump shows while it is None: one that openai_harmony does not have.
ONLY_WHEN_SET = "only_when_set"


class Record:
    """What every value of the data model can do; each of its classes is made by `record`."""

    __slots__ = ()

    __attrs_attrs__: ClassVar[tuple[Any, ...]] = ()

    # By field, in order; set by `record`.
    _kinds: ClassVar[dict[str, _Kind]] = {}
    _required: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **fields: Any) -> None:
        try:
            self.__attrs_init__(**fields)
        except TypeError:  # by a name too many or too few
            known = {name: value for name, value in fields.items() if name in self._kinds}
            for name in self._required:
                if name not in known:
                    raise ValueError(f"{type(self).__name__}.{name} is missing") from None
            self.__attrs_init__(**known)

    # Written once for all records: to have attrs make them for each costs 0.4 ms at import.

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._kinds)

    __hash__ = None  # type: ignore[assignment]  # a record can change

    def __repr__(self) -> str:
        fields = (f"{name}={getattr(self, name)!r}" for name in self._kinds)
        return f"{type(self).__qualname__}({', '.join(fields)})"

    if TYPE_CHECKING:

        def __attrs_init__(self, **fields: Any) -> None: ...

    def model_dump(
        self,
        *,
        mode: str = "python",
        include: Collection[str] | None = None,
        exclude: Collection[str] | None = None,
        exclude_unset: bool = False,
        exclude_defaults: bool = False,
        exclude_none: bool = False,
        **_ignored: Any,
    ) -> dict[str, Any]:
        """The fields as a dict in the shape of the constructor, as pydantic's method of this name.

        Contents inside a message carry their `type`, so that `model_validate` gives the message
        back (0.0.8 loses their text: openai/harmony#78). `include` and `exclude` name fields of
        this record. Which fields were given is not remembered: `exclude_unset` is taken as
        `exclude_defaults`.

        >>> from harmony_stream.tools import ToolDescription
        >>> ToolDescription.new("lookup", "Looks up.").model_dump(exclude_none=True)
        {'name': 'lookup', 'description': 'Looks up.'}
        """
        nested = _Dump(mode, exclude_defaults or exclude_unset, exclude_none)
        return {
            name: nested.plain(value)
            for name, value in self._present(nested)
            if (include is None or name in include) and name not in (exclude or ())
        }

    def _present(self, dump: _Dump) -> Iterator[tuple[str, Any]]:
        for attribute in self.__attrs_attrs__:
            value = getattr(self, attribute.name)
            if value is None and (dump.exclude_none or attribute.metadata.get(ONLY_WHEN_SET)):
                continue
            if dump.exclude_defaults and value == _default(attribute):
                continue
            yield attribute.name, value

    def _dump_inside(self, **options: Any) -> dict[str, Any]:
        """The dump of a record that is part of something else."""
        return self.model_dump(**options)

    def model_dump_json(self, *, indent: int | None = None, **options: Any) -> str:
        """`model_dump` as JSON text, with pydantic's separators and without ASCII escapes.

        >>> from harmony_stream.tools import ToolDescription
        >>> ToolDescription.new("lookup", "Looks up.").model_dump_json(exclude_none=True)
        '{"name":"lookup","description":"Looks up."}'
        """
        separators = (",", ":") if indent is None else (",", ": ")
        plain = self.model_dump(**{**options, "mode": "json"})
        return json.dumps(plain, indent=indent, separators=separators, ensure_ascii=False)

    @classmethod
    def model_validate(cls, obj: Any, **_ignored: Any) -> Self:
        """An instance as it is, or one made from a mapping; otherwise a `ValueError`.

        >>> from harmony_stream.tools import ToolDescription
        >>> ToolDescription.model_validate({"name": "lookup", "description": "Looks up."})
        ToolDescription(name='lookup', description='Looks up.', parameters=None)
        """
        made: Self = obj if isinstance(obj, cls) else cls._from_plain(obj)
        return made

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **_ignored: Any) -> Self:
        """`model_validate` of JSON text.

        >>> from harmony_stream.tools import ToolDescription
        >>> ToolDescription.model_validate_json('{"name": "f", "description": "Does f."}').name
        'f'
        """
        return cls.model_validate(json.loads(json_data))

    @classmethod
    def _from_plain(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            return cls(**{name: value[name] for name in cls._kinds if name in value})
        raise ValueError(f"{short(value)} is not {cls.__name__} or a mapping of its fields")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy, its own parts shared unless `deep`, with fields set as in `update`.

        >>> from harmony_stream.tools import ToolDescription
        >>> ToolDescription.new("f", "Does f.").model_copy(update={"name": "g"}).name
        'g'
        """
        made = copy.deepcopy(self) if deep else copy.copy(self)
        for name, value in (update or {}).items():
            setattr(made, name, value)
        return made

    @classmethod
    def _json_schema(cls) -> dict[str, Any]:
        return {
            "type": "object",
            "title": cls.__name__,
            "properties": {name: kind.json_schema() for name, kind in cls._kinds.items()},
            "required": list(cls._required),
        }

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
    def __get_pydantic_json_schema__(cls, _core_schema: Any, _handler: Any) -> dict[str, Any]:
        return cls._json_schema()

    @classmethod
    def _write(cls, value: Any, info: Any) -> dict[str, Any]:
        if not isinstance(value, cls):  # another member of a union
            from pydantic_core import PydanticSerializationUnexpectedValue

            raise PydanticSerializationUnexpectedValue(f"expected {cls.__name__}")
        return value._dump_inside(**{name: getattr(info, name) for name in _DUMP_OPTIONS})


class _Dump(NamedTuple):
    """How values inside a record are dumped."""

    mode: str
    exclude_defaults: bool
    exclude_none: bool

    def plain(self, value: Any) -> Any:
        if isinstance(value, Record):
            return value._dump_inside(**self._asdict())
        if isinstance(value, Enum) and self.mode == "json":
            return value.value
        if isinstance(value, dict):
            return {key: self.plain(each) for key, each in value.items()}
        return [self.plain(each) for each in value] if isinstance(value, list) else value


def _default(attribute: attrs.Attribute[Any]) -> Any:
    default: Any = attribute.default
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]


_Class = TypeVar("_Class", bound=Record)


@dataclass_transform(kw_only_default=True, field_specifiers=(attrs.field,))
def record(cls: type[_Class]) -> type[_Class]:
    """Make an attrs class whose fields are read by kind, when given and when set."""
    hints = get_type_hints(cls)
    kinds: dict[str, _Kind] = {}

    def read_by_kind(_: type, attributes: list[attrs.Attribute[Any]]) -> list[Any]:
        kinds.update({each.name: _kind(hints[each.name]) for each in attributes})
        return [_converting(each, kinds[each.name], cls.__name__) for each in attributes]

    made = attrs.define(
        cls, kw_only=True, init=False, eq=False, repr=False, field_transformer=read_by_kind
    )
    made._kinds = kinds
    made._required = tuple(
        each.name for each in made.__attrs_attrs__ if each.default is attrs.NOTHING
    )
    return made


def _converting(attribute: attrs.Attribute[Any], kind: _Kind, owner: str) -> attrs.Attribute[Any]:
    read = partial(kind.read, path=f"{owner}.{attribute.name}")
    first = attribute.converter
    return attribute.evolve(converter=attrs.converters.pipe(first, read) if first else read)
