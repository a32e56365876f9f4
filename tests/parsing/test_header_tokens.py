import pytest
from strategies import RESERVED, SPECIAL, UNKNOWN, VOCABULARY, tokens_of

from harmony_stream.parsing.header_tokens import Fault, read_header_tokens
from harmony_stream.parsing.items import kind_and_data, plain_text_of, quote
from harmony_stream.parsing.items import tokens_of as known_tokens_of
from harmony_stream.parsing.states import TokenKind
from harmony_stream.values.header_words import Section
from harmony_stream.values.messages import Role
from harmony_stream.values.read_header import Opening
from harmony_stream.vocabulary import Vocabulary

START, CHANNEL = SPECIAL["<|start|>"], SPECIAL["<|channel|>"]


def judged(items, opening=Opening.START, role=None, *, closed=True):
    return read_header_tokens(VOCABULARY, tuple(items), opening, role, None, closed=closed)


def faults_of(items, **options):
    faults = judged(items, **options).faults
    return [(fault.kind.value, fault.item, fault.offset, fault.text) for fault in faults]


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


def test_a_character_in_two_tokens_of_a_header_is_whole():
    items = [*tokens_of("functions.k"), 127, 120, *tokens_of("che to=assistant")]
    assert judged(items).header.name == "functions.küche"


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("!f x y", [("unknown_role", 0, 0, "!f"), ("unparsed_header_text", 2, 1, "x y")]),
        ("user<|channel|>a<|channel|>b", [("duplicate_channel", 3, 0, "")]),
        ("user<|channel|>", [("empty_channel", 2, 0, "")]),
        ("user<|channel|>a to=f to=g", [("duplicate_recipient", 5, 1, "to=g")]),
        ("user<|channel|>a json!", [("unparsed_header_text", 4, 0, "!")]),
        ("user<|reserved_200013|>", [("unexpected_marker", 1, 0, "")]),
    ],
)
def test_a_fault_is_found_in_its_token(text, faults):
    assert faults_of(tokens_of(text)) == faults


def test_a_fault_inside_a_token_says_how_many_bytes_stand_before_it():
    assert faults_of(["user é to= x!"]) == [
        ("unparsed_header_text", 0, 5, "é x !"),
        ("empty_recipient", 0, 8, "to="),
    ]


def test_only_so_many_unknown_tokens_are_kept_in_mind():
    known = known_tokens_of(Vocabulary.from_tiktoken(VOCABULARY.tiktoken_encoding))
    for token in range(UNKNOWN, UNKNOWN + 1001):
        assert known[token] == (TokenKind.UNKNOWN, b"\xef\xbf\xbd")
    assert len(known) == 1000
    assert (UNKNOWN in known, UNKNOWN + 1000 in known) == (True, False)
    assert known[13225] == (TokenKind.TEXT, b"Hello")
    assert 13225 in known


def test_a_prompt_repeated_with_another_role_is_at_fault_before_all_items():
    faults = faults_of(tokens_of("user"), opening=Opening.REPEATED, role=Role.ASSISTANT)
    assert faults == [("unexpected_start", -1, 0, "")]


def test_each_run_of_broken_bytes_is_one_fault_at_its_first_byte():
    items = [*tokens_of("user<|channel|>fi"), 172, 172, CHANNEL, *tokens_of("a"), 172]
    assert faults_of(items) == [
        ("invalid_utf8_in_header", 3, 0, ""),
        ("duplicate_channel", 5, 0, ""),
        ("invalid_utf8_in_header", 7, 0, ""),
    ]
    assert judged(items).header.channel == "a\ufffd"


@pytest.mark.parametrize("byte", range(0x80, 0x100))
def test_each_byte_that_is_no_character_is_a_fault(byte):
    items = [CHANNEL, b"final", CHANNEL, bytes([byte])]
    assert ("invalid_utf8_in_header", 3, 0, "") in faults_of(items)


def test_the_section_of_a_fault_is_where_it_stands():
    items = [*tokens_of("user"), RESERVED, CHANNEL, *tokens_of("final"), RESERVED, CHANNEL]
    sections = [fault.section for fault in judged(items).faults]
    assert sections == [Section.ROLE, Section.CHANNEL, Section.CHANNEL]


def test_the_rest_of_a_header_begins_in_an_item_behind_so_many_bytes():
    assert judged(tokens_of("user hello"), closed=False).rest == (1, 1)
    assert judged(["user é hello"], closed=False).rest == (0, 5)
    assert judged(tokens_of("user"), closed=False).rest is None


def test_faults_behind_the_beginning_of_the_content_do_not_count():
    items = [*tokens_of("user"), RESERVED, *tokens_of(" hello there"), RESERVED, UNKNOWN, 172]
    assert faults_of(items, closed=False) == [("unexpected_marker", 1, 0, "")]


def test_the_text_of_a_header_is_without_its_markers():
    items = [*tokens_of("user<|channel|>final"), RESERVED, UNKNOWN, 172]
    assert plain_text_of(VOCABULARY, items) == "userfinal\ufffd\ufffd"


def test_a_header_seen_before_is_judged_once():
    items = tuple(tokens_of("user<|channel|>final"))
    assert judged(items) is judged(items)


def test_a_fault_without_a_word_has_no_text():
    assert Fault("kind", 0, 0, Section.ROLE).text == ""
