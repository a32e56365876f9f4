"""The result of `parse_batch`: messages in columns."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from harmony_stream.adapters.arguments import ARGUMENTS_NOT_JSON, lack_json
from harmony_stream.support.extras import need
from harmony_stream.values.header import Header
from harmony_stream.values.messages import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa  # type: ignore[import-untyped]

    from harmony_stream.values.events import (
        MessageStart,
    )


Columns: TypeAlias = dict[str, list[Any]]
"""Columns of equal length by name, in the order of `COLUMNS`."""


COLUMNS: Mapping[str, str] = {
    "row": "int64",  # number of the row in the batch, from 0
    "index": "int32",  # number of the message in its row, from 0; None: outside of any message
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
    "faults": "list<string>",
}
"""The columns of `parse_batch` in order, each with Arrow's name for its type."""


NOT_TOKEN_IDS = "not_token_ids"
"""The fault of a row that is not token ids: a null, or with a negative number or a float."""


# Message: the values of one row of the columns. Fields: those of a header, as plain strings.
MessageRow: TypeAlias = tuple[Any, ...]


Fields: TypeAlias = tuple[str, str | None, str | None, str | None, str | None]


NO_FIELDS = (None,) * 5


def to_arrow(columns: Columns) -> pa.Table:
    """Return the columns of `parse_batch` as an Arrow table, with the types in `COLUMNS`.

    Raises:
        MissingExtraError: pyarrow is not installed.

    >>> from harmony_stream.logs.batch import parse_batch
    >>> to_arrow(parse_batch([])).num_rows
    0
    """
    arrow = need("pyarrow")
    return arrow.table(columns, schema=arrow_schema())


def arrow_schema() -> pa.Schema:
    """Return the schema of `to_arrow`.

    >>> arrow_schema().field("faults").type
    ListType(list<item: string>)
    """
    arrow = need("pyarrow")
    types = {"list<string>": arrow.list_(arrow.string()), "bool": arrow.bool_()}
    return arrow.schema(
        [(name, types.get(kind) or getattr(arrow, kind)()) for name, kind in COLUMNS.items()]
    )


def faults_of_call(fields: Fields, text: str, is_complete: bool) -> list[str]:
    """Return the faults of a message as a tool call, if it is one."""
    if is_complete and fields[3] is not None and lack_json(_header(fields), text):
        return [ARGUMENTS_NOT_JSON]
    return []


@lru_cache(maxsize=4096)
def _header(fields: Fields) -> Header:
    role, name, channel, recipient, content_type = fields
    return Header(Role(role), name, channel, recipient, content_type)


def header_fields(opened: MessageStart) -> Fields:
    header = opened.header
    return (
        header.role.value,
        header.name,
        header.channel,
        header.recipient,
        header.content_type,
    )
