import pytest
from strategies import SPECIAL, VOCABULARY, described

from harmony_stream.parsing.marked_text import MarkedText
from harmony_stream.parsing.parser import EventParser

END, CHANNEL = SPECIAL["<|end|>"], SPECIAL["<|channel|>"]


def items_of(*chunks, kind=str):
    """What each chunk gives, and what is left at the end."""
    marked_text = MarkedText(VOCABULARY, kind())
    found = [[item for item, _ in marked_text.cut(chunk)] for chunk in chunks]
    return [*found, [item for item, _ in marked_text.rest()]]


@pytest.mark.parametrize(
    ("chunks", "items"),
    [
        ([""], [[], []]),
        (["a b"], [["a b"], []]),
        (["a<|end|>b"], [["a", END, "b"], []]),
        (["<|end|><|channel|>"], [[END, CHANNEL], []]),
        (["a<", "|en", "d|>b"], [["a"], [], [END, "b"], []]),
        (["a<", "b"], [["a"], ["<b"], []]),
        (["a<|en", "x"], [["a"], ["<|enx"], []]),
        (["a<|en"], [["a"], ["<|en"]]),
        (["<<|end|>"], [["<", END], []]),
        (["<|<|end|>"], [["<|", END], []]),
        (["<|end|><"], [[END], ["<"]]),
        (["<|e<|end|"], [["<|e"], ["<|end|"]]),
        (["<|x|> <|example|>"], [["<|x|> <|example|>"], []]),
        (["<|reserved_2000", "13|>"], [[], [SPECIAL["<|reserved_200013|>"]], []]),
        (["<|reserved_9|>"], [["<|reserved_9|>"], []]),
    ],
)
def test_text_is_cut_at_markers_and_what_may_become_one_is_held(chunks, items):
    assert items_of(*chunks) == items
    encoded = [[i.encode() if isinstance(i, str) else i for i in found] for found in items]
    assert items_of(*[chunk.encode() for chunk in chunks], kind=bytes) == encoded


def test_every_special_token_is_a_marker():
    for text, token in SPECIAL.items():
        assert items_of("a" + text[:-1], text[-1] + "b") == [["a"], [token, "b"], []]


def test_the_width_of_an_item_is_in_characters_or_in_bytes():
    assert MarkedText(VOCABULARY, "").cut("é<|end|>") == [("é", 1), (END, 7)]
    assert MarkedText(VOCABULARY, b"").cut("é<|end|>".encode()) == [("é".encode(), 2), (END, 7)]


def test_bytes_may_be_cut_inside_a_character():
    assert items_of(b"\xc3", b"\xa9<", kind=bytes) == [[b"\xc3"], [b"\xa9"], [b"<"]]


def test_half_a_pair_is_a_broken_character():
    assert items_of("a\ud83d", "\ude00b") == [["a\ufffd"], ["\ufffdb"], []]


def test_a_copy_holds_the_same_text_and_goes_its_own_way():
    marked_text = MarkedText(VOCABULARY, "")
    marked_text.cut("a<|en")
    twin = marked_text.copy()
    assert twin.cut("d|>") == [(END, 7)]
    assert marked_text.cut("x") == [("<|enx", 5)]


def test_what_is_forgotten_is_not_given_any_more():
    marked_text = MarkedText(VOCABULARY, "")
    assert marked_text.cut("a<|en") == [("a", 1)]
    marked_text.forget()
    assert marked_text.cut("d|>") == [("d|>", 3)]
    assert marked_text.rest() == []


@pytest.mark.parametrize("chunk", [1, None, ["a"], bytearray(b"a")])
def test_anything_but_text_is_refused(chunk):
    with pytest.raises(TypeError, match=f"str or bytes, not {type(chunk).__name__}"):
        MarkedText(VOCABULARY, "").cut(chunk)


def test_text_of_the_other_kind_is_refused():
    with pytest.raises(ValueError, match=r"this parser took str before: reset\(\) it first"):
        MarkedText(VOCABULARY, "").cut(b"a")


# -- Through the parser --


def events_of_chunks(*chunks, role="assistant"):
    parser = EventParser(role)
    events = [described(parser.feed_text(chunk)) for chunk in chunks]
    return [*events, described(parser.close())]


def test_spans_of_text_count_characters():
    assert events_of_chunks("<|channel|>final<|message|>ü🦆<|end|>") == [
        ["start assistant final 0:27", "'ü🦆' 27:29", "end complete 29:36"],
        [],
    ]


def test_spans_of_bytes_count_bytes():
    assert events_of_chunks("<|message|>ü🦆<|end|>".encode()) == [
        ["start assistant 0:11", "'ü🦆' 11:17", "end complete 17:24"],
        [],
    ]


def test_text_that_is_held_back_to_the_end_is_content():
    assert events_of_chunks("<|message|>a<|", "en") == [
        ["start assistant 0:11", "'a' 11:12"],
        [],
        ["'<|en' 12:16", "truncated 16:16"],
    ]


def test_a_delta_of_bytes_holds_back_half_a_character():
    assert events_of_chunks(b"<|message|>a\xc3", b"\xbc", b"\xf0<|end|>") == [
        ["start assistant 0:11", "'a' 11:12"],
        ["'ü' 12:14"],
        ["'\ufffd' 14:15", "end complete 15:22"],
        [],
    ]


def test_white_space_between_messages_is_taken_off_the_text_behind_it():
    assert events_of_chunks(" \n", " a b<|end|>", role=None) == [
        [],
        ["start assistant 3:3", "expected_start 3:6", "'a b' 3:6", "end 6:13"],
        [],
    ]
    assert events_of_chunks("\u3000é<|end|>".encode(), role=None) == [
        ["start assistant 3:3", "expected_start 3:5", "'é' 3:5", "end 5:12"],
        [],
    ]
    assert events_of_chunks(b"\xe3\x80", b"\x80\xe3\x80", b"\x80a<|end|>", role=None) == [
        [],
        [],
        ["start assistant 6:6", "expected_start 6:7", "'a' 6:7", "end 7:14"],
        [],
    ]


def test_content_of_a_header_that_is_not_closed_begins_inside_the_text():
    assert events_of_chunks("<|channel|>final ü ", "a<|end|>") == [
        [],
        ["start assistant final 0:17", "missing_message 20:27", "'ü a' 17:20", "end 20:27"],
        [],
    ]
    assert events_of_chunks("<|channel|>ü ü<|end|>".encode()) == [
        ["start assistant ü 0:14", "missing_message 16:23", "'ü' 14:16", "end 16:23"],
        [],
    ]


def test_a_fault_inside_the_text_of_a_header_points_to_its_word():
    chunk = "<|channel|>ü to=<|message|>"
    assert events_of_chunks(chunk)[0][1] == "empty_recipient 13:16"
    assert events_of_chunks(chunk.encode())[0][1] == "empty_recipient 14:17"


def test_a_header_of_text_is_filled_up_to_its_limit_wherever_it_is_cut():
    words = "<|channel|>final " + "a" * 600
    whole = events_of_chunks(words)
    assert whole == [
        ["start assistant final 0:17", "missing_message 512:513", f"'{'a' * 600}' 17:617"],
        ["truncated 617:617"],
    ]
