"""The one writer: what a name leads to is written as what it is, and nothing is left half-written.

Links and descriptors are made in scratch folders, never taken from /dev: a writer that went wrong
would take the machine's own.
"""

import contextlib
import errno
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from harmony_stream.support.files import append, identity_of, same_file, sealed, writing


def write(path, data=b"new"):
    with writing(path) as file:
        file.write(data)


@contextlib.contextmanager
def unprivileged():
    """Run as nobody, if this is root, whom no permissions keep out."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


@pytest.fixture
def open_folder():
    """A folder that anybody may enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


# -- Files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("old", [None, b"old"])
def test_a_file_takes_its_name_when_all_is_written(tmp_path, old):
    path = tmp_path / "out"
    if old is not None:
        path.write_bytes(old)
    with writing(path) as file:
        file.write(b"new")
        file.flush()
        assert (path.read_bytes() if path.exists() else None) == old

    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["out"]


FAILURES = [KeyboardInterrupt, SystemExit, ValueError, OSError(errno.EIO, "no")]


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("old", [None, b"old"])
def test_what_breaks_off_leaves_what_was_there(tmp_path, old, failure):
    path = tmp_path / "out"
    if old is not None:
        path.write_bytes(old)

    def interrupted():
        with writing(path) as file:
            file.write(b"new")
            raise failure

    with pytest.raises(failure if isinstance(failure, type) else OSError):
        interrupted()
    assert (path.read_bytes() if path.exists() else None) == old
    assert os.listdir(tmp_path) == ([] if old is None else ["out"])


def test_an_error_of_writing_names_the_output_and_another_one_what_it_is_about(tmp_path):
    def failing(error):
        with writing(tmp_path / "out"):
            raise error

    with pytest.raises(OSError, match="No space") as caught:
        failing(OSError(errno.ENOSPC, "No space"))
    assert caught.value.filename == str(tmp_path / "out")
    with pytest.raises(FileNotFoundError) as caught:
        failing(FileNotFoundError(errno.ENOENT, "no", "/nowhere/log"))
    assert caught.value.filename == "/nowhere/log"


def test_two_writers_at_once_leave_one_whole_file(tmp_path):
    path = tmp_path / "out"
    with writing(path) as first, writing(path) as second:
        first.write(b"first")
        second.write(b"second")

    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["out"]


LONG_NAMES = ["a" * 255, "é" * 127, "🙂" * 63, "a" * 250 + ".json"]


@pytest.mark.parametrize("name", LONG_NAMES, ids=lambda name: name[:1])
def test_the_longest_names_can_be_written(tmp_path, name):
    write(tmp_path / name)

    assert os.listdir(tmp_path) == [name]


# -- Modes and owners ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755, 0o4755])
def test_a_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    path.chmod(mode)

    write(path)

    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", mode)


def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        write(tmp_path / "out")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640


def test_what_replaces_a_private_file_is_private_from_the_start(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with writing(path):
        modes = [stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()]

    assert modes == [0o600, 0o600]


# Who owns the file, and whether root writes it. Others than root give no files away.
OWNERS = [(os.geteuid(), os.getegid(), True)]
if os.geteuid() == 0:
    OWNERS += [(1000, 1000, True), (1000, 0, True), (0, 12345, False), (0, 0, False)]


@pytest.mark.parametrize(("user", "group", "is_root"), OWNERS)
def test_a_file_keeps_its_owner_and_group_where_that_is_allowed(open_folder, user, group, is_root):
    path = open_folder / "out"
    path.write_bytes(b"old")
    os.chown(path, user, group)
    path.chmod(0o666)

    with contextlib.nullcontext() if is_root else unprivileged():
        write(path)

    found = path.stat()
    kept = (user, group) if is_root else (65534, 0)
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (*kept, 0o666)


def test_a_file_that_may_not_be_written_is_not_replaced(open_folder):
    path = open_folder / "out"
    path.write_bytes(b"old")
    path.chmod(0o444)

    with unprivileged(), pytest.raises(PermissionError) as caught:
        write(path)

    assert (caught.value.filename, path.read_bytes()) == (str(path), b"old")
    assert os.listdir(open_folder) == ["out"]


@pytest.mark.parametrize("old", [None, b"old"])
def test_a_folder_that_may_not_be_written_is_an_error_that_names_the_output(open_folder, old):
    path = open_folder / "out"
    if old is not None:
        path.write_bytes(old)
        path.chmod(0o666)
    open_folder.chmod(0o555)

    with unprivileged(), pytest.raises(PermissionError) as caught:
        write(path)

    assert caught.value.filename == str(path)
    assert (path.read_bytes() if old else None) == old


def test_a_folder_that_cannot_be_read_can_be_written(open_folder):
    open_folder.chmod(0o333)

    with unprivileged():
        write(open_folder / "out")

    assert (open_folder / "out").read_bytes() == b"new"


# -- Links -----------------------------------------------------------------------------------------

LINKS = {
    "a link": {"out": "target"},
    "a chain": {"out": "one", "one": "two", "two": "target"},
    "an absolute link": {"out": "HERE/target"},
    "a link in another folder": {"out": "folder/one", "folder/one": "../target"},
    "a folder that is a link": {"out": "other/../target", "other": "folder"},
    "a link with a dot": {"out": "./target"},
}


@pytest.mark.parametrize("old", [None, b"old"])
@pytest.mark.parametrize("links", LINKS.values(), ids=LINKS)
def test_links_are_followed_and_their_target_is_replaced_or_made(tmp_path, links, old):
    (tmp_path / "folder").mkdir()
    for name, target in links.items():
        (tmp_path / name).symlink_to(target.replace("HERE", str(tmp_path)))
    if old is not None:
        (tmp_path / "target").write_bytes(old)

    write(tmp_path / "out")

    assert all((tmp_path / name).is_symlink() for name in links)
    assert not (tmp_path / "target").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"
    assert not list(tmp_path.rglob("*.part"))


def test_a_relative_name_is_that_of_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with writing("out") as file:
        file.write(b"new")
        os.chdir("/")  # the file takes its name where it was opened

    assert (tmp_path / "out").read_bytes() == b"new"


WRONG = {
    "a folder": ("folder", errno.EISDIR),
    "a folder with a slash": ("folder/", errno.EISDIR),
    "this folder": (".", errno.EISDIR),
    "the folder above": ("folder/..", errno.EISDIR),
    "a link to a folder": ("to_folder", errno.EISDIR),
    "a missing folder": ("missing/out", errno.ENOENT),
    "a missing folder with a slash": ("missing/", errno.ENOENT),
    "out of a missing folder": ("missing/../out", errno.ENOENT),
    "a link into a missing folder": ("to_missing", errno.ENOENT),
    "a file with a slash": ("file/", errno.ENOTDIR),
    "a file as a folder": ("file/out", errno.ENOTDIR),
    "a link to itself": ("self", errno.ELOOP),
    "a circle of links": ("one", errno.ELOOP),
    "a circle of folders": ("one/out", errno.ELOOP),
    "a name that is too long": ("a" * 256, errno.ENAMETOOLONG),
    "a socket": ("socket", errno.ENXIO),
    "no name": ("", errno.ENOENT),
}


@pytest.mark.parametrize(("name", "number"), WRONG.values(), ids=WRONG)
def test_a_name_that_cannot_be_written_is_an_error_that_names_it(
    tmp_path, monkeypatch, name, number
):
    monkeypatch.chdir(tmp_path)
    os.mkdir("folder")
    Path("file").write_bytes(b"old")
    links = {"to_folder": "folder", "to_missing": "missing/out", "self": "self"}
    for link, target in (links | {"one": "two", "two": "one"}).items():
        os.symlink(target, link)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    before = sorted(os.listdir())

    with pytest.raises(OSError, match=r".") as caught:
        write(name)

    assert (caught.value.errno, caught.value.filename) == (number, name)
    assert sorted(os.listdir()) == before
    assert Path("file").read_bytes() == b"old"


# -- Devices, FIFOs, descriptors -------------------------------------------------------------------


@pytest.mark.parametrize("is_link", [False, True])
def test_a_fifo_is_written_into(tmp_path, is_link):
    fifo, path = tmp_path / "fifo", tmp_path / "out"
    os.mkfifo(fifo)
    path.symlink_to("fifo")
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)

    write(path if is_link else fifo)

    assert os.read(reader, 99) == b"new"
    os.close(reader)
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["fifo", "out"]


def test_a_reader_that_goes_away_is_an_error_that_names_the_fifo(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)

    def deserted():
        with writing(fifo) as file:
            os.close(reader)
            file.write(b"new")

    with pytest.raises(BrokenPipeError) as caught:
        deserted()
    assert caught.value.filename == str(fifo)


def test_a_device_is_written_into(tmp_path):
    leader, follower = os.openpty()
    path = tmp_path / "out"
    path.symlink_to(os.ttyname(follower))

    write(path)

    assert os.read(leader, 99) == b"new"
    assert path.is_char_device()
    assert path.is_symlink()
    os.close(leader)
    os.close(follower)


@pytest.mark.parametrize("name", ["/proc/self/fd/{}", "/proc/thread-self/fd/{}", "/dev/fd/{}"])
@pytest.mark.parametrize("is_link", [False, True])
def test_a_descriptor_is_written_from_where_it_is(tmp_path, name, is_link):
    shown, link = tmp_path / "shown", tmp_path / "link"
    with shown.open("wb", buffering=0) as out:
        out.write(b"head ")
        path = name.format(out.fileno())
        link.symlink_to(path)
        write(link if is_link else path)
        out.write(b" tail")

    assert shown.read_bytes() == b"head new tail"
    assert sorted(os.listdir(tmp_path)) == ["link", "shown"]


def test_what_another_process_wrote_into_its_descriptor_stays(tmp_path):
    shown = tmp_path / "shown"
    script = "import sys; print('head ', end='', flush=True); input()"
    with (
        shown.open("wb") as out,
        subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=out
        ) as process,
    ):
        while not shown.stat().st_size:
            time.sleep(0.01)
        write(f"/proc/{process.pid}/fd/1")
        process.communicate(b"\n")

    assert shown.read_bytes() == b"head new"


def test_a_descriptor_that_is_closed_is_an_error_that_names_it():
    with pytest.raises(OSError, match="Bad file descriptor") as caught:
        write("/dev/fd/987")
    assert caught.value.filename == "/dev/fd/987"


# -- The same file ---------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A log by many names, one of them that of an open descriptor; and other things."""
    monkeypatch.chdir(tmp_path)
    os.mkdir("folder")
    Path("log").write_bytes(b"[5]")
    Path("twin").write_bytes(b"[5]")
    os.link("log", "hard")
    for link, target in {"soft": "log", "chain": "soft", "dangling": "nothing"}.items():
        os.symlink(target, link)
    os.mkfifo("fifo")
    return tmp_path


SAME = ["log", "./log", "folder/../log", "hard", "soft", "chain", "HERE/log"]
DIFFERENT = ["twin", "nothing", "dangling", "fifo", "folder", "/dev/null", "log/"]


@pytest.mark.parametrize("output", SAME)
def test_a_file_is_known_by_any_name(folder, output):
    output = output.replace("HERE", str(folder))
    assert same_file(output, ["nothing", "twin", "log"]) == "log"
    with open("log", "rb") as file:
        number = file.fileno()
        assert same_file(output, [number]) == number
        assert same_file(number, [Path(output)]) == Path(output)
        assert same_file(f"/dev/fd/{number}", [output]) == output


@pytest.mark.parametrize("output", DIFFERENT)
def test_other_files_are_not_the_same(folder, output):
    assert same_file(output, ["log", "nothing", "dangling", 987]) is None


def test_a_fifo_is_not_read_and_written_at_once_but_a_terminal_is(folder):
    assert same_file("fifo", ["fifo"]) == "fifo"
    leader, follower = os.openpty()
    assert same_file(follower, [follower]) is None
    os.close(leader)
    os.close(follower)


# -- A file that grows -----------------------------------------------------------------------------


def test_what_is_appended_follows_what_was_there(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old ")

    append(path, b"new")

    assert path.read_bytes() == b"old new"


def test_nothing_is_appended_to_a_file_that_is_gone(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        append(tmp_path / "out", b"new")

    assert caught.value.filename == str(tmp_path / "out")
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_written_again_in_the_same_instant_is_another(tmp_path):
    path = tmp_path / "out"
    for _ in range(20):
        path.write_bytes(b"old")
        before = sealed(path)
        path.write_bytes(b"new")
        assert identity_of(path) != before


def test_only_files_have_an_identity(tmp_path):
    path, fifo = tmp_path / "out", tmp_path / "fifo"
    os.mkfifo(fifo)
    assert (identity_of(path), sealed(path), identity_of(fifo)) == (None, None, None)
    write(path)
    with path.open("rb") as file:
        assert identity_of(path) == identity_of(file.fileno()) is not None
        assert identity_of(f"/dev/fd/{file.fileno()}") is None
