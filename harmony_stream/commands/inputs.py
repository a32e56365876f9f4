"""What commands read, and what ends a command before it has begun."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harmony_stream.support.files import same_file

if TYPE_CHECKING:
    from collections.abc import Iterable

from harmony_stream.support.json_text import NestingError, loads


class UnreadableError(Exception):
    """A sentence that names the file and says why it cannot be used."""


def name_of(path: str) -> str:
    """How a file is called in messages; `-` is standard input."""
    return "<stdin>" if path == "-" else path


def own_output(output: str, logs: Iterable[str]) -> str | None:
    """Why a command cannot write there, if the output is one of the logs that it reads.

    Args:
        output: a path; `-` for standard output.
        logs: paths; `-` for standard input.
    """
    log = same_file(1 if output == "-" else output, [0 if log == "-" else log for log in logs])
    if log is None:
        return None
    name = "<stdout>" if output == "-" else output
    read = "<stdin>" if log == 0 else str(log)
    return f"{name}: the output is the same file as the log {read}; name another"


def read_bytes(path: str) -> bytes:
    """All of a file, or of standard input.

    Raises:
        UnreadableError: it cannot be opened or read.
    """
    is_stdin = path == "-"
    try:
        with open(0 if is_stdin else path, "rb", closefd=not is_stdin) as file:
            return file.read()
    except OSError as error:
        raise UnreadableError(f"{name_of(path)}: {error.strerror}") from error


def load_json(path: str) -> Any:  # noqa: ANN401
    """A file of one JSON value.

    Raises:
        UnreadableError: it cannot be read, or is no JSON; names the line.
    """
    content = read_bytes(path)
    try:
        return loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UnreadableError(f"{name_of(path)}:{line}: not UTF-8: {error.reason}") from error
    except json.JSONDecodeError as error:
        raise UnreadableError(f"{name_of(path)}:{error.lineno}: not JSON: {error.msg}") from error
    except NestingError as error:
        raise UnreadableError(f"{name_of(path)}: JSON {error}") from error
