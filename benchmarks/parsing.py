"""How fast tokens are parsed, side by side with openai-harmony.

    python benchmarks/parsing.py [--rounds 40]

openai-harmony needs its vocabulary in a file, and fetches it if there is none; here it gets the
official file, rebuilt from the embedded data.
"""

from __future__ import annotations

import argparse
import base64
import compileall
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import tracemalloc
from functools import partial
from typing import TYPE_CHECKING

import openai_harmony
from side_by_side import ratio, time_by_turns
from texts import MIXED, TEXTS, completion

import harmony_stream
from harmony_stream import ContentDelta, EventParser, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable


def provide_official_file(folder: str) -> None:
    """Write o200k_base.tiktoken and tell openai-harmony where it is."""
    vocabulary = Vocabulary.default()
    ranks = sorted(vocabulary.tiktoken_encoding._mergeable_ranks.items(), key=lambda pair: pair[1])
    lines = (base64.b64encode(data) + b" %d\n" % rank for data, rank in ranks)
    pathlib.Path(folder, "o200k_base.tiktoken").write_bytes(b"".join(lines))
    os.environ["TIKTOKEN_ENCODINGS_BASE"] = folder


def encode(text: str) -> list[int]:
    """Marked text as token ids."""
    return Vocabulary.default().tiktoken_encoding.encode(text, allowed_special="all")


# -- One token at a time, everything read --------------------------------------------------------


def feed_each(tokens: list[int]) -> None:
    """Feed tokens one by one; read text, channel and recipient of all that comes."""
    feed = EventParser().feed
    for token in tokens:
        for event in feed(token):
            if isinstance(event, ContentDelta):
                _ = event.text
                header = event.header
                _ = header.channel, header.recipient


def poll_each(encoding: openai_harmony.HarmonyEncoding, tokens: list[int]) -> None:
    """The same by polling openai-harmony's parser."""
    parser = openai_harmony.StreamableParser(encoding, openai_harmony.Role.ASSISTANT)
    for token in tokens:
        parser.process(token)
        _ = parser.last_content_delta
        _ = parser.current_channel, parser.current_recipient


# -- Whole completions ---------------------------------------------------------------------------


def parse_all(tokens: list[int]) -> int:
    """Tokens to messages."""
    return len(harmony_stream.parse(tokens).messages)


def parse_all_there(encoding: openai_harmony.HarmonyEncoding, tokens: list[int]) -> int:
    """The same with openai-harmony."""
    role = openai_harmony.Role.ASSISTANT
    return len(encoding.parse_messages_from_completion_tokens(tokens, role))


def compare(
    title: str,
    tokens: list[int],
    ours: Callable[[], object],
    theirs: Callable[[], object],
    rounds: int,
) -> None:
    """Print nanoseconds a token for both, minima and medians, and the ratios."""
    times = time_by_turns({"ours": ours, "theirs": theirs}, rounds)
    figures = [f"{1e9 * seconds / len(tokens):7.0f}" for name in times for seconds in times[name]]
    print(f"{title:34}", *figures, "  ", ratio(times["theirs"], times["ours"]))


def bench_speed(encoding: openai_harmony.HarmonyEncoding, rounds: int) -> None:
    """The two tables of the comparison."""
    print("ns a token                          ours: min    med   theirs: min  med     min   med")
    texts = {"mixed": MIXED, **TEXTS}
    streams = {name: encode(completion(text, 9)) for name, text in texts.items()}
    for name, tokens in streams.items():
        polled = partial(poll_each, encoding, tokens)
        compare(f"feed, all read: {name}", tokens, partial(feed_each, tokens), polled, rounds)
    for name, tokens in streams.items():
        theirs = partial(parse_all_there, encoding, tokens)
        title = f"feed_many to messages: {name}"
        compare(title, tokens, partial(parse_all, tokens), theirs, rounds)


def poll_ours(tokens: list[int]) -> None:
    """What servers written for openai-harmony do, and more: read all that grows, at each token."""
    encoding = harmony_stream.load_harmony_encoding("HarmonyGptOss")
    parser = harmony_stream.StreamableParser(encoding, "assistant")
    for token in tokens:
        parser.process(token)
        _ = len(parser.current_content), parser.messages, parser.tokens, parser.last_content_delta


def bench_growth(rounds: int) -> None:
    """Cost per token from 1k to 256k tokens: one long message, and many short ones."""
    print("\nns a token by length (minimum)      feed   feed_many   polling")
    for shape, messages in (("one message", 1), ("messages of 300 tokens", 0)):
        for length in (1_000, 4_000, 16_000, 64_000, 256_000):
            body = encode(MIXED)
            if messages:
                tokens = encode("<|channel|>final<|message|>") + body * (length // len(body) + 1)
            else:
                one = encode("<|channel|>final<|message|>") + body[:290]
                tokens = (one + encode("<|end|><|start|>assistant")) * (length // 300 + 1)
            tokens = tokens[:length]
            jobs: dict[str, Callable[[], object]] = {
                "feed": partial(feed_each, tokens),
                "many": partial(parse_all, tokens),
                "polling": partial(poll_ours, tokens),
            }
            times = time_by_turns(jobs, max(3, rounds * 1000 // length))
            print(
                f"{shape:24} {length:7}",
                *(f"{1e9 * times[name].minimum / length:8.0f}" for name in jobs),
            )


def bench_memory() -> None:
    """What one parser holds inside content."""
    tokens = encode("<|channel|>commentary to=functions.moor <|constrain|>json<|message|>" + MIXED)
    EventParser().feed_many(tokens)
    count = 1000
    tracemalloc.start()
    parsers = [EventParser() for _ in range(count)]
    for parser in parsers:
        for token in tokens[:400]:
            parser.feed(token)
    size = tracemalloc.get_traced_memory()[0] / count
    tracemalloc.stop()
    print(f"\na parser inside content: {size:.0f} bytes")


_BARE = "pass"
_OURS = "import harmony_stream; harmony_stream.parse({tokens})"
_THEIRS = (
    "import openai_harmony as o; o.load_harmony_encoding('HarmonyGptOss')"
    ".parse_messages_from_completion_tokens({tokens}, o.Role.ASSISTANT)"
)
# The peak of this process alone; getrusage would give that of the one it was forked from as well.
_PEAK = (
    "\nfor line in open('/proc/self/status'):\n    line[:6] == 'VmHWM:' and print(line.split()[1])"
)


def bench_start(rounds: int) -> None:
    """Import and first completion in a new process, beyond the bare interpreter."""
    # As pip does when it installs a wheel: a checkout has no bytecode, or that of older sources.
    compileall.compile_dir(str(pathlib.Path(harmony_stream.__file__).parent), quiet=1)
    tokens = encode(completion("Hello there, how are you?", 2))
    programs = {
        "bare": _BARE,
        "ours": _OURS.format(tokens=tokens),
        "theirs": _THEIRS.format(tokens=tokens),
    }
    peaks: dict[str, list[int]] = {name: [] for name in programs}

    def run(name: str) -> None:
        command = [sys.executable, "-c", programs[name] + _PEAK]
        peaks[name].append(int(subprocess.run(command, capture_output=True, check=True).stdout))

    times = time_by_turns({name: partial(run, name) for name in programs}, rounds)
    memory = {name: statistics.median(peaks[name]) / 1024 for name in programs}
    print("\nimport and first completion, beyond the bare interpreter")
    for name in ("ours", "theirs"):
        least = times[name].minimum - times["bare"].minimum
        median = times[name].median - times["bare"].median
        more = memory[name] - memory["bare"]
        print(f"{name:8} {1e3 * least:6.0f} ms min {1e3 * median:6.0f} ms median {more:6.1f} MB")


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        provide_official_file(folder)
        encoding = openai_harmony.load_harmony_encoding("HarmonyGptOss")
        bench_speed(encoding, rounds)
        bench_growth(rounds)
        bench_memory()
        bench_start(rounds)


if __name__ == "__main__":
    main()
