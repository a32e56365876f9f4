"""A backend over an engine: here one that replays the logs in this folder's parent.

    pip install 'harmony-stream[serve]'
    python examples/backend/server.py

Then open http://127.0.0.1:8000/, or run client.py beside it. `create_app` takes any engine: an
object with `models` and an asynchronous generator `sample(prompt)` of token ids (docs/serving.md).
"""

import sys
from pathlib import Path

import uvicorn

from harmony_stream.serving import RecordedEngine, create_app, load_recordings

LOGS = sorted(Path(__file__).parent.parent.glob("*.json"))

app = create_app(RecordedEngine(load_recordings(LOGS), speed=40, on_end=print))

if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
