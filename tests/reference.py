"""Talks to the wheels that we compare with: JSON lines to a process in the wheel's environment.

Run as a script, by the interpreter of such an environment, this file is that process. A request
is ``[method, arguments]``; the answer is ``{"tokens": [...]}`` or ``{"error": sentence}``, and of
a loop of `server_loops` ``{"shown": [...]}``.
"""

from __future__ import annotations

import functools
import json
import runpy
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

with suppress(ImportError):  # the wheel's environment has no pytest
    import pytest

# From beside this file, whose folder is not on the wheel's path.
LOOPS = runpy.run_path(str(Path(__file__).with_name("server_loops.py")))["LOOPS"]

FOLDER = Path(__file__).resolve().parent.parent / ".reference"
ENVIRONMENTS = {"openai-0.0.8": "openai-harmony-0.0.8", "oss-0.0.11": "oss-harmony-0.0.11"}


class WheelError(Exception):
    """The wheel raised; the sentence is its own."""


class Wheel:
    """One wheel in a process of its own, started when first asked."""

    def __init__(self, profile: str):
        self.profile = profile

    @property
    def python(self) -> Path:
        return FOLDER / ENVIRONMENTS[self.profile] / "bin" / "python"

    def or_skip(self) -> Wheel:
        if not self.python.exists():
            pytest.skip("run scripts/setup_reference_wheels.py first")
        return self

    @functools.cached_property
    def _process(self) -> subprocess.Popen:
        # Without -P the folder of this file would be the first place to import from.
        command = [self.python, "-P", __file__]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def ask(self, method: str, **arguments) -> dict:
        self._process.stdin.write(json.dumps([method, arguments]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def tokens(self, method: str, **arguments) -> list[int]:
        answer = self.ask(method, **arguments)
        if "error" in answer:
            raise WheelError(answer["error"])
        return answer["tokens"]

    def close(self) -> None:
        if "_process" in self.__dict__:
            self._process.stdin.close()
            self._process.stdout.close()
            self._process.wait()


def answer(encoding, method: str, arguments: dict) -> dict:
    """What the wheel says to one request, in the process of the wheel."""
    import openai_harmony as wheel

    try:
        if method == "loop":
            shown = LOOPS[arguments["name"]](wheel, encoding, arguments["tokens"])
            return {"shown": shown}
        if method == "render":
            message = wheel.Message.from_dict(arguments["message"])
            options = wheel.RenderOptions(**arguments.get("options", {}))
            return {"tokens": encoding.render(message, options)}
        conversation = wheel.Conversation.from_json(json.dumps(arguments["conversation"]))
        config = wheel.RenderConversationConfig(**arguments.get("config", {}))
        role = [wheel.Role(arguments["role"])] if "role" in arguments else []
        return {"tokens": getattr(encoding, method)(conversation, *role, config)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    import openai_harmony as wheel

    encoding = wheel.load_harmony_encoding(wheel.HarmonyEncodingName.HARMONY_GPT_OSS)
    for line in sys.stdin:
        print(json.dumps(answer(encoding, *json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
