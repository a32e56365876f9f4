"""An HTTP backend between an engine, which samples token ids, and clients of OpenAI's APIs.

`create_app` makes a Starlette app from any `Engine`. `RecordedEngine` is an engine that replays
token logs. The backend requires the extra `harmony-stream[serve]`. The command
`harmony-stream serve` runs it.
"""

from harmony_stream.serving.app import create_app
from harmony_stream.serving.engine import Engine, Prompt, Sampling
from harmony_stream.serving.errors import RequestError
from harmony_stream.serving.push import PushResponse
from harmony_stream.serving.recorded import RecordedEngine, Replay, load_recordings
from harmony_stream.serving.server import make_server
from harmony_stream.serving.settings import Settings

__all__ = [
    "Engine",
    "Prompt",
    "PushResponse",
    "RecordedEngine",
    "Replay",
    "RequestError",
    "Sampling",
    "Settings",
    "create_app",
    "load_recordings",
    "make_server",
]
