"""JSON values of a log, with sentences for errors, and with little memory for long arrays of ids.

The standard library's decoder makes an object of each number: 40 bytes for seven digits. If a long
text is mostly token ids, arrays of ids take four bytes an id instead, read some thousands at a
time. A library that reads piece by piece (ijson, json-stream) makes an event of each number, at
several times the cost, and would be a dependency of the core.
"""

# ruff: noqa: ANN401 - JSON values may be of any type

from __future__ import annotations

import json
import re
from array import array
from json import scanner
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

CUT = "not JSON: it is cut off"
# From this length on, the memory of a value matters.
_LONG = 1 << 20
# The shortest run of ids that is worth a call of its own, and the most that is read at once.
_WORTH = 64
_IDS = re.compile(r"[0-9, \t\r\n]{0,65536}")
# Beginnings of a word, a number or an escape, which more text may complete.
_WORDS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_UNFINISHED = re.compile(r"-|\.|[eE][+-]?|u[0-9a-fA-F]{0,4}")


class CutError(ValueError):
    """JSON that ends too early."""


def json_of(data: bytes) -> Any:
    """Return a JSON value; arrays of ids in it may be `array("I")`.

    Raises:
        ValueError: the data are not JSON; the sentence gives the reason.

    >>> json_of(b"[1, 2")
    Traceback (most recent call last):
        ...
    harmony_stream.logs.readers.json_values.CutError: not JSON: it is cut off
    """
    try:
        text = data.decode()
        return _decoder(text).decode(text)
    except (ValueError, RecursionError) as error:
        raise json_error(error) from None


def decode(text: str, start: int) -> tuple[Any, int]:
    """Return the JSON value that begins there, and its end; raise what `json` raises."""
    return _decoder(text).raw_decode(text, start)


def _decoder(text: str) -> json.JSONDecoder:
    is_frugal = len(text) > _LONG and 32 * sum(map(text.count, '"[{.')) < len(text)
    return _FRUGAL if is_frugal else _DECODER


def json_error(error: Exception) -> ValueError:
    """Return an error of JSON as a sentence: a `CutError` if more text could make it valid."""
    match error:
        case UnicodeDecodeError(reason="unexpected end of data"):
            return CutError(CUT)
        case UnicodeDecodeError():
            return ValueError(f"not UTF-8: byte 0x{error.object[error.start]:02x}")
        case json.JSONDecodeError() if _is_cut(error):
            return CutError(CUT)
        case json.JSONDecodeError():
            return ValueError(f"not JSON: {error.msg}")
        case RecursionError():
            return ValueError("JSON that is nested too deeply")
        case _:  # Python's limit for the digits of an integer
            return ValueError("a number with too many digits")


def _is_cut(error: json.JSONDecodeError) -> bool:
    if error.msg.startswith("Unterminated"):
        return True
    rest = error.doc[error.pos : error.pos + 9].rstrip(" \t\r\n")
    if len(error.doc.rstrip(" \t\r\n")) > error.pos + len(rest):
        return False
    return any(word.startswith(rest) for word in _WORDS) or bool(_UNFINISHED.fullmatch(rest))


# -- Long values -----------------------------------------------------------------------------------


def _array(s_and_end: tuple[str, int], scan_once: Callable[[str, int], Any], **_: Any) -> Any:
    """Read an array of JSON from after its bracket: an `array("I")` if it holds only ids."""
    text, end = s_and_end
    ids = array("I")
    while (run := _IDS.match(text, end)) and (cut := run[0].rfind(",")) > _WORTH:
        try:
            ids += array("I", json.loads(f"[{run[0][:cut]}]"))
        except (ValueError, OverflowError):
            break  # the rest is read like any array, which raises the error
        end += cut + 1
    rest, stop = json.decoder.JSONArray((text, end), scan_once)  # type: ignore[attr-defined]
    if not ids:
        return rest, stop
    if not rest:
        raise json.JSONDecodeError("Expecting value", text, stop - 1)
    if set(map(type, rest)) == {int} and min(rest) >= 0 and max(rest) < 2**32:
        return ids + array("I", rest), stop
    return ids.tolist() + rest, stop


class _Frugal(json.JSONDecoder):
    """The standard library's decoder in Python, with `_array` for arrays."""

    def __init__(self) -> None:
        super().__init__()
        self.parse_array = _array
        self.scan_once = scanner.py_make_scanner(self)  # type: ignore[attr-defined]


_DECODER = json.JSONDecoder()
_FRUGAL = _Frugal()
