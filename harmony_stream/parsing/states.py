"""The state machine: every state, every kind of token, and what is done.

The theory of operation
=======================

A stream is messages one after the other::

    <|start|> header <|message|> content <|end|>

The parser is between messages (`EXPECT_START`), in one of the three sections of a header (`ROLE`,
`CHANNEL`, `CONSTRAIN`), or in the `CONTENT` of a message. A completion begins in `ROLE`, because
the prompt ended with `<|start|>assistant`.

For each token the parser looks up the cell of its state and the token's kind. A cell names the next
state, the action, and the fault: what is wrong if that token comes in that state. There is no empty
cell, so no sequence of tokens is without an answer. The tolerant mode does what the cell says and
reports the fault as an event; the strict mode does the same, and then raises the fault.

In a header, tokens are only kept (`KEEP`); what they mean is judged when the header ends, by
`harmony_stream.values.read_header`, from the sections that the special tokens marked off. So the
faults of a header's words (`WORD_FAULTS` below) are not in the table, and those that are come out
right after the `MessageStart`, in the order of their tokens. One comes before it: the fault whose
text is the words that are part of no field, since they are text of the stream and of no message.

What a table cannot hold
========================

Some of it stands in the cells' `unless`: conditions under which a cell's
fault is none. Two things more. `<|channel|>` after `<|constrain|>`, or the other way round, is a
duplicate if it came before. And a header of more than `max_header_tokens` tokens is broken off
before the next token, as if a stop token had come (`missing_message`); that token is content then.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from harmony_stream.values.events import FaultKind
from harmony_stream.values.header import KNOWN_CHANNELS, KNOWN_ROLES
from harmony_stream.vocabulary import FormattingToken

if TYPE_CHECKING:
    from collections.abc import Mapping


class State(StrEnum):
    """Where in a stream the parser stands."""

    EXPECT_START = "EXPECT_START"
    ROLE = "ROLE"
    CHANNEL = "CHANNEL"
    CONSTRAIN = "CONSTRAIN"
    CONTENT = "CONTENT"


class TokenKind(StrEnum):
    """What a token is, as far as the machine cares."""

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
    """What is done with a token. The parser has one method for each."""

    SKIP = "skip"
    """Nothing."""
    WAIT = "wait"
    """White space is skipped; other text opens an implied header, and is kept."""
    IMPLY = "imply"
    """Open an implied header, then do what its `ROLE` row says."""
    OPEN = "open"
    """Open a header."""
    KEEP = "keep"
    """Keep the token until the header is read."""
    CLOSE = "close"
    """Judge the header: the message starts."""
    BREAK_OFF = "break off"
    """Judge what there is of the header: left-over words are content, which then ends."""
    REOPEN = "reopen"
    """Words that are no field are a message, which ends; other text is reported. Open another."""
    DELTA = "delta"
    """Emit text."""
    IGNORE = "ignore"
    """Report the token; it is not part of the text."""
    REPLACE = "replace"
    """Report the token; U+FFFD stands for it."""
    FINISH = "finish"
    """The message ends."""
    NEXT = "next"
    """The message ends without an end token, and a header opens."""


class Cell(NamedTuple):
    """What happens when a token of some kind comes in some state.

    Attributes:
        next: the state afterwards.
        action: what is done.
        fault: what is wrong with that, or None.
        unless: when nothing is wrong in spite of that.
    """

    next: State
    action: Action
    fault: FaultKind | None = None
    unless: str = ""


_BARE_ROLE = "the header holds nothing but its role"
_WHITE_SPACE = "it is white space"
_VERY_START = "it is <|startoftext|> at the very start"
_REPEATED_PROMPT = "the prompt opened the header, nothing came since, and the same role follows"


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
            stay, Action.IGNORE, FaultKind.UNEXPECTED_MARKER, _VERY_START
        ),
        TokenKind.TEXT: Cell(State.ROLE, Action.WAIT, fault, _WHITE_SPACE),
        TokenKind.UNKNOWN: Cell(stay, Action.IGNORE, FaultKind.UNKNOWN_TOKEN),
        TokenKind.END_OF_STREAM: skip,
    }


def _in_header(section: State) -> dict[TokenKind, Cell]:
    second_channel = FaultKind.DUPLICATE_CHANNEL if section is State.CHANNEL else None
    second_constrain = FaultKind.DUPLICATE_CONSTRAIN if section is State.CONSTRAIN else None
    bare = _BARE_ROLE if section is State.ROLE else ""
    stop = Cell(State.EXPECT_START, Action.BREAK_OFF, FaultKind.MISSING_MESSAGE, bare)
    return {
        TokenKind.START: Cell(
            State.ROLE,
            Action.REOPEN,
            FaultKind.UNEXPECTED_START,
            _REPEATED_PROMPT if section is State.ROLE else "",
        ),
        TokenKind.CHANNEL: Cell(State.CHANNEL, Action.KEEP, second_channel),
        TokenKind.CONSTRAIN: Cell(State.CONSTRAIN, Action.KEEP, second_constrain),
        TokenKind.MESSAGE: Cell(State.CONTENT, Action.CLOSE),
        TokenKind.END: stop,
        TokenKind.RETURN: stop,
        TokenKind.CALL: stop,
        TokenKind.END_OF_TEXT: stop,
        TokenKind.OTHER_SPECIAL: Cell(
            section,
            Action.KEEP,
            FaultKind.UNEXPECTED_MARKER,
            _VERY_START if section is State.ROLE else "",
        ),
        TokenKind.TEXT: Cell(section, Action.KEEP),
        TokenKind.UNKNOWN: Cell(section, Action.KEEP, FaultKind.UNKNOWN_TOKEN),
        TokenKind.END_OF_STREAM: Cell(
            State.EXPECT_START, Action.BREAK_OFF, FaultKind.TRUNCATED_IN_HEADER, bare
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
"""The faults of a header's words, each with what was expected in their place."""


def expected_in(state: State) -> tuple[str, ...]:
    """The kinds of token that are no fault in a state, read off the table.

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
