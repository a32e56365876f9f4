"""Token logs: read any format, parse many completions at once, write their content.

>>> import io
>>> from harmony_stream import logs
>>> log = io.BytesIO(b'{"token_ids": [200005, 17196, 200008, 13225, 200002]}')
>>> columns = logs.parse_batch([record.completion for record in logs.read_log(log)])
>>> columns["channel"], columns["text"]
(['final'], ['Hello'])
"""

from harmony_stream.logs.batch import parse_batch, parse_table
from harmony_stream.logs.columns import COLUMNS, NOT_TOKEN_IDS, Columns, to_arrow
from harmony_stream.logs.read import FORMATS, read_log
from harmony_stream.logs.record import LogError, LogRecord, LogWarning, ReadOptions
from harmony_stream.logs.rows import is_whole
from harmony_stream.logs.selection import Selection, select
from harmony_stream.support.extras import MissingExtraError

__all__ = [
    "COLUMNS",
    "FORMATS",
    "NOT_TOKEN_IDS",
    "Columns",
    "LogError",
    "LogRecord",
    "LogWarning",
    "MissingExtraError",
    "ReadOptions",
    "Selection",
    "is_whole",
    "parse_batch",
    "parse_table",
    "read_log",
    "select",
    "to_arrow",
]
