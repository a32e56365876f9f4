"""Files of transcripts: what is written is read, and what is damaged is refused or left out."""

import contextlib
import functools
import json
import re
import struct
import tempfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessions import ANSWER, RENDERER, SUFFIXES, THOUGHT, is_same, new, texts_of, user
from strategies import SPECIAL, UNKNOWN, examples, tokens_of

from harmony_stream.history.files import TranscriptWarning
from harmony_stream.history.transcript import Transcript

END = SPECIAL["<|end|>"]
CUT = pytest.mark.filterwarnings("ignore::harmony_stream.history.files.TranscriptWarning")


@CUT
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_a_crash_cut_anywhere_is_loaded_up_to_there(suffix, tmp_path):
    path, part = tmp_path / f"session{suffix}", tmp_path / f"part{suffix}"
    transcript = new()
    transcript.add_messages([user()])
    transcript.save(path)
    head = path.stat().st_size
    transcript.add_sampled(tokens_of(THOUGHT + ANSWER))
    transcript.save(path)
    data = path.read_bytes()

    for length in range(head, len(data) + 1):
        part.write_bytes(data[:length])
        loaded = Transcript.load(part, RENDERER)
        assert texts_of(loaded) in (["2 + 2?"], ["2 + 2?", "Hm.", "Four."])
        loaded.add_messages([user()])
        loaded.save(part)
        assert texts_of(Transcript.load(part, RENDERER)) == texts_of(loaded)


def test_binary_files_are_smaller_and_hold_no_larger_ids(tmp_path):
    transcript = new()
    transcript.add_sampled([*tokens_of("<|channel|>final<|message|>"), *[199_000] * 1000, END])
    transcript.save(tmp_path / "a.jsonl")
    transcript.save(tmp_path / "a.bin")
    assert (tmp_path / "a.bin").stat().st_size < 4500 < (tmp_path / "a.jsonl").stat().st_size

    transcript.add_sampled([UNKNOWN, 2**32])
    with pytest.raises(ValueError, match=r"token 4294967296 does not fit .* save as JSON lines"):
        transcript.save(tmp_path / "a.bin")
    transcript.save(tmp_path / "a.jsonl")
    assert is_same(Transcript.load(tmp_path / "a.jsonl", RENDERER), transcript)


HEAD = b'{"format": "harmony_stream.transcript", "version": 1, "vocabulary": "o200k_harmony", '
HEAD += b'"malformed": "keep"}'
BINARY = b"harmony_stream transcript\n"
NESTED = b"[" * 100_000


def framed(*payloads):
    return BINARY + b"".join(
        struct.pack("<II", len(each), zlib.crc32(each)) + each for each in payloads
    )


def record(prompted=b"[]", sampled=b"[]"):
    return HEAD + b'\n{"prompted": ' + prompted + b', "sampled": ' + sampled + b"}\n"


# What a first line, or the first record of a binary file, may hold that is no head.
NO_HEADS = {
    "another object": (b"{}", "is not a transcript of version 1, but {}"),
    "a list": (b"[1]", "is not a transcript of version 1"),
    "a number": (b"5", "is not a transcript of version 1, but 5"),
    "a text": (b'"format"', "is not a transcript of version 1, but 'format'"),
    "null": (b"null", "is not a transcript of version 1, but None"),
    "not a number": (b"NaN", "is not a transcript of version 1, but nan"),
    "a later version": (HEAD.replace(b"1", b"2"), "not a transcript of version 1"),
    "a version that is true": (HEAD.replace(b"1", b"true"), "not a transcript of version 1"),
    "a version that is a list": (HEAD.replace(b"1", b"[1]"), "not a transcript of version 1"),
    "another vocabulary": (HEAD.replace(b"o200k", b"other"),
                           "of the vocabulary 'other_harmony', not of 'o200k_harmony'"),
    "a vocabulary that is a list": (HEAD.replace(b'"o200k_harmony"', b"[[1]]"),
                                    "of the vocabulary \\[\\[1\\]\\], not of"),
    "an unknown choice": (HEAD.replace(b"keep", b"lose"), "malformed is 'lose', not one of keep, "),
    "a choice that is a list": (HEAD.replace(b'"keep"', b"[]"), "malformed is \\[\\], not one of"),
    "no choice": (HEAD.replace(b"malformed", b"x"), "malformed is None, not one of keep, repair"),
    "no JSON": (b"hello", "not JSON: Expecting value"),
    "no UTF-8": (b'"\xff"', "can't decode byte 0xff"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), "can't decode byte 0xff"),
    "zeros": (b"\0\0", "not JSON"),
    "deep nesting": (NESTED, "JSON that is nested too deeply"),
    "half deep nesting": (b"[" * 400 + b"]" * 400, "not a transcript of version 1"),
    "too many digits": (b"9" * 5000, "digits"),
}  # fmt: skip
RECORDS = {
    "an unknown record": (HEAD + b'\n{"said": [1]}\n', "line 2: {'said': .* is not an object"),
    "half a record": (HEAD + b'\n{"prompted": [1]}\n', "line 2: .* is not an object of prompted"),
    "a record that has more": (record(b"[]", b'[], "more": 1'), "line 2: .* is not an object"),
    "a list": (HEAD + b"\n[1]\n", "line 2: \\[1\\] is not an object of prompted and sampled"),
    "a number": (HEAD + b"\n5\n", "damaged: line 2: 5 is not an object"),
    "null": (HEAD + b"\nnull\n", "line 2: None is not an object"),
    "no JSON": (record() + b"{,}\n", "line 3: not JSON: Expecting property name"),
    "an empty line": (record() + b"\n" + HEAD, "line 3: not JSON"),
    "no UTF-8": (record() + b'"\xff"\n', "line 3: .* can't decode byte 0xff"),
    "deep nesting": (record() + NESTED + b"\n", "line 3: JSON that is nested too deeply"),
    "deep tokens": (record(b"[" * 400 + b"]" * 400), "line 2: prompted\\[0\\] is "),
    "too many digits": (record(b"[" + b"9" * 5000 + b"]"), "line 2: .*digits"),
    "tokens that are null": (record(b"null"), "prompted is None, not a list of tokens"),
    "tokens that are a number": (record(b"[]", b"5"), "sampled is 5, not a list of tokens"),
    "tokens that are a text": (record(b'"12"'), "prompted is '12', not a list"),
    "tokens that are an object": (record(b"{}"), "prompted is {}, not a list"),
    "a negative token": (record(b"[1, -5]"), "line 2: prompted\\[1\\] is -5, not a token id"),
    "a float": (record(b"[]", b"[5.0]"), "line 2: sampled\\[0\\] is 5.0, not a token id"),
    "not a number": (record(b"[NaN]"), "prompted\\[0\\] is nan, not a token id"),
    "infinity": (record(b"[1e999]"), "prompted\\[0\\] is inf, not a token id"),
    "true": (record(b"[true]"), "prompted\\[0\\] is True, not a token id"),
    "a null": (record(b"[null]"), "prompted\\[0\\] is None, not a token id"),
    "a text": (record(b'["5"]'), "prompted\\[0\\] is '5', not a token id"),
    "a list of tokens": (record(b"[[5]]"), "prompted\\[0\\] is \\[5\\], not a token id"),
    "a number behind it": (record() + b"5", "line 3: 5 is not an object"),
    "a binary file without a head": (BINARY, "the header is missing"),
    "a binary file with half a head": (framed(HEAD)[:-1], "the header is missing"),
    "a binary file with a wrong sum": (
        BINARY + struct.pack("<II", 2, 7) + b"{}" + struct.pack("<II", 2, 7) + b"{}",
        "damaged at byte 26"),
    "a length beyond the end, with a record behind it": (
        framed(HEAD) + struct.pack("<IIII", 2**31, 7, 1, 5) + framed(b"\1\0\0\0\5\0\0\0")[26:],
        f"damaged at byte {len(framed(HEAD))}"),
    "five bytes": (framed(HEAD, b"12345"), "5 bytes are not a list of tokens"),
    "more prompted than there is": (framed(HEAD, struct.pack("<II", 9, 5)),
                                    f"at byte {len(framed(HEAD))}: 9 tokens were prompted, but"),
    "a record without tokens": (framed(HEAD, b"", HEAD), f"damaged at byte {len(framed(HEAD))}"),
}  # fmt: skip
DAMAGES = {
    "an empty file": (b"", "is not a transcript, or is damaged: the header is missing"),
    "half a line": (HEAD[:-5], "is not a transcript, or is damaged: the header is missing"),
    **RECORDS,
    **{f"{name} for a head": (data + b"\n", text) for name, (data, text) in NO_HEADS.items()},
    **{f"{name}, framed": (framed(data), text) for name, (data, text) in NO_HEADS.items()},
}


@pytest.mark.parametrize(("data", "sentence"), DAMAGES.values(), ids=DAMAGES)
def test_what_is_no_transcript_is_refused_by_name(data, sentence, tmp_path):
    path = tmp_path / "session"
    path.write_bytes(data)

    with pytest.raises(ValueError, match=sentence) as caught:
        Transcript.load(path, RENDERER)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < 1000


def saved(suffix, folder):
    """The bytes of a file, and what is in it."""
    transcript, path = new(), Path(folder) / f"session{suffix}"
    transcript.add_messages([user()])
    transcript.add_sampled(tokens_of(ANSWER))
    transcript.save(path)
    transcript.add_messages([user("3 + 3?")])
    transcript.save(path)
    return path.read_bytes(), Transcript.load(path, RENDERER)


EDITS = {
    "Windows' line breaks": lambda data: data.replace(b"\n", b"\r\n"),
    "a byte-order mark": lambda data: b"\xef\xbb\xbf" + data,
    "no last line break": lambda data: data.removesuffix(b"\n"),
    "zeros at its end": lambda data: data + bytes(4096),
    "half a record at its end": lambda data: data + b'{"prompted": [',
}
CUTS = [EDITS["zeros at its end"], EDITS["half a record at its end"]]


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_lines_that_an_editor_or_a_crash_has_changed_are_all_read(edit, tmp_path):
    path = tmp_path / "session.jsonl"
    data, wanted = saved(".jsonl", tmp_path)
    path.write_bytes(edit(data))

    with pytest.warns(TranscriptWarning) if edit in CUTS else contextlib.nullcontext():
        found = Transcript.load(path, RENDERER)
    assert is_same(found, wanted)
    found.add_messages([user("And 4 + 4?")])
    found.save(path)
    assert is_same(Transcript.load(path, RENDERER), found)


@pytest.mark.parametrize("rest", [bytes(1), bytes(8), bytes(4096), b"\5", b"\5\0\0\0\7\7\7\7\1"])
def test_what_a_crash_left_at_the_end_of_a_binary_file_is_left_out(rest, tmp_path):
    path = tmp_path / "session.bin"
    data, wanted = saved(".bin", tmp_path)
    path.write_bytes(data + rest)

    sentence = f"{path}: the last {len(rest)} bytes are no whole record; they are left out"
    with pytest.warns(TranscriptWarning, match=f"^{re.escape(sentence)}$"):
        found = Transcript.load(path, RENDERER)
    assert is_same(found, wanted)
    found.add_messages([user("And 4 + 4?")])
    found.save(path)
    assert is_same(Transcript.load(path, RENDERER), found)


# JSON of all kinds, and what stands in transcripts.
fields = st.sampled_from(["format", "version", "vocabulary", "malformed", "prompted", "sampled"])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
values = st.recursive(
    scalars, lambda each: st.lists(each, max_size=4) | st.dictionaries(fields, each, max_size=4)
)
heads = st.just(json.loads(HEAD))
records = st.fixed_dictionaries({"prompted": st.lists(scalars), "sampled": st.lists(scalars)})
lines = (values | heads | records).map(lambda value: json.dumps(value).encode())
odd_lines = st.lists(lines | st.binary(max_size=9), max_size=4).map(b"\n".join)
lines_with_a_head = st.builds(lambda rest, end: HEAD + b"\n" + rest + end, odd_lines,
                              st.sampled_from([b"", b"\n", b"\r\n"]))  # fmt: skip
payloads = st.binary(max_size=16) | st.lists(st.integers(0, 9), max_size=6).map(
    lambda numbers: struct.pack(f"<{len(numbers)}I", *numbers)
)
odd_frames = st.lists(payloads | lines, max_size=3).map(lambda each: framed(*each))
frames_with_a_head = st.lists(payloads, max_size=3).map(lambda each: framed(HEAD, *each))


@functools.cache
def saved_bytes(suffix):
    with tempfile.TemporaryDirectory() as folder:
        return saved(suffix, folder)[0]


@st.composite
def damaged_files(draw):
    """A good file with one part cut out, doubled, moved or written over."""
    data = saved_bytes(draw(st.sampled_from(SUFFIXES)))
    first, stop = sorted(draw(st.tuples(*[st.integers(0, len(data))] * 2)))
    part, to = data[first:stop], draw(st.integers(0, len(data)))
    middle = draw(st.sampled_from([b"", part * 2, bytes(len(part))]) | st.binary(max_size=12))
    changed = data[:first] + middle + data[stop:]
    return draw(st.sampled_from([changed, changed[:to] + part + changed[to:]]))


@CUT
@given(
    st.one_of(st.binary(), odd_lines, lines_with_a_head, odd_frames, frames_with_a_head,
              damaged_files())
)  # fmt: skip
@examples(500)
def test_any_bytes_are_a_transcript_or_an_error_that_names_the_file(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.bin"
        path.write_bytes(data)
        error = None
        try:
            transcript = Transcript.load(path, RENDERER)
        except ValueError as caught:
            error = caught
        if error is None:
            again = path.with_name("again.jsonl")
            transcript.save(again)
            assert is_same(Transcript.load(again, RENDERER), transcript)
        else:
            assert type(error) is ValueError
            assert str(error).startswith(str(path))
