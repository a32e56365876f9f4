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
    FaultKind,
    HarmonyError,
    HarmonyParseError,
    LoadError,
    RenderError,
    RenderFormattingTokenError,
    RenderReferenceError,
)
from harmony_stream.header import Header
from harmony_stream.messages import (
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
from harmony_stream.parsing.collect import Completion, MessageCollector, ToolCall, parse
from harmony_stream.parsing.events import (
    ContentDelta,
    EndKind,
    Event,
    Malformed,
    MessageEnd,
    MessageStart,
    join_deltas,
)
from harmony_stream.parsing.parser import EventParser, aiter_events, iter_events
from harmony_stream.parsing.states import State
from harmony_stream.tools import ToolDescription, ToolNamespaceConfig
from harmony_stream.vocabulary import FormattingToken, Vocabulary

if TYPE_CHECKING:
    from harmony_stream.encoding import (
        HarmonyEncoding,
        HarmonyEncodingName,
        load_harmony_encoding,
        raise_disallowed_special_token,
    )
    from harmony_stream.history import (
        Dropped,
        DropReason,
        History,
        HistoryPolicy,
        LastTurns,
        OnTruncated,
        TruncatedMessageError,
        messages_to_drop,
        normalize_history,
    )
    from harmony_stream.rendering.profiles import Profile
    from harmony_stream.rendering.render import Renderer, render_events
    from harmony_stream.streamable import StreamableParser, StreamState
    from harmony_stream.transcript import (
        ChannelUsage,
        OnMalformed,
        TokenUsage,
        TrainingView,
        Transcript,
    )

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

# The writing side is loaded when first asked for: importing it takes as long as all of the reading
# side (40 ms), which needs none of it.
_WRITING = {
    "DropReason": "harmony_stream.history",
    "Dropped": "harmony_stream.history",
    "History": "harmony_stream.history",
    "HistoryPolicy": "harmony_stream.history",
    "LastTurns": "harmony_stream.history",
    "OnTruncated": "harmony_stream.history",
    "TruncatedMessageError": "harmony_stream.history",
    "messages_to_drop": "harmony_stream.history",
    "normalize_history": "harmony_stream.history",
    "ChannelUsage": "harmony_stream.transcript",
    "OnMalformed": "harmony_stream.transcript",
    "TokenUsage": "harmony_stream.transcript",
    "TrainingView": "harmony_stream.transcript",
    "Transcript": "harmony_stream.transcript",
    "HarmonyEncoding": "harmony_stream.encoding",
    "HarmonyEncodingName": "harmony_stream.encoding",
    "load_harmony_encoding": "harmony_stream.encoding",
    "raise_disallowed_special_token": "harmony_stream.encoding",
    "Profile": "harmony_stream.rendering.profiles",
    "Renderer": "harmony_stream.rendering.render",
    "render_events": "harmony_stream.rendering.render",
    "StreamableParser": "harmony_stream.streamable",
    "StreamState": "harmony_stream.streamable",
}


def __getattr__(name: str) -> object:
    if name not in _WRITING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_WRITING[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
