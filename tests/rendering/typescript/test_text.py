"""The texts inside a declaration: names, comments, what must not break out, literals."""

import pytest

from harmony_stream.errors import RenderError
from harmony_stream.rendering.profiles import GUIDE, OPENAI_0_0_8
from harmony_stream.rendering.typescript.text import (
    comment_lines,
    contained,
    contained_comment,
    description_lines,
    is_identifier,
    json_text,
    lines_of,
    note_of,
    number_text,
    tool_identifiers,
)

# --- Names ------------------------------------------------------------------------------------

IDENTIFIERS = [
    (["a b", "a-b", "a.b"], ["a_b", "a_b_2", "a_b_3"]),
    (["4 x", "$y", "é!"], ["_4_x", "$y", "é"]),
    (["!", "?"], ["unnamed", "unnamed_2"]),
    (["a", "a_2", "a"], ["a", "a_2", "a_3"]),
    ([], []),
]


@pytest.mark.parametrize(("names", "identifiers"), IDENTIFIERS)
def test_each_tool_gets_an_identifier_of_its_own(names, identifiers):
    assert tool_identifiers(names) == identifiers
    assert all(map(is_identifier, identifiers))


@pytest.mark.parametrize("name", ["", "4x", "a b", "a-b", "a.b", "a!"])
def test_other_names_need_quotes(name):
    assert not is_identifier(name)


# --- Comments ---------------------------------------------------------------------------------

LINES = [
    ("", [], ["// "]),
    ("a", ["a"], ["// a"]),
    ("a\r\nb\n", ["a", "b"], ["// a", "// b"]),
    ("a\rb\u2028c\x85d", ["a\rb\u2028c\x85d"], ["// a", "// b", "// c", "// d"]),
    ("a\n\nb", ["a", "", "b"], ["// a", "// ", "// b"]),
]


@pytest.mark.parametrize(("text", "lines", "comments"), LINES)
def test_the_wheels_split_at_line_feeds_and_comments_wherever_a_line_ends(text, lines, comments):
    assert lines_of(text) == lines
    assert comment_lines(text) == comments


def test_a_description_is_split_as_its_profile_does():
    assert description_lines("a\rb\n", GUIDE, "here") == ["// a", "// b"]
    assert description_lines("a\rb\n", OPENAI_0_0_8, "here") == ["// a\rb"]
    assert description_lines("", GUIDE, "here") == description_lines("", OPENAI_0_0_8, "here") == []


@pytest.mark.parametrize(("texts", "note"), [([None], ""), (["a", None, "b"], " // a b")])
def test_a_note_joins_the_texts_that_there_are(texts, note):
    assert note_of(texts) == note


# --- Containment ------------------------------------------------------------------------------

CONTAINED = ["", "a", "{", "{}", "{}\n{a}", "a => b", "## Tools", "# Toolshed", " any"]
BREAKING_OUT = ["}", "{}}", "}{", "=> any", "=>\n any", "// namespace", "# Tools", " # Tools x"]


@pytest.mark.parametrize("text", CONTAINED)
def test_a_text_that_stays_a_part_of_its_declaration_is_printed_as_it_is(text):
    assert contained(text, "here") == contained_comment(f"a\n{text}", "here")[2:] == text


@pytest.mark.parametrize("text", BREAKING_OUT)
def test_a_text_that_would_break_out_is_an_error_with_its_place(text):
    for check, whole in ((contained, text), (contained_comment, f"a\r{text}")):
        with pytest.raises(RenderError, match=r"^here '.*would break out of its declaration"):
            check(whole, "here")


@pytest.mark.parametrize("text", BREAKING_OUT)
def test_in_the_line_of_a_comment_any_text_is_contained(text):
    assert contained_comment(text.replace("\n", ""), "here") == text.replace("\n", "")


# --- Literals ---------------------------------------------------------------------------------

NUMBERS = [
    (0, "0"), (-3, "-3"), (1.5, "1.5"), (-0.0, "-0.0"), (1e16, "1e+16"), (1e-5, "0.00001"),
    (-1.25e-05, "-0.0000125"), (1e-6, "1e-6"), (5e-324, "5e-324"), (1e308, "1e+308"),
    (2**64, "18446744073709551616"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "text"), NUMBERS)
def test_numbers_have_the_digits_that_identify_them(number, text):
    assert number_text(number, "+") == text
    assert number_text(number) == text.replace("+", "")
    assert float(text) == number


VALUES = [
    (None, "null"),
    (True, "true"),
    ('é"\n', '"é\\"\\n"'),
    ([1, [False], []], "[1,[false],[]]"),
    ({"a": {"b": 1e-5}, "c": {}}, '{"a":{"b":0.00001},"c":{}}'),
]


@pytest.mark.parametrize(("value", "text"), VALUES)
def test_values_are_compact_json(value, text):
    assert json_text(value, number_text) == text
