"""Captures of server-sent events, as vLLM, SGLang and llama.cpp stream them.

Events of one completion have its id and the number of a choice, and completions may come mixed.
A completion ends with the event that has a finish reason, with `[DONE]`, or at the end of the
capture. Most engines send new ids with each event. SGLang usually sends all ids so far, and their
number, which tells the two apart.

Memory is bounded by the open completions, one event and its value.
"""

# ruff: noqa: ANN401 - JSON values may be of any type

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

from harmony_stream.logs.parts import LogPart, group
from harmony_stream.logs.readers.json_values import CutError, json_of
from harmony_stream.logs.readers.paths import find_ids, metadata_of, no_ids
from harmony_stream.logs.record import Ids, Item, LogError, LogRecord, ReadOptions, ids_of
from harmony_stream.support.event_stream import Frame, FrameReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harmony_stream.logs.readers.source import Source

_BLOCK = 1 << 16
_DONE = b"[DONE]"
# More open completions than this end the oldest one, which may have no end.
_MOST_OPEN = 1000
# Fields of an event that describe the completion, rather than its own piece of text.
_LASTING = ("id", "model", "created", "finish_reason", "stop_reason", "stop_type")

_Key: TypeAlias = tuple[Any, int]


def read_events(source: Source, options: ReadOptions) -> Iterator[LogPart]:
    """Read the completions of a capture, in the order in which they ended."""
    return group(_Streams(source.name, options).read(source))


class _Stream:
    """An open completion."""

    def __init__(self) -> None:
        self.ids: Ids = ids_of([], "")
        self.prompt: Ids | None = None
        self.metadata: dict[str, Any] = {}
        self.is_too_long = False

    def add(self, ids: Ids, count: object, most: int) -> None:
        """Add the ids of an event; `count` is the number of ids so far, if the event has it."""
        if self._is_all_so_far(ids, count):
            self.ids = ids
        else:
            self.ids += ids
        if len(self.ids) * self.ids.itemsize > most:
            self.is_too_long = True
            self.ids = ids_of([], "")

    def _is_all_so_far(self, ids: Ids, count: object) -> bool:
        if count == len(self.ids) + len(ids):
            return False
        return count == len(ids)


class _Streams:
    """The open completions, by id and choice."""

    def __init__(self, source: str, options: ReadOptions) -> None:
        self.source = source
        self.options = options
        self.open: dict[_Key, _Stream] = {}
        self.last_id: Any = None
        self.count = 0
        self.has_events = False
        self.has_ids = False

    def read(self, source: Source) -> Iterator[Item]:
        """Return records, and errors for what could not be read."""
        reader = FrameReader(is_joined=True, max_bytes=self.options.max_record_bytes)
        while block := source.stream.read(_BLOCK):
            yield from self._of_frames(reader.feed(block))
        yield from self._of_frames(reader.close())
        yield from self._finish(list(self.open))
        if self.has_events and not self.has_ids:
            yield LogError(self.source, "", f"{no_ids(self.options)}; {_REMEDY}")
        elif reader.has_unknown and not self.has_ids:
            yield LogError(self.source, "", _NO_EVENT, ends_log=True)

    def _of_frames(self, frames: Iterator[Frame]) -> Iterator[Item]:
        for frame in frames:
            try:
                yield from self._take(frame)
                self.has_events = True
            except ValueError as error:
                yield self._fault(frame, error)
                self.has_events = self.has_events or not frame.is_open

    def _fault(self, frame: Frame, error: ValueError) -> LogError:
        place = f"line {frame.line}"
        is_part_of_done = frame.data and _DONE.startswith(frame.data)
        if not frame.is_open or not (isinstance(error, CutError) or is_part_of_done):
            return LogError(self.source, place, str(error))
        if self.has_events:
            return LogError(self.source, place, "the last event is cut off", is_cut=True)
        reason = "the capture is cut off before its first event ends"
        return LogError(self.source, place, reason, ends_log=True)

    def _take(self, frame: Frame) -> Iterator[Item]:
        if frame.data is None:
            raise ValueError(self.options.too_long())
        if frame.data.strip() == _DONE:
            # It ends the response of the last event, if responses come mixed.
            yield from self._finish([key for key in self.open if key[0] == self.last_id])
            return
        value = json_of(frame.data)
        if not isinstance(value, dict):
            raise ValueError("an event that is not a JSON object")
        self.last_id = _id_of(value)
        for choice, items, prompt in find_ids(value, self.options):
            self._add(value, _choice_of(value, choice), items, prompt)
        yield from self._finish(self._ended(value))
        if len(self.open) > _MOST_OPEN:
            yield from self._finish([next(iter(self.open))])

    def _add(self, value: Any, choice: int, items: list[Any], prompt: list[Any] | None) -> None:
        ids = ids_of(items, self.options.ids or "the event")
        key = (self.last_id, choice)
        stream = self.open.pop(key, None) or _Stream()
        self.open[key] = stream
        self.has_ids = True
        if prompt is not None and stream.prompt is None:
            stream.prompt = ids_of(prompt, "the prompt")
        stream.add(ids, _count_of(value), self.options.max_record_bytes)
        said = metadata_of(value, choice)
        stream.metadata |= {name: said[name] for name in _LASTING if name in said}

    def _ended(self, value: dict[str, Any]) -> list[_Key]:
        """Return the completions that this event ends."""
        choices = value.get("choices")
        if not isinstance(choices, list):
            keys = [(self.last_id, _choice_of(value, 0))] if _says_end(value) else []
        else:
            ends = [(n, each) for n, each in enumerate(choices) if _says_end(each)]
            keys = [(self.last_id, _index_of(each, number)) for number, each in ends]
        return [key for key in keys if key in self.open]

    def _finish(self, keys: list[_Key]) -> Iterator[Item]:
        for key in keys:
            stream = self.open.pop(key)
            self.count += 1
            if stream.is_too_long:
                yield LogError(self.source, f"stream {self.count}", self.options.too_long())
            else:
                yield LogRecord(
                    self.options.trim(stream.ids),
                    self.source,
                    self.count,
                    "stream",
                    key[1],
                    stream.prompt,
                    stream.metadata,
                )


_NO_EVENT = "no event with data; is it a capture of server-sent events, as text in UTF-8?"
_REMEDY = (
    "ask the engine for them: return_token_ids (vLLM), skip_tokenizer_init (SGLang), "
    "return_tokens (llama.cpp)"
)


def _meta(value: dict[str, Any]) -> dict[str, Any]:
    """Return SGLang's `meta_info`."""
    meta = value.get("meta_info")
    return meta if isinstance(meta, dict) else {}


def _id_of(value: dict[str, Any]) -> Any:
    found = value.get("id") or value.get("request_id") or _meta(value).get("id")
    return found if isinstance(found, str | int) else json.dumps(found)


def _index_of(value: Any, default: int) -> int:
    index = value.get("index") if isinstance(value, dict) else None
    return index if type(index) is int else default


def _choice_of(value: dict[str, Any], choice: int) -> int:
    """Return the choice; engines without `choices` number the event itself."""
    return choice if "choices" in value else _index_of(value, choice)


def _count_of(value: dict[str, Any]) -> object:
    """Return the number of ids so far; only engines that may send all ids so far tell it."""
    return _meta(value).get("completion_tokens")


def _says_end(value: Any) -> bool:
    """Return whether an event, or the choice in it, is the last of its completion."""
    if not isinstance(value, dict):
        return False
    reason = value.get("finish_reason") or _meta(value).get("finish_reason")
    return bool(reason) or value.get("stop") is True
