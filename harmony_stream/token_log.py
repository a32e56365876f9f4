"""Token logs as the command reads them: bytes in, lists of token ids out.

Three shapes, told apart by their first character: a JSON array of ids, lines of JSON objects with
the ids in a field, or ids with white space between them. A log is checked as a whole before any of
it is given back.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import attrs

from harmony_stream.errors import HarmonyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ID_FIELDS = ("token_ids", "completion_ids", "tokens")
"""Where a JSON object holds its ids; the first one that is there counts."""

# Engines and files keep ids in 32 bits.
_MAX_ID = 2**32 - 1
_EXPECTED = f"expected a token id, an integer from 0 to {_MAX_ID}"
_LONGEST_QUOTE = 40


@attrs.frozen
class Record:
    """One stream of a log.

    Attributes:
        tokens: the ids.
        line: where it stands, in a log of JSON lines; None if the log is this stream only.
    """

    tokens: list[int]
    line: int | None = None


@attrs.frozen(auto_exc=True, slots=False, str=False)
class TokenLogError(HarmonyError):
    """A token log cannot be read.

    Attributes:
        line: the number of the line at fault, from 1.
        reason: what is wrong with it.
    """

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


def parse_log(data: bytes) -> list[Record]:
    r"""The streams of a token log, all of them checked.

    Raises:
        TokenLogError: the log is empty, not UTF-8, or holds something else than token ids.

    >>> parse_log(b"200005 17196 200008")
    [Record(tokens=[200005, 17196, 200008], line=None)]
    >>> parse_log(b'{"token_ids": [200005]}\n{"token_ids": [17196.5]}')
    Traceback (most recent call last):
        ...
    harmony_stream.token_log.TokenLogError: line 2: item 0 of token_ids is 17196.5, expected ...
    """
    text = _decode(data)
    match text.lstrip()[:1]:
        case "":
            raise TokenLogError(1, "empty, expected token ids")
        case "[":
            return [Record(_array(text))]
        case "{":
            # Not splitlines(), which also cuts at characters that JSON strings may hold.
            lines = enumerate(text.split("\n"), 1)
            return [_record(line, number) for number, line in lines if line.strip()]
        case _:
            return [Record(list(_words(text)))]


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise TokenLogError(line, f"not UTF-8: byte 0x{error.object[error.start]:02x}") from error


def _words(text: str) -> Iterator[int]:
    for number, line in enumerate(text.split("\n"), 1):
        for word in line.split():
            if not re.fullmatch("[0-9]{1,10}", word) or int(word) > _MAX_ID:
                raise TokenLogError(number, f"{_quote(word)} where {_EXPECTED[9:]} was expected")
            yield int(word)


def _array(text: str) -> list[int]:
    def line_of(place: int) -> int:
        # All items before this one are numbers, so that each comma stands between two items.
        rest = text.lstrip()[1:].split(",", place)[-1].lstrip()
        return text.count("\n", 0, len(text) - len(rest)) + 1

    items = _json(text, 1)
    assert isinstance(items, list)
    return _ids(items, "the array", line_of)


def _record(line: str, number: int) -> Record:
    record = _json(line, number)
    if not isinstance(record, dict):
        raise TokenLogError(number, f"{_quote(record)} where an object was expected, as in line 1")
    field = next((field for field in ID_FIELDS if field in record), None)
    if field is None:
        raise TokenLogError(number, f"no field {', '.join(ID_FIELDS[:-1])} or {ID_FIELDS[-1]}")
    items = record[field]
    if not isinstance(items, list):
        raise TokenLogError(number, f"{field} is {_quote(items)}, expected an array of token ids")
    return Record(_ids(items, field, lambda place: number), number)


def _ids(items: list[Any], name: str, line_of: Callable[[int], int]) -> list[int]:
    for place, item in enumerate(items):
        if type(item) is not int or not 0 <= item <= _MAX_ID:
            reason = f"item {place} of {name} is {_quote(item)}, {_EXPECTED}"
            raise TokenLogError(line_of(place), reason)
    return items


def _json(text: str, line: int) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        is_cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        reason = "the JSON is cut off" if is_cut else f"{error.msg} at column {error.colno}"
        raise TokenLogError(line + error.lineno - 1, f"not JSON: {reason}") from error
    except RecursionError as error:
        raise TokenLogError(line, "JSON that is nested too deeply") from error
    except ValueError as error:  # Python's limit for the digits of an integer
        raise TokenLogError(line, f"a number with too many digits, {_EXPECTED}") from error


def _quote(value: object) -> str:
    match value:
        case list():
            return "an array"
        case dict():
            return "an object"
        case _:
            quoted = json.dumps(value)
            is_long = len(quoted) > _LONGEST_QUOTE
            return quoted[:_LONGEST_QUOTE] + "..." if is_long else quoted
