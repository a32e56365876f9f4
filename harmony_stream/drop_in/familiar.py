"""What openai_harmony 0.0.8 makes of a fault: when it raises, and in which words.

Programs written for it look for its errors at the tokens where it raises them, and for its words in
their sentences. Its parser has three states, and leaves them by fewer tokens than ours:

- between messages everything but `<|start|>` raises at once;
- a header ends at `<|message|>` only, and what is wrong with it is found then, or at the end of the
  stream;
- content ends at a stop token only, so that what begins a header to us is text to it, and no fault.
"""

from __future__ import annotations

import json
import operator
from typing import TYPE_CHECKING, SupportsIndex

import attrs

from harmony_stream.values.events import (
    ContentDelta,
    Event,
    FaultKind,
    HarmonyParseError,
    Malformed,
    MessageStart,
)
from harmony_stream.values.header import KNOWN_CHANNELS, KNOWN_ROLES
from harmony_stream.values.messages import Message, Role
from harmony_stream.vocabulary import FormattingToken, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_STOPS = (FormattingToken.END, FormattingToken.RETURN, FormattingToken.CALL)


class TheirState:
    """Where openai_harmony's parser stands after the same tokens.

    Attributes:
        is_header: it collects a header.
        is_content: it collects content. Neither: it expects `<|start|>`.
    """

    def __init__(self, vocabulary: Vocabulary, role: Role | str | None) -> None:
        ids = vocabulary.special_tokens
        self._start, self._message = ids[FormattingToken.START], ids[FormattingToken.MESSAGE]
        self._stops = {ids[token] for token in _STOPS}
        self.is_header = role is not None
        self.is_content = False

    def take(self, token: int, *, raised: bool = False) -> None:
        """Go on by a token, at which it perhaps raised; ordinary text changes nothing."""
        if self.is_content:
            self.is_content = token not in self._stops
        elif not self.is_header:
            self.is_header = token == self._start
        elif token == self._message:
            self.is_header, self.is_content = False, not raised

    def end(self) -> None:
        """Go on by the end of the stream."""
        self.is_header = self.is_content = False


# -- Text that belongs to no message --

# A header that was given up is no text: its words are its fields.
_OF_TEXT = (FaultKind.EXPECTED_START, FaultKind.UNPARSED_HEADER_TEXT, FaultKind.UNKNOWN_ROLE)


def message_of_text(event: Event, role: Role | str | None) -> Message | None:
    """Text between messages, or words of a header that are no field, as a message without channel.

    Who asks for messages hears of nothing else, so the text must be in one.
    """
    if not isinstance(event, Malformed) or event.kind not in _OF_TEXT:
        return None
    text = event.text.strip()
    if not text or text.lower() in (*KNOWN_ROLES, *KNOWN_CHANNELS):
        return None
    return Message.from_role_and_content(role or Role.ASSISTANT, text)


# -- Faults that openai_harmony raises for --

_WORDS_LEFT = "unexpected tokens remaining in message header: Some({words})"
_NO_MESSAGE = "Unexpected EOS while waiting for message header to complete"
_NO_ROLE = "message header did not contain a role"

# In the order in which openai_harmony finds the faults of one header: the first is raised. (It does
# not look into a header that does not end.)
_PHRASES = {
    FaultKind.EXPECTED_START: "Unexpected token {token} while expecting start token {start}",
    FaultKind.MISSING_MESSAGE: _NO_MESSAGE,
    FaultKind.UNEXPECTED_START: _NO_MESSAGE,
    FaultKind.TRUNCATED_IN_HEADER: _NO_MESSAGE,
    FaultKind.EMPTY_CHANNEL: "channel marker present but no channel value found in header",
    FaultKind.UNKNOWN_ROLE: "Unknown role: {word}",
    FaultKind.UNPARSED_HEADER_TEXT: _WORDS_LEFT,
}
_ORDER = list(_PHRASES)


@attrs.frozen(auto_exc=True, slots=False, str=False)
class FamiliarParseError(HarmonyParseError):
    """A fault, said in openai_harmony's words first.

    Attributes:
        phrase: what openai_harmony says, for programs that look for it.
    """

    phrase: str = ""

    def __str__(self) -> str:
        return f"{self.phrase}: {super().__str__()}"


def familiar_errors(
    vocabulary: Vocabulary, events: Iterable[Event]
) -> Iterator[FamiliarParseError]:
    """The faults among events that openai_harmony would raise for, one for each header."""
    faults: list[HarmonyParseError] = []
    stop = 0
    for event in events:
        if isinstance(event, Malformed):
            stop = event.stop
            if _is_familiar(event.error):
                faults.append(event.error)
        elif faults and not (isinstance(event, MessageStart) and event.start < stop):
            # Those that stand together are one header's; that with text comes before its message.
            yield _familiar(vocabulary, faults, event)
            faults = []
    if faults:
        yield _familiar(vocabulary, faults, None)


def familiar_error_of(
    vocabulary: Vocabulary,
    role: Role | str | None,
    tokens: Sequence[SupportsIndex],
    events: Iterable[Event],
) -> FamiliarParseError | None:
    """Of a whole completion the first fault that openai_harmony raises for, as it says it."""
    theirs, position = TheirState(vocabulary, role), 0
    for error in familiar_errors(vocabulary, events):
        for token in tokens[position : error.position]:
            theirs.take(operator.index(token))
        position = error.position
        if theirs.is_content:
            continue  # what is a header here, is text there
        message = vocabulary.special_tokens[FormattingToken.MESSAGE]
        is_unclosed = theirs.is_header and message not in tokens[position:]
        return at_end_of_stream(error) if is_unclosed else error
    return None


def _is_familiar(error: HarmonyParseError) -> bool:
    if error.kind is FaultKind.UNEXPECTED_START:
        # A role alone says nothing: there the header begins afresh.
        return error.header_text.strip().lower() not in ("", *KNOWN_ROLES)
    return error.kind in _PHRASES


def at_end_of_stream(error: FamiliarParseError) -> FamiliarParseError:
    """An error of a header that nothing closed, as openai_harmony says it at the end."""
    return attrs.evolve(error, phrase=_NO_MESSAGE)


def _familiar(
    vocabulary: Vocabulary, faults: list[HarmonyParseError], following: Event | None
) -> FamiliarParseError:
    error = min(faults, key=lambda fault: _ORDER.index(fault.kind))
    fields = {name: getattr(error, name) for name in attrs.fields_dict(HarmonyParseError)}
    return FamiliarParseError(**fields, phrase=_phrase(vocabulary, error, following))


def _phrase(vocabulary: Vocabulary, error: HarmonyParseError, following: Event | None) -> str:
    template, words = _PHRASES[error.kind], error.token_text
    if error.kind is FaultKind.UNKNOWN_ROLE and words in vocabulary.special_tokens:
        template = _NO_ROLE  # the token stands where the role was due
    if template == _NO_MESSAGE and isinstance(following, ContentDelta):
        template, words = _WORDS_LEFT, following.text.strip()  # which became content
    return template.format(
        token=error.token,
        start=vocabulary.special_tokens[FormattingToken.START],
        word=words,
        words=json.dumps(words, ensure_ascii=False),
    )
