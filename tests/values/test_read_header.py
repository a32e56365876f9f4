import re

import pytest

from harmony_stream.parsing.states import State
from harmony_stream.values.header import KNOWN_CHANNELS, KNOWN_ROLES, Header, is_role_word
from harmony_stream.values.header_words import Run, Section, TextPosition
from harmony_stream.values.messages import Role
from harmony_stream.values.read_header import LeftWord, Opening, read_header

ASSISTANT, USER = Role.ASSISTANT, Role.USER
START, PROMPT = Opening.START, Opening.PROMPT


# -- What a header is --


def call_to(recipient, role=ASSISTANT, channel="commentary"):
    return Header(role, None, channel, recipient)


@pytest.mark.parametrize(
    ("content_type", "constrain", "data_type"),
    [
        (None, None, None),
        ("json", None, "json"),
        ("<|constrain|>json", "json", "json"),
        ("<|constrain|>ReplyShape", "ReplyShape", "ReplyShape"),
    ],
)
def test_a_type_is_known_in_either_spelling(content_type, constrain, data_type):
    header = Header(ASSISTANT, None, "final", None, content_type)
    assert (header.constrain, header.data_type) == (constrain, data_type)


@pytest.mark.parametrize("channel", [*KNOWN_CHANNELS, "gossip", None])
@pytest.mark.parametrize(
    ("role", "recipient", "is_call"),
    [
        (ASSISTANT, "functions.f", True),
        (ASSISTANT, "python", True),
        (ASSISTANT, None, False),
        (ASSISTANT, "assistant", False),
        (ASSISTANT, "all", False),
        *((ASSISTANT, word, False) for word in ("user", "User", "ALL.", "self", "none")),
        *((ASSISTANT, word, False) for word in ("user:bob", "developer", "system")),
        *((ASSISTANT, word, False) for word in KNOWN_CHANNELS),
        (ASSISTANT, "user_search", True),
        (ASSISTANT, "functions.final", True),
        (Role.TOOL, "functions.f", False),
        (USER, "functions.f", False),
    ],
)
def test_a_call_is_what_the_assistant_says_to_a_tool_on_any_channel(
    role, recipient, is_call, channel
):
    assert call_to(recipient, role, channel).is_tool_call is is_call


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        (Header(ASSISTANT, None, "final"), "visible"),
        (Header(ASSISTANT, None, "commentary"), "visible"),
        (Header(ASSISTANT), "visible"),
        (Header(ASSISTANT, None, "analysis"), "reasoning"),
        (Header(ASSISTANT, None, "gossip"), "reasoning"),
        (Header(ASSISTANT, None, "commentary", "assistant"), "reasoning"),
        (Header(ASSISTANT, None, "final", "assistant"), "visible"),
        (Header(ASSISTANT, None, "final", "all"), "visible"),
        (Header(ASSISTANT, None, "final", "user"), "visible"),
        (Header(ASSISTANT, None, "commentary", "user"), "visible"),
        (Header(ASSISTANT, None, None, "user"), "visible"),
        (Header(ASSISTANT, None, "commentary", "all"), "visible"),
        (Header(ASSISTANT, None, "analysis", "all"), "reasoning"),
        (Header(ASSISTANT, None, "commentary", "analysis"), "reasoning"),
        (Header(ASSISTANT, None, "commentary", "Self"), "reasoning"),
        (Header(ASSISTANT, None, None, "assistant"), "reasoning"),
        (Header(ASSISTANT, None, "analysis", "user"), "reasoning"),
        (Header(ASSISTANT, None, "gossip", "user"), "reasoning"),
        (Header(ASSISTANT, None, "analysis", "python"), "call"),
        (Header(ASSISTANT, None, "final", "functions.f"), "call"),
        (Header(USER), "none"),
        (Header(Role.TOOL, "f", "commentary", "assistant"), "none"),
    ],
)
def test_a_message_of_the_assistant_is_a_call_or_visible_or_reasoning(header, kind):
    found = {
        "call": header.is_tool_call,
        "visible": header.is_visible,
        "reasoning": header.is_reasoning,
    }
    assert [name for name, is_so in found.items() if is_so] == ([] if kind == "none" else [kind])


@pytest.mark.parametrize("channel", ["analysis", "commentary", "final", "Final", "gossip", None])
def test_three_channels_are_known(channel):
    is_known = channel in ("analysis", "commentary", "final")
    assert Header(ASSISTANT, None, channel).is_known_channel is is_known


def test_a_header_is_frozen_and_equal_by_value():
    header = call_to("functions.f")
    with pytest.raises(AttributeError):
        header.role = USER
    assert header == call_to("functions.f")
    assert hash(header) == hash(call_to("functions.f"))


def test_a_header_as_a_dictionary_has_all_its_fields():
    assert Header(Role.TOOL, "f", "commentary", "assistant", "json").to_dict() == {
        "role": "tool",
        "name": "f",
        "channel": "commentary",
        "recipient": "assistant",
        "content_type": "json",
    }


@pytest.mark.parametrize("word", ["user:", ":", "user:/", "functions.f", ""])
def test_a_role_with_a_colon_and_no_name_is_no_role(word):
    assert is_role_word(word) is (word == "user:/")


def test_sections_are_named_after_the_states_in_them():
    assert [section.value for section in Section] == ["ROLE", "CHANNEL", "CONSTRAIN"]
    assert {section.value for section in Section} < {state.value for state in State}


def test_roles_and_channels_are_those_of_the_format():
    assert sorted(KNOWN_ROLES) == ["assistant", "developer", "system", "tool", "user"]
    assert KNOWN_CHANNELS == ("analysis", "commentary", "final")


# -- Reading one --


def runs_of(text):
    """The runs of a header in which markers are spelled out; `<|x|>` is one of no meaning."""
    first, *rest = re.split(r"(<\|(?:channel|constrain|x)\|>)", text)
    runs = [Run(Section.ROLE, first, True)]
    for marker, words in zip(rest[::2], rest[1::2], strict=True):
        section = SECTIONS.get(marker, runs[-1].section)
        runs.append(Run(section, words, marker in SECTIONS))
    return runs


SECTIONS = {"<|channel|>": Section.CHANNEL, "<|constrain|>": Section.CONSTRAIN}


def read(text, opening=START, role=None, name=None, *, closed=True):
    return read_header(runs_of(text), opening, role, name, closed=closed)


def words_of(header):
    recipient = header.recipient and "to=" + header.recipient
    words = [header.role.value, header.name, header.channel, recipient, header.content_type]
    return " ".join(filter(None, words))


def faults_of(reading):
    return [": ".join(filter(None, [fault.kind, fault.text])) for fault in reading.faults]


CLOSED = [
    # Roles, names
    ("assistant", "assistant", []),
    (" AssisTant ", "assistant", []),
    ("", "assistant", ["unknown_role"]),
    (" ", "assistant", ["unknown_role"]),
    ("to=f", "assistant to=f", ["unknown_role"]),
    ("user:ines", "user ines", []),
    ("user:", "user", ["unparsed_header_text: :"]),
    ('assistant:{"a":1}', "assistant", ['unparsed_header_text: : {"a":1}']),
    ('User:ines{"a":1}', "user ines", ['unparsed_header_text: {"a":1}']),
    ("assistant:«42»", "assistant", ["unparsed_header_text: : «42»"]),
    ("assistant: 42", "assistant", ["unparsed_header_text: : 42"]),
    ("assistant:答案是四十二", "assistant 答案是四十二", []),
    ("tool", "tool tool", []),
    ("tool:f", "tool f", []),
    ("f.g to=assistant<|channel|>commentary", "tool f.g commentary to=assistant", []),
    ("functions.f to=all", "tool functions.f to=all", []),
    ("functions.f", "tool functions.f", []),
    ("functions.f<|channel|>final", "assistant final", ["unknown_role: functions.f"]),
    ("functions.f to=g", "assistant to=g", ["unknown_role: functions.f"]),
    ("functions.f(", "assistant", ["unknown_role: functions.f("]),
    ("assistantassistant", "assistant", ["unknown_role: assistantassistant"]),
    ("userUSERuser", "user", ["unknown_role: userUSERuser"]),
    ("tooltool", "tool tool", ["unknown_role: tooltool"]),
    ("assistant assistant", "assistant", ["unknown_role: assistant"]),
    ("assistant assistant assistant", "assistant assistant", ["unknown_role: assistant"]),
    ("assistant x assistant", "assistant", ["unparsed_header_text: x assistant"]),
    ("assistantfinal", "assistant final", ["unknown_role: assistantfinal"]),
    ("assistantfinal<|channel|>analysis", "assistant analysis", ["unknown_role: assistantfinal"]),
    ("assistant final", "assistant final", ["unparsed_header_text: final"]),
    ("user:ines final to=f", "user ines final to=f", ["unparsed_header_text: final"]),
    ("assistant final<|channel|>analysis", "assistant analysis", ["duplicate_channel: final"]),
    ("assistant Final<|channel|>final", "assistant final", ["duplicate_channel: Final"]),
    ("assistant<|channel|>final analysis", "assistant final", ["duplicate_channel: analysis"]),
    ("assistant<|channel|>final<|constrain|>json final", "assistant final <|constrain|>json",
     ["duplicate_channel: final"]),
    ("assistant<|channel|>final analysis of x", "assistant final",
     ["unparsed_header_text: analysis of x"]),
    ("assistant<|channel|>final analysis json", "assistant final json",
     ["unparsed_header_text: analysis"]),
    ("user:a.b/c+d:e-$f_", "user a.b/c+d:e-$f_", []),
    ("assistant Final", "assistant final", ["unparsed_header_text: Final"]),
    ("assistant analysis:", "assistant analysis", ["unparsed_header_text: analysis:"]),
    ("Analysis.", "assistant analysis", ["unknown_role: Analysis."]),
    ("assistant:analysis", "assistant analysis", ["unknown_role: assistant:analysis"]),
    ("assistant:analysis<|channel|>final", "assistant analysis final", []),
    ("assistantAnalysis:", "assistant analysis", ["unknown_role: assistantAnalysis:"]),
    ("assistantHello", "assistant", ["unknown_role: assistantHello"]),
    ("assistant_final", "assistant", ["unknown_role: assistant_final"]),
    ("assistantHello to=assistant", "tool assistantHello to=assistant", []),
    ("assistant<|channel|>commentary<|constrain|>json<|constrain|>final",
     "assistant commentary <|constrain|>json", ["duplicate_constrain", "duplicate_channel: final"]),
    ("assistant<|constrain|>Analysis", "assistant analysis", ["empty_constrain"]),
    ("assistant<|channel|>final<|constrain|>final", "assistant final",
     ["duplicate_channel: final", "empty_constrain"]),
    ("assistant<|channel|>commentary to=f<|constrain|>commentary", "assistant commentary to=f",
     ["duplicate_channel: commentary", "empty_constrain"]),
    ("final", "assistant final", ["unknown_role: final"]),
    ("final to=f", "assistant final to=f", ["unknown_role: final"]),
    ("final<|channel|>analysis", "assistant analysis", ["unknown_role: final"]),
    ("Commentary<|channel|>analysis", "assistant analysis", ["unknown_role: Commentary"]),
    # Channels
    ("assistant<|channel|>final", "assistant final", []),
    ("assistant<|channel|> final ", "assistant final", []),
    ("assistant<|channel|>to=f final", "assistant final to=f", []),
    ("assistant<|channel|>commentary?", "assistant commentary?", []),
    ("assistant<|channel|>Final", "assistant Final", []),
    ("assistant<|channel|>finalextra", "assistant finalextra", []),
    ('assistant<|channel|>final{"a":1}', "assistant final", ['unparsed_header_text: {"a":1}']),
    ("assistant<|channel|>final答案是", "assistant final", ["unparsed_header_text: 答案是"]),
    ("assistant<|channel|>final\ufffd", "assistant final\ufffd", []),
    ("assistant<|channel|>final\udc90", "assistant final\ufffd", []),
    ("assistant<|channel|>", "assistant", ["empty_channel"]),
    ("assistant<|channel|> to=f", "assistant to=f", ["empty_channel"]),
    ("assistant<|channel|>a<|channel|>b", "assistant b", ["duplicate_channel"]),
    ("assistant<|channel|>a<|channel|>", "assistant a", ["duplicate_channel"]),
    ("assistant<|channel|><|channel|>b", "assistant b", ["duplicate_channel"]),
    ("assistant<|channel|><|channel|>", "assistant", ["duplicate_channel", "empty_channel"]),
    # Recipients
    ("assistant to=f", "assistant to=f", []),
    ("assistant to=a-b_c.d/e+f:g", "assistant to=a-b_c.d/e+f:g", []),
    ("assistant to=küche", "assistant to=küche", []),
    ("assistant<|channel|>commentary to=f", "assistant commentary to=f", []),
    ('assistant to=f{"a":1}', "assistant to=f", ['unparsed_header_text: {"a":1}']),
    ("assistant to=", "assistant", ["empty_recipient: to="]),
    ("assistant to=f to=g", "assistant to=g", ["duplicate_recipient: to=g"]),
    ("assistant to=f<|channel|>final to=g", "assistant final to=g", ["duplicate_recipient: to=g"]),
    ("assistant to=f to=", "assistant to=f", ["duplicate_recipient: to="]),
    ("assistant to= to=g", "assistant to=g", ["duplicate_recipient: to=g"]),
    ("assistant to= f", "assistant", ["empty_recipient: to=", "unparsed_header_text: f"]),
    ("assistant to=<|channel|>final f", "assistant final f", ["empty_recipient: to="]),
    ("assistant to= json", "assistant json", ["empty_recipient: to="]),
    ("assistant f", "assistant f", []),
    ("assistant to = f", "assistant", ["unparsed_header_text: to = f"]),
    # Types
    ("assistant Sure<|channel|>final", "assistant final", ["unparsed_header_text: Sure"]),
    ("assistant json<|channel|>final", "assistant final json", []),
    ("assistant code<|channel|>analysis to=python", "assistant analysis to=python code", []),
    ("assistant<|x|>Sure<|channel|>final", "assistant final", ["unparsed_header_text: Sure"]),
    ("!f x<|channel|>final", "assistant final", ["unknown_role: !f", "unparsed_header_text: x"]),
    ("!f<|channel|>final json", "assistant final json", ["unknown_role: !f"]),
    ("assistant to=f json", "assistant to=f json", []),
    ("assistant<|channel|>final json", "assistant final json", []),
    ("assistant<|channel|>final x y json z code", "assistant final json",
     ["unparsed_header_text: x y z code"]),
    ("assistant<|channel|>final x code json", "assistant final code",
     ["unparsed_header_text: x json"]),
    ("assistant<|channel|>final json json", "assistant final json", ["unparsed_header_text: json"]),
    ("assistant<|channel|>final x y", "assistant final", ["unparsed_header_text: x y"]),
    ("assistant<|channel|>final !", "assistant final", ["unparsed_header_text: !"]),
    ("assistant<|channel|>final write:", "assistant final", ["unparsed_header_text: write:"]),
    ("assistant<|channel|>final json!", "assistant final json", ["unparsed_header_text: !"]),
    ("assistant<|channel|>final<|constrain|>json", "assistant final <|constrain|>json", []),
    ("assistant<|constrain|> json <|channel|>final", "assistant final <|constrain|>json", []),
    ("assistant<|channel|>a<|constrain|>json to=f", "assistant a to=f <|constrain|>json", []),
    ("assistant<|channel|>final x<|constrain|>json", "assistant final <|constrain|>json",
     ["unparsed_header_text: x"]),
    ("assistant<|constrain|>json code", "assistant <|constrain|>json",
     ["unparsed_header_text: code"]),
    ("assistant<|constrain|>json!", "assistant <|constrain|>json", ["unparsed_header_text: !"]),
    ("assistant<|constrain|>write:", "assistant", ["unparsed_header_text: write:"]),
    ("assistant<|constrain|>", "assistant", ["empty_constrain"]),
    ("assistant<|constrain|>a<|constrain|>b", "assistant <|constrain|>b", ["duplicate_constrain"]),
    ("assistant<|constrain|>a<|constrain|>", "assistant <|constrain|>a", ["duplicate_constrain"]),
    # Markers of no meaning end a word
    ("assistant<|channel|>fi<|x|>nal", "assistant fi nal", []),
    ("assistant to=<|x|>f", "assistant", ["empty_recipient: to=", "unparsed_header_text: f"]),
    ("assis<|x|>tant", "tool assis tant", []),
    # Text that spells a marker is text
    ("assistant<|channel|>final <|ch", "assistant final", ["unparsed_header_text: <|ch"]),
    # Broken bytes stand in a field as U+FFFD
    ("assistant<|channel|>fi\udcf0", "assistant fi\ufffd", []),
    ("assistant to=f\udcf0\udc9f", "assistant to=f\ufffd", []),
    ("user:\udcff", "user \ufffd", []),
    ("f\udcff", "tool f\ufffd", []),
    ("assistant<|channel|>final j\udcffs", "assistant final j\ufffds", []),
    ("assistant x\udcff y", "assistant", ["unparsed_header_text: x\ufffd y"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words", "faults"), CLOSED, ids=[case[0] for case in CLOSED])
def test_a_header_after_start_is_read_by_its_sections(text, words, faults):
    reading = read(text)
    assert words_of(reading.header) == words
    assert faults_of(reading) == faults
    assert reading.rest is None


@pytest.mark.parametrize("channel", KNOWN_CHANNELS)
@pytest.mark.parametrize("first", [*"[{(<\"'`", "é", "答"])
def test_what_cannot_go_on_with_a_channel_is_content_that_is_glued_to_it(channel, first):
    reading = read(f"assistant<|channel|>{channel}{first}a")
    assert words_of(reading.header) == f"assistant {channel}"
    assert faults_of(reading) == [f"unparsed_header_text: {first}a"]


OPENED_BY_THE_PROMPT = [
    ("", "user", []),
    ("user", "user", []),
    (" USER ", "user", []),
    ("user user", "user", ["unknown_role: user"]),
    ("useruser", "user", ["unknown_role: useruser"]),
    ("userfinal", "user final", ["unknown_role: userfinal"]),
    ("userfinal<|channel|>analysis", "user analysis", ["unknown_role: userfinal"]),
    ("assistantfinal", "user assistantfinal", []),
    ("assistant", "user assistant", []),
    ("json", "user json", []),
    ("analysis", "user analysis", ["unknown_role: analysis"]),
    ("user analysis", "user analysis", ["unknown_role: analysis"]),
    ("analysis<|channel|>final", "user final", ["duplicate_channel: analysis"]),
    ("commentary<|channel|>commentary to=functions.b", "user commentary to=functions.b",
     ["duplicate_channel: commentary"]),
    ("Let me look.<|channel|>final", "user final", ["unparsed_header_text: Let me look."]),
    ("to=f", "user to=f", []),
    ("to=f analysis json", "user analysis to=f json", ["unknown_role: analysis"]),
    ("<|channel|>final user", "user final user", []),
]  # fmt: skip


@pytest.mark.parametrize("opening", [PROMPT, Opening.IMPLIED, Opening.CONTINUED])
@pytest.mark.parametrize(
    ("text", "words", "faults"), OPENED_BY_THE_PROMPT, ids=[c[0] for c in OPENED_BY_THE_PROMPT]
)
def test_a_header_that_another_thing_opened_has_no_role_word(text, words, faults, opening):
    reading = read(text, opening, USER)
    assert words_of(reading.header) == words
    assert faults_of(reading) == faults


def test_the_given_name_goes_with_the_given_role():
    assert words_of(read("", PROMPT, Role.TOOL, "f").header) == "tool f"
    assert words_of(read("!", START, Role.TOOL, "f").header) == "tool f"
    assert words_of(read("final", START, Role.TOOL, "f").header) == "tool f final"
    assert words_of(read("user", START, Role.TOOL, "f").header) == "user"


def test_the_role_is_the_assistant_if_none_is_given():
    assert words_of(read("", Opening.IMPLIED).header) == "assistant"


def test_a_prompt_repeated_is_a_fault_only_with_another_role():
    assert faults_of(read("user", Opening.REPEATED, USER)) == []
    assert faults_of(read("user", Opening.REPEATED, ASSISTANT)) == ["unexpected_start"]
    assert read("user", Opening.REPEATED, ASSISTANT).faults[0].place == TextPosition(0, -1)


BROKEN_OFF = [
    ("assistant", "assistant", [], None),
    ("assistant hello there", "assistant", [], (0, 10)),
    ("assistant:42", "assistant", [], (0, 9)),
    ("Assistant:42 is it", "assistant", [], (0, 9)),
    ("assistant:答案是四十二", "assistant", [], (0, 9)),
    ('assistant:{"a":1}', "assistant", [], (0, 9)),
    ("assistant: 42", "assistant", [], (0, 9)),
    ("user:ines", "user", [], (0, 4)),
    ("user:ines to=f", "user ines to=f", [], None),
    ("user:ines<|channel|>final", "user ines final", [], None),
    ("user:ines<|channel|>final x", "user ines final", [], (1, 6)),
    ("assistant final<|channel|>final", "assistant final", ["duplicate_channel: final"], None),
    ("assistant<|channel|>final analysis", "assistant final", [], (1, 6)),
    ("assistant the final<|channel|>final", "assistant", [], (0, 10)),
    ("assistant<|channel|>final", "assistant final", [], None),
    ("assistant<|channel|>final json", "assistant final", [], (1, 6)),
    ('assistant<|channel|>final{"a":1}', "assistant final", [], (1, 5)),
    ("assistant<|channel|>final答案是", "assistant final", [], (1, 5)),
    ("assistant<|channel|>final to=f{", "assistant final to=f", [], (1, 10)),
    ("assistant<|channel|>final a<|channel|>b to=f", "assistant final", [], (1, 6)),
    ("assistant<|constrain|>json", "assistant <|constrain|>json", [], None),
    ("assistant<|constrain|>json a", "assistant <|constrain|>json", [], (1, 5)),
    ("assistant<|constrain|>write: a", "assistant", [], (1, 0)),
    ("assistant<|channel|>", "assistant", [], None),
    ("assistant<|channel|><|constrain|>", "assistant", ["empty_channel"], None),
    ("assistant<|channel|>a<|channel|>", "assistant a", ["duplicate_channel"], None),
    ("assistant to= x", "assistant", ["empty_recipient: to="], (0, 14)),
    ("assistant assistant", "assistant", ["unknown_role: assistant"], None),
    ("", "assistant", [], None),
    ("<|channel|>final", "assistant final", ["unknown_role"], None),
    # A word in the role's place that is neither a role nor a name of a tool is content.
    ("hello!", "assistant", [], (0, 0)),
    ("hello there", "assistant", [], (0, 0)),
    ("hello", "assistant", [], (0, 0)),
    ("答案是四十二", "assistant", [], (0, 0)),
    ("f to=assistant", "tool f to=assistant", [], None),
    ("f to=assistant x", "tool f to=assistant", [], (0, 15)),
    (" f to=g<|channel|>analysis", "assistant", [], (0, 1)),
    ("f to= to=<|channel|>final<|channel|>", "assistant", [], (0, 0)),
    ("f<|channel|>final", "assistant", [], (0, 0)),
    ("f<|channel|>commentary", "tool f commentary", [], None),
    ("final", "assistant", [], (0, 0)),
    ("assistantfinal<|channel|>a", "assistant a", ["unknown_role: assistantfinal"], None),
    ("assistantfinal x", "assistant final", ["unknown_role: assistantfinal"], (0, 15)),
    ("assistant<|channel|>final42", "assistant final", [], (1, 5)),
    ("assistant<|channel|>final: Yes", "assistant final", [], (1, 5)),
    ("assistant<|channel|>finalHello there", "assistant final", [], (1, 5)),
    ("assistant<|channel|>analysis?", "assistant analysis", [], (1, 8)),
    ("assistant<|channel|>AnalysisWe", "assistant analysis", [], (1, 8)),
    ("assistant<|channel|>Final Yes", "assistant Final", [], (1, 6)),
    ("assistant<|constrain|>analysis We", "assistant analysis", [], (1, 9)),
    ("assistant<|channel|>42", "assistant", [], (1, 0)),
    ("assistant<|channel|>ana", "assistant ana", [], None),
    ("assistant<|channel|>42<|constrain|>", "assistant 42", [], None),
    ("assistant<|channel|>odd words", "assistant odd", [], (1, 4)),
    ("assistant<|channel|>final<|constrain|>42", "assistant final", [], (2, 0)),
    ("assistant<|channel|>final<|constrain|>jso", "assistant final <|constrain|>jso", [], None),
    ("assistant to=f<|constrain|>yaml", "assistant to=f <|constrain|>yaml", [], None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words", "faults", "rest"), BROKEN_OFF, ids=[case[0] for case in BROKEN_OFF]
)
def test_of_a_header_that_is_not_closed_the_words_count_up_to_the_first_left_over(
    text, words, faults, rest
):
    reading = read(text, closed=False)
    assert words_of(reading.header) == words
    assert faults_of(reading) == faults
    assert reading.rest == (rest and TextPosition(*rest))


@pytest.mark.parametrize(
    ("text", "opening", "is_bare"),
    [
        ("assistant", START, True),
        (" user ", START, True),
        (" user:ines ", START, False),
        ("assistant:", START, False),
        ("", START, True),
        ("assistantassistant", START, False),
        ("assistantfinal", START, False),
        ("assistant assistant", START, False),
        ("user user", PROMPT, False),
        ("", PROMPT, True),
        (" user ", PROMPT, True),
        ("hello", START, False),
        ("to=f", START, False),
        ("assistant to=f", START, False),
        ("user x", PROMPT, False),
        ("assistant<|channel|>", START, False),
        ("assistant<|x|>", START, False),
    ],
)
def test_a_header_is_bare_if_it_holds_nothing_but_its_role(text, opening, is_bare):
    assert read(text, opening, USER, closed=False).is_bare is is_bare


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("functions.f to=g to=h", [(0, 0), (0, 17)]),
        ("assistant<|channel|>final<|channel|><|constrain|>", [(2, -1), (4, -1)]),
        ("<|channel|>", [(1, -1), (2, -1)]),
        ("assistant x y", [(0, 10)]),
    ],
)
def test_a_fault_points_to_its_word_or_to_the_marker_before_or_behind(text, places):
    assert [fault.place for fault in read(text).faults] == [
        TextPosition(*place) for place in places
    ]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("assistant<|channel|>final json", ""),
        ("assistant Let me look.\n\nYes.<|channel|>final", "Let me look.\n\nYes."),
        ("assistant x json  y to=f z<|channel|>final a", "x y z a"),
        ("!f  x<|channel|>final", "!f  x"),
        ("functions.f to=g", "functions.f"),
        ('assistant:{"a":1}', ':{"a":1}'),
        ("assistant x\udcff<|x|>y z", "x\ufffd y z"),
        ("final<|channel|>analysis", ""),
        ("assistant final<|channel|>analysis", ""),
        ("assistantfinal assistant", ""),
    ],
)
def test_words_that_are_part_of_no_field_are_left_as_they_stand(text, left):
    assert "".join(word.text for word in read(text).left) == left


def test_a_left_over_word_begins_and_ends_where_it_stands():
    assert read("user é! b<|x|> c").left == (
        LeftWord(TextPosition(0, 5), TextPosition(0, 6), "é"),
        LeftWord(TextPosition(0, 6), TextPosition(0, 7), "!"),
        LeftWord(TextPosition(0, 8), TextPosition(0, 9), " b"),
        LeftWord(TextPosition(1, 1), TextPosition(1, 2), " c"),
    )


def test_a_header_that_breaks_off_leaves_no_words_since_they_are_content():
    assert read("!f x to=g<|channel|>y z", closed=False).left == ()


def test_the_faults_of_a_header_come_in_the_order_of_its_text():
    reading = read("!f x y to=<|channel|><|channel|>z to=g<|constrain|>")
    assert faults_of(reading) == [
        "unknown_role: !f",
        "unparsed_header_text: x y",
        "duplicate_channel",
        "duplicate_recipient: to=g",
        "empty_constrain",
    ]
