"""Errors as values: a small tree of exceptions whose fields hold the details.

::

    HarmonyError(RuntimeError)      root, as in openai_harmony
    |-- values.events.HarmonyParseError   the tokens break the format
    |-- LoadError                   a vocabulary cannot be read
    `-- RenderError                 a conversation cannot be written
        |-- RenderFormattingTokenError
        `-- RenderReferenceError

All have read-only fields, compare by value, and pickle. Sentences are made from the fields.
"""

from __future__ import annotations

from typing import Any

import attrs


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


@attrs.frozen(auto_exc=True, slots=False, str=False)
class LoadError(HarmonyError):
    """A vocabulary cannot be read.

    Attributes:
        path: the file, or the name of the data.
        reason: the reason why it is wrong.
        expected: the expected sha256 or count, "" if there is none.
        found: the sha256 or count that was found, "" if there is none.
        remedy: the remedy, "" if there is none.
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
        field: the part of the message at fault, such as `recipient`.
        value: its value, or None.
        reason: the reason why it is wrong, and the allowed values.
        message_index: index of the message in its conversation; None for a single message.

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
    `LoadError`. In openai-harmony 0.0.8, whose one encoding has all tokens, it cannot either.
    """


@attrs.frozen(auto_exc=True, slots=False, str=False)
class RenderReferenceError(RenderError):
    """A tool's schema refers to a definition that does not exist; `value` is the reference.

    Attributes:
        tool: name of the tool.

    >>> str(RenderReferenceError("$ref", "#/$defs/Memo", "leads nowhere", None, "send"))
    "tool 'send': $ref '#/$defs/Memo' leads nowhere"
    """

    tool: str = ""

    def __str__(self) -> str:
        where = "" if self.message_index is None else f"message {self.message_index}: "
        return f"{where}tool {self.tool!r}: {self.field} {self.value!r} {self.reason}"
