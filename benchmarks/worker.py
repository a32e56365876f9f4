"""A process that runs jobs on command: JSON lines in, JSON lines out. Only the standard library.

    python -m benchmarks.worker

Each environment has one: this library's, and one for each wheel, since the wheels share the name of
their module. A request is the name of a function below and its arguments.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import traceback
from importlib import import_module
from typing import Any

from benchmarks.job import Job, Measured, cpu_seconds

_jobs: dict[str, Job | Measured] = {}


def prepare(way: str, job: str, options: dict[str, Any]) -> dict[str, Any]:
    """Make a job; return a digest of its result, by which the ways are compared."""
    module, _, name = job.rpartition(".")
    _jobs[way] = made = getattr(import_module(f"benchmarks.jobs.{module}"), name)(**options)
    if made.says is None:
        return {"says": None}
    return {"says": hashlib.sha256(json.dumps(made.says).encode()).hexdigest()}


def forget() -> dict[str, Any]:
    """Drop all jobs, and their data with them."""
    _jobs.clear()
    return {}


def warm(way: str) -> dict[str, Any]:
    """Run a timed job once; return the seconds. One that measures itself warms itself up."""
    job = _jobs[way]
    return {"seconds": 1.0 if isinstance(job, Measured) else cpu_seconds(job.run, 1)}


def measure(way: str, repeats: int) -> dict[str, Any]:
    """Run a job; return its figures, or the seconds for one of its units."""
    job = _jobs[way]
    if isinstance(job, Measured):
        return {"figures": job.run()}
    return {"seconds": cpu_seconds(job.run, repeats), "units": job.units}


_REQUESTS = {each.__name__: each for each in (forget, prepare, warm, measure)}


def main() -> None:
    """Answer requests until there are no more."""
    # Jobs may print; what they print must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        request, *arguments = json.loads(line)
        try:
            answer = _REQUESTS[request](*arguments)
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
