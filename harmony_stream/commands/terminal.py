r"""Text for a terminal: nothing in a log may colour it, move its cursor, or hide from its reader.

A character that Python does not call printable is escaped as `\x1b`, `\u200f` or `\U000e0041`:
control characters, those that turn the direction of text or take no room, tags, lone surrogates.
Invisible characters that Python calls printable, such as the fillers of Hangul, are escaped too. In
content these are kept:

- line breaks and tabs, and spaces of all widths;
- emoji that are newer than the Unicode data of this Python;
- what makes one emoji of several characters: a variation selector after an emoji, and a zero
  width joiner between two. Elsewhere, and if repeated, these are escaped. Flags of regions, which
  are spelled in tags, and the joiners of some scripts are escaped as well, since any text could be
  hidden in them.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from contextlib import suppress

# Printable to Python, and invisible: Unicode's default ignorable code points that are not format
# characters.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_JOINER, _SELECTORS = "\u200d", "\ufe0e\ufe0f"
_BLOCK = "\U0001f000-\U0001fbff"
_EMOJI = (
    "[#*0-9\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf"
    f"\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299{_BLOCK}]"
)
_KEYS = tuple("#*0123456789")  # the emoji among ASCII
_SELECTED = f"{_EMOJI}[{_SELECTORS}]?"
_LAST_EMOJI = re.compile(rf"({_SELECTED})({_JOINER}?)\Z")
# Passed without a second look, for speed alone: ASCII, and the common letters of many languages.
_PLAIN = (
    " -~\n\t\xa1-\xac\xae-\u02ff\u0400-\u04ff\u3000-\u303f\u3041-\u3096\u309b-\u30ff\u4e00-\u9fff"
    f"\uac00-\ud7a3\uff01-\uff9f{_BLOCK}"
)
# An emoji of several characters, or one character that may have to be escaped.
_CONTENT = re.compile(
    rf"({_EMOJI}(?=[{_SELECTORS}{_JOINER}])[{_SELECTORS}]?(?:{_JOINER}{_SELECTED})*)|[^{_PLAIN}]"
)


def visible(text: str) -> str:
    r"""Return a name or a sentence as one visible line.

    >>> visible("final\x1b[31m\n")
    'final\\x1b[31m\\x0a'
    """
    if _is_seen(text):
        return text
    return "".join(char if _is_seen(char) else _spelled(char) for char in text)


def complain(reason: object) -> None:
    """Print on standard error what is wrong; nobody has to read it."""
    with suppress(OSError):
        print(f"harmony-stream: {visible(str(reason))}", file=sys.stderr)


class VisibleContent:
    r"""Content that comes in pieces, made visible: each piece as soon as it can be shown.

    >>> content = VisibleContent()
    >>> content.feed("Hi\x1b\n\U0001f469\u200d") + content.feed("\U0001f373") + content.end()
    'Hi\\x1b\n👩\u200d🍳'
    """

    def __init__(self) -> None:
        self._shown = ""  # an emoji at the end of what was shown
        self._held = ""  # a joiner after it, until the next character comes

    def feed(self, text: str) -> str:
        """Take a piece and return the text to show next."""
        if not self._shown and text.isascii() and text.replace("\n", "").isprintable():
            self._shown = text[-1] if text.endswith(_KEYS) else ""
            return text
        shown, text = self._shown, self._shown + self._held + text
        found = _LAST_EMOJI.search(text)
        self._shown, self._held = found.groups() if found else ("", "")
        text = text.removesuffix(self._held)
        return _CONTENT.sub(_kept_or_spelled, text)[len(shown) :]

    def end(self) -> str:
        """End the content and return what was held back."""
        held, self._shown, self._held = self._held, "", ""
        return visible(held)


def _is_seen(text: str) -> bool:
    return text.isprintable() and (text.isascii() or not _UNSEEN.search(text))


def _kept_or_spelled(found: re.Match[str]) -> str:
    text = found[0]
    is_kept = found[1] or _is_seen(text) or unicodedata.category(text) == "Zs"
    return text if is_kept else _spelled(text)


def _spelled(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
