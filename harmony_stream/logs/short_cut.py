"""Messages of well-formed rows without the parser: tokens looked up in bulk."""

from __future__ import annotations

from array import array
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from harmony_stream.parsing.parser import EventParser
from harmony_stream.support.extras import need
from harmony_stream.values.events import (
    EndKind,
    MessageStart,
)
from harmony_stream.vocabulary import FormattingToken, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa  # type: ignore[import-untyped]

from harmony_stream.logs.columns import Fields, MessageRow, faults_of_call, header_fields
from harmony_stream.logs.rows import SPECIAL, START, Flat

_MESSAGE = SPECIAL[FormattingToken.MESSAGE]


_FIRST_SPECIAL = min(SPECIAL.values())


_ENDS = {
    SPECIAL[FormattingToken.END]: (EndKind.END.value, True),
    SPECIAL[FormattingToken.RETURN]: (EndKind.RETURN.value, True),
    SPECIAL[FormattingToken.CALL]: (EndKind.CALL.value, True),
    SPECIAL[FormattingToken.END_OF_TEXT]: (EndKind.END_OF_TEXT.value, False),
}


_TRUNCATED = (EndKind.TRUNCATED.value, False)


# The parser ends longer headers with a fault, so the short cut leaves them to it.
_LONGEST_HEADER = 66


# Tokens in one look-up: enough to make the call cheap, few enough for the cache.
_BLOCK = 1 << 18


class _Block(NamedTuple):
    """Some rows, looked up: their marks (tokens that are not text) and the bytes of the others."""

    row: int
    edges: list[int]  # the begin of each row, and the end of the last
    firsts: list[int]  # the number of the first mark of each row
    marks: list[int]  # their positions
    kinds: list[int]  # their tokens
    cuts: list[int]  # their offsets in `data`; at the end, its length
    row_cuts: list[int]  # the end of each row in `data`
    keys: memoryview  # the ids as bytes, four each
    data: memoryview


@cache
def _table() -> pa.Array:
    """Return the bytes of each ordinary token, and nothing for the first special one."""
    pieces = [b""] * (_FIRST_SPECIAL + 1)
    for data, token in Vocabulary.default()._tokens().ranks().items():
        pieces[token] = data
    return need("pyarrow").array(pieces)


def short_cut(flat: Flat) -> Iterator[list[MessageRow] | None]:
    """Return the messages of each row; None for a row that must go through the parser."""
    for block in _blocks(flat):
        for number in range(len(block.firsts) - 1):
            row = block.row + number
            yield None if row in flat.odd else _row_of(block, number, row)


def _blocks(flat: Flat) -> Iterator[_Block]:
    offsets = flat.offsets
    row, count = 0, len(offsets) - 1
    while row < count:
        stop = int(offsets.searchsorted(offsets[row] + _BLOCK, "right")) - 1
        stop = min(count, max(row + 1, stop))
        yield _look_up(flat, row, stop)
        row = stop


def _look_up(flat: Flat, row: int, stop: int) -> _Block:
    numpy, arrow = need("numpy"), need("pyarrow")
    edges = flat.offsets[row : stop + 1]
    ids = flat.ids[edges[0] : edges[-1]]
    edges = edges - edges[0]
    clipped = numpy.minimum(ids, numpy.uint32(_FIRST_SPECIAL))
    taken = _table().take(arrow.array(clipped))
    ends = numpy.frombuffer(taken.buffers()[1], numpy.int32)
    marks = numpy.flatnonzero(clipped == _FIRST_SPECIAL)
    return _Block(
        row,
        edges.tolist(),
        marks.searchsorted(edges).tolist(),
        marks.tolist(),
        ids[marks].tolist(),
        ends[marks].tolist(),
        ends[edges].tolist(),
        memoryview(ids.tobytes()),
        memoryview(taken.buffers()[2] or b""),
    )


def _row_of(block: _Block, number: int, row: int) -> list[MessageRow] | None:
    """Return the messages of a well-formed row; None for another one."""
    begin, end = block.edges[number : number + 2]
    mark, last = block.firsts[number : number + 2]
    is_prompted = not (mark < last and block.marks[mark] == begin and block.kinds[mark] == START)
    messages: list[MessageRow] = []
    position = begin
    while position < end:
        if messages and mark < last and _is_idle_end(block, mark, position):
            mark, position = mark + 1, position + 1
            continue
        at = _message_mark(block, mark, last)
        if at is None:
            return None
        start, content = position, block.marks[at] + 1
        fields = _fields_of(block, start, content, is_prompted and not messages)
        if at + 1 < last:
            mark, stop, cut = at + 1, block.marks[at + 1], block.cuts[at + 1]
            ending, position = _ENDS.get(block.kinds[mark]), stop + 1
        else:
            mark, stop, cut = last, end, block.row_cuts[number + 1]
            ending, position = _TRUNCATED, stop
        if fields is None or ending is None:
            return None
        text = str(block.data[block.cuts[at] : cut], "utf-8", "replace")
        place = (start - begin, position - begin, content - start, stop - content)
        faults = faults_of_call(fields, text, ending[1])
        messages.append((row, len(messages), *fields, text, *place, *ending, faults))
        mark += 1
    return messages


def _is_idle_end(block: _Block, mark: int, position: int) -> bool:
    """Return whether an end token is where a message may start, which is not a fault."""
    return block.marks[mark] == position and block.kinds[mark] in _ENDS


def _message_mark(block: _Block, mark: int, last: int) -> int | None:
    try:
        return block.kinds.index(_MESSAGE, mark, last)
    except ValueError:
        return None


def _fields_of(block: _Block, start: int, content: int, is_prompted: bool) -> Fields | None:
    if content - start > _LONGEST_HEADER:
        return None
    return _read_header(block.keys[4 * start : 4 * content].tobytes(), is_prompted)


@lru_cache(maxsize=4096)
def _read_header(key: bytes, is_prompted: bool) -> Fields | None:
    """Return the fields of a header, `<|message|>` included; None if there is a fault or more."""
    ids = array("I", key)
    events = EventParser("assistant" if is_prompted else None).feed_many(ids)
    match events:
        case [MessageStart(start=0, stop=stop) as opened] if stop == len(ids):
            return header_fields(opened)
        case _:
            return None
