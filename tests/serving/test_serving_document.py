"""What docs/serving.md shows is so."""

import doctest
import re
from pathlib import Path

from backend_harness import serving

TEXT = (Path(__file__).parent.parent.parent / "docs" / "serving.md").read_text("utf-8")


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
