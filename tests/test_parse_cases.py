"""Completions that real systems get wrong or disagree on, from files in `cases/`.

What each file wants is compared field by field. Where a case wants something else than this
library's design says, it stands in a table here, with the rule that overrules it and what we do.
"""

import json
from pathlib import Path

import attrs
import pytest
from strategies import events_of, faults_of, messages_of, stray_texts_of, tokens_of

from harmony_stream.parsing.collect import MessageCollector
from harmony_stream.parsing.parser import EventParser
from harmony_stream.values.events import (
    ContentDelta,
    HarmonyParseError,
    Malformed,
    MessageEnd,
    MessageStart,
)

FOLDER = Path(__file__).parent / "cases"
FIELDS = ("role", "name", "channel", "recipient", "content_type", "content")


def load(name):
    cases = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return {case["id"]: case for case in cases}


def each(cases):
    return pytest.mark.parametrize("case", list(cases.values()), ids=list(cases))


def events_of_case(case, **options):
    tokens = case["tokens"] if "tokens" in case else tokens_of(case["input"])
    return events_of(tokens, case.get("role"), **options)


def as_dicts(events):
    return [dict(zip((*FIELDS, "end"), message, strict=True)) for message in messages_of(events)]


@attrs.frozen
class Ours:
    """What we make of a case that the design overrules.

    Attributes:
        rule: the sentence of the design.
        messages: channel, recipient, content type, content and end of each message.
        faults: what is reported.
        stray: text that belongs to no message.
    """

    rule: str
    messages: list[tuple]
    faults: list[str] = attrs.field(factory=list)
    stray: str = ""


def assert_ours(events, ours):
    assert [message[2:] for message in messages_of(events)] == ours.messages
    assert faults_of(events) == ours.faults
    assert "".join(stray_texts_of(events)) == ours.stray


# -- Other parsers' own tests --

PEERS = load("parse_from_peer_tests.json")

RECIPIENT_ONLY_FROM_TO = "A recipient comes from `to=` only."
MISSING_MESSAGE = (
    "missing_message: a stop token or end of text before <|message|>: the content is the section's "
    "text from the first left-over word, verbatim"
)
TRUNCATED = (
    "truncated_in_header: end of stream inside a header that holds more than its role: left-over "
    "words make a message as in missing_message, TRUNCATED"
)
TEXT_IS_TEXT = "Sections are told apart by token ids, never by searching decoded text; " + TRUNCATED
MISSING_END = "missing_end: <|start|> inside content: the message ends IMPLICIT; the next begins"
GLUED = "what is glued behind names (`to=functions.f{...}`) is a word of its own"
LEFT_OVER = "Bare words after that: ... of several, the first of `json`, `code`, else none"
VERBATIM = "The joined deltas of a message are its content: its content tokens, decoded"

PEERS_OVERRULED = {
    "ovms-011": Ours(RECIPIENT_ONLY_FROM_TO, [("fi", None, "nal", "Ahoy, crew!", "return")]),
    "ovms-017": Ours(
        f"{RECIPIENT_ONLY_FROM_TO} {LEFT_OVER}",
        [("commentary", None, None, '{"Ahoy": "crew!"}', "call")],
        ["unparsed_header_text"],
        "to = functions.hail",
    ),
    "ovms-019": Ours(
        RECIPIENT_ONLY_FROM_TO,
        [("commentary", None, "functions.hail", '{"Ahoy": "crew!"}', "call")],
    ),
    "ovms-021": Ours(
        RECIPIENT_ONLY_FROM_TO, [("commentary", None, "hail", '{"Ahoy": "crew!"}', "call")]
    ),
    "ovms-024": Ours(
        f"{GLUED}; {MISSING_MESSAGE}",
        [("commentary", "functions.hail", None, '{"Ahoy": "crew!"}', "end")],
        ["missing_message"],
    ),
    "vllm-007": Ours(
        MISSING_MESSAGE,
        [
            ("analysis", None, None, "musing", "end"),
            ("commentary", None, None, "musing", "end"),
            ("final", None, None, '{"reply": "aye"}', "return"),
        ],
        ["missing_message"],
    ),
    "llama-017": Ours(VERBATIM, [("final", None, None, "  inset", "truncated")]),
    "sglang-020": Ours(
        MISSING_END,
        [("analysis", None, None, "Pondering...", "implicit")],
        ["missing_end", "truncated_in_header"],
        "assistantcommentary to=functions.run_oven ",
    ),
} | {
    name: Ours(
        TEXT_IS_TEXT,
        [(None, None, None, PEERS[name]["input"], "truncated")],
        ["truncated_in_header"],
    )
    for name in ("sglang-024", "sglang-025", "sglang-026", "sglang-027", "sglang-028")
}

# The reference raises here, and the design says "Never a fault: ...".
NEVER_A_FAULT = {
    "vllm-028": "end of stream ... in a header that holds no more than its role",
    "trunc-005": "end of stream ... in a header that holds no more than its role",
    "dynamo-003": "a leading `<|start|>assistant` that repeats the given role",
    "llama-017": "a space after `<|channel|>`",
    "issue-005": "a stop token there, also before any message; white space",
    "text-007": "a known role is the role, with `role:name`",
}
# The reference reads these without a word, and the design calls them faults.
FAULTS_OF_OURS_ALONE = {
    "sglang-020": ["missing_end", "truncated_in_header"],
    "lmdeploy-001": ["duplicate_channel"],
}


def wanted_by_peers(case):
    """The messages that count: those of the reference, or one forgiving reading."""
    if "reference_strict_raises" not in case:
        return case["messages"], FIELDS
    reading = case["one_forgiving_reading"]
    return reading["messages"], reading["compare"]


def is_as_peers_want(case):
    wanted, fields = wanted_by_peers(case)
    found = as_dicts(events_of_case(case))
    return [[m[f] for f in fields] for m in found] == [[m[f] for f in fields] for m in wanted]


@each({name: case for name, case in PEERS.items() if name not in PEERS_OVERRULED})
def test_a_completion_is_read_as_other_parsers_read_it(case):
    assert is_as_peers_want(case)


@each({name: PEERS[name] for name in PEERS_OVERRULED})
def test_a_completion_that_the_design_overrules_is_read_by_its_rule(case):
    assert not is_as_peers_want(case)
    assert_ours(events_of_case(case), PEERS_OVERRULED[case["id"]])


@each(PEERS)
def test_a_fault_is_reported_where_the_reference_raises(case):
    faults = faults_of(events_of_case(case))
    if case["id"] in FAULTS_OF_OURS_ALONE:
        assert faults == FAULTS_OF_OURS_ALONE[case["id"]]
    else:
        raises = case.get("reference_strict_raises", False)
        assert (faults != []) == (raises and case["id"] not in NEVER_A_FAULT)


@pytest.mark.parametrize("name", NEVER_A_FAULT)
def test_what_is_never_a_fault_is_listed_only_where_the_reference_raises(name):
    assert PEERS[name]["reference_strict_raises"]


# -- Reports of users --

BUGS = load("parse_from_bug_reports.json")

BUGS_OVERRULED = {
    "bug-038": Ours(
        TRUNCATED,
        [
            ("final", None, None, "a", "return"),
            (None, None, None, "tail text", "truncated"),
        ],
        ["expected_start"],
    ),
    "bug-067": Ours(
        "any other word is a tool's name if the channel is not `final` and the recipient is absent",
        [(None, None, None, "r", "end")],
    ),
}
ENDS = {"eos": {"truncated", "end_of_text"}}


def is_as_users_want(events, wanted):
    found, wanted = as_dicts(events), wanted["messages"]
    starts = [event for event in events if isinstance(event, MessageStart)]
    return len(found) == len(wanted) and all(map(is_message_as_wanted, found, wanted, starts))


def is_message_as_wanted(found, wanted, start):
    header = start.header
    return (
        all(found[field] == wanted[field] for field in ("role", "channel", "recipient", "content"))
        and header.name == wanted.get("name")
        and header.data_type == wanted["content_type"]
        and (header.constrain is not None) == wanted.get("constrained", False)
        and found["end"] in ENDS.get(wanted["end"], {wanted["end"]})
        and wanted.get("known_channel", True) == (header.is_known_channel or not header.channel)
    )


def number_of_malformed_messages(events):
    """In how many messages a fault was reported; one between two of them belongs to both."""
    messages, is_open = set(), -1
    for event in events:
        if isinstance(event, MessageStart):
            is_open = event.index
        elif isinstance(event, Malformed):
            messages.add(is_open)
            if event.error.kind == "missing_end":
                messages.add(is_open + 1)
    return len(messages)


@each({name: case for name, case in BUGS.items() if name not in BUGS_OVERRULED})
def test_a_completion_is_read_as_its_users_want(case):
    wanted, events = case["wanted"], events_of_case(case)
    assert is_as_users_want(events, wanted)
    malformed = sum(message.get("malformed", False) for message in wanted["messages"])
    if case["id"] != "bug-064":  # its fault is that of a parser that was not reset
        assert number_of_malformed_messages(events) == malformed


@each({name: BUGS[name] for name in BUGS_OVERRULED})
def test_a_report_that_the_design_overrules_is_read_by_its_rule(case):
    events = events_of_case(case)
    is_as_wanted = is_as_users_want(events, case["wanted"])
    expects_fault = case["wanted"]["strict_error"] is not None
    assert not is_as_wanted or expects_fault != bool(faults_of(events))
    assert_ours(events, BUGS_OVERRULED[case["id"]])


def test_a_tool_name_in_place_of_the_role_is_the_name():
    assert as_dicts(events_of_case(BUGS["bug-067"]))[0]["name"] == "bash"


STRICT_ERRORS = {name: case for name, case in BUGS.items() if case["wanted"].get("strict_error")}
del STRICT_ERRORS["bug-067"]  # overruled: no fault at all


@each(STRICT_ERRORS)
def test_the_strict_mode_raises_what_was_reported(case):
    wanted = case["wanted"]["strict_error"]
    with pytest.raises(HarmonyParseError) as caught:
        events_of_case(case, strict=True)
    assert (caught.value.kind, caught.value.position) == (wanted["kind"], wanted["at_token"])
    assert [name for name in wanted.get("must_name", ()) if name not in str(caught.value)] == []


@each({name: case for name, case in BUGS.items() if case["wanted"].get("strict_error", 0) is None})
def test_the_strict_mode_accepts_what_is_no_error(case):
    assert faults_of(events_of_case(case, strict=True)) == []


@each({name: case for name, case in BUGS.items() if "tool_calls" in case["wanted"]})
def test_tool_calls_are_those_that_users_want(case):
    collector = MessageCollector()
    for event in events_of_case(case):
        collector.feed(event)
    calls = collector.completion().tool_calls
    found = [{"name": c.name, "arguments": c.arguments, "complete": c.complete} for c in calls]
    # An incomplete call is listed too, marked as such: it must not be executed.
    assert [call for call in found if call["complete"]] == case["wanted"]["tool_calls"]


@each({name: case for name, case in BUGS.items() if "delta_rules" in case["wanted"]})
def test_deltas_are_whole_characters_and_come_at_once(case):
    *_, last_token = case["tokens"]
    parser, texts = EventParser(), []
    for token in case["tokens"]:
        texts += [(token, e.text) for e in parser.feed(token) if isinstance(e, ContentDelta)]
    content = case["wanted"]["messages"][0]["content"]
    assert "".join(text for _, text in texts) == content
    if "\ufffd" not in content:
        assert not any("\ufffd" in text for _, text in texts)
    elif case["id"] == "bug-073":
        assert texts == [(64, "\ufffda"), (64, "a")]
    else:
        assert texts == [(last_token, "\ufffd")]


def test_the_preamble_of_a_call_is_what_the_user_sees():
    deltas = [e for e in events_of_case(BUGS["bug-050"]) if isinstance(e, ContentDelta)]
    seen = "".join(delta.text for delta in deltas if delta.header.is_visible)
    assert [seen] == BUGS["bug-050"]["wanted"]["user_visible"]


def test_a_broken_header_is_reported_once():
    case = BUGS["bug-065"]
    assert len(faults_of(events_of_case(case))) == case["wanted"]["errors_reported"]


def test_the_limit_inside_a_header_leaves_the_header_as_far_as_it_is_known():
    parser = EventParser(None)
    parser.feed_many(tokens_of("<|start|>") + BUGS["bug-058"]["tokens"][-1:])
    assert (parser.state, parser.header.role) == ("ROLE", "assistant")
    assert parser.close() == ()


def test_a_parser_takes_a_second_generation_after_a_reset():
    case = BUGS["bug-064"]
    parser, half = EventParser(strict=True), len(case["tokens"]) // 2
    first = parser.feed_many(case["tokens"][:half])
    parser.reset()
    second = parser.feed_many(case["tokens"][half:])
    both = as_dicts([*first, *second])
    wanted = case["wanted"]["messages"]
    assert [m["content"] for m in both] == [m["content"] for m in wanted]


# -- Chunks of marked text --

CHUNKS = load("text_chunks.json")


def chunks_of(case):
    return case.get("chunks") or [bytes.fromhex(chunk) for chunk in case["chunks_hex"]]


def parser_for(case):
    if "prompt_tail" in case:
        return EventParser.after(tokens_of(case["prompt_tail"]))
    return EventParser(case.get("role"))


def events_per_chunk(case):
    parser = parser_for(case)
    return [parser.feed_text(chunk) for chunk in chunks_of(case)], list(parser.close())


def as_pairs(events):
    """Events as these files have them: [kind, what it says]."""
    for event in events:
        match event:
            case MessageStart(header=h):
                fields = {"role": h.role.value, "channel": h.channel, "recipient": h.recipient}
                yield ["header", fields]
            case ContentDelta():
                yield ["content", event.text]
            case MessageEnd():
                yield ["message_end", f"<|{event.end.value}|>"]


@each({name: case for name, case in CHUNKS.items() if "events_per_chunk" in case})
def test_each_chunk_gives_its_events_at_once(case):
    # There a message starts twice, at `<|start|>` and with its header; here with its header.
    wanted = [[e for e in events if e[0] != "message_start"] for events in case["events_per_chunk"]]
    found, _ = events_per_chunk(case)
    assert [list(as_pairs(events)) for events in found] == wanted


@each(CHUNKS)
def test_chunks_give_the_messages_of_their_text(case):
    found, closing = events_per_chunk(case)
    events = [event for chunk in [*found, closing] for event in chunk]
    wanted = MESSAGES_OVERRULED.get(case["id"], case)["messages_at_end"]
    assert [{field: m[field] for field in FIELDS} for m in as_dicts(events)] == wanted
    assert faults_of(events) == []


# "`EventParser.after(prompt_tokens)`: ... it emits nothing of the prompt": its messages are not
# repeated, nor the text of the one that goes on.
MESSAGES_OVERRULED = {
    "llama-s01": {
        "messages_at_end": [
            dict.fromkeys(FIELDS)
            | {"role": "assistant", "channel": "final", "content": "tide!\nAnchors up?"}
        ]
    }
}


@each({name: case for name, case in CHUNKS.items() if "totals" in case})
def test_chunks_add_up_to_reasoning_visible_text_and_arguments(case):
    found, closing = events_per_chunk(case)
    deltas = [e for c in [*found, closing] for e in c if isinstance(e, ContentDelta)]
    assert case["totals"] == {
        "reasoning": "".join(d.text for d in deltas if d.header.is_reasoning),
        "visible": "".join(d.text for d in deltas if d.header.is_visible),
        "tool_args": "".join(d.text for d in deltas if d.header.is_tool_call),
    }
