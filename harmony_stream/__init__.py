"""Typed event streams, prompts and history for the harmony format of gpt-oss models.

>>> import harmony_stream
>>> completion = harmony_stream.parse([200005, 17196, 200008, 13225, 200002])
>>> completion.final_text
'Hello'
"""

from harmony_stream.errors import (
    FaultKind,
    HarmonyError,
    HarmonyParseError,
    LoadError,
    RenderError,
    RenderFormattingTokenError,
)
from harmony_stream.header import Header
from harmony_stream.messages import Author, Message, Role, TextContent
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
from harmony_stream.vocabulary import FormattingToken, Vocabulary

__all__ = [
    "Author",
    "Completion",
    "ContentDelta",
    "EndKind",
    "Event",
    "EventParser",
    "FaultKind",
    "FormattingToken",
    "HarmonyError",
    "HarmonyParseError",
    "Header",
    "LoadError",
    "Malformed",
    "Message",
    "MessageCollector",
    "MessageEnd",
    "MessageStart",
    "RenderError",
    "RenderFormattingTokenError",
    "Role",
    "State",
    "TextContent",
    "ToolCall",
    "Vocabulary",
    "aiter_events",
    "iter_events",
    "join_deltas",
    "parse",
]
