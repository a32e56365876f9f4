"""Steps from one unfinished character to the next, remembered for all parsers of a vocabulary.

Half of the tokens of emoji are parts of characters. Joining and decoding their bytes takes twice as
long as looking up what the same token did after the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from harmony_stream.vocabulary import Vocabulary

# Real texts need a few hundred steps; anything could need millions. When there are more than these,
# they are forgotten, also by the parsers that stand in them, which may wait for long.
_MOST_STEPS = 20_000

# Of all vocabularies: as long as the texts of the largest.
_NO_TEXTS: list[str | None] = []


class Step(NamedTuple):
    """What a token does after the bytes of an unfinished character.

    Attributes:
        text: the characters that are whole now; None if there are none.
        width: the number of tokens that the text comes from.
        steps: the steps from there.
        texts: the texts of whole tokens from there, by id; while bytes are held, there are none.
    """

    text: str | None
    width: int
    steps: Steps
    texts: list[str | None]


class Steps(dict[int, Step]):
    """The steps of tokens, by id, after the same bytes.

    Attributes:
        held: these bytes.
        width: the number of tokens that they come from, of which three is the most. A token does
            not count if it gave text too.
    """

    __slots__ = ("held", "width")

    def __init__(self, held: bytes, width: int) -> None:
        super().__init__()
        self.held = held
        self.width = width


NO_STEPS = Steps(b"", 0)
"""The steps of a parser that is not in content."""


class CharacterSteps:
    r"""The steps of a vocabulary.

    >>> from harmony_stream.vocabulary import Vocabulary
    >>> shared = CharacterSteps(Vocabulary.default())
    >>> shared.remember(shared.first, 117, None, shared.after(b"\xf0", 1))
    >>> shared.first[117].steps.held
    b'\xf0'
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._texts = vocabulary.texts
        _NO_TEXTS.extend([None] * (len(vocabulary.texts) - len(_NO_TEXTS)))
        self.no_texts = _NO_TEXTS
        """No text for any token, so that each has its place here too."""
        self.first = Steps(b"", 0)
        """The steps while no bytes are held."""
        self._after: dict[tuple[bytes, int], Steps] = {}
        self._count = 0

    def _forget(self) -> None:
        for steps in [self.first, *self._after.values()]:
            steps.clear()
        self._after = {}
        self._count = 0

    def after(self, held: bytes, width: int) -> Steps:
        """Return the steps after the bytes of an unfinished character."""
        if not held:
            return self.first
        return self._after.get((held, width)) or self._after.setdefault(
            (held, width), Steps(held, width)
        )

    def texts_after(self, held: bytes) -> list[str | None]:
        """Return the texts of whole tokens by id: none is known while bytes are held."""
        return self.no_texts if held else self._texts

    def remember(self, before: Steps, token: int, text: str | None, after: Steps) -> None:
        """Remember what a token did that is not whole characters by itself."""
        if token in before:
            return
        if self._count >= _MOST_STEPS:
            self._forget()
        self._count += 1
        before[token] = Step(text, before.width + 1, after, self.texts_after(after.held))
