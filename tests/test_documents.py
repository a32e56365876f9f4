"""The README and the documents say what the code does."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def test_the_diagram_and_the_table_are_those_of_the_code():
    script = ROOT / "scripts" / "make_state_diagram.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("", 0)


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_the_programs_of_the_readme_run(code):
    exec(compile(code, "README.md", "exec"), {"engine": [200005, 17196, 200008, 13225, 200002]})


def test_the_values_that_the_readme_shows_are_right():
    code = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    scope = {}
    exec(compile(code, "README.md", "exec"), scope)
    shown = re.findall(r"^(completion\.\w+) +# ('\w+'|\(\)):?", code, re.MULTILINE)
    assert len(shown) == 4
    for expression, value in shown:
        assert repr(eval(expression, scope)) == value


@pytest.mark.parametrize("link", re.findall(r"\]\(((?!http)[^)#]+)", README))
def test_what_the_readme_links_to_is_there(link):
    assert (ROOT / link).exists()
