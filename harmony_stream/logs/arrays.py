"""Logs of numpy arrays: `.npy`, and `.npz` with lengths and prompts beside the ids."""

# ruff: noqa: ANN401 - arrays of a package that may be missing

from __future__ import annotations

import zipfile
from array import array
from contextlib import ExitStack
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any

from harmony_stream.logs.chunks import Chunk, group
from harmony_stream.logs.extras import need
from harmony_stream.logs.layouts import ID_FIELDS, LENGTH_FIELDS, PROMPT_FIELDS
from harmony_stream.logs.records import (
    EXPECTED,
    GREATEST,
    Ids,
    Item,
    LogError,
    LogRecord,
    Options,
    sound,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harmony_stream.logs.source import Source

_BLOCK = 1 << 20
_LONGEST_ROW = 1 << 28


def read_npy(source: Source, options: Options) -> Iterator[Chunk]:
    """Rows of ids; a 1-D array is one row."""
    try:
        ids = _Array(source.stream)
    except ValueError as error:
        raise LogError(source.name, "", str(error)) from None
    return group(_records(source.name, {"ids": ids}, options))


def read_npz(source: Source, options: Options) -> Iterator[Chunk]:
    """The same, of one array out of several, with lengths and prompts from others."""
    return group(_of_npz(source, options))


class _Array:
    """An array in a file, of which rows are read one after the other."""

    def __init__(self, file: IO[bytes] | Any) -> None:
        formats = need("numpy").lib.format
        self._file = file
        try:
            version = formats.read_magic(file)
            read = (
                formats.read_array_header_1_0
                if version[0] == 1
                else (formats.read_array_header_2_0)
            )
            self.shape, self.is_fortran, self.dtype = read(file)
        except Exception as error:  # numpy raises whatever its tokenizer does
            raise ValueError(f"no .npy array: {error}") from None

    def check(self, most_dimensions: int) -> None:
        """Whether it holds rows of integers that can be read in turn."""
        if self.dtype.kind not in "iu" or not 1 <= len(self.shape) <= most_dimensions:
            raise ValueError(
                f"a {len(self.shape)}-D array of {self.dtype}, expected rows of token ids"
            )
        if min(self.shape) < 0 or self.shape[-1] > _LONGEST_ROW:
            raise ValueError(f"the header promises an array of {self.shape}, which is no log")
        if self.is_fortran and len(self.shape) > 1:
            raise ValueError("the array is in Fortran order: save numpy.ascontiguousarray of it")

    def rows(self) -> Iterator[Ids | ValueError]:
        """Each row; a file that is cut ends early."""
        numpy = need("numpy")
        count, width = (1, *self.shape) if len(self.shape) == 1 else self.shape
        size = width * self.dtype.itemsize
        step = max(1, _BLOCK // max(1, size))
        for first in range(0, count, step):
            wanted = min(step, count - first)
            data = self._file.read(wanted * size)
            whole = len(data) // size if size else wanted
            block = numpy.frombuffer(data[: whole * size], self.dtype)
            yield from cut_rows(block, [width * row for row in range(whole + 1)])
            if whole < wanted:
                return

    @property
    def count(self) -> int:
        """How many rows there should be."""
        return 1 if len(self.shape) == 1 else int(self.shape[0])


def _of_npz(source: Source, options: Options) -> Iterator[Item]:
    with ExitStack() as stack:
        try:
            archive = stack.enter_context(zipfile.ZipFile(source.seekable()))
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            wanted = _wanted(names, options)
            arrays = {
                what: _Array(stack.enter_context(archive.open(f"{name}.npy")))
                for what, name in wanted.items()
            }
        except (zipfile.BadZipFile, ValueError) as error:
            raise LogError(source.name, "", str(error)) from None
        yield from _records(source.name, arrays, options)


def _wanted(names: list[str], options: Options) -> dict[str, str]:
    """Which array is what, by what it is called or told to be."""
    found = {
        "ids": options.ids or _first(ID_FIELDS, names) or (names[0] if len(names) == 1 else None),
        "lengths": options.lengths or _first(LENGTH_FIELDS, names),
        "prompt": _first(PROMPT_FIELDS, names),
    }
    if found["ids"] is None:
        raise ValueError(f"which array holds the ids? There are {', '.join(names)}: name one")
    for name in found.values():
        if name is not None and name not in names:
            raise ValueError(f"no array {name}; there are {', '.join(names)}")
    return {what: name for what, name in found.items() if name is not None}


def _first(wanted: tuple[str, ...], names: list[str]) -> str | None:
    return next((name for name in wanted if name in names), None)


def _records(name: str, arrays: dict[str, _Array], options: Options) -> Iterator[Item]:
    ids = arrays["ids"]
    try:
        ids.check(2)
        if "lengths" in arrays:
            arrays["lengths"].check(1)
        if "prompt" in arrays:
            arrays["prompt"].check(2)
    except ValueError as error:
        raise LogError(name, "", str(error)) from None
    lengths = _lengths(arrays.get("lengths"))
    prompts = arrays["prompt"].rows() if "prompt" in arrays else iter(())
    number = 0
    for number, row in enumerate(ids.rows(), 1):
        prompt = next(prompts, None)
        try:
            yield _record(row, prompt, next(lengths, None), name, number, options)
        except ValueError as error:
            yield LogError(name, f"row {number}", str(error))
    if number < ids.count:
        reason = f"the file is cut off: {ids.count} rows were promised"
        yield LogError(name, f"row {number + 1}", reason, is_cut=True)


def _record(
    row: Ids | ValueError,
    prompt: Ids | ValueError | None,
    length: int | None,
    name: str,
    number: int,
    options: Options,
) -> LogRecord:
    prompt_ids = None if prompt is None else options.trim(sound(prompt))
    return LogRecord(options.trim(sound(row), length), name, number, "row", prompt=prompt_ids)


def _lengths(lengths: _Array | None) -> Iterator[int]:
    for row in () if lengths is None else lengths.rows():
        yield from sound(row)


def cut_rows(values: Any, edges: list[int]) -> Iterator[Ids | ValueError]:
    """Rows of integers that lie end to end, as checked ids; an error for a row that is none.

    >>> import numpy
    >>> list(cut_rows(numpy.array([5, 6, 7]), [0, 2, 3]))
    [array('I', [5, 6]), array('I', [7])]
    """
    # Checked and copied all at once: calls of numpy cost microseconds each.
    if len(values) and (values.min() < 0 or values.max() > GREATEST):
        yield from (_checked(values[start:stop]) for start, stop in pairwise(edges))
        return
    data = values.astype("u4").tobytes()
    for start, stop in pairwise(edges):
        yield array("I", data[4 * start : 4 * stop])


def _checked(row: Any) -> Ids | ValueError:
    bad = ((row < 0) | (row > GREATEST)).nonzero()[0]
    if len(bad):
        return ValueError(f"item {bad[0]} is {row[bad[0]]}, {EXPECTED}")
    return array("I", row.astype("u4").tobytes())
