"""The README and the documents say what the code does."""

import pathlib
import re
import subprocess
import sys

import pytest

from harmony_stream import FaultKind, Vocabulary, parse

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


def test_each_kind_of_fault_is_listed_with_its_repair():
    repairs = (ROOT / "docs" / "repairs.md").read_text("utf-8")
    listed = set(
        re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", repairs, re.MULTILINE)))
    )
    assert listed == {kind.value for kind in FaultKind}


DECIDED = {
    "final<|message|>Yes": [("final", "Yes")],
    "<|start|>assistant analysis<|message|>Hm": [("analysis", "Hm")],
    "<|start|>assistantcommentary<|message|>Hm": [("commentary", "Hm")],
    "<|channel|>analysis<|channel|><|message|>Hm": [("analysis", "Hm")],
    "<|channel|>analysis We should<|channel|>final Yes<|return|>": [
        ("analysis", "We should"),
        ("final", "Yes"),
    ],
    '<|channel|>final{"a": 1}<|return|>': [("final", '{"a": 1}')],
    "<|channel|>commentary?<|message|>Hm": [("commentary?", "Hm")],
}


@pytest.mark.parametrize("text", DECIDED)
def test_the_decisions_are_what_the_parser_does(text):
    encoding = Vocabulary.default().tiktoken_encoding
    messages = parse(encoding.encode(text, allowed_special="all")).messages
    assert [(message.channel, message.content[0].text) for message in messages] == DECIDED[text]
