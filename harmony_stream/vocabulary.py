"""Token ids and the bytes that they represent.

The library contains o200k_harmony, the vocabulary of the gpt-oss models, and never uses the
network. For a model with other ids or another tokenizer, load its vocabulary with
`Vocabulary.from_file` or `Vocabulary.from_tiktoken`.

Bytes and texts are extracted when a token is first seen, since a program uses a few thousand of the
200,000. A full dict takes 41 MB.
"""

from __future__ import annotations

import binascii
import json
import operator
import os
import threading
import zlib
from enum import StrEnum
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from harmony_stream.errors import LoadError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import tiktoken

_Made = TypeVar("_Made")

__all__ = ["FormattingToken", "Vocabulary"]


class FormattingToken(StrEnum):
    """The special tokens of the format, with their spelling as the value.

    >>> FormattingToken("<|start|>")
    <FormattingToken.START: '<|start|>'>
    """

    START = "<|start|>"
    MESSAGE = "<|message|>"
    END = "<|end|>"
    RETURN = "<|return|>"
    CALL = "<|call|>"
    CHANNEL = "<|channel|>"
    CONSTRAIN = "<|constrain|>"
    START_OF_TEXT = "<|startoftext|>"
    END_OF_TEXT = "<|endoftext|>"


# These two belong to the tokenizer rather than to the format, so a model may lack them.
_OPTIONAL = {FormattingToken.START_OF_TEXT, FormattingToken.END_OF_TEXT}

# As in openai_harmony 0.0.8. tiktoken's o200k_harmony differs in two ids: it has no 201088, and
# gives 200018 a second name, <|endofprompt|>.
_SPECIAL_TOKENS: dict[str, int] = {
    "<|startoftext|>": 199998,
    "<|endoftext|>": 199999,
    "<|return|>": 200002,
    "<|constrain|>": 200003,
    "<|channel|>": 200005,
    "<|start|>": 200006,
    "<|end|>": 200007,
    "<|message|>": 200008,
    "<|call|>": 200012,
}
_FIRST_RESERVED, _LAST_RESERVED = 200000, 201088

# The pattern that splits text before it is encoded, from tiktoken's o200k_base and o200k_harmony.
_O200K_PATTERN = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)

_NAME = "o200k_harmony"
_OFFICIAL_FILE = "o200k_base.tiktoken"
_OFFICIAL_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_FILE_NAMES = (_OFFICIAL_FILE, "tokenizer.json")

# Made by scripts/build_vocabulary.py, which prints the checksums. The crc is checked at each load.
# The sha256 appears in the error about a broken file.
_EMBEDDED_PATH = os.path.join(os.path.dirname(__file__), "o200k_harmony.bin")
_EMBEDDED_COUNT = 199998
_EMBEDDED_CRC32 = 0xE51E6045
_EMBEDDED_SHA256 = "694093ecaf64ce3737f1b2a2592be857173164e5845165f7a1bc9ca467f571e9"

# Tables are as long as the highest id, so a file with an absurd id must not exhaust the memory.
_MAX_ID = 2**24

_REMEDY_FILE = (
    f"load a local copy of {_OFFICIAL_FILE} (sha256 {_OFFICIAL_SHA256}) or the model's "
    "tokenizer.json with Vocabulary.from_file(path)"
)
_REMEDY_EMBEDDED = f"reinstall harmony-stream, or {_REMEDY_FILE}"
_REMEDY_IDS = "give the ids of this model as special_tokens={text: id, ...}"

# One lock for all vocabularies, held only during a first load. It is reentrant, since an encoding
# is built from a table.
_LOCK = threading.RLock()


# Ids per page. Each page is compressed separately and opened at the first use of one of its tokens,
# so a first completion takes 3 ms; opening all pages at once takes 12 ms.
_PAGE = 8192


class _Page(NamedTuple):
    """Tokens of one page, the n-th at `blob[offsets[n]:offsets[n + 1]]`; empty: no such token."""

    offsets: list[int]
    blob: bytes

    @classmethod
    def of(cls, pieces: Sequence[bytes]) -> _Page:
        return cls(list(accumulate(map(len, pieces), initial=0)), b"".join(pieces))

    @classmethod
    def unpack(cls, packed: bytes) -> _Page:
        """Return a page of the embedded data: number of tokens, a byte for each length, bytes."""
        data = zlib.decompress(packed)
        first = 2 + int.from_bytes(data[:2], "little")
        return cls(list(accumulate(data[2:first], initial=first)), data)


class _TokenTable:
    """The bytes of all ordinary tokens."""

    def __init__(self, count: int, pages: dict[int, _Page], packed: Sequence[bytes] = ()) -> None:
        self._count = count
        self._pages = pages
        self._packed = packed

    @classmethod
    def of(cls, tokens: Mapping[int, bytes]) -> _TokenTable:
        count = max(tokens) + 1
        pieces = [tokens.get(token, b"") for token in range(count)]
        starts = range(0, count, _PAGE)
        pages = {start // _PAGE: _Page.of(pieces[start : start + _PAGE]) for start in starts}
        return cls(count, pages)

    def __len__(self) -> int:
        return self._count

    def find(self, token: int) -> bytes | None:
        if not 0 <= token < self._count:
            return None
        number, place = divmod(token, _PAGE)
        page = self._pages.get(number) or self._open(number)
        return page.blob[page.offsets[place] : page.offsets[place + 1]] or None

    def _open(self, number: int) -> _Page:
        # Two threads may open the same page at once, and one of two equal pages is kept.
        return self._pages.setdefault(number, _Page.unpack(self._packed[number]))

    def ranks(self) -> dict[bytes, int]:
        found = ((self.find(token), token) for token in range(self._count))
        return {data: token for data, token in found if data is not None}


class Vocabulary:
    """The bytes of each token, and the tokens of the format.

    Made by `default`, `from_file` or `from_tiktoken`. Safe to share between threads.

    Attributes:
        name: the name of the encoding.
        special_tokens: text -> id of all special tokens, read-only.
        formatting_tokens: id -> `FormattingToken`, for the tokens of the format, read-only.
        token_bytes: bytes by id. None: special, or not looked up yet. For fast loops only.
        texts: text by id. None: special, not looked up yet, or no complete UTF-8 by itself. For
            fast loops only.

    >>> vocabulary = Vocabulary.default()
    >>> vocabulary.decode([200005, 17196, 200008, 13225])
    '<|channel|>final<|message|>Hello'
    >>> vocabulary.special_tokens["<|call|>"]
    200012
    >>> vocabulary.formatting_tokens[200006]
    <FormattingToken.START: '<|start|>'>
    """

    name: str
    special_tokens: Mapping[str, int]
    formatting_tokens: Mapping[int, FormattingToken]
    token_bytes: list[bytes | None]
    texts: list[str | None]

    _default: Vocabulary | None = None

    def __init__(
        self, name: str, pattern: str, special_tokens: dict[str, int], table: _TokenTable | None
    ) -> None:
        # Not for users. `table=None` means the embedded one, opened at its first use.
        self.name = name
        self.special_tokens = MappingProxyType(special_tokens)
        self.formatting_tokens = MappingProxyType(
            {special_tokens[which]: which for which in FormattingToken if which in special_tokens}
        )
        self._pattern = pattern
        self._special_texts = {token: text for text, token in special_tokens.items()}
        self._table = table
        self._encoding: tiktoken.Encoding | None = None
        count = max(max(self._special_texts) + 1, len(table) if table else 0)
        self.token_bytes = [None] * count
        self.texts = [None] * count
        self._made: dict[Callable[[Vocabulary], Any], Any] = {}

    @classmethod
    def default(cls) -> Vocabulary:
        """Return the embedded o200k_harmony, one object, whose data are read at the first look-up.

        >>> Vocabulary.default() is Vocabulary.default()
        True
        """
        if Vocabulary._default is None:
            with _LOCK:
                if Vocabulary._default is None:
                    Vocabulary._default = Vocabulary(
                        _NAME, _O200K_PATTERN, _harmony_special_tokens(), None
                    )
        return Vocabulary._default

    @classmethod
    def from_tiktoken(
        cls,
        encoding: tiktoken.Encoding,
        *,
        special_tokens: Mapping[str, int] | Mapping[FormattingToken, int] | None = None,
    ) -> Vocabulary:
        """Return the vocabulary of a tiktoken encoding.

        Args:
            encoding: an encoding with or without the special tokens of the format.
            special_tokens: text -> id, added to those of the encoding. A text or an id given here
                replaces the encoding's entry with it.

        Raises:
            LoadError: if a formatting token has no id, or an id has two meanings.

        >>> encoding = Vocabulary.default().tiktoken_encoding
        >>> other = Vocabulary.from_tiktoken(encoding, special_tokens={"<|call|>": 200013})
        >>> other.decode([200013])
        '<|call|>'
        """
        # tiktoken's README documents these three names with underscores for extensions.
        tokens = {token: data for data, token in encoding._mergeable_ranks.items()}
        special = _merge(encoding._special_tokens, special_tokens or {})
        return _checked(encoding.name, encoding.name, encoding._pat_str, special, tokens)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        special_tokens: Mapping[str, int] | Mapping[FormattingToken, int] | None = None,
        pat_str: str | None = None,
        expected_sha256: str | None = None,
    ) -> Vocabulary:
        """Return the vocabulary in a local file: `o200k_base.tiktoken` or `tokenizer.json`.

        Args:
            path: the file, or a directory that contains a file of one of these names.
            special_tokens: text -> id. They are added to those of a `tokenizer.json`. A text or an
                id given here replaces the file's entry with it. A `.tiktoken` file has none, so
                they are all special tokens. Without them it must be the official file, and
                o200k_harmony's are used.
            pat_str: the regular expression that splits text before it is encoded, as in tiktoken.
                The default is that of the `tokenizer.json`, or o200k's for a `.tiktoken` file.
            expected_sha256: the sha256 of the file, if it is known.

        Raises:
            LoadError: if the file is missing, broken or another one; or as in `from_tiktoken`.

        >>> Vocabulary.from_file("/nowhere/o200k_base.tiktoken")
        Traceback (most recent call last):
            ...
        harmony_stream.errors.LoadError: vocabulary /nowhere/o200k_base.tiktoken: No such file ...
        """
        file = _locate(os.fspath(path))
        content = _read(file, _REMEDY_FILE)
        is_json = content.lstrip()[:1] == b"{"
        is_official = special_tokens is None and not is_json
        _check_sha256(file, content, expected_sha256 or (_OFFICIAL_SHA256 if is_official else None))
        if is_json:
            tokens, own, own_pattern = _parse_tokenizer_json(file, content)
        else:
            tokens, own_pattern = _parse_tiktoken(file, content), _O200K_PATTERN
            own = _harmony_special_tokens() if is_official else {}
        return _checked(
            file,
            _NAME if is_official else os.path.basename(file),
            pat_str or own_pattern,
            _merge(own, special_tokens or {}),
            tokens,
        )

    def __repr__(self) -> str:
        return f"<Vocabulary {self.name!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self is Vocabulary._default:
            return (Vocabulary.default, ())
        # By value, but without the tables, which are filled again.
        return (Vocabulary, (self.name, self._pattern, dict(self.special_tokens), self._tokens()))

    def __deepcopy__(self, memo: dict[int, Any]) -> Vocabulary:
        return self  # nothing in it changes except the look-up tables

    def table(self, make: Callable[[Vocabulary], _Made]) -> _Made:
        """Return the table that `make` derives from this vocabulary, made once and freed with it.

        >>> def spellings(vocabulary):
        ...     return sorted(vocabulary.special_tokens)
        >>> vocabulary = Vocabulary.default()
        >>> vocabulary.table(spellings) is vocabulary.table(spellings)
        True
        """
        try:
            found: _Made = self._made[make]
        except KeyError:  # two threads may make it at once, and one of two equal ones is kept
            found = self._made.setdefault(make, make(self))
        return found

    def is_special_token(self, token: int) -> bool:
        """Return whether this is the id of a special token.

        >>> Vocabulary.default().is_special_token(200006)
        True
        """
        return token in self._special_texts

    def lookup(self, token: int) -> bytes | None:
        """Return the bytes of an ordinary token, and keep them in `token_bytes` and `texts`.

        The result is None for a special or unknown token.

        >>> Vocabulary.default().lookup(13225)
        b'Hello'
        """
        data = self._tokens().find(token)
        if data is None:
            return None
        self.token_bytes[token] = data
        try:  # suppress() would double the cost of a look-up
            self.texts[token] = data.decode()
        except UnicodeDecodeError:
            return data  # a part of a character: bytes only
        return data

    def decode_single_token_bytes(self, token: int) -> bytes:
        """Return the bytes of any token; those of a special one are its spelling.

        >>> Vocabulary.default().decode_single_token_bytes(200006)
        b'<|start|>'

        Raises:
            KeyError: if no token has this id.
        """
        special = self._special_texts.get(token)
        if special is not None:
            return special.encode()
        data = self.lookup(token)
        if data is None:
            raise KeyError(f"token {token} is not in the vocabulary {self.name}")
        return data

    def decode_bytes(self, tokens: Iterable[int]) -> bytes:
        """Return the joined bytes of the tokens.

        >>> Vocabulary.default().decode_bytes([13225, 2375])
        b'Hello world'
        """
        return b"".join(map(self.decode_single_token_bytes, tokens))

    def decode(self, tokens: Iterable[int], errors: str = "replace") -> str:
        """Return the joined text of the tokens. For `errors` see `bytes.decode`.

        >>> Vocabulary.default().decode([13225, 2375])
        'Hello world'
        """
        return self.decode_bytes(tokens).decode("utf-8", errors)

    @property
    def tiktoken_encoding(self) -> tiktoken.Encoding:
        """This vocabulary as a `tiktoken.Encoding`, which encodes text; made at its first use.

        >>> Vocabulary.default().tiktoken_encoding.encode("Hello world")
        [13225, 2375]
        """
        if self._encoding is None:
            with _LOCK:
                if self._encoding is None:
                    self._encoding = self._make_encoding()
        return self._encoding

    def _make_encoding(self) -> tiktoken.Encoding:
        import tiktoken  # slow to import, and not needed to parse

        return tiktoken.Encoding(
            self.name,
            pat_str=self._pattern,
            mergeable_ranks=self._tokens().ranks(),
            special_tokens=dict(self.special_tokens),
        )

    def _tokens(self) -> _TokenTable:
        if self._table is None:
            with _LOCK:
                if self._table is None:
                    self._table = _load_embedded()
        return self._table


# -- The embedded data --


def _harmony_special_tokens() -> dict[str, int]:
    taken = set(_SPECIAL_TOKENS.values())
    reserved = set(range(_FIRST_RESERVED, _LAST_RESERVED + 1)) - taken
    return _SPECIAL_TOKENS | {f"<|reserved_{token}|>": token for token in sorted(reserved)}


def _load_embedded() -> _TokenTable:
    packed = _read(_EMBEDDED_PATH, _REMEDY_EMBEDDED)
    if zlib.crc32(packed) != _EMBEDDED_CRC32:
        raise LoadError(
            _EMBEDDED_PATH,
            "the data of the library are damaged",
            f"sha256 {_EMBEDDED_SHA256}",
            f"sha256 {_sha256(packed)}",
            _REMEDY_EMBEDDED,
        )
    return _TokenTable(_EMBEDDED_COUNT, {}, _packed_pages(packed))


def _packed_pages(packed: bytes) -> list[bytes]:
    """Return the pages of the embedded data, which begins with four bytes for the size of each."""
    count = -(-_EMBEDDED_COUNT // _PAGE)
    sizes = [int.from_bytes(packed[at : at + 4], "little") for at in range(0, 4 * count, 4)]
    stops = accumulate(sizes, initial=4 * count)
    return [packed[start:stop] for start, stop in pairwise(stops)]


# -- Files --


def _locate(path: str) -> str:
    if not os.path.isdir(path):
        return path
    for name in _FILE_NAMES:
        if os.path.isfile(file := os.path.join(path, name)):
            return file
    raise LoadError(
        path,
        "the directory does not contain a vocabulary",
        f"a file {' or '.join(_FILE_NAMES)}",
        remedy=_REMEDY_FILE,
    )


def _read(path: str, remedy: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise LoadError(path, error.strerror or str(error), remedy=remedy) from error


def _sha256(content: bytes) -> str:
    import hashlib  # loads OpenSSL, which the embedded data do not need

    return hashlib.sha256(content).hexdigest()


def _check_sha256(path: str, content: bytes, expected: str | None) -> None:
    if expected is None or (found := _sha256(content)) == expected.lower():
        return
    remedy = _REMEDY_FILE
    if expected == _OFFICIAL_SHA256:
        remedy += "; for another tokenizer give its special_tokens={text: id, ...}"
    raise LoadError(path, "not the expected file", f"sha256 {expected}", f"sha256 {found}", remedy)


def _parse_tiktoken(path: str, content: bytes) -> dict[int, bytes]:
    tokens: dict[int, bytes] = {}
    for number, line in enumerate(content.splitlines(), 1):
        try:
            data, token = line.split()
            tokens[int(token)] = binascii.a2b_base64(data, strict_mode=True)
        except ValueError as error:
            raise LoadError(
                path, f"line {number} is not a token", "base64(bytes) id", repr(line), _REMEDY_FILE
            ) from error
        if len(tokens) < number:
            raise LoadError(path, f"line {number} repeats the id {int(token)}", remedy=_REMEDY_FILE)
    return tokens


def _parse_tokenizer_json(
    path: str, content: bytes
) -> tuple[dict[int, bytes], dict[str, int], str | None]:
    """Return ordinary tokens, special tokens and the pattern of a Hugging Face `tokenizer.json`."""
    try:
        tokenizer = json.loads(content)
        added = tokenizer.get("added_tokens") or []
        special = {
            each["content"]: operator.index(each["id"]) for each in added if _is_marker(each)
        }
        texts = tokenizer["model"]["vocab"].items()
        byte_of = _byte_of_character()
        # Some files list special tokens among the ordinary ones as well.
        tokens = {
            operator.index(token): bytes(map(byte_of.__getitem__, text))
            for text, token in texts
            if special.get(text) != token
        }
        tokens |= {
            operator.index(each["id"]): each["content"].encode()
            for each in added
            if not _is_marker(each)
        }
        return tokens, special, _split_pattern(tokenizer)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise LoadError(
            path,
            "not a tokenizer.json with a byte-level BPE vocabulary",
            "model.vocab and added_tokens",
            f"{type(error).__name__}: {error}",
            _REMEDY_FILE,
        ) from error


def _is_marker(added: Mapping[str, Any]) -> bool:
    # An added token that is not special, such as <think> in some models, is text like any other.
    return added.get("special", False) or added["content"] in list(FormattingToken)


def _byte_of_character() -> dict[str, int]:
    """Return GPT-2's alphabet: printable bytes as they are, others as characters from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = sorted(set(range(0x100)) - set(printable))
    return {chr(byte): byte for byte in printable} | {
        chr(0x100 + place): byte for place, byte in enumerate(others)
    }


def _split_pattern(tokenizer: Mapping[str, Any]) -> str | None:
    # tiktoken has one pattern and cannot express several steps of splitting.
    step = tokenizer.get("pre_tokenizer") or {}
    steps = step.get("pretokenizers", [step])
    patterns = [each["pattern"].get("Regex") for each in steps if each.get("type") == "Split"]
    return patterns[0] if len(patterns) == 1 else None


# -- Special tokens --


def _merge(own: Mapping[str, int], given: Mapping[Any, int]) -> dict[str, int]:
    wanted = {str(text): operator.index(token) for text, token in given.items()}
    taken = set(wanted.values())
    kept = {text: token for text, token in own.items() if text not in wanted and token not in taken}
    return kept | wanted


def _checked(
    path: str, name: str, pattern: str | None, special: dict[str, int], tokens: dict[int, bytes]
) -> Vocabulary:
    if pattern is None:
        raise LoadError(path, "no single pattern that splits text", remedy="give it as pat_str=...")
    for text in special:
        if not text or any("\ud800" <= character <= "\udfff" for character in text):
            raise LoadError(path, f"{text!r} is not valid as a special token", remedy=_REMEDY_IDS)
    if missing := [which for which in FormattingToken if which not in {*special, *_OPTIONAL}]:
        raise LoadError(path, f"no id for {', '.join(missing)}", remedy=_REMEDY_IDS)
    if not tokens:
        raise LoadError(path, "no ordinary tokens", remedy=_REMEDY_FILE)
    for token in (min(tokens), max(tokens), *special.values()):
        if not 0 <= token <= _MAX_ID:
            raise LoadError(path, f"impossible id {token}", f"0 to {_MAX_ID}", str(token))
    _check_meanings(path, special, tokens)
    return Vocabulary(name, pattern, special, _TokenTable.of(tokens))


def _check_meanings(path: str, special: dict[str, int], tokens: dict[int, bytes]) -> None:
    text_of = {token: text for text, token in special.items()}
    for text, token in special.items():
        other = repr(tokens[token]) if token in tokens else text_of[token]
        # Two names for one id are harmless (tiktoken has them), except for a formatting token.
        if token in tokens or (other != text and text in list(FormattingToken)):
            raise LoadError(path, f"id {token} is both {text} and {other}", remedy=_REMEDY_IDS)
