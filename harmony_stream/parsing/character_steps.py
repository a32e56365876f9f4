"""Steps from one unfinished character to the next, remembered for all parsers of a vocabulary.

Half of the tokens of emoji are parts of characters. To join and decode their bytes takes twice as
long as to look up what became of the same token after the same bytes: 710 against 305 ns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from harmony_stream.vocabulary import Vocabulary

# A stream can hold 20,000 different beginnings of characters; those of real texts are a few hundred
# steps. The steps are forgotten when they are more, and parsers finish the ones they stand in.
_MOST_STEPS = 20_000


class Step(NamedTuple):
    """What a token does to the bytes of an unfinished character.

    Attributes:
        opens: True if no bytes were held before it.
        text: the characters that are whole now; None if there are none.
        held: the bytes that are held afterwards.
        steps: the steps from there.
        texts: the texts of whole tokens from there: none while bytes are held.
    """

    opens: bool
    text: str | None
    held: bytes
    steps: Steps
    texts: list[str | None]


Steps: TypeAlias = dict[int, Step]
"""From the same held bytes, the step of each token that is no whole characters by itself."""

NO_STEPS: Steps = {}
"""The steps outside of content."""


class CharacterSteps:
    r"""The steps of a vocabulary.

    >>> from harmony_stream.vocabulary import Vocabulary
    >>> steps = CharacterSteps(Vocabulary.default())
    >>> steps.remember(b"", 117, None, b"\xf0")
    >>> steps.after(b"")[117].held
    b'\xf0'
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.texts = vocabulary.texts
        self.no_texts: list[str | None] = [None] * len(vocabulary.texts)
        """As long as `texts`, so that each token has its place in both."""
        self._after: dict[bytes, Steps] = {}
        self._count = 0

    def after(self, held: bytes) -> Steps:
        """Return the steps from these held bytes."""
        return self._after.setdefault(held, {})

    def texts_after(self, held: bytes) -> list[str | None]:
        """Return the texts of whole tokens: none of them is known while bytes are held."""
        return self.no_texts if held else self.texts

    def remember(self, before: bytes, token: int, text: str | None, held: bytes) -> None:
        """Remember what a token did that is no whole characters by itself."""
        if self._count == _MOST_STEPS:
            self._after, self._count = {}, 0
        self._count += 1
        step = Step(not before, text, held, self.after(held), self.texts_after(held))
        self.after(before)[token] = step
