"""Progress on a terminal: a bar of bytes, with the rate of tokens."""

import io
import sys

from harmony_stream.commands import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_bar_counts_bytes_of_all_logs_and_tokens(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(b"1" * 100)
    second.write_bytes(b"2" * 300)
    with progress.progress_on(Terminal(), [str(first), str(second)]) as bar:
        bar.move(100, 100)
        bar.add(500)
        (task,) = bar._bar.tasks
        assert (task.completed, task.total) == (200, 400)
        assert task.fields["rate"].endswith(" tokens/s")


def test_a_log_without_a_size_has_a_bar_without_an_end():
    with progress.progress_on(Terminal(), [io.BytesIO(), "/nowhere/log"]) as bar:
        assert bar._bar.tasks[0].total is None


def test_without_a_terminal_or_rich_nothing_is_shown(monkeypatch):
    quiet = [progress.progress_on(io.StringIO(), [])]
    monkeypatch.setitem(sys.modules, "rich.console", None)
    terminal = Terminal()
    quiet.append(progress.progress_on(terminal, []))
    for each in quiet:
        with each as shown:
            shown.move(0, 5)
            shown.add(5)
        assert type(each) is progress.Progress
    assert terminal.getvalue() == ""
