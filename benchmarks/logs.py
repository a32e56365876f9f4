"""Token logs at size: throughput per core, memory, and two processes against one.

    python benchmarks/logs.py [--completions 1000000] [--rounds 3]

The job: what each completion says, one row a message, with channel, recipient, text, how many
tokens its content has, and how it ended; from Arrow lists, as Parquet gives them, and from lists.
It is done by `parse_batch` and by loops over openai-harmony, in one run and by turns: one loop in
bulk (`parse_messages_from_completion_tokens`, with counts from a walk over the special tokens),
one that polls its `StreamableParser`, which knows the counts itself. The machine may be loaded, so
that a loop of plain Python on one and on two processes tells what two can gain at best.
"""

from __future__ import annotations

import argparse
import functools
import io
import json
import multiprocessing
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import openai_harmony
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from parsing import encode, provide_official_file
from side_by_side import ratio, time_by_turns
from texts import TEXTS, completion

from harmony_stream.logs import batch, parse_batch, read_log

if TYPE_CHECKING:
    from collections.abc import Callable

_ROLE = openai_harmony.Role.ASSISTANT
_STOPS = {200002, 200007, 200012}
_MESSAGE = 200008


def make_rows(count: int) -> list[list[int]]:
    """Completions of one to three messages, 100 to 900 tokens each, cut from texts at random."""
    chance = random.Random(7)
    bodies = [encode(text) for text in TEXTS.values()]
    frames = [encode(completion("@", messages)) for messages in (1, 2, 3)]
    (mark,) = encode("@")
    return [list(_filled(chance.choice(frames), mark, bodies, chance)) for _ in range(count)]


def _filled(frame: list[int], mark: int, bodies: list[list[int]], chance: random.Random) -> Any:  # noqa: ANN401 - ids
    for token in frame:
        if token == mark:
            body = chance.choice(bodies)
            start = chance.randrange(len(body) // 2)
            yield from body[start : start + chance.randrange(100, 300)]
        else:
            yield token


# -- The same job by openai-harmony ----------------------------------------------------------------


def there_in_bulk(encoding: openai_harmony.HarmonyEncoding, rows: list[list[int]]) -> list[Any]:
    """Messages in bulk; counts and ends from the special tokens, which is fine if all is well."""
    found = []
    for row, tokens in enumerate(rows):
        messages = encoding.parse_messages_from_completion_tokens(tokens, _ROLE)
        begins = [place for place, token in enumerate(tokens) if token == _MESSAGE]
        ends = [place for place, token in enumerate(tokens) if token in _STOPS]
        for index, (message, begin, end) in enumerate(zip(messages, begins, ends, strict=True)):
            text = message.content[0].text
            where = (message.channel, message.recipient, message.content_type)
            found.append((row, index, *where, text, end - begin - 1, tokens[end]))
    return found


def there_by_polling(encoding: openai_harmony.HarmonyEncoding, rows: list[list[int]]) -> list[Any]:
    """Messages token by token, counted as they come."""
    found = []
    for row, tokens in enumerate(rows):
        parser = openai_harmony.StreamableParser(encoding, _ROLE)
        counts = [0]
        for token in tokens:
            parser.process(token)
            if parser.state == openai_harmony.StreamState.EXPECT_START:
                counts.append(0)
            elif parser.state == openai_harmony.StreamState.CONTENT:
                counts[-1] += 1
        for index, message in enumerate(parser.messages):
            text = message.content[0].text
            where = (message.channel, message.recipient, message.content_type)
            found.append((row, index, *where, text, counts[index] - 1))
    return found


def by_the_parser(rows: list[list[int]]) -> list[Any]:
    """The way without numpy and pyarrow."""
    return [each for row, ids in enumerate(rows) for each in batch._parse_row(row, ids)]


def bench_parsing(rounds: int) -> None:
    """Nanoseconds a token on one core, and the ratio to openai-harmony."""
    rows = make_rows(600)
    total = sum(map(len, rows))
    arrow = pa.array(rows, pa.list_(pa.int32()))
    lines = "".join(json.dumps({"token_ids": row}) + "\n" for row in rows).encode()

    def read_here() -> list[Any]:
        return [record.completion for record in read_log(io.BytesIO(lines))]

    def read_there() -> list[list[int]]:
        return [json.loads(line)["token_ids"] for line in lines.splitlines()]

    with tempfile.TemporaryDirectory() as folder:
        provide_official_file(folder)
        encoding = openai_harmony.load_harmony_encoding("HarmonyGptOss")
        jobs: dict[str, Callable[[], object]] = {
            "parse_batch, Arrow": partial(parse_batch, arrow),
            "parse_batch, lists": partial(parse_batch, rows),
            "parse_batch, without the extra": partial(by_the_parser, rows),
            "parse_batch, JSON lines": lambda: parse_batch(read_here()),
            "openai-harmony, in bulk": partial(there_in_bulk, encoding, rows),
            "openai-harmony, JSON lines": lambda: there_in_bulk(encoding, read_there()),
            "openai-harmony, polled": partial(there_by_polling, encoding, rows),
        }
        mine, theirs = parse_batch(rows), there_in_bulk(encoding, rows)
        assert mine["text"] == [message[5] for message in theirs]
        assert mine["content_tokens"] == [message[6] for message in theirs]
        times = time_by_turns(jobs, rounds)
    print(f"{len(rows)} completions, {total} tokens, {len(theirs)} messages, one core")
    print(f"{'':32}  ns a token: min  med   bulk takes, by min and med")
    for name, timing in times.items():
        figures = (f"{1e9 * seconds / total:8.1f}" for seconds in timing)
        baseline = "openai-harmony, JSON lines" if "JSON" in name else "openai-harmony, in bulk"
        print(f"{name:32}", *figures, "  ", ratio(times[baseline], timing))


# -- A log of many ---------------------------------------------------------------------------------


def write_logs(folder: pathlib.Path, completions: int) -> tuple[list[pathlib.Path], int]:
    """The log in Parquet and in JSON lines; the tokens in it. Rows repeat after a thousand."""
    rows = make_rows(1000)
    paths = [folder / "log.parquet", folder / "log.jsonl"]
    table = pa.table({"generated_tokens": pa.array(rows, pa.list_(pa.int32()))})
    lines = "".join(json.dumps({"token_ids": row}) + "\n" for row in rows)
    with pq.ParquetWriter(paths[0], table.schema) as writer, paths[1].open("w") as file:
        for _ in range(completions // len(rows)):
            writer.write_table(table)
            file.write(lines)
    return paths, completions // len(rows) * sum(map(len, rows))


# A program of its own, so that nothing but the command is loaded, and loaded again by its workers.
# The peak is not ru_maxrss, which begins with what the process before the exec had.
_CHECK = """\
import argparse, pathlib, resource, sys
from harmony_stream.commands import check

parser = argparse.ArgumentParser()
check.add_parser(parser.add_subparsers())
arguments = parser.parse_args(["check", "--json", *sys.argv[1:]])
arguments.run(arguments)
status = pathlib.Path("/proc/self/status").read_text()
peak = int(status.partition("VmHWM:")[2].split()[0]) // 1024
usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(peak, *(each.ru_utime + each.ru_stime for each in usages), file=sys.stderr)
"""


class Check(NamedTuple):
    """What a check took."""

    seconds: float
    peak: int  # megabytes of the first process
    own: float  # seconds of work in the first process
    others: float  # and in the others


def timed_check(log: pathlib.Path, jobs: int) -> Check:
    """Check a log in a new process."""
    command = [sys.executable, "-c", _CHECK, str(log), "--jobs", str(jobs)]
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - begin
    peak, own, others = done.stderr.split()
    return Check(seconds, int(peak), float(own), float(others))


def spin(count: int) -> int:
    """Plain work."""
    return functools.reduce(lambda total, number: total ^ number, range(count))


def gain_of_two(count: int = 10_000_000) -> float:
    """How many times as fast two processes of plain work are as one, here and now."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, context) as pool:
        list(pool.map(spin, [1, 1]))
        seconds = []
        for parts in (1, 2):
            begin = time.perf_counter()
            list(pool.map(spin, [2 * count // parts] * parts))
            seconds.append(time.perf_counter() - begin)
    return seconds[0] / seconds[1]


def print_gains(ones: list[Check], twos: list[Check], plain: list[float]) -> None:
    """What two processes gained, what plain work gains here, and what two whole cores would give.

    The last is from seconds of work: the reader and the slower of two workers run at one time.
    """
    pairs = list(zip(ones, twos, strict=True))
    ratios = [one.seconds / two.seconds for one, two in pairs]
    whole = [one.own / max(two.own, two.others / 2) for one, two in pairs]
    for name, gains in (("two against one", ratios), ("plain work", plain), ("by work", whole)):
        print(f"  {name:16}", *(f"{gain:.2f}" for gain in gains), "x")


def bench_logs(completions: int, rounds: int) -> None:
    """Throughput and memory of `check` on whole logs, by one and by two processes."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for share in (10, 1):
            (folder / str(share)).mkdir()
            paths, tokens = write_logs(folder / str(share), completions // share)
            for path in paths:
                figures: dict[int, list[Check]] = {1: [], 2: []}
                gains = []
                for _ in range(rounds):
                    for jobs, each in figures.items():
                        each.append(timed_check(path, jobs))
                    gains.append(gain_of_two())
                print(f"\n{path.name}: {tokens:,} tokens, load {os.getloadavg()[0]:.1f}")
                for jobs, each in figures.items():
                    best = min(each)
                    rate = tokens / best.seconds / 1e6
                    peak = max(check.peak for check in each)
                    print(
                        f"  {jobs} jobs: {best.seconds:6.1f} s {rate:6.2f} M tokens/s {peak:5} MB"
                    )
                print_gains(figures[1], figures[2], gains)


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--completions", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    bench_parsing(arguments.rounds)
    bench_logs(arguments.completions, arguments.rounds)


if __name__ == "__main__":
    main()
