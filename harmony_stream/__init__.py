"""Typed event streams, prompts and history for the harmony format of gpt-oss models.

`import harmony_stream as openai_harmony` serves code that was written for openai_harmony.

>>> import harmony_stream
>>> completion = harmony_stream.parse([200005, 17196, 200008, 13225, 200002])
>>> completion.final_text
'Hello'
"""

from importlib import import_module
from typing import TYPE_CHECKING

from harmony_stream.errors import (
    HarmonyError,
    LoadError,
    RenderError,
    RenderFormattingTokenError,
    RenderReferenceError,
)
from harmony_stream.parsing.parser import EventParser, aiter_events, iter_events
from harmony_stream.parsing.states import State
from harmony_stream.values.events import (
    ContentDelta,
    EndKind,
    Event,
    HarmonyParseError,
    Malformed,
    MessageEnd,
    MessageStart,
    join_deltas,
)
from harmony_stream.values.faults import FaultKind
from harmony_stream.values.header import Header
from harmony_stream.values.messages import (
    Author,
    ChannelConfig,
    Content,
    Conversation,
    DeveloperContent,
    Message,
    ReasoningEffort,
    RenderConversationConfig,
    RenderOptions,
    ResponseFormat,
    Role,
    SystemContent,
    TextContent,
)
from harmony_stream.values.tools import ToolDescription, ToolNamespaceConfig
from harmony_stream.vocabulary import FormattingToken, Vocabulary

if TYPE_CHECKING:
    from harmony_stream.drop_in import (
        HarmonyEncoding,
        HarmonyEncodingName,
        StreamableParser,
        StreamState,
        load_harmony_encoding,
        raise_disallowed_special_token,
    )
    from harmony_stream.history import (
        ChannelUsage,
        Dropped,
        DropReason,
        History,
        HistoryPolicy,
        LastTurns,
        OnMalformed,
        OnTruncated,
        TokenUsage,
        TrainingView,
        Transcript,
        TruncatedMessageError,
        messages_to_drop,
        normalize_history,
    )
    from harmony_stream.parsing.collect import MessageCollector, parse
    from harmony_stream.rendering import Profile, Renderer, render_events
    from harmony_stream.values.completion import Completion, ToolCall

__all__ = [
    "Author",
    "ChannelConfig",
    "ChannelUsage",
    "Completion",
    "Content",
    "ContentDelta",
    "Conversation",
    "DeveloperContent",
    "DropReason",
    "Dropped",
    "EndKind",
    "Event",
    "EventParser",
    "FaultKind",
    "FormattingToken",
    "HarmonyEncoding",
    "HarmonyEncodingName",
    "HarmonyError",
    "HarmonyParseError",
    "Header",
    "History",
    "HistoryPolicy",
    "LastTurns",
    "LoadError",
    "Malformed",
    "Message",
    "MessageCollector",
    "MessageEnd",
    "MessageStart",
    "OnMalformed",
    "OnTruncated",
    "Profile",
    "ReasoningEffort",
    "RenderConversationConfig",
    "RenderError",
    "RenderFormattingTokenError",
    "RenderOptions",
    "RenderReferenceError",
    "Renderer",
    "ResponseFormat",
    "Role",
    "State",
    "StreamState",
    "StreamableParser",
    "SystemContent",
    "TextContent",
    "TokenUsage",
    "ToolCall",
    "ToolDescription",
    "ToolNamespaceConfig",
    "TrainingView",
    "Transcript",
    "TruncatedMessageError",
    "Vocabulary",
    "aiter_events",
    "iter_events",
    "join_deltas",
    "load_harmony_encoding",
    "messages_to_drop",
    "normalize_history",
    "parse",
    "raise_disallowed_special_token",
    "render_events",
]

# Loaded at their first use. Whoever feeds tokens one by one needs no messages of them (3 ms). The
# writing side takes as long as the whole reading side (40 ms), which does not need it.
_MESSAGES = {
    "Completion": "values.completion",
    "MessageCollector": "parsing.collect",
    "ToolCall": "values.completion",
    "parse": "parsing.collect",
}
_WRITING = ("rendering", "drop_in", "history")


def __getattr__(name: str) -> object:
    if name in _MESSAGES:
        return _found(name, import_module(f"{__name__}.{_MESSAGES[name]}"))
    for room in _WRITING if name in __all__ else ():
        module = import_module(f"{__name__}.{room}")
        if name in module.__all__:
            return _found(name, module)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _found(name: str, module: object) -> object:
    globals()[name] = value = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
