"""`read_log`: any log, as records."""

from __future__ import annotations

import json
import re
import warnings
from contextlib import closing
from typing import TYPE_CHECKING, TypeAlias

from harmony_stream.logs.arrays import read_npy, read_npz
from harmony_stream.logs.chunks import ItemsChunk
from harmony_stream.logs.columnar import read_arrow, read_parquet
from harmony_stream.logs.extras import MissingExtraError
from harmony_stream.logs.records import Item, LogError, LogRecord, LogWarning, Options
from harmony_stream.logs.source import Place, Source
from harmony_stream.logs.sse import read_events
from harmony_stream.logs.text import read_document, read_ids, read_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from harmony_stream.logs.chunks import Chunk

    Reader: TypeAlias = Callable[[Source, Options], Iterator[Chunk]]

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
"""The formats by name, each with what reads it."""

# How files begin that are not text.
_MAGIC = {
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",  # a stream: its first message
}
_EVENT = re.compile(rb"(data|event|id|retry)?:")
_SPACE = b" \t\r\n"


def read_log(
    place: Place,
    options: Options = Options(),  # noqa: B008 - frozen
    *,
    strict: bool = False,
    report: Callable[[LogError], None] | None = None,
) -> Iterator[LogRecord]:
    """The completions of a token log, one after the other, however long it is.

    A record that cannot be read is reported, and the others are read; so is a last line that is
    cut off, as in a log that is still being written.

    Args:
        place: a path, or a binary stream, which is not closed. gzip and zstd are undone.
        options: what need not be found out by looking.
        strict: raise what would be reported.
        report: called with what is wrong; if there is none, a `LogWarning` is issued.

    Raises:
        LogError: the log as a whole cannot be read, or a record in strict mode.
        MissingExtraError: its format needs an extra that is not installed.

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


def read_items(place: Place, options: Options) -> Iterator[Item]:
    """The records of a log and what could not be read, in order.

    Raises as `read_log` does.
    """
    for chunk in read_chunks(place, options):
        yield from chunk.items()


def read_chunks(
    place: Place, options: Options, progress: Callable[[int], None] = lambda position: None
) -> Iterator[Chunk]:
    """The log in pieces, which may be read in other processes.

    Args:
        place: as in `read_log`.
        options: as in `read_log`.
        progress: called with the number of bytes of the file that were read.

    Raises as `read_log` does.
    """
    with closing(Source(place)) as source:
        name = options.format or detect(source.head(), source.name)
        if name is None:
            yield ItemsChunk((LogError(source.name, "", "empty, expected token ids"),))
            return
        try:
            for chunk in FORMATS[name](source, options):
                progress(source.position)
                yield chunk
        except MissingExtraError as error:
            raise LogError(source.name, "", str(error)) from error
        if source.trouble:
            yield ItemsChunk((LogError(source.name, "", source.trouble, source.is_cut),))


def detect(head: bytes, source: str = "") -> str | None:
    """The format of a log that begins so; None for one that holds nothing.

    Raises:
        LogError: none that is known; `source` names the log.

    >>> detect(b'data: {"choices": []}'), detect(b"200005 17196"), detect(b" ")
    ('sse', 'ids', None)
    """
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip(_SPACE)
    if not text:
        return None
    if _EVENT.match(text):
        return "sse"
    if text[:1].isdigit():
        return "ids"
    if text[:1] in (b"[", b"{"):
        return _json_or_lines(text)
    formats = ", ".join(FORMATS)
    reason = f"begins with {head[:12]!r}, as no known format does; known are {formats}"
    raise LogError(source, "", reason)


def _json_or_lines(text: bytes) -> str:
    """Whether a value takes one line, as in JSON lines, or is the whole document."""
    line, _, rest = text.partition(b"\n")
    following = rest.lstrip(_SPACE)[:1]
    if _is_json(line):
        # An array of arrays or objects on a single line is a document, to be read item by item.
        is_nested = line[:1] == b"[" and line[1:].lstrip(_SPACE)[:1] in (b"[", b"{")
        return "json" if is_nested and not following else "jsonl"
    if line[:1] == b"[":
        return "json"
    # A line that is broken or longer than the head, or an object that goes on in the next line.
    return "json" if following and following != b"{" else "jsonl"


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
