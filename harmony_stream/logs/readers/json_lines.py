"""Logs of text: plain ids, JSON, and lines of JSON.

Lines end with LF, CRLF or CR. Text is read block by block; at most one record is held, and no more
of it than `ReadOptions.max_record_bytes`.
"""

from __future__ import annotations

import codecs
import re
from array import array
from typing import TYPE_CHECKING, Any

import attrs

from harmony_stream.logs.parts import LogPart, group
from harmony_stream.logs.readers.json_values import CUT, CutError, decode, json_error, json_of
from harmony_stream.logs.readers.paths import records_of
from harmony_stream.logs.record import GREATEST, Ids, Item, LogError, LogRecord, ReadOptions, quote
from harmony_stream.support.event_stream import BYTE_ORDER_MARK

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator

    from harmony_stream.logs.readers.source import Source

_BLOCK = 1 << 19
_SPACES = re.compile(r"[ \t\r\n]*")
_NESTED = re.compile(r"\[[ \t\r\n]*[\[{]")
_END = "; what follows cannot be read"


def _read(stream: io.BufferedReader[Any], size: int) -> bytes:
    """Return a block in which all lines end with LF: in ids and JSON, CR is only a line end."""
    data = stream.read(size)
    if data.endswith(b"\r") and stream.peek(1)[:1] == b"\n":
        stream.read(1)
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


# -- Plain ids -------------------------------------------------------------------------------------

_PLAIN = b"0123456789, \t\n"
_LONGEST_WORD = 64


def read_ids(source: Source, options: ReadOptions) -> Iterator[LogPart]:
    """Read one stream: decimal numbers with white space or commas between them."""
    return group(_plain(source, options))


def _plain(source: Source, options: ReadOptions) -> Iterator[Item]:
    try:
        if ids := _all_ids(source, options):
            yield LogRecord(options.trim(ids), source.name, 1, "stream")
    except LogError as error:
        yield error


def _all_ids(source: Source, options: ReadOptions) -> Ids:
    ids = array("I")
    line, size, rest = 1, 0, b""
    while block := _read(source.stream, _BLOCK):
        size += len(block)
        if size > options.max_record_bytes:
            raise LogError(source.name, f"line {line}", options.too_long(), ends_log=True)
        words, rest = _whole_words(rest + block)
        ids += _ids_in(words, line, source.name)
        line += words.count(b"\n")
    return ids + _ids_in(rest, line, source.name)


def _whole_words(data: bytes) -> tuple[bytes, bytes]:
    """Return the data up to the last white space, and the beginning of a word after it."""
    cut = max(data.rfind(space) for space in (b" ", b"\n", b"\t", b",")) + 1
    if len(data) - cut > _LONGEST_WORD:  # longer than any id
        return data, b""
    return data[:cut], data[cut:]


def _ids_in(data: bytes, line: int, source: str) -> Ids:
    if not data.translate(None, _PLAIN):
        try:
            return array("I", map(int, data.replace(b",", b" ").split()))
        except (ValueError, OverflowError):
            pass  # reported below, with its line
    ids = array("I")
    for number, text in enumerate(data.split(b"\n"), line):
        try:
            ids.extend(map(_id, text.replace(b",", b" ").split()))
        except ValueError as error:
            raise LogError(source, f"line {number}", str(error), ends_log=True) from None
    return ids


def _id(word: bytes) -> int:
    if len(word) > _LONGEST_WORD or not word.isdigit() or int(word) > GREATEST:
        shown = quote(word[:_LONGEST_WORD].decode("utf-8", "backslashreplace"))
        raise ValueError(f"{shown} where a token id was expected, an integer from 0 to {GREATEST}")
    return int(word)


# -- Lines of JSON ---------------------------------------------------------------------------------


@attrs.frozen
class LinesPart:
    """Whole lines of JSON that are not yet read, or a last one without its end.

    Attributes:
        source: the name of the log.
        first: the number of the first line.
        data: the lines.
        options: the options for reading them.
        is_open: True if the log ended before the only line did.
        follows: True if there were lines before.
    """

    source: str
    first: int
    data: bytes
    options: ReadOptions
    is_open: bool
    follows: bool

    def items(self) -> Iterator[Item]:
        """Return the records of each line."""
        for number, line in enumerate(self.data.split(b"\n"), self.first):
            if len(line) > self.options.max_record_bytes:
                yield LogError(self.source, f"line {number}", self.options.too_long())
            elif line.strip():
                yield from self._of_line(line.removeprefix(BYTE_ORDER_MARK), number)

    def _of_line(self, line: bytes, number: int) -> Iterator[Item]:
        try:
            value = json_of(line)
            yield from records_of(value, self.options, self.source, number, "line")
        except ValueError as error:
            yield self._fault(f"line {number}", error)

    def _fault(self, place: str, error: ValueError) -> LogError:
        if not (self.is_open and isinstance(error, CutError)):
            return LogError(self.source, place, str(error))
        if self.follows:
            return LogError(self.source, place, "the last line is cut off", is_cut=True)
        # A cut document looks like this too: nothing shows that more will come.
        reason = "the log is cut off before its first line ends"
        return LogError(self.source, place, reason, ends_log=True)


def read_lines(source: Source, options: ReadOptions) -> Iterator[LogPart]:
    """Read JSON values, one a line; blank lines count as lines, not as records."""
    number, follows = 1, False
    held = _Held(options.max_record_bytes)
    while block := _read(source.stream, _BLOCK):
        head, end, rest = block.rpartition(b"\n")
        if end:
            data = held.take(head)
            if data.strip():
                yield LinesPart(source.name, number, data, options, False, follows)
                follows = True
            number += data.count(b"\n") + 1
        held.add(rest)
    if (data := held.take(b"")).strip():
        yield LinesPart(source.name, number, data, options, True, follows)


class _Held:
    """An open line; of a line that is too long, only the beginning is held."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, part: bytes) -> None:
        if self._size <= self._most:
            self._parts.append(part)
            self._size += len(part)

    def take(self, lines: bytes) -> bytes:
        """Return the open line with these lines, the first of which ends it."""
        if not self._parts:
            return lines
        if self._size > self._most:
            _, end, others = lines.partition(b"\n")
            lines = end + others
        data = b"".join([*self._parts, lines])
        self._parts, self._size = [], 0
        return data


# -- A JSON document -------------------------------------------------------------------------------


def read_document(source: Source, options: ReadOptions) -> Iterator[LogPart]:
    """Read one JSON value; each item of an array of arrays or objects is read by itself."""
    return group(_document(source, options))


def _document(source: Source, options: ReadOptions) -> Iterator[Item]:
    window = _Window(source.stream, options)
    try:
        for number, value in enumerate(window.values(), 1):
            try:
                window.check()
                yield from records_of(value, options, source.name, number, "row")
            except ValueError as error:
                place = f"row {number}, which begins in line {window.begin}"
                yield LogError(source.name, place, str(error))
    except ValueError as error:
        yield LogError(source.name, window.place, f"{error}{_END}", ends_log=True)


class _Window:
    """A JSON document, of which only the current part is held."""

    def __init__(self, stream: io.BufferedReader[Any], options: ReadOptions) -> None:
        self._stream = stream
        self._options = options
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._text = ""
        self._at = 0
        self._is_whole = False
        self._fault: UnicodeDecodeError | None = None
        self._line = self._column = 1  # of the character at `_counted`
        self._counted = 0
        self._value_size = 0
        self.begin = 1
        """The line in which the last value began."""

    @property
    def place(self) -> str:
        """The line and column that reading has reached."""
        line, column = self._place()
        return f"line {line}, column {column}"

    def _place(self) -> tuple[int, int]:
        """Return line and column, counted from where they were counted last."""
        if lines := self._text.count("\n", self._counted, self._at):
            self._line += lines
            self._column = self._at - self._text.rfind("\n", self._counted, self._at)
        else:
            self._column += self._at - self._counted
        self._counted = self._at
        return self._line, self._column

    def check(self) -> None:
        """Refuse the last value if it is longer than a record may be."""
        if self._value_size > self._options.max_record_bytes:
            raise ValueError(self._options.too_long())

    def values(self) -> Iterator[Any]:
        """Return the items of an array of arrays or objects; any other value as it is."""
        if not self._next():
            return
        if self._begins_nested():
            self._at += 1
            self._next()
            yield from self._items()
            return
        yield self._value()
        self._expect("")

    def _begins_nested(self) -> bool:
        if self._text[self._at] != "[":
            return False
        # The next character may not be read yet: the bracket is not taken.
        while not self._is_whole and _SPACES.fullmatch(self._text, self._at + 1):
            self._more()
        return bool(_NESTED.match(self._text, self._at))

    def _items(self) -> Iterator[Any]:
        yield self._value()
        while self._next() == ",":
            self._at += 1
            self._next()
            yield self._value()
        self._expect("]")
        self._at += 1
        self._expect("")

    def _more(self) -> None:
        """Read as much again as is held, so that a long value is decoded only a few times."""
        if self._fault is not None:
            self._at = len(self._text)
            raise json_error(self._fault)
        self._place()
        held = self._text[self._at :]
        self._text, self._at, self._counted = held, 0, 0
        if len(held) > self._options.max_record_bytes:
            raise ValueError(self._options.too_long())
        data = _read(self._stream, max(_BLOCK, len(held)))
        self._is_whole = not data
        self._text = held + self._decoded(data)

    def _decoded(self, data: bytes) -> str:
        try:
            return self._decode(data, final=not data)
        except UnicodeDecodeError as error:
            self._fault, self._is_whole = error, False
            return error.object[: error.start].decode()

    def _next(self) -> str:
        """Return the next character that is not white space, without taking it; "" at the end."""
        while True:
            self._at = _SPACES.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text) or self._is_whole:
                return self._text[self._at : self._at + 1]
            self._more()

    def _expect(self, character: str) -> None:
        if (found := self._next()) == character:
            return
        if not found:
            raise CutError(CUT)
        # Lines of arrays look like a document if the first one is longer than the head.
        remedy = "" if character else "; if each line is a value of its own, the format is jsonl"
        raise ValueError(f"not JSON: {quote(found)} after a value{remedy}")

    def _value(self) -> Any:  # noqa: ANN401 - JSON
        self.begin = self._place()[0]
        while True:
            try:
                value, end = decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                self._judge(error)
            else:
                # A number may continue in what is not yet read.
                if end < len(self._text) or self._is_whole:
                    self._take(end)
                    return value
            self._more()

    def _judge(self, error: Exception) -> None:
        """Raise the error, unless more of the text may make the value valid."""
        reason = json_error(error)
        is_cut = isinstance(reason, CutError)
        if is_cut and not self._is_whole:
            return
        self._at = len(self._text) if is_cut else getattr(error, "pos", self._at)
        raise reason from None

    def _take(self, end: int) -> None:
        value = self._text[self._at : end] if not self._text.isascii() else ""
        self._value_size = len(value.encode()) or end - self._at
        self._at = end
