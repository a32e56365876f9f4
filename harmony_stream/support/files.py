"""The one writer for all files that the library writes, so that nothing is lost.

Theory of operation: symbolic links are followed, and the target decides how it is written::

    free, a regular file     a part file beside it is written, and then renamed to the target
    a device, a FIFO         it is written directly: nobody would find a file in its place
    /dev/stdout, /dev/fd/3   that descriptor is written directly, from its position; it is never
                             opened again, which would overwrite what other programs wrote there
    a directory, a socket    an error is raised

A regular file is replaced only if it is writable. The new file has the mode of the old one and, if
that is allowed, its owner. Extended attributes are lost, and other hard links keep the old content.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Path: TypeAlias = str | os.PathLike[str]

_MOST_LINKS = 40
_DESCRIPTOR = re.compile(r"(?:/proc/(\d+)(?:/task/\d+)?|/dev)/fd/(\d+)")
# A part file is named after its target, but shorter: a name may have 255 bytes, a character 4.
_LONGEST_STEM = 32


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Open an output. A file gets its name when all is written, and is deleted if anything fails.

    If the process is killed, the old file remains, and a file `NAME.RANDOM.part` beside it.

    Raises:
        OSError: if the output cannot be written. The error names `path`.

    >>> with writing("/nowhere/a") as file:
    ...     pass
    Traceback (most recent call last):
        ...
    FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/a'
    """
    name = os.fspath(path)
    with _naming(name):
        target = _target_of(name)
        straight = _open_straight(target)
    with _naming_what_has_no_name(name), straight or _replacing(target, name) as file:
        yield file


def same_file(output: Path | int, inputs: Iterable[Path | int]) -> Path | int | None:
    """Return the first input that is the same file as the output, also under another name.

    A terminal, `/dev/null` and a missing file are not the same as any input.

    Args:
        output: a path, or an open descriptor.
        inputs: paths, or open descriptors.

    >>> same_file("/dev/null", ["/dev/null"]) is None
    True
    """
    there = _stat(output)
    if there is None or not _holds_what_is_written(there.st_mode):
        return None
    return next((each for each in inputs if _is_same(there, _stat(each))), None)


# -- A file that grows -----------------------------------------------------------------------------


class Identity(NamedTuple):
    """The numbers that change if a file is replaced or changed."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int


def identity_of(path: Path | int) -> Identity | None:
    """Return the identity of a regular file, or None. Only such a file can be appended to.

    A path that names an open descriptor has none, since others may write there as well.

    >>> identity_of("/dev/null") is None
    True
    """
    with suppress(OSError):
        place = path if isinstance(path, int) else _target_of(os.fspath(path))
        found = os.stat(place)
        if stat.S_ISREG(found.st_mode) and not _DESCRIPTOR.fullmatch(str(place)):
            times = found.st_mtime_ns, found.st_ctime_ns
            return Identity(found.st_dev, found.st_ino, found.st_size, *times)
    return None


def sealed(path: Path) -> Identity | None:
    """Return the identity of a file that was just written, which no later change can share.

    The clock of a file system may not advance for milliseconds, in which another program could
    write the same number of bytes. The time of this change is therefore set by the system's clock.
    """
    with suppress(OSError):
        if identity_of(path):
            os.utime(path, ns=(os.stat(path).st_atime_ns, time.time_ns()))
    return identity_of(path)


def append(path: Path, data: bytes) -> None:
    """Append to a file that exists, and wait until the data is on the disk.

    Raises:
        OSError: if the file cannot be written. The error names `path`.
    """
    name = os.fspath(path)
    with _naming(name), open(name, "ab", opener=_existing) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _existing(name: str, flags: int) -> int:
    return os.open(name, flags & ~os.O_CREAT)


# -- The target of a name --------------------------------------------------------------------------


def _target_of(name: str) -> str:
    """Return the path to which links lead. It need not exist yet, but its folder must."""
    if not name:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    for _ in range(_MOST_LINKS):
        folder, last = os.path.split(name)
        folder = os.path.realpath(folder or os.curdir, strict=True)
        name = os.path.join(folder, last)
        if _DESCRIPTOR.fullmatch(name) or not os.path.islink(name):
            return name
        name = os.path.join(folder, os.readlink(name))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _open_straight(target: str) -> IO[bytes] | None:
    """Open a target that is written directly; return None for a regular file or a free name."""
    if descriptor := _DESCRIPTOR.fullmatch(target):
        process, number = descriptor.groups()
        if process is None or int(process) == os.getpid():
            return open(os.dup(int(number)), "wb")
        return open(target, "ab")  # another process has it open: what it wrote is kept
    found = _found(target)
    if found is None or stat.S_ISREG(found.st_mode):
        return None
    if stat.S_ISSOCK(found.st_mode):
        raise OSError(errno.ENXIO, "is a socket, not a file; name a file")
    return open(target, "wb")  # a directory raises


def _found(target: str) -> os.stat_result | None:
    """Return the status of the target, or None if it does not exist. An invalid name raises."""
    try:
        return os.stat(target)
    except FileNotFoundError:
        return None


def _stat(place: Path | int) -> os.stat_result | None:
    with suppress(OSError):
        return os.stat(place)
    return None


def _holds_what_is_written(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISBLK(mode) or stat.S_ISFIFO(mode)


def _is_same(one: os.stat_result, other: os.stat_result | None) -> bool:
    return other is not None and os.path.samestat(one, other)


# -- Replacing -------------------------------------------------------------------------------------


@contextmanager
def _replacing(target: str, name: str) -> Iterator[IO[bytes]]:
    """Open a part file that replaces the target when all is written."""
    part = f"{_stem_of(target)}.{os.urandom(6).hex()}.part"
    try:
        with _naming(name):
            file = _open_part(part, target)
        try:
            yield file
            with _naming(name):
                file.flush()
                os.fsync(file.fileno())
        finally:
            with suppress(OSError):  # closing writes what is left, maybe to a full disk
                file.close()
        with _naming(name):
            os.replace(part, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise
    _sync_folder(os.path.dirname(target))


def _stem_of(target: str) -> str:
    folder, last = os.path.split(target)
    return os.path.join(folder, last[:_LONGEST_STEM])


def _open_part(part: str, target: str) -> IO[bytes]:
    """Open a new file that only the readers of the file that it replaces may read."""
    old = _found(target)
    if old is None:
        return open(part, "xb")  # with the mode that the umask leaves
    os.close(os.open(target, os.O_WRONLY))  # raises if it is not writable
    file = open(part, "xb", opener=_private)  # noqa: SIM115 - the caller closes it
    _take_over(part, old)
    return file


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def _take_over(part: str, old: os.stat_result) -> None:
    """Set owner, group and mode of a file to those of the old one, as far as that is allowed."""
    for owner in (old.st_uid, -1):
        with suppress(OSError, AttributeError):  # some systems have no owners
            os.chown(part, owner, old.st_gid)
            break
    with suppress(OSError):
        os.chmod(part, stat.S_IMODE(old.st_mode))


def _sync_folder(folder: str) -> None:
    """Sync a folder, so that the new name survives a loss of power, if the system can do it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# -- Errors ----------------------------------------------------------------------------------------


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Name the output in errors as the caller does, not a part file or the target of a link."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), name) from error


@contextmanager
def _naming_what_has_no_name(name: str) -> Iterator[None]:
    """Name the output in errors without a file name. Errors of other files keep their names."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror or str(error), name) from error
