"""The files of transcripts: JSON lines, and a compact binary form; both can be appended to.

A crash while a file is written leaves one that can be read: at worst its end is missing.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from typing import NamedTuple, TypeAlias

FORMAT = "harmony_stream.transcript"


class Saved(NamedTuple):
    """What this transcript wrote last: where, how many tokens, and the size of the file."""

    path: str
    tokens: int
    size: int


About: TypeAlias = "dict[str, str | int]"
Record: TypeAlias = tuple[list[int], list[int]]  # prompted, and sampled after that


class JsonLines:
    """One object a line: first what the file is, then tokens."""

    @staticmethod
    def head(about: About) -> bytes:
        return json.dumps(about).encode() + b"\n"

    @staticmethod
    def record(prompted: list[int], sampled: list[int]) -> bytes:
        fields = {"prompted": prompted, "sampled": sampled}
        return json.dumps(fields, separators=(",", ":")).encode() + b"\n"

    @staticmethod
    def read(data: bytes, name: str) -> tuple[About, list[Record], int]:
        """What the file is, its records, and the size of what is whole."""
        lines = data.splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):  # half-written
            lines.pop()
        try:
            about, *rows = map(json.loads, lines)
            records = [(list(row["prompted"]), list(row["sampled"])) for row in rows]
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"{name} is no transcript, or damaged: {error}") from None
        return about, records, sum(map(len, lines))


class Binary:
    """A line that names the format; then records: length, CRC-32, and so many bytes.

    The first record is JSON: what the file is. The others: how many tokens were prompted, those,
    and the sampled ones. All numbers are little-endian and take four bytes.
    """

    magic = b"harmony_stream transcript\n"
    frame = struct.Struct("<II")

    @classmethod
    def head(cls, about: About) -> bytes:
        return cls.magic + cls.framed(json.dumps(about).encode())

    @classmethod
    def record(cls, prompted: list[int], sampled: list[int]) -> bytes:
        numbers = [len(prompted), *prompted, *sampled]
        try:
            return cls.framed(struct.pack(f"<{len(numbers)}I", *numbers))
        except struct.error:
            raise ValueError(
                f"token {max(numbers)} does not fit into four bytes; save as JSON lines (.jsonl)"
            ) from None

    @classmethod
    def framed(cls, payload: bytes) -> bytes:
        return cls.frame.pack(len(payload), zlib.crc32(payload)) + payload

    @classmethod
    def read(cls, data: bytes, name: str) -> tuple[About, list[Record], int]:
        """What the file is, its records, and the size of what is whole."""
        payloads, size = [], len(cls.magic)
        while len(data) >= (begin := size + cls.frame.size):
            length, crc = cls.frame.unpack_from(data, size)
            payload = data[begin : begin + length]
            is_sound = len(payload) == length and zlib.crc32(payload) == crc
            if not is_sound and begin + length >= len(data):  # half-written
                break
            if not is_sound:
                raise ValueError(f"{name} is damaged at byte {size}")
            payloads.append(payload)
            size = begin + length
        if not payloads:
            raise ValueError(f"{name} is no transcript: its head is missing")
        return json.loads(payloads[0]), list(map(cls.tokens_of, payloads[1:])), size

    @staticmethod
    def tokens_of(payload: bytes) -> Record:
        count, *ids = struct.unpack(f"<{len(payload) // 4}I", payload)
        return ids[:count], ids[count:]


def layout_of(name: str) -> type[JsonLines] | type[Binary]:
    return JsonLines if name.endswith(".jsonl") else Binary


def malformed_of(about: About, name: str) -> str:
    is_ours = isinstance(about, dict) and about.get("format") == FORMAT
    if not is_ours or about.get("version") != 1:
        raise ValueError(f"{name} is no transcript of version 1, but {about!r}")
    return str(about.get("malformed"))


def size_of(name: str) -> int | None:
    try:
        return os.path.getsize(name)
    except OSError:
        return None


def append(name: str, data: bytes) -> None:
    with open(name, "ab") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(name: str, data: bytes) -> None:
    """Write a file that is there as a whole or not at all."""
    second = f"{name}.tmp"
    with open(second, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(second, name)
