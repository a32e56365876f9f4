"""The command `harmony-stream`: look at recorded streams, and at what else the library does."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import metadata
from io import TextIOWrapper
from typing import TYPE_CHECKING, NoReturn

from harmony_stream.commands import check, convert, render, replay, serve, stats, tools
from harmony_stream.commands.inputs import UnreadableError
from harmony_stream.commands.terminal import complain, visible
from harmony_stream.errors import HarmonyError

if TYPE_CHECKING:
    from collections.abc import Sequence

_TROUBLE, _INTERRUPTED, _BROKEN_PIPE = 2, 128 + 2, 128 + 13

_DESCRIPTION = "Read and write the harmony format, in which the gpt-oss models speak."

# In the order in which the help lists them.
_COMMANDS = (replay, check, stats, convert, serve, render, tools)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        super().error(visible(message))  # it may quote the name of a file


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and give its exit status.

    Args:
        argv: the arguments; those of the process if none are given.

    Raises:
        SystemExit: as argparse does, after `--help`, `--version` or wrong arguments.
    """
    # What was closed is None. Output that goes nowhere is an error; a complaint is not.
    sys.stdout = sys.stdout or open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # no text is refused
    try:
        try:
            arguments = _arguments().parse_args(argv)
            status: int = arguments.run(arguments)
            return status
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        _abandon_output()
        return _BROKEN_PIPE
    except OSError as error:
        _abandon_output()
        return _complain(f"cannot write the output: {error.strerror}")
    except (HarmonyError, UnreadableError) as error:
        return _complain(str(error))


def _complain(reason: str) -> int:
    complain(reason)
    return _TROUBLE


def _abandon_output() -> None:
    """Let what is still buffered go nowhere, since Python flushes once more when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _arguments() -> argparse.ArgumentParser:
    parser = _Parser("harmony-stream", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"%(prog)s {_version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser


def _version() -> str:
    try:
        return metadata.version("harmony-stream")
    except metadata.PackageNotFoundError:
        return "(not installed)"
