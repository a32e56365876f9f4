"""An HTTP backend between an engine, which gives token ids, and clients of OpenAI's APIs.

`create_app` makes a Starlette app of any `Engine`; `RecordedEngine` is one that replays token logs.
It needs the extra `harmony-stream[serve]`. `harmony-stream serve` runs it with one command.
"""

from harmony_stream.serving.app import create_app
from harmony_stream.serving.engine import Engine, Prompt, Sampling
from harmony_stream.serving.errors import RequestError
from harmony_stream.serving.recorded import RecordedEngine, Replay, load_recordings
from harmony_stream.serving.server import make_server
from harmony_stream.serving.settings import Settings

__all__ = [
    "Engine",
    "Prompt",
    "RecordedEngine",
    "Replay",
    "RequestError",
    "Sampling",
    "Settings",
    "create_app",
    "load_recordings",
    "make_server",
]
