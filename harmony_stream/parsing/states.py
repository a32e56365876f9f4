"""The state machine: every state, every kind of token, and what is done.

The theory of operation
=======================

A stream is messages one after the other::

    <|start|> header <|message|> content <|end|>

The parser is between messages (`EXPECT_START`), in one of the three sections of a header (`ROLE`,
`CHANNEL`, `CONSTRAIN`), or in the `CONTENT` of a message. A completion begins in `ROLE`, because
the prompt ended with `<|start|>assistant`.

For each token the parser looks up the cell of its state and the token's kind. A cell names the next
state, the action, and the fault: the breach of the format if that token comes in that state. No
cell is empty, so each sequence of tokens has an answer. The tolerant mode does what the cell says
and reports the fault as an event. The strict mode does it too, and then raises the fault.

In a header, tokens are only kept (`KEEP`). When it ends, `harmony_stream.values.read_header` reads
them, from the sections that the special tokens marked off. So the
faults of a header's words (`WORD_FAULTS` below) are not in the table, and those that are come out
right after the `MessageStart`, in the order of their tokens. One comes before it: the fault whose
text is the words that are part of no field, since they are text of the stream and of no message.

What a table cannot hold
========================

Some cells are two: the `unless` of a cell names a `Condition` under which another cell counts.
Three more things. `<|channel|>` after `<|constrain|>`, or the other way round, is a duplicate if it
came before. A header of more than `max_header_tokens` tokens is broken off before the next token,
as if a stop token had come (`missing_message`); that token is content then. And between messages,
bytes that may become a character of white space are held until that is decided.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from harmony_stream.values.faults import FaultKind
from harmony_stream.values.header import KNOWN_CHANNELS, KNOWN_ROLES
from harmony_stream.vocabulary import FormattingToken

if TYPE_CHECKING:
    from collections.abc import Mapping


class State(StrEnum):
    """The place in the format that a parser has reached."""

    EXPECT_START = "EXPECT_START"
    ROLE = "ROLE"
    CHANNEL = "CHANNEL"
    CONSTRAIN = "CONSTRAIN"
    CONTENT = "CONTENT"


class TokenKind(StrEnum):
    """The kinds of token that the table tells apart."""

    START = "<|start|>"
    CHANNEL = "<|channel|>"
    CONSTRAIN = "<|constrain|>"
    MESSAGE = "<|message|>"
    END = "<|end|>"
    RETURN = "<|return|>"
    CALL = "<|call|>"
    END_OF_TEXT = "<|endoftext|>"
    OTHER_SPECIAL = "other special token"
    TEXT = "text"
    UNKNOWN = "unknown token"
    END_OF_STREAM = "end of stream"


KIND_OF_FORMATTING_TOKEN: Mapping[FormattingToken, TokenKind] = {
    token: TokenKind(token.value)
    if token is not FormattingToken.START_OF_TEXT
    else TokenKind.OTHER_SPECIAL
    for token in FormattingToken
}


class Action(StrEnum):
    """The things that are done with a token. The machine has one method for each."""

    SKIP = "skip"
    """Emit nothing; what follows begins after the token."""
    WAIT = "wait"
    """Skip white space, and hold the bytes of an unfinished character."""
    IMPLY = "imply"
    """Open an implied header after any white space, then do what its `ROLE` row says."""
    OPEN = "open"
    """Open a header."""
    REPEAT = "repeat"
    """Open the header that the prompt had opened once more. Another role is a fault."""
    KEEP = "keep"
    """Keep the token until the header is read."""
    CLOSE = "close"
    """Read the header: the message starts."""
    DROP = "drop"
    """Forget the header."""
    BREAK_OFF = "break off"
    """Read what there is of the header: left-over words are content, which then ends."""
    REOPEN = "reopen"
    """Make a message of words that are no field, and end it; report other text. Open another."""
    DELTA = "delta"
    """Emit text."""
    IGNORE = "ignore"
    """Report the token, which is not part of the text."""
    REPLACE = "replace"
    """Report the token; emit U+FFFD for it."""
    FINISH = "finish"
    """End the message."""
    NEXT = "next"
    """End the message, which has no end token, and open a header."""


class Condition(StrEnum):
    """The conditions under which a cell has another one in its place."""

    WHITE_SPACE = "the text is white space"
    VERY_START = "it is <|startoftext|> at the very start"
    BARE_ROLE = "the header holds nothing but its role, and was not implied"
    REPEATED_PROMPT = "the prompt opened the header, and nothing came since but its role"


class Cell(NamedTuple):
    """One cell of the table.

    Attributes:
        next: the state afterwards.
        action: what is done.
        fault: the breach of the format, or None.
        unless: the exception, or None.
    """

    next: State
    action: Action
    fault: FaultKind | None = None
    unless: Unless | None = None


class Unless(NamedTuple):
    """An exception to a cell: the cell that counts if a condition is met."""

    condition: Condition
    cell: Cell


def _between_messages() -> dict[TokenKind, Cell]:
    stay, fault = State.EXPECT_START, FaultKind.EXPECTED_START
    skip = Cell(stay, Action.SKIP)
    return {
        TokenKind.START: Cell(State.ROLE, Action.OPEN),
        TokenKind.CHANNEL: Cell(State.CHANNEL, Action.IMPLY, fault),
        TokenKind.CONSTRAIN: Cell(State.CONSTRAIN, Action.IMPLY, fault),
        TokenKind.MESSAGE: Cell(State.CONTENT, Action.IMPLY, fault),
        TokenKind.END: skip,
        TokenKind.RETURN: skip,
        TokenKind.CALL: skip,
        TokenKind.END_OF_TEXT: skip,
        TokenKind.OTHER_SPECIAL: Cell(
            stay, Action.IGNORE, FaultKind.UNEXPECTED_MARKER, Unless(Condition.VERY_START, skip)
        ),
        TokenKind.TEXT: Cell(
            State.ROLE,
            Action.IMPLY,
            fault,
            Unless(Condition.WHITE_SPACE, Cell(stay, Action.WAIT)),
        ),
        TokenKind.UNKNOWN: Cell(stay, Action.IGNORE, FaultKind.UNKNOWN_TOKEN),
        TokenKind.END_OF_STREAM: skip,
    }


def _in_header(section: State) -> dict[TokenKind, Cell]:
    expect_start, fault = State.EXPECT_START, FaultKind
    second_channel = fault.DUPLICATE_CHANNEL if section is State.CHANNEL else None
    second_constrain = fault.DUPLICATE_CONSTRAIN if section is State.CONSTRAIN else None
    bare = repeated = very_start = None
    if section is State.ROLE:  # a later section is more than a role, and after the start
        bare = Unless(Condition.BARE_ROLE, Cell(expect_start, Action.DROP))
        repeated = Unless(Condition.REPEATED_PROMPT, Cell(State.ROLE, Action.REPEAT))
        very_start = Unless(Condition.VERY_START, Cell(State.ROLE, Action.SKIP))
    stop = Cell(expect_start, Action.BREAK_OFF, fault.MISSING_MESSAGE, bare)
    return {
        TokenKind.START: Cell(State.ROLE, Action.REOPEN, fault.UNEXPECTED_START, repeated),
        TokenKind.CHANNEL: Cell(State.CHANNEL, Action.KEEP, second_channel),
        TokenKind.CONSTRAIN: Cell(State.CONSTRAIN, Action.KEEP, second_constrain),
        TokenKind.MESSAGE: Cell(State.CONTENT, Action.CLOSE),
        TokenKind.END: stop,
        TokenKind.RETURN: stop,
        TokenKind.CALL: stop,
        TokenKind.END_OF_TEXT: stop,
        TokenKind.OTHER_SPECIAL: Cell(section, Action.KEEP, fault.UNEXPECTED_MARKER, very_start),
        TokenKind.TEXT: Cell(section, Action.KEEP),
        TokenKind.UNKNOWN: Cell(section, Action.KEEP, fault.UNKNOWN_TOKEN),
        TokenKind.END_OF_STREAM: Cell(
            expect_start, Action.BREAK_OFF, fault.TRUNCATED_IN_HEADER, bare
        ),
    }


def _in_content() -> dict[TokenKind, Cell]:
    stay = State.CONTENT
    finish = Cell(State.EXPECT_START, Action.FINISH)
    ignore = Cell(stay, Action.IGNORE, FaultKind.UNEXPECTED_MARKER)
    return {
        TokenKind.START: Cell(State.ROLE, Action.NEXT, FaultKind.MISSING_END),
        TokenKind.CHANNEL: Cell(State.CHANNEL, Action.NEXT, FaultKind.MISSING_END),
        TokenKind.CONSTRAIN: ignore,
        TokenKind.MESSAGE: ignore,
        TokenKind.END: finish,
        TokenKind.RETURN: finish,
        TokenKind.CALL: finish,
        TokenKind.END_OF_TEXT: finish,
        TokenKind.OTHER_SPECIAL: ignore,
        TokenKind.TEXT: Cell(stay, Action.DELTA),
        TokenKind.UNKNOWN: Cell(stay, Action.REPLACE, FaultKind.UNKNOWN_TOKEN),
        TokenKind.END_OF_STREAM: finish,
    }


TABLE: Mapping[State, Mapping[TokenKind, Cell]] = {
    State.EXPECT_START: _between_messages(),
    State.ROLE: _in_header(State.ROLE),
    State.CHANNEL: _in_header(State.CHANNEL),
    State.CONSTRAIN: _in_header(State.CONSTRAIN),
    State.CONTENT: _in_content(),
}


WORD_FAULTS: Mapping[FaultKind, tuple[str, ...]] = {
    FaultKind.DUPLICATE_CHANNEL: ("one channel",),
    FaultKind.DUPLICATE_RECIPIENT: ("one recipient",),
    FaultKind.DUPLICATE_CONSTRAIN: ("one type after <|constrain|>",),
    FaultKind.EMPTY_CHANNEL: KNOWN_CHANNELS,
    FaultKind.EMPTY_RECIPIENT: ("the name of a tool",),
    FaultKind.EMPTY_CONSTRAIN: ("json", "code"),
    FaultKind.UNKNOWN_ROLE: (*KNOWN_ROLES, "the name of a tool"),
    FaultKind.UNPARSED_HEADER_TEXT: ("to=NAME", "one content type"),
    FaultKind.INVALID_UTF8_IN_HEADER: ("UTF-8",),
}
"""The faults of a header's words, each with what is expected in their place."""


def expected_in(state: State) -> tuple[str, ...]:
    """Return the kinds of token that are not a fault in a state, read off the table.

    >>> expected_in(State.CHANNEL)
    ('<|constrain|>', '<|message|>', 'text')
    """
    row = TABLE[state]
    return tuple(
        kind.value
        for kind in TokenKind
        if row[kind].fault is None and row[kind].action is not Action.SKIP
        if kind is not TokenKind.END_OF_STREAM
    )
