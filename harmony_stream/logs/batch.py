"""Many completions at once: lists of token ids in, columns with one row a message out.

`parse_batch` is the unit that engines call. Without pyarrow and numpy each row goes through an
`EventParser`. With them (the extra `arrow`) rows that keep to the format take a short cut: the
bytes of all tokens of the batch are gathered by one `take` in C++, the special tokens are found by
one comparison, and what is left for Python is a few steps a message. Headers repeat, so each is
read once by the parser and remembered. A row that is anything but well-formed is left to the
parser; a test holds the short cut to the parser's results on arbitrary tokens.

Measured in one run on a loaded machine: 37 ns a token by the short cut, 226 ns by the parser,
3,200 ns by openai-harmony (`benchmarks/logs.py`).
"""

# ruff: noqa: ANN401 - rows come as lists, as numpy's arrays, or as Arrow's

from __future__ import annotations

import sys
from array import array
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from harmony_stream.adapters.arguments import ARGUMENTS_NOT_JSON, lack_json
from harmony_stream.parsing.parser import EventParser
from harmony_stream.support.extras import MissingExtraError, need
from harmony_stream.values.events import (
    ContentDelta,
    EndKind,
    Event,
    Malformed,
    MessageEnd,
    MessageStart,
)
from harmony_stream.values.header import Header
from harmony_stream.values.messages import Role
from harmony_stream.vocabulary import FormattingToken, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped]

Columns: TypeAlias = dict[str, list[Any]]
"""Columns of equal length by name, in the order of `COLUMNS`."""

COLUMNS: Mapping[str, str] = {
    "row": "int64",  # which row of the batch, from 0
    "index": "int32",  # which message of its row, from 0; None: text or a fault outside of any
    "role": "string",
    "name": "string",
    "channel": "string",
    "recipient": "string",
    "content_type": "string",
    "text": "string",
    "start": "int64",  # the message's tokens in its row, header and end included: half-open
    "stop": "int64",
    "header_tokens": "int64",
    "content_tokens": "int64",
    "end": "string",  # an EndKind
    "complete": "bool",
    # FaultKinds in order, then ARGUMENTS_NOT_JSON of a complete call; or NOT_TOKEN_IDS
    "problems": "list<string>",
}
"""What `parse_batch` gives for each message, with Arrow's name for the type."""

NOT_TOKEN_IDS = "not_token_ids"
"""The problem of a row that holds something else: a null, a negative number, a float."""

# Message: the values of one row of the columns. Fields: those of a header, as plain strings.
_Message: TypeAlias = tuple[Any, ...]
_Fields: TypeAlias = tuple[str, str | None, str | None, str | None, str | None]
_NO_FIELDS = (None,) * 5

_SPECIAL = Vocabulary.default().special_tokens
_MESSAGE = _SPECIAL[FormattingToken.MESSAGE]
_WHOLE = (_SPECIAL[FormattingToken.START], _SPECIAL[FormattingToken.START_OF_TEXT])
_FIRST_SPECIAL = min(_SPECIAL.values())
_ENDS = {
    _SPECIAL[FormattingToken.END]: (EndKind.END.value, True),
    _SPECIAL[FormattingToken.RETURN]: (EndKind.RETURN.value, True),
    _SPECIAL[FormattingToken.CALL]: (EndKind.CALL.value, True),
    _SPECIAL[FormattingToken.END_OF_TEXT]: (EndKind.END_OF_TEXT.value, False),
}
_TRUNCATED = (EndKind.TRUNCATED.value, False)

# The parser breaks longer headers off, so that they are none of the short cut's.
_LONGEST_HEADER = 66
# Tokens that are looked up at once: enough to make a call cheap, few enough for the cache.
_BLOCK = 1 << 18
_GREATEST = 2**32 - 1


def parse_batch(rows: Any) -> Columns:
    """Parse many completions.

    A row that begins with `<|start|>` is taken for a whole stream; any other for what was sampled
    after a prompt that ends with `<|start|>assistant`. Nothing that a row holds raises: what is
    wrong with it stands in `problems`. Pure; the vocabulary is opened once a process.

    Args:
        rows: of token ids: a list of lists (or of arrays), an Arrow array of lists, or a numpy
            array, 2-D of integers or 1-D of rows.

    Returns:
        The columns `COLUMNS`, one row a message, in the order of the stream. Text and faults
        outside of messages have rows of their own, without index and role; an empty row has none.

    Raises:
        TypeError: the container holds no rows.

    >>> columns = parse_batch([[200005, 17196, 200008, 13225, 200002], [200005, 35644, 200008]])
    >>> columns["row"], columns["channel"], columns["text"], columns["end"]
    ([0, 1], ['final', 'analysis'], ['Hello', ''], ['return', 'truncated'])
    """
    rows = _checked(rows)
    flat = _flatten(rows)
    messages: list[_Message] = []
    if flat is None:
        for row in range(len(rows)):
            messages += _parse_row(row, _ids_at(rows, row))
    else:
        for row, found in enumerate(_short_cut(flat)):
            messages += _parse_row(row, _ids_at(rows, row)) if found is None else found
    columns = map(list, zip(*messages, strict=True)) if messages else [[] for _ in COLUMNS]
    return dict(zip(COLUMNS, columns, strict=True))


def parse_table(table: pa.Table, ids: str, keep: Sequence[str] = ()) -> pa.Table:
    """Parse a column of an Arrow table; give a table with one row a message.

    Args:
        table: with a column of lists of token ids.
        ids: the name of that column.
        keep: columns of `table`, such as an id, to repeat for each message.

    Raises:
        MissingExtraError: pyarrow is not installed.
        KeyError: no such column.

    >>> import pyarrow as pa
    >>> table = pa.table({"id": ["a"], "ids": [[200005, 17196, 200008, 13225, 200002]]})
    >>> parse_table(table, "ids", keep=["id"]).select(["id", "channel", "text"]).to_pylist()
    [{'id': 'a', 'channel': 'final', 'text': 'Hello'}]
    """
    columns = to_arrow(parse_batch(table.column(ids)))
    kept = {name: table.column(name).take(columns["row"]) for name in keep}
    for name, column in reversed(kept.items()):
        columns = columns.add_column(0, name, column)
    return columns


def to_arrow(columns: Columns) -> pa.Table:
    """The columns of `parse_batch` as an Arrow table, with the types that `COLUMNS` names.

    Raises:
        MissingExtraError: pyarrow is not installed.

    >>> to_arrow(parse_batch([])).num_rows
    0
    """
    arrow = need("pyarrow")
    return arrow.table(columns, schema=arrow_schema())


def arrow_schema() -> pa.Schema:
    """The schema of `to_arrow`.

    >>> arrow_schema().field("problems").type
    ListType(list<item: string>)
    """
    arrow = need("pyarrow")
    types = {"list<string>": arrow.list_(arrow.string()), "bool": arrow.bool_()}
    return arrow.schema(
        [(name, types.get(kind) or getattr(arrow, kind)()) for name, kind in COLUMNS.items()]
    )


# -- Row by row, by the parser ---------------------------------------------------------------------


def _parse_row(row: int, ids: Any) -> list[_Message]:
    try:
        events = events_of(ids)
    except (TypeError, ValueError, LookupError):
        return [_stray(row, "", 0, 0, NOT_TOKEN_IDS)]
    return list(_messages(row, events))


def events_of(ids: Any) -> list[Event]:
    """The events of one completion or whole stream, adjacent text joined.

    Raises:
        TypeError, ValueError: a token is no integer, or negative.

    >>> [event.to_dict()["type"] for event in events_of([200006, 1428, 200008, 13225])]
    ['message_start', 'content_delta', 'message_end']
    """
    parser = EventParser(None if is_whole(ids) else "assistant")
    return [*parser.feed_many(ids), *parser.close()]


def is_whole(ids: Any) -> bool:
    """Whether a row is a whole stream, rather than a completion.

    >>> is_whole([200006, 1428]), is_whole([200005, 17196]), is_whole([])
    (True, False, False)
    """
    return len(ids) > 0 and ids[0] in _WHOLE


def _messages(row: int, events: list[Event]) -> Iterator[_Message]:
    opened: MessageStart | None = None
    texts: list[str] = []
    problems: list[str] = []
    for event in events:
        match event:
            case MessageStart():
                opened, texts, problems = event, [], []
            case ContentDelta():
                texts.append(event.text)
            case MessageEnd():
                assert opened is not None
                text = "".join(texts)
                problems += _problems_of_call(_fields(opened), text, event.complete)
                yield _message(row, opened, text, event, problems)
                opened = None
            case Malformed() if opened is not None:
                problems.append(event.kind.value)
            case _:
                yield _stray(row, event.text, event.start, event.stop, event.kind.value)


def _message(
    row: int, opened: MessageStart, text: str, end: MessageEnd, problems: list[str]
) -> _Message:
    counts = (opened.stop - opened.start, end.start - opened.stop)
    place = (opened.start, end.stop, *counts)
    fields = _fields(opened)
    return (row, opened.index, *fields, text, *place, end.end.value, end.complete, problems)


def _stray(row: int, text: str, start: int, stop: int, problem: str) -> _Message:
    tokens = stop - start if text else 0
    return (row, None, *_NO_FIELDS, text, start, stop, 0, tokens, None, False, [problem])


def _problems_of_call(fields: _Fields, text: str, is_complete: bool) -> list[str]:
    """What is wrong with a message as a tool call, if it is one."""
    if is_complete and fields[3] is not None and lack_json(_header(fields), text):
        return [ARGUMENTS_NOT_JSON]
    return []


@lru_cache(maxsize=4096)
def _header(fields: _Fields) -> Header:
    role, name, channel, recipient, content_type = fields
    return Header(Role(role), name, channel, recipient, content_type)


def _fields(opened: MessageStart) -> _Fields:
    header = opened.header
    return (
        header.role.value,
        header.name,
        header.channel,
        header.recipient,
        header.content_type,
    )


# -- The short cut ---------------------------------------------------------------------------------


class _Flat(NamedTuple):
    """All rows end to end: ids as uint32, where each row begins, and rows that hold none.

    What is no uint32 is the greatest one here: no token, as it would be none itself.
    """

    ids: np.ndarray
    offsets: np.ndarray
    odd: frozenset[int]


class _Block(NamedTuple):
    """Some rows looked up: their marks (tokens that are not text), and the bytes of the others."""

    row: int
    edges: list[int]  # where each row begins, and the last ends
    firsts: list[int]  # the number of each row's first mark
    marks: list[int]  # where they stand
    kinds: list[int]  # which tokens they are
    cuts: list[int]  # where in `data` they stand; at the end, its length
    row_cuts: list[int]  # where in `data` each row ends
    keys: memoryview  # the ids as bytes, four for each
    data: memoryview


@cache
def _table() -> pa.Array:
    """The bytes of each ordinary token, and nothing for the first special one."""
    pieces = [b""] * (_FIRST_SPECIAL + 1)
    for data, token in Vocabulary.default()._tokens().ranks().items():
        pieces[token] = data
    return need("pyarrow").array(pieces)


def _short_cut(flat: _Flat) -> Iterator[list[_Message] | None]:
    """The messages of each row; None for a row that must go through the parser."""
    for block in _blocks(flat):
        for number in range(len(block.firsts) - 1):
            row = block.row + number
            yield None if row in flat.odd else _row_of(block, number, row)


def _blocks(flat: _Flat) -> Iterator[_Block]:
    offsets = flat.offsets
    row, count = 0, len(offsets) - 1
    while row < count:
        stop = int(offsets.searchsorted(offsets[row] + _BLOCK, "right")) - 1
        stop = min(count, max(row + 1, stop))
        yield _look_up(flat, row, stop)
        row = stop


def _look_up(flat: _Flat, row: int, stop: int) -> _Block:
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


def _row_of(block: _Block, number: int, row: int) -> list[_Message] | None:
    """The messages of a row that keeps to the format; None for another one."""
    begin, end = block.edges[number : number + 2]
    mark, last = block.firsts[number : number + 2]
    is_prompted = not (mark < last and block.marks[mark] == begin and block.kinds[mark] in _WHOLE)
    messages: list[_Message] = []
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
        problems = _problems_of_call(fields, text, ending[1])
        messages.append((row, len(messages), *fields, text, *place, *ending, problems))
        mark += 1
    return messages


def _is_idle_end(block: _Block, mark: int, position: int) -> bool:
    """Whether a stop token stands where a message may start, which is no fault."""
    return block.marks[mark] == position and block.kinds[mark] in _ENDS


def _message_mark(block: _Block, mark: int, last: int) -> int | None:
    try:
        return block.kinds.index(_MESSAGE, mark, last)
    except ValueError:
        return None


def _fields_of(block: _Block, start: int, content: int, is_prompted: bool) -> _Fields | None:
    if content - start > _LONGEST_HEADER:
        return None
    return _read_header(block.keys[4 * start : 4 * content].tobytes(), is_prompted)


@lru_cache(maxsize=4096)
def _read_header(key: bytes, is_prompted: bool) -> _Fields | None:
    """What a header says, `<|message|>` included; None unless it is all there is, and faultless."""
    ids = array("I", key)
    events = EventParser("assistant" if is_prompted else None).feed_many(ids)
    match events:
        case [MessageStart(start=0, stop=stop) as opened] if stop == len(ids):
            return _fields(opened)
        case _:
            return None


# -- Rows of any kind ------------------------------------------------------------------------------


def _checked(rows: Any) -> Any:
    """The container as one that has a length, and whose items are rows."""
    numpy, arrow = sys.modules.get("numpy"), sys.modules.get("pyarrow")
    if arrow and isinstance(rows, arrow.ChunkedArray):
        rows = rows.combine_chunks()
    if arrow and isinstance(rows, arrow.Array):
        if not _holds_ids(arrow.types, rows.type):
            raise TypeError(f"an Arrow array of {rows.type}, expected lists of integers")
        return rows
    if numpy and isinstance(rows, numpy.ndarray):
        if not (rows.ndim == 2 or (rows.ndim == 1 and rows.dtype == object)):
            raise TypeError(f"a {rows.ndim}-D array of {rows.dtype}, expected rows of token ids")
        return rows
    return rows if isinstance(rows, list | tuple) else list(rows)


def _holds_ids(types: Any, kind: Any) -> bool:
    checks = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(check(kind) for check in checks) and types.is_integer(kind.value_type)


def _ids_at(rows: Any, row: int) -> Any:
    ids = rows[row]
    return ids.as_py() if hasattr(ids, "as_py") else ids


def _flatten(rows: Any) -> _Flat | None:
    """The rows end to end; None if the extra is not installed."""
    try:
        numpy, arrow = need("numpy"), need("pyarrow")
    except MissingExtraError:
        return None
    if isinstance(rows, arrow.Array):
        return _flatten_arrow(numpy, arrow, rows)
    vectors = [_vector(numpy, row) for row in rows]
    lengths = [0 if vector is None else len(vector) for vector in vectors]
    odd = frozenset(row for row, vector in enumerate(vectors) if vector is None)
    whole = [numpy.empty(0, numpy.uint32), *(vector for vector in vectors if vector is not None)]
    offsets = numpy.cumsum([0, *lengths], dtype=numpy.int64)
    return _Flat(numpy.concatenate(whole), offsets, odd)


def _vector(numpy: Any, row: Any) -> Any:
    """A row as uint32; None if it is none of integers."""
    try:
        if isinstance(row, numpy.ndarray):
            return _as_uint32(numpy, row) if row.ndim == 1 else None
        if isinstance(row, list | tuple):
            row = array("q", row)
        elif not isinstance(row, array):
            return None
        ids = numpy.frombuffer(row, row.typecode) if row else numpy.empty(0, numpy.uint32)
        return _as_uint32(numpy, ids)
    except (TypeError, OverflowError):
        return None


def _as_uint32(numpy: Any, ids: Any) -> Any:
    """Integers of any width as uint32; what does not fit becomes the greatest one, no token."""
    if ids.dtype.kind not in "iu":
        return None
    wide = ids if ids.dtype.itemsize >= 4 else ids.astype(numpy.int32)
    unsigned = wide.view(f"u{wide.dtype.itemsize}")
    return numpy.minimum(unsigned, unsigned.dtype.type(_GREATEST)).astype(numpy.uint32, copy=False)


def _flatten_arrow(numpy: Any, arrow: Any, rows: Any) -> _Flat:
    if arrow.types.is_fixed_size_list(rows.type):
        rows = rows.cast(arrow.list_(rows.type.value_type))
    offsets = rows.offsets.to_numpy()
    values = rows.values[offsets[0] : offsets[-1]]
    offsets = offsets.astype(numpy.int64) - offsets[0]
    odd = list(rows.is_null().to_numpy(zero_copy_only=False).nonzero()[0])
    if values.null_count:
        nulls = values.is_null().to_numpy(zero_copy_only=False).nonzero()[0]
        odd += list(offsets.searchsorted(nulls, "right") - 1)
        values = values.fill_null(0)
    return _Flat(_as_uint32(numpy, values.to_numpy()), offsets, frozenset(map(int, odd)))
