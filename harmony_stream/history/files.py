"""The files of transcripts: JSON lines, and a compact binary form. Both can be appended to.

After a crash during a write, the file can still be read: at worst its end is missing. Any other
damage raises a `ValueError` with the file's name, and the line or byte.
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
    """The end of a file is not a whole segment, and was left out."""


class Contents(NamedTuple):
    """The contents of a file.

    Attributes:
        about: the fields of its header.
        records: its segments, which hold the tokens.
        size: the number of bytes that are whole, after which segments can be appended.
        left_out: the number of bytes at its end that are not a whole segment.
    """

    about: object
    records: list[Segment]
    size: int
    left_out: int


class JsonLines:
    """One JSON object on each line: first the header, then segments of tokens."""

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
        if last and _is_json(last):  # an editor removed the last line break
            lines.append(last)
            last = b""
        values = []
        for number, line in enumerate(lines, 1):
            try:
                value = _parse_json(line)
                values.append(value if number == 1 else _record_of(value))
            except ValueError as error:
                sentence = f"{name} is not a transcript, or is damaged: line {number}: {error}"
                raise ValueError(sentence) from None
        if not values:
            raise ValueError(f"{name} is not a transcript, or is damaged: the header is missing")
        return Contents(values[0], values[1:], size, len(last))


class Binary:
    """A line that names the format, then records: length, CRC-32, and that many bytes.

    The first record is the header, in JSON. Each other one is a segment: the number of prompted
    tokens, these tokens, and the sampled ones. All numbers are little-endian and take four bytes.
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
            raise ValueError(f"{name} is damaged at byte {size}: no segment begins there")
        if not values:
            raise ValueError(f"{name} is not a transcript: the header is missing")
        return Contents(values[0], values[1:], size, len(data) - size)

    @classmethod
    def payload_at(cls, data: bytes, place: int) -> bytes | None:
        """Return the bytes of the record that begins at this byte, or None if it is not sound."""
        begin = place + cls.frame.size
        if begin > len(data):
            return None
        length, crc = cls.frame.unpack_from(data, place)
        payload = data[begin : begin + length]
        # A record is never empty. A crash may leave zeros, which would be a valid empty record.
        is_sound = 0 < length == len(payload) and zlib.crc32(payload) == crc
        return payload if is_sound else None

    @classmethod
    def is_cut_at(cls, data: bytes, place: int) -> bool:
        """Return whether a crash cut off the record that begins at this byte."""
        rest = data[place:]
        if len(rest) < cls.frame.size or not rest.strip(b"\0"):
            return True
        (length, _) = cls.frame.unpack_from(rest)
        reaches_the_end = cls.frame.size + length >= len(rest)
        return reaches_the_end and not cls.ends_with_a_record(rest)

    @classmethod
    def ends_with_a_record(cls, data: bytes) -> bool:
        """Return whether the last bytes are a sound record, so that the bytes before are whole."""
        size = cls.frame.size
        return any(
            cls.frame.unpack_from(data, place)[0] == len(data) - place - size
            and cls.payload_at(data, place) is not None
            for place in range(1, len(data) - size)
        )

    @staticmethod
    def tokens_of(payload: bytes) -> Segment:
        if len(payload) % 4:
            raise ValueError(f"{len(payload)} bytes are not a list of tokens of four bytes each")
        count, *ids = struct.unpack(f"<{len(payload) // 4}I", payload)
        if count > len(ids):
            raise ValueError(f"{count} tokens were prompted, but there are only {len(ids)}")
        return ids[:count], ids[count:]


Layout: TypeAlias = type[JsonLines] | type[Binary]


class Saved(NamedTuple):
    """The file that this transcript wrote or read last, with its layout and number of tokens."""

    layout: Layout
    tokens: int
    identity: Identity | None


def layout_of(name: str) -> Layout:
    """Return the layout for a file of this name."""
    return JsonLines if name.endswith(".jsonl") else Binary


def read(data: bytes, name: str) -> tuple[Layout, Contents]:
    """Return layout and contents of a file, whatever its name.

    Raises:
        ValueError: if it is not a transcript, or is damaged before its end.
    """
    layout: Layout = Binary if data.startswith(Binary.magic) else JsonLines
    return layout, layout.read(data, name)


def malformed_of(about: object, vocabulary: str, choices: Sequence[str], name: str) -> str:
    """Return the choice for malformed messages in the header of a transcript.

    Raises:
        ValueError: if the version, the vocabulary or the choice is not a supported one.
    """
    fields = about if isinstance(about, dict) else {}
    version = fields.get("version")
    if fields.get("format") != FORMAT or type(version) is not int or version != 1:
        raise ValueError(f"{name} is not a transcript of version 1, but {short(about)}")
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
        raise ValueError(f"{short(value)} is not an object of prompted and sampled tokens")
    return _ids_of(value, "prompted"), _ids_of(value, "sampled")


def _ids_of(fields: dict[str, Any], field: str) -> list[int]:
    ids = fields[field]
    if not isinstance(ids, list):
        raise ValueError(f"{field} is {short(ids)}, not a list of tokens")
    for place, token in enumerate(ids):
        if type(token) is not int or token < 0:  # excludes True, which is an integer in Python
            raise ValueError(f"{field}[{place}] is {short(token)}, not a token id")
    return ids
