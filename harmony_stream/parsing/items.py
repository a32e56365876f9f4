"""The items that a parser is fed: tokens, or stretches of marked text, with kind and bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from harmony_stream.parsing.states import KIND_OF_FORMATTING_TOKEN, TokenKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harmony_stream.vocabulary import Vocabulary

Item: TypeAlias = int | str | bytes
"""A token id, or a piece of marked text."""


class Piece(NamedTuple):
    """One thing that is fed.

    Attributes:
        kind: its kind for the state table.
        item: a token, or a stretch of marked text; None for the end of the stream.
        data: its bytes.
        start, stop: its span in the stream.
    """

    kind: TokenKind
    item: Item | None
    data: bytes
    start: int
    stop: int


class Meaning(NamedTuple):
    """What a token is.

    Attributes:
        kind: its kind for the state table.
        data: its bytes; those of U+FFFD if it is unknown.
        text: its text as errors quote it.
    """

    kind: TokenKind
    data: bytes
    text: str


_UNKNOWN = Meaning(TokenKind.UNKNOWN, "\ufffd".encode(), "\ufffd")
# The number of ids without a token that are kept: some come again and again, and there are
# endlessly many.
_MOST_UNKNOWN = 1000


class _Tokens(dict[int, Meaning]):
    """Tokens with their meaning, looked up when first asked for."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._vocabulary = vocabulary
        self._unknown = 0

    def __missing__(self, token: int) -> Meaning:
        try:
            data = self._vocabulary.decode_single_token_bytes(token)
        except KeyError:
            self._unknown += 1
            if self._unknown <= _MOST_UNKNOWN:
                self[token] = _UNKNOWN
            return _UNKNOWN
        self[token] = Meaning(self._kind_of(token), data, data.decode("utf-8", "replace"))
        return self[token]

    def _kind_of(self, token: int) -> TokenKind:
        formatting_token = self._vocabulary.formatting_tokens.get(token)
        if formatting_token is not None:
            return KIND_OF_FORMATTING_TOKEN[formatting_token]
        is_special = self._vocabulary.is_special_token(token)
        return TokenKind.OTHER_SPECIAL if is_special else TokenKind.TEXT


def tokens_of(vocabulary: Vocabulary) -> _Tokens:
    """Return the meanings of a vocabulary's tokens, one table for all its parsers."""
    return vocabulary.table(_Tokens)


def kind_and_data(vocabulary: Vocabulary, item: Item) -> tuple[TokenKind, bytes]:
    """Return the kind and the bytes of an item; of an unknown token those of U+FFFD."""
    if isinstance(item, int):
        kind, data, _ = tokens_of(vocabulary)[item]
        return kind, data
    return TokenKind.TEXT, item.encode() if isinstance(item, str) else item


def piece_of(vocabulary: Vocabulary, item: Item, start: int, stop: int) -> Piece:
    """Return an item with its kind and its bytes."""
    kind, data = kind_and_data(vocabulary, item)
    return Piece(kind, item, data, start, stop)


# What an error quotes is cut here: enough to see what is wrong.
_LONGEST_QUOTE = 500


def quote(vocabulary: Vocabulary, items: Sequence[Item]) -> str:
    """Return the text of items as errors quote it: special tokens spelled out, a long one cut.

    >>> from harmony_stream.vocabulary import Vocabulary
    >>> quote(Vocabulary.default(), [200005, 17196])
    '<|channel|>final'
    """
    # An item is a byte at least, and a character four at most.
    datas = [
        kind_and_data(vocabulary, item if isinstance(item, int) else item[: _LONGEST_QUOTE + 1])[1]
        for item in items[: 4 * _LONGEST_QUOTE + 1]
    ]
    return shortened(b"".join(datas).decode("utf-8", "replace"))


def quote_item(vocabulary: Vocabulary, item: Item) -> str:
    """Return the text of one item as errors quote it.

    >>> from harmony_stream.vocabulary import Vocabulary
    >>> quote_item(Vocabulary.default(), 200005)
    '<|channel|>'
    """
    if isinstance(item, int):
        return tokens_of(vocabulary)[item].text
    return quote(vocabulary, (item,))


def shortened(text: str) -> str:
    """Return the text, or its beginning if it is too long to be quoted."""
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"


def plain_text_of(vocabulary: Vocabulary, items: Iterable[Item]) -> str:
    """Return the text of items, without special tokens."""
    pairs = [kind_and_data(vocabulary, item) for item in items]
    texts = [data for kind, data in pairs if kind in (TokenKind.TEXT, TokenKind.UNKNOWN)]
    return b"".join(texts).decode("utf-8", "replace")
