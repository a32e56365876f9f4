"""What goes wrong, as values: a small tree of exceptions whose fields say what a program needs.

::

    HarmonyError(RuntimeError)      root, as in openai_harmony
    |-- HarmonyParseError           the tokens break the format
    |-- LoadError                   a vocabulary cannot be read
    `-- RenderError                 a conversation cannot be written
        |-- RenderFormattingTokenError
        `-- RenderReferenceError

All have read-only fields, compare by value, and pickle. Sentences are made from the fields.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from harmony_stream.parsing.events import Event


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


class HarmonyError(RuntimeError):
    """The root of all errors of this library; a `RuntimeError`, as in openai_harmony.

    >>> try:
    ...     raise HarmonyError("something about harmony")
    ... except RuntimeError as error:
    ...     print(error)
    something about harmony
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(self.args == other.args)

    def __hash__(self) -> int:
        return hash((type(self), self.args))

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions pickle by setting attributes, which the frozen ones do not allow.
        return type(self), self.args


# One sentence for each kind. `{what}` is the token at fault, `{word}` the word of a header.
_SENTENCES: dict[FaultKind, str] = {
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


# With slots a fault takes half the memory: a broken stream may have a million.
@attrs.frozen(auto_exc=True, slots=True, str=False)
class HarmonyParseError(HarmonyError):
    """The tokens break the format.

    A tolerant parser puts it into a `Malformed` event, a strict one raises it.

    Attributes:
        kind: which fault.
        position: of the token at fault: the number of tokens fed before it (characters, or bytes,
            when marked text is fed).
        token: its id; None at the end of the stream and for marked text.
        token_text: its text, or the header word at fault.
        state: name of the parser's state when it came.
        header_text: the unfinished header, special tokens spelled out; "" outside a header. Of a
            long one the first 500 characters and an ellipsis, as for `token_text`.
        expected: what would have been right, in words of the format.
        events: of a raised error: what the tolerant mode would have returned from the same call,
            up to and including the token at fault, less the `Malformed` itself.

    >>> str(HarmonyParseError(FaultKind.EXPECTED_START, 7, 12606, "comment", "EXPECT_START",
    ...                       "", ("<|start|>",)))
    "token 12606 ('comment') at position 7 where <|start|> was expected"
    """

    kind: FaultKind
    position: int
    token: int | None
    token_text: str
    state: str
    header_text: str
    expected: tuple[str, ...]
    events: tuple[Event, ...] = ()

    def __str__(self) -> str:
        return _SENTENCES[self.kind].format(
            what=self._what(),
            word=repr(self.token_text),
            position=self.position,
            state=self.state,
            header=self.header_text,
            expected=_either(self.expected),
        )

    def _what(self) -> str:
        if self.token is None:
            return repr(self.token_text) if self.token_text else "the end of the stream"
        return f"token {self.token} ({self.token_text!r})"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready fields, without `events`, and with the sentence as `message`."""
        return {
            "kind": str(self.kind),
            "position": self.position,
            "token": self.token,
            "token_text": self.token_text,
            "state": self.state,
            "header_text": self.header_text,
            "expected": list(self.expected),
            "message": str(self),
        }


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


@attrs.frozen(auto_exc=True, slots=False, str=False)
class LoadError(HarmonyError):
    """A vocabulary cannot be read.

    Attributes:
        path: the file, or the name of the data.
        reason: what is wrong with it.
        expected: the wanted sha256 or count, "" if there is none.
        found: what was there instead, "" if nothing was.
        remedy: what to do about it.
    """

    path: str
    reason: str
    expected: str = ""
    found: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        sentence = f"vocabulary {self.path}: {self.reason}"
        if self.expected:
            sentence += f" (expected {self.expected}, found {self.found or 'nothing'})"
        return f"{sentence}; {self.remedy}" if self.remedy else sentence


@attrs.frozen(auto_exc=True, slots=False, str=False)
class RenderError(HarmonyError):
    """A conversation cannot be written as tokens.

    Attributes:
        field: which part of the message is at fault, such as `recipient`.
        value: what stands there; None if nothing does.
        reason: what is wrong with it, and what is allowed.
        message_index: place of the message in its conversation; None for a single message.

    >>> str(RenderError("recipient", "functions.a b", "holds white space", 3))
    "message 3: recipient 'functions.a b' holds white space"
    """

    field: str
    value: str | None
    reason: str
    message_index: int | None = None

    def __str__(self) -> str:
        where = "" if self.message_index is None else f"message {self.message_index}: "
        what = self.field if self.value is None else f"{self.field} {self.value!r}"
        return f"{where}{what} {self.reason}"


class RenderFormattingTokenError(RenderError):
    """A formatting token has no id in the vocabulary in use; `value` is the token's text.

    It cannot happen: `Vocabulary.from_file` and `from_tiktoken` refuse such a vocabulary with a
    `LoadError`. In openai-harmony 0.0.8 it cannot either, whose one encoding has all tokens.
    """


@attrs.frozen(auto_exc=True, slots=False, str=False)
class RenderReferenceError(RenderError):
    """A tool's schema refers to something that is not there; `value` is the reference.

    Attributes:
        tool: name of the tool.

    >>> str(RenderReferenceError("$ref", "#/$defs/Memo", "leads nowhere", None, "send"))
    "tool 'send': $ref '#/$defs/Memo' leads nowhere"
    """

    tool: str = ""

    def __str__(self) -> str:
        where = "" if self.message_index is None else f"message {self.message_index}: "
        return f"{where}tool {self.tool!r}: {self.field} {self.value!r} {self.reason}"
