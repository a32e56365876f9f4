"""The command `harmony-stream`, and the one place that turns errors into exit statuses."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from importlib import metadata
from io import TextIOWrapper
from typing import TYPE_CHECKING, NoReturn

from harmony_stream.commands import check, convert, render, replay, serve, stats, tools
from harmony_stream.commands.exit_status import ExitStatus
from harmony_stream.commands.terminal import complain, visible
from harmony_stream.errors import HarmonyError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_DESCRIPTION = "Read and write the harmony format of the gpt-oss models."

# Errors without a file's name that are not those of standard output.
_OF_THE_SYSTEM = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)

# In the order of the help.
_COMMANDS = (replay, check, stats, convert, serve, render, tools)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        super().error(visible(message))  # it may quote arguments, such as a file name


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status.

    Args:
        argv: the arguments; by default those of the process.

    Raises:
        SystemExit: after `--help`, `--version` or wrong arguments, as argparse raises it; after a
            signal that ends a conversion.
    """
    _replace_closed_streams()
    return _status_of(lambda: _run_and_flush(argv))


def _replace_closed_streams() -> None:
    # A closed stream is None. Output that is lost is an error; a complaint that is lost is not.
    sys.stdout = sys.stdout or open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # any text can be written


def _run_and_flush(argv: Sequence[str] | None) -> int:
    """Run a command and flush, also after an error: to flush can fail on its own account."""
    try:
        return _status_of(lambda: _run(argv))
    finally:
        sys.stdout.flush()


def _run(argv: Sequence[str] | None) -> int:
    arguments = _arguments().parse_args(argv)
    status: int = arguments.run(arguments)
    return status


def _status_of(run: Callable[[], int]) -> int:
    """Run, and turn an error into a status and a sentence on standard error."""
    try:
        return run()
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    except BrokenPipeError:
        _abandon_output()
        return ExitStatus.BROKEN_PIPE
    except HarmonyError as error:
        complain(error)
    except OSError as error:
        complain(_sentence_of(error))
    return ExitStatus.TROUBLE


def _sentence_of(error: OSError) -> str:
    reason = error.strerror or str(error)
    if error.filename is not None:
        return f"{error.filename or repr('')}: {reason}"
    if error.errno in _OF_THE_SYSTEM:
        return reason
    _abandon_output()  # all else that has no name is standard output
    return f"cannot write the output: {reason}"


def _abandon_output() -> None:
    """Discard what is still buffered, since Python flushes again when it exits."""
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
