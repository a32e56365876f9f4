"""Arguments that commands share: what their types accept, and what they say otherwise."""

import argparse

import pytest

from harmony_stream.commands import arguments
from harmony_stream.logs import ReadOptions

# type, text, value
ACCEPTED = [
    (arguments.record_bytes, "1", 1),
    (arguments.jobs, "3", 3),
    (arguments.speed, "0.001", 0.001),
    (arguments.speed, "1e6", 1e6),
    (arguments.port, "0", 0),
    (arguments.port, "65535", 65535),
    (arguments.word, "::", "::"),
]


@pytest.mark.parametrize(("kind", "text", "value"), ACCEPTED)
def test_a_text_in_range_is_a_value(kind, text, value):
    assert kind(text) == value


# type, texts, reason
REFUSED = [
    (arguments.record_bytes, ["0", "-1", "x", "1.5"], "is not a positive number of bytes"),
    (arguments.jobs, ["0", "-1"], "is not a positive number"),
    (arguments.speed, ["0", "-1", "0.0009", "inf", "nan"], "is not a number of tokens per second"),
    (arguments.port, ["-1", "65536"], "is not a number from 0 to 65535"),
    (arguments.word, ["", " "], "it is empty"),
    (arguments.selection, ["3-1", "0", "a"], "is not a selection"),
]


@pytest.mark.parametrize(("kind", "texts", "reason"), REFUSED, ids=lambda each: str(each)[:30])
def test_a_text_out_of_range_is_refused_with_the_reason(kind, texts, reason):
    for text in texts:
        with pytest.raises(argparse.ArgumentTypeError, match=reason):
            kind(text)


@pytest.mark.parametrize("kind", [arguments.jobs, arguments.speed, arguments.port])
def test_what_is_not_a_number_is_left_to_argparse_to_report(kind):
    with pytest.raises(ValueError, match="x"):
        kind("x")


OPTIONS = ["--format", "json", "--ids", "a", "--lengths", "b", "--pad-id", "0"]


def test_the_options_say_how_to_read_a_log():
    parser = argparse.ArgumentParser()
    arguments.add_arguments(parser)
    given = parser.parse_args(["log", *OPTIONS, "--max-record-bytes", "5"])
    assert arguments.options_of(given) == ReadOptions("json", "a", "b", 0, 5)
    assert arguments.options_of(parser.parse_args(["log"])) == ReadOptions()


def test_the_help_names_the_defaults_in_use():
    parser = argparse.ArgumentParser()
    arguments.add_arguments(parser)
    text = " ".join(parser.format_help().split())
    for name in ("jobs", "max_record_bytes"):
        assert f"(default: {parser.get_default(name)})" in text
