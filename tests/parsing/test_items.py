"""What is fed to a parser: its kind, its bytes, and how errors quote it."""

import pytest
from strategies import RESERVED, SPECIAL, UNKNOWN, VOCABULARY, tokens_of

from harmony_stream.parsing.items import (
    Piece,
    kind_and_data,
    piece_of,
    plain_text_of,
    quote,
    quote_item,
)
from harmony_stream.parsing.items import tokens_of as known_tokens_of
from harmony_stream.parsing.states import TokenKind
from harmony_stream.vocabulary import Vocabulary

CHANNEL = SPECIAL["<|channel|>"]


@pytest.mark.parametrize(
    ("item", "kind", "data"),
    [
        (13225, TokenKind.TEXT, b"Hello"),
        (172, TokenKind.TEXT, b"\xf0"),
        ("h\u00e9", TokenKind.TEXT, b"h\xc3\xa9"),
        (b"\xff", TokenKind.TEXT, b"\xff"),
        (CHANNEL, TokenKind.CHANNEL, b"<|channel|>"),
        (SPECIAL["<|call|>"], TokenKind.CALL, b"<|call|>"),
        (SPECIAL["<|endoftext|>"], TokenKind.END_OF_TEXT, b"<|endoftext|>"),
        (SPECIAL["<|startoftext|>"], TokenKind.OTHER_SPECIAL, b"<|startoftext|>"),
        (RESERVED, TokenKind.OTHER_SPECIAL, b"<|reserved_200013|>"),
        (UNKNOWN, TokenKind.UNKNOWN, b"\xef\xbf\xbd"),
        (2**70, TokenKind.UNKNOWN, b"\xef\xbf\xbd"),
    ],
)
def test_an_item_is_of_a_kind_and_has_bytes(item, kind, data):
    assert kind_and_data(VOCABULARY, item) == (kind, data)


def test_the_text_of_items_spells_out_special_tokens_and_joins_characters():
    assert quote(VOCABULARY, (CHANNEL, 172, 253, 99, 228, "a", b"\xff")) == "<|channel|>🦆a\ufffd"
    assert quote(VOCABULARY, (CHANNEL,)) == "<|channel|>"
    assert quote(VOCABULARY, (201089,)) == "\ufffd"


@pytest.mark.parametrize("items", [("a" * 501,), (b"a" * 501,), (*([64] * 501),), ("a" * 10**6,)])
def test_a_quote_is_cut_after_500_characters(items):
    assert quote(VOCABULARY, items) == "a" * 500 + "…"
    assert quote(VOCABULARY, ("🦆" * 500,)) == "🦆" * 500


def test_only_so_many_unknown_tokens_are_kept_in_mind():
    known = known_tokens_of(Vocabulary.from_tiktoken(VOCABULARY.tiktoken_encoding))
    for token in range(UNKNOWN, UNKNOWN + 1001):
        assert known[token] == (TokenKind.UNKNOWN, b"\xef\xbf\xbd", "\ufffd")
    assert len(known) == 1000
    assert (UNKNOWN in known, UNKNOWN + 1000 in known) == (True, False)
    assert known[13225] == (TokenKind.TEXT, b"Hello", "Hello")
    assert 13225 in known


def test_the_text_of_a_header_is_without_its_markers():
    items = [*tokens_of("user<|channel|>final"), RESERVED, UNKNOWN, 172]
    assert plain_text_of(VOCABULARY, items) == "userfinal\ufffd\ufffd"


def test_a_piece_is_an_item_with_its_kind_its_bytes_and_its_span():
    assert piece_of(VOCABULARY, 13225, 4, 5) == Piece(TokenKind.TEXT, 13225, b"Hello", 4, 5)
    assert piece_of(VOCABULARY, "\xe9t", 4, 6).data == b"\xc3\xa9t"


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (CHANNEL, "<|channel|>"),
        (172, "\ufffd"),
        (UNKNOWN, "\ufffd"),
        ("ab", "ab"),
        (b"\xff", "\ufffd"),
    ],
)
def test_one_item_is_quoted_as_a_list_of_one(item, text):
    assert quote_item(VOCABULARY, item) == quote(VOCABULARY, [item]) == text
