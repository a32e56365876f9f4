"""The parser against openai_harmony 0.0.8: the same messages, or a named difference.

The differences that are meant stand in one table, as predicates with a reason. A difference that no
row explains fails, and so does a row that explains nothing: what openai_harmony does not do, or no
longer does, must not be excused.
"""

import collections
import re

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    SPECIAL,
    STOPS,
    UNKNOWN,
    VOCABULARY,
    any_token,
    events_of,
    examples,
    faults_of,
    messages_of,
    roles,
    streams,
    tokens_of,
)

from harmony_stream.parsing.parser import EventParser
from harmony_stream.values.events import ContentDelta, Malformed, MessageEnd, MessageStart
from harmony_stream.values.header import KNOWN_CHANNELS, KNOWN_ROLES

openai_harmony = pytest.importorskip("openai_harmony")


@pytest.fixture(scope="module")
def encoding(official_vocabulary_file):
    name = openai_harmony.HarmonyEncodingName.HARMONY_GPT_OSS
    return openai_harmony.load_harmony_encoding(name)


FIELDS = ("role", "name", "channel", "recipient", "content_type", "content")
Message = collections.namedtuple("Message", FIELDS)


def role_of(name):
    return None if name is None else openai_harmony.Role(name)


def reference_messages(encoding, tokens, role):
    """What openai_harmony says, and its error if it raises one."""
    try:
        messages = encoding.parse_messages_from_completion_tokens(tokens, role_of(role))
    except openai_harmony.HarmonyError as error:
        return [], str(error)
    return [reference_message(message) for message in messages], None


def reference_message(message):
    author = message.author
    text = "".join(part.text for part in message.content)
    fields = (message.channel, message.recipient, message.content_type, text)
    return Message(author.role.value, author.name, *fields)


def our_messages(events):
    return [Message(*message[:6]) for message in messages_of(events)]


# -- Streams as the format has them --


@attrs.frozen
class Spec:
    """A message to be written as tokens, in one of the ways in which the format allows it."""

    role: str
    name: str | None
    channel: str | None
    recipient: str | None
    content_type: str | None
    is_constrained: bool
    recipient_in_role: bool
    spaces: str
    content: list[int]
    end: int

    @property
    def expected(self):
        content_type = self.content_type
        if self.is_constrained and content_type:
            content_type = "<|constrain|>" + content_type
        name = self.name
        text = VOCABULARY.decode(self.content)
        return Message(self.role, name, self.channel, self.recipient, content_type, text)

    def header(self):
        word = self.role if self.role != "tool" else self.name
        if self.role != "tool" and self.name:
            word += ":" + self.name
        return tokens_of("<|start|>" + word)

    def rest(self):
        recipient = f"{self.spaces}to={self.recipient}" if self.recipient else ""
        in_role = self.recipient_in_role or not self.channel
        text = recipient if in_role else ""
        if self.channel:
            text += "<|channel|>" + self.channel + ("" if in_role else recipient)
        if self.content_type:
            text += self.spaces + ("<|constrain|>" if self.is_constrained else "")
            text += self.content_type
        return [*tokens_of(text), SPECIAL["<|message|>"], *self.content, self.end]


NAMES = [
    "functions.f",
    "browser.search",
    "python",
    "f-1_2",
    "küche",
    "math/sum",
    "assistant",
    "all",
]
BYTE_TOKENS = {VOCABULARY.decode_single_token_bytes(t): t for t in range(256)}


def spelled(text, how):
    """Tokens of text, not only those that the tokenizer would choose."""
    encode = VOCABULARY.tiktoken_encoding.encode_ordinary
    if how == "bytes":
        return [BYTE_TOKENS[bytes([byte])] for byte in text.encode()]
    parts = list(text) if how == "characters" else [text]
    return [token for part in parts for token in encode(part)]


contents = st.builds(
    spelled,
    st.lists(
        st.text(max_size=8)
        | st.sampled_from(["<|end|>", "👩‍👩‍👧‍👦", " 漢字", '{"a": 1}', "नमस्ते", "\n\n", "to=x"])
    ).map("".join),
    st.sampled_from(["canonical", "characters", "bytes"]),
)
shapes = st.one_of(
    st.tuples(
        st.just("assistant"),
        st.none() | st.just("ines"),
        st.sampled_from([None, *KNOWN_CHANNELS, "gossip", "commentary?"]),
        st.none() | st.sampled_from(NAMES),
    ),
    st.tuples(
        st.sampled_from(["system", "developer", "user"]),
        st.none() | st.just("ines"),
        st.none() | st.sampled_from(KNOWN_CHANNELS),
        st.none() | st.sampled_from(NAMES),
    ),
    st.tuples(
        st.just("tool"),
        st.sampled_from(NAMES[:6]),
        st.sampled_from([None, "commentary", "analysis"]),
        st.sampled_from([None, "assistant", "all"]),
    ),
)
specs = st.builds(
    lambda shape, **rest: Spec(*shape, **rest),
    shapes,
    content_type=st.none() | st.sampled_from(["json", "code", "ReplyShape"]),
    is_constrained=st.booleans(),
    recipient_in_role=st.booleans(),
    spaces=st.sampled_from([" ", " ", "  "]),
    content=contents,
    end=st.sampled_from(STOPS),
)


@attrs.frozen
class Stream:
    tokens: list[int]
    role: str | None
    expected: list[Message]


@st.composite
def well_formed(draw):
    messages = draw(st.lists(specs, min_size=1, max_size=4))
    tokens = [token for message in messages for token in [*message.header(), *message.rest()]]
    first = messages[0]
    role = None
    if first.role != "tool" and not first.name and draw(st.booleans()):
        role, tokens = first.role, tokens[len(first.header()) :]
    if draw(st.booleans()):
        del tokens[-1]
    return Stream(tokens, role, [message.expected for message in messages])


@given(well_formed())
@examples(200)
def test_a_well_formed_stream_is_read_as_it_was_written(stream):
    events = events_of(stream.tokens, stream.role)
    assert our_messages(events) == stream.expected
    assert faults_of(events) == []


# -- The differences that are meant --


@attrs.frozen
class Pair:
    """The first message that is not the same, in our reading and in theirs (None: no such one).

    Attributes:
        ours, theirs: the message.
        error: of openai_harmony, if it raised one instead of giving this message.
        events: ours, from the end of the message before to the end of this one.
        faults_before: what was reported in the messages before.
        header: the text of our header, special tokens spelled out.
        rest: the text of all tokens behind it, special tokens spelled out.
    """

    ours: Message | None
    theirs: Message | None
    error: str | None
    events: list
    faults_before: set[str]
    header: str
    rest: str

    @property
    def faults(self):
        return set(faults_of(self.events))

    @property
    def end(self):
        return next((e.end.value for e in self.events if isinstance(e, MessageEnd)), None)

    @property
    def differing(self):
        """The fields that differ, or what else does."""
        if self.theirs is None:
            return {"error"} if self.error else {"number"}
        if self.ours is None:
            return {"number"}
        return {f for f in FIELDS if getattr(self.ours, f) != getattr(self.theirs, f)}


@attrs.frozen
class Difference:
    """A difference that is meant.

    Attributes:
        name: short.
        example: a stream in which it is the only one, and its role.
        fields: which fields it explains.
        applies: whether it is this that happened.
        reason: our rule.
    """

    name: str
    example: tuple[str, str | None]
    fields: set[str]
    applies: object
    reason: str


MARKER = re.compile("|".join(map(re.escape, SPECIAL)))
HEADER_FIELDS = set(FIELDS) - {"content"}


def has_marker(pair, *markers):
    """Whether openai_harmony's fields have a marker in them, or one of these."""
    words = [getattr(pair.theirs, field) or "" for field in HEADER_FIELDS]
    found = MARKER.findall(" ".join(word.removeprefix("<|constrain|>") for word in words))
    return any(not markers or marker in markers for marker in found)


def is_name_of(pair, word):
    """Whether a word is our role and name with a colon, perhaps with text that is in neither."""
    named = f"{pair.ours.role}:{pair.ours.name or ''}"
    return word == named or (word.startswith(named) and "unparsed_header_text" in pair.faults)


DIFFERENCES = [
    Difference(
        "a type is no recipient",
        ("<|channel|>final <|constrain|>json<|message|>{}<|return|>", "assistant"),
        {"recipient", "content_type"},
        lambda p: (
            p.ours.recipient is None
            and p.ours.content_type == p.theirs.recipient
            and p.theirs.content_type is None
        ),
        "A recipient comes from `to=` only. openai_harmony takes a type without a recipient for "
        "one, so that an answer in JSON becomes a call of a tool named json.",
    ),
    Difference(
        "a name with a role",
        ("<|start|>user:ines to=all<|message|>Hi<|end|>", None),
        {"role", "name"},
        lambda p: is_name_of(p, p.theirs.name or ""),
        "`role:name` is a role and a name. openai_harmony, which writes it so, reads it back as "
        "the name of a tool.",
    ),
    Difference(
        "a name with a role, to nobody",
        ("<|start|>user:ines<|message|>Hi<|end|>", None),
        {"error"},
        lambda p: is_name_of(p, (p.error or "").removeprefix("Unknown role: ")),
        "`role:name` is a role and a name. Without a recipient openai_harmony knows no such role.",
    ),
    Difference(
        "a tool that answers nobody",
        ("<|start|>functions.f<|channel|>commentary<|message|>1<|end|>", None),
        {"error"},
        lambda p: p.ours.role == "tool" and p.error == f"Unknown role: {p.ours.name}",
        "A word in the role's place is a tool's name also without a recipient: the official "
        "sample wrote results so for months.",
    ),
    Difference(
        "a role in other letters",
        ("<|start|>Assistant to=functions.f<|message|>1<|end|>", None),
        {"role", "name"},
        lambda p: (p.theirs.name or "").lower() == p.ours.role,
        "A known role is the role, case aside.",
    ),
    Difference(
        "a message begins inside content",
        ("<|channel|>analysis<|message|>a<|channel|>final<|message|>b<|return|>", "assistant"),
        {"content"},
        lambda p: p.end == "implicit" and is_spelled_out(p),
        "missing_end: `<|start|>` and `<|channel|>` end a message. openai_harmony writes them, and "
        "all that follows, into the text.",
    ),
    Difference(
        "end of text inside content",
        ("<|channel|>final<|message|>a<|endoftext|>", "assistant"),
        {"content"},
        lambda p: p.end == "end_of_text" and is_spelled_out(p),
        "End of text ends a message, which is no fault. openai_harmony writes it into the text.",
    ),
    Difference(
        "a marker inside content",
        ("<|channel|>final<|message|>a<|reserved_200013|>b<|return|>", "assistant"),
        {"content"},
        lambda p: "unexpected_marker" in p.faults and is_spelled_out(p),
        "unexpected_marker: a special token is not part of the text.",
    ),
    Difference(
        "an unknown token inside content",
        ("<|channel|>final<|message|>a<|unknown|>b<|return|>", "assistant"),
        {"content"},
        lambda p: "unknown_token" in p.faults and is_spelled_out(p),
        "unknown_token: U+FFFD stands for it. openai_harmony drops or repeats text around it.",
    ),
    Difference(
        "a message behind an unknown token",
        ("<|message|><|unknown|><|start|>user<|message|>a<|end|>", "assistant"),
        {"number"},
        lambda p: "unknown_token" in p.faults_before,
        "unknown_token: what follows is read as ever. openai_harmony stops taking text.",
    ),
    Difference(
        "a marker inside a header",
        ("<|start|>assistant to=f<|reserved_200013|><|channel|>final<|message|>b<|end|>", None),
        HEADER_FIELDS,
        has_marker,
        "Sections are told apart by token ids: a marker ends a word, and is no part of it.",
    ),
    Difference(
        "an end inside a header",
        ("<|start|>assistant to=f<|channel|>final hi<|end|>x<|message|>a<|end|>", None),
        {*FIELDS, "number"},
        lambda p: p.theirs and has_marker(p, *ENDS, "<|start|>"),
        "missing_message, unexpected_start: a stop token, end of text or a start ends a header "
        "too; what it held is content.",
    ),
    Difference(
        "a word that is no name",
        ("<|channel|>commentary to=!f<|message|>a<|end|>", "assistant"),
        {"channel", "recipient", "content_type"},
        lambda p: "unparsed_header_text" in p.faults,
        "Names are made of letters, digits and `_ . / + : -`; what is glued behind them is a word "
        "of its own, and left-over words are unparsed_header_text.",
    ),
    Difference(
        "a word that is neither a role nor a name",
        ("<|start|>!f to=all<|message|>a<|end|>", None),
        {"role", "name"},
        lambda p: "unknown_role" in p.faults and p.theirs.role == "tool",
        "unknown_role: any other word is a tool's name only if it is a name; the channel's name "
        "there is the channel, and a role glued to it or repeated is the role.",
    ),
    Difference(
        "a channel in place of the role",
        ("analysis<|message|>a<|end|>", "assistant"),
        {"channel", "recipient"},
        lambda p: (
            "unknown_role" in p.faults
            and p.ours.channel in KNOWN_CHANNELS
            and p.theirs.channel is None
        ),
        "A channel's name in place of the role is the channel if no `<|channel|>` came.",
    ),
    Difference(
        "no recipient",
        ("<|start|>assistant to=<|channel|>final<|message|>a<|end|>", None),
        {"recipient"},
        lambda p: p.theirs.recipient == "" and p.ours.recipient is None,
        "empty_recipient: None, not a tool without a name.",
    ),
    Difference(
        "a marker of a type alone",
        ("<|start|>assistant to=f <|constrain|><|message|>a<|end|>", None),
        {"recipient", "content_type"},
        lambda p: "<|constrain|>" in (p.theirs.recipient, p.theirs.content_type),
        "empty_constrain: None, not the marker itself; a space after it is no fault.",
    ),
    Difference(
        "a type in place of the role",
        ("<|start|><|constrain|>json to=all<|message|>a<|end|>", None),
        {"role", "name", "content_type"},
        lambda p: (p.theirs.name or "").startswith("<|constrain|>"),
        "unknown_role: without a word for it the given role stands, or the assistant.",
    ),
    Difference(
        "two types",
        (
            "<|constrain|>json<|channel|>commentary <|constrain|>code<|message|>a<|end|>",
            "assistant",
        ),
        {"recipient", "content_type"},
        lambda p: "duplicate_constrain" in p.faults,
        "duplicate_constrain: the last wins.",
    ),
    Difference(
        "the role again in place of a type",
        ("<|channel|>commentary assistant<|message|>a<|end|>", "assistant"),
        {"content_type"},
        lambda p: p.ours.content_type == p.ours.role and p.theirs.content_type is None,
        "One bare word of the shape of a type is the type. The given role is dropped only where "
        "the role stands.",
    ),
    Difference(
        "an old separator",
        ("<|start|>assistant<|channel|>final\x1cjson to=f<|message|>a<|end|>", None),
        HEADER_FIELDS,
        lambda p: re.search("[\x1c-\x1f]", p.header),
        "White space is what `str.isspace` says; for Rust U+001C to U+001F are none.",
    ),
    Difference(
        "a recipient in place of the role",
        ("<|start|> to=all functions.f<|message|>a<|end|>", None),
        {"role", "name", "recipient", "content_type"},
        lambda p: (p.theirs.name or "").startswith("to="),
        "A recipient comes from `to=`, wherever it stands; it is never the name of a tool.",
    ),
    Difference(
        "a recipient in place of the channel",
        ("<|start|>assistant<|channel|>to=f<|message|>a<|end|>", None),
        {"channel", "recipient", "content_type"},
        lambda p: (p.theirs.channel or "").startswith("to="),
        "The channel is the first word of its section that is not `to=`.",
    ),
]
ENDS = ("<|end|>", "<|return|>", "<|call|>", "<|endoftext|>")


def is_spelled_out(pair):
    """Whether their text is what the tokens from our content on say, markers spelled out.

    Broken characters aside: around unknown tokens openai_harmony has other ones.
    """
    return whole(pair.rest).startswith(whole(pair.theirs.content))


def whole(text):
    return text.replace("\ufffd", "")


def explained_by(pair, rows):
    """The rows that together explain how the messages differ; none if something is left over."""
    applying = [row for row in rows if row.fields & pair.differing and row.applies(pair)]
    explained = set().union(*(row.fields for row in applying))
    return applying if pair.differing <= explained else []


def first_difference(encoding, tokens, role):
    theirs, error = reference_messages(encoding, tokens, role)
    events = events_of(tokens, role)
    ours = our_messages(events)
    if error is None and ours == theirs:
        return None
    if error is not None:
        theirs = finished_messages(encoding, tokens, role)
    same = next(
        (i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b),
        min(len(ours), len(theirs)),
    )
    before, own = events_of_message(events, same)
    pair = nth(ours, same), nth(theirs, same)
    return Pair(*pair, error, own, set(faults_of(before)), *spelled_out(own, tokens))


def nth(messages, index):
    return messages[index] if index < len(messages) else None


def finished_messages(encoding, tokens, role):
    """Those that openai_harmony had finished when it raised."""
    parser = openai_harmony.StreamableParser(encoding, role_of(role))
    try:
        for token in tokens:
            parser.process(token)
        parser.process_eos()
    except openai_harmony.HarmonyError:
        pass
    return [reference_message(message) for message in parser.messages]


def events_of_message(events, index):
    """The events before the message, and its own."""
    ends = [place for place, event in enumerate(events) if isinstance(event, MessageEnd)]
    start = ends[index - 1] + 1 if index else 0
    stop = ends[index] + 1 if index < len(ends) else len(events)
    return events[:start], events[start:stop]


def spelled_out(events, tokens):
    """The text of the header, and that of all behind it."""
    start = next((event for event in events if isinstance(event, MessageStart)), None)
    if start is None:
        return "", ""
    parts = tokens[start.start : start.stop], tokens[start.stop :]
    return [VOCABULARY.decode(token for token in part if token < UNKNOWN) for part in parts]


small_tokens = any_token.map(lambda token: min(token, 2**31))  # as openai_harmony takes them


@st.composite
def edited(draw):
    """A well-formed stream in which a few tokens were left out, put in or changed."""
    stream = draw(well_formed())
    tokens = list(stream.tokens)
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(tokens)))
        tokens[place : place + draw(st.integers(0, 1))] = draw(st.lists(small_tokens, max_size=1))
    return tokens, draw(st.sampled_from([stream.role, stream.role, "assistant", None]))


# -- The tests --


def explain(encoding, tokens, role):
    """Fail if there is a difference that no row explains."""
    pair = first_difference(encoding, tokens, role)
    if pair is not None and not (pair.error and pair.theirs is None):
        assert explained_by(pair, DIFFERENCES), pair


@given(stream=well_formed())
@examples(200)
def test_a_well_formed_stream_gives_the_same_messages(encoding, stream):
    pair = first_difference(encoding, stream.tokens, stream.role)
    assert pair is None or explained_by(pair, DIFFERENCES), pair


@given(stream=edited())
@examples(300)
def test_what_openai_harmony_can_read_in_a_damaged_stream_is_the_same(encoding, stream):
    explain(encoding, *stream)


@given(tokens=streams.map(lambda tokens: [min(token, 2**31) for token in tokens]), role=roles)
@examples(300)
def test_what_openai_harmony_can_read_in_any_stream_is_the_same(encoding, tokens, role):
    explain(encoding, tokens, role)


@pytest.mark.parametrize("row", DIFFERENCES, ids=[row.name for row in DIFFERENCES])
def test_each_difference_is_met_and_nothing_else_explains_it(encoding, row):
    text, role = row.example
    before, unknown, after = text.partition("<|unknown|>")
    tokens = [*tokens_of(before), *[UNKNOWN][: len(unknown)], *tokens_of(after)]
    pair = first_difference(encoding, tokens, role)
    assert pair is not None
    assert row in explained_by(pair, DIFFERENCES)
    assert explained_by(pair, [other for other in DIFFERENCES if other is not row]) == []


class SideBySide:
    """Both parsers, fed the same tokens."""

    def __init__(self, encoding, role):
        self.ours = EventParser(role)
        self.theirs = openai_harmony.StreamableParser(encoding, role_of(role))
        self.header = None

    def feed(self, token):
        """Feed a token; give the text that came with it, in both."""
        events = self.ours.feed(token)
        self.theirs.process(token)
        for event in events:
            if not isinstance(event, Malformed):
                self.header = event.header
        text = "".join(event.text for event in events if isinstance(event, ContentDelta))
        return text, self.theirs.last_content_delta or ""

    def states(self):
        ours = self.ours.state
        state = ours if ours in ("EXPECT_START", "CONTENT") else "HEADER"
        return state, self.theirs.state.name

    def headers(self):
        """Role, channel and recipient inside content, in both; a type is a recipient there."""
        ours, theirs = self.header, self.theirs
        recipient = ours.recipient or (None if theirs.current_content_type else ours.content_type)
        return (ours.role.value, ours.channel, recipient), (
            theirs.current_role.value,
            theirs.current_channel,
            theirs.current_recipient,
        )


def known_to_both(stream):
    return all(m.role != "tool" or m.recipient for m in stream.expected) and not any(
        m.name and m.role != "tool" for m in stream.expected
    )


@given(stream=well_formed().filter(known_to_both))
@examples(120)
def test_after_each_token_text_state_and_header_are_the_same(encoding, stream):
    both = SideBySide(encoding, stream.role)
    for token in stream.tokens:
        ours, theirs = both.feed(token)
        assert ours == theirs
        ours, theirs = both.states()
        assert ours == theirs
        if ours == "CONTENT":
            ours, theirs = both.headers()
            assert ours == theirs


@given(contents=st.lists(st.integers(0, 199997)))
@examples(120)
def test_text_that_is_not_utf_8_comes_out_the_same(encoding, contents):
    tokens = [*tokens_of("<|channel|>final<|message|>"), *contents, SPECIAL["<|return|>"]]
    assert our_messages(events_of(tokens)) == reference_messages(encoding, tokens, "assistant")[0]


def test_both_know_the_same_roles():
    assert {role.value for role in openai_harmony.Role} == set(KNOWN_ROLES)
