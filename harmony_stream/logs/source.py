"""Where a log comes from: a file or a stream, compressed or not, opened so that one can look."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import zlib
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, Any, BinaryIO, TypeAlias

from harmony_stream.logs.extras import MissingExtraError, need
from harmony_stream.logs.records import LogError

if TYPE_CHECKING:
    from collections.abc import Callable

Place: TypeAlias = "str | os.PathLike[str] | BinaryIO | IO[bytes]"
"""A path, or a binary stream."""

HEAD = 1 << 16
_LONGEST_MAGIC = 8
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_GZIP_FORMAT = 16 + zlib.MAX_WBITS


class Source:
    """An open log.

    Attributes:
        name: for people.
        path: of the file if it can be opened again as it is, else None.
        stream: what it holds, decompressed; `peek` looks ahead.
        position: how many bytes of the file were read.
        trouble: what kept the rest from being decompressed, "" for nothing.
        is_cut: whether that is that the rest is missing.
    """

    def __init__(self, place: Place) -> None:
        self.name = name_of(place)
        self.position = 0
        self.trouble = ""
        self.is_cut = False
        self._opened = ExitStack()
        self._raw = raw = self._open(place)
        buffered = io.BufferedReader(_Counting(self, raw), HEAD)
        make = self._decompressor(buffered.peek(4)[:4])
        is_file = isinstance(place, str | os.PathLike)
        self.path = os.path.abspath(self.name) if is_file and make is None else None
        self.stream = buffered if make is None else _buffered(_Inflating(self, buffered, make))

    def _open(self, place: Place) -> Any:  # noqa: ANN401 - whatever has read()
        if not isinstance(place, str | os.PathLike):
            return place
        try:
            return self._opened.enter_context(open(place, "rb"))
        except OSError as error:
            raise LogError(self.name, "", error.strerror or str(error)) from error

    def _decompressor(self, head: bytes) -> Callable[[], Any] | None:
        if head[:2] == _GZIP:
            return lambda: zlib.decompressobj(_GZIP_FORMAT)
        if head == _ZSTD:
            try:
                zstandard = need("zstandard")
            except MissingExtraError as error:
                raise LogError(self.name, "", str(error)) from error
            return lambda: zstandard.ZstdDecompressor().decompressobj()
        return None

    def head(self) -> bytes:
        """The beginning, which is not taken by that."""
        return self.stream.peek(HEAD)

    def seekable(self) -> BinaryIO:
        """All of it as a file in which one can seek: itself, or a temporary copy on disk."""
        if self.path is not None and self._raw.seekable():
            self._raw.seek(0)
            return self._raw  # type: ignore[no-any-return]
        copy: Any = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the others
        self._opened.callback(copy.close)
        shutil.copyfileobj(self.stream, copy)
        copy.seek(0)
        return copy  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close what was opened here."""
        self._opened.close()


def name_of(place: Place) -> str:
    """The name of a log, for people.

    >>> name_of(io.BytesIO())
    '<stream>'
    """
    if isinstance(place, str | os.PathLike):
        return os.fspath(place)
    name = getattr(place, "name", None)
    if name == 0:  # how a file is called that was opened by the number of standard input
        return "<stdin>"
    return name if isinstance(name, str) else "<stream>"


def _buffered(raw: io.RawIOBase) -> io.BufferedReader:
    return io.BufferedReader(raw, HEAD)


class _Counting(io.RawIOBase):
    """A raw view of any binary stream, which it does not close."""

    def __init__(self, source: Source, raw: Any) -> None:  # noqa: ANN401 - whatever has read()
        self._source = source
        # A pipe gives what there is; read() would wait for more.
        self._read_some = getattr(raw, "read1", raw.read)
        self._first = b""
        while len(self._first) < _LONGEST_MAGIC and (data := self._read(HEAD)):
            self._first += data

    def _read(self, size: int) -> bytes:
        try:
            return self._read_some(size)  # type: ignore[no-any-return]
        except OSError as error:
            raise LogError(self._source.name, "", error.strerror or str(error)) from error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a buffer
        data = self._first[: len(buffer)] or self._read(len(buffer))
        self._first = self._first[len(data) :]
        buffer[: len(data)] = data
        self._source.position += len(data)
        return len(data)


class _Inflating(io.RawIOBase):
    """A compressed stream, of one or more parts; where it breaks it ends, and says so."""

    def __init__(
        self, source: Source, raw: io.BufferedReader[Any], make: Callable[[], Any]
    ) -> None:
        self._source = source
        self._raw = raw
        self._make = make
        self._part = make()
        self._waiting = b""
        self._ready = b""
        self._is_over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a buffer
        # Filled as far as it goes, since the format is told by what is read first.
        while len(self._ready) < len(buffer) and not (self._is_over or self._source.trouble):
            if data := self._waiting or self._raw.read1(HEAD):
                self._inflate(data)
            else:
                self._end()
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _end(self) -> None:
        self._is_over = True
        if self._part is not None:
            self._source.trouble, self._source.is_cut = "the compressed data are cut off", True

    def _inflate(self, data: bytes) -> None:
        self._waiting = b""
        try:
            if self._part is None:
                self._part = self._make()
            self._ready += self._part.decompress(data)
        except Exception as error:
            self._source.trouble = f"the compressed data are broken: {error}"
            return
        if self._part.eof:
            self._waiting = self._part.unused_data.lstrip(b"\0")
            self._part = None


def size_of(place: Place) -> int | None:
    """How many bytes a file has; None for a stream, or what cannot be found.

    >>> size_of(io.BytesIO()) is None
    True
    """
    try:
        return os.stat(place).st_size if isinstance(place, str | os.PathLike) else None
    except OSError:
        return None
