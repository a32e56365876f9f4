"""The processes that run the jobs, seen from the command."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from benchmarks.rows import OPENAI, OSS, OURS, Row
from harmony_stream import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

ROOT = Path(__file__).resolve().parent.parent
_REFERENCE = ROOT / ".reference"
PYTHONS = {
    OURS: Path(sys.executable),
    OPENAI: _REFERENCE / "openai-harmony-0.0.8" / "bin" / "python",
    OSS: _REFERENCE / "oss-harmony-0.0.11" / "bin" / "python",
}


class JobError(Exception):
    """A job raised; the sentence is its traceback."""


def missing_libraries(rows: Iterable[Row]) -> list[str]:
    """Return the libraries of these rows whose environments are not there."""
    needed = {way.library for row in rows for way in row.ways}
    return sorted(library for library in needed if not PYTHONS[library].exists())


def write_official_file(folder: str) -> None:
    """Write o200k_base.tiktoken from the embedded vocabulary.

    openai-harmony would fetch the file if it did not find it.
    """
    vocabulary = Vocabulary.default()
    ranks = sorted(vocabulary.tiktoken_encoding._mergeable_ranks.items(), key=lambda pair: pair[1])
    lines = (base64.b64encode(data) + b" %d\n" % rank for data, rank in ranks)
    Path(folder, "o200k_base.tiktoken").write_bytes(b"".join(lines))


class Worker:
    """One process; see `worker.py`."""

    def __init__(self, library: str, environment: Mapping[str, str]) -> None:
        # In a session of its own: Ctrl-C goes to the command, which then ends its workers.
        self._process = subprocess.Popen(
            [PYTHONS[library], "-m", "benchmarks.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )

    def ask(self, *request: object) -> dict[str, Any]:
        """Return the answer to a request.

        Raises:
            JobError: if the job raises, or its process ends.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "the worker ended"}
        if "error" in answer:
            raise JobError(f"{request}: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the process and those that it started."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


class Workers:
    """A worker for each library, started when it is first asked."""

    def __init__(self, vocabulary_folder: str) -> None:
        self._environment = {"TIKTOKEN_ENCODINGS_BASE": vocabulary_folder}
        self._workers: dict[str, Worker] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def ask(self, library: str, *request: object) -> dict[str, Any]:
        """Return the answer of a library's worker."""
        if library not in self._workers:
            self._workers[library] = worker = Worker(library, self._environment)
            self._stack.callback(worker.close)
        return self._workers[library].ask(*request)


class Vocabularies(tempfile.TemporaryDirectory[str]):
    """A folder with the official vocabulary file."""

    def __enter__(self) -> str:
        folder = super().__enter__()
        write_official_file(folder)
        return folder
