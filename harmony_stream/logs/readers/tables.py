"""Logs in columns: Parquet, and Arrow's own files and streams.

Read batch by batch. Each row group of a Parquet file is a part of its own, and is opened in the
process that reads it.
"""

# ruff: noqa: ANN401 - pyarrow is loaded late, and has no types

from __future__ import annotations

import os
from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import attrs

from harmony_stream.logs.parts import LogPart, group
from harmony_stream.logs.readers.arrays import cut_rows
from harmony_stream.logs.readers.paths import ID_FIELDS, LENGTH_FIELDS, PROMPT_FIELDS
from harmony_stream.logs.record import EXPECTED, Ids, Item, LogError, LogRecord, ReadOptions, sound
from harmony_stream.support.extras import need

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harmony_stream.logs.readers.source import Source

_ROWS = 256


@attrs.frozen
class _Columns:
    """The names of the columns by their purpose."""

    ids: str
    prompt: str | None
    lengths: str | None
    metadata: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """All columns that are read."""
        first = (self.ids, self.prompt, self.lengths)
        return [name for name in (*first, *self.metadata) if name is not None]


@attrs.frozen
class RowGroupPart:
    """A row group of a Parquet file, read in the process that has the part.

    Attributes:
        path: the file.
        source: the name of the log.
        group: the number of the row group, from 0.
        first: the number of its first row, from 1.
        columns: the columns to read.
        options: the options for reading them.
    """

    path: str
    source: str
    group: int
    first: int
    columns: _Columns
    options: ReadOptions

    def items(self) -> Iterator[Item]:
        """Return the records of the row group."""
        with open(self.path, "rb") as file:
            parquet = need("pyarrow.parquet").ParquetFile(file)
            batches = parquet.iter_batches(_ROWS, [self.group], self.columns.names)
            yield from _records(self.source, batches, self.columns, self.options, self.first)


def read_parquet(source: Source, options: ReadOptions) -> Iterator[LogPart]:
    """Read the rows of a Parquet file, row group by row group."""
    arrow = need("pyarrow")
    file = source.seekable()
    try:
        parquet = need("pyarrow.parquet").ParquetFile(file)
        columns = _choose(parquet.schema_arrow, options)
    except (arrow.ArrowException, ValueError, OSError, MemoryError) as error:
        raise LogError(source.name, "", _first_line(error)) from None
    if source.path is None:
        batches = parquet.iter_batches(_ROWS, columns=columns.names)
        yield from group(_records(source.name, batches, columns, options, 1))
        return
    first = 1
    size, count = os.stat(source.path).st_size, parquet.num_row_groups
    for number in range(count):
        source.position = size * (number + 1) // count
        yield RowGroupPart(source.path, source.name, number, first, columns, options)
        first += parquet.metadata.row_group(number).num_rows


def read_arrow(source: Source, options: ReadOptions) -> Iterator[LogPart]:
    """Read the rows of an Arrow file (such as Feather), or of an Arrow stream."""
    arrow = need("pyarrow")
    batches: Iterator[Any]
    try:
        if source.head()[:6] == b"ARROW1":
            reader = arrow.ipc.open_file(source.seekable())
            batches = map(reader.get_batch, range(reader.num_record_batches))
        else:
            file = _Watched(source.stream)
            reader = arrow.ipc.open_stream(file)
            batches = _to_the_end(reader, file)
        columns = _choose(reader.schema, options)
    except (arrow.ArrowException, ValueError, OSError, MemoryError) as error:
        raise LogError(source.name, "", _first_line(error)) from None
    return group(_records(source.name, _validated(batches), columns, options, 1))


class _Watched:
    """A stream that records whether the last read returned less than it asked for."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.is_short = False

    def read(self, size: int) -> bytes:
        data: bytes = self.stream.read(size)
        self.is_short = len(data) < size
        return data


def _to_the_end(reader: Any, file: _Watched) -> Iterator[Any]:
    """Return the batches of a stream, which must end with a mark; Arrow does not require it."""
    yield from reader
    if file.is_short:
        raise ValueError("the stream has no mark at its end: it may be cut off")
    if file.stream.peek(1):
        raise ValueError("something follows the end of the stream")


def _validated(batches: Iterable[Any]) -> Iterator[Any]:
    """Check each batch: Arrow trusts the layout in a file, and damaged offsets lead anywhere."""
    for batch in batches:
        batch.validate(full=True)
        yield batch


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _choose(schema: Any, options: ReadOptions) -> _Columns:
    """Return the columns by their purpose, given or detected.

    Raises:
        ValueError: no column has ids, or a given one is not there.
    """
    types = need("pyarrow").types
    lists = [field.name for field in schema if _is_ids(types, field.type)]
    scalars = [field.name for field in schema if _is_scalar(types, field.type)]
    named = [name for name in ID_FIELDS if name in lists]
    others = [name for name in lists if name not in PROMPT_FIELDS]
    if options.ids is None and not named and len(others) > 1:
        raise ValueError(f"which column holds the ids? There are {', '.join(others)}: name one")
    ids = options.ids or next(iter(named or others), None)
    if ids is None or ids not in lists:
        raise ValueError(_no_column(ids, schema))
    prompt = next((name for name in PROMPT_FIELDS if name in lists and name != ids), None)
    lengths = options.lengths or next((name for name in LENGTH_FIELDS if name in scalars), None)
    if lengths is not None and lengths not in scalars:
        raise ValueError(f"no column {lengths} of integers; {_columns_of(schema)}")
    return _Columns(ids, prompt, lengths, tuple(name for name in scalars if name != lengths))


def _no_column(ids: str | None, schema: Any) -> str:
    wanted = f"no column {ids} of lists of integers" if ids else "no column of lists of integers"
    return f"{wanted}; {_columns_of(schema)}"


def _columns_of(schema: Any) -> str:
    return "there are " + ", ".join(f"{field.name} ({field.type})" for field in schema)


def _is_ids(types: Any, kind: Any) -> bool:
    checks = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(check(kind) for check in checks) and types.is_integer(kind.value_type)


def _is_scalar(types: Any, kind: Any) -> bool:
    checks = (types.is_integer, types.is_floating, types.is_boolean, types.is_string)
    return any(check(kind) for check in (*checks, types.is_large_string))


def _records(
    source: str, batches: Iterator[Any], columns: _Columns, options: ReadOptions, first: int
) -> Iterator[Item]:
    arrow = need("pyarrow")
    number = first
    try:
        for batch in batches:
            yield from _items(source, batch, columns, options, number)
            number += batch.num_rows
    except (arrow.ArrowException, ValueError, OSError, MemoryError) as error:
        # Broken data may also ask for more memory than there is.
        reason = f"{_first_line(error) or 'broken'}; what follows cannot be read"
        yield LogError(source, f"row {number}", reason, ends_log=True)


def _items(
    source: str, batch: Any, columns: _Columns, options: ReadOptions, first: int
) -> Iterator[Item]:
    """Return the records of one batch."""
    nothing = [None] * batch.num_rows
    prompts = _id_lists(batch.column(columns.prompt), options) if columns.prompt else nothing
    lengths = batch.column(columns.lengths).to_pylist() if columns.lengths else nothing
    metadata = batch.select(list(columns.metadata)).to_pylist()
    rows = zip(
        _id_lists(batch.column(columns.ids), options), prompts, lengths, metadata, strict=True
    )
    for number, (ids, prompt, length, said) in enumerate(rows, first):
        try:
            yield _record(source, number, ids, prompt, length, said, options)
        except ValueError as error:
            yield LogError(source, f"row {number}", str(error))


def _record(
    source: str,
    number: int,
    ids: Ids | ValueError | None,
    prompt: Ids | ValueError | None,
    length: object,
    metadata: dict[str, Any],
    options: ReadOptions,
) -> LogRecord:
    if ids is None:
        raise ValueError("null, expected token ids")
    prompt_ids = None if prompt is None else sound(prompt)
    said = {name: value for name, value in metadata.items() if value is not None}
    return LogRecord(
        options.trim(sound(ids), length), source, number, "row", prompt=prompt_ids, metadata=said
    )


def _id_lists(column: Any, options: ReadOptions) -> Iterator[Ids | ValueError | None]:
    """Return each list of a column as ids; None for a null, an error for invalid ids."""
    arrow = need("pyarrow")
    if arrow.types.is_fixed_size_list(column.type):
        column = column.cast(arrow.list_(column.type.value_type))
    offsets = column.offsets.to_pylist()
    values = column.values[offsets[0] : offsets[-1]]
    edges = [offset - offsets[0] for offset in offsets]
    nulls = _nulls(values)
    rows = cut_rows(values.fill_null(0).to_numpy(), edges)
    is_null = column.is_null().to_pylist()
    for row, absent, (start, stop) in zip(rows, is_null, pairwise(edges), strict=True):
        place = bisect_left(nulls, start)
        if absent:
            yield None
        elif (stop - start) * values.type.byte_width > options.max_record_bytes:
            yield ValueError(options.too_long())
        elif place < len(nulls) and nulls[place] < stop:
            yield ValueError(f"item {nulls[place] - start} is null, {EXPECTED}")
        else:
            yield row


def _nulls(values: Any) -> list[int]:
    """Return the positions of nulls."""
    if not values.null_count:
        return []
    places = values.is_null().to_numpy(zero_copy_only=False).nonzero()[0]
    return list(map(int, places))
