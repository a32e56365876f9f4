"""`read_log`: the records of a log in any format."""

from __future__ import annotations

import json
import re
import warnings
from contextlib import closing
from typing import TYPE_CHECKING, TypeAlias

from harmony_stream.logs.parts import RecordsPart
from harmony_stream.logs.readers.arrays import read_npy, read_npz
from harmony_stream.logs.readers.captures import read_events
from harmony_stream.logs.readers.json_lines import read_document, read_ids, read_lines
from harmony_stream.logs.readers.source import HEAD, LogSource, Source
from harmony_stream.logs.readers.tables import read_arrow, read_parquet
from harmony_stream.logs.record import Item, LogError, LogRecord, LogWarning, ReadOptions
from harmony_stream.support.event_stream import BYTE_ORDER_MARK
from harmony_stream.support.extras import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from harmony_stream.logs.parts import LogPart

    Reader: TypeAlias = Callable[[Source, ReadOptions], Iterator[LogPart]]

FORMATS: Mapping[str, Reader] = {
    "ids": read_ids,
    "json": read_document,
    "jsonl": read_lines,
    "sse": read_events,
    "npy": read_npy,
    "npz": read_npz,
    "parquet": read_parquet,
    "arrow": read_arrow,
}
"""The formats by name, each with its reader."""

TEXT = frozenset({"ids", "json", "jsonl", "sse"})
"""The formats that are text."""

GROWING = frozenset({"jsonl", "sse"})
"""The formats that may be read while they are written: the end may cut a line or an event."""

# The first bytes of files that are not text.
_MAGIC = {
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",  # a stream: its first message
}
_OTHER_MARKS = (b"\xff\xfe", b"\xfe\xff")
_EVENT = re.compile(rb"(data|event|id|retry)?:")
_SPACE = b" \t\r\n"
_EMPTY = "empty, expected token ids"


def read_log(
    place: LogSource,
    options: ReadOptions = ReadOptions(),  # noqa: B008 - frozen
    *,
    strict: bool = False,
    report: Callable[[LogError], None] | None = None,
) -> Iterator[LogRecord]:
    """Return the completions of a token log of any length, one at a time.

    A record that cannot be read is reported, and the others are read. A last line that is cut off,
    as in a log that is still being written, is reported as well.

    Args:
        place: a path, or a binary stream, which is not closed. gzip and zstd are decompressed.
        options: what is not to be detected.
        strict: raise what would be reported.
        report: called with each error; the default issues a `LogWarning`.

    Raises:
        LogError: the log as a whole cannot be read, or, if `strict`, a record.
        MissingExtraError: its format needs an extra that is not installed.
        ValueError: the format in the options is not one of `FORMATS`.

    >>> import io
    >>> log = io.BytesIO(b'{"token_ids": [200005, 17196]}')
    >>> [(record.place, list(record.completion)) for record in read_log(log)]
    [('line 1', [200005, 17196])]
    """
    for item in read_items(place, options):
        if isinstance(item, LogRecord):
            yield item
        elif strict:
            raise item
        else:
            (report or _warn)(item)


def _warn(error: LogError) -> None:
    warnings.warn(LogWarning(str(error)), stacklevel=3)


def read_items(place: LogSource, options: ReadOptions) -> Iterator[Item]:
    """Return the records of a log, and errors for what could not be read, in order.

    Raises as `read_log` does.
    """
    for part in read_parts(place, options):
        yield from part.items()


def read_parts(
    place: LogSource, options: ReadOptions, progress: Callable[[int], None] = lambda position: None
) -> Iterator[LogPart]:
    """Return the log in parts, which may be read in other processes.

    Args:
        place: as in `read_log`.
        options: as in `read_log`.
        progress: called with the number of bytes of the file read so far.

    Raises as `read_log` does.
    """
    if options.format not in (None, *FORMATS):
        formats = ", ".join(FORMATS)
        raise ValueError(f"format {options.format!r} is not one of {formats}; give one, or None")
    with closing(Source(place)) as source:
        name = _format(source, options)
        is_empty = True
        for part in _parts(source, name, options):
            is_empty = False
            progress(source.position)
            yield part
        if source.trouble:
            # Lines and events may still be written; any other format has lost its end.
            is_cut = source.is_cut and name in GROWING and not is_empty
            error = LogError(source.name, "", source.trouble, is_cut, ends_log=not is_cut)
            yield RecordsPart((error,))
        elif is_empty and (name is None or name in TEXT):
            yield RecordsPart((LogError(source.name, "", _EMPTY, is_cut=True),))


def _parts(source: Source, name: str | None, options: ReadOptions) -> Iterator[LogPart]:
    try:
        yield from FORMATS[name](source, options) if name else ()
    except MissingExtraError as error:
        raise LogError(source.name, "", str(error)) from error


def _format(source: Source, options: ReadOptions) -> str | None:
    """Return the format that is given or detected; None for a log that holds nothing."""
    head = source.head()
    if options.format in TEXT:
        _refuse_other_text(head, source.name)
    name = options.format or detect(head, source.name)
    if head.startswith(BYTE_ORDER_MARK) and (name is None or name in TEXT):
        source.stream.read(len(BYTE_ORDER_MARK))
    if not head or name is None:
        _expect_nothing(source)
        return None
    return name


def _expect_nothing(source: Source) -> None:
    """Read white space to its end: the format of what follows is not detected."""
    while block := source.stream.read(HEAD):
        if block.strip(_SPACE):
            reason = f"begins with more than {HEAD} bytes of white space; name its format"
            raise LogError(source.name, "", reason)


def _refuse_other_text(head: bytes, source: str) -> None:
    """Refuse UTF-16 and UTF-32, as some shells and editors of Windows write them.

    Raises:
        LogError: with the remedy.
    """
    if head.startswith(_OTHER_MARKS) or b"\0" in head[:4]:
        reason = "is text in UTF-16 or UTF-32, or not text; save it as UTF-8"
        raise LogError(source, "", f"begins with {head[:4]!r}, {reason}")


def detect(head: bytes, source: str = "") -> str | None:
    """Return the format of a log by its first bytes; None for one that holds nothing.

    Raises:
        LogError: the format is unknown; `source` names the log.

    >>> detect(b'data: {"choices": []}'), detect(b"200005 17196"), detect(b" ")
    ('sse', 'ids', None)
    """
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    text = head.removeprefix(BYTE_ORDER_MARK).lstrip(_SPACE)
    if not text:
        return None
    _refuse_other_text(text, source)
    if _EVENT.match(text):
        return "sse"
    if text[:1].isdigit():
        return "ids"
    if text[:1] in (b"[", b"{"):
        return _json_or_lines(text)
    formats = ", ".join(FORMATS)
    reason = f"begins with {head[:12]!r}, which is not a known format; expected {formats}"
    raise LogError(source, "", reason)


def _json_or_lines(text: bytes) -> str:
    """Return `jsonl` if the first value takes one line, `json` if it is the whole document."""
    text = text.replace(b"\r", b"\n")
    line, is_whole, rest = text.partition(b"\n")
    following = rest.lstrip(_SPACE)[:1]
    if _is_json(line):
        # An array of arrays or objects on a single line is a document, to be read item by item.
        is_nested = line[:1] == b"[" and line[1:].lstrip(_SPACE)[:1] in (b"[", b"{")
        return "json" if is_nested and not following else "jsonl"
    if line[:1] == b"[":
        # Ids that are longer than the head: a line of them, or a document that is one line.
        is_long = not is_whole and line[1:].lstrip(_SPACE)[:1].isdigit()
        return "jsonl" if is_long else "json"
    # A line that is broken or longer than the head, or an object that continues in the next line.
    return "json" if following and following != b"{" else "jsonl"


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
