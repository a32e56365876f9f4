"""The API of openai_harmony 0.0.8, under its own names."""

from harmony_stream.drop_in.encoding import (
    HarmonyEncoding,
    HarmonyEncodingName,
    load_harmony_encoding,
    raise_disallowed_special_token,
)
from harmony_stream.drop_in.streamable import StreamableParser, StreamState

__all__ = [
    "HarmonyEncoding",
    "HarmonyEncodingName",
    "StreamState",
    "StreamableParser",
    "load_harmony_encoding",
    "raise_disallowed_special_token",
]
