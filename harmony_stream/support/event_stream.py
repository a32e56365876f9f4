"""The one reader of `text/event-stream`: bytes in, cut anywhere, frames of bytes out.

Source: the WHATWG HTML standard, "Server-sent events". Lines end with LF, CRLF or CR, and with
nothing else. A byte-order mark at the beginning is skipped. A frame ends with an empty line. The
callers interpret the bytes: clients read events from frames, logs read JSON.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# In front of a frame's data.
_LONGEST_NAME = len(BYTE_ORDER_MARK + b"data: ")

_END_OF_LINE = re.compile(rb"\r\n|\r|\n")
_NUMBER = re.compile(rb"[0-9]{1,15}")


class Frame(NamedTuple):
    """One event, as bytes.

    Attributes:
        line: the number of its first line of data, from 1.
        data: its lines of data, joined with LF; None if they are longer than the reader may hold.
        event: its name; b"" without one.
        id: the last id that was sent, maybe with an earlier frame.
        retry: milliseconds, as digits; None if the frame does not contain them.
        is_open: true if the stream ended before the empty line after it.
    """

    line: int
    data: bytes | None
    event: bytes = b""
    id: bytes = b""
    retry: bytes | None = None
    is_open: bool = False


class FrameReader:
    r"""The reader of frames from bytes that may be cut anywhere, in linear time and memory.

    Args:
        is_joined: skip a byte-order mark at the beginning of any line, since each of several joined
            files may begin with one. By the standard, a stream has only the first.
        max_bytes: the most bytes of data in a frame. A longer frame is yielded without data.

    >>> reader = FrameReader()
    >>> list(reader.feed(b": hello\r\nda")), list(reader.feed(b"ta: 5\r\n\r\nid: 7\ndata: 6"))
    ([], [Frame(line=2, data=b'5', event=b'', id=b'', retry=None, is_open=False)])
    >>> list(reader.close())
    [Frame(line=5, data=b'6', event=b'', id=b'7', retry=None, is_open=True)]
    """

    def __init__(self, *, is_joined: bool = False, max_bytes: float = math.inf) -> None:
        self.has_unknown = False
        """True once a line was neither a field nor a comment of text."""
        self._is_joined = is_joined
        self._max_bytes = max_bytes
        self._count = 0  # lines that have ended
        self._line: list[bytes] = []  # parts of the unfinished line
        self._line_size = 0
        self._passed_over = 0  # bytes of the current line that were not kept
        self._skips_line_feed = False
        self._id = b""
        self._begin()

    def _begin(self) -> None:
        self._first = 0
        self._data: list[bytes] = []
        self._size = 0
        self._event = b""
        self._retry: bytes | None = None

    @property
    def is_between_frames(self) -> bool:
        """True if neither a line nor a frame is unfinished."""
        return not (self._line_size or self._first or self._event or self._retry)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take bytes, and yield the frames that they finish."""
        for line in self._lines(data):
            if line:
                self._field(line)
            else:
                if self._first:
                    yield self._frame(is_open=False)
                self._begin()

    def close(self) -> Iterator[Frame]:
        """End the stream, and yield the frame that is unfinished, if there is one."""
        if self._line_size:
            self._field(self._whole_line(b""))
        if self._first:
            yield self._frame(is_open=True)
        self._begin()

    def _lines(self, data: bytes) -> Iterator[bytes]:
        if data and self._skips_line_feed:
            data = data.removeprefix(b"\n")
            self._skips_line_feed = False
        if data.endswith(b"\r"):
            self._skips_line_feed = True  # it may be the other half of this end of line
        *whole, rest = _END_OF_LINE.split(data) if b"\r" in data else data.split(b"\n")
        for line in whole:
            yield self._whole_line(line)
        self._hold(rest)

    def _hold(self, part: bytes) -> None:
        # Of a line that is too long, the beginning is kept: it names the field, and does not count.
        if part and self._line_size <= self._max_bytes + _LONGEST_NAME:
            self._line.append(part)
        self._line_size += len(part)

    def _whole_line(self, end: bytes) -> bytes:
        self._count += 1
        self._passed_over = 0
        if self._line_size:
            self._hold(end)
            end = b"".join(self._line)
            self._passed_over = self._line_size - len(end)
            self._line.clear()
            self._line_size = 0
        if end[:3] == BYTE_ORDER_MARK and (self._count == 1 or self._is_joined):
            return end[3:]
        return end

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"data":
            self._add(value)
        elif name == b"id":
            self._id = self._id if b"\0" in value else value
        elif name == b"event":
            self._event = value
        elif name == b"retry":
            self._retry = value if _NUMBER.fullmatch(value) else self._retry
        elif name.strip() or not _is_text(value):
            self.has_unknown = True

    def _add(self, value: bytes) -> None:
        self._first = self._first or self._count
        self._size += len(value) + self._passed_over + 1
        if self._size <= self._max_bytes + 1:
            self._data.append(value)
        else:
            self._data.clear()

    def _frame(self, *, is_open: bool) -> Frame:
        data = b"\n".join(self._data) if self._size <= self._max_bytes + 1 else None
        return Frame(self._first, data, self._event, self._id, self._retry, is_open)


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False
