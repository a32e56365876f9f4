"""Many completions at once: lists of token ids in, columns with one row a message out.

`parse_batch` is the unit that engines call. Without pyarrow and numpy each row goes through an
`EventParser`. With them (the extra `arrow`) well-formed rows take a short cut: one `take` in C++
gathers the bytes of all tokens of the batch, one comparison finds the special tokens, and Python
does a few steps a message. Headers repeat, so the parser reads each once and the result is cached.
All other rows go through the parser. A test holds the short cut to the parser's results on
arbitrary tokens.

Measured in one run on a loaded machine: 37 ns a token by the short cut, 226 ns by the parser,
3,200 ns by openai-harmony (`python -m benchmarks --rows logs`).
"""

# ruff: noqa: ANN401 - numpy and Arrow are loaded late, and Arrow has no types

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harmony_stream.logs.columns import (
    COLUMNS,
    NO_FIELDS,
    NOT_TOKEN_IDS,
    Columns,
    MessageRow,
    faults_of_call,
    header_fields,
    to_arrow,
)
from harmony_stream.logs.rows import checked, flatten, ids_at, is_whole
from harmony_stream.logs.short_cut import short_cut
from harmony_stream.parsing.parser import EventParser
from harmony_stream.values.fold import EndedMessage, Fold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa  # type: ignore[import-untyped]

    from harmony_stream.values.events import Event


def parse_batch(rows: Any) -> Columns:
    """Parse many completions.

    A row that begins with `<|start|>` is a full stream. Any other is a completion, sampled after a
    prompt that ends with `<|start|>assistant`. Nothing in a row raises: its faults are in the
    column `faults`. Pure; the vocabulary is opened once a process.

    Args:
        rows: rows of token ids: a list of lists (or of arrays), an Arrow array of lists, or a numpy
            array, 2-D of integers or 1-D of rows.

    Returns:
        The columns `COLUMNS`, one row a message, in the order of the stream. Text and faults
        outside of messages have rows of their own, without index and role; an empty row has none.

    Raises:
        TypeError: the container does not hold rows.

    >>> columns = parse_batch([[200005, 17196, 200008, 13225, 200002], [200005, 35644, 200008]])
    >>> columns["row"], columns["channel"], columns["text"], columns["end"]
    ([0, 1], ['final', 'analysis'], ['Hello', ''], ['return', 'truncated'])
    """
    rows = checked(rows)
    flat = flatten(rows)
    messages: list[MessageRow] = []
    if flat is None:
        for row in range(len(rows)):
            messages += _parse_row(row, ids_at(rows, row))
    else:
        for row, found in enumerate(short_cut(flat)):
            messages += _parse_row(row, ids_at(rows, row)) if found is None else found
    columns = map(list, zip(*messages, strict=True)) if messages else [[] for _ in COLUMNS]
    return dict(zip(COLUMNS, columns, strict=True))


def parse_table(table: pa.Table, ids: str, keep: Sequence[str] = ()) -> pa.Table:
    """Parse a column of an Arrow table; return a table with one row a message.

    Args:
        table: a table with a column of lists of token ids.
        ids: the name of that column.
        keep: columns of `table`, such as an id, to repeat for each message.

    Raises:
        MissingExtraError: pyarrow is not installed.
        KeyError: there is no such column.

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


# -- Row by row, by the parser ---------------------------------------------------------------------


def _parse_row(row: int, ids: Any) -> list[MessageRow]:
    try:
        events = events_of(ids)
    except (TypeError, ValueError, LookupError):
        return [_stray(row, "", 0, 0, NOT_TOKEN_IDS)]
    return list(_messages(row, events))


def events_of(ids: Any) -> list[Event]:
    """Return the events of one completion or full stream, adjacent text joined.

    Raises:
        TypeError, ValueError: a token is not an integer, or is negative.

    >>> [event.to_dict()["type"] for event in events_of([200006, 1428, 200008, 13225])]
    ['message_start', 'content_delta', 'message_end']
    """
    parser = EventParser(None if is_whole(ids) else "assistant")
    return [*parser.feed_many(ids), *parser.close()]


def _messages(row: int, events: list[Event]) -> Iterator[MessageRow]:
    fold = Fold()
    for event in events:
        found = fold.feed(event)
        if isinstance(found, EndedMessage):
            yield _message(row, found)
        elif found is not None:
            yield _stray(row, found.text, found.start, found.stop, found.kind.value)


def _message(row: int, ended: EndedMessage) -> MessageRow:
    start, text, end, _ = ended
    fields = header_fields(start)
    faults = [fault.kind.value for fault in ended.faults]
    faults += faults_of_call(fields, text, end.complete)
    place = (start.start, end.stop, start.stop - start.start, end.start - start.stop)
    return (row, start.index, *fields, text, *place, end.end.value, end.complete, faults)


def _stray(row: int, text: str, start: int, stop: int, fault: str) -> MessageRow:
    tokens = stop - start if text else 0
    return (row, None, *NO_FIELDS, text, start, stop, 0, tokens, None, False, [fault])
