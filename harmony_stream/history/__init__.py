"""History: the parts of a conversation that go back to the model, as messages or exact tokens."""

from harmony_stream.history.normalize import Dropped, History, normalize_history
from harmony_stream.history.policy import (
    DropReason,
    HistoryPolicy,
    LastTurns,
    OnTruncated,
    Policy,
    TruncatedMessageError,
    messages_to_drop,
)
from harmony_stream.history.training import TrainingView
from harmony_stream.history.transcript import OnMalformed, Transcript
from harmony_stream.history.usage import ChannelUsage, TokenUsage

__all__ = [
    "ChannelUsage",
    "DropReason",
    "Dropped",
    "History",
    "HistoryPolicy",
    "LastTurns",
    "OnMalformed",
    "OnTruncated",
    "Policy",
    "TokenUsage",
    "TrainingView",
    "Transcript",
    "TruncatedMessageError",
    "messages_to_drop",
    "normalize_history",
]
