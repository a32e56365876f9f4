"""Places of token ids in the JSON of engines and trainers, as data.

A path has names and indexes separated by dots, and `*` for each item of an array, whose items are
choices. The first layout that finds ids in a value is used.
"""

# ruff: noqa: ANN401 - JSON values may be of any type

from __future__ import annotations

from array import array
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from harmony_stream.logs.record import LogRecord, ReadOptions, ids_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Found: TypeAlias = tuple[int, list[Any], list[Any] | None]
"""A choice, its ids and those of its prompt, not yet checked."""

LISTS = (list, array)
"""The types of a JSON array: a long one of ids is an `array`."""

ID_FIELDS = (
    "token_ids",
    "completion_ids",
    "completion_token_ids",
    "output_ids",
    "generated_tokens",
    "output_token_ids",
    "response_ids",
    "response_token_ids",
    "generated_token_ids",
    "output_tokens",
    "tokens",
    "ids",
)
"""Names of fields, columns and arrays that hold the ids of a completion, in order of trust."""

PROMPT_FIELDS = ("prompt_token_ids", "prompt_ids", "input_ids", "prompt_tokens", "input_tokens")
"""Names for the ids of a prompt. Some engines have counts under these names, which are skipped."""

LENGTH_FIELDS = ("lengths", "length", "completion_lengths", "completion_length")
"""Names for the number of ids in a padded row."""


@attrs.frozen
class Layout:
    """The places of ids and prompts in one format of an engine.

    Attributes:
        ids: the path to the ids.
        prompts: paths to the prompt.
        read: reads ids out of the items at the path, if they are not the ids; returns None if there
            are none.
    """

    ids: str
    prompts: tuple[str, ...] = PROMPT_FIELDS
    read: Callable[[list[Any]], list[Any] | None] | None = None

    def find(self, value: Any) -> list[Found]:
        """Return the ids of each choice; empty if the value has another layout."""
        found = list(_lists(value, keys_of(self.ids)))
        if self.read is not None:
            read = ((choice, self.read(items)) for choice, items in found)
            found = [(choice, items) for choice, items in read if items]
        prompts = self._prompts(value) if found else {}
        shared = prompts.get(None)
        return [(choice or 0, ids, prompts.get(choice, shared)) for choice, ids in found]

    def _prompts(self, value: Any) -> dict[int | None, list[Any]]:
        for path in self.prompts:
            if prompts := dict(_lists(value, keys_of(path))):
                return prompts
        return {}


@cache
def keys_of(path: str) -> tuple[str, ...]:
    """Return the steps of a path.

    >>> keys_of("choices.0.token_ids")
    ('choices', '0', 'token_ids')
    """
    return tuple(path.split("."))


def _lists(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[int | None, Any]]:
    """Return the lists at the end of a path; a list of lists holds one for each choice."""
    for choice, end in _walk(value, keys):
        if isinstance(end, LISTS):
            if len(end) and isinstance(end[0], LISTS) and not _is_logprob(end[0]):
                yield from enumerate(end)
            else:
                yield choice, end


def _walk(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[int | None, Any]]:
    for place, key in enumerate(keys):
        if key == "*":
            for number, item in enumerate(value if isinstance(value, list) else ()):
                choice = _index_of(item, number)
                yield from ((choice, end) for _, end in _walk(item, keys[place + 1 :]))
            return
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return
    yield None, value


def _index_of(item: Any, default: int) -> int:
    index = item.get("index") if isinstance(item, dict) else None
    return index if type(index) is int else default


def _is_logprob(item: Any) -> bool:
    return len(item) > 1 and isinstance(item[0], float) and isinstance(item[1], int)


def _from_logprobs(items: list[Any]) -> list[Any] | None:
    """Return the ids in SGLang's `[logprob, id, text]`."""
    if all(isinstance(item, list) and _is_logprob(item) for item in items):
        return [item[1] for item in items]
    return None


_MARKED = "token_id:"


def _from_marked_tokens(items: list[Any]) -> list[Any] | None:
    """Return the ids in vLLM's `"token_id:200005"`, alone or as `token` of a log probability."""
    words = [str(item.get("token")) if isinstance(item, dict) else str(item) for item in items]
    if all(word.startswith(_MARKED) for word in words):
        ids = [word.removeprefix(_MARKED) for word in words]
        return [int(each) if each.isdecimal() else each for each in ids]
    return None


_OF_CHOICE = ("choices.*.prompt_token_ids", *PROMPT_FIELDS)
LAYOUTS = (
    Layout("choices.*.token_ids", _OF_CHOICE),  # vLLM: completions, chat, generate
    Layout("choices.*.response_token_ids", _OF_CHOICE),  # SGLang: chat, not streamed
    Layout("sglext.output_ids", ("sglext.input_ids",)),  # SGLang: chat
    Layout("output_messages.*.tokens", ("input_messages.*.tokens",)),  # vLLM: responses
    Layout("samples.*.tokens"),  # tinker-cookbook
    *(Layout(name) for name in ID_FIELDS),  # llama.cpp, trl, Ray, verifiers, and most others
    Layout("meta_info.output_token_logprobs", read=_from_logprobs),  # SGLang: generate
    Layout("choices.*.logprobs.content", _OF_CHOICE, _from_marked_tokens),  # vLLM, with
    Layout("choices.*.logprobs.tokens", _OF_CHOICE, _from_marked_tokens),  # tokens as token ids
)


def find_ids(value: Any, options: ReadOptions) -> list[Found]:
    """Return the ids in a JSON value, of each choice; empty if there are none.

    >>> answer = {"choices": [{"index": 1, "token_ids": [5]}], "prompt_token_ids": [4]}
    >>> find_ids(answer, ReadOptions())
    [(1, [5], [4])]
    >>> find_ids({"a": {"b": [[5], [6]]}}, ReadOptions(ids="a.b"))
    [(0, [5], None), (1, [6], None)]
    """
    if isinstance(value, LISTS) and options.ids is None:
        return [(choice or 0, ids, None) for choice, ids in _lists({"": value}, ("",))]
    layouts = LAYOUTS if options.ids is None else (Layout(options.ids, _OF_CHOICE),)
    for layout in layouts:
        if found := layout.find(value):
            return found
    return []


def records_of(
    value: Any, options: ReadOptions, source: str, number: int, unit: str
) -> list[LogRecord]:
    """Return the records in a JSON value.

    Raises:
        ValueError: there are no ids, or they are not valid.

    >>> [record.choice for record in records_of([[5], [6]], ReadOptions(), "a", 1, "line")]
    [0, 1]
    """
    found = find_ids(value, options)
    if not found:
        raise ValueError(no_ids(options))
    lengths: dict[int | None, Any] = {None: None}
    if options.lengths is not None:
        lengths = dict(_walk(value, keys_of(options.lengths)))
    records = []
    for choice, items, prompt in found:
        name = options.ids or "the completion"
        if (place := choice if choice in lengths else None) not in lengths:
            raise ValueError(f"no length at {options.lengths}")
        ids = options.trim(ids_of(items, name), lengths[place])
        prompt_ids = None if prompt is None else ids_of(prompt, "the prompt")
        metadata = metadata_of(value, choice)
        records.append(LogRecord(ids, source, number, unit, choice, prompt_ids, metadata))
    return records


def no_ids(options: ReadOptions) -> str:
    """Return the reason why a value has no ids, as a sentence."""
    if options.ids is not None:
        return f"no token ids at {options.ids}"
    fields = ", ".join(ID_FIELDS[:-1])
    return f"no token ids: no field {fields} or {ID_FIELDS[-1]}, and no layout of an engine"


def metadata_of(value: Any, choice: int) -> dict[str, Any]:
    """Return words, numbers and flags beside the ids: of the value, then of the choice.

    >>> metadata_of({"id": "a", "choices": [{"index": 0, "stop_reason": 5}]}, 0)
    {'id': 'a', 'index': 0, 'stop_reason': 5}
    """
    metadata = _scalars(value)
    choices = value.get("choices") if isinstance(value, dict) else None
    for number, each in enumerate(choices if isinstance(choices, list) else ()):
        if _index_of(each, number) == choice:
            metadata |= _scalars(each)
    return metadata


def _scalars(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {}
    return {name: each for name, each in value.items() if isinstance(each, str | int | float)}
