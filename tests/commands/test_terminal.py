"""Text of logs for terminals: what nobody would see, or would be fooled by, is written out."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import cut, examples, places

from harmony_stream.commands.terminal import VisibleContent, complain, visible

SPELLED = {
    "\0": "\\x00",
    "\x07": "\\x07",
    "\b": "\\x08",
    "\r": "\\x0d",
    "\x1b": "\\x1b",
    "\x7f": "\\x7f",
    "\x85": "\\x85",
    "\x9b": "\\x9b",
    "\xad": "\\xad",
    "\u034f": "\\u034f",  # a joiner of graphemes
    "\u061c": "\\u061c",  # the mark of Arabic letters
    "\u115f": "\\u115f",  # a filler of Hangul
    "\u17b4": "\\u17b4",  # a vowel of Khmer that is not written
    "\u180b": "\\u180b",  # a variation selector of Mongolian
    "\u180e": "\\u180e",  # a separator of Mongolian vowels
    "\u200b": "\\u200b",  # a space of no width
    "\u200c": "\\u200c",
    "\u200d": "\\u200d",  # a joiner of no width
    "\u200e": "\\u200e",
    "\u200f": "\\u200f",  # a mark of text from right to left
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
    "\u202e": "\\u202e",
    "\u2060": "\\u2060",
    "\u2064": "\\u2064",  # an invisible plus
    "\u2066": "\\u2066",
    "\u2069": "\\u2069",
    "\u206f": "\\u206f",
    "\u3164": "\\u3164",
    "\ud800": "\\ud800",  # half a character
    "\ue000": "\\ue000",  # of private use
    "\ufe0f": "\\ufe0f",  # a variation selector
    "\ufeff": "\\ufeff",  # a byte-order mark
    "\uffa0": "\\uffa0",
    "\ufff9": "\\ufff9",
    "\uffff": "\\uffff",  # no character
    "\U0001d173": "\\U0001d173",
    "\U000e0001": "\\U000e0001",
    "\U000e0041": "\\U000e0041",  # a tag
    "\U000e0100": "\\U000e0100",  # another variation selector
    "\U0010ffff": "\\U0010ffff",
}
# In content these are as they are; in a line they are spelled out.
CONTENT_ONLY = {"\n": "\\x0a", "\t": "\\x09", "\xa0": "\\xa0", "\u3000": "\\u3000"}


def shown(*pieces):
    content = VisibleContent()
    return "".join([*map(content.feed, pieces), content.end()])


@pytest.mark.parametrize("char", SPELLED, ids=SPELLED.values())
def test_what_is_not_seen_is_spelled_in_lines_and_in_content(char):
    for before, behind in (("", ""), ("a", "b"), ("日", "本"), ("\n", "\n"), ("a ", " 5")):
        assert visible(before.strip() + char) == before.strip() + SPELLED[char]
        assert shown(before + char + behind) == before + SPELLED[char] + behind
        assert shown(before, char, behind) == before + SPELLED[char] + behind


@pytest.mark.parametrize("char", CONTENT_ONLY)
def test_spaces_and_line_breaks_are_those_of_content(char):
    assert visible(f"a{char}b") == f"a{CONTENT_ONLY[char]}b"
    assert shown(f"a{char}b") == f"a{char}b"


def is_seen(char):
    """Whether a character may stand in content as it is, by the tables of Unicode alone."""
    kind = unicodedata.category(char)
    is_new_emoji = kind == "Cn" and 0x1F000 <= ord(char) < 0x1FC00
    is_selector = "VARIATION SELECTOR" in unicodedata.name(char, "")
    is_filler = "FILLER" in unicodedata.name(char, "") and kind == "Lo"
    is_unseen = is_selector or is_filler or char in "\u034f\u17b4\u17b5"
    return (
        is_new_emoji or char in "\n\t" or not (kind[0] == "C" or kind in {"Zl", "Zp"} or is_unseen)
    )


def test_every_character_is_judged_by_what_unicode_says_of_it():
    full = [*range(0x20000), *range(0xE0000, 0xE1000), *range(0x20000, sys.maxunicode + 1, 997)]
    chars = [chr(code) for code in full if chr(code) != "\n"]
    lines = shown("\n".join(chars)).split("\n")
    pairs = zip(chars, lines, strict=True)
    assert [f"{ord(char):x}" for char, line in pairs if (line == char) != is_seen(char)] == []


EMOJI = ["👩‍🍳", "👩🏽‍🍳", "❤️", "❤️‍🔥", "🏳️‍🌈", "👨‍👩‍👧‍👦", "1️⃣", "#️⃣", "☎︎", "🇳🇴", "©️", "🏃🏽‍♀️", "🐻‍❄️",
         "\U0001fbcf", "\U0001faea"]  # fmt: skip


@pytest.mark.parametrize("emoji", EMOJI)
def test_emoji_of_several_characters_stay_whole(emoji):
    for text in (emoji, f"a{emoji}b", emoji * 3, f"{emoji}\n{emoji}"):
        assert shown(text) == shown(*text) == text


LOOSE = {
    "a\u200db": "a\\u200db",
    "👩\u200d": "👩\\u200d",
    "👩\u200d.": "👩\\u200d.",
    "👩\u200d\u200d👩": "👩\\u200d\\u200d👩",
    "\u200d👩": "\\u200d👩",
    "a\ufe0f": "a\\ufe0f",
    "❤\ufe0f\ufe0f": "❤\ufe0f\\ufe0f",
    "❤\ufe01": "❤\\ufe01",
    "😀\U000e0100": "😀\\U000e0100",
    "👩\ufe0f\u200d\n": "👩\ufe0f\\u200d\n",
    "🏴\U000e0067\U000e007f": "🏴\\U000e0067\\U000e007f",
    "می\u200cخواهم": "می\\u200cخواهم",
}


@pytest.mark.parametrize("text", LOOSE)
def test_what_joins_no_emoji_is_spelled(text):
    assert shown(text) == shown(*text) == LOOSE[text]


pieces_of_text = st.sampled_from(
    ["👩", "🍳", "🏽", "\u200d", "\ufe0f", "\ufe0e", "a", "5", "\n", "日"]
)
texts = st.lists(pieces_of_text | st.characters(exclude_characters="\\"), max_size=12).map("".join)


@given(texts, places)
@examples(500)
def test_content_is_the_same_however_it_is_cut(text, places):
    assert shown(*cut(text, places)) == shown(text)


@given(texts)
@examples(500)
def test_nothing_is_lost_and_what_is_visible_stays(text):
    for made in (shown(text), visible(text)):
        assert all(
            map(is_seen, made.replace("\u200d", "").replace("\ufe0f", "").replace("\ufe0e", ""))
        )
    assert visible(text).isprintable()
    spelled = visible(text).encode("ascii", "backslashreplace").decode()
    assert spelled.encode().decode("unicode_escape") == text


def test_a_joiner_is_held_back_until_it_joins():
    content = VisibleContent()
    assert [content.feed(char) for char in "👩\u200d🍳\u200da"] == [
        "👩",
        "",
        "\u200d🍳",
        "",
        "\\u200da",
    ]
    assert (content.feed("👩\u200d"), content.end(), content.end()) == ("👩", "\\u200d", "")
    assert content.feed("🍳") == "🍳"


def test_a_complaint_is_one_line(capsys):
    complain("a\n\x1b[2Jb\u202e")
    assert capsys.readouterr().err == "harmony-stream: a\\x0a\\x1b[2Jb\\u202e\n"
