"""`python -m harmony_stream` is the command."""

import runpy
import sys
from pathlib import Path

import pytest

import harmony_stream

MODULE = str(Path(harmony_stream.__file__).with_name("__main__.py"))


def test_the_package_run_as_a_program_is_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["harmony-stream", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(MODULE, run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("harmony-stream ")


def test_importing_it_runs_nothing(capsys):
    runpy.run_path(MODULE, run_name="imported")
    assert capsys.readouterr() == ("", "")
