"""The words of a header: text runs in, words with their kind and place out.

Special tokens cut a header into sections, and the sections into runs of text. Nothing here looks
for a marker inside decoded text: a run that spells one out is text like any other.

Format guide, "Message format" and "Receiving tool calls". `read_header` makes fields of the words.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from harmony_stream.values.header import KNOWN_CHANNELS, KNOWN_ROLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Section(StrEnum):
    """The parts of a header, named after the parser's states in them."""

    ROLE = "ROLE"
    CHANNEL = "CHANNEL"
    CONSTRAIN = "CONSTRAIN"


class Run(NamedTuple):
    """Header text between two special tokens.

    Attributes:
        section: the section that it is in.
        text: its characters; bytes that are not UTF-8 are escaped as `surrogateescape` does.
        opens: True if the special token before it began the section.
    """

    section: Section
    text: str
    opens: bool


class TextPosition(NamedTuple):
    """A character of a header: the run and the offset in it; -1 is the token before the run."""

    run: int
    offset: int


class WordKind(StrEnum):
    """The meaning of a word by its place and shape."""

    ROLE = "role"
    CHANNEL = "channel"
    RECIPIENT = "recipient"
    CONSTRAIN = "constrain"
    BARE = "bare"


class Word(NamedTuple):
    """A word of a header.

    Attributes:
        kind: its meaning.
        text: its characters, escaped as in its run.
        place: its first character.
        section: the section that it is in.
    """

    kind: WordKind
    text: str
    place: TextPosition
    section: Section

    @property
    def is_channel(self) -> bool:
        """True if it is the name of a known channel, in any letter case."""
        return self.text.lower() in KNOWN_CHANNELS

    def after(self, width: int) -> TextPosition:
        """Return the place that many characters into the word."""
        return TextPosition(self.place.run, self.place.offset + width)


# Names are letters, digits and _ $ . / + : - (and the characters that stand for broken bytes).
NAME = re.compile(r"[\w$./+:\ufffd\udc80-\udcff-]+")
# A type is a name that begins and ends with a letter or a digit: `write:` begins a sentence.
TYPE = re.compile(
    r"(?:[^\W_]|[\ufffd\udc80-\udcff])"
    r"(?:[\w./+:\ufffd\udc80-\udcff-]*(?:[^\W_]|[\ufffd\udc80-\udcff]))?"
)
_WORD = re.compile(r"\S+")
_RECIPIENT = re.compile(r"to=([\w$./+:\ufffd\udc80-\udcff-]*)")
# A channel word is kept whole, however odd (`commentary?`), unless what is glued to a known channel
# can only be content.
_GLUED_CONTENT = re.compile(
    r"(?:analysis|commentary|final)(?=[\[{(<\"'`]|[^\x00-\x7f\ufffd\udc80-\udcff])"
)
# A role with a colon: only a name may be glued to it. What cannot be one is a word of its own.
_ROLE_AND_NAME = re.compile(
    rf"(?i:{'|'.join(KNOWN_ROLES)})(?=:)(?::[\w$./+:\ufffd\udc80-\udcff-]+)?"
)

# The first word of a section that is not `to=` has the section's meaning.
_FIRST_WORD = {
    Section.ROLE: WordKind.ROLE,
    Section.CHANNEL: WordKind.CHANNEL,
    Section.CONSTRAIN: WordKind.CONSTRAIN,
}


def words_of(runs: Sequence[Run], *, has_role_word: bool) -> Iterator[Word]:
    """Yield the words of a header in order.

    Args:
        runs: the text of the header.
        has_role_word: True if the header spells its role. If the prompt has given the role, the
            first word of the role section has no meaning of its own.

    >>> runs = [Run(Section.ROLE, "assistant to=f", True), Run(Section.CHANNEL, "final", True)]
    >>> [f"{word.kind}: {word.text}" for word in words_of(runs, has_role_word=True)]
    ['role: assistant', 'recipient: to=f', 'channel: final']
    """
    expected: WordKind | None = None
    for number, run in enumerate(runs):
        if run.opens:
            expected = _FIRST_WORD[run.section]
            if expected is WordKind.ROLE and not has_role_word:
                expected = None
        for chunk in _WORD.finditer(run.text):
            position, end = chunk.span()
            while position < end:
                kind, stop = _next_word(run.text, position, end, expected)
                if kind is expected:
                    expected = None
                place = TextPosition(number, position)
                yield Word(kind, run.text[position:stop], place, run.section)
                position = stop


def _next_word(
    text: str, position: int, end: int, expected: WordKind | None
) -> tuple[WordKind, int]:
    """Return the kind and the end of the word at `position` of a chunk without white space."""
    if recipient := _RECIPIENT.match(text, position, end):
        return WordKind.RECIPIENT, recipient.end()
    if expected is WordKind.ROLE:
        named = _ROLE_AND_NAME.match(text, position, end)
        return expected, named.end() if named else end
    if expected is WordKind.CHANNEL:
        glued = _GLUED_CONTENT.match(text, position, end)
        return expected, glued.end() if glued else end
    name = NAME.match(text, position, end)
    stop = name.end() if name else end
    if expected is WordKind.CONSTRAIN and TYPE.fullmatch(text, position, stop):
        return expected, stop
    return WordKind.BARE, stop
