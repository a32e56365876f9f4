"""Names of tools as the model writes them, and the declared names that they mean.

gpt-oss repeats the namespace (`functions.functions.f`), glues the type to the name
(`functions.fjson`) or puts a space in front of it (`to= functions.f`). Such a name is resolved to a
declared name or to none. Without declared names nothing is guessed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

from harmony_stream.values.header import KNOWN_CHANNELS
from harmony_stream.values.messages import Role
from harmony_stream.values.tools import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from harmony_stream.values.header import Header

_EDGES = "./:+-"
_NAMESPACE = re.compile(r"[./:+-]*(?:functions?[./:]+)*", re.IGNORECASE)

# Words that follow a name in a header, and so may be glued to its end.
_GLUED = ("json", "code", *KNOWN_CHANNELS)

# A recipient with a space before, inside or after its `=`, and the word that follows it.
_WORD = r"[\w$./+:\ufffd-]+"
_QUOTE = r"[\"'`“”‘’]?"
_ADDRESS = re.compile(
    rf"\b(?i:to)\s*[=:]+\s*{_QUOTE}(?P<first>{_WORD}){_QUOTE}(?:\s+(?P<second>{_WORD}))?"
)


def bare_name(recipient: str) -> str:
    """Return a name without the namespace of functions and without punctuation around it.

    The result is empty if the recipient does not name anything.

    >>> bare_name("functions.functions.f"), bare_name("Function.f:"), bare_name("functions.")
    ('f', 'f', '')
    """
    return _NAMESPACE.sub("", recipient, count=1).rstrip(_EDGES)


def declared_name(recipient: str, tools: Collection[str]) -> str | None:
    """Return the one declared name that a recipient means, or None.

    Case matters only if it decides between two declared names.

    >>> declared_name("functions.shelljson", {"shell"}), declared_name("functions.F", {"f", "g"})
    ('shell', 'f')
    """
    forms = list(_forms(bare_name(recipient)))
    for fold in (str, str.casefold):
        for form in forms:
            found = [tool for tool in tools if fold(bare_name(tool)) == fold(form)]
            if len(found) == 1:
                return found[0]
    return None


def _forms(name: str) -> Iterator[str]:
    """Yield the name, then the name without each word that may be glued to its end."""
    while name:
        yield name
        glued = next((word for word in _GLUED if name.casefold().endswith(word)), name)
        name = name[: -len(glued)].rstrip(_EDGES)


@attrs.frozen
class Addressed:
    """A header whose recipient a space had broken.

    Attributes:
        header: the header with the recipient.
        left: the words that belong neither to a field nor to the recipient.
    """

    header: Header
    left: str


def addressed(
    header: Header, left: str, header_text: str, tools: Collection[str]
) -> Addressed | None:
    """Return the header with the recipient that a space broke, if that gives a declared name.

    Args:
        header: the message's header.
        left: the words of the header that no field took.
        header_text: the header as it was written, if there are such words.
        tools: the declared names.

    >>> from harmony_stream.values.header import Header
    >>> header = Header(Role.ASSISTANT, None, "commentary", None, "json")
    >>> addressed(header, "functions.f", "commentary to= functions.f json", {"f"}).header.recipient
    'functions.f'
    """
    if not tools or header.role is not Role.ASSISTANT:
        return None
    if not left and header.content_type is None:
        return None
    if header.recipient is not None and declared_name(header.recipient, tools):
        return None
    found = _ADDRESS.search(header_text if left else _address_of(header))
    words = [word for word in found.groups() if word] if found else []
    candidates = [(words[:1], ""), (words, ""), (words, ".")]
    for parts, between in candidates:
        recipient = between.join(parts)
        if declared_name(recipient, tools):
            return _addressed(header, left, recipient, parts)
    return None


def _address_of(header: Header) -> str:
    """Return the recipient, and after it the word that was taken for the type.

    Without a recipient, only a word with the namespace of functions can be one.
    """
    kind = str(header.content_type)
    if header.recipient is None and not kind.startswith(f"{FUNCTIONS}."):
        return ""
    return f"to={header.recipient or ''} {kind}"


def _addressed(header: Header, left: str, recipient: str, words: list[str]) -> Addressed:
    for word in words:
        written = rf"(\b(?i:to)\s*)?([=:]+\s*)?{_QUOTE}{re.escape(word)}{_QUOTE}"
        left = re.sub(written, "", left, count=1)
    kind = None if header.content_type in words else header.content_type
    mended = attrs.evolve(header, recipient=recipient, content_type=kind)
    return Addressed(mended, left.strip())
