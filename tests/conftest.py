"""What several test files share."""

import base64
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from harmony_stream.vocabulary import Vocabulary

# Where the project checks itself, the examples are the same each time: what a property finds is
# found by those who raise HARMONY_STREAM_EXAMPLES, not by a run that was to check something else.
settings.register_profile("harmony_stream", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("harmony_stream")


@pytest.fixture(scope="session")
def official_vocabulary_file(tmp_path_factory) -> Path:
    """`o200k_base.tiktoken`, rebuilt from the embedded data.

    openai_harmony finds it through TIKTOKEN_ENCODINGS_BASE, so a test that asks for this fixture
    can load that library without the network.
    """
    vocabulary = Vocabulary.default()
    path = tmp_path_factory.mktemp("vocabulary") / "o200k_base.tiktoken"
    with path.open("wb") as file:
        for token in range(199998):
            encoded = base64.b64encode(vocabulary.decode_single_token_bytes(token))
            file.write(b"%s %d\n" % (encoded, token))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_ENCODINGS_BASE", str(path.parent))
        yield path


def pytest_configure():
    # A shell starts what runs in the background with the interrupt ignored, nohup with the hangup,
    # and what is started from there inherits that. Tests that end a program start it from here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_sessionfinish(session):
    """Nothing may be skipped silently where the project checks itself."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if os.environ.get("CI") and skipped and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        for report in skipped:
            reporter.write_line(f"skipped, which is a failure here: {report.nodeid}", red=True)
