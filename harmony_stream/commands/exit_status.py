"""Exit statuses of `harmony-stream`."""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """The exit status of a command."""

    OK = 0
    FAULTS = 1
    """A record is malformed or cannot be read."""
    TROUBLE = 2
    """A file, an output, an address or an argument cannot be used."""
    INTERRUPTED = 128 + 2
    BROKEN_PIPE = 128 + 13
