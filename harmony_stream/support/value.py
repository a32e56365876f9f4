"""Values: what people build and servers pass around, such as messages and tools.

A *value* is an attrs class that also has the methods of pydantic that users of openai_harmony
call (`model_dump`, `model_validate`, `dict(message)`, ...). It can be a field of a pydantic model
and the body of a FastAPI endpoint. Users can subclass it and add fields, as with a pydantic model.
Its rules are those of openai_harmony 0.0.8, unless a line says otherwise:

- fields are given by keyword; names that no field has are ignored;
- a field holds what its annotation allows (`harmony_stream.support.value_kinds`), and otherwise
  raises a `ValueError`, which is a pydantic `ValidationError` too if pydantic is loaded;
- fields can be set, and are then checked again (0.0.8 checks only when it renders).

pydantic is never imported for any of this, with one exception. A subclass may have fields of types
that no value of this library has (dates, numbers, models). pydantic reads those if it is installed.
"""

# ruff: noqa: ANN401 - fields hold values of any type

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from inspect import get_annotations
from reprlib import repr as short
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    Self,
    TypeAlias,
    dataclass_transform,
)

import attrs

from harmony_stream.support.value_dump import Dump, selected
from harmony_stream.support.value_kinds import (
    FieldError,
    FieldKind,
    FieldPath,
    Nestable,
    familiar_error,
    kind_of,
    plain_error,
)

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

# Inside the class `Value`, `dict` is a method.
_Fields: TypeAlias = dict[str, Any]

# --- The view from outside --------------------------------------------------------------------

# Metadata of a field that no dump shows while it is None: one that openai_harmony does not have.
ONLY_WHEN_SET = "only_when_set"


class FieldInfo(NamedTuple):
    """An entry of `model_fields`, with the names that pydantic uses.

    Attributes:
        annotation: the type of the field.
        default: the value if none is given; `...` if there is none.
        default_factory: the function that makes that value, or None.
    """

    annotation: Any
    default: Any
    default_factory: Callable[[], Any] | None

    @classmethod
    def of(cls, annotation: Any, attribute: attrs.Attribute[Any]) -> FieldInfo:
        """Return the info of an attrs attribute."""
        default: Any = attribute.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
            return cls(annotation, ..., default.factory)
        return cls(annotation, ... if default is attrs.NOTHING else default, None)

    def is_required(self) -> bool:
        """Return True if the field must be given."""
        return self.default is ... and self.default_factory is None

    def get_default(self) -> Any:
        """Return the value if none is given; it is never shared."""
        if self.default_factory is not None:
            return self.default_factory()
        return self.default if self.default.__hash__ else copy.deepcopy(self.default)


class _DataclassView:
    """An attribute by which a value passes for a dataclass.

    FastAPI detects the body of a request by these attributes. Its encoder reads the fields of a
    value from them, and so does pydantic when it serializes an `Any`. These fields are those in the
    dump of a value that is part of something else.
    """

    def __init__(self, attribute: str) -> None:
        self.attribute = attribute

    def __get__(self, value: Value | None, owner: type[Value]) -> Any:
        view = getattr(_dataclass_of(owner), self.attribute)
        if value is None or self.attribute != "__dataclass_fields__":
            return view
        return {name: view[name] for name, _ in value._inside()}


def _dataclass_of(owner: type[Value]) -> type:
    made: type | None = vars(owner).get("_dataclass")
    if made is None:
        from dataclasses import make_dataclass

        names = [*owner._marks, *owner.model_fields]
        made = make_dataclass(owner.__name__, names, init=False, repr=False, eq=False)
        owner._dataclass = made
    return made


# The options of a dump that pydantic passes to a serializer.
_DUMP_OPTIONS = (
    "mode", "include", "exclude", "exclude_unset", "exclude_defaults", "exclude_none",
)  # fmt: skip


# --- Values -----------------------------------------------------------------------------------


@dataclass_transform(kw_only_default=True, field_specifiers=(attrs.field,))
class Value(Nestable):
    """The base of every value. Each subclass becomes an attrs class by itself.

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
    # Names that are not fields, but appear in the dump of a value inside something else.
    _marks: ClassVar[tuple[str, ...]] = ()

    # By field, in order:
    _kinds: ClassVar[dict[str, FieldKind]] = {}
    _readers: ClassVar[dict[str, Callable[[Any], Any]]] = {}
    # The defaults that need not be made again each time.
    _constants: ClassVar[dict[str, Any]] = {}
    model_fields: ClassVar[dict[str, FieldInfo]] = {}
    """The fields by name, as in pydantic."""

    model_config: ClassVar[_Fields] = {}
    """Empty, as in 0.0.8."""
    model_computed_fields: ClassVar[_Fields] = {}
    """Empty, as in 0.0.8."""
    model_extra: ClassVar[None] = None
    """None, since names that no field has are ignored."""

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
            cls._kinds[name] = kinds[name] if is_inherited else kind_of(hint)
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
            raise familiar_error(type(self), error) from None

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

    # Written once for all values: if attrs made them for each, import would take 0.4 ms longer.

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # a value can change

    def __repr__(self) -> str:
        given = [name for name in self._kinds if name in self.__dict__]
        fields = (f"{name}={getattr(self, name)!r}" for name in given)
        return f"{type(self).__qualname__}({', '.join(fields)})"

    def __iter__(self) -> Iterator[Any]:
        """Yield pairs of name and value, so that `dict(value)` holds the fields as they are.

        >>> from harmony_stream.values.messages import Author
        >>> dict(Author(role="user"))
        {'role': <Role.USER: 'user'>, 'name': None}
        """
        return self._present(Dump())

    # -- The methods of pydantic ------------------------------------------------------------------

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
        """Return the fields as a dict in the shape of the constructor, as pydantic does.

        Contents inside a message have their `type`, so that `model_validate` can read the message
        again (0.0.8 loses their text: openai/harmony#78). `include` and `exclude` are those of
        pydantic. They name fields, or map them to rules for the parts inside
        (`{"author": {"name"}}`, `{"content": {0}}`, `{"content": {"__all__": {"type"}}}`). A value
        does not remember which fields were given, so `exclude_unset` means `exclude_defaults`.

        >>> from harmony_stream.values.tools import ToolDescription
        >>> ToolDescription.new("lookup", "Looks up.").model_dump(exclude_none=True)
        {'name': 'lookup', 'description': 'Looks up.'}
        """
        nested = Dump(mode, exclude_defaults or exclude_unset, exclude_none)
        dumped: _Fields = {name: nested.plain(value) for name, value in self._present(nested)}
        if include is None and exclude is None:
            return dumped
        return dict(selected(dumped, include, exclude))

    def _present(self, dump: Dump) -> Iterator[tuple[str, Any]]:
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
        """Yield the marks and fields of a value that is part of something else."""
        yield from ((name, getattr(self, name)) for name in self._marks)
        yield from self._present(Dump())

    def _dump_inside(self, **options: Any) -> _Fields:
        """Return the dump of a value that is part of something else."""
        marks = {name: getattr(self, name) for name in self._marks}
        return {**marks, **self.model_dump(**options)}

    @classmethod
    def _names_beyond(cls, base: type[Value]) -> list[str]:
        """Return the names of the fields that a subclass of `base` adds, in order."""
        return [name for name in cls.model_fields if name not in base.model_fields]

    def _beyond(self, base: type[Value]) -> _Fields:
        """Return the dump of the fields that a subclass of `base` adds."""
        return {} if type(self) is base else self.model_dump(include=self._names_beyond(base))

    def model_dump_json(self, *, indent: int | None = None, **options: Any) -> str:
        """Return `model_dump` as JSON text, with the separators of pydantic and without escapes.

        >>> from harmony_stream.values.tools import ToolDescription
        >>> ToolDescription.new("lookup", "Looks up.").model_dump_json(exclude_none=True)
        '{"name":"lookup","description":"Looks up."}'
        """
        separators = (",", ":") if indent is None else (",", ": ")
        plain = self.model_dump(**{**options, "mode": "json"})
        return json.dumps(plain, indent=indent, separators=separators, ensure_ascii=False)

    @property
    def model_fields_set(self) -> AbstractSet[str]:
        """The fields that differ from their defaults, given or not.

        >>> from harmony_stream.values.messages import Author
        >>> Author(role="user", name=None).model_fields_set
        {'role'}
        """
        return {name for name, value in self.__dict__.items() if not self._is_default(name, value)}

    @classmethod
    def model_validate(cls, obj: Any, **_ignored: Any) -> Self:
        """Return an instance as it is, or make one from a mapping.

        Raises:
            ValueError: if the object is neither, or a field cannot hold its value in the mapping.

        >>> from harmony_stream.values.tools import ToolDescription
        >>> ToolDescription.model_validate({"name": "lookup", "description": "Looks up."})
        ToolDescription(name='lookup', description='Looks up.', parameters=None)
        """
        if isinstance(obj, cls):
            return obj
        try:
            made: Self = cls._from_plain(obj)
        except ValueError as error:
            raise familiar_error(cls, plain_error(error)) from None
        return made

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **_ignored: Any) -> Self:
        """Return the value that JSON text holds, as `model_validate` reads it.

        Raises:
            ValueError: if the text is not JSON, or `model_validate` raises it.

        >>> from harmony_stream.values.tools import ToolDescription
        >>> ToolDescription.model_validate_json('{"name": "f", "description": "Does f."}').name
        'f'
        """
        try:
            value = json.loads(json_data)
        except (ValueError, RecursionError) as error:
            raise familiar_error(cls, FieldError(f"not JSON: {error}", (), json_data)) from None
        return cls.model_validate(value)

    @classmethod
    def _from_plain(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            return cls(**{name: value[name] for name in cls._kinds if name in value})
        sentence = f"{short(value)} is not {cls.__name__} or a mapping of its fields"
        raise FieldError(sentence, (), value)

    @classmethod
    def model_construct(cls, _fields_set: Any = None, **values: Any) -> Self:
        """Return an unchecked value of these fields and the defaults; other fields are missing.

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
        """Return a copy, with fields set as in `update`; it shares its parts unless `deep`.

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
        """Return the JSON schema of the fields; schemas of nested values appear in place.

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
        """Do nothing: a value class is complete once it is made."""

    @classmethod
    def schema_json(cls, **options: Any) -> str:
        """Return `model_json_schema` as JSON text; the options are those of `json.dumps`.

        >>> from harmony_stream.values.messages import TextContent
        >>> '"title": "TextContent"' in TextContent.schema_json()
        True
        """
        return json.dumps(cls.model_json_schema(), **options)

    # The names of pydantic 1, which pydantic 2 keeps.
    dict = model_dump
    json = model_dump_json
    copy = model_copy
    construct = model_construct
    schema = model_json_schema
    validate = model_validate
    parse_obj = model_validate
    parse_raw = model_validate_json

    # The two hooks by which pydantic reads a foreign class; only pydantic calls them. In a union
    # such as `Message | dict`, a dict stays a dict, as in 0.0.8: instances are the strict match,
    # mappings the lax one.

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
    """A field was set that the value does not have. pydantic raises a `ValueError` for that."""


def _reader(attribute: attrs.Attribute[Any], kind: FieldKind, owner: str) -> Callable[[Any], Any]:
    """Return the function that reads what is given for a field."""
    read = partial(kind.read, path=FieldPath(owner, (attribute.name,)))
    first: Any = attribute.converter
    return read if first is None else lambda value: read(first(value))


# --- Subclasses -------------------------------------------------------------------------------


def _hint(owner: type, hint: Any) -> Any:
    """Return an annotation as a type; `Any` if it is not known where the class is made."""
    if not isinstance(hint, str):
        return hint
    module = vars(sys.modules[owner.__module__])
    try:
        return eval(hint, dict(vars(owner)), dict(module))
    except NameError:
        return Any


def _field_of(given: Any, path: str) -> Any:
    """Return the attrs field for a `Field(...)` of pydantic; its constraints go into the hint."""
    for option in ("alias", "validation_alias", "serialization_alias", "exclude", "frozen"):
        if getattr(given, option) is not None:
            raise TypeError(f"{path}: {option} is not an option of a value's fields; leave it out")
    if given.default_factory is not None:
        return attrs.field(factory=given.default_factory)
    return attrs.field() if given.is_required() else attrs.field(default=given.default)


# Names that a pydantic model would call or obey, and a value does not.
_NOT_OBEYED = {"Config", "model_config", "model_post_init"}


def _refuse_what_pydantic_would_do(cls: type) -> None:
    for name, value in vars(cls).items():
        if name in _NOT_OBEYED or type(value).__name__ == "PydanticDescriptorProxy":
            raise TypeError(
                f"{cls.__name__}.{name}: a subclass of {cls.__mro__[1].__name__} is not a pydantic "
                "model: its validators, serializers, computed fields and configuration would not "
                "be used; give it fields and methods only"
            )
