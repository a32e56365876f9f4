r"""The screen: shows a stream to a person as it arrives.

Text of a log is data: it cannot colour the terminal, move its cursor, hide, or look like a heading.
Invisible characters are shown as `\x1b`, and content is indented by two columns.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, TextIO

import attrs

from harmony_stream.adapters.arguments import ARGUMENTS_NOT_JSON, NOT_JSON, lack_json
from harmony_stream.commands.terminal import VisibleContent, visible
from harmony_stream.values.events import (
    ContentDelta,
    EndKind,
    Event,
    Malformed,
    MessageEnd,
    MessageStart,
)
from harmony_stream.values.fold import EndedMessage, Fold
from harmony_stream.values.messages import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harmony_stream.values.header import Header


@attrs.frozen
class _Look:
    """The look of a kind of message: its name, and the styles of its heading and content."""

    label: str
    heading: str
    content: str


_REASONING = _Look("reasoning", "magenta", "dim italic")
_PREAMBLE = _Look("preamble", "bold cyan", "cyan")
_CALL = _Look("tool call", "bold yellow", "yellow")
_ANSWER = _Look("answer", "bold green", "none")
_RESULT = _Look("tool result", "bold blue", "blue")
_INPUT = _Look("", "bold", "none")
_QUIET, _ALARM, _RULE = "dim", "bold red", "bold reverse"


def _look_of(header: Header) -> _Look:
    if header.role is not Role.ASSISTANT:
        return _RESULT if header.role is Role.TOOL else _INPUT
    if header.is_tool_call:
        return _CALL
    if header.is_reasoning:
        return _REASONING
    return _PREAMBLE if header.channel == "commentary" else _ANSWER


def _heading(header: Header, look: _Look) -> str:
    author = header.role.value if header.name is None else f"{header.role.value}:{header.name}"
    place = filter(None, (author, header.channel))
    recipient = header.recipient
    if recipient is not None and not header.is_tool_call:
        recipient = f"to {recipient}"
    data_type = header.data_type and f"({header.data_type})"
    purpose = filter(None, (look.label, recipient, data_type))
    return " | ".join(filter(None, (" ".join(place), " ".join(purpose))))


_ENDINGS = {
    EndKind.TRUNCATED: "truncated: the stream ends here",
    EndKind.IMPLICIT: "implicit: the next message begins without an end of this one",
}


def _ending(event: MessageEnd) -> str:
    ending = _ENDINGS.get(event.end, event.end.value)
    is_lost = _is_lost_call(event)
    return f"{ending}; the call is incomplete and must not be executed" if is_lost else ending


def _is_lost_call(event: MessageEnd) -> bool:
    return event.header.is_tool_call and not event.complete


class Arguments:
    """The arguments of the calls in a stream, checked at the end of each call."""

    def __init__(self) -> None:
        self._fold = Fold()

    def lack_json(self, event: Event) -> bool:
        """Take the next event; return whether it ends a complete call without the expected JSON."""
        ended = self._fold.feed(event)
        if not isinstance(ended, EndedMessage) or not ended.end.complete:
            return False
        header = ended.end.header
        return header.is_tool_call and lack_json(header, ended.text)


class Screen:
    """A screen that shows streams to a person, each piece of text as soon as it is known."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._codes = _style_codes(out)
        self._is_at_margin = True
        self._is_first = True
        self._visible = VisibleContent()

    def play(self, title: str, tokens: int, events: Iterable[Event]) -> int:
        """Show one stream, of `tokens` tokens, and return the number of its faults."""
        if title:
            self._line(f"== {title} ==", _RULE, gap=True)
        counts: Counter[type[Event] | str] = Counter()
        arguments = Arguments()
        try:
            for event in events:
                if arguments.lack_json(event):
                    counts[ARGUMENTS_NOT_JSON] += 1
                    self._line(f"!! {ARGUMENTS_NOT_JSON}: {NOT_JSON}", _ALARM)
                counts[type(event)] += 1
                self._show(event)
        finally:
            self._to_margin()  # also after Ctrl-C
        faults = counts[Malformed] + counts[ARGUMENTS_NOT_JSON]
        summary = _summary(tokens, counts[MessageStart], faults)
        self._line(summary, _ALARM if faults else _QUIET, gap=True)
        return faults

    def _show(self, event: Event) -> None:
        if isinstance(event, ContentDelta):
            self._content(self._visible.feed(event.text), _look_of(event.header).content)
        elif isinstance(event, MessageStart):
            look = _look_of(event.header)
            self._line(_heading(event.header, look), look.heading, gap=True)
        elif isinstance(event, MessageEnd):
            self._line(f"-- {_ending(event)}", _ALARM if _is_lost_call(event) else _QUIET)
        else:
            self._line(f"!! {event.error.kind}: {event.error}", _ALARM)
            if event.text:
                self._line(f"!! text outside any message: {event.text!r}", _ALARM)

    def _content(self, text: str, style: str) -> None:
        # Visible text has no line breaks other than \n.
        for line in text.splitlines(keepends=True):
            is_set_in = self._is_at_margin and line != "\n"
            self._write(f"  {line}" if is_set_in else line, style)
            self._is_at_margin = line.endswith("\n")

    def _line(self, text: str, style: str, *, gap: bool = False) -> None:
        self._to_margin()
        if gap and not self._is_first:
            self._out.write("\n")
        self._is_first = False
        self._write(visible(text), style)
        self._out.write("\n")

    def _to_margin(self) -> None:
        self._content(self._visible.end(), "none")
        if not self._is_at_margin:
            self._out.write("\n")
        self._is_at_margin = True

    def _write(self, text: str, style: str) -> None:
        before, after = self._codes(style)
        self._out.write(f"{before}{text}{after}")


def _summary(tokens: int, messages: int, faults: int) -> str:
    counted = ((tokens, "token"), (messages, "message"), (faults, "fault"))
    return ", ".join(f"{number} {noun}{'s' * (number != 1)}" for number, noun in counted)


def _plain(style: str) -> tuple[str, str]:
    return "", ""


def _style_codes(out: TextIO) -> Callable[[str], tuple[str, str]]:
    """Return what to write before and after text in a style; nothing for plain text."""
    is_refused = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown")
    if is_refused or not (out.isatty() or os.environ.get("FORCE_COLOR")):
        return _plain
    try:
        from rich.console import Console  # an extra, and slow to import
        from rich.text import Text
    except ImportError:
        return _plain
    console = Console(file=out)

    @cache
    def codes(style: str) -> tuple[str, str]:
        # Taken once from rich, which knows the terminal: if it printed each piece, that would cost
        # more than parsing, and would expand tabs.
        with console.capture() as capture:
            console.print(Text("x", style), end="")
        before, _, after = capture.get().partition("x")
        return before, after

    return codes
