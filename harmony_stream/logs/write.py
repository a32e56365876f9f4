"""The content of logs, written in four shapes."""

# ruff: noqa: ANN401 - pyarrow has no types

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harmony_stream.logs.batch import events_of
from harmony_stream.logs.chat import Said, chat_messages, said_in
from harmony_stream.logs.columns import COLUMNS, arrow_schema, to_arrow
from harmony_stream.support.extras import need
from harmony_stream.values.events import EndKind
from harmony_stream.values.header import Header
from harmony_stream.values.messages import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa  # type: ignore[import-untyped]

    from harmony_stream.logs.record import LogRecord
    from harmony_stream.logs.work import Batch


# -- Lines -----------------------------------------------------------------------------------------


def events_lines(batch: Batch) -> bytes:
    """Return one event a line: the place of its record, then its `to_dict`.

    Raises nothing: records hold ids, and no sequence of ids raises.
    """
    return _lines(
        place_of(record) | event.to_dict()
        for record in batch.records
        for event in events_of(record.completion)
    )


def messages_lines(batch: Batch) -> bytes:
    """Return one message a line, in the shape of `Message.to_dict`, with its span and end.

    The type is `message`; text and faults outside of any message have the type `outside`.
    """
    return _lines(_message(batch.records, row) for row in rows_of(batch))


def _message(records: list[LogRecord], row: dict[str, Any]) -> dict[str, Any]:
    is_message = row["index"] is not None
    line = place_of(records[row.pop("row")])
    line["type"] = "message" if is_message else "outside"
    row["content"] = [{"type": "text", "text": row.pop("text")}]
    return line | (row if is_message else {name: row[name] for name in _OUTSIDE})


_OUTSIDE = ("content", "start", "stop", "faults")


def chat_lines(batch: Batch) -> bytes:
    """Return one record a line: chat messages, completeness and faults."""
    rows: list[list[dict[str, Any]]] = [[] for _ in batch.records]
    for row in rows_of(batch):
        rows[row["row"]].append(row)
    return _lines(map(_chat, batch.records, rows))


def _chat(record: LogRecord, rows: list[dict[str, Any]]) -> dict[str, Any]:
    is_whole = all(row["index"] is not None or not row["text"].strip() for row in rows)
    said: Iterable[Said]
    if is_whole:
        said = [_said(row) for row in rows if row["index"] is not None]
    else:  # the columns do not tell to which message stray text belongs
        said = said_in(events_of(record.completion))
    faults = [fault for row in rows for fault in row["faults"]]
    is_complete = bool(rows) and all(row["complete"] for row in rows)
    return place_of(record) | {
        "messages": chat_messages(said),
        "complete": is_complete,
        "faults": faults,
    }


def _said(row: Mapping[str, Any]) -> Said:
    return Said(header_of(row), row["text"], row["complete"], EndKind(row["end"]).ends_answer)


def header_of(row: Mapping[str, Any]) -> Header:
    """Return the header of a row of `parse_batch`.

    >>> header_of({"role": "user", "name": None, "channel": None, "recipient": None,
    ...            "content_type": None}).role.value
    'user'
    """
    return Header(
        Role(row["role"]), row["name"], row["channel"], row["recipient"], row["content_type"]
    )


def place_of(record: LogRecord) -> dict[str, Any]:
    """Return the log, the number and the choice of a record."""
    return {"source": record.source, "record": record.number, "choice": record.choice}


def rows_of(batch: Batch) -> Iterator[dict[str, Any]]:
    """Return the messages of a batch, each as a dict."""
    for values in zip(*batch.columns.values(), strict=True):
        yield dict(zip(COLUMNS, values, strict=True))


def _lines(values: Any) -> bytes:
    # ASCII: no reader has to guess the encoding, or takes U+2028 for a line break.
    return "".join(f"{json.dumps(value)}\n" for value in values).encode("ascii")


LINES: Mapping[str, Callable[[Batch], bytes]] = {
    "events": events_lines,
    "messages": messages_lines,
    "chat": chat_lines,
}
"""The shapes that are lines of JSON, each with its function."""


# -- Parquet ---------------------------------------------------------------------------------------


def message_schema() -> pa.Schema:
    """Return the schema: the place of a record, then the columns of `parse_batch` except `row`."""
    arrow = need("pyarrow")
    places = [("source", arrow.string()), ("record", arrow.int64()), ("choice", arrow.int32())]
    return arrow.schema([*map(arrow.field, *zip(*places, strict=True)), *list(arrow_schema())[1:]])


def message_table(batch: Batch) -> pa.Table:
    """Return the messages of a batch as a table of that schema."""
    arrow = need("pyarrow")
    table = to_arrow(batch.columns)
    rows = batch.columns["row"]
    places = [place_of(batch.records[row]) for row in rows]
    columns = [[place[name] for place in places] for name in ("source", "record", "choice")]
    return arrow.table([*columns, *table.columns[1:]], schema=message_schema())
