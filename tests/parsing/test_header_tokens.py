import pytest
from strategies import RESERVED, SPECIAL, UNKNOWN, VOCABULARY, tokens_of

from harmony_stream.parsing.header_tokens import Fault, read_header_tokens
from harmony_stream.values.header_words import Section
from harmony_stream.values.messages import Role
from harmony_stream.values.read_header import Opening

START, CHANNEL = SPECIAL["<|start|>"], SPECIAL["<|channel|>"]


def judged(items, opening=Opening.START, role=None, *, closed=True):
    return read_header_tokens(VOCABULARY, tuple(items), opening, role, None, closed=closed)


def faults_of(items, **options):
    faults = judged(items, **options).faults
    return [(fault.kind.value, fault.item, fault.offset, fault.text) for fault in faults]


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


def test_a_header_seen_before_is_judged_once():
    items = tuple(tokens_of("user<|channel|>final"))
    assert judged(items) is judged(items)


def test_a_fault_without_a_word_has_no_text():
    assert Fault("kind", 0, 0, Section.ROLE).text == ""
