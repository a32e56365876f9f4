"""StreamableParser beside openai_harmony's: the same on good input, and a table of differences."""

import copy
import pickle
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from random import Random

import numpy
import openai_harmony
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import ENVIRONMENTS, Wheel
from server_loops import ERROR, LOOPS
from strategies import SPECIAL, UNKNOWN, examples, tokens_of

import harmony_stream
from harmony_stream.drop_in.encoding import load_harmony_encoding
from harmony_stream.drop_in.streamable import StreamableParser, StreamState
from harmony_stream.errors import HarmonyError
from harmony_stream.values.events import HarmonyParseError
from harmony_stream.values.faults import FaultKind
from harmony_stream.values.header import KNOWN_ROLES
from harmony_stream.values.messages import Role
from harmony_stream.vocabulary import Vocabulary

OURS = load_harmony_encoding("HarmonyGptOss")
VOCABULARY = Vocabulary.default()
START, MESSAGE = SPECIAL["<|start|>"], SPECIAL["<|message|>"]
CHANNEL, CONSTRAIN = SPECIAL["<|channel|>"], SPECIAL["<|constrain|>"]
STOPS = {SPECIAL["<|end|>"], SPECIAL["<|return|>"], SPECIAL["<|call|>"]}
START_OF_TEXT, END_OF_TEXT = SPECIAL["<|startoftext|>"], SPECIAL["<|endoftext|>"]
EOS = None


@pytest.fixture(scope="module")
def theirs(official_vocabulary_file):
    return openai_harmony.load_harmony_encoding("HarmonyGptOss")


def plain(value):
    """A value of either library as JSON-ready data."""
    return value.value if hasattr(value, "value") else value


def view(parser) -> dict:
    """All that can be polled."""
    return {
        "current_role": plain(parser.current_role),
        "current_channel": parser.current_channel,
        "current_recipient": parser.current_recipient,
        "current_content_type": parser.current_content_type,
        "current_content": parser.current_content,
        "last_content_delta": parser.last_content_delta,
        "state": plain(parser.state),
        "state_data": parser.state_data,
        "tokens": list(parser.tokens),
        "messages": [message.to_dict() for message in parser.messages],
    }


def take(parser, token):
    """Feed one token, or end the stream."""
    return parser.process_eos() if token is EOS else parser.process(token)


def take_all(parser, tokens):
    for token in tokens:
        take(parser, token)


def error_of(parser, token) -> str | None:
    try:
        take(parser, token)
    except (HarmonyError, openai_harmony.HarmonyError) as error:
        return str(error)
    return None


def parsers(theirs, role, **options):
    their_role = role and openai_harmony.Role(role)
    return (
        openai_harmony.StreamableParser(theirs, their_role, **options),
        StreamableParser(OURS, role, **options),
    )


# --- Well-formed streams ------------------------------------------------------------------------

names = st.from_regex(r"[a-z][a-z0-9_]{0,8}(\.[a-z_]{1,6})?", fullmatch=True).filter(
    lambda name: name not in KNOWN_ROLES
)
assistant_headers = st.one_of(
    st.sampled_from(
        [
            "",
            "<|channel|>analysis",
            "<|channel|>final",
            "<|channel|>commentary",
            "<|channel|>weather",
        ]
    ),
    st.sampled_from(
        [
            " to={}<|channel|>commentary",
            " to={}<|channel|>commentary json",
            " to={}<|channel|>analysis code",
            " to={}<|channel|>commentary <|constrain|>json",
            "<|channel|>commentary to={}",
            "<|channel|>commentary to={} code",
            "<|channel|>commentary to={} <|constrain|>json",
            "<|channel|>analysis to={}<|constrain|>json",
        ]
    ).flatmap(lambda layout: names.map(layout.format)),
)
other_headers = st.sampled_from(["user", "system", "developer"]) | names.map(
    "{} to=assistant<|channel|>commentary".format
)
headers = other_headers | assistant_headers.map("assistant{}".format)
ends = st.sampled_from(["<|end|>", "<|return|>", "<|call|>"]).map(SPECIAL.get)
BYTE_TOKENS = {VOCABULARY.decode_single_token_bytes(token): token for token in range(256)}


def content_tokens(text: str, in_bytes: bool) -> list[int]:
    if in_bytes:
        return [BYTE_TOKENS[bytes([byte])] for byte in text.encode()]
    return VOCABULARY.tiktoken_encoding.encode_ordinary(text)


contents = st.builds(content_tokens, st.text(max_size=12), st.booleans())


@st.composite
def well_formed(draw):
    """(role, tokens): a completion of the assistant, or a whole stream; perhaps cut in content."""
    role = draw(st.sampled_from([None, "assistant"]))
    tokens = []
    for number in range(draw(st.integers(1, 4))):
        if role and number == 0:
            tokens += tokens_of(draw(assistant_headers))
        else:
            tokens += [START, *tokens_of(draw(headers))]
        tokens += [MESSAGE, *draw(contents), draw(ends)]
    return role, tokens[:-1] if draw(st.booleans()) else tokens


@examples(100)
@given(stream=well_formed())
def test_on_well_formed_streams_every_property_is_the_same_after_every_token(theirs, stream):
    role, tokens = stream
    their, our = parsers(theirs, role)

    assert view(our) == view(their)
    for token in [*tokens, EOS]:
        take(their, token)
        assert take(our, token) is our
        assert view(our) == view(their)


@examples(60)
@given(stream=well_formed())
def test_whole_completions_are_parsed_the_same(theirs, stream):
    role, tokens = stream
    theirs_parsed = theirs.parse_messages_from_completion_tokens(
        tokens, role and openai_harmony.Role(role)
    )

    for strict in (True, False):
        parsed = OURS.parse_messages_from_completion_tokens(tokens, role, strict=strict)
        assert [each.to_dict() for each in parsed] == [each.to_dict() for each in theirs_parsed]


@examples(40)
@given(stream=well_formed(), more=well_formed())
def test_after_the_end_of_a_stream_another_may_begin_with_a_start_token(theirs, stream, more):
    role, tokens = stream
    their, our = parsers(theirs, role)

    for token in [*tokens, EOS, START, *tokens_of("user"), MESSAGE, *tokens_of("Hi"), EOS]:
        take(their, token)
        take(our, token)
        assert view(our) == view(their)


# --- The table of differences -------------------------------------------------------------------

# What openai_harmony says, and we too.
KEY_PHRASES = [
    re.compile(r"Unexpected token (\d+) while expecting start token 200006"),
    re.compile("Unexpected EOS while waiting for message header to complete"),
    re.compile("channel marker present but no channel value found in header"),
    re.compile("message header did not contain a role"),
    re.compile("Unknown role: "),
    re.compile("unexpected tokens remaining in message header: Some"),
]


def key_phrase(sentence: str) -> str:
    """The key phrase that a sentence begins with, numbers included; else all of it."""
    matches = [phrase.match(sentence) for phrase in KEY_PHRASES]
    return next((match[0] for match in matches if match), sentence)


@dataclass
class Difference:
    """The first token after which the two parsers do not agree, and what led to it.

    `state` and `header` are openai_harmony's before that token.
    """

    role: str | None
    state: str
    header: list[int]
    token: int | None
    their_error: str | None
    our_error: str | None
    content: list[int]

    @property
    def outcome(self) -> str:
        if self.their_error and self.our_error:
            return "other words"
        if self.their_error:
            return "only theirs raises"
        return "only ours raises" if self.our_error else "other values"

    @cached_property
    def data(self) -> bytes:
        """The bytes of an ordinary token, else b""."""
        if self.token is EOS:
            return b""
        return VOCABULARY.lookup(self.token) or b""

    # Of a header that ends here:

    @cached_property
    def runs(self) -> list[tuple[int | None, str]]:
        """The header cut at its special tokens, each with the token before it."""
        runs = [(None, b"")]
        for token in self.header:
            piece = VOCABULARY.lookup(token)
            if piece is None:
                runs.append((token, b""))
            else:
                runs[-1] = (runs[-1][0], runs[-1][1] + piece)
        return [(marker, data.decode("utf-8", "surrogateescape")) for marker, data in runs]

    @cached_property
    def texts(self) -> list[str]:
        return [text for _, text in self.runs]

    def texts_after(self, marker: int) -> list[str]:
        return [text for before, text in self.runs if before == marker]

    @cached_property
    def role_words(self) -> list[str]:
        return self.runs[0][1].split()

    @cached_property
    def is_named(self) -> bool:
        """Whether the header must say who writes."""
        return self.role is None

    @cached_property
    def is_refused_role(self) -> bool:
        """Whether the first word cannot be a tool that answers."""
        channels = [word for text in self.texts_after(CHANNEL) for word in text.split()[:1]]
        answers = all(word in ("to=assistant", "to=all") for word in self.recipients)
        word = self.role_words[0]
        may_answer = NAME.fullmatch(word) and answers and "final" not in channels
        return not may_answer or bool(GLUED_ROLE.fullmatch(word.lower()))

    @cached_property
    def words(self) -> list[str]:
        """All words that are not the role, the channel, or the type after `<|constrain|>`."""
        words = []
        for marker, text in self.runs:
            chunks = text.split()
            has_own = marker in (CHANNEL, CONSTRAIN) or self.is_named
            is_repeated = marker is None and chunks[:1] == [self.role]
            words += chunks[1:] if has_own or is_repeated else chunks
        return words

    @cached_property
    def bare(self) -> list[str]:
        return [word for word in self.words if not word.startswith("to=")]

    @cached_property
    def recipients(self) -> list[str]:
        return [word for word in self.words if word.startswith("to=")]

    @cached_property
    def is_bare(self) -> bool:
        """Whether roles are all that it holds, where `<|start|>` or a stop token ends a header."""
        words = [text.split() for text in self.texts]
        are_roles = all(
            len(each) < 2 and {word.lower() for word in each} <= set(KNOWN_ROLES) for each in words
        )
        return are_roles and not {marker for marker, _ in self.runs} & {CHANNEL, CONSTRAIN}

    @cached_property
    def has_type_in_front(self) -> bool:
        """`<|constrain|>TYPE to=NAME`, wherever the recipient stands behind it."""
        markers = [marker for marker, _ in self.runs]
        first = markers.index(CONSTRAIN) if CONSTRAIN in markers else len(markers)
        return any("to=" in text for text in self.texts[first:])

    @cached_property
    def has_type_at_the_end(self) -> bool:
        """`to=NAME TYPE`: the one place where both take a bare word for the type."""
        return (
            len(self.bare) == 1
            and len(self.recipients) == 1
            and self.words[-1] == self.bare[0]
            and not self.texts_after(CONSTRAIN)
        )


@dataclass
class Row:
    """Where the two may differ, in which ways, and why."""

    why: str
    outcomes: set[str]
    holds: Callable[[Difference], object]

    def explains(self, difference: Difference) -> bool:
        return difference.outcome in self.outcomes and self.holds(difference)


def between(test):
    return lambda it: it.state == "ExpectStart" and test(it)


def in_header(test):
    return lambda it: it.state == "Header" and it.token != MESSAGE and test(it)


def at_message(test):
    return lambda it: it.state == "Header" and it.token == MESSAGE and test(it)


def in_content(test):
    return lambda it: it.state == "Content" and test(it)


def is_complete(data: bytes) -> bool:
    return data.decode("utf-8", "ignore").encode() == data


THEIRS, OURS_ONLY = "only theirs raises", "only ours raises"
WORDS, VALUES = "other words", "other values"
NAME = re.compile(r"[\w./+:-]+")
GLUED_ROLE = re.compile(f"({'|'.join(KNOWN_ROLES)})+(analysis|commentary|final)?")
TYPE = re.compile(r"[^\W_](?:[\w./+:-]*[^\W_])?")

TABLE = [
    # Between messages: what is there by habit of engines and models is no fault.
    Row(
        "White space between messages says nothing: engines and templates put it there.",
        {THEIRS},
        between(lambda it: it.data.decode("utf-8", "ignore").isspace()),
    ),
    Row(
        "A stop token again after the end of a message: speculative decoding overshoots.",
        {THEIRS},
        between(lambda it: it.token in STOPS or it.token == END_OF_TEXT),
    ),
    Row(
        "Other special tokens and unknown ids between messages are repaired: they are no text.",
        {THEIRS},
        between(lambda it: it.token not in {*STOPS, END_OF_TEXT} and not it.data),
    ),
    Row(
        "Whether text is white space can be told when a character is complete: the error waits.",
        {THEIRS},
        between(lambda it: not is_complete(it.data)),
    ),
    # Inside a header.
    Row(
        "A stream that ends in a header without anything but its role has lost nothing.",
        {THEIRS},
        in_header(lambda it: it.token is EOS and it.is_bare),
    ),
    # At <|message|>, when the header is read.
    Row(
        "A special or unknown token in a header is no text; 0.0.8 reads its spelling, or gives up.",
        {THEIRS, OURS_ONLY, WORDS, VALUES},
        at_message(lambda it: any(m not in (None, CHANNEL, CONSTRAIN) for m, _ in it.runs)),
    ),
    Row(
        "Broken UTF-8 in a header is U+FFFD in one field; 0.0.8 gives up.",
        {THEIRS, WORDS},
        at_message(lambda it: any("\udc80" <= c <= "\udcff" for _, text in it.runs for c in text)),
    ),
    Row(
        "Text is never a marker: 0.0.8 searches the decoded header for them.",
        {THEIRS, OURS_ONLY, WORDS, VALUES},
        at_message(lambda it: any("<" in text for _, text in it.runs)),
    ),
    Row(
        "A second <|channel|> or <|constrain|>: the last wins; 0.0.8 takes it for text.",
        {THEIRS, OURS_ONLY, WORDS, VALUES},
        at_message(
            lambda it: len(it.texts_after(CHANNEL)) > 1 or len(it.texts_after(CONSTRAIN)) > 1
        ),
    ),
    Row(
        "A space after <|channel|> is no fault; to= behind it is the recipient, not the channel.",
        {THEIRS, OURS_ONLY, WORDS, VALUES},
        at_message(
            lambda it: any(
                text[:1].isspace() or text.startswith("to=") for text in it.texts_after(CHANNEL)
            )
        ),
    ),
    Row(
        "The type is the name after <|constrain|>, if any; 0.0.8 takes the marker's spelling.",
        {THEIRS, OURS_ONLY, WORDS, VALUES},
        at_message(
            lambda it: any(
                not TYPE.fullmatch(text.split(" ")[0]) or text.startswith("to=")
                for text in it.texts_after(CONSTRAIN)
            )
        ),
    ),
    Row(
        "What is glued to a known channel, and can only be content, is no part of its name.",
        {OURS_ONLY, WORDS},
        at_message(
            lambda it: any(
                re.match("(analysis|commentary|final)([\\[{(<\"'`]|[^\\x00-\\x7f])", text)
                for text in it.texts_after(CHANNEL)
            )
        ),
    ),
    Row(
        "White space is that of Unicode.",
        {THEIRS, OURS_ONLY, WORDS, VALUES},
        at_message(lambda it: any(c.isspace() and c > "\x7f" for _, text in it.runs for c in text)),
    ),
    Row(
        "A role with a name, in another case, repeated, or a tool's name alone is understood.",
        {THEIRS, VALUES},
        at_message(
            lambda it: (
                (it.is_named and it.role_words[:1] and it.role_words[0] not in KNOWN_ROLES)
                or (not it.is_named and it.role in it.words)
            )
        ),
    ),
    Row(
        "A word where the role is due that is no role and cannot be a tool's name is an error.",
        {OURS_ONLY, WORDS},
        at_message(lambda it: it.is_named and it.role_words[:1] and it.is_refused_role),
    ),
    Row(
        "A marker where the role is due: the role is missing, whatever follows.",
        {THEIRS, OURS_ONLY, WORDS, VALUES},
        at_message(lambda it: it.is_named and not it.role_words and len(it.runs) > 1),
    ),
    Row(
        "A recipient comes from to= only; one bare word is a type, several are an error.",
        {OURS_ONLY, WORDS, VALUES, THEIRS},
        at_message(lambda it: it.bare and not it.recipients),
    ),
    Row(
        "A type after <|constrain|> without a recipient is a type; 0.0.8 makes it the recipient.",
        {VALUES, OURS_ONLY, WORDS, THEIRS},
        at_message(lambda it: it.texts_after(CONSTRAIN) and not it.recipients),
    ),
    Row(
        "A type may stand in front of the recipient; what else stands there is an error.",
        {THEIRS, OURS_ONLY, WORDS},
        at_message(
            lambda it: (
                it.recipients and (it.has_type_in_front or (it.bare and not it.has_type_at_the_end))
            )
        ),
    ),
    Row(
        "A type is made of letters and digits: other words behind a recipient are an error.",
        {OURS_ONLY},
        at_message(lambda it: it.has_type_at_the_end and not TYPE.fullmatch(it.bare[0])),
    ),
    Row(
        "The last recipient wins, and an empty one is none.",
        {THEIRS, VALUES},
        at_message(lambda it: len(it.recipients) > 1 or "to=" in it.recipients),
    ),
    Row(
        "A recipient is a name: what is glued behind it is a word of its own.",
        {OURS_ONLY, VALUES, WORDS},
        at_message(lambda it: any(not NAME.fullmatch(word[3:]) for word in it.recipients)),
    ),
    # In content.
    Row(
        "A special token is never content; 0.0.8 shows its spelling to users.",
        {VALUES},
        in_content(lambda it: any(map(VOCABULARY.is_special_token, it.content))),
    ),
    Row(
        "An unknown id is U+FFFD; 0.0.8 loses all the content behind it.",
        {VALUES},
        in_content(lambda it: any(token >= UNKNOWN for token in it.content)),
    ),
    Row(
        "Broken UTF-8 gives the same text, sooner.",
        {VALUES},
        in_content(lambda it: is_broken(it.content)),
    ),
]


def is_broken(content: list[int]) -> bool:
    try:
        VOCABULARY.decode_bytes(token for token in content if token < UNKNOWN).decode()
    except UnicodeDecodeError as error:
        return error.reason != "unexpected end of data"
    return False


def compare(theirs, role: str | None, tokens: list[int]) -> Difference | None:
    """Where the two parsers part, if they do; an error that both raise ends the comparison."""
    their, our = parsers(theirs, role)
    content = []
    for token in [*tokens, EOS]:
        before = their.state_data
        content = content if before["state"] == "Content" else []
        errors = error_of(their, token), error_of(our, token)
        assert errors[1] is None or key_phrase(errors[1]) != errors[1]
        if all(errors) and key_phrase(errors[0]) == key_phrase(errors[1]):
            return None
        is_content = before["state"] == "Content" and token is not EOS and token not in STOPS
        content = [*content, token] if is_content else content
        if any(errors) or view(their) != view(our):
            named = None if their.messages else role
            header = before.get("header_tokens", [])
            return Difference(named, before["state"], header, token, *errors, content)
    return None


def explanations(theirs, role, tokens) -> list[Row]:
    """The rows that explain how the two parsers part; fails if none does."""
    difference = compare(theirs, role, tokens)
    if difference is None:
        return []
    rows = [row for row in TABLE if row.explains(difference)]
    assert rows, (difference.outcome, difference, VOCABULARY.decode(difference.header))
    return rows


PIECES = [
    *map(
        tokens_of,
        [
            *("<|channel|>", "<|constrain|>", "<|message|>", "<|start|>", "<|end|>", "<|return|>"),
            *("<|start|>", "<|start|>assistant", "<|channel|>final", "<|channel|>commentary"),
            *("<|message|>", "<|message|>", "<|message|>Hi<|end|>", "<|call|>", "<|endoftext|>"),
            *("<|startoftext|>", "<|reserved_200013|>"),
            *("assistant", "Assistant", "user", "user:ines", "tool", "toolassistant", "final"),
            *(" to=functions.f", " to=assistant", " to=", "to=f{}", "functions.f", "=", ":", "?"),
            *(" json", "json", " <|constrain|>json", "<|constrain|>json", " code", " word", "{}"),
            *(" ", "\n", "\u00a0", "\u2003", " é", "🦩", "Hi", " there"),
        ],
    ),
    VOCABULARY.tiktoken_encoding.encode_ordinary("<|channel|>final"),
    [UNKNOWN],
    [9552],
    [128],
]
any_tokens = st.lists(
    st.sampled_from(PIECES) | st.integers(0, UNKNOWN + 9).map(lambda token: [token]), max_size=12
).map(lambda pieces: [token for piece in pieces for token in piece])


@examples(300)
@given(role=st.sampled_from([None, "assistant", "user", "tool"]), tokens=any_tokens)
def test_on_any_tokens_each_difference_is_in_the_table(theirs, role, tokens):
    explanations(theirs, role, tokens)


def test_each_row_of_the_table_is_met(theirs):
    chance = Random(0)
    unmet = list(TABLE)
    for _ in range(20000):
        pieces = chance.choices(PIECES, k=chance.randint(1, 8))
        tokens = [token for piece in pieces for token in piece]
        for row in explanations(theirs, chance.choice([None, "assistant"]), tokens):
            if row in unmet:
                unmet.remove(row)
        if not unmet:
            break

    assert [row.why for row in unmet] == []


@examples(100)
@given(role=st.sampled_from([None, "assistant", "user", "tool"]), tokens=any_tokens)
def test_without_strictness_no_tokens_raise(role, tokens):
    parser = StreamableParser(OURS, role, strict=False)

    for token in [*tokens, EOS, *tokens, EOS]:
        take(parser, token)

    assert parser.state is StreamState.EXPECT_START
    OURS.parse_messages_from_completion_tokens(tokens, role, strict=False)


@examples(100)
@given(role=st.sampled_from([None, "assistant", "user", "tool"]), tokens=any_tokens)
def test_who_catches_and_ends_the_stream_has_the_messages_of_the_forgiving_mode(role, tokens):
    strict, forgiving = StreamableParser(OURS, role), StreamableParser(OURS, role, strict=False)

    for token in [*tokens, EOS]:
        error_of(strict, token)
        take(forgiving, token)
        assert len(strict.messages) <= len(forgiving.messages)

    assert view(strict) == view(forgiving)
    parsed = OURS.parse_messages_from_completion_tokens(tokens, role, strict=False)
    assert parsed == forgiving.messages


def wordless(phrase: str) -> str:
    """A pattern for a phrase with any token in it."""
    return re.sub(r"(?<=token )\d+(?= while)", r"\\d+", phrase)


@examples(100)
@given(role=st.sampled_from([None, "assistant"]), tokens=any_tokens)
def test_whole_completions_raise_what_the_parser_raises_first(role, tokens):
    parser = StreamableParser(OURS, role)
    errors = [error for token in tokens if (error := error_of(parser, token))]
    at_the_end = error_of(parser, EOS)

    whole, parsed = None, []
    try:
        parsed = OURS.parse_messages_from_completion_tokens(tokens, role)
    except HarmonyError as error:
        whole = str(error)

    # At the end the parser also raises for text that nobody polled; here it is in a message.
    assert whole or errors == []
    assert whole is None or re.match(wordless(key_phrase([*errors, at_the_end][0])), whole)
    assert whole or parsed == parser.messages


# --- The loops of servers -----------------------------------------------------------------------
# Whatever one of them shows of a completion with openai_harmony, it shows with this library, or the
# error comes at a token, where it is a HarmonyError of that token.

# Completions that break the format, and the words that a person would miss.
SHAPES = [
    ('<|channel|>final {"answer": "hi"}<|return|>', ["answer", "hi"]),
    ("<|channel|>final The answer is 42.<|return|>", ["answer", "42"]),
    ("The answer is 42.<|return|>", ["answer", "42"]),
    ("<|channel|>final Sure thing<|end|>", ["Sure", "thing"]),
    ("<|channel|>final Sure thing", ["Sure", "thing"]),
    ("<|channel|>analysis Let me see.<|end|>", ["Let", "see"]),
    ("<|channel|>final 答案是四十二。<|return|>", ["答案是四十二"]),
    ("答案是四十二。<|end|>", ["答案是四十二"]),
    ('<|channel|>commentary to=functions.f {"a": 1}<|call|>', ["a", "1"]),
    ('<|channel|>commentary to=functions.f <|constrain|>json{"a": 1}<|call|>', ["a", "1"]),
    ('<|channel|>commentary to=functions.f <|constrain|>json {"a": ', ["a"]),
    (' to=functions.f<|channel|>commentary {"a": 1}<|call|>', ["a", "1"]),
    ("<|channel|>final The answer is 4.<|start|>assistant", ["answer", "4"]),
    ("<|channel|>final The answer is 4.<|start|>assistant<|channel|>final", ["answer", "4"]),
    ("<|channel|>final One.<|end|><|start|>assistant<|channel|>final Two.<|end|>", ["One", "Two"]),
    ("<|channel|>final One<|return|><|return|>", ["One"]),
    ("<|channel|>final One<|endoftext|>", ["One"]),
    ("<|end|>Sure thing", ["Sure", "thing"]),
    (
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final 2+2=4.<|end|>",
        ["Hm", "4"],
    ),
    ("<|channel|>analysis<|message|>Hm.<|channel|>final It is 4.<|return|>", ["Hm", "4"]),
]
# Text without a channel, which is content to openai_harmony: servers that route by channel show it
# if they end the stream, which raises.
WITHOUT_CHANNEL = [
    ("<|channel|>final<|message|>Hm.<|start|>assistant It is 4.<|return|>", ["Hm", "4"]),
    ("<|channel|>final<|message|>Hm.<|endoftext|>It is 4.<|return|>", ["Hm", "4"]),
]
# The loops that end the stream.
ENDING = ["streams_and_skips", "streams", "answers_at_once_and_skips", "answers_at_once"]


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def wheel(request, official_vocabulary_file):
    wheel = Wheel(request.param).or_skip()
    yield wheel
    wheel.close()


def words_in(shown: list[str]) -> set[str]:
    return set(re.findall(r"\w+", "".join(shown)))


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize(("text", "words"), SHAPES)
def test_a_loop_shows_what_it_shows_with_each_wheel(wheel, name, text, words):
    ids = OURS.encode(text, allowed_special="all")

    theirs = words_in(wheel.ask("loop", name=name, tokens=ids)["shown"]) & set(words)
    ours = words_in(LOOPS[name](harmony_stream, OURS, ids))

    assert theirs <= ours
    if name in [*ENDING, "parses_or_shows_raw"]:
        assert set(words) <= ours


@pytest.mark.parametrize("name", ENDING)
@pytest.mark.parametrize(("text", "words"), WITHOUT_CHANNEL)
def test_a_loop_that_ends_the_stream_shows_text_without_a_channel(theirs, name, text, words):
    ids = OURS.encode(text, allowed_special="all")

    assert set(words) <= words_in(LOOPS[name](openai_harmony, theirs, ids))
    assert set(words) <= words_in(LOOPS[name](harmony_stream, OURS, ids))


@pytest.mark.parametrize("name", ["streams_and_skips", "streams"])
def test_a_header_that_nothing_closed_is_shown_as_the_wheels_show_it(wheel, name):
    for text, _ in SHAPES[:13]:
        ids = OURS.encode(text, allowed_special="all")
        theirs = wheel.ask("loop", name=name, tokens=ids)["shown"]
        assert "".join(LOOPS[name](harmony_stream, OURS, ids)) == "".join(theirs)


headers_with_words = st.sampled_from(
    [
        "<|channel|>final",
        "<|channel|>analysis",
        "<|channel|>commentary",
        "<|channel|>commentary to=functions.f",
        "<|channel|>commentary to=functions.f <|constrain|>json",
        " to=functions.f<|channel|>commentary",
    ]
)
loose_ends = st.sampled_from(["<|end|>", "<|return|>", "<|call|>", "<|end|><|return|>", ""])


@st.composite
def broken_completions(draw):
    """A completion in which messages may lack `<|message|>` or an end, perhaps cut; and its words.

    No two headers in a row lack it: the newer server takes one message after each token, and three
    that come out at once are one more than it takes.
    """
    pieces, number, was_closed = [], 0, True
    for message in range(draw(st.integers(1, 3))):
        has_header = message > 0 or draw(st.booleans())
        pieces += ["<|start|>assistant"] if message else []
        pieces += [draw(headers_with_words)] if has_header else []
        was_closed = not was_closed or draw(st.booleans())
        pieces += ["<|message|>"] if was_closed else []
        for _ in range(draw(st.integers(1, 3))):
            number += 1
            pieces.append(draw(st.sampled_from([" “w{}w”", "{{w{}w}}", " «w{}w»"])).format(number))
        pieces.append(draw(loose_ends))
    tokens = tokens_of("".join(pieces))
    return tokens[: draw(st.integers(1, len(tokens)))] if draw(st.booleans()) else tokens


def marks(shown: str) -> set[str]:
    return set(re.findall(r"w\d+w", shown))


@examples(150)
@given(tokens=broken_completions())
def test_no_loop_loses_text_that_it_shows_with_openai_harmony(theirs, tokens):
    parser, told = StreamableParser(OURS, "assistant"), set()
    for token in tokens:
        error = error_of(parser, token)
        if error and token == MESSAGE:  # where openai_harmony finds it too, or takes it for fields
            told |= marks(error)
    # Who does not end the stream has nothing of a header that is still open.
    is_open = parser.state is StreamState.HEADER

    for name, loop in LOOPS.items():
        shown = loop(harmony_stream, OURS, tokens)
        if ERROR not in shown and (name in ENDING or not is_open):
            missing = marks("".join(loop(openai_harmony, theirs, tokens))) - marks("".join(shown))
            assert missing <= told, name


def test_a_loop_that_catches_and_reads_messages_has_the_text_behind_a_fault():
    parser = StreamableParser(OURS, "assistant")
    text = (
        "<|channel|>final Sure thing<|end|><|start|>assistant<|channel|>final<|message|>Yes<|end|>"
        "<|start|>assistant Let me see, please<|channel|>final<|message|>No<|return|>"
    )

    errors = [error_of(parser, token) for token in tokens_of(text)]

    texts = [message.content[0].text for message in parser.messages]
    assert texts == ["Sure thing", "Yes", "Let me see, please", "No"]
    assert sum(map(bool, errors)) == 2


# --- Errors -------------------------------------------------------------------------------------

# (role, marked text, kind, where, key phrase): the faults that are raised; EOS follows.
RAISED = [
    (None, "Hi", "expected_start", 0, "Unexpected token 12194 while expecting start token 200006"),
    (
        "assistant",
        "<|message|>Hi<|end|><|channel|>final<|message|>",
        *("expected_start", 3, "Unexpected token 200005 while expecting start token 200006"),
    ),
    (None, "<|start|>assistant<|channel|>", "truncated_in_header", 3, "Unexpected EOS while"),
    ("assistant", "<|channel|>final<|return|>", "missing_message", 2, "Unexpected EOS while"),
    (
        "assistant",
        "<|channel|>final Hi there<|return|><|start|>assistant<|message|>",
        *("missing_message", 4, 'tokens remaining in message header: Some("Hi there")'),
    ),
    ("assistant", "<|channel|>final Hi there<|return|>", "missing_message", 4, "Unexpected EOS"),
    ("assistant", "Hi there<|start|>assistant", "unexpected_start", 2, "Unexpected EOS while"),
    (
        "assistant",
        "<|channel|>final<|start|>user<|message|>",
        *("unexpected_start", 2, "Unexpected EOS while waiting for message header to complete"),
    ),
    (
        "assistant",
        "<|channel|>final Hi there you<|message|>",
        *("unparsed_header_text", 2, 'tokens remaining in message header: Some("Hi there you")'),
    ),
    (None, "<|start|>ines!<|message|>", "unknown_role", 1, "Unknown role: ines!"),
    (None, "<|start|><|message|>", "unknown_role", 1, "message header did not contain a role"),
    ("assistant", "<|channel|><|message|>", "empty_channel", 1, "no channel value found"),
    (
        None,
        "<|start|>who?<|channel|><|message|>",
        *("empty_channel", 4, "channel marker present but no channel value found in header"),
    ),
]


@pytest.mark.parametrize(("role", "text", "kind", "position", "phrase"), RAISED)
def test_an_error_says_it_in_both_libraries_words(role, text, kind, position, phrase):
    parser = StreamableParser(OURS, role)

    with pytest.raises(HarmonyParseError, match=re.escape(phrase)) as caught:
        take_all(parser, [*tokens_of(text), EOS])

    error = caught.value
    assert (error.kind, error.position) == (FaultKind(kind), position)
    assert f"position {position}" in str(error)
    assert pickle.loads(pickle.dumps(error)) == error


def test_an_implied_header_raises_once_when_it_begins_and_its_text_becomes_a_message():
    parser = StreamableParser(OURS, None)
    tokens = tokens_of("Hi there.<|end|><|start|>user<|message|>Yes<|end|>")

    errors = [error_of(parser, token) for token in tokens]

    assert [error is not None for error in errors] == [True] + [False] * (len(tokens) - 1)
    texts = [message.content[0].text for message in parser.messages]
    assert texts == ["Hi there.", "Yes"]
    assert error_of(parser, tokens_of("Hi")[0]).startswith("Unexpected token")


def test_positions_go_on_behind_the_end_of_a_stream():
    parser = StreamableParser(OURS, "assistant")
    for token in [*tokens_of("<|message|>Hi<|end|>"), EOS, EOS]:
        take(parser, token)

    with pytest.raises(HarmonyParseError) as caught:
        parser.process(CHANNEL)

    assert caught.value.position == 3
    assert caught.value.token_text == "<|channel|>"


@pytest.mark.parametrize(
    ("token", "error"), [(-1, ValueError), (5.0, TypeError), ("x", TypeError), (None, TypeError)]
)
def test_what_is_no_token_changes_nothing(token, error):
    parser = StreamableParser(OURS, "assistant").process(MESSAGE).process(5)
    before = view(parser)

    with pytest.raises(error):
        parser.process(token)

    assert view(parser) == before


def test_a_header_may_be_long_as_there(theirs):
    name = "x1" * 100
    tokens = tokens_of(f"<|channel|>commentary to={name}<|message|>Hi<|call|>")
    their, our = parsers(theirs, "assistant")

    for token in tokens:
        take(their, token)
        take(our, token)

    assert len(tokens) > 100
    assert view(our) == view(their)


def test_without_strictness_a_header_that_never_ends_streams_on_as_content():
    parser = StreamableParser(OURS, "assistant", strict=False)
    words = tokens_of("<|channel|>final" + " and so on" * 30)

    deltas = [parser.process(token).last_content_delta for token in words]

    assert "".join(filter(None, deltas)).strip() == ("and so on " * 30).strip()
    assert parser.current_channel == "final"


# --- Properties that look like fields -----------------------------------------------------------


TWO = "<|channel|>final<|message|>Hi<|end|><|start|>user<|message|>Yes<|end|>"


def test_messages_and_tokens_are_lists_that_do_not_grow():
    parser = StreamableParser(OURS, "assistant")
    kept, stream = [], tokens_of(TWO)

    for token in stream:
        parser.process(token)
        kept.append((parser.messages, parser.tokens))

    assert [len(tokens) for _, tokens in kept] == list(range(1, len(stream) + 1))
    assert [len(messages) for messages, _ in kept] == [0] * 4 + [1] * 5 + [2]
    assert kept[-1][1] == stream


# What somebody may do with a list without keeping it.
CHANGES = [
    lambda given: given.append(5),
    lambda given: given.clear(),
    lambda given: given.extend([5]),
    lambda given: given.insert(0, 5),
    lambda given: given.pop(),
    lambda given: given.remove(given[0]),
    lambda given: given.reverse(),
    lambda given: given.sort(key=id),
    lambda given: given.__delitem__(0),
    lambda given: given.__iadd__([5]),
    lambda given: given.__imul__(2),
    lambda given: given.__setitem__(0, 5),
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_list_that_was_given_is_the_callers_to_change(change, is_kept):
    parser = StreamableParser(OURS, "assistant")
    take_all(parser, tokens_of(TWO))
    kept = [parser.messages, parser.tokens] if is_kept else None

    change(parser.messages)
    change(parser.tokens)

    assert parser.tokens == tokens_of(TWO)
    assert [message.content[0].text for message in parser.messages] == ["Hi", "Yes"]
    assert kept is None or kept == [parser.messages, parser.tokens]


def test_a_list_that_nobody_keeps_is_not_copied():
    parser = StreamableParser(OURS, "assistant")
    seen = set()

    for token in tokens_of(TWO):
        parser.process(token)
        seen |= {id(parser.messages), id(parser.tokens)}

    assert len(seen) == 2
    assert type(copy.copy(parser.tokens)) is list
    assert type(pickle.loads(pickle.dumps(parser.messages))) is list


def test_a_parser_that_is_copied_or_pickled_goes_its_own_way():
    parser = StreamableParser(OURS, "assistant")
    take_all(parser, tokens_of(TWO)[:3])
    parser.messages, parser.tokens  # noqa: B018 - they are looked at

    for twin in (copy.deepcopy(parser), pickle.loads(pickle.dumps(parser))):
        take_all(twin, tokens_of(TWO)[3:])
        assert twin.tokens == tokens_of(TWO)
        assert len(twin.messages) == 2
    assert parser.tokens == tokens_of(TWO)[:3]
    assert parser.messages == []


def test_a_message_that_was_changed_stays_changed_and_does_not_disturb_the_parser():
    parser = StreamableParser(OURS, "assistant")
    for token in tokens_of("<|channel|>commentary to=functions.f<|message|>{}<|call|>"):
        parser.process(token)

    parser.messages[0].recipient = "functions.g"
    parser.process(START)

    assert parser.messages[0].recipient == "functions.g"
    assert parser.current_role is None


def test_tokens_of_other_integer_types_become_plain_integers():
    parser = StreamableParser(OURS, Role.ASSISTANT)

    for token in numpy.array([CHANNEL, 17196, MESSAGE, 12194]):
        parser.process(token)

    assert {type(token) for token in parser.tokens} == {int}
    assert parser.current_content == "Hi"


def test_state_data_can_be_kept():
    parser = StreamableParser(OURS, "assistant").process(CHANNEL)
    kept = parser.state_data

    parser.process(17196)

    assert kept == {"state": "Header", "header_tokens": [CHANNEL]}
