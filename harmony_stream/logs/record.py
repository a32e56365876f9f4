"""Records of token logs, errors in them, and options for reading them."""

from __future__ import annotations

import json
from array import array
from typing import Any, TypeAlias

import attrs

from harmony_stream.errors import HarmonyError

Ids: TypeAlias = "array[int]"
"""Token ids, four bytes each (`array("I")`); numpy and Arrow read them without a copy."""

GREATEST = 2**32 - 1
EXPECTED = f"expected a token id, an integer from 0 to {GREATEST}"
_LONGEST_QUOTE = 40


@attrs.frozen
class LogRecord:
    """One completion of a log.

    Attributes:
        completion: the ids that were sampled; a full stream if they begin with `<|start|>`.
        source: the name of the log.
        number: the number of its line, row or stream in the log, from 1.
        unit: the unit of `number`: `line`, `row` or `stream`.
        choice: the number of the completion, if the line or stream holds several.
        prompt: the ids of the prompt; None if the log has none.
        metadata: other fields of the record that are words, numbers or flags.

    >>> LogRecord(array("I", [200005]), "a.jsonl", 3, "line").place
    'line 3'
    """

    completion: Ids
    source: str
    number: int
    unit: str
    choice: int = 0
    prompt: Ids | None = None
    metadata: dict[str, Any] = attrs.field(factory=dict)

    @property
    def place(self) -> str:
        """The place in the log, in words."""
        place = f"{self.unit} {self.number}"
        return f"{place}, choice {self.choice}" if self.choice else place


@attrs.frozen(auto_exc=True, slots=False, str=False)
class LogError(HarmonyError):
    """A log, or a record of it, cannot be read.

    Attributes:
        source: the name of the log.
        place: where in it, `line 3`; "" for the log as a whole.
        reason: the fault.
        is_cut: True if the log only ends too early, like a log of lines or events that is still
            being written, or not yet begun.
        ends_log: True if nothing after it can be read.

    >>> str(LogError("a.jsonl", "line 3", "not JSON"))
    'a.jsonl: line 3: not JSON'
    """

    source: str
    place: str
    reason: str
    is_cut: bool = False
    ends_log: bool = False

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.source, self.place, self.reason)))


class LogWarning(UserWarning):
    """A record was skipped: the default report of `read_log`."""


Item: TypeAlias = LogRecord | LogError
"""A record of a log, or the error in its place."""


def ids_of(value: object, name: str) -> Ids:
    """Return checked token ids.

    Raises:
        ValueError: the value is not an array of token ids; `name` names it in the sentence.

    >>> ids_of([200005, 17196], "token_ids")
    array('I', [200005, 17196])
    >>> ids_of([200005, -1], "token_ids")
    Traceback (most recent call last):
        ...
    ValueError: item 1 of token_ids is -1, expected a token id, an integer from 0 to 4294967295
    """
    if isinstance(value, array):
        return value
    if not isinstance(value, list):
        raise ValueError(f"{name} is {quote(value)}, expected an array of token ids")
    try:
        ids = array("I", value)
    except (TypeError, OverflowError):
        raise ValueError(_unfit(value, name)) from None
    if bool in set(map(type, value)):
        raise ValueError(_unfit(value, name))
    return ids


def sound(ids: Ids | ValueError) -> Ids:
    """Return the ids, or raise the error in their place.

    >>> sound(array("I", [5]))
    array('I', [5])
    """
    if isinstance(ids, ValueError):
        raise ids
    return ids


def _unfit(items: list[Any], name: str) -> str:
    place, item = next(
        (place, item)
        for place, item in enumerate(items)
        if type(item) is not int or not 0 <= item <= GREATEST
    )
    return f"item {place} of {name} is {quote(item)}, {EXPECTED}"


def quote(value: object) -> str:
    """Return a JSON value for an error, shortened.

    >>> quote(None), quote([1, 2])
    ('null', 'an array')
    """
    if isinstance(value, list | array | dict):
        return "an object" if isinstance(value, dict) else "an array"
    quoted = json.dumps(value, default=repr)
    return quoted[:_LONGEST_QUOTE] + "..." if len(quoted) > _LONGEST_QUOTE else quoted


@attrs.frozen
class ReadOptions:
    """Options for reading a log; what is None is detected.

    Attributes:
        format: a name in `FORMATS`.
        ids: the place of the ids: the path of a JSON field (`choices.0.token_ids`, `*` for each
            item), the name of a column or of an array.
        lengths: likewise, the place of the number of ids in each padded row.
        pad_id: the id that rows are padded with, at the beginning or the end.
        max_record_bytes: the longest record, in bytes of the decompressed log. A longer one is
            refused, so that memory is bounded.
    """

    format: str | None = None
    ids: str | None = None
    lengths: str | None = None
    pad_id: int | None = None
    max_record_bytes: int = attrs.field(default=1 << 28)

    @max_record_bytes.validator
    def _check(self, _: object, value: object) -> None:
        if type(value) is not int or value < 1:
            raise ValueError(f"max_record_bytes: {value!r} is not a positive number of bytes")

    def too_long(self) -> str:
        """Return the reason for an error about a longer record, with the remedy.

        >>> ReadOptions(max_record_bytes=5).too_long()
        'longer than 5 bytes; if that is intended, raise max_record_bytes (--max-record-bytes)'
        """
        remedy = "if that is intended, raise max_record_bytes (--max-record-bytes)"
        return f"longer than {self.max_record_bytes} bytes; {remedy}"

    def trim(self, ids: Ids, length: object = None) -> Ids:
        """Return the ids without padding.

        >>> ReadOptions(pad_id=0).trim(array("I", [0, 0, 5, 6, 0]))
        array('I', [5, 6])
        >>> ReadOptions().trim(array("I", [5, 6, 0]), 2)
        array('I', [5, 6])

        Raises:
            ValueError: the length is not from 0 to that of the row.
        """
        if length is not None:
            if type(length) is not int or not 0 <= length <= len(ids):
                raise ValueError(f"the length {quote(length)} is not from 0 to {len(ids)}")
            ids = ids[:length]
        if self.pad_id is None:
            return ids
        start, stop = 0, len(ids)
        while stop > start and ids[stop - 1] == self.pad_id:
            stop -= 1
        while start < stop and ids[start] == self.pad_id:
            start += 1
        return ids[start:stop]
