"""The fields of a header, read from its words.

Format guide, "Message format" and "Receiving tool calls": a header is a role section (a role with
perhaps a name, or a tool's name), perhaps a channel section, perhaps a type after
`<|constrain|>`; the recipient, ` to=NAME`, is in the role section or in the channel section.

Theory of operation
===================

Models leave parts of a header out, say them twice, or write their answer into it. `read_header`
passes one draft through these steps. A step takes a draft and returns another; none changes one::

    words       drop what says nothing new: the given role, a channel's name beside `<|channel|>`
    content     where `<|message|>` did not come: the first word that cannot be part of a header
    channel     the last non-empty word of the channel section
    recipient   the last `to=NAME`
    role        the first row of ROLE_RULES that fits
    type        the word after `<|constrain|>`, or one word in a type's place

A word that no step takes is text that somebody wrote: it is in a fault, and in `left`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from harmony_stream.values.faults import FaultKind
from harmony_stream.values.header import (
    CONSTRAIN_MARKER,
    KNOWN_CHANNELS,
    USUAL_TYPES,
    Header,
    known_role,
    readable,
)
from harmony_stream.values.header_words import (
    TYPE,
    Run,
    Section,
    TextPosition,
    Word,
    WordKind,
    words_of,
)
from harmony_stream.values.messages import Role
from harmony_stream.values.role_rules import Author, RoleCase, author_of, without_role

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Opening(StrEnum):
    """The way in which a header began, which decides where its role comes from."""

    START = "start"
    """By `<|start|>`: the first word is the role."""
    REPEATED = "repeated"
    """By `<|start|>`, directly after a prompt that had already opened a header."""
    PROMPT = "prompt"
    """By the prompt, which holds the role."""
    IMPLIED = "implied"
    """By another token where `<|start|>` was expected; the given role is meant."""
    CONTINUED = "continued"
    """By `<|channel|>` inside content: the role is that of the message before."""

    __hash__ = str.__hash__  # that of an enumeration takes 250 ns, and headers are looked up by it


class HeaderFault(NamedTuple):
    """A fault of a header: its kind, its place, and the text at fault."""

    kind: FaultKind
    place: TextPosition
    text: str


class LeftWord(NamedTuple):
    """A word of a header that is part of no field.

    Attributes:
        place: its first character.
        end: the place after its last character.
        text: the white space between the left-over word before and this one, and the word.
    """

    place: TextPosition
    end: TextPosition
    text: str


class TextReading(NamedTuple):
    """The meaning of a header.

    Attributes:
        header: its fields.
        faults: the breaches of the format, in order.
        rest: of a header that `<|message|>` did not close: where the content begins, or None.
        is_bare: True if it holds nothing but its role.
        left: the words that are part of no field, in order; each of them is in a fault.
    """

    header: Header
    faults: tuple[HeaderFault, ...]
    rest: TextPosition | None
    is_bare: bool
    left: tuple[LeftWord, ...] = ()


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
        name: the name that belongs to it.
        closed: True if `<|message|>` ended the header. If not, its fields count only before the
            first word that is none of them.

    >>> runs = [Run(Section.ROLE, "assistant", True), Run(Section.CHANNEL, "final json", True)]
    >>> read_header(runs, Opening.START, None, None, closed=True).header
    Header(role=<Role.ASSISTANT: 'assistant'>, name=None, channel='final', recipient=None, \
content_type='json')
    """
    draft = _new_draft(runs, opening, role or Role.ASSISTANT, name, closed)
    for step in _STEPS_OF_CLOSED if closed else _STEPS_OF_BROKEN_OFF:
        draft = step(draft)
    channel, draft = _read_channel(draft)
    recipient, draft = _read_recipient(draft)
    if not closed and (word := _word_that_is_content(draft, channel, recipient)):
        draft, channel, recipient = draft.cut(word.place), None, None
    author, draft = _read_role(draft, channel, recipient)
    content_type, draft = _read_type(draft)
    header = Header(author.role, author.name, author.channel, recipient, content_type)
    faults = tuple(sorted(draft.faults, key=lambda fault: fault.place))
    return TextReading(header, faults, draft.rest, _is_bare(draft), _left_words(draft))


class _Draft(NamedTuple):
    """A header that is being read.

    Attributes:
        runs, opening, name, closed: the arguments of `read_header`.
        role: the role that the prompt gave, the assistant's if it gave none.
        words: the words in order, less those that were dropped.
        has_channel_section: True if `<|channel|>` is in the header.
        faults: the faults so far, in any order.
        left: the words that are part of no field.
        rest: where the content begins, or None.
    """

    runs: Sequence[Run]
    opening: Opening
    role: Role
    name: str | None
    closed: bool
    words: tuple[Word, ...]
    has_channel_section: bool
    faults: tuple[HeaderFault, ...] = ()
    left: tuple[Word, ...] = ()
    rest: TextPosition | None = None

    @property
    def spells_role(self) -> bool:
        """True if the first word is in the role's place."""
        return self.opening in _SPELL_ROLE

    @property
    def role_word(self) -> Word | None:
        """The word in the role's place."""
        return next(iter(self.of(WordKind.ROLE)), None)

    def of(self, kind: WordKind) -> list[Word]:
        return [word for word in self.words if word.kind is kind]

    def report(self, kind: FaultKind, place: TextPosition, text: str = "") -> _Draft:
        return self._replace(faults=(*self.faults, HeaderFault(kind, place, readable(text))))

    def report_word(self, kind: FaultKind, word: Word) -> _Draft:
        return self.report(kind, word.place, word.text)

    def without(self, word: Word) -> _Draft:
        return self._replace(words=tuple(other for other in self.words if other is not word))

    def with_word(self, word: Word, other: Word) -> _Draft:
        words = (other if each is word else each for each in self.words)
        return self._replace(words=tuple(words))

    def cut(self, place: TextPosition) -> _Draft:
        """Begin the content here: neither the words after it nor their faults count."""
        return self._replace(
            rest=place,
            words=tuple(word for word in self.words if word.place < place),
            faults=tuple(fault for fault in self.faults if fault.place < place),
        )

    def counts(self, place: TextPosition) -> bool:
        """True before the content."""
        return self.rest is None or place < self.rest

    def end_of_section(self, run: int) -> TextPosition:
        following = range(run + 1, len(self.runs))
        end = next((number for number in following if self.runs[number].opens), len(self.runs))
        return TextPosition(end, -1)

    def is_finished(self, run: int) -> bool:
        """True if a section ended within the header, so that it can be called empty."""
        end = self.end_of_section(run)
        return self.counts(end) and (self.closed or end.run < len(self.runs))


_SPELL_ROLE = (Opening.START, Opening.REPEATED)


def _new_draft(
    runs: Sequence[Run], opening: Opening, role: Role, name: str | None, closed: bool
) -> _Draft:
    words = tuple(words_of(runs, has_role_word=opening in _SPELL_ROLE))
    has_channel = any(run.section is Section.CHANNEL for run in runs)
    return _Draft(runs, opening, role, name, closed, words, has_channel)


# --- Words that say nothing new ---------------------------------------------------------------


def _drop_given_role(draft: _Draft) -> _Draft:
    """Drop a role that is repeated: the prompt's in silence, any other as a fault.

    After a prompt that ends with `<|start|>assistant`, models often write `assistant` again. That
    is harmless. In a header of their own, the second word is a breach of the format.
    """
    expected = None if draft.spells_role else draft.role.value
    for word in draft.words:
        if word.section is not Section.ROLE:
            continue
        if word.kind is WordKind.ROLE:
            expected = word.text.lower()
        elif word.kind is WordKind.BARE:
            if word.text.lower() != expected:
                return draft
            draft = draft.without(word)
            return draft.report_word(FaultKind.UNKNOWN_ROLE, word) if draft.spells_role else draft
    return draft


def _drop_repeated_channels(draft: _Draft) -> _Draft:
    """Drop the names of channels beside `<|channel|>`: each is a second channel, never a type.

    In a header that breaks off, only in the role's place: after the channel it may be the first
    word of an answer ("final analysis shows ...").
    """
    if not draft.has_channel_section:
        return draft
    all_bare, all_types = draft.of(WordKind.BARE), draft.of(WordKind.CONSTRAIN)
    for section in Section if draft.closed else (Section.ROLE,):
        bare = [word for word in all_bare if word.section is section]
        types = [word for word in all_types if word.section is section]
        for word in (*(bare if len(bare) == 1 else ()), *types):
            if word.is_channel:
                draft = draft.without(word).report_word(FaultKind.DUPLICATE_CHANNEL, word)
    return draft


def _take_channel_for_type(draft: _Draft) -> _Draft:
    """Without `<|channel|>`, take a channel's name after `<|constrain|>` for the channel."""
    if draft.has_channel_section:
        return draft
    for word in draft.of(WordKind.CONSTRAIN):
        if word.is_channel:
            channel = word._replace(kind=WordKind.CHANNEL, text=word.text.lower())
            draft = draft.with_word(word, channel)
    return draft


# --- Where the content begins, if `<|message|>` did not come ------------------------------------
#
# The safe mistake is to show too much of a header, not to hide what the model said. So a word is
# content unless it can be what its place asks for.


def _cut_after_role(draft: _Draft) -> _Draft:
    """After a role and a colon, if no more of a header came: `assistant:42`.

    A name alone says nothing, so the text must not pass for one and vanish.
    """
    word = draft.role_word
    is_alone = all(run.section is Section.ROLE for run in draft.runs) and not any(
        other.kind is WordKind.RECIPIENT for other in draft.words
    )
    if word and is_alone and known_role(word.text) and ":" in word.text:
        return _cut_inside(draft, word, word.text.index(":"))
    return draft


def _cut_after_channel(draft: _Draft) -> _Draft:
    """After a known channel, if more is glued to it: `final42`."""
    word = next(reversed(draft.of(WordKind.CHANNEL)), None)
    if word is None or word.is_channel:
        return draft
    channel = next(filter(word.text.lower().startswith, KNOWN_CHANNELS), None)
    return draft if channel is None else _cut_inside(draft, word, len(channel), channel)


def _cut_inside(draft: _Draft, word: Word, width: int, head: str | None = None) -> _Draft:
    """Leave the first characters of a word, perhaps in another spelling; the others are content."""
    shorter = word._replace(text=head or word.text[:width])
    return draft.with_word(word, shorter).cut(word.after(width))


def _cut_at_lone_word(draft: _Draft) -> _Draft:
    """At the word with which the header breaks off, unless it can be what its place asks for.

    After `<|channel|>`, that is the beginning of a known channel; after `<|constrain|>`, the
    beginning of a usual type, and any type of a call.
    """
    word = draft.words[-1] if draft.words else None
    if word is None or word.place.run != len(draft.runs) - 1:
        return draft
    allowed: tuple[str, ...] = ()
    if word.kind is WordKind.CHANNEL:
        allowed = KNOWN_CHANNELS
    elif word.kind is WordKind.CONSTRAIN and not draft.of(WordKind.RECIPIENT):
        allowed = USUAL_TYPES
    is_odd = allowed and not any(name.startswith(word.text) for name in allowed)
    return draft.cut(word.place) if is_odd else draft


def _cut_at_first_bare_word(draft: _Draft) -> _Draft:
    """At the first word that is in no field's place."""
    bare = draft.of(WordKind.BARE)
    return draft.cut(bare[0].place) if bare else draft


_Step: TypeAlias = "Callable[[_Draft], _Draft]"

_STEPS_OF_CLOSED: tuple[_Step, ...] = (
    _drop_given_role,
    _drop_repeated_channels,
    _take_channel_for_type,
)
_STEPS_OF_BROKEN_OFF: tuple[_Step, ...] = (
    *_STEPS_OF_CLOSED,
    _cut_after_role,
    _cut_after_channel,
    _cut_at_lone_word,
    _cut_at_first_bare_word,
)


# --- Channel and recipient ----------------------------------------------------------------------


def _read_channel(draft: _Draft) -> tuple[str | None, _Draft]:
    return _last_of(draft, WordKind.CHANNEL, Section.CHANNEL)


def _last_of(draft: _Draft, kind: WordKind, section: Section) -> tuple[str | None, _Draft]:
    """Return the word of a section that may come once. The last non-empty value wins."""
    markers = [
        TextPosition(number, -1)
        for number, run in enumerate(draft.runs)
        if run.opens and run.section is section and draft.counts(TextPosition(number, -1))
    ]
    for place in markers[1:]:
        draft = draft.report(_DUPLICATE[section], place)
    words = draft.of(kind)
    if words:
        return readable(words[-1].text), draft
    has_bare_word = any(word.section is section for word in draft.of(WordKind.BARE))
    if markers and draft.is_finished(markers[-1].run) and not has_bare_word:
        draft = draft.report(_EMPTY[section], draft.end_of_section(markers[-1].run))
    return None, draft


_DUPLICATE = {
    Section.CHANNEL: FaultKind.DUPLICATE_CHANNEL,
    Section.CONSTRAIN: FaultKind.DUPLICATE_CONSTRAIN,
}
_EMPTY = {
    Section.CHANNEL: FaultKind.EMPTY_CHANNEL,
    Section.CONSTRAIN: FaultKind.EMPTY_CONSTRAIN,
}


def _read_recipient(draft: _Draft) -> tuple[str | None, _Draft]:
    words = draft.of(WordKind.RECIPIENT)
    for word in words[1:]:
        draft = draft.report_word(FaultKind.DUPLICATE_RECIPIENT, word)
    named = [recipient for word in words if (recipient := word.text.removeprefix("to="))]
    if len(words) == 1 and not named:
        draft = draft.report_word(FaultKind.EMPTY_RECIPIENT, words[0])
    return (readable(named[-1]) if named else None), draft


# --- The role -----------------------------------------------------------------------------------


def _case_of(draft: _Draft, channel: str | None, recipient: str | None) -> RoleCase:
    """Return the facts that `ROLE_RULES` decides by."""
    bare = next(iter(draft.of(WordKind.BARE)), None)
    if bare is not None and bare.section is not Section.ROLE:
        bare = None
    return RoleCase(
        draft.role,
        draft.name,
        draft.role_word if draft.spells_role else bare,
        bare,
        channel,
        recipient,
        draft.closed,
        draft.has_channel_section,
        draft.is_finished(0),
    )


def _word_that_is_content(draft: _Draft, channel: str | None, recipient: str | None) -> Word | None:
    """Return the word in the role's place if it is neither a role nor the name of a tool."""
    case = _case_of(draft, channel, recipient)
    return case.word if draft.spells_role and case.is_refused else None


def _read_role(draft: _Draft, channel: str | None, recipient: str | None) -> tuple[Author, _Draft]:
    case = _case_of(draft, channel, recipient)
    author, rule = author_of(case, spells_role=draft.spells_role)
    if rule.fault:
        draft = _report_role(draft, rule.fault, author.word)
    if rule.leaves_word and author.word:
        draft = draft._replace(left=(without_role(author.word),))
    if draft.opening is Opening.REPEATED and author.role is not draft.role:
        draft = draft.report(FaultKind.UNEXPECTED_START, TextPosition(0, -1))
    return author, draft


def _report_role(draft: _Draft, fault: FaultKind, word: Word | None) -> _Draft:
    """Report a word that says who writes, or its absence; such a word can be no type."""
    if word is None:
        return draft.report(fault, draft.end_of_section(0))
    draft = draft.report_word(fault, word)
    return draft.without(word) if word.kind is WordKind.BARE else draft


# --- The type, and what is left over ------------------------------------------------------------


def _read_type(draft: _Draft) -> tuple[str | None, _Draft]:
    constrain, draft = _last_of(draft, WordKind.CONSTRAIN, Section.CONSTRAIN)
    bare = draft.of(WordKind.BARE)
    chosen = None if constrain else _choose_type(draft, bare)
    left = tuple(word for word in bare if word is not chosen)
    if left:
        text = " ".join(word.text for word in left)
        draft = draft.report(FaultKind.UNPARSED_HEADER_TEXT, left[0].place, text)
        draft = draft._replace(left=(*draft.left, *left))
    if constrain:
        return CONSTRAIN_MARKER + constrain, draft
    return (readable(chosen.text) if chosen else None), draft


def _choose_type(draft: _Draft, bare: list[Word]) -> Word | None:
    """Return the one word that is shaped like a type; of several, the first usual type."""
    if len(bare) == 1 and not draft.left and _may_be_type(draft, bare[0]):
        return bare[0]
    return next((word for word in bare if word.text in USUAL_TYPES), None)


def _may_be_type(draft: _Draft, word: Word) -> bool:
    """Return whether a word is shaped like a type and is where one may be.

    That is after the channel, or after the recipient. Before them is a usual type at most:
    anything else is what the model says before its call.
    """
    if not TYPE.fullmatch(word.text) or word.is_channel or _is_glued(draft, word):
        return False
    is_usual = word.text in USUAL_TYPES
    if is_usual or not draft.has_channel_section:
        return is_usual or not _follows_empty_recipient(draft, word)
    channels = (n for n, run in enumerate(draft.runs) if run.section is Section.CHANNEL)
    places = [other.place for other in draft.of(WordKind.RECIPIENT)]
    first = min([TextPosition(next(channels), -1), *places])
    return first < word.place and not _follows_empty_recipient(draft, word)


def _follows_empty_recipient(draft: _Draft, word: Word) -> bool:
    """Return whether a word is where the recipient is missing: `to= shell` names a tool."""
    before = next((other for other in reversed(draft.words) if other.place < word.place), None)
    return before is not None and before.text == "to=" and before.section is word.section


def _is_glued(draft: _Draft, word: Word) -> bool:
    """Return whether a word follows another one without white space."""
    run, offset = word.place
    return offset > 0 and not draft.runs[run].text[offset - 1].isspace()


def _left_words(draft: _Draft) -> tuple[LeftWord, ...]:
    """Return the left-over words in order, each with the white space before it."""
    found: list[LeftWord] = []
    for word in sorted(draft.left, key=lambda word: word.place):
        gap = _gap(draft.runs, found[-1].end, word.place) if found else ""
        end = word.after(len(word.text))
        found.append(LeftWord(word.place, end, readable(gap + word.text)))
    return tuple(found)


def _gap(runs: Sequence[Run], end: TextPosition, place: TextPosition) -> str:
    """Return the white space between two words; a space where something else is between them."""
    is_one_run = end.run == place.run
    between = runs[end.run].text[end.offset : place.offset] if is_one_run else ""
    return between if is_one_run and not between.strip() else " "


def _is_bare(draft: _Draft) -> bool:
    only = draft.words[0] if len(draft.words) == 1 else None
    has_only_role = not draft.words or (
        only is not None and only.kind is WordKind.ROLE and known_role(only.text) is not None
    )
    is_flawless = not draft.faults and draft.rest is None
    return len(draft.runs) == 1 and is_flawless and has_only_role
