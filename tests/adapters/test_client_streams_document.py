"""`docs/client_streams.md` shows what the code does."""

import doctest
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "client_streams.md"


def test_the_examples_of_the_document_are_right():
    failures, tried = doctest.testfile(str(DOCUMENT), module_relative=False, encoding="utf-8")
    assert tried > 5
    assert failures == 0
