"""Arguments that several commands on token logs share, and types of arguments."""

from __future__ import annotations

import argparse
import math

from harmony_stream.logs import FORMATS, ReadOptions, Selection

LOG_HELP = "token log; - for standard input"

NOTES = """\
LOG is a file of token ids, or - for standard input: JSON, lines of JSON, a capture of server-sent
events (vLLM, SGLang, llama.cpp), .npy, .npz, Parquet, Arrow, or plain ids; gzip and zstd are
decompressed. The format and the place of the ids are detected, unless --format and --ids name
them. A record that cannot be read is reported, and the others are read. A last line that is cut
off is reported as well.
"""

# The time until the next token must fit the system's clock.
_SLOWEST = 0.001


# -- Declarations ----------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which logs to read, and how."""
    parser.add_argument("logs", metavar="LOG", nargs="+", help=LOG_HELP)
    add_options(parser)
    parser.add_argument(
        "--stop-on-error", action="store_true", help="stop at the first record that cannot be read"
    )
    parser.add_argument(
        "--jobs", type=jobs, default=1, metavar="N", help="number of processes (default: 1)"
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare how to read a log, if that is not to be detected."""
    parser.add_argument("--format", choices=FORMATS, help="format of the logs (default: detected)")
    parser.add_argument(
        "--ids",
        metavar="PATH",
        help="place of the ids: a field (choices.0.token_ids), column or array (default: detected)",
    )
    parser.add_argument(
        "--lengths", metavar="PATH", help="place of the number of ids in each padded row"
    )
    parser.add_argument("--pad-id", type=int, metavar="ID", help="id that rows are padded with")
    parser.add_argument(
        "--max-record-bytes",
        type=record_bytes,
        default=ReadOptions().max_record_bytes,
        metavar="N",
        help="longest record that is read, which bounds memory (default: 268435456)",
    )


def options_of(arguments: argparse.Namespace) -> ReadOptions:
    """Return the options that `add_options` declares."""
    return ReadOptions(
        arguments.format,
        arguments.ids,
        arguments.lengths,
        arguments.pad_id,
        arguments.max_record_bytes,
    )


# -- Types: argparse shows their names ("invalid port value") --------------------------------------


def record_bytes(text: str) -> int:
    """Return the greatest length of a record."""
    try:
        return ReadOptions(max_record_bytes=int(text)).max_record_bytes
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number of bytes") from None


def jobs(text: str) -> int:
    """Return the number of processes."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def speed(text: str) -> float:
    """Return the number of tokens per second."""
    value = float(text)
    if not _SLOWEST <= value < math.inf:
        raise argparse.ArgumentTypeError(
            f"{text} is not a number of tokens per second, at least {_SLOWEST}"
        )
    return value


def port(text: str) -> int:
    """Return the number of a port."""
    value = int(text)
    if not 0 <= value < 2**16:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 to {2**16 - 1}")
    return value


def word(text: str) -> str:
    """Return a name that is not empty: an empty host would mean all addresses of the machine."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty")
    return text


def selection(text: str) -> Selection:
    """Return the chosen records."""
    try:
        return Selection.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
