"""Logs of numpy arrays: `.npy`, and `.npz` with lengths and prompts beside the ids."""

# ruff: noqa: ANN401 - arrays of a package that may be missing

from __future__ import annotations

import zipfile
from array import array
from contextlib import ExitStack
from itertools import chain, pairwise, repeat
from typing import IO, TYPE_CHECKING, Any

from harmony_stream.logs.parts import LogPart, group
from harmony_stream.logs.readers.paths import ID_FIELDS, LENGTH_FIELDS, PROMPT_FIELDS
from harmony_stream.logs.record import (
    EXPECTED,
    GREATEST,
    Ids,
    Item,
    LogError,
    LogRecord,
    ReadOptions,
    sound,
)
from harmony_stream.support.extras import need

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harmony_stream.logs.readers.source import Source

_BLOCK = 1 << 20


def read_npy(source: Source, options: ReadOptions) -> Iterator[LogPart]:
    """Read rows of ids; a 1-D array is one row."""
    try:
        ids = _Array(source.stream)
    except ValueError as error:
        raise LogError(source.name, "", str(error)) from None
    return group(_records(source.name, {"ids": ids}, options))


def read_npz(source: Source, options: ReadOptions) -> Iterator[LogPart]:
    """Read rows of ids from one array of an archive, with lengths and prompts from others."""
    return group(_of_npz(source, options))


class _Array:
    """An array in a file, whose rows are read one after the other."""

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
        except Exception as error:  # numpy lets the errors of its tokenizer through
            raise ValueError(f"not a .npy array: {error}") from None

    def check(self, most_dimensions: int) -> None:
        """Raise `ValueError` unless it holds rows of integers that can be read in turn."""
        if self.dtype.kind not in "iu" or not 1 <= len(self.shape) <= most_dimensions:
            raise ValueError(
                f"a {len(self.shape)}-D array of {self.dtype}, expected rows of token ids"
            )
        if min(self.shape) < 0 or (self.row_bytes == 0 and self.count > _BLOCK):
            raise ValueError(f"the header promises an array of {self.shape}, which is not a log")
        if self.is_fortran and len(self.shape) > 1:
            raise ValueError("the array is in Fortran order: save numpy.ascontiguousarray of it")

    def rows(self) -> Iterator[Ids | ValueError]:
        """Return each row; a file that is cut ends early.

        Raises:
            OSError: the file cannot be read further, with the reason.
        """
        width = self.shape[-1]
        for block, rows in self._blocks(self.count, width):
            yield from cut_rows(block, [width * row for row in range(rows + 1)])

    def values(self) -> Iterator[int]:
        """Return each integer of a 1-D array."""
        blocks = self._blocks(int(self.shape[0]), 1)
        return chain.from_iterable(block.tolist() for block, _ in blocks)

    def _blocks(self, count: int, width: int) -> Iterator[tuple[Any, int]]:
        """Return `count` rows in blocks, each with its number of whole rows."""
        numpy = need("numpy")
        size = width * self.dtype.itemsize
        step = max(1, _BLOCK // max(1, size))
        for first in range(0, count, step):
            wanted = min(step, count - first)
            data = self._read(wanted * size)
            whole = len(data) // size if size else wanted
            yield numpy.frombuffer(data[: whole * size], self.dtype), whole
            if whole < wanted:
                return

    def _read(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except LogError:
            raise
        except Exception as error:  # an archive lets the errors of its decoders through
            raise OSError(f"the data are broken: {error}") from None

    @property
    def count(self) -> int:
        """The number of rows in the header."""
        return 1 if len(self.shape) == 1 else int(self.shape[0])

    @property
    def row_bytes(self) -> int:
        """The size of a row in the file."""
        return int(self.shape[-1] * self.dtype.itemsize)

    def has_more(self) -> bool:
        """Return whether something follows the array in its file."""
        return bool(self._read(1))


def _of_npz(source: Source, options: ReadOptions) -> Iterator[Item]:
    file = source.seekable()
    with ExitStack() as stack:
        try:
            archive = stack.enter_context(zipfile.ZipFile(file))
            files = [name for name in archive.namelist() if name.endswith(".npy")]
            names = [name.removesuffix(".npy") for name in files]
            wanted = _wanted(names, options)
            arrays = {
                what: _Array(stack.enter_context(archive.open(f"{name}.npy")))
                for what, name in wanted.items()
            }
        except (zipfile.BadZipFile, RuntimeError, OSError, ValueError) as error:
            raise LogError(source.name, "", str(error)) from None
        yield from _records(source.name, arrays, options)


def _wanted(names: list[str], options: ReadOptions) -> dict[str, str]:
    """Return the name of each array by its purpose, given or detected."""
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


def _records(name: str, arrays: dict[str, _Array], options: ReadOptions) -> Iterator[Item]:
    try:
        _check(arrays, options)
    except ValueError as error:
        raise LogError(name, "", str(error)) from None
    number = 0
    try:
        for number, (row, prompt, length) in enumerate(_rows(arrays), 1):
            try:
                yield _record(row, prompt, length, name, number, options)
            except ValueError as error:
                yield LogError(name, f"row {number}", str(error))
        yield from _rest(arrays, name, number)
    except OSError as error:
        reason = f"{error}; what follows cannot be read"
        yield LogError(name, f"row {number + 1}", reason, ends_log=True)


def _check(arrays: dict[str, _Array], options: ReadOptions) -> None:
    """Refuse arrays that do not hold rows, or differ in the number of rows."""
    for what, array_ in arrays.items():
        array_.check(1 if what == "lengths" else 2)
        rows = arrays["ids"].count
        count = int(array_.shape[0]) if what == "lengths" else array_.count
        if count != rows:
            raise ValueError(f"{count} {_NAMES[what]} for {rows} rows of ids")
        if what != "lengths" and array_.row_bytes > options.max_record_bytes:
            raise ValueError(f"a row of {array_.row_bytes} bytes: {options.too_long()}")


_NAMES = {"ids": "rows", "prompt": "prompts", "lengths": "lengths"}


def _rows(arrays: dict[str, _Array]) -> Iterator[tuple[Any, Any, int | None]]:
    """Return the ids of each row, of its prompt, and its length; None without such an array."""
    nothing = repeat(None)
    prompts = arrays["prompt"].rows() if "prompt" in arrays else nothing
    lengths = arrays["lengths"].values() if "lengths" in arrays else nothing
    return zip(arrays["ids"].rows(), prompts, lengths, strict=False)


def _rest(arrays: dict[str, _Array], name: str, number: int) -> Iterator[LogError]:
    """Return the error at the end of the rows, if there is one."""
    count = arrays["ids"].count
    if number < count:
        reason = f"the file is cut off: {count} rows were promised"
        yield LogError(name, f"row {number + 1}", reason, ends_log=True)
    elif any(each.has_more() for each in arrays.values()):
        reason = "something follows the array, and is not read; save one array a file, or .npz"
        yield LogError(name, "", reason, ends_log=True)


def _record(
    row: Ids | ValueError,
    prompt: Ids | ValueError | None,
    length: int | None,
    name: str,
    number: int,
    options: ReadOptions,
) -> LogRecord:
    prompt_ids = None if prompt is None else options.trim(sound(prompt))
    return LogRecord(options.trim(sound(row), length), name, number, "row", prompt=prompt_ids)


def cut_rows(values: Any, edges: list[int]) -> Iterator[Ids | ValueError]:
    """Return rows of integers that lie end to end as checked ids, or the error of a row.

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
