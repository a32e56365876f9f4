"""The table of what is measured: rows with ways to do one job, cases, and ratios of ways."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import attrs

from benchmarks.texts import TEXTS

if TYPE_CHECKING:
    from collections.abc import Mapping

OURS = "harmony_stream"
OPENAI = "openai-harmony 0.0.8"
OSS = "oss-harmony 0.0.11"


@attrs.frozen
class Way:
    """One way to do the job of a row.

    Attributes:
        name: its name in the row.
        job: module and function in `benchmarks.jobs`.
        options: what the function takes, besides the options of the case.
        library: the environment in which it runs.
    """

    name: str
    job: str
    options: Mapping[str, Any] = attrs.field(factory=dict)
    library: str = OURS


@attrs.frozen
class Row:
    """What is measured together, by turns.

    Attributes:
        name: its name on the command line and in results.
        measures: a sentence.
        unit: the unit of the figure that ratios compare; of CPU time, unless `measures` says else.
        ways: the ways to do it. The results of all of them are equal, if they have any.
        ratios: pairs of ways; the figure of the first is divided by that of the second.
        cases: texts, sizes or kinds, each with its options.
        small: options for a quick run, in place of those that take seconds.
        most_rounds: the number of rounds at most, if one takes seconds.
    """

    name: str
    measures: str
    unit: str
    ways: tuple[Way, ...]
    ratios: tuple[tuple[str, str], ...] = ()
    cases: Mapping[str, Mapping[str, Any]] = attrs.field(factory=lambda: {"": {}})
    small: Mapping[str, Any] = attrs.field(factory=dict)
    most_rounds: int | None = None

    def quick(self) -> Row:
        """Return the first case alone, made small."""
        case, options = next(iter(self.cases.items()))
        return attrs.evolve(self, cases={case: {**options, **self.small}})


def _wheels(job: str) -> tuple[Way, ...]:
    return (Way(OPENAI, job, library=OPENAI), Way(OSS, job, library=OSS))


def _against_wheels(ours: str) -> tuple[tuple[str, str], ...]:
    return ((OPENAI, ours), (OSS, ours))


def _texts(*names: str) -> dict[str, dict[str, Any]]:
    return {name: {"text": name} for name in names}


_PROTOCOLS = ("Chat Completions", "Responses", "AG-UI", "UI messages")
_FAULTS = ("stray text", "unknown ids", "a special token in content")
_LENGTHS = {"1k": 1_000, "4k": 4_000, "16k": 16_000, "64k": 64_000, "256k": 256_000}

_READING = [
    Row(
        "per-token",
        "One token at a time: our `feed` with text, channel and recipient of each delta read,"
        " against `process` and three polls.",
        "ns a token",
        (Way("feed", "reading.read"), *_wheels("wheels.poll")),
        _against_wheels("feed"),
        _texts(*TEXTS, "short messages"),
    ),
    Row(
        "drop-in",
        "One token at a time by `StreamableParser` with three polls, ours and theirs.",
        "ns a token",
        (Way("drop-in", "reading.poll"), *_wheels("wheels.poll")),
        _against_wheels("drop-in"),
        _texts("English", "emoji", "mixed", "short messages"),
    ),
    Row(
        "drop-in-all",
        "One token at a time by `StreamableParser`; all that it has is polled: the content,"
        " messages and tokens so far as well.",
        "ns a token",
        (Way("drop-in", "reading.poll_all"), *_wheels("wheels.poll_all")),
        _against_wheels("drop-in"),
        _texts("1,800 tokens"),
        most_rounds=9,
    ),
    Row(
        "emoji",
        "`feed` of parts of characters against `feed` of whole ones; events are not read.",
        "ns a token",
        (
            Way("plain", "reading.feed", {"text": "English"}),
            Way("emoji", "reading.feed", {"text": "emoji"}),
        ),
        (("emoji", "plain"),),
    ),
    Row(
        "steps",
        "`feed_many` in steps of a few tokens against `feed`.",
        "ns a token",
        (
            Way("feed", "reading.feed"),
            *(Way(f"steps of {n}", "reading.steps", {"size": n}) for n in (1, 2, 4, 8)),
        ),
        tuple((f"steps of {n}", "feed") for n in (1, 2, 4, 8)),
        _texts("mixed"),
    ),
    Row(
        "bulk",
        "A whole completion to messages: `parse`, which also reports faults, and the drop-in.",
        "ns a token",
        (
            Way("parse", "reading.parse"),
            Way("drop-in", "reading.parse_like_wheels"),
            *_wheels("wheels.parse"),
        ),
        _against_wheels("parse"),
        _texts("5 tokens", "107 tokens", *TEXTS, "short messages"),
    ),
    Row(
        "begin",
        "A new parser and its first tokens, events read: a header, and a whole call.",
        "us a parser",
        (Way("feed", "reading.begin"), *_wheels("wheels.begin")),
        _against_wheels("feed"),
        _texts("a header", "a short call"),
    ),
    Row(
        "faults",
        "Faults that are kept, each with its event: time for one, of 10,000.",
        "us a fault",
        (Way("feed", "reading.faults"),),
        cases={kind: {"kind": kind, "count": 10_000} for kind in _FAULTS},
        small={"count": 100},
    ),
    Row(
        "fault-memory",
        "Memory of a fault that is kept.",
        "bytes",
        (Way("feed", "reading.fault_memory"),),
        cases={kind: {"kind": kind, "count": 10_000} for kind in _FAULTS},
        small={"count": 100},
        most_rounds=1,
    ),
    Row(
        "growth",
        "Time for a token of a message of that length: the parsers, and the writers.",
        "ns a token",
        tuple(Way(name, "wire.long", {"length": n}) for name, n in _LENGTHS.items()),
        (("256k", "1k"),),
        {name: {"by": name} for name in ("feed", "feed_many", "drop-in", *_PROTOCOLS)},
        most_rounds=3,
    ),
]


def _rendering(name: str, library: str, profile: str) -> list[Row]:
    """Return the rows of one wheel. The wheels lay out tools differently, and we write both."""
    ours = {"profile": profile}
    return [
        Row(
            f"render-{name}",
            "A conversation to the tokens of a prompt: by a new `Renderer`, and by one that has"
            " rendered the messages before.",
            "us a prompt",
            (
                Way("new", "writing.render", {"cached": False, **ours}),
                Way("cached", "writing.render", {"cached": True, **ours}),
                Way(library, "wheels.render", library=library),
            ),
            ((library, "new"), (library, "cached")),
            {f"{count} messages": {"count": count} for count in (50, 200)},
        ),
        Row(
            f"next-turn-{name}",
            "The next turn of a conversation of 200 messages: a sampled call is read, its result"
            " is added, and the prompt is made.",
            "us a turn",
            (
                Way("Renderer", "writing.turn", ours),
                Way("Transcript", "writing.transcript_turn", ours),
                Way(library, "wheels.turn", library=library),
            ),
            ((library, "Renderer"), (library, "Transcript")),
            {"200 messages": {"count": 200}},
        ),
    ]


_WRITING = [
    *_rendering("openai", OPENAI, "openai-0.0.8"),
    *_rendering("oss", OSS, "oss-0.0.11"),
    Row(
        "transcript",
        "The next turn of a long `Transcript` against a bare copy of as many tokens: a task with"
        " one question, and a chat whose reasoning is dropped.",
        "us a turn",
        (Way("next turn", "writing.long_turn"), Way("copy", "writing.copy_of_prompt")),
        (("next turn", "copy"),),
        {
            f"{session}, {size // 1000}k tokens": {"session": session, "size": size}
            for session, size in product(("task", "chat"), (250_000, 1_000_000))
        },
        small={"size": 10_000},
    ),
]

_WIRE = [
    Row(
        "polling",
        "Tokens to the bytes of Chat Completions: by our writer, and as servers do it by polling,"
        " with `json.dumps`.",
        "ns a token",
        (Way("writer", "wire.serve_chat", {"by": "writer"}), *_wheels("wheels.serve")),
        _against_wheels("writer"),
        _texts("English", "emoji", "mixed", "short messages"),
    ),
    Row(
        "wire",
        "Tokens to bytes: parser and writer, against the parser alone.",
        "ns a token",
        (
            Way("parser", "wire.parse_only"),
            Way("parser + writer", "wire.serve", {"by": "writer"}),
            Way("parser + chunks", "wire.serve", {"by": "chunks"}),
        ),
        (("parser + writer", "parser"), ("parser + chunks", "parser + writer")),
        {name: {"text": "an answer", "protocol": name} for name in _PROTOCOLS}
        | {
            f"{name}, a call": {"text": "a call", "protocol": name}
            for name in ("Chat Completions", "Responses")
        },
    ),
    Row(
        "writer",
        "Events to bytes, without the parser: the writer against chunks that are encoded.",
        "ns a token",
        (
            Way("writer", "wire.write", {"by": "writer"}),
            Way("chunks", "wire.write", {"by": "chunks"}),
        ),
        (("chunks", "writer"),),
        {name: {"text": "an answer", "protocol": name} for name in _PROTOCOLS}
        | {
            f"Chat Completions, logprobs: {logprobs}": {
                "text": "an answer",
                "protocol": "Chat Completions",
                "logprobs": logprobs,
            }
            for logprobs in ("1 entry", "5 top")
        },
    ),
    Row(
        "choices",
        "Events of several choices of one Chat Completions stream to bytes: by its writer, and by"
        " chunks that are encoded.",
        "ns a token",
        (
            Way("writer", "wire.choices", {"by": "writer"}),
            Way("chunks", "wire.choices", {"by": "chunks"}),
        ),
        (("chunks", "writer"),),
        {f"choices: {count}": {"text": "an answer", "count": count} for count in (1, 4)},
    ),
    Row(
        "memory",
        "Python's memory of a stream inside of content: the parser, with the stream of a protocol,"
        " and with its writer.",
        "bytes",
        (
            Way("parser", "reading.parsers"),
            *(
                Way(f"{name}, {by}", "wire.streams", {"protocol": name, "by": by})
                for name, by in product(_PROTOCOLS, ("chunks", "writer"))
            ),
            Way("chained task", "streams.memory", {"way": "chained"}),
            Way("chained task, kept alive", "streams.memory", {"way": "kept alive"}),
        ),
        cases={"": {"count": 500}},
        small={"count": 20},
        most_rounds=1,
    ),
]

_STREAMS = [
    Row(
        "streams",
        "10,000 Chat Completions streams in one asyncio process, 50 tokens a second each: CPU time"
        " and wall delay of a token. Pushed by the engine's step, or pulled by a task for each.",
        "us a token",
        (
            Way("one stream", "streams.one"),
            Way("pushed", "streams.many", {"way": "pushed"}),
            Way("chained", "streams.many", {"way": "chained"}),
            Way("kept alive", "streams.many", {"way": "kept alive"}),
        ),
        (
            ("pushed", "one stream"),
            ("chained", "pushed"),
            ("kept alive", "chained"),
        ),
        {"": {"count": 10_000, "steps": 20}},
        small={"count": 100, "steps": 5},
        most_rounds=3,
    ),
    Row(
        "sockets",
        "1,000 clients over real sockets, 50 tokens a second each: CPU time of the server"
        " (uvicorn) and wall delay of a token.",
        "us a token",
        tuple(
            Way(way, "sockets.many", {"way": way}) for way in ("pushed", "chained", "kept alive")
        ),
        (("chained", "pushed"), ("kept alive", "chained")),
        {"": {"count": 1_000, "steps": 50}},
        small={"count": 20, "steps": 5},
        most_rounds=3,
    ),
]

_LOGS = [
    Row(
        "logs",
        "What each message of 100 completions says, as columns: from Arrow lists, from lists,"
        " without the extra `arrow`, and against loops over the wheel.",
        "ns a token",
        (
            Way("Arrow", "logs.batch", {"source": "Arrow"}),
            Way("lists", "logs.batch", {"source": "lists"}),
            Way("without the extra", "logs.batch", {"source": "parser"}),
            Way("wheel in bulk", "wheels.batch", {"source": "bulk"}, OPENAI),
            Way("wheel polled", "wheels.batch", {"source": "polled"}, OPENAI),
            Way("JSON lines", "logs.batch", {"source": "JSON lines"}),
            Way("wheel, JSON lines", "wheels.batch", {"source": "JSON lines"}, OPENAI),
        ),
        (
            ("without the extra", "Arrow"),
            ("wheel in bulk", "Arrow"),
            ("wheel in bulk", "lists"),
            ("wheel in bulk", "without the extra"),
            ("wheel polled", "without the extra"),
            ("wheel, JSON lines", "JSON lines"),
        ),
        {"": {"completions": 100}},
        small={"completions": 10},
    ),
    Row(
        "check",
        "The command `check` on a log of 20,000 completions (wall time, start included), by one"
        " process and by two; memory is the peak of the first.",
        "ns a token",
        tuple(Way(f"processes: {n}", "logs.check", {"jobs": n}) for n in (1, 2)),
        (("processes: 1", "processes: 2"),),
        {
            "Parquet": {"completions": 20_000, "kind": "parquet"},
            "JSON lines": {"completions": 20_000, "kind": "jsonl"},
        },
        small={"completions": 1_000},
        most_rounds=3,
    ),
]

_STARTING = [
    Row(
        "start",
        "A new process, beyond the bare interpreter: the import, and import and first completion.",
        "ms",
        (
            Way("ours", "starting.start", {"library": "ours"}),
            Way(OPENAI, "starting.start", {"library": "wheel"}, OPENAI),
            Way(OSS, "starting.start", {"library": "wheel"}, OSS),
        ),
        _against_wheels("ours"),
        {what: {"what": what} for what in ("import", "first completion")},
    ),
]

ROWS = {row.name: row for row in [*_READING, *_WRITING, *_WIRE, *_STREAMS, *_LOGS, *_STARTING]}
"""All rows by name."""
