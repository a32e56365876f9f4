"""Headers: what stands between `<|start|>` and `<|message|>`, read from its sections.

Special tokens cut a header into sections, and the sections into runs of text. Nothing here ever
looks for a marker inside decoded text: a run that spells one out is text like any other.

Format guide, "Message format" and "Receiving tool calls": a header is a role section (a role with
perhaps a name, or a tool's name), perhaps a channel section, perhaps a type after
`<|constrain|>`; the recipient, ` to=NAME`, stands in the role section or in the channel section.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from harmony_stream.values.events import FaultKind
from harmony_stream.values.header import (
    CONSTRAIN_MARKER,
    KNOWN_CHANNELS,
    KNOWN_ROLES,
    REPEATED_ROLE,
    USUAL_TYPES,
    Header,
    is_role_word,
    is_tool,
    known_role,
    name_of,
    readable,
)
from harmony_stream.values.messages import Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Section(StrEnum):
    """The parts of a header, named after the parser's states in them."""

    ROLE = "ROLE"
    CHANNEL = "CHANNEL"
    CONSTRAIN = "CONSTRAIN"


class Opening(StrEnum):
    """How a header began, which decides where its role comes from."""

    START = "start"
    """By `<|start|>`: the first word is the role."""
    REPEATED = "repeated"
    """By `<|start|>`, directly after a prompt that had already opened a header."""
    PROMPT = "prompt"
    """By the prompt, which holds the role."""
    IMPLIED = "implied"
    """By something else where `<|start|>` was due; the given role is meant."""
    CONTINUED = "continued"
    """By `<|channel|>` inside content: the role is that of the message before."""

    __hash__ = str.__hash__  # that of an enumeration takes 250 ns, and headers are looked up by it


class Run(NamedTuple):
    """Header text between two special tokens.

    Attributes:
        section: where it stands.
        text: what it says. Bytes that are not UTF-8 stand in it as `surrogateescape` has them.
        opens: whether the special token before it began the section.
    """

    section: Section
    text: str
    opens: bool


class TextPosition(NamedTuple):
    """A character of a header: which run, and its offset there; -1 is the token before the run."""

    run: int
    offset: int


class LeftWord(NamedTuple):
    """A word of a header that is part of no field.

    Attributes:
        place: where it begins.
        end: where it ends.
        text: the white space between it and the left-over word before, and the word.
    """

    place: TextPosition
    end: TextPosition
    text: str


class HeaderFault(NamedTuple):
    """Something wrong with a header: what, where, and the text at fault."""

    kind: FaultKind
    place: TextPosition
    text: str


class TextReading(NamedTuple):
    """What a header says.

    Attributes:
        header: its fields.
        faults: what is wrong with it, in order.
        rest: of a header that `<|message|>` did not close: where the content begins, if anywhere.
        is_bare: whether it holds nothing but its role.
        left: the words that are part of no field, in order; each of them is in a fault.
    """

    header: Header
    faults: tuple[HeaderFault, ...]
    rest: TextPosition | None
    is_bare: bool
    left: tuple[LeftWord, ...] = ()


# Names are letters, digits and _ $ . / + : - (and the characters that stand for broken bytes).
_NAME = re.compile(r"[\w$./+:\ufffd\udc80-\udcff-]+")
# A type is a name that begins and ends with a letter or a digit: `write:` is the start of a
# sentence.
_TYPE = re.compile(
    r"(?:[^\W_]|[\ufffd\udc80-\udcff])"
    r"(?:[\w./+:\ufffd\udc80-\udcff-]*(?:[^\W_]|[\ufffd\udc80-\udcff]))?"
)
_WORD = re.compile(r"\S+")
_RECIPIENT = re.compile(r"to=([\w$./+:\ufffd\udc80-\udcff-]*)")
# A channel word is kept whole, however odd (`commentary?`), unless what is glued to a known channel
# can only be content.
_GLUED_CONTENT = re.compile(
    r"(?:analysis|commentary|final)(?=[\[{(<\"'`]|[^\x00-\x7f\ufffd\udc80-\udcff])"
)
# A role with a colon: only a name may be glued to it. What cannot be one is a word of its own.
_ROLE_AND_NAME = re.compile(
    rf"(?i:{'|'.join(KNOWN_ROLES)})(?=:)(?::[\w$./+:\ufffd\udc80-\udcff-]+)?"
)


class _WordKind(StrEnum):
    ROLE = "role"
    CHANNEL = "channel"
    RECIPIENT = "recipient"
    CONSTRAIN = "constrain"
    BARE = "bare"


class _Word(NamedTuple):
    kind: _WordKind
    text: str
    place: TextPosition
    section: Section


# The first word of a section that is not `to=` has the section's meaning, unless it has a role
# already.
_FIRST_WORD = {
    Section.ROLE: _WordKind.ROLE,
    Section.CHANNEL: _WordKind.CHANNEL,
    Section.CONSTRAIN: _WordKind.CONSTRAIN,
}


def _words(runs: Sequence[Run], *, has_role_word: bool) -> Iterator[_Word]:
    expected: _WordKind | None = None
    for number, run in enumerate(runs):
        if run.opens:
            expected = _FIRST_WORD[run.section]
            if expected is _WordKind.ROLE and not has_role_word:
                expected = None
        for chunk in _WORD.finditer(run.text):
            position, end = chunk.span()
            while position < end:
                kind, stop = _next_word(run.text, position, end, expected)
                if kind is expected:
                    expected = None
                yield _Word(
                    kind, run.text[position:stop], TextPosition(number, position), run.section
                )
                position = stop


def _next_word(
    text: str, position: int, end: int, expected: _WordKind | None
) -> tuple[_WordKind, int]:
    """The kind and the end of the word that begins at `position` of a chunk without spaces."""
    if recipient := _RECIPIENT.match(text, position, end):
        return _WordKind.RECIPIENT, recipient.end()
    if expected is _WordKind.ROLE:
        named = _ROLE_AND_NAME.match(text, position, end)
        return expected, named.end() if named else end
    if expected is _WordKind.CHANNEL:
        glued = _GLUED_CONTENT.match(text, position, end)
        return expected, glued.end() if glued else end
    name = _NAME.match(text, position, end)
    stop = name.end() if name else end
    if expected is _WordKind.CONSTRAIN and _TYPE.fullmatch(text, position, stop):
        return expected, stop
    return _WordKind.BARE, stop


def read_header(
    runs: Sequence[Run],
    opening: Opening,
    role: Role | None,
    name: str | None,
    *,
    closed: bool,
) -> TextReading:
    """Read the runs of a header.

    Args:
        runs: at least one; the first opens the role section (or the channel section of a header
            that `<|channel|>` began).
        opening: how the header began.
        role: the role that the prompt gave, None if it gave none.
        name: the name that goes with it.
        closed: whether `<|message|>` ended the header. If not, its fields count only before the
            first word that is none of them.

    >>> runs = [Run(Section.ROLE, "assistant", True), Run(Section.CHANNEL, "final json", True)]
    >>> read_header(runs, Opening.START, None, None, closed=True).header
    Header(role=<Role.ASSISTANT: 'assistant'>, name=None, channel='final', recipient=None, \
content_type='json')
    """
    return _Reader(runs, opening, role, name, closed).read()


class _Reader:
    """Reads one header; its methods fill in the fields one after the other."""

    def __init__(
        self,
        runs: Sequence[Run],
        opening: Opening,
        role: Role | None,
        name: str | None,
        closed: bool,
    ) -> None:
        self.runs = runs
        self.opening = opening
        self.given_role = role or Role.ASSISTANT
        self.given_name = name
        self.closed = closed
        self.expects_role = opening in (Opening.START, Opening.REPEATED)
        self.words = list(_words(runs, has_role_word=self.expects_role))
        self.faults: list[HeaderFault] = []
        self.left: list[_Word] = []
        self.rest: TextPosition | None = None

    def read(self) -> TextReading:
        self.drop_given_role()
        self.drop_repeated_channels()
        self.take_channel_for_type()
        if not self.closed:
            self.cut_at_name()
            self.cut_at_glued_content()
            self.cut_at_lone_word()
            self.cut_at_first_bare_word()
        channel = self.last_of(_WordKind.CHANNEL, Section.CHANNEL, FaultKind.DUPLICATE_CHANNEL)
        recipient = self.last_recipient()
        if (
            not self.closed
            and (word := self.role_word())
            and self.refuses(word, channel, recipient)
        ):
            self.cut_at(word.place)
            channel = recipient = None
        role, name, channel = self.read_role(channel, recipient)
        if self.opening is Opening.REPEATED and role is not self.given_role:
            self.report(FaultKind.UNEXPECTED_START, TextPosition(0, -1), "")
        header = Header(role, name, channel, recipient, self.read_type())
        self.faults.sort(key=lambda fault: fault.place)
        return TextReading(header, tuple(self.faults), self.rest, self.is_bare(), self.left_words())

    def left_words(self) -> tuple[LeftWord, ...]:
        """The left-over words in order, each with the white space between it and the last one."""
        found: list[LeftWord] = []
        for word in sorted(self.left, key=lambda word: word.place):
            end = TextPosition(word.place.run, word.place.offset + len(word.text))
            gap = self.gap(found[-1].end, word.place) if found else ""
            found.append(LeftWord(word.place, end, readable(gap + word.text)))
        return tuple(found)

    def gap(self, end: TextPosition, place: TextPosition) -> str:
        """White space between two words; a space where something else stands between them."""
        between = self.runs[end.run].text[end.offset : place.offset] if end.run == place.run else ""
        return between if not between.strip() and end.run == place.run else " "

    def report(self, kind: FaultKind, place: TextPosition, text: str) -> None:
        self.faults.append(HeaderFault(kind, place, readable(text)))

    # -- which words count ------------------------------------------------------------------------

    def drop_given_role(self) -> None:
        """The given role may be repeated once, silently; each role once more, as a fault."""
        expected = None if self.expects_role else self.given_role.value
        for word in [word for word in self.words if word.section is Section.ROLE]:
            if word.kind is _WordKind.ROLE:
                expected = word.text.lower()
            elif word.kind is _WordKind.BARE and word.text.lower() == expected:
                self.words.remove(word)
                if self.expects_role:
                    self.report(FaultKind.UNKNOWN_ROLE, word.place, word.text)
                return
            elif word.kind is _WordKind.BARE:
                return

    def drop_repeated_channels(self) -> None:
        """A channel's name is never a type: beside `<|channel|>` it is a second channel.

        In a header that breaks off, only in the role's place: behind the channel it may be the
        first word of an answer ("final analysis shows ...").
        """
        if all(run.section is not Section.CHANNEL for run in self.runs):
            return
        for section in Section if self.closed else (Section.ROLE,):
            words = [word for word in self.words if word.section is section]
            bare = [word for word in words if word.kind is _WordKind.BARE]
            types = [word for word in words if word.kind is _WordKind.CONSTRAIN]
            for word in (*(bare if len(bare) == 1 else ()), *types):
                if _is_channel_word(word):
                    self.words.remove(word)
                    self.report(FaultKind.DUPLICATE_CHANNEL, word.place, word.text)

    def take_channel_for_type(self) -> None:
        """Without `<|channel|>`, a channel's name behind `<|constrain|>` is the channel."""
        if any(run.section is Section.CHANNEL for run in self.runs):
            return
        for word in self.words:
            if word.kind is _WordKind.CONSTRAIN and _is_channel_word(word):
                channel = word._replace(kind=_WordKind.CHANNEL, text=word.text.lower())
                self.words[self.words.index(word)] = channel

    def bare_words(self) -> list[_Word]:
        return [word for word in self.words if word.kind is _WordKind.BARE]

    def cut_at_name(self) -> None:
        """What follows a role and a colon is content if no more of a header came: `assistant:42`.

        A name alone says nothing, so the text must not pass for one and vanish.
        """
        word = self.role_word()
        is_alone = all(run.section is Section.ROLE for run in self.runs) and not any(
            other.kind is _WordKind.RECIPIENT for other in self.words
        )
        if word and is_alone and known_role(word.text) and ":" in word.text:
            role = word.text.partition(":")[0]
            self.words[self.words.index(word)] = word._replace(text=role)
            self.cut_at(word.place._replace(offset=word.place.offset + len(role)))

    def cut_at_glued_content(self) -> None:
        """What is glued to a known channel is content if no `<|message|>` came: `final42`."""
        word = next((word for word in reversed(self.words) if word.kind is _WordKind.CHANNEL), None)
        if word is None or _is_channel_word(word):
            return
        if channel := next(filter(word.text.lower().startswith, KNOWN_CHANNELS), None):
            self.words[self.words.index(word)] = word._replace(text=channel)
            self.cut_at(word.place._replace(offset=word.place.offset + len(channel)))

    def cut_at_lone_word(self) -> None:
        """The word at which a header breaks off is content, unless it can be what it stands for.

        Behind `<|channel|>`, that is the beginning of a known channel; behind `<|constrain|>`, the
        beginning of a usual type, and any type of a call.
        """
        word = self.words[-1] if self.words else None
        if word is None or word.place.run != len(self.runs) - 1:
            return
        is_call = any(other.kind is _WordKind.RECIPIENT for other in self.words)
        expected = {
            _WordKind.CHANNEL: KNOWN_CHANNELS,
            _WordKind.CONSTRAIN: () if is_call else USUAL_TYPES,
        }
        allowed = expected.get(word.kind)
        if allowed and not any(name.startswith(word.text) for name in allowed):
            self.cut_at(word.place)

    def cut_at_first_bare_word(self) -> None:
        if bare := self.bare_words():
            self.cut_at(bare[0].place)

    def cut_at(self, place: TextPosition) -> None:
        """The content begins here: neither the words behind it nor their faults count."""
        self.rest = place
        self.words = [word for word in self.words if word.place < place]
        self.faults = [fault for fault in self.faults if fault.place < place]

    def counts(self, place: TextPosition) -> bool:
        return self.rest is None or place < self.rest

    # -- the fields -------------------------------------------------------------------------------

    def last_of(self, kind: _WordKind, section: Section, duplicate: FaultKind) -> str | None:
        """The word of a section that may come once; the last that says something wins."""
        markers = [
            TextPosition(number, -1)
            for number, run in enumerate(self.runs)
            if run.opens and run.section is section and self.counts(TextPosition(number, -1))
        ]
        for place in markers[1:]:
            self.report(duplicate, place, "")
        words = [word for word in self.words if word.kind is kind]
        if words:
            return readable(words[-1].text)
        if markers and self.is_finished(markers[-1].run) and not self.has_bare_word(section):
            self.report(_EMPTY[section], self.end_of_section(markers[-1].run), "")
        return None

    def is_finished(self, run: int) -> bool:
        """Whether a section came to an end within the header, so that it can be called empty."""
        end = self.end_of_section(run)
        return self.counts(end) and (self.closed or end.run < len(self.runs))

    def end_of_section(self, run: int) -> TextPosition:
        following = range(run + 1, len(self.runs))
        end = next((number for number in following if self.runs[number].opens), len(self.runs))
        return TextPosition(end, -1)

    def has_bare_word(self, section: Section) -> bool:
        return any(word.kind is _WordKind.BARE and word.section is section for word in self.words)

    def last_recipient(self) -> str | None:
        words = [word for word in self.words if word.kind is _WordKind.RECIPIENT]
        for word in words[1:]:
            self.report(FaultKind.DUPLICATE_RECIPIENT, word.place, word.text)
        named = [recipient for word in words if (recipient := word.text.removeprefix("to="))]
        if len(words) == 1 and not named:
            self.report(FaultKind.EMPTY_RECIPIENT, words[0].place, words[0].text)
        return readable(named[-1]) if named else None

    def role_word(self) -> _Word | None:
        return next((word for word in self.words if word.kind is _WordKind.ROLE), None)

    def refuses(self, word: _Word, channel: str | None, recipient: str | None) -> bool:
        """Whether a word in the role's place is neither a role nor the name of a tool."""
        is_name = _NAME.fullmatch(word.text) and not _is_channel_word(word)
        may_be_tool = is_name and channel != "final" and not is_tool(recipient)
        if recipient is None and word.text.lower().startswith(Role.ASSISTANT.value):
            may_be_tool = False  # the assistant, and what it says glued to its role
        if not self.closed:  # a lone word is text: only more of a header makes a name of it
            may_be_tool = may_be_tool and (channel or recipient) is not None
        return not (is_role_word(word.text) or may_be_tool)

    def read_role(
        self, channel: str | None, recipient: str | None
    ) -> tuple[Role, str | None, str | None]:
        """The role and the name, and the channel, which may stand in the role's place."""
        word = self.role_word()
        if word is None:
            return self.read_absent_role(channel)
        if known := known_role(word.text):
            if self.is_channel_for_name(known[1], channel):
                self.report(FaultKind.UNKNOWN_ROLE, word.place, word.text)
                return known[0], name_of(known[0]), _channel_in(str(known[1]))
            return *known, channel or self.channel_behind_role()
        if self.is_channel_in_place_of_role(word):
            self.report(FaultKind.UNKNOWN_ROLE, word.place, word.text)
            return self.given_role, self.given_name, _channel_in(word.text)
        if glued := REPEATED_ROLE.fullmatch(word.text.lower()):
            self.report(FaultKind.UNKNOWN_ROLE, word.place, word.text)
            role = Role(glued[1])
            return role, name_of(role), channel or glued[2]
        if self.refuses(word, channel, recipient):
            self.report(FaultKind.UNKNOWN_ROLE, word.place, word.text)
            if not _is_channel_word(word):
                self.left.append(_without_role(word))
            return self.given_role, self.given_name, channel
        return Role.TOOL, readable(word.text), channel

    def channel_behind_role(self) -> str | None:
        """The channel where its marker was left out: thinking must not pass for an answer."""
        bare = next(iter(self.bare_words()), None)
        if bare is None or not self.is_channel_in_place_of_role(bare):
            return None
        self.words.remove(bare)
        self.report(FaultKind.UNPARSED_HEADER_TEXT, bare.place, bare.text)
        return _channel_in(bare.text)

    def read_absent_role(self, channel: str | None) -> tuple[Role, str | None, str | None]:
        """The given role; a first word that repeats it, or that names the channel, is no type."""
        role, name = self.given_role, self.given_name
        if self.expects_role:
            if self.is_finished(0):
                self.report(FaultKind.UNKNOWN_ROLE, self.end_of_section(0), "")
            return role, name, channel
        first = next(iter(self.bare_words()), None)
        if first is None or first.section is not Section.ROLE:
            return role, name, channel
        glued = REPEATED_ROLE.fullmatch(first.text.lower())
        if self.is_channel_in_place_of_role(first):
            channel = _channel_in(first.text)
        elif glued and glued[1] == role.value:
            channel = channel or glued[2]
        else:
            return role, name, channel
        self.words.remove(first)
        self.report(FaultKind.UNKNOWN_ROLE, first.place, first.text)
        return role, name, channel

    def is_channel_in_place_of_role(self, word: _Word) -> bool:
        return (
            self.closed
            and _channel_in(word.text) is not None
            and word.section is Section.ROLE
            and all(run.section is not Section.CHANNEL for run in self.runs)
        )

    def is_channel_for_name(self, name: str | None, channel: str | None) -> bool:
        """Whether `assistant:analysis` names the channel, not an author."""
        return self.closed and channel is None and _channel_in(name or "") is not None

    def read_type(self) -> str | None:
        constrain = self.last_of(
            _WordKind.CONSTRAIN, Section.CONSTRAIN, FaultKind.DUPLICATE_CONSTRAIN
        )
        bare = self.bare_words()
        chosen = None if constrain else self.choose_type(bare)
        left = [word for word in bare if word is not chosen]
        if left:
            text = " ".join(word.text for word in left)
            self.report(FaultKind.UNPARSED_HEADER_TEXT, left[0].place, text)
            self.left += left
        if constrain:
            return CONSTRAIN_MARKER + constrain
        return readable(chosen.text) if chosen else None

    def choose_type(self, bare: Sequence[_Word]) -> _Word | None:
        """One type-shaped word is the type; of several, the first that is a usual type."""
        if len(bare) == 1 and not self.left and self.may_be_type(bare[0]):
            return bare[0]
        return next((word for word in bare if word.text in USUAL_TYPES), None)

    def may_be_type(self, word: _Word) -> bool:
        """Whether a word is shaped like a type and stands where one may stand.

        That is behind the channel, or behind the recipient. Before them stands a usual type at
        most: anything else is what the model says before its call.
        """
        if not _TYPE.fullmatch(word.text) or _is_channel_word(word) or self.is_glued(word):
            return False
        if word.text not in USUAL_TYPES and self.follows_empty_recipient(word):
            return False
        channels = [
            number for number, run in enumerate(self.runs) if run.section is Section.CHANNEL
        ]
        recipients = [other.place for other in self.words if other.kind is _WordKind.RECIPIENT]
        places = [*(TextPosition(number, -1) for number in channels), *recipients]
        return not channels or word.text in USUAL_TYPES or min(places) < word.place

    def follows_empty_recipient(self, word: _Word) -> bool:
        """Whether a word stands where the recipient is missing: `to= shell` names a tool."""
        before = next((other for other in reversed(self.words) if other.place < word.place), None)
        return before is not None and before.text == "to=" and before.section is word.section

    def is_glued(self, word: _Word) -> bool:
        """Whether a word follows another one without white space."""
        run, offset = word.place
        return offset > 0 and not self.runs[run].text[offset - 1].isspace()

    def is_bare(self) -> bool:
        only = self.words[0] if len(self.words) == 1 else None
        has_only_role = not self.words or (
            only is not None and only.kind is _WordKind.ROLE and known_role(only.text) is not None
        )
        is_flawless = not self.faults and self.rest is None
        return len(self.runs) == 1 and is_flawless and has_only_role


_EMPTY = {
    Section.CHANNEL: FaultKind.EMPTY_CHANNEL,
    Section.CONSTRAIN: FaultKind.EMPTY_CONSTRAIN,
}


def _channel_in(text: str) -> str | None:
    """The known channel that a word means where no channel is due: also `Analysis`, `analysis:`."""
    channel = text.rstrip(".:").lower()
    return channel if channel in KNOWN_CHANNELS else None


def _without_role(word: _Word) -> _Word:
    """What is glued to the role of the assistant, without that role."""
    role = Role.ASSISTANT.value
    if not word.text.lower().startswith(role):
        return word
    place = word.place._replace(offset=word.place.offset + len(role))
    return word._replace(text=word.text[len(role) :], place=place)


def _is_channel_word(word: _Word) -> bool:
    return word.text.lower() in KNOWN_CHANNELS
