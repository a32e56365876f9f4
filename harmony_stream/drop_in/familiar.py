"""The errors of openai_harmony 0.0.8: the token at which it raises, and its sentences.

Programs written for it expect its errors at the tokens where it raises them, and search for its
words in their sentences. Its parser has three states, which fewer tokens end than in ours:

- between messages every token but `<|start|>` raises at once;
- a header ends at `<|message|>` only, and its faults are detected there, or at the end of the
  stream;
- content ends at a stop token only, so a token that begins a header for us is text for it.
"""

from __future__ import annotations

import json
import operator
from typing import TYPE_CHECKING, SupportsIndex

import attrs

from harmony_stream.values.events import (
    ContentDelta,
    Event,
    HarmonyParseError,
    Malformed,
    MessageStart,
)
from harmony_stream.values.faults import FaultKind
from harmony_stream.values.header import KNOWN_CHANNELS, KNOWN_ROLES
from harmony_stream.values.messages import Message, Role
from harmony_stream.vocabulary import FormattingToken, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_STOPS = (FormattingToken.END, FormattingToken.RETURN, FormattingToken.CALL)


class TheirState:
    """The state of openai_harmony's parser after the same tokens.

    Attributes:
        is_header: true if it collects a header.
        is_content: true if it collects content. If both are false, it expects `<|start|>`.
    """

    def __init__(self, vocabulary: Vocabulary, role: Role | str | None) -> None:
        ids = vocabulary.special_tokens
        self._start, self._message = ids[FormattingToken.START], ids[FormattingToken.MESSAGE]
        self._stops = {ids[token] for token in _STOPS}
        self.is_header = role is not None
        self.is_content = False

    def take(self, token: int, *, raised: bool = False) -> None:
        """Advance by a token, at which it may have raised. Ordinary text changes nothing."""
        if self.is_content:
            self.is_content = token not in self._stops
        elif not self.is_header:
            self.is_header = token == self._start
        elif token == self._message:
            self.is_header, self.is_content = False, not raised

    def end(self) -> None:
        """Advance to the end of the stream."""
        self.is_header = self.is_content = False


# -- Text outside of messages --

# An abandoned header is not text, since its words are its fields.
_OF_TEXT = (FaultKind.EXPECTED_START, FaultKind.UNPARSED_HEADER_TEXT, FaultKind.UNKNOWN_ROLE)


def message_of_text(event: Event, role: Role | str | None) -> Message | None:
    """Return text outside of messages as a message without a channel, or None.

    The text is between messages, or in a header as words that are not a field. The caller receives
    messages only, so the text must be in one.
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

# In the order in which openai_harmony detects the faults of one header, of which it raises the
# first. (It does not read a header that does not end.)
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
    """A fault whose sentence begins with openai_harmony's words.

    Attributes:
        phrase: openai_harmony's words, for programs that search for them.
    """

    phrase: str = ""

    def __str__(self) -> str:
        return f"{self.phrase}: {super().__str__()}"


def familiar_errors(
    vocabulary: Vocabulary, events: Iterable[Event]
) -> Iterator[FamiliarParseError]:
    """Yield the faults among events that openai_harmony would raise for, one for each header."""
    faults: list[HarmonyParseError] = []
    stop = 0
    for event in events:
        if isinstance(event, Malformed):
            stop = event.stop
            if _is_familiar(event.error):
                faults.append(event.error)
        elif faults and not (isinstance(event, MessageStart) and event.start < stop):
            # Adjacent faults belong to one header. The one with text comes before its message.
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
    """Return the error for the first fault of a completion that openai_harmony raises for."""
    theirs, position = TheirState(vocabulary, role), 0
    for error in familiar_errors(vocabulary, events):
        for token in tokens[position : error.position]:
            theirs.take(operator.index(token))
        position = error.position
        if theirs.is_content:
            continue  # a header for us is text for openai_harmony
        message = vocabulary.special_tokens[FormattingToken.MESSAGE]
        is_unclosed = theirs.is_header and message not in tokens[position:]
        return at_end_of_stream(error) if is_unclosed else error
    return None


def _is_familiar(error: HarmonyParseError) -> bool:
    if error.kind is FaultKind.UNEXPECTED_START:
        # A role alone is not a fault there: the header begins again.
        return error.header_text.strip().lower() not in ("", *KNOWN_ROLES)
    return error.kind in _PHRASES


def at_end_of_stream(error: FamiliarParseError) -> FamiliarParseError:
    """Return the error of an unclosed header, in openai_harmony's words for the end of a stream."""
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
        template = _NO_ROLE  # the token is in the place of the role
    if template == _NO_MESSAGE and isinstance(following, ContentDelta):
        template, words = _WORDS_LEFT, following.text.strip()  # which became content
    return template.format(
        token=error.token,
        start=vocabulary.special_tokens[FormattingToken.START],
        word=words,
        words=json.dumps(words, ensure_ascii=False),
    )
