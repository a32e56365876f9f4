"""Inputs of commands: read from a file or standard input, or refused with name and reason."""

import os

import pytest

from harmony_stream.commands.inputs import (
    CommandError,
    load_json,
    name_of,
    read_bytes,
    refuse_own_output,
    source_of,
)


@pytest.fixture
def closed_stdin():
    saved = os.dup(0)
    os.close(0)
    yield
    os.dup2(saved, 0)
    os.close(saved)


def test_a_dash_is_standard_input():
    assert (name_of("-"), name_of("a")) == ("<stdin>", "a")
    assert source_of("a") == "a"
    assert source_of("-").fileno() == 0


@pytest.mark.parametrize("read", [source_of, read_bytes])
def test_a_closed_standard_input_is_an_error_that_names_it(closed_stdin, read):
    with pytest.raises(CommandError, match=r"^<stdin>: Bad file descriptor$"):
        read("-")


# content, reason
NOT_JSON = [
    (b"[1,\n2", "FILE:2: not JSON: Expecting ',' delimiter"),
    (b'[\n"\xff"]', "FILE:2: not UTF-8: invalid start byte"),
    (b"[" * 999 + b"]" * 999, "FILE: JSON nested too deeply: more than 128 levels"),
]


@pytest.mark.parametrize(("content", "reason"), NOT_JSON)
def test_a_file_that_is_not_json_is_an_error_with_its_line(tmp_path, content, reason):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(CommandError) as caught:
        load_json(str(path))
    assert str(caught.value) == reason.replace("FILE", str(path))


def test_a_byte_order_mark_is_not_part_of_the_json(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf[1]")
    assert load_json(str(path)) == [1]


def test_a_file_that_cannot_be_opened_is_an_error_with_its_name(tmp_path):
    with pytest.raises(CommandError, match=f"^{tmp_path}: Is a directory$"):
        read_bytes(str(tmp_path))


def test_an_output_may_be_any_file_but_an_input(tmp_path):
    log, other = tmp_path / "log", tmp_path / "other"
    log.touch()
    refuse_own_output(str(other), [str(log), "-"])
    os.link(log, other)
    with pytest.raises(CommandError, match=f"^{other}: the output is the same file as .* {log}; "):
        refuse_own_output(str(other), [str(log)])
