"""The kinds of fault: the ways in which a stream breaks the format, each with its sentence.

`HarmonyParseError` and `Malformed` (`events.py`) say where one is; `docs/repairs.md` says what is
done about it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class FaultKind(StrEnum):
    """The ways in which a stream of tokens can break the format, one name for each."""

    EXPECTED_START = "expected_start"
    MISSING_MESSAGE = "missing_message"
    UNEXPECTED_START = "unexpected_start"
    MISSING_END = "missing_end"
    UNEXPECTED_MARKER = "unexpected_marker"
    DUPLICATE_CHANNEL = "duplicate_channel"
    DUPLICATE_RECIPIENT = "duplicate_recipient"
    DUPLICATE_CONSTRAIN = "duplicate_constrain"
    EMPTY_CHANNEL = "empty_channel"
    EMPTY_RECIPIENT = "empty_recipient"
    EMPTY_CONSTRAIN = "empty_constrain"
    UNKNOWN_ROLE = "unknown_role"
    UNPARSED_HEADER_TEXT = "unparsed_header_text"
    UNKNOWN_TOKEN = "unknown_token"
    INVALID_UTF8_IN_HEADER = "invalid_utf8_in_header"
    TRUNCATED_IN_HEADER = "truncated_in_header"


SENTENCES: Mapping[FaultKind, str] = {
    FaultKind.EXPECTED_START: "{what} at position {position} where {expected} was expected",
    FaultKind.MISSING_MESSAGE: (
        "{what} at position {position} where <|message|> was expected: "
        "the header is not finished, header text so far: {header!r}"
    ),
    FaultKind.UNEXPECTED_START: (
        "{what} at position {position} inside a header, header text so far: {header!r}; "
        "expected {expected}"
    ),
    FaultKind.MISSING_END: (
        "{what} at position {position} inside the content of a message; expected {expected} first"
    ),
    FaultKind.UNEXPECTED_MARKER: (
        "{what} at position {position} has no meaning in state {state}; expected {expected}"
    ),
    FaultKind.DUPLICATE_CHANNEL: (
        "a second channel, {what}, at position {position}, in header {header!r}; expected one"
    ),
    FaultKind.DUPLICATE_RECIPIENT: (
        "a second recipient, {word}, at position {position}, in header {header!r}; expected one"
    ),
    FaultKind.DUPLICATE_CONSTRAIN: (
        "a second constrain type, {what}, at position {position}, in header {header!r}; "
        "expected one"
    ),
    FaultKind.EMPTY_CHANNEL: (
        "no channel value before {what} at position {position}, in header {header!r}; "
        "expected {expected}"
    ),
    FaultKind.EMPTY_RECIPIENT: (
        "no recipient value in {word} at position {position}, in header {header!r}; "
        "expected {expected}"
    ),
    FaultKind.EMPTY_CONSTRAIN: (
        "no constrain value before {what} at position {position}, in header {header!r}; "
        "expected {expected}"
    ),
    FaultKind.UNKNOWN_ROLE: (
        "unknown role: {word} at position {position}, in header {header!r}; expected {expected}"
    ),
    FaultKind.UNPARSED_HEADER_TEXT: (
        "unexpected words {word} at position {position} remain in header {header!r}; "
        "expected {expected}"
    ),
    FaultKind.UNKNOWN_TOKEN: (
        "{what} at position {position} is not in the vocabulary; expected {expected}"
    ),
    FaultKind.INVALID_UTF8_IN_HEADER: (
        "{what} at position {position} is not valid UTF-8, in header {header!r}; "
        "expected {expected}"
    ),
    FaultKind.TRUNCATED_IN_HEADER: (
        "the stream ended at position {position} inside a header, header text so far: "
        "{header!r}; expected {expected}"
    ),
}
"""The sentence of each kind. `{what}` is the token at fault, `{word}` the word of a header."""
