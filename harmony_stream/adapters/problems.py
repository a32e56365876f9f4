"""Problems: reports about a stream for the server, and for a client that asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from harmony_stream.values.header import Header


@attrs.frozen
class Problem:
    """A report about the stream for the server, and for a client that asks for problems.

    Attributes:
        kind: a `FaultKind` of the parser, or one of these: `without_channel`, `unknown_channel`
            (text without a known channel), `hidden_call` (a call that this protocol cannot
            express), `incomplete_call`, `arguments_not_json`, `resolved_name` (a recipient replaced
            with the declared name that it means), `nameless_call` (a call without a name, which is
            sent as text), `unanswered_result` (a tool result without a matching call),
            `after_return` (tokens after `<|return|>`, which are not sent).
        message: a sentence.
        start, stop: the span of the tokens at fault.
        text: text outside of messages, else "".
        choice: the choice in whose stream it happened.
    """

    kind: str
    message: str
    start: int
    stop: int
    text: str = ""
    choice: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-ready values.

        >>> Problem("hidden_call", "a call", 3, 9).to_dict()["kind"]
        'hidden_call'
        """
        return attrs.asdict(self)

    def without_words(self) -> Problem:
        """Return kind and span alone, for clients that must not see the model's reasoning.

        The other fields may quote reasoning.

        >>> Problem("expected_start", "token 3 ('secret') ...", 3, 9, "secret").without_words()
        Problem(kind='expected_start', message='expected_start at positions 3 to 9', start=3, \
stop=9, text='', choice=0)
        """
        sentence = f"{self.kind} at positions {self.start} to {self.stop}"
        return attrs.evolve(self, message=sentence, text="")


_SENTENCES = {
    "without_channel": "text without a channel, at positions {start} to {stop}, goes to {place}",
    "unknown_channel": (
        "text on the unknown channel {header.channel!r}, at positions {start} to {stop}, "
        "goes to {place}"
    ),
    "hidden_call": (
        "the call of {header.recipient!r}, at positions {start} to {stop}, is not shown: "
        "it is not a function of the client"
    ),
    "incomplete_call": (
        "the call of {header.recipient!r} ended at position {stop} without its end token: "
        "it must not be executed"
    ),
    "arguments_not_json": (
        "the arguments of the call of {header.recipient!r}, which ended at position {stop}, "
        "are not JSON"
    ),
    "resolved_name": (
        "the recipient {header.recipient!r}, at positions {start} to {stop}, is resolved to the "
        "declared {name!r}"
    ),
    "nameless_call": (
        "the recipient {header.recipient!r}, at positions {start} to {stop}, does not name a tool: "
        "the message is sent as text"
    ),
    "unanswered_result": (
        "the tool result of {header.name!r}, at positions {start} to {stop}, does not have a "
        "matching call"
    ),
    "after_return": ("the tokens after <|return|>, at positions {start} to {stop}, are not sent"),
}


def sentence_of(kind: str, header: Header | None, start: int, stop: int, **words: str) -> str:
    """Return the sentence of a problem that an adapter detects.

    >>> sentence_of("after_return", None, 7, 9)
    'the tokens after <|return|>, at positions 7 to 9, are not sent'
    """
    return _SENTENCES[kind].format(header=header, start=start, stop=stop, **words)
