"""The files of transcripts: JSON lines, and a compact binary form; both can be appended to.

A crash while a file is written leaves one that can be read: at worst its end is missing. Anything
else that is wrong with a file is a `ValueError` with its name, and the line or byte.
"""

from __future__ import annotations

import json
import struct
import zlib
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harmony_stream.support.files import Identity

FORMAT = "harmony_stream.transcript"

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

About: TypeAlias = "dict[str, str | int]"
Segment: TypeAlias = tuple[list[int], list[int]]  # prompted, and sampled after that


class TranscriptWarning(UserWarning):
    """The end of a file is no whole record, and was left out."""


class Contents(NamedTuple):
    """What a file says.

    Attributes:
        about: what it is.
        records: its tokens.
        size: how many of its bytes can be appended to.
        left_out: how many bytes at its end are no whole record.
    """

    about: object
    records: list[Segment]
    size: int
    left_out: int


class JsonLines:
    """One object a line: first what the file is, then tokens."""

    @staticmethod
    def head(about: About) -> bytes:
        return json.dumps(about).encode() + b"\n"

    @staticmethod
    def record(prompted: list[int], sampled: list[int]) -> bytes:
        fields = {"prompted": prompted, "sampled": sampled}
        return json.dumps(fields, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def read(cls, data: bytes, name: str) -> Contents:
        *lines, last = data.removeprefix(_BYTE_ORDER_MARK).split(b"\n")
        size = len(data) - len(last)
        if last and _is_json(last):  # an editor took the last line break
            lines.append(last)
            last = b""
        values = []
        for number, line in enumerate(lines, 1):
            try:
                value = _parse_json(line)
                values.append(value if number == 1 else _record_of(value))
            except ValueError as error:
                sentence = f"{name} is no transcript, or damaged: line {number}: {error}"
                raise ValueError(sentence) from None
        if not values:
            raise ValueError(f"{name} is no transcript, or damaged: its head is missing")
        return Contents(values[0], values[1:], size, len(last))


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
    def read(cls, data: bytes, name: str) -> Contents:
        values: list[Any] = []
        size = len(cls.magic)
        while (payload := cls.payload_at(data, size)) is not None:
            try:
                values.append(cls.tokens_of(payload) if values else _parse_json(payload))
            except ValueError as error:
                raise ValueError(f"{name} is damaged at byte {size}: {error}") from None
            size += cls.frame.size + len(payload)
        if not cls.is_cut_at(data, size):
            raise ValueError(f"{name} is damaged at byte {size}: no record begins there")
        if not values:
            raise ValueError(f"{name} is no transcript: its head is missing")
        return Contents(values[0], values[1:], size, len(data) - size)

    @classmethod
    def payload_at(cls, data: bytes, place: int) -> bytes | None:
        """The bytes of the record that begins there; None if none that is sound does."""
        begin = place + cls.frame.size
        if begin > len(data):
            return None
        length, crc = cls.frame.unpack_from(data, place)
        payload = data[begin : begin + length]
        # A record is never empty; but zeros, which a crash may leave, would be the sum of nothing.
        is_sound = 0 < length == len(payload) and zlib.crc32(payload) == crc
        return payload if is_sound else None

    @classmethod
    def is_cut_at(cls, data: bytes, place: int) -> bool:
        """Whether what follows, which is no record, is one that was half-written at a crash."""
        rest = data[place:]
        if len(rest) < cls.frame.size or not rest.strip(b"\0"):
            return True
        (length, _) = cls.frame.unpack_from(rest)
        reaches_the_end = cls.frame.size + length >= len(rest)
        return reaches_the_end and not cls.ends_with_a_record(rest)

    @classmethod
    def ends_with_a_record(cls, data: bytes) -> bool:
        """Whether the last bytes are a sound record: then what lies before it was not cut off."""
        size = cls.frame.size
        return any(
            cls.frame.unpack_from(data, place)[0] == len(data) - place - size
            and cls.payload_at(data, place) is not None
            for place in range(1, len(data) - size)
        )

    @staticmethod
    def tokens_of(payload: bytes) -> Segment:
        if len(payload) % 4:
            raise ValueError(f"{len(payload)} bytes are no list of tokens of four bytes each")
        count, *ids = struct.unpack(f"<{len(payload) // 4}I", payload)
        if count > len(ids):
            raise ValueError(f"{count} tokens were prompted, but there are only {len(ids)}")
        return ids[:count], ids[count:]


Layout: TypeAlias = type[JsonLines] | type[Binary]


class Saved(NamedTuple):
    """What this transcript wrote or read last: the file, its layout, and how many tokens it has."""

    layout: Layout
    tokens: int
    identity: Identity | None


def layout_of(name: str) -> Layout:
    """The layout that a name asks for."""
    return JsonLines if name.endswith(".jsonl") else Binary


def read(data: bytes, name: str) -> tuple[Layout, Contents]:
    """What a file says, whatever it is called.

    Raises:
        ValueError: it is no transcript, or damaged before its end.
    """
    layout: Layout = Binary if data.startswith(Binary.magic) else JsonLines
    return layout, layout.read(data, name)


def malformed_of(about: object, vocabulary: str, choices: Sequence[str], name: str) -> str:
    """The choice for what is malformed, if this is a transcript of our version and vocabulary.

    Raises:
        ValueError: it is none, or the choice is none of these.
    """
    fields = about if isinstance(about, dict) else {}
    version = fields.get("version")
    if fields.get("format") != FORMAT or type(version) is not int or version != 1:
        raise ValueError(f"{name} is no transcript of version 1, but {short(about)}")
    if fields.get("vocabulary") != vocabulary:
        raise ValueError(
            f"{name}: the tokens are of the vocabulary {short(fields.get('vocabulary'))}, "
            f"not of {vocabulary!r}; give a renderer that has it"
        )
    choice = fields.get("malformed")
    if choice not in choices:
        raise ValueError(f"{name}: malformed is {short(choice)}, not one of {', '.join(choices)}")
    return str(choice)


def _is_json(data: bytes) -> bool:
    try:
        _parse_json(data)
    except ValueError:
        return False
    return True


def _parse_json(data: bytes) -> Any:  # noqa: ANN401
    try:
        return json.loads(data.decode())
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg}") from None
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None


def _record_of(value: object) -> Segment:
    if not isinstance(value, dict) or value.keys() != {"prompted", "sampled"}:
        raise ValueError(f"{short(value)} is no object of prompted and sampled tokens")
    return _ids_of(value, "prompted"), _ids_of(value, "sampled")


def _ids_of(fields: dict[str, Any], field: str) -> list[int]:
    ids = fields[field]
    if not isinstance(ids, list):
        raise ValueError(f"{field} is {short(ids)}, not a list of tokens")
    for place, token in enumerate(ids):
        if type(token) is not int or token < 0:  # not True, which is an integer to Python
            raise ValueError(f"{field}[{place}] is {short(token)}, not a token id")
    return ids
