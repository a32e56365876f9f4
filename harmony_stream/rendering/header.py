"""Headers to write: their layout by profile, and the check that refuses some of them.

One rule decides: a header is written only if the parser's own reader,
`harmony_stream.values.read_header`, reads it back unchanged. The sentences below only give the
reason.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import attrs

from harmony_stream.errors import RenderError
from harmony_stream.rendering.profiles import GUIDE
from harmony_stream.values.header import CONSTRAIN_MARKER, KNOWN_CHANNELS, Header, is_role_word
from harmony_stream.values.header_words import Run, Section
from harmony_stream.values.messages import Role
from harmony_stream.values.read_header import Opening, TextReading, read_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harmony_stream.rendering.profiles import Profile
    from harmony_stream.values.messages import Message

# The default of `EventParser`; a test checks that both agree.
MAX_HEADER_TOKENS = 64
# The characters that are valid in a name, in words.
NAMES = "names are made of letters, digits and _ $ . / + : -"


def header_of(message: Message) -> Header:
    """Return the header of a message, unchanged."""
    author = message.author
    return Header(
        author.role, author.name, message.channel, message.recipient, message.content_type
    )


# --- The layout ----------------------------------------------------------------------------------


def role_word(header: Header) -> str:
    """Return the word in the role's place: a tool's name, or a role with the author's name."""
    if header.role is Role.TOOL:
        return header.name or ""
    return header.role.value if header.name is None else f"{header.role.value}:{header.name}"


def header_runs(header: Header, profile: Profile) -> list[Run]:
    """Return the text of each section in the layout of the profile."""
    texts = {Section.ROLE: role_word(header)}
    if header.channel is not None:
        texts[Section.CHANNEL] = header.channel
    if header.recipient is not None:
        follows = header.channel is not None and _follows_channel(header, profile)
        texts[Section.CHANNEL if follows else Section.ROLE] += f" to={header.recipient}"
    if header.content_type is not None:
        word = header.content_type.removeprefix(CONSTRAIN_MARKER)
        last = [*texts][-1]
        texts[last] += " "
        if word != header.content_type:
            last = Section.CONSTRAIN
        texts[last] = texts.get(last, "") + word
    return [Run(section, text, True) for section, text in texts.items()]


def _follows_channel(header: Header, profile: Profile) -> bool:
    channels = profile.on_channels
    return header.role in profile.recipient_in_channel and (
        channels is None or header.channel in channels
    )


# --- Names of tools ------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def is_tool_name(name: str) -> bool:
    """Return whether a tool or a namespace can have this name, since a parser reads `to=NAME` back.

    So a name cannot end its line or its comment.

    >>> is_tool_name("my-tool.v2"), is_tool_name("f = () => any;")
    (True, False)
    """
    call = Header(Role.ASSISTANT, None, "commentary", name)
    return "//" not in name and _is_writable(call)


@lru_cache(maxsize=256)
def is_channel(word: str) -> bool:
    """Return whether a message can be written on this channel.

    >>> is_channel("final"), is_channel("final # Tools")
    (True, False)
    """
    return _is_writable(Header(Role.ASSISTANT, None, word))


def _is_writable(header: Header) -> bool:
    try:
        check_header(header, GUIDE)
    except RenderError:
        return False
    return True


# --- What is refused -----------------------------------------------------------------------------


@lru_cache(maxsize=1024)  # a valid header is checked once for all renderers
def check_header(header: Header, profile: Profile) -> None:
    """Refuse a header that would not be read back unchanged.

    Raises:
        RenderError: if it would not. The error names the field and its value.
    """
    for field, value in _words(header).items():
        if value is not None:
            _check_word(field, value)
    if not _reads_back(header, profile):
        raise _misreading(header, profile)


def check_text(text: str) -> None:
    """Refuse content with a surrogate, which UTF-8 cannot encode and so is not read back.

    Raises:
        RenderError: if there is one. The error names its position.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        reason = f"holds half a character (a surrogate) at place {error.start}; leave it out"
        raise RenderError("content", text[error.start : error.end], reason) from None


def _words(header: Header) -> dict[str, str | None]:
    """Return the fields that are words, by their names in errors."""
    word = header.content_type and header.content_type.removeprefix(CONSTRAIN_MARKER).strip()
    return {
        "author.name": header.name,
        "channel": header.channel,
        "content_type": word,
        "recipient": header.recipient,
    }


def _check_word(field: str, value: str) -> None:
    if any(map(str.isspace, value)):
        raise RenderError(field, value, "holds white space, which ends a word of a header")
    if "<|" in value:
        raise RenderError(field, value, "holds <|, with which only special tokens begin")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise RenderError(field, value, "holds half a character (a surrogate)")


def _read(header: Header, profile: Profile) -> TextReading:
    return read_header(header_runs(header, profile), Opening.START, None, None, closed=True)


def _reads_back(header: Header, profile: Profile) -> bool:
    reading = _read(header, profile)
    return not reading.faults and reading.header == _as_read(header)


def _as_read(header: Header) -> Header:
    """Return the header without the white space that openai_harmony allows around a type."""
    kind = header.content_type
    if kind is None:
        return header
    word = kind.removeprefix(CONSTRAIN_MARKER)
    marker = kind.removesuffix(word)
    return attrs.evolve(header, content_type=marker + word.strip())


def _misreading(header: Header, profile: Profile) -> RenderError:
    """Return the error that names the field at fault and how it would be read."""
    words = _words(header)
    reasons = [
        (field, _reason(field, words[field], partial, profile))
        for field, partial in _growing(header)
    ]
    field, reason = next((field, reason) for field, reason in reasons if reason)
    return RenderError(field, words[field], reason)


def _growing(header: Header) -> Iterator[tuple[str, Header]]:
    """Yield the header with one more of its fields at a time, and the field's name."""
    partial = Header(header.role)
    for field in ("author.name", "channel", "recipient", "content_type"):
        attribute = field.removeprefix("author.")
        partial = attrs.evolve(partial, **{attribute: getattr(header, attribute)})
        yield field, partial


def _reason(field: str, value: str | None, header: Header, profile: Profile) -> str:
    """Return the reason why a header with this last field is misread, or "" if it is not."""
    is_tool = field == "author.name" and header.role is Role.TOOL
    if is_tool and not value:
        return "is missing. Tools should have a name!"
    if value is None or _reads_back(header, profile):
        return ""
    if not value:
        return "is empty" + (", and would be read as a tool's" if field == "author.name" else "")
    if value.startswith("to="):
        return "would be read as a recipient"
    if is_tool and is_role_word(value):
        return "of a tool would be read as another role"
    if is_tool and value in KNOWN_CHANNELS:
        return "of a tool would be read as a channel"
    return f"would be read {_difference(_read(header, profile), header, field)}"


def _difference(reading: TextReading, header: Header, at_fault: str) -> str:
    """Return the difference between the header read and the one written, and the remedy."""
    read = {**reading.header.to_dict(), "faults": [str(fault.kind) for fault in reading.faults]}
    written = {**_as_read(header).to_dict(), "faults": []}
    differing = [field for field in written if read[field] != written[field]]
    remedy = f"; {NAMES}" if at_fault.removeprefix("author.") in differing else ""
    return f"with {differing[0]} {read[differing[0]]!r}{remedy}"


def too_long(header: Header, count: int) -> RenderError:
    """Return the error for a header of that many tokens, which names the longest field."""
    words = {field: value for field, value in _words(header).items() if value}
    field = max(words, key=lambda each: len(words[each].encode()))
    reason = f"is too long: a header may have {MAX_HEADER_TOKENS} tokens, and this one has {count}"
    return RenderError(field, words[field], reason)
