r"""JSON on one line, for every reader.

Some readers treat U+2028, U+2029 and U+0085 as ends of lines, so JSON is written without them.
"""

from __future__ import annotations

import json
import re

_ENCODER = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
)

# Ends of lines to some readers, and surrogates, which UTF-8 cannot encode.
_UNSAFE = re.compile("[\x85\u2028\u2029\ud800-\udfff]")


def to_json(value: object) -> str:
    r"""Return one line of JSON that every reader treats as one line.

    Raises:
        ValueError: if a number is not valid in JSON, such as infinity.

    >>> to_json({"text": "a\u2028b", "word": "été"})
    '{"text":"a\\u2028b","word":"été"}'
    """
    text = _ENCODER.encode(value)
    return text if text.isascii() or _is_safe(text) else _UNSAFE.sub(_safe, text)


def _is_safe(text: str) -> bool:
    # Seven times as fast as the pattern in a long text.
    if "\x85" in text or "\u2028" in text or "\u2029" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _safe(found: re.Match[str]) -> str:
    character = found[0]
    return "\ufffd" if "\ud800" <= character <= "\udfff" else f"\\u{ord(character):04x}"


class QuotedTexts(dict[str, bytes]):
    r"""Texts as JSON in bytes, made when they are first read; short ones are kept.

    Most tokens come again and again. A full table takes about 3 MB, and is then made from nothing,
    so that it follows what models write now.

    >>> QuotedTexts()['"\u2028']
    b'"\\"\\u2028"'
    """

    _MOST = 16_384
    _LONGEST = 32

    def __missing__(self, text: str) -> bytes:
        quoted = to_json(text).encode()
        if len(text) <= self._LONGEST:
            if len(self) >= self._MOST:
                self.clear()
            self[text] = quoted
        return quoted
