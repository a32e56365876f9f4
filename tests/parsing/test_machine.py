"""What the machine does with each fault and each end: all events, with their spans.

Notation: see `described` in strategies.py. `<|unknown|>` is a token outside the vocabulary.
"""

import pytest
from strategies import (
    RESERVED,
    SPECIAL,
    UNKNOWN,
    VOCABULARY,
    described,
    events_of,
    faults_of,
    messages_of,
    tokens_of,
)

from harmony_stream.parsing.items import piece_of
from harmony_stream.parsing.machine import _METHODS, Machine
from harmony_stream.parsing.parser import EventParser
from harmony_stream.parsing.states import TABLE, Action, State
from harmony_stream.values.messages import Role
from harmony_stream.values.read_header import Opening

START = SPECIAL["<|start|>"]


def tokens_with_unknown(text):
    first, *rest = map(tokens_of, text.split("<|unknown|>"))
    return [*first, *(token for piece in rest for token in [UNKNOWN, *piece])]


def table_of(cases):
    """Cases as one test each, named by what is fed."""
    return pytest.mark.parametrize(
        ("role", "text", "events"), cases, ids=[f"{role} {text}" for role, text, _ in cases]
    )


HEAD = "<|start|>assistant<|channel|>"

WELL_FORMED = [
    ("assistant", "<|channel|>final<|message|>a b<|return|>",
     ["start assistant final 0:3", "'a' 3:4", "' b' 4:5", "return complete 5:6"]),
    (None, "<|start|>user<|message|>a<|end|><|start|>assistant to=f<|message|><|call|>",
     ["start user 0:3", "'a' 3:4", "end complete 4:5",
      "start assistant to=f 5:10", "call complete 10:11"]),
    ("tool", "<|message|>a<|end|>", ["start tool 0:1", "'a' 1:2", "end complete 2:3"]),
    # Never a fault
    (None, " \n\t\u3000\u00a0<|start|>user<|message|>a<|end|> ",
     ["start user 4:7", "'a' 7:8", "end complete 8:9"]),
    ("assistant", "<|message|>a<|call|><|return|><|end|>\n\n<|endoftext|>",
     ["start assistant 0:1", "'a' 1:2", "call complete 2:3"]),
    (None, "<|end|><|return|><|call|><|endoftext|>", []),
    ("assistant", "<|message|>a<|endoftext|>",
     ["start assistant 0:1", "'a' 1:2", "end_of_text 2:3"]),
    (None, "<|startoftext|><|start|>user<|message|><|end|>",
     ["start user 1:4", "end complete 4:5"]),
    ("assistant", "<|startoftext|><|channel|>final<|message|><|end|>",
     ["start assistant final 1:4", "end complete 4:5"]),
    ("assistant", "<|start|>assistant<|message|>a<|end|>",
     ["start assistant 0:3", "'a' 3:4", "end complete 4:5"]),
    ("assistant", "<|channel|>final<|message|>a",
     ["start assistant final 0:3", "'a' 3:4", "truncated 4:4"]),
    ("assistant", "", []),
    ("assistant", "<|end|>", []),
    ("assistant", " assistant <|end|>", []),
    ("assistant", "<|endoftext|>", []),
    (None, "<|start|>", []),
    (None, "<|start|>user", []),
]  # fmt: skip

EXPECTED_START = [
    (None, "  hello world<|end|>",
     ["start assistant 1:1", "expected_start 1:2", "'hello world' 1:3", "end 3:4"]),
    (None, "hello", ["start assistant 0:0", "expected_start 0:1", "'hello' 0:1", "truncated 1:1"]),
    (None, "hello<|endoftext|>",
     ["start assistant 0:0", "expected_start 0:1", "'hello' 0:1", "end_of_text 1:2"]),
    (None, "hello<|start|>user<|message|>",
     ["expected_start('hello') 0:1", "start user 1:4", "truncated 4:4"]),
    (None, "json<|channel|>final<|message|>",
     ["start assistant final json 0:4", "expected_start 0:1", "truncated 4:4"]),
    ("user", "<|end|><|message|>a<|end|>",
     ["start user 1:2", "expected_start 1:2", "'a' 2:3", "end complete 3:4"]),
    (None, "<|channel|>final !<|message|>",  # its one fault
     ["expected_start('!') 2:3", "start assistant final 0:4", "truncated 4:4"]),
    (None, "<|end|>Let me look.\n<|channel|>final<|message|>",
     ["expected_start('Let me look.') 1:5", "start assistant final 1:8", "truncated 8:8"]),
    (None, "<|end|>Hi.<|start|>assistant<|message|>",  # plain text between messages
     ["expected_start('Hi.') 1:3", "start assistant 3:6", "truncated 6:6"]),
    (None, "<|channel|>final Hi.<|start|>user<|message|>",
     ["start assistant final 0:2", "expected_start 0:1", "'Hi.' 2:4", "implicit 4:4",
      "start user 4:7", "truncated 7:7"]),
    (None, "to=f Hi.<|start|>user<|message|>",
     ["start assistant to=f 0:2", "expected_start 0:1", "'Hi.' 2:4", "implicit 4:4",
      "start user 4:7", "truncated 7:7"]),
    (None, "<|constrain|>json<|message|>",
     ["start assistant <|constrain|>json 0:3", "expected_start 0:1", "truncated 3:3"]),
    (None, "<|channel|>final", ["expected_start('final') 0:2"]),
    (None, "<|channel|>", ["expected_start 0:1"]),
    (None, " <|end|><|channel|>final<|message|>",  # it begins where it came, not where it was due
     ["start assistant final 2:5", "expected_start 2:3", "truncated 5:5"]),
    (None, "<|channel|><|start|>user<|message|>",
     ["expected_start 0:1", "start user 1:4", "truncated 4:4"]),
    ("user", "<|end|>user<|end|>", ["expected_start('user') 1:2"]),
]  # fmt: skip

MISSING_MESSAGE = [
    (None, HEAD + 'final {"a"<|return|>',
     ["start assistant final 0:4", "missing_message 7:8", "'{\"a\"' 4:7", "return 7:8"]),
    (None, HEAD + 'commentary to=f{"a"<|call|>',
     ["start assistant commentary to=f 0:7", "missing_message 10:11", "'{\"a\"' 7:10",
      "call 10:11"]),
    (None, HEAD + "final json<|end|>",  # a bare type is content
     ["start assistant final 0:4", "missing_message 5:6", "'json' 4:5", "end 5:6"]),
    (None, HEAD + "final<|constrain|>json<|end|>",
     ["start assistant final <|constrain|>json 0:6", "missing_message 6:7", "end 6:7"]),
    (None, HEAD + "final<|constrain|>write: it<|end|>",
     ["start assistant final 0:5", "missing_message 8:9", "'write: it' 5:8", "end 8:9"]),
    (None, HEAD + "commentary to= a<|end|>",
     ["start assistant commentary 0:7", "empty_recipient 5:6", "missing_message 8:9",
      "'a' 7:8", "end 8:9"]),
    (None, HEAD + "final a<|channel|>analysis b<|end|>",
     ["start assistant final 0:4", "missing_message 8:9", "'a' 4:5", "missing_end 5:6",
      "implicit 5:5", "start assistant analysis 5:7", "missing_message 8:9", "'b' 7:8",
      "end 8:9"]),
    (None, HEAD + "final a<|reserved_200013|>b<|end|>",
     ["start assistant final 0:4", "missing_message 7:8", "'a' 4:5", "unexpected_marker 5:6",
      "'b' 6:7", "end 7:8"]),
    (None, HEAD + "final a<|unknown|>b<|end|>",
     ["start assistant final 0:4", "missing_message 7:8", "'a\ufffd' 4:6",
      "unknown_token 5:6", "'b' 6:7", "end 7:8"]),
    (None, "<|start|>functions.f to=g hi<|end|>",
     ["start assistant 0:1", "missing_message 6:7", "'functions.f to=g hi' 1:6", "end 6:7"]),
    ("assistant", "<|channel|><|end|>",
     ["start assistant 0:1", "missing_message 1:2", "end 1:2"]),
    ("assistant", "<|reserved_200013|><|end|>",
     ["start assistant 0:1", "unexpected_marker 0:1", "missing_message 1:2", "end 1:2"]),
    ("assistant", "Hello.<|end|>",
     ["start assistant 0:0", "missing_message 2:3", "'Hello.' 0:2", "end 2:3"]),
    (None, "<|start|>assistant:42<|end|>",
     ["start assistant 0:2", "missing_message 4:5", "':42' 2:4", "end 4:5"]),
    (None, '<|start|>user:{"a":1}<|return|>',
     ["start user 0:2", "missing_message 8:9", "':{\"a\":1}' 2:8", "return 8:9"]),
    (None, "<|start|>Yes<|end|>",
     ["start assistant 0:1", "missing_message 2:3", "'Yes' 1:2", "end 2:3"]),
]  # fmt: skip

IN_A_HEADER = [
    (None, "<|start|>assistant<|start|>user<|message|>",
     ["unexpected_start('assistant') 0:2", "start user 2:5", "truncated 5:5"]),
    (None, HEAD + "final<|start|>user<|message|>",
     ["unexpected_start('assistantfinal') 0:4", "start user 4:7", "truncated 7:7"]),
    (None, HEAD + "<|reserved_200013|><|start|>user<|message|>",
     ["unexpected_marker 3:4", "unexpected_start('assistant') 0:4", "start user 4:7",
      "truncated 7:7"]),
    (None, "<|start|><|start|>user<|message|>",
     ["unexpected_start 1:2", "start user 1:4", "truncated 4:4"]),
    ("assistant", " to=f<|start|>assistant<|message|>",
     ["unexpected_start(' to=f') 0:2", "start assistant 2:5", "truncated 5:5"]),
    # What is more than fields is a message, which the second <|start|> ends
    ("assistant", "<|channel|>final The answer.<|start|>user<|message|>",
     ["start assistant final 0:2", "unexpected_start 5:6", "'The answer.' 2:5", "implicit 5:5",
      "start user 5:8", "truncated 8:8"]),
    ("assistant", "Hi.<|start|>assistant<|message|>",
     ["start assistant 0:0", "unexpected_start 2:3", "'Hi.' 0:2", "implicit 2:2",
      "start assistant 2:5", "truncated 5:5"]),
    (None, "<|start|>assistant:42<|start|>user<|message|>",
     ["start assistant 0:2", "unexpected_start 4:5", "':42' 2:4", "implicit 4:4",
      "start user 4:7", "truncated 7:7"]),
    ("assistant", "<|channel|>final a<|channel|>analysis<|start|>user<|message|>",
     ["start assistant final 0:2", "unexpected_start 5:6", "'a' 2:3", "missing_end 3:4",
      "implicit 3:3", "unexpected_start('analysis') 3:5", "start user 5:8", "truncated 8:8"]),
    # Words that are part of no field are the text of the fault, before the message
    ("assistant", "Let me look.\n<|channel|>commentary to=f<|message|>",
     ["unparsed_header_text('Let me look.') 0:4", "start assistant commentary to=f 0:10",
      "truncated 10:10"]),
    (None, "<|start|>Hmm! wait on<|channel|>final to=<|message|>",
     ["unknown_role('Hmm! wait on') 1:5", "start assistant final 0:10",
      "unparsed_header_text 3:4", "empty_recipient 7:8", "truncated 10:10"]),
    (None, HEAD + "final a<|channel|>b c d<|unknown|><|message|>",
     ["unparsed_header_text('a c d\ufffd') 4:10", "start assistant b 0:11",
      "duplicate_channel 5:6", "unknown_token 9:10", "truncated 11:11"]),
    (None, HEAD + "fi<|reserved_200013|>nal<|unknown|>x<|message|>",
     ["start assistant fi nal\ufffdx 0:9", "unexpected_marker 4:5", "unknown_token 6:7",
      "truncated 9:9"]),
    (None, HEAD + "a<|channel|>b to=f to=g<|constrain|><|message|>",
     ["start assistant b to=g 0:12", "duplicate_channel 4:5", "duplicate_recipient 8:9",
      "empty_constrain 11:12", "truncated 12:12"]),
    (None, "<|start|>assistant<|startoftext|><|message|>",
     ["start assistant 0:4", "unexpected_marker 2:3", "truncated 4:4"]),
    ("assistant", "<|startoftext|><|startoftext|><|message|>",
     ["start assistant 1:3", "unexpected_marker 1:2", "truncated 3:3"]),
]  # fmt: skip

TRUNCATED_IN_HEADER = [
    (None, HEAD + "final", ["truncated_in_header('assistantfinal') 0:4"]),
    ("assistant", "<|channel|>", ["truncated_in_header 1:1"]),
    (None, HEAD + "<|reserved_200013|>",
     ["unexpected_marker 3:4", "truncated_in_header('assistant') 0:4"]),
    (None, HEAD + "final words",
     ["start assistant final 0:4", "truncated_in_header 5:5", "'words' 4:5", "truncated 5:5"]),
    ("assistant", "Hello.",
     ["start assistant 0:0", "truncated_in_header 2:2", "'Hello.' 0:2", "truncated 2:2"]),
]  # fmt: skip

IN_CONTENT = [
    ("assistant", "<|message|>a<|start|>user<|message|>b<|end|>",
     ["start assistant 0:1", "'a' 1:2", "missing_end 2:3", "implicit 2:2",
      "start user 2:5", "'b' 5:6", "end complete 6:7"]),
    ("tool", "<|message|>a<|channel|>final<|message|>b<|end|>",
     ["start tool 0:1", "'a' 1:2", "missing_end 2:3", "implicit 2:2",
      "start tool final 2:5", "'b' 5:6", "end complete 6:7"]),
    ("assistant", "<|message|>a<|constrain|>b<|message|>c<|startoftext|><|end|>",
     ["start assistant 0:1", "'a' 1:2", "unexpected_marker 2:3", "'b' 3:4",
      "unexpected_marker 4:5", "'c' 5:6", "unexpected_marker 6:7", "end complete 7:8"]),
    ("assistant", "<|message|>a<|unknown|>b<|end|>",
     ["start assistant 0:1", "'a' 1:2", "'\ufffd' 2:3", "unknown_token 2:3", "'b' 3:4",
      "end complete 4:5"]),
    (None, "<|reserved_200013|><|unknown|><|startoftext|>",
     ["unexpected_marker 0:1", "unknown_token 1:2", "unexpected_marker 2:3"]),
]  # fmt: skip


@table_of([*WELL_FORMED, *EXPECTED_START, *MISSING_MESSAGE])
def test_a_stream_without_its_markers_gives_these_events(role, text, events):
    assert described(events_of(tokens_with_unknown(text), role)) == events


@table_of([*IN_A_HEADER, *TRUNCATED_IN_HEADER, *IN_CONTENT])
def test_a_stream_with_markers_out_of_place_gives_these_events(role, text, events):
    assert described(events_of(tokens_with_unknown(text), role)) == events


def test_the_name_of_a_tool_goes_on_behind_a_channel_marker():
    text = "<|start|>functions.f to=assistant<|message|>a<|channel|>commentary<|message|>b<|end|>"
    names = [message[1] for message in messages_of(events_of(text, None))]
    assert names == ["functions.f", "functions.f"]


# -- The limit of a header --

LIMITS = [
    (4, HEAD + "final a b",
     ["start assistant final 0:4", "missing_message 5:6", "'a' 4:5", "' b' 5:6",
      "truncated 6:6"]),
    (4, HEAD + "final a<|message|>b",
     ["start assistant final a 0:6", "'b' 6:7", "truncated 7:7"]),
    (2, HEAD + "final<|message|>b",
     ["start assistant 0:3", "missing_message 3:4", "'final' 3:4", "unexpected_marker 4:5",
      "'b' 5:6", "truncated 6:6"]),
    (1, HEAD + "final<|message|>b",  # a marker is more than the limit too
     ["start assistant 0:2", "missing_message 2:3", "missing_end 2:3", "implicit 2:2",
      "start assistant 2:3", "missing_message 3:4", "'final' 3:4", "unexpected_marker 4:5",
      "'b' 5:6", "truncated 6:6"]),
    (2, HEAD + "<|end|>",
     ["start assistant 0:3", "missing_message 3:4", "end 3:4"]),
]  # fmt: skip


@pytest.mark.parametrize(("limit", "text", "events"), LIMITS)
def test_a_header_is_broken_off_before_the_token_that_is_too_many(limit, text, events):
    assert described(events_of(text, None, max_header_tokens=limit)) == events


def test_text_before_any_marker_is_content_from_the_limit_on():
    events = events_of("one two three", None, max_header_tokens=2)
    assert described(events) == [
        "start assistant 0:0",
        "expected_start 0:1",
        "'one two' 0:2",
        "' three' 2:3",
        "truncated 3:3",
    ]


def test_the_limit_is_64_tokens_or_512_characters_unless_another_is_given():
    inside, beyond = " to=" + "a" * 508, " to=" + "a" * 509
    assert messages_in_text(inside)[0][3] == "a" * 508
    assert messages_in_text(beyond)[0][3:6] == ("a" * 508, None, "a")
    tokens = [*tokens_of(" to="), *tokens_of("a") * 62]
    assert messages_of(events_of([*tokens, SPECIAL["<|message|>"]]))[0][3] == "a" * 62
    tokens += tokens_of("a")
    assert "missing_message" in faults_of(events_of([*tokens, SPECIAL["<|message|>"]]))


def messages_in_text(header):
    parser = EventParser()
    return messages_of([*parser.feed_text(header + "<|message|>"), *parser.close()])


# -- Bytes of unfinished characters --

PART = 9552  # a space, and the beginning of an emoji


@pytest.mark.parametrize(
    ("tail", "events"),
    [
        ([SPECIAL["<|end|>"]], ["'\ufffd' 2:2", "end complete 2:3"]),
        ([RESERVED], ["'\ufffd' 2:2", "unexpected_marker 2:3", "truncated 3:3"]),
        ([UNKNOWN], ["'\ufffd\ufffd' 2:3", "unknown_token 2:3", "truncated 3:3"]),
        ([SPECIAL["<|start|>"]], ["'\ufffd' 2:2", "missing_end 2:3", "implicit 2:2"]),
        ([PART], ["'\ufffd ' 2:3", "'\ufffd' 3:3", "truncated 3:3"]),
        ([], ["'\ufffd' 2:2", "truncated 2:2"]),
    ],
)
def test_an_unfinished_character_becomes_u_fffd_where_something_else_follows(tail, events):
    first, start = described(events_of([SPECIAL["<|message|>"], PART, *tail]))[:2]
    assert [first, start] == ["start assistant 0:1", "' ' 1:2"]
    assert described(events_of([SPECIAL["<|message|>"], PART, *tail]))[2:] == events


@pytest.mark.parametrize(
    ("tokens", "events"),
    [
        ([158, 222, 222], []),  # U+2002, a space, in three tokens
        ([158, 222], ["start assistant 0:0", "expected_start 0:1", "'\ufffd' 0:2"]),
        ([158, 222, 83], ["start assistant 0:0", "expected_start 0:1", "'\ufffdt' 0:3"]),
        ([158, SPECIAL["<|start|>"]], ["expected_start('\ufffd') 0:1"]),
    ],
)
def test_white_space_in_parts_is_white_space_between_messages(tokens, events):
    assert described(events_of(tokens, None))[: len(events) or None] == events


def test_white_space_in_front_of_a_broken_character_is_not_part_of_the_header():
    # The token holds both, so it is given whole to the text that no message has.
    events = events_of([PART, SPECIAL["<|start|>"]], None)
    assert described(events) == ["expected_start(' \ufffd') 0:1"]


def test_there_is_a_method_for_each_action():
    assert set(_METHODS) == set(Action)
    cells = [cell for row in TABLE.values() for cell in row.values()]
    cells += [cell.unless.cell for cell in cells if cell.unless]
    assert {cell.action for cell in cells} == set(Action)
    assert all(getattr(Machine, method.__name__) is method for method in _METHODS.values())


# -- A machine without a parser --


def piece(item, start):
    width = 1 if isinstance(item, int) else len(item)
    return piece_of(VOCABULARY, item, start, start + width)


def machine_fed(items, role=None, limit=64):
    """A machine, and the events of items that come one after the other."""
    role = None if role is None else Role(role)
    machine, events, place = Machine(VOCABULARY, role, None, limit), [], 0
    for item in items:
        events += machine.step(piece(item, place))
        place += 1 if isinstance(item, int) else len(item)
    return machine, described(events)


@pytest.mark.parametrize(
    ("items", "state", "channel"),
    [
        ([], State.EXPECT_START, None),
        ([START, *tokens_of("assistant<|channel|>final")], State.CHANNEL, "final"),
        (tokens_of("<|start|>assistant<|channel|>final<|message|>a"), State.CONTENT, "final"),
    ],
)
def test_the_header_is_known_as_far_as_it_was_fed(items, state, channel):
    machine, _ = machine_fed(items)
    header = machine.header_so_far()
    assert (machine.state, header and header.channel) == (state, channel)


def test_a_copy_has_buffers_of_its_own():
    machine, _ = machine_fed(tokens_of("<|start|>assistant<|channel|>"))
    twin = machine.copy()
    machine.step(piece(17196, 3))
    assert (machine.header_so_far().channel, twin.header_so_far().channel) == ("final", None)


def test_a_fresh_machine_has_the_role_of_its_prompt():
    machine, _ = machine_fed(tokens_of("<|message|>a<|end|>"), Role.TOOL)
    fresh = machine.fresh(8)
    assert (fresh.index, fresh.header_so_far().role, fresh.state) == (0, Role.TOOL, State.ROLE)


def test_a_prompt_that_ends_in_a_bare_role_is_as_a_given_role():
    machine, _ = machine_fed(tokens_of("<|start|>user<|message|>a<|end|><|start|>assistant"))
    machine.begin_here(follows_tokens=True)
    assert described(machine.step(piece(SPECIAL["<|startoftext|>"], 0))) == []
    assert described(machine.step(piece(SPECIAL["<|message|>"], 1))) == ["start assistant 1:2"]


def test_a_prompt_that_ends_inside_a_header_or_content_is_not_reported():
    machine, _ = machine_fed(tokens_of("<|start|>assistant<|channel|>"))
    machine.begin_here(follows_tokens=True)
    machine.step(piece(17196, 0))
    events = machine.step(piece(SPECIAL["<|message|>"], 1))
    assert described(events) == ["start assistant final 0:2"]

    machine.begin_here(follows_tokens=True)
    assert not machine.is_in_content
    assert described(machine.step(piece(13225, 0))) == ["start assistant final 0:0", "'Hello' 0:1"]
    assert machine.is_in_content


@pytest.mark.parametrize(
    ("role", "before", "opening"),
    [
        (None, [], Opening.START),
        ("assistant", [], Opening.PROMPT),
        ("assistant", [SPECIAL["<|startoftext|>"]], Opening.PROMPT),
        (None, tokens_of("<|start|>user<|message|><|end|> "), Opening.START),
        (None, [START], None),  # a header is open
        ("assistant", tokens_of("to"), None),
        (None, [158], None),  # half a character, which may be text
        ("assistant", tokens_of("<|message|>"), None),
    ],
)
def test_a_header_can_be_taken_as_a_whole_only_before_its_first_token(role, before, opening):
    machine, _ = machine_fed(before, role)
    assert machine.next_opening() is opening


@pytest.mark.parametrize(
    ("role", "header", "event"),
    [
        (None, "<|start|>assistant<|channel|>final", "start assistant final 0:9"),
        ("assistant", "<|channel|>final", "start assistant final 0:9"),
    ],
)
def test_a_message_starts_at_once_by_its_whole_header(role, header, event):
    machine, _ = machine_fed([], role)
    reading = machine.read_at_once(tuple(tokens_of(header)))
    assert reading.faults == ()
    assert described([machine.start_at_once(reading.header, 0, 9)]) == [event]
    assert machine.is_in_content


@pytest.mark.parametrize(
    ("role", "fed", "last"),
    [
        (None, "<|start|>user<|message|>", (Opening.START, "<|start|>user")),
        ("assistant", "<|channel|>final<|message|>", (Opening.PROMPT, "<|channel|>final")),
        (None, "user<|message|>", None),  # nothing opened it
        (None, "<|start|>user<|message|>a<|channel|>final<|message|>", None),  # the content did
    ],
)
def test_the_last_header_is_told_with_what_opened_it(role, fed, last):
    machine, _ = machine_fed(tokens_of(fed), role)
    assert machine.last_header() == (last and (last[0], tuple(tokens_of(last[1]))))


def test_of_a_header_in_the_prompt_the_tokens_are_not_told():
    machine, _ = machine_fed(tokens_of("<|start|>user to=f"))
    machine.begin_here(follows_tokens=True)
    machine.step(piece(SPECIAL["<|message|>"], 0))
    assert machine.last_header() is None


@pytest.mark.parametrize(
    ("items", "events"),
    [
        (["\n ", " a"], ["start assistant 3:3", "expected_start 3:4", "'a' 3:4"]),
        (["\u3000\n", "\u3000a"], ["start assistant 3:3", "expected_start 3:4", "'a' 3:4"]),
        ([b"\xe3\x80", b"\x80a"], ["start assistant 3:3", "expected_start 3:4", "'a' 3:4"]),
        ([b"\xe3\x80", b"a"], ["start assistant 0:0", "expected_start 0:3", "'\ufffda' 0:3"]),
    ],
)
def test_white_space_of_marked_text_is_cut_off_wherever_it_was_cut(items, events):
    machine, none = machine_fed(items)
    place = sum(map(len, items))
    assert none == []
    assert described(machine.step(piece(SPECIAL["<|end|>"], place)))[:-1] == events


def test_bytes_of_an_unfinished_character_have_places_of_their_own():
    machine, _ = machine_fed([*tokens_of("<|start|>user<|message|>")])
    assert described(machine.step(piece(b"a\xf0\x9f", 3))) == ["'a' 3:4"]
    assert described(machine.step(piece(b"\xa6\x86", 6))) == ["'🦆' 4:8"]
    assert described(machine.step(piece(b"\xf0\x9f", 8))) == []


def test_the_limit_of_headers_may_be_set():
    machine, _ = machine_fed([START])
    machine.limit_headers(2)
    events = [*machine.step(piece("us", 1)), *machine.step(piece("er", 3))]
    assert described(events)[0] == "start assistant 0:1"


def test_a_prompt_that_ends_in_content_behind_a_bare_role_stays_in_content():
    machine, _ = machine_fed(tokens_of("<|start|>user<|message|>Hi"))
    machine.begin_here(follows_tokens=True)
    assert described(machine.step(piece(13225, 0))) == ["start user 0:0", "'Hello' 0:1"]


@pytest.mark.parametrize(
    ("fed", "is_the_same"),
    [
        ("<|start|>", True),
        ("<|start|>user<|message|>", True),
        ("<|start|>user<|message|><|end|>", True),
        ("<|start|>user", False),  # a header grows
        ([SPECIAL["<|message|>"], 158], False),  # so do bytes
    ],
)
def test_a_machine_stands_somewhere_unless_it_keeps_something(fed, is_the_same):
    tokens = tokens_of(fed) if isinstance(fed, str) else fed
    one, other = machine_fed(tokens)[0], machine_fed(tokens)[0]
    assert (one.standing() is not None) == is_the_same
    assert one.standing() == other.standing()


def test_a_machine_stands_elsewhere_in_the_next_message():
    machine, _ = machine_fed(tokens_of("<|start|>user<|message|>"))
    before = machine.standing()
    for token in tokens_of("<|end|><|start|>user<|message|>"):
        machine.step(piece(token, 3))
    assert machine.standing() != before
