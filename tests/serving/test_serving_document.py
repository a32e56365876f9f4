"""What docs/serving.md shows is so."""

import doctest
import inspect
import re
import textwrap
from pathlib import Path

from backend_harness import serving

from harmony_stream.serving import PushResponse

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "serving.md").read_text("utf-8")


def test_the_program_runs():
    program = "\n".join(re.findall(r"```python\n(>>> .*?)```", TEXT, re.DOTALL))
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    runner.run(parser.get_doctest(program, {}, "serving.md", None, 0))
    assert runner.summarize().failed == 0


def test_every_address_is_in_the_table():
    with serving({"any": [[200002]]}) as backend:
        for path in re.findall(r"`GET (/[\w/]*)", TEXT):
            assert backend.request("GET", path).status_code == 200
        for path in re.findall(r"`POST (/[\w/]*)", TEXT):
            assert backend.request("POST", path).status_code == 400


PUSHED = TEXT.partition("## Ten thousand streams")[2].partition("\n## ")[0]


def test_what_is_shown_of_the_program_that_pushes_is_in_it():
    program = (ROOT / "examples" / "backend" / "push.py").read_text("utf-8")
    excerpts = re.findall(r"```python\n(.*?)```", PUSHED, re.DOTALL)
    assert len(excerpts) == 3
    for excerpt in excerpts:
        assert any(textwrap.indent(excerpt, indent) in program for indent in ("    ", " " * 8))


def test_the_table_of_the_response_has_its_arguments_and_their_defaults():
    names = re.findall(r"^\| `(\w+)(?:=([\d.]+))?", PUSHED, re.MULTILINE)
    arguments = inspect.signature(PushResponse).parameters
    for name, default in names:
        if default:
            assert float(default) == arguments[name].default
        else:
            assert name in arguments or callable(getattr(PushResponse, name))
    assert {name for name, _ in names} >= {"on_close", "keep_alive", "limit", "write", "end"}
