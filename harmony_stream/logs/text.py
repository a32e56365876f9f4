"""Logs of text: plain ids, JSON, and lines of JSON."""

from __future__ import annotations

import codecs
import json
import re
from array import array
from typing import TYPE_CHECKING, Any

import attrs

from harmony_stream.logs.chunks import Chunk, group
from harmony_stream.logs.layouts import records_of
from harmony_stream.logs.records import GREATEST, Ids, Item, LogError, LogRecord, Options, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harmony_stream.logs.source import Source

_BLOCK = 1 << 19
_MARK = b"\xef\xbb\xbf"
_SPACES = re.compile(r"[ \t\r\n]*")
_NESTED = re.compile(r"\[[ \t\r\n]*[\[{]")
_DECODER = json.JSONDecoder()
_CUT = "not JSON: it is cut off"


# -- Plain ids -------------------------------------------------------------------------------------


def read_ids(source: Source, options: Options) -> Iterator[Chunk]:
    """One stream: decimal numbers with white space or commas between them."""
    return group([_plain(source, options)])


def _plain(source: Source, options: Options) -> Item:
    ids = array("I")
    line, rest = 1, b""
    while block := source.stream.read(_BLOCK):
        words, rest = _whole_words(rest + block.removeprefix(_MARK))
        try:
            line = _add_words(ids, words, line)
        except LogError as error:
            return attrs.evolve(error, source=source.name)
    try:
        _add_words(ids, rest, line)
    except LogError as error:
        return attrs.evolve(error, source=source.name)
    return LogRecord(options.trim(ids), source.name, 1, "stream")


def _whole_words(data: bytes) -> tuple[bytes, bytes]:
    """The data up to the last white space, and what may be the first part of a word."""
    cut = max(data.rfind(space) for space in (b" ", b"\n", b"\t", b"\r", b",")) + 1
    return data[:cut], data[cut:]


def _add_words(ids: Ids, data: bytes, line: int) -> int:
    """Add the ids in some lines; give the number of the last line."""
    for number, text in enumerate(data.split(b"\n"), line):
        words = text.replace(b",", b" ").split()
        try:
            ids.extend(map(_id, words))
        except ValueError as error:
            raise LogError("", f"line {number}", str(error)) from None
    return line + data.count(b"\n")


def _id(word: bytes) -> int:
    if not re.fullmatch(rb"[0-9]{1,10}", word) or int(word) > GREATEST:
        shown = quote(word.decode("utf-8", "backslashreplace"))
        raise ValueError(f"{shown} where a token id was expected, an integer from 0 to {GREATEST}")
    return int(word)


# -- Lines of JSON ---------------------------------------------------------------------------------


@attrs.frozen
class LinesChunk:
    """Whole lines, to be read as JSON.

    Attributes:
        source: the name of the log.
        first: the number of the first line.
        data: the lines.
        is_last: whether the log ends here.
        options: how to read them.
    """

    source: str
    first: int
    data: bytes
    is_last: bool
    options: Options

    def items(self) -> Iterator[Item]:
        """The records of each line."""
        lines = self.data.split(b"\n")
        for number, line in enumerate(lines, self.first):
            if line.strip():
                is_open = self.is_last and number == self.first + len(lines) - 1
                yield from self._of_line(line, number, is_open)

    def _of_line(self, line: bytes, number: int, is_open: bool) -> Iterator[Item]:
        try:
            value = json_of(line)
            yield from records_of(value, self.options, self.source, number, "line")
        except ValueError as error:
            is_cut = is_open and isinstance(error, _CutError)
            reason = "the last line is cut off" if is_cut else str(error)
            yield LogError(self.source, f"line {number}", reason, is_cut)


def read_lines(source: Source, options: Options) -> Iterator[Chunk]:
    """JSON values, one a line; blank lines count, but say nothing."""
    stream, number = source.stream, 1
    data = stream.read(_BLOCK).removeprefix(_MARK)
    while data:
        data += stream.readline()
        following = stream.read(_BLOCK)
        # The line break itself ends the chunk, so that no chunk has an empty line behind it.
        ended = data.removesuffix(b"\n") if following else data
        yield LinesChunk(source.name, number, ended, not following, options)
        number += ended.count(b"\n") + 1
        data = following


class _CutError(ValueError):
    """JSON that ends too early."""


def json_of(data: bytes) -> Any:  # noqa: ANN401 - JSON
    """A JSON value.

    Raises:
        ValueError: with a sentence about what is wrong.

    >>> json_of(b"[1, 2")
    Traceback (most recent call last):
        ...
    harmony_stream.logs.text._CutError: not JSON: it is cut off
    """
    try:
        return json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise _told(error) from None


def _told(error: Exception) -> ValueError:
    """What is wrong with some JSON, in a sentence."""
    match error:
        case UnicodeDecodeError():
            return ValueError(_not_utf8(error))
        case json.JSONDecodeError() if _is_cut(error):
            return _CutError(_CUT)
        case json.JSONDecodeError():
            return ValueError(f"not JSON: {error.msg}")
        case RecursionError():
            return ValueError("JSON that is nested too deeply")
        case _:  # Python's limit for the digits of an integer
            return ValueError("a number with too many digits")


def _not_utf8(error: UnicodeDecodeError) -> str:
    return f"not UTF-8: byte 0x{error.object[error.start]:02x}"


def _is_cut(error: json.JSONDecodeError) -> bool:
    return error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated")


# -- A JSON document -------------------------------------------------------------------------------


def read_document(source: Source, options: Options) -> Iterator[Chunk]:
    """One JSON value; of an array of arrays or objects, each item is read by itself."""
    return group(_document(source, options))


def _document(source: Source, options: Options) -> Iterator[Item]:
    window = _Window(source.stream.read)
    number = 0
    try:
        for number, value in enumerate(window.values(), 1):
            try:
                yield from records_of(value, options, source.name, number, "row")
            except ValueError as error:
                place = f"row {number}, which begins in line {window.begin}"
                yield LogError(source.name, place, str(error))
    except ValueError as error:
        reason = f"{error}; what follows cannot be read"
        yield LogError(source.name, f"line {window.line}", reason, isinstance(error, _CutError))


class _Window:
    """A JSON document of which only the part at hand is held."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._text = ""
        self._at = 0
        self._is_whole = False
        self._lines = 1
        self.begin = 1
        """The line in which the last value began."""

    @property
    def line(self) -> int:
        """The line at which reading has come."""
        return self._lines + self._text.count("\n", 0, self._at)

    def values(self) -> Iterator[Any]:
        """The items of an array of arrays or objects; any other value as it is."""
        if self._next() == "[" and _NESTED.match(self._text, self._at):
            self._at += 1
            self._next()
            yield from self._items()
            return
        yield self._value()
        self._expect("")

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
        """Read as much again as there is, so that a long value is looked at a few times only."""
        self._lines += self._text.count("\n", 0, self._at)
        held = self._text[self._at :]
        data = self._read(max(_BLOCK, len(held)))
        self._is_whole = not data
        self._text, self._at = held, 0
        try:
            self._text += self._decode(data, final=self._is_whole)
        except UnicodeDecodeError as error:
            self._is_whole = True
            raise ValueError(_not_utf8(error)) from None

    def _next(self) -> str:
        """The next character that is not white space, which is not taken; "" at the end."""
        while True:
            self._at = _SPACES.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text) or self._is_whole:
                return self._text[self._at : self._at + 1]
            self._more()

    def _expect(self, character: str) -> None:
        if (found := self._next()) != character:
            if not found:
                raise _CutError(_CUT)
            raise ValueError(f"not JSON: {quote(found)} behind a value")

    def _value(self) -> Any:  # noqa: ANN401 - JSON
        self.begin = self.line
        while True:
            try:
                value, at = _DECODER.raw_decode(self._text, self._at)
            except ValueError as error:
                if self._is_whole:
                    raise _told(error) from None
            except RecursionError as error:
                raise _told(error) from None
            else:
                # A number may go on in what is not yet read.
                if at < len(self._text) or self._is_whole:
                    self._at = at
                    return value
            self._more()
