"""Marked text: special tokens spelled out in it, in chunks that are cut anywhere.

Text goes to the same state machine as tokens do: a marker as the id of its token, all else as it
is. Text that can still become a marker is held back.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from harmony_stream.vocabulary import Vocabulary

# A lone half of a surrogate pair is not a character: it becomes U+FFFD, as broken bytes do.
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class _Markers(NamedTuple):
    """The spellings of special tokens: a pattern that finds one, and all beginnings of one."""

    ids: dict[str, int]
    pattern: re.Pattern[str]
    beginnings: frozenset[str]
    longest: int


def _markers_in_text(vocabulary: Vocabulary) -> _Markers:
    return _markers_of(vocabulary, in_bytes=False)


def _markers_in_bytes(vocabulary: Vocabulary) -> _Markers:
    return _markers_of(vocabulary, in_bytes=True)


def _markers_of(vocabulary: Vocabulary, *, in_bytes: bool) -> _Markers:
    # Those of the format come first, since they come most often; of others the longest that fits.
    formatting = set(vocabulary.formatting_tokens.values())
    order = sorted(vocabulary.special_tokens, key=lambda text: (text not in formatting, -len(text)))
    spelled = {_as_characters(text.encode()) if in_bytes else text: text for text in order}
    return _Markers(
        {text: vocabulary.special_tokens[name] for text, name in spelled.items()},
        re.compile("|".join(map(re.escape, spelled))),
        frozenset(text[:length] for text in spelled for length in range(1, len(text))),
        max(map(len, spelled)),
    )


def _as_characters(data: bytes) -> str:
    """Bytes as characters of the same number, so that one pattern does for both."""
    return data.decode("latin-1")


class MarkedText:
    """Cuts marked text into items for the machine: ids of markers, and text between them.

    Args:
        vocabulary: whose special tokens count as markers.
        first: what is fed first: all that follows must be `str`, or `bytes`, as it is.
    """

    __slots__ = ("_held", "_is_bytes", "_vocabulary")

    def __init__(self, vocabulary: Vocabulary, first: str | bytes) -> None:
        self._vocabulary = vocabulary
        self._is_bytes = isinstance(first, bytes)
        self._held = ""

    def copy(self) -> MarkedText:
        """Return another one that holds the same text back."""
        twin = MarkedText(self._vocabulary, b"" if self._is_bytes else "")
        twin._held = self._held
        return twin

    def cut(self, chunk: str | bytes) -> list[tuple[int | str | bytes, int]]:
        """Take a chunk; return each item that is certain, with its width in characters or bytes."""
        text = self._held + self._readable(chunk)
        certain, self._held = self._split_at_half_marker(text)
        return self._items(certain)

    def rest(self) -> list[tuple[int | str | bytes, int]]:
        """Return the text that was held back: nothing follows that could make a marker of it."""
        text, self._held = self._held, ""
        return self._items(text)

    def forget(self) -> None:
        """Drop the text that is held back."""
        self._held = ""

    def _readable(self, chunk: str | bytes) -> str:
        if not isinstance(chunk, str | bytes):
            raise TypeError(f"marked text is str or bytes, not {type(chunk).__name__}")
        if isinstance(chunk, bytes) is not self._is_bytes:
            kind = "bytes" if self._is_bytes else "str"
            raise ValueError(f"this parser took {kind} before: reset() it first")
        if isinstance(chunk, bytes):
            return _as_characters(chunk)
        return _LONE_SURROGATE.sub("\ufffd", str.__str__(chunk))

    @property
    def _markers(self) -> _Markers:
        return self._vocabulary.table(_markers_in_bytes if self._is_bytes else _markers_in_text)

    def _split_at_half_marker(self, text: str) -> tuple[str, str]:
        markers = self._markers
        # A whole marker at the end must not be taken for the beginning of another one.
        whole = [match.end() for match in markers.pattern.finditer(text)]
        first = max(0, *whole[-1:], len(text) - markers.longest + 1)
        for start in range(first, len(text)):
            if text[start:] in markers.beginnings:
                return text[:start], text[start:]
        return text, ""

    def _items(self, text: str) -> list[tuple[int | str | bytes, int]]:
        items: list[tuple[int | str | bytes, int]] = []
        markers, done = self._markers, 0
        for marker in markers.pattern.finditer(text):
            items += self._text(text[done : marker.start()])
            done = marker.end()
            items.append((markers.ids[marker[0]], len(marker[0])))
        return items + self._text(text[done:])

    def _text(self, text: str) -> list[tuple[int | str | bytes, int]]:
        if not text:
            return []
        return [(text.encode("latin-1") if self._is_bytes else text, len(text))]
