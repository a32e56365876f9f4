"""Jobs that start a program in a new process."""

from __future__ import annotations

import compileall
import os
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

from benchmarks.job import Measured

_TOKENS = "[200005, 17196, 200008, 13225, 200002]"
_IMPORTS = {"ours": "import harmony_stream", "wheel": "import openai_harmony"}
_FIRST = {
    "ours": f"import harmony_stream; harmony_stream.parse({_TOKENS})",
    "wheel": (
        "import openai_harmony as o; o.load_harmony_encoding('HarmonyGptOss')"
        f".parse_messages_from_completion_tokens({_TOKENS}, o.Role.ASSISTANT)"
    ),
}


def _cpu(program: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _more(program: str) -> dict[str, float]:
    bare = _cpu("pass")
    return {"ms": 1e3 * (_cpu(program) - bare)}


def _compile() -> None:
    """Compile as pip does: a checkout has no bytecode, or that of older sources."""
    for folder in os.environ["PYTHONPATH"].split(os.pathsep):
        compileall.compile_dir(Path(folder, "harmony_stream"), quiet=1)


def start(what: str, library: str) -> Measured:
    """CPU time of a program beyond that of the bare interpreter."""
    _compile()
    program = {"import": _IMPORTS, "first completion": _FIRST}[what][library]
    return Measured(partial(_more, program))
