import base64
import copy
import gc
import hashlib
import json
import pickle
import runpy
import subprocess
import sys
import tempfile
import threading
import weakref
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from harmony_stream import vocabulary as module
from harmony_stream.errors import LoadError
from harmony_stream.parsing.parser import EventParser
from harmony_stream.rendering.render import Renderer
from harmony_stream.vocabulary import FormattingToken, Vocabulary

OFFICIAL_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"

# A small vocabulary of another model: all bytes, three words, then the special tokens.
TOKENS = [bytes([byte]) for byte in range(256)] + [b"Hi", b" Hi", "é".encode()]
SPECIAL = {text: 300 + place for place, text in enumerate(FormattingToken)}

texts = st.text() | st.lists(
    st.sampled_from(["Hello", " world", "👩‍👩‍👧", "\n\n", "<|start|>", "don't", "123"])
).map("".join)


def tiktoken_lines(tokens=TOKENS):
    return b"".join(b"%s %d\n" % (base64.b64encode(data), i) for i, data in enumerate(tokens))


def spell(data):
    """The bytes in GPT-2's alphabet, by the words of its paper: shift what is not printable."""
    shifted = [b for b in range(256) if b < 33 or 127 <= b <= 160 or b == 173]
    return "".join(chr(256 + shifted.index(b)) if b in shifted else chr(b) for b in data)


def tokenizer_json(**changes):
    parts = {
        "model": {"type": "BPE", "vocab": {spell(data): i for i, data in enumerate(TOKENS)}},
        "added_tokens": [{"id": i, "content": t, "special": True} for t, i in SPECIAL.items()],
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": r" ?\w+|\W"}, "behavior": "Isolated"},
                {"type": "ByteLevel", "use_regex": False},
            ],
        },
    }
    return json.dumps(parts | changes).encode()


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


@pytest.fixture
def fresh_default(monkeypatch):
    """The default as in a program that has only just begun."""
    monkeypatch.setattr(Vocabulary, "_default", None)


# -- The embedded data --


def test_the_embedded_data_rebuild_the_official_file(official_vocabulary_file):
    assert hashlib.sha256(official_vocabulary_file.read_bytes()).hexdigest() == OFFICIAL_SHA256


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (0, "!"),
        (199997, " cocos"),
        (199998, "<|startoftext|>"),
        (199999, "<|endoftext|>"),
        (200000, "<|reserved_200000|>"),
        (200001, "<|reserved_200001|>"),
        (200002, "<|return|>"),
        (200003, "<|constrain|>"),
        (200004, "<|reserved_200004|>"),
        (200005, "<|channel|>"),
        (200006, "<|start|>"),
        (200007, "<|end|>"),
        (200008, "<|message|>"),
        (200012, "<|call|>"),
        (200018, "<|reserved_200018|>"),
        (201088, "<|reserved_201088|>"),
    ],
)
def test_a_known_token_has_its_text_in_every_direction(token, text):
    vocabulary = Vocabulary.default()
    assert vocabulary.decode([token]) == text
    assert vocabulary.decode_single_token_bytes(token) == text.encode()
    assert vocabulary.is_special_token(token) == (token >= 199998)
    assert vocabulary.special_tokens.get(text) == (token if token >= 199998 else None)
    assert vocabulary.tiktoken_encoding.encode(text, allowed_special="all") == [token]


def test_every_formatting_token_is_found_by_its_id():
    vocabulary = Vocabulary.default()
    assert set(vocabulary.formatting_tokens.values()) == set(FormattingToken)
    for token, which in vocabulary.formatting_tokens.items():
        assert vocabulary.special_tokens[which] == token


@pytest.mark.parametrize("table", ["special_tokens", "formatting_tokens"])
def test_the_tables_of_special_tokens_are_read_only(table):
    with pytest.raises(TypeError, match="does not support item assignment"):
        getattr(Vocabulary.default(), table)["<|start|>"] = 1


@pytest.mark.parametrize("token", [-1, -5, 201089, 10**9])
def test_an_unknown_id_is_a_key_error_and_has_no_bytes(token):
    vocabulary = Vocabulary.default()
    assert not vocabulary.is_special_token(token)
    assert vocabulary.lookup(token) is None
    with pytest.raises(KeyError, match=f"token {token} is not in the vocabulary o200k_harmony"):
        vocabulary.decode([token])


@pytest.mark.parametrize(
    ("token", "data", "text"),
    [(13225, b"Hello", "Hello"), (200006, None, None), (222, b"\x80", None)],
)
def test_a_look_up_fills_the_tables(fresh_default, token, data, text):
    vocabulary = Vocabulary.default()
    assert len(vocabulary.token_bytes) == 201089
    assert len(vocabulary.texts) == 201089
    assert vocabulary.token_bytes[token] is None
    assert vocabulary.texts[token] is None
    assert vocabulary.lookup(token) == data
    assert vocabulary.token_bytes[token] == data
    assert vocabulary.texts[token] == text
    assert vocabulary.texts.count(None) == 201089 - (text is not None)


def test_decode_treats_invalid_utf_8_as_asked():
    vocabulary = Vocabulary.default()
    assert vocabulary.decode([222]) == "\ufffd"
    assert vocabulary.decode([222], errors="ignore") == ""
    assert vocabulary.decode_bytes([222, 13225]) == b"\x80Hello"


def test_the_vocabulary_shows_its_name():
    assert repr(Vocabulary.default()) == "<Vocabulary 'o200k_harmony'>"


def unpacked(data):
    return [zlib.decompress(page) for page in module._packed_pages(data)]


def test_the_script_builds_the_embedded_data_from_the_official_file(official_vocabulary_file):
    script = runpy.run_path(str(Path(__file__).parent.parent / "scripts" / "build_vocabulary.py"))
    built = script["pack"](official_vocabulary_file.read_bytes())
    # Another zlib may compress otherwise.
    embedded = Path(module._EMBEDDED_PATH).read_bytes()
    assert unpacked(built) == unpacked(embedded)
    with pytest.raises(
        SystemExit, match=f"not o200k_base.tiktoken: expected sha256 {OFFICIAL_SHA256}"
    ):
        script["pack"](b"IQ== 0")


# -- Against other implementations --


@pytest.fixture(scope="session")
def peer(official_vocabulary_file):
    return pytest.importorskip("openai_harmony").load_harmony_encoding("HarmonyGptOss")


def test_the_special_tokens_are_those_of_openai_harmony(peer):
    special_tokens = Vocabulary.default().special_tokens
    assert set(special_tokens) == peer.special_tokens_set
    for text, token in special_tokens.items():
        assert peer.decode_utf8([token]) == text


@given(text=texts)
def test_text_is_encoded_and_decoded_as_by_openai_harmony(peer, text):
    vocabulary = Vocabulary.default()
    tokens = vocabulary.tiktoken_encoding.encode_ordinary(text)
    assert tokens == peer.encode(text, disallowed_special=())
    assert vocabulary.decode(tokens) == text


@given(tokens=st.lists(st.integers(0, 201088)))
def test_any_tokens_decode_as_by_tiktoken(tokens):
    vocabulary = Vocabulary.default()
    encoding = vocabulary.tiktoken_encoding
    assert vocabulary.decode_bytes(tokens) == encoding.decode_bytes(tokens)
    assert vocabulary.decode(tokens) == encoding.decode(tokens)


def test_texts_and_token_bytes_hold_exactly_what_is_complete(fresh_default):
    vocabulary = Vocabulary.default()
    for token in range(201089):
        data = vocabulary.lookup(token)
        assert vocabulary.token_bytes[token] == data
        complete = data is not None and data.decode(errors="ignore").encode() == data
        assert vocabulary.texts[token] == (data.decode() if complete else None)


# -- Damage --


@pytest.fixture
def embedded(monkeypatch, fresh_default, write):
    """Puts other data in the place of the embedded ones; tells where."""

    def put(content):
        path = str(write("o200k_harmony.bin", content))
        monkeypatch.setattr(module, "_EMBEDDED_PATH", path)
        return path

    return put


def flipped(data):
    return data[:500_000] + bytes([data[500_000] ^ 1]) + data[500_001:]


@pytest.mark.parametrize(
    "damage", [flipped, lambda data: data[:-1], lambda data: b"", lambda data: zlib.compress(b"")]
)
def test_damaged_data_name_both_checksums_and_the_remedy(embedded, damage):
    good = Path(module._EMBEDDED_PATH).read_bytes()
    path = embedded(damage(good))
    vocabulary = Vocabulary.default()
    with pytest.raises(LoadError) as caught:
        vocabulary.lookup(13225)
    error = caught.value
    assert error.path == path
    assert error.expected == f"sha256 {hashlib.sha256(good).hexdigest()}"
    assert error.found == f"sha256 {hashlib.sha256(damage(good)).hexdigest()}"
    for word in ("reinstall", "o200k_base.tiktoken", OFFICIAL_SHA256, "Vocabulary.from_file(path)"):
        assert word in error.remedy


def test_missing_data_name_the_remedy_and_can_be_mended(monkeypatch, fresh_default, tmp_path):
    vocabulary = Vocabulary.default()
    with monkeypatch.context() as patch:
        patch.setattr(module, "_EMBEDDED_PATH", str(tmp_path / "gone.bin"))
        with pytest.raises(LoadError, match=r"gone\.bin: No such file .*; reinstall"):
            vocabulary.lookup(13225)
    assert vocabulary.lookup(13225) == b"Hello"


# -- Lazy, shared, safe --

PROGRAM = """
import sys
from harmony_stream.vocabulary import Vocabulary
assert "tiktoken" not in sys.modules
vocabulary = Vocabulary.default()
vocabulary.formatting_tokens, vocabulary.token_bytes, vocabulary.texts
assert vocabulary._table is None
assert vocabulary.decode([13225]) == "Hello"
assert not {"tiktoken", "hashlib"} & set(sys.modules)
"""


def test_nothing_is_read_before_it_is_needed():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=60)


def test_threads_that_load_at_once_get_one_object_and_right_tables(fresh_default):
    barrier = threading.Barrier(16)

    def load(place):
        barrier.wait()
        vocabulary = Vocabulary.default()
        words = [vocabulary.lookup(token) for token in range(place * 50, place * 50 + 500)]
        return vocabulary, vocabulary._table, words, vocabulary.tiktoken_encoding

    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(load, range(16)))
    vocabulary, table, _, encoding = results[0]
    for place, result in enumerate(results):
        assert result[0] is vocabulary
        assert result[1] is table
        assert result[3] is encoding
        assert result[2] == [
            encoding.decode_single_token_bytes(token)
            for token in range(place * 50, place * 50 + 500)
        ]


class NoSecondLoad:
    """A lock whose holder before us has already done the work."""

    def __init__(self, work):
        self.work = work

    def __enter__(self):
        self.work()

    def __exit__(self, *args):
        pass


def test_what_another_thread_has_loaded_meanwhile_is_not_loaded_again(monkeypatch, fresh_default):
    first = Vocabulary.default()
    table, encoding = first._tokens(), first.tiktoken_encoding
    late = Vocabulary("late", first._pattern, dict(first.special_tokens), None)

    def arrive(owner, name, value):
        monkeypatch.setattr(module, "_LOCK", NoSecondLoad(lambda: setattr(owner, name, value)))

    arrive(late, "_table", table)
    assert late._tokens() is table
    arrive(late, "_encoding", encoding)
    assert late.tiktoken_encoding is encoding
    monkeypatch.setattr(Vocabulary, "_default", None)
    arrive(Vocabulary, "_default", first)
    assert Vocabulary.default() is first


@pytest.mark.parametrize("copied", [lambda v: pickle.loads(pickle.dumps(v)), copy.deepcopy])
def test_the_default_is_pickled_and_copied_by_reference(copied):
    assert copied(Vocabulary.default()) is Vocabulary.default()
    assert len(pickle.dumps(Vocabulary.default())) < 200


def test_another_vocabulary_is_pickled_by_value(write):
    path = write("tokenizer.json", tokenizer_json())
    vocabulary = Vocabulary.from_file(path)
    pickled = pickle.dumps(vocabulary)
    path.unlink()
    other = pickle.loads(pickled)
    assert len(pickled) < 4000
    assert other.name == vocabulary.name
    assert other.special_tokens == vocabulary.special_tokens
    assert other.formatting_tokens == vocabulary.formatting_tokens
    assert other.decode([256, 257, 302]) == "Hi Hi<|end|>"
    assert other.tiktoken_encoding.encode("Hi Hi") == [256, 257]


# -- Vocabularies of others --


def test_the_official_file_gives_the_default(official_vocabulary_file):
    default, vocabulary = Vocabulary.default(), Vocabulary.from_file(official_vocabulary_file)
    assert vocabulary.name == default.name
    assert vocabulary.special_tokens == default.special_tokens
    assert vocabulary._tokens().ranks() == default._tokens().ranks()
    assert vocabulary.tiktoken_encoding.encode("Hello world") == [13225, 2375]


@pytest.mark.parametrize(
    ("name", "content", "given_special"),
    [
        ("small.tiktoken", tiktoken_lines(), SPECIAL),
        ("without_suffix", tiktoken_lines(), SPECIAL),
        ("tokenizer.json", tokenizer_json(), None),
        ("model", tokenizer_json(), {}),
    ],
)
def test_a_file_of_another_model_brings_its_ids_and_bytes(write, name, content, given_special):
    vocabulary = Vocabulary.from_file(write(name, content), special_tokens=given_special)
    assert vocabulary.name == name
    assert vocabulary.special_tokens == SPECIAL
    assert vocabulary.formatting_tokens == {300 + i: t for i, t in enumerate(FormattingToken)}
    assert [vocabulary.lookup(token) for token in range(259)] == TOKENS
    assert vocabulary.lookup(259) is None  # in the gap before the special tokens
    assert len(vocabulary.token_bytes) == 309
    assert vocabulary.tiktoken_encoding.encode("Hi Hi<|end|>", allowed_special="all") == [
        256, 257, 302
    ]  # fmt: skip


def test_special_tokens_may_lie_below_the_ordinary_ones(write):
    special = {text: place for place, text in enumerate(FormattingToken)}
    lines = tiktoken_lines([b""] * 9 + TOKENS).splitlines(keepends=True)[9:]
    vocabulary = Vocabulary.from_file(write("x.tiktoken", b"".join(lines)), special_tokens=special)
    assert len(vocabulary.token_bytes) == 9 + len(TOKENS)
    assert vocabulary.decode([0, 9 + 256]) == "<|start|>Hi"


def test_a_model_may_do_without_the_two_ends_of_text(write):
    special = {text: token for text, token in SPECIAL.items() if "text" not in text}
    vocabulary = Vocabulary.from_file(write("x.tiktoken", tiktoken_lines()), special_tokens=special)
    assert len(vocabulary.formatting_tokens) == 7


def test_a_directory_is_searched_for_the_known_names(tmp_path, write):
    write("o200k_base.tiktoken", tiktoken_lines())
    write("tokenizer.json", tokenizer_json())
    assert Vocabulary.from_file(tmp_path, special_tokens=SPECIAL).name == "o200k_base.tiktoken"
    (tmp_path / "o200k_base.tiktoken").unlink()
    assert Vocabulary.from_file(str(tmp_path)).name == "tokenizer.json"


def test_an_added_token_that_is_not_special_is_text(write):
    added = json.loads(tokenizer_json())["added_tokens"]
    added[0]["special"] = False  # <|start|>, which some files do not mark
    added.append({"id": 290, "content": "<think>", "special": False})
    vocabulary = Vocabulary.from_file(write("tokenizer.json", tokenizer_json(added_tokens=added)))
    assert vocabulary.lookup(290) == b"<think>"
    assert vocabulary.is_special_token(300)
    assert not vocabulary.is_special_token(290)


def test_special_tokens_listed_among_the_ordinary_ones_are_special(write):
    model = json.loads(tokenizer_json())["model"]
    model["vocab"] |= SPECIAL
    vocabulary = Vocabulary.from_file(write("tokenizer.json", tokenizer_json(model=model)))
    assert vocabulary.lookup(300) is None
    assert vocabulary.is_special_token(300)


def test_a_vocabulary_that_nobody_uses_is_freed():
    encoding = Vocabulary.default().tiktoken_encoding
    vocabulary = Vocabulary.from_tiktoken(encoding, special_tokens={"<|call|>": 200013})
    parser = EventParser(vocabulary=vocabulary)
    parser.feed_many([200005, 17196, 200008, 13225, 200007, 200006, 173781, 200008, 13225])
    EventParser(vocabulary=vocabulary).feed_text("<|channel|>final<|message|>Hi")
    EventParser(vocabulary=vocabulary).feed_text(b"<|channel|>x y<|message|>Hi")
    Renderer(vocabulary, "guide").encode("Hi")
    seen = weakref.ref(vocabulary)
    del vocabulary, parser
    gc.collect()
    assert seen() is None


def test_given_special_tokens_take_texts_and_ids_from_the_file(write):
    path = write("tokenizer.json", tokenizer_json())
    given_special = {FormattingToken.CALL: 307, FormattingToken.START_OF_TEXT: 400, "<|new|>": 401}
    special = Vocabulary.from_file(path, special_tokens=given_special).special_tokens
    assert special == {**SPECIAL, "<|call|>": 307, "<|startoftext|>": 400, "<|new|>": 401}


@pytest.mark.parametrize(
    ("pre_tokenizer", "given_pattern", "used"),
    [
        ({"type": "Split", "pattern": {"Regex": r"\w+|\W"}}, None, r"\w+|\W"),
        ({"type": "Split", "pattern": {"Regex": r"\w+|\W"}}, ".", "."),
        ({"type": "ByteLevel"}, r"\S+|\s", r"\S+|\s"),
        (None, r"\S+|\s", r"\S+|\s"),
    ],
)
def test_the_pattern_is_the_given_one_or_that_of_the_file(
    write, pre_tokenizer, given_pattern, used
):
    path = write("tokenizer.json", tokenizer_json(pre_tokenizer=pre_tokenizer))
    vocabulary = Vocabulary.from_file(path, pat_str=given_pattern)
    assert vocabulary.tiktoken_encoding._pat_str == used


SPLIT = {"type": "Split", "pattern": {"Regex": r"\w+"}}


@pytest.mark.parametrize(
    "pre_tokenizer",
    [
        None,
        {"type": "ByteLevel"},
        {"type": "Split", "pattern": {"String": " "}},
        {"type": "Sequence", "pretokenizers": [SPLIT, SPLIT]},
    ],
)
def test_a_file_without_a_single_pattern_asks_for_one(write, pre_tokenizer):
    path = write("tokenizer.json", tokenizer_json(pre_tokenizer=pre_tokenizer))
    with pytest.raises(LoadError, match=r"no single pattern that splits text; give it as pat_str"):
        Vocabulary.from_file(path)


def test_a_tiktoken_encoding_gives_its_own_ids():
    encoding = tiktoken.Encoding(
        "small",
        pat_str=r"\w+|\W",
        mergeable_ranks={data: i for i, data in enumerate(TOKENS)},
        special_tokens={text: token for text, token in SPECIAL.items() if text != "<|call|>"},
    )
    with pytest.raises(LoadError, match=r"vocabulary small: no id for <\|call\|>; give the ids"):
        Vocabulary.from_tiktoken(encoding)
    vocabulary = Vocabulary.from_tiktoken(encoding, special_tokens={"<|call|>": 400})
    assert vocabulary.name == "small"
    assert vocabulary.decode([256, 400]) == "Hi<|call|>"
    assert vocabulary.tiktoken_encoding.encode("Hi<|call|>", allowed_special="all") == [256, 400]


def test_two_names_for_one_id_are_taken_as_tiktoken_has_them():
    encoding = tiktoken.Encoding(
        "small",
        pat_str=r"\w+|\W",
        mergeable_ranks={data: i for i, data in enumerate(TOKENS)},
        special_tokens={**SPECIAL, "<|endofprompt|>": 350, "<|reserved_350|>": 350},
    )
    assert Vocabulary.from_tiktoken(encoding).decode([350]) == "<|reserved_350|>"


# -- Wrong files --


def test_a_corrupt_file_names_both_checksums(write, official_vocabulary_file):
    content = flipped(official_vocabulary_file.read_bytes())
    path = write("o200k_base.tiktoken", content)
    with pytest.raises(LoadError) as caught:
        Vocabulary.from_file(path)
    assert caught.value.path == str(path)
    assert caught.value.expected == f"sha256 {OFFICIAL_SHA256}"
    assert caught.value.found == f"sha256 {hashlib.sha256(content).hexdigest()}"
    assert "Vocabulary.from_file(path)" in caught.value.remedy
    assert "special_tokens=" in caught.value.remedy


def test_an_expected_checksum_is_checked_whatever_the_file(write):
    path = write("tokenizer.json", tokenizer_json())
    right = hashlib.sha256(tokenizer_json()).hexdigest()
    assert Vocabulary.from_file(path, expected_sha256=right.upper()).special_tokens == SPECIAL
    with pytest.raises(LoadError, match=rf"expected sha256 {'0' * 64}, found sha256 {right}"):
        Vocabulary.from_file(path, expected_sha256="0" * 64)


def test_a_directory_without_a_vocabulary_names_what_was_sought(tmp_path):
    with pytest.raises(LoadError) as caught:
        Vocabulary.from_file(tmp_path)
    assert str(caught.value) == (
        f"vocabulary {tmp_path}: the directory does not contain a vocabulary "
        "(expected a file o200k_base.tiktoken or tokenizer.json, found nothing); "
        f"load a local copy of o200k_base.tiktoken (sha256 {OFFICIAL_SHA256}) or the model's "
        "tokenizer.json with Vocabulary.from_file(path)"
    )


def test_a_missing_file_is_named(tmp_path):
    path = tmp_path / "o200k_base.tiktoken"
    with pytest.raises(LoadError, match="No such file or directory; load a local copy") as caught:
        Vocabulary.from_file(path)
    assert caught.value.path == str(path)


@pytest.mark.parametrize(
    ("content", "special", "sentence"),
    [
        (b"IQ== 0\nIg==\n", SPECIAL, r"line 2 is not a token .expected base64\(bytes\) id, found"),
        (b"IQ== 0\n??== 1\n", SPECIAL, r"line 2 is not a token"),
        (b"IQ== zero\n", SPECIAL, r"line 1 is not a token"),
        (b"IQ== 0\nIg== 0\n", SPECIAL, r"line 2 repeats the id 0"),
        (b"", SPECIAL, r"no ordinary tokens"),
        (b"IQ== -1\n", SPECIAL, r"impossible id -1 .expected 0 to 16777216, found -1"),
        (b"IQ== 99999999999\n", SPECIAL, r"impossible id 99999999999"),
        (tiktoken_lines(), {**SPECIAL, "<|call|>": -7}, r"impossible id -7"),
        (tiktoken_lines(), {}, r"no id for <\|start\|>, <\|message\|>, .*; give the ids of this"),
        (
            tiktoken_lines(),
            {**SPECIAL, "": 305},
            r"'' is not valid as a special token; give the ids",
        ),
        (
            tiktoken_lines(),
            {**SPECIAL, "\ud800": 305},
            r"'\\ud800' is not valid as a special token",
        ),
        (tiktoken_lines(), {"<|start|>": 1}, r"no id for <\|message\|>, .*"),
        (tiktoken_lines(), {**SPECIAL, "<|end|>": 256}, r"id 256 is both <\|end\|> and b'Hi'"),
        (tiktoken_lines(), {**SPECIAL, "<|x|>": 256}, r"id 256 is both <\|x\|> and b'Hi'"),
        (
            tiktoken_lines(),
            {**SPECIAL, "<|end|>": SPECIAL["<|call|>"]},
            r"id 304 is both <\|end\|> and <\|call\|>",
        ),
    ],
)
def test_a_wrong_tiktoken_file_or_id_is_named(write, content, special, sentence):
    path = write("x.tiktoken", content)
    with pytest.raises(LoadError, match=sentence) as caught:
        Vocabulary.from_file(path, special_tokens=special)
    assert caught.value.path == str(path)


@given(content=st.binary() | st.binary().map(b"{".__add__))
def test_any_other_content_is_a_load_error(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_bytes(content)
        with pytest.raises(LoadError):
            Vocabulary.from_file(path)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"{", "JSONDecodeError: Expecting property name"),
        (b'{"a": "\xff"}', "UnicodeDecodeError: "),
        (b'{"a":' * 100_000, "RecursionError: "),
        (b"{}", "KeyError: 'model'"),
        (tokenizer_json(model={"type": "Unigram", "vocab": [["a", 0.5]]}), "AttributeError: "),
        (tokenizer_json(model={"vocab": {"▁word": 0}}), "KeyError: '▁'"),
        (tokenizer_json(model={"vocab": {"word": "0"}}), "TypeError: "),
        (tokenizer_json(added_tokens=[{"content": "<|start|>"}]), "KeyError: 'id'"),
        (tokenizer_json(added_tokens=["<|start|>"]), "AttributeError: "),
    ],
)
def test_a_wrong_tokenizer_json_says_what_it_lacks(write, content, found):
    path = write("tokenizer.json", content)
    with pytest.raises(LoadError, match="byte-level BPE vocabulary") as caught:
        Vocabulary.from_file(path)
    assert caught.value.path == str(path)
    assert caught.value.found.startswith(found)
