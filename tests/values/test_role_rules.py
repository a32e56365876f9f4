"""Who writes a message: each rule has an example, and is needed for it."""

import re

import pytest

from harmony_stream.values import role_rules
from harmony_stream.values.header_words import Run, Section, TextPosition, Word, WordKind
from harmony_stream.values.messages import Role
from harmony_stream.values.read_header import Opening, read_header
from harmony_stream.values.role_rules import ROLE_RULES, RoleCase, author_of, without_role

# By rule: role, name and channel of its example, and its faults.
READ = {
    ("_channel_for_name", True): ("assistant", None, "analysis", ["unknown_role"]),
    ("_channel_after_role", True): ("assistant", None, "analysis", ["unparsed_header_text"]),
    ("_known_role", True): ("user", None, None, []),
    ("_channel_for_role", True): ("assistant", None, "analysis", ["unknown_role"]),
    ("_glued_role", True): ("assistant", None, "final", ["unknown_role"]),
    ("_second_channel", True): ("assistant", None, "final", ["unknown_role"]),
    ("_no_role", True): ("assistant", None, "final", ["unknown_role"]),
    ("_tool", True): ("tool", "functions.f", "commentary", []),
    ("_missing_role", True): ("assistant", None, "final", ["unknown_role"]),
    ("_given_role", True): ("assistant", None, None, []),
    ("_channel_for_role", False): ("assistant", None, "analysis", ["unknown_role"]),
    ("_given_role_glued", False): ("assistant", None, "final", ["unknown_role"]),
    ("_given_role", False): ("assistant", None, "final", []),
}
each_rule = pytest.mark.parametrize("rule", ROLE_RULES, ids=[rule.example for rule in ROLE_RULES])
WORD = Word(WordKind.ROLE, "bot", TextPosition(0, 0), Section.ROLE)
CASE = RoleCase(Role.ASSISTANT, None, WORD, None, None, None, True, False, True)


def read(example):
    """Read the header of an example."""
    first, *rest = re.split(
        r"<\|(channel|constrain)\|>", re.sub(r"<\|(message|end)\|>$", "", example)
    )
    runs = [Run(Section.ROLE, first.removeprefix("<|start|>"), True)]
    runs += [Run(Section(a.upper()), b, True) for a, b in zip(rest[::2], rest[1::2], strict=True)]
    opening = Opening.START if example.startswith("<|start|>") else Opening.PROMPT
    reading = read_header(runs, opening, None, None, closed=example.endswith("<|message|>"))
    header = reading.header
    faults = [fault.kind.value for fault in reading.faults]
    left = "".join(word.text for word in reading.left)
    return header.role.value, header.name, header.channel, faults, left


@each_rule
def test_the_example_of_a_rule_is_read_as_the_rule_says(rule):
    *fields, left = read(rule.example)
    assert tuple(fields) == READ[rule.reads.__name__, rule.spells_role]
    assert bool(left) is rule.leaves_word
    assert rule.spells_role is rule.example.startswith("<|start|>")
    assert rule.fault in (None, *fields[-1])


@pytest.mark.parametrize(
    "rule",
    # without a rule for nothing, or for a second channel, the next row has the same author
    [rule for rule in ROLE_RULES if rule.reads.__name__ != "_given_role"],
    ids=lambda rule: rule.example,
)
def test_without_its_rule_an_example_is_read_otherwise(rule, monkeypatch):
    before = read(rule.example)
    monkeypatch.setattr(role_rules, "ROLE_RULES", [r for r in ROLE_RULES if r is not rule])
    assert read(rule.example) != before


def test_each_kind_of_header_has_a_last_rule_that_always_fits():
    for spells_role in (True, False):
        *_, last = (rule for rule in ROLE_RULES if rule.spells_role is spells_role)
        assert last.reads(CASE._replace(word=None, is_finished=False)) is not None


@pytest.mark.parametrize(
    ("change", "is_refused"),
    [
        ({}, False),  # a tool's name
        ({"channel": "commentary", "recipient": "assistant"}, False),
        ({"channel": "final"}, True),  # a tool does not answer
        ({"recipient": "functions.f"}, True),  # nor call
        ({"closed": False}, True),  # a lone word is text
        ({"closed": False, "channel": "commentary"}, False),
        ({"closed": False, "recipient": "assistant"}, False),
        ({"word": None}, False),
        ({"word": WORD._replace(text="User:ines")}, False),
        ({"word": WORD._replace(text="userfinal")}, False),
        ({"word": WORD._replace(text="a,b")}, True),
        ({"word": WORD._replace(text="Final")}, True),
        ({"word": WORD._replace(text="assistantHello")}, True),
        ({"word": WORD._replace(text="assistantHello"), "recipient": "all"}, False),
    ],
)
def test_a_word_is_refused_where_it_can_be_neither_a_role_nor_a_tool(change, is_refused):
    assert CASE._replace(**change).is_refused is is_refused


def test_the_author_comes_with_the_rule_that_found_it():
    author, rule = author_of(CASE, spells_role=True)
    assert (author.role, author.name, author.word) == (Role.TOOL, "bot", None)
    assert rule.reads.__name__ == "_tool"


@pytest.mark.parametrize(
    ("text", "rest", "offset"),
    [("AssistantHi", "Hi", 9), ("bot", "bot", 0), ("assistant", "", 9)],
)
def test_what_is_glued_to_the_role_of_the_assistant_is_without_it(text, rest, offset):
    word = without_role(WORD._replace(text=text))
    assert (word.text, word.place) == (rest, TextPosition(0, offset))
