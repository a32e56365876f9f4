"""Files that commands read, and errors that name them."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any

from harmony_stream.errors import HarmonyError
from harmony_stream.support.files import same_file
from harmony_stream.support.json_text import NestingError, loads

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harmony_stream.logs.readers.source import LogSource


class CommandError(HarmonyError):
    """A file, an output or an address that cannot be used; the sentence names it and the reason."""


def name_of(path: str) -> str:
    """Return the name of a file in messages; `-` is standard input."""
    return "<stdin>" if path == "-" else path


def source_of(log: str) -> LogSource:
    """Return the path of a log, or standard input for `-`.

    Raises:
        CommandError: standard input is closed.
    """
    return _open_stdin() if log == "-" else log


def refuse_own_output(output: str, logs: Iterable[str]) -> None:
    """Raise if the output is one of the logs.

    Args:
        output: a path; `-` for standard output.
        logs: paths; `-` for standard input.

    Raises:
        CommandError: the output is the same file as a log.
    """
    log = same_file(1 if output == "-" else output, [0 if log == "-" else log for log in logs])
    if log is not None:
        name = "<stdout>" if output == "-" else output
        read = "<stdin>" if log == 0 else log
        raise CommandError(f"{name}: the output is the same file as the log {read}; name another")


def read_bytes(path: str) -> bytes:
    """Return the content of a file, or of standard input for `-`.

    Raises:
        CommandError: it cannot be opened or read.
    """
    try:
        with _open_stdin() if path == "-" else open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise CommandError(f"{name_of(path)}: {error.strerror}") from error


def load_json(path: str) -> Any:  # noqa: ANN401
    """Return the JSON value in a file.

    Raises:
        CommandError: the file cannot be read, or is not JSON; names the line.
    """
    content = read_bytes(path)
    try:
        return loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise CommandError(f"{name_of(path)}:{line}: not UTF-8: {error.reason}") from error
    except json.JSONDecodeError as error:
        raise CommandError(f"{name_of(path)}:{error.lineno}: not JSON: {error.msg}") from error
    except NestingError as error:
        raise CommandError(f"{name_of(path)}: JSON {error}") from error


def _open_stdin() -> IO[bytes]:
    try:
        return open(0, "rb", closefd=False)
    except OSError as error:
        raise CommandError(f"<stdin>: {error.strerror}") from error
