"""A progress bar on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from harmony_stream.logs.readers.source import size_of

if TYPE_CHECKING:
    from harmony_stream.logs.readers.source import LogSource


class Progress:
    """Progress that nobody sees."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def move(self, before: int, position: int) -> None:
        """Set the bytes that were read: of the logs before this one, and of this one."""

    def add(self, tokens: int) -> None:
        """Add tokens that were parsed."""


class _Bar(Progress):
    """A bar of rich, with the rate and the time left."""

    def __init__(self, out: Any, total: int | None) -> None:  # noqa: ANN401 - a text stream
        from rich.console import Console  # an extra, and slow to import
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(file=out),
            transient=True,
        )
        self._task = self._bar.add_task("", total=total, rate="")
        self._tokens = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def move(self, before: int, position: int) -> None:
        self._bar.update(self._task, completed=before + position)

    def add(self, tokens: int) -> None:
        self._tokens += tokens
        seconds = self._bar.tasks[0].elapsed or 1e-9
        self._bar.update(self._task, rate=f"{self._tokens / seconds:,.0f} tokens/s")


def progress_on(out: Any, sources: list[LogSource]) -> Progress:  # noqa: ANN401 - a text stream
    """Return a bar if `out` is a terminal and rich is installed."""
    if not out.isatty():
        return Progress()
    sizes = [size_of(source) for source in sources]
    try:
        return _Bar(out, None if None in sizes else sum(size or 0 for size in sizes))
    except ImportError:
        return Progress()
