"""Running an app, and stopping it while it streams."""

import contextlib

import openai
import pytest
from backend_harness import LONG, PATIENCE, ids, running

from harmony_stream.serving import RecordedEngine, Settings, create_app
from harmony_stream.serving.server import make_server

QUESTION = [{"role": "user", "content": "When is high tide?"}]


@pytest.mark.parametrize("app", [None, "harmony_stream.serving:app", 5])
def test_what_is_no_app_is_refused_before_anything_runs(app):
    with pytest.raises(TypeError, match=f"app: {app!r} is not an ASGI app; give one"):
        make_server(app)


def test_a_server_that_is_told_to_stop_closes_the_streams_that_are_open():
    app = create_app(RecordedEngine({"long": [ids(LONG)]}, speed=20), Settings())
    with contextlib.ExitStack() as clients:
        with running(app) as url:  # which stops the server, and checks that it ends in time
            client = openai.OpenAI(base_url=f"{url}/v1", api_key="any", timeout=PATIENCE)
            clients.enter_context(client)
            create = client.chat.completions.create
            stream = create(model="long", messages=QUESTION, stream=True)
            next(iter(stream))
        with pytest.raises(Exception, match=r"(?i)connection|closed|incomplete"):
            list(stream)
