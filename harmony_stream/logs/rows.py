"""Rows of ids in containers of any kind, checked and joined end to end."""

# ruff: noqa: ANN401 - numpy and Arrow are loaded late, and Arrow has no types

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

from harmony_stream.support.extras import MissingExtraError, need
from harmony_stream.vocabulary import FormattingToken, Vocabulary

if TYPE_CHECKING:
    import numpy as np


SPECIAL = Vocabulary.default().special_tokens


START = SPECIAL[FormattingToken.START]
_START_OF_TEXT = SPECIAL[FormattingToken.START_OF_TEXT]


_GREATEST = 2**32 - 1


def is_whole(ids: Any) -> bool:
    """Return True for a full stream, False for a completion.

    `<|startoftext|>` may come before either.

    >>> is_whole([200006, 1428]), is_whole([200005, 17196]), is_whole([])
    (True, False, False)
    """
    first = ids[1:2] if len(ids) and ids[0] == _START_OF_TEXT else ids[:1]
    return len(first) > 0 and bool(first[0] == START)


class Flat(NamedTuple):
    """All rows end to end: ids as uint32, offsets of the rows, and the rows without valid ids.

    An id that does not fit uint32 becomes the greatest one, which is not a token either.
    """

    ids: np.ndarray
    offsets: np.ndarray
    odd: frozenset[int]


def checked(rows: Any) -> Any:
    """Return the container, or a list of its items: it has a length, and its items are rows."""
    numpy, arrow = sys.modules.get("numpy"), sys.modules.get("pyarrow")
    if arrow and isinstance(rows, arrow.ChunkedArray):
        rows = rows.combine_chunks()
    if arrow and isinstance(rows, arrow.Array):
        if not _holds_ids(arrow.types, rows.type):
            raise TypeError(f"an Arrow array of {rows.type}, expected lists of integers")
        return rows
    if numpy and isinstance(rows, numpy.ndarray):
        if not (rows.ndim == 2 or (rows.ndim == 1 and rows.dtype == object)):
            raise TypeError(f"a {rows.ndim}-D array of {rows.dtype}, expected rows of token ids")
        return rows
    return rows if isinstance(rows, list | tuple) else list(rows)


def _holds_ids(types: Any, kind: Any) -> bool:
    checks = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(check(kind) for check in checks) and types.is_integer(kind.value_type)


def ids_at(rows: Any, row: int) -> Any:
    ids = rows[row]
    return ids.as_py() if hasattr(ids, "as_py") else ids


def flatten(rows: Any) -> Flat | None:
    """Return the rows end to end; None if the extra is not installed."""
    try:
        numpy, arrow = need("numpy"), need("pyarrow")
    except MissingExtraError:
        return None
    if isinstance(rows, arrow.Array):
        return _flatten_arrow(numpy, arrow, rows)
    vectors = [_vector(numpy, row) for row in rows]
    lengths = [0 if vector is None else len(vector) for vector in vectors]
    odd = frozenset(row for row, vector in enumerate(vectors) if vector is None)
    whole = [numpy.empty(0, numpy.uint32), *(vector for vector in vectors if vector is not None)]
    offsets = numpy.cumsum([0, *lengths], dtype=numpy.int64)
    return Flat(numpy.concatenate(whole), offsets, odd)


def _vector(numpy: Any, row: Any) -> Any:
    """Return a row as uint32; None if it does not hold integers."""
    try:
        if isinstance(row, numpy.ndarray):
            return _as_uint32(numpy, row) if row.ndim == 1 else None
        if isinstance(row, list | tuple):
            row = array("q", row)
        elif not isinstance(row, array):
            return None
        ids = numpy.frombuffer(row, row.typecode) if row else numpy.empty(0, numpy.uint32)
        return _as_uint32(numpy, ids)
    except (TypeError, OverflowError):
        return None


def _as_uint32(numpy: Any, ids: Any) -> Any:
    """Return integers of any width as uint32; those that do not fit become the greatest one."""
    if ids.dtype.kind not in "iu":
        return None
    wide = ids if ids.dtype.itemsize >= 4 else ids.astype(numpy.int32)
    unsigned = wide.view(f"u{wide.dtype.itemsize}")
    return numpy.minimum(unsigned, unsigned.dtype.type(_GREATEST)).astype(numpy.uint32, copy=False)


def _flatten_arrow(numpy: Any, arrow: Any, rows: Any) -> Flat:
    if arrow.types.is_fixed_size_list(rows.type):
        rows = rows.cast(arrow.list_(rows.type.value_type))
    offsets = rows.offsets.to_numpy()
    values = rows.values[offsets[0] : offsets[-1]]
    offsets = offsets.astype(numpy.int64) - offsets[0]
    odd = list(rows.is_null().to_numpy(zero_copy_only=False).nonzero()[0])
    if values.null_count:
        nulls = values.is_null().to_numpy(zero_copy_only=False).nonzero()[0]
        odd += list(offsets.searchsorted(nulls, "right") - 1)
        values = values.fill_null(0)
    return Flat(_as_uint32(numpy, values.to_numpy()), offsets, frozenset(map(int, odd)))
