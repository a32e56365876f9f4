"""Bytes in, whole characters out: tokens end inside of characters."""

from __future__ import annotations

from codecs import utf_8_decode


def unfinished_bytes(data: bytes) -> int:
    r"""Return the number of bytes at the end that more bytes may make a character of.

    >>> unfinished_bytes(b"a\xe2\x82"), unfinished_bytes("a€".encode())
    (2, 0)
    """
    tail = data[-3:]  # a character has four bytes at most
    return len(tail) - utf_8_decode(tail, "replace", False)[1]


class Utf8Buffer:
    r"""Holds the bytes of an unfinished character, and where the text that they belong to begins.

    Bytes that can begin no character become U+FFFD, as soon as that is certain.

    >>> buffer = Utf8Buffer()
    >>> buffer.take(b"\xe2\x82", 3, 4), buffer.take(b"\xac", 4, 5)
    (('', 3), ('€', 3))
    """

    __slots__ = ("held", "mark")

    def __init__(self) -> None:
        self.held = b""
        self.mark = 0

    def take(self, data: bytes, start: int, stop: int) -> tuple[str, int]:
        """Return the characters that are whole now, and where they begin.

        The span of the data is half-open, as that of an event.
        """
        if self.held:
            data, start = self.held + data, self.mark
        text, used = utf_8_decode(data, "replace", False)
        self.held = data[used:]
        self.mark = stop if text else start
        return text, start

    def flush(self) -> str:
        """Return U+FFFD for an unfinished character that will not be finished, or ""."""
        text = self.held.decode("utf-8", "replace")
        self.held = b""
        return text

    def copy(self) -> Utf8Buffer:
        """Return a buffer that holds the same."""
        twin = Utf8Buffer()
        twin.held, twin.mark = self.held, self.mark
        return twin
