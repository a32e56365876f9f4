"""The source of a log: a file or a stream, compressed or not, with a look ahead."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import zlib
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, Any, BinaryIO, TypeAlias

from harmony_stream.logs.record import LogError
from harmony_stream.support.extras import MissingExtraError, need

if TYPE_CHECKING:
    from collections.abc import Callable

LogSource: TypeAlias = "str | os.PathLike[str] | BinaryIO | IO[bytes]"
"""A path, or a binary stream."""

HEAD = 1 << 16
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_GZIP_FORMAT = 16 + zlib.MAX_WBITS
# Four bytes of zstd may be 128 kB of data, and its decoder returns all of it at once.
_ZSTD_STEP = 512


class Source:
    """An open log.

    Attributes:
        name: the name in messages.
        path: the path of the file, if it can be opened again as it is; otherwise None.
        stream: the content, decompressed; `peek` looks ahead.
        position: the number of bytes of the file that were read.
        trouble: the reason why the rest could not be decompressed; "" if it could.
        is_cut: True if the reason is that the rest is missing.
    """

    def __init__(self, place: LogSource) -> None:
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

    def _open(self, place: LogSource) -> Any:  # noqa: ANN401 - whatever has read()
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
            return lambda: _ZstdPart(zstandard.ZstdDecompressor().decompressobj())
        return None

    def head(self) -> bytes:
        """Return the beginning, without taking it."""
        return self.stream.peek(HEAD)

    def seekable(self) -> BinaryIO:
        """Return all of it as a seekable file: itself, or a temporary copy on disk.

        Raises:
            LogError: it cannot be decompressed as a whole.
        """
        if self.path is not None and self._raw.seekable():
            self._raw.seek(0)
            return self._raw  # type: ignore[no-any-return]
        copy: Any = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the others
        self._opened.callback(copy.close)
        shutil.copyfileobj(self.stream, copy)
        if self.trouble:
            raise LogError(self.name, "", self.trouble)
        copy.seek(0)
        return copy  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the files that were opened here."""
        self._opened.close()


def name_of(place: LogSource) -> str:
    """Return the name of a log in messages.

    >>> name_of(io.BytesIO())
    '<stream>'
    """
    if isinstance(place, str | os.PathLike):
        return os.fspath(place)
    name = getattr(place, "name", None)
    if name == 0:  # the name of a file that was opened by the number of standard input
        return "<stdin>"
    return name if isinstance(name, str) else "<stream>"


def _buffered(raw: io.RawIOBase) -> io.BufferedReader:
    return io.BufferedReader(raw, HEAD)


class _Counting(io.RawIOBase):
    """A raw view of any binary stream, which it counts and does not close."""

    def __init__(self, source: Source, raw: Any) -> None:  # noqa: ANN401 - whatever has read()
        self._source = source
        # read1() of a pipe returns what is there; read() would wait for more.
        self._read_some = getattr(raw, "read1", raw.read)
        # Filled as far as possible: the format must not depend on how a pipe was written to.
        first = bytearray()
        while len(first) < HEAD and (data := self._read(HEAD - len(first))):
            first += data
        self._first = bytes(first)

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
    """A compressed stream of one or more parts, which ends where the data are broken or cut.

    It decompresses no more than is asked for, however much the data hold.
    """

    def __init__(
        self, source: Source, raw: io.BufferedReader[Any], make: Callable[[], Any]
    ) -> None:
        self._source = source
        self._raw = raw
        self._make = make
        self._part = make()
        self._step = _ZSTD_STEP if isinstance(self._part, _ZstdPart) else HEAD
        self._waiting = b""
        self._is_over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a buffer
        # Filled as far as possible, since the format is detected in what is read first.
        count = 0
        while count < len(buffer) and not (self._is_over or self._source.trouble):
            data = self._some(len(buffer) - count)
            buffer[count : count + len(data)] = data
            count += len(data)
        return count

    def _some(self, size: int) -> bytes:
        """Return some bytes, at most `size`; an empty result is not the end."""
        data = self._waiting or self._raw.read1(self._step)
        self._waiting = b""
        if not data:
            return self._end(size)
        if self._part is None:
            data = data.lstrip(b"\0")  # between parts there may be padding
        return self._inflate(data, size) if data else b""

    def _end(self, size: int) -> bytes:
        """Return what the decoder still holds; after that the stream is over, or cut."""
        made = self._inflate(b"", size) if self._part is not None else b""
        self._is_over = not made
        if self._is_over and self._part is not None:
            self._source.trouble, self._source.is_cut = "the compressed data are cut off", True
        return made

    def _inflate(self, data: bytes, size: int) -> bytes:
        part = self._part or self._make()
        try:
            made: bytes = part.decompress(data, size)
        except Exception as error:
            self._source.trouble = f"the compressed data are broken: {error}"
            return b""
        self._waiting = part.unused_data if part.eof else part.unconsumed_tail
        self._part = None if part.eof else part
        return made


class _ZstdPart:
    """A decoder of zstd that returns no more than is asked for, like that of zlib."""

    def __init__(self, decoder: Any) -> None:  # noqa: ANN401 - of a package that may be missing
        self._decoder = decoder
        self._ready = memoryview(b"")
        self.unconsumed_tail = self.unused_data = b""

    @property
    def eof(self) -> bool:
        return self._decoder.eof and not self._ready

    def decompress(self, data: bytes, size: int) -> bytes:
        if not self._ready and not self._decoder.eof:
            self._ready = memoryview(self._decoder.decompress(data))
            data = b""
        made, self._ready = self._ready[:size], self._ready[size:]
        self.unconsumed_tail = data
        self.unused_data = self._decoder.unused_data + data
        return bytes(made)


def size_of(place: LogSource) -> int | None:
    """Return the size of a file in bytes; None for a stream, or a file that is not there.

    >>> size_of(io.BytesIO()) is None
    True
    """
    try:
        return os.stat(place).st_size if isinstance(place, str | os.PathLike) else None
    except OSError:
        return None
