"""Jobs that read logs of many completions."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from benchmarks.job import Job, Measured
from benchmarks.jobs.tokens import encode
from benchmarks.texts import random_completions
from harmony_stream.logs import batch as batches
from harmony_stream.logs import parse_batch, read_log
from harmony_stream.logs.columns import COLUMNS


def _by_parser(rows: list[list[int]]) -> dict[str, list[Any]]:
    """Read as without numpy and pyarrow."""
    messages = [each for row, ids in enumerate(rows) for each in batches._parse_row(row, ids)]
    columns = map(list, zip(*messages, strict=True))
    return dict(zip(COLUMNS, columns, strict=True))


def _lines(rows: list[list[int]]) -> bytes:
    return "".join(json.dumps({"token_ids": row}) + "\n" for row in rows).encode()


def _read(lines: bytes) -> dict[str, list[Any]]:
    return parse_batch([record.completion for record in read_log(io.BytesIO(lines))])


def batch(completions: int, source: str) -> Job:
    """What each message of a log says: a row with its header, text, length and end."""
    rows = random_completions(completions, encode)
    arrow, lines = pa.array(rows, pa.list_(pa.int32())), _lines(rows)
    run = {
        "Arrow": partial(parse_batch, arrow),
        "lists": partial(parse_batch, rows),
        "parser": partial(_by_parser, rows),
        "JSON lines": partial(_read, lines),
    }[source]
    found = run()
    says = [list(each) for each in zip(found["text"], found["content_tokens"], strict=True)]
    return Job(run, sum(map(len, rows)), says)


# A program of its own, so that nothing but the command is loaded. The peak is not ru_maxrss, which
# begins with the memory of the process before the exec.
_CHECK = """\
import pathlib, sys
from harmony_stream.cli import main

try:
    main(["check", "--json", *sys.argv[1:]])
finally:
    status = pathlib.Path("/proc/self/status").read_text()
    print(status.partition("VmHWM:")[2].split()[0], file=sys.stderr)
"""


def check(completions: int, kind: str, jobs: int) -> Measured:
    """The command `check` on a whole log: wall time, since it may use several processes."""
    rows = random_completions(1000, encode) * (completions // 1000)
    total = sum(map(len, rows))
    folder = tempfile.TemporaryDirectory()
    log = Path(folder.name, f"log.{kind}")
    if kind == "parquet":
        pq.write_table(pa.table({"generated_tokens": pa.array(rows, pa.list_(pa.int32()))}), log)
    else:
        log.write_bytes(_lines(rows))

    def run() -> dict[str, float]:
        assert folder  # it is removed with this function
        command = [sys.executable, "-c", _CHECK, str(log), "--jobs", str(jobs)]
        begin = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds = time.perf_counter() - begin
        return {
            "ns a token": 1e9 * seconds / total,
            "MB": int(done.stderr.split()[-1]) / 1024,
        }

    return Measured(run)
