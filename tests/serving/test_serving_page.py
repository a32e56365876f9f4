"""The page, in a real browser."""

import html
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from backend_harness import CALL, LONG, PATIENCE, ids, serving

import harmony_stream

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
)
missing_browser = pytest.mark.skipif(
    BROWSER is None, reason="there is no chromium: apt-get install chromium"
)


def needs_browser(test):
    return pytest.mark.slow(missing_browser(test))


BROKEN = (
    "<|channel|>analysis<|message|><b>Hm</b><|end|>commentary<|message|>So.<|end|>"
    "<|start|>assistant<|channel|>odd<|message|>Secret<|end|>"
    '<|start|>assistant<|channel|>commentary to=functions.tide<|message|>{"at":'
)


# What JavaScript would read otherwise than it was written, and so write otherwise.
ARGUMENTS = {
    "a large integer": '{"id": 12345678901234567890123}',
    "a key twice": '{"at": "Oban", "at": "Iona"}',
    "number-like keys": '{"b": 1, "10": 2, "2": 3}',
    "a number's spelling": '{"a": 1.0, "b": 1E400, "c": -0, "d": 0.1e1}',
    "escapes": '{"a": "\\u00e9\\/", "\\u0061": 2}',
    "white space": '{ "a" :\t[1,\n\n 2]  }\n',
    "no JSON": '{"a": 1,}',
    "text": '"12345678901234567890123"',
}
EXACT = "<|start|>assistant".join(
    f"<|channel|>commentary to=functions.tide json<|message|>{text}<|end|>"
    for text in ARGUMENTS.values()
)
# A token that no vocabulary has, and that JavaScript's numbers cannot hold.
HUGE = [*ids("<|channel|>final<|message|>a"), 2**53 + 1, 200002]


@pytest.fixture(scope="module")
def backend():
    recordings = {"call": [CALL], "broken": [BROKEN], "exact": [EXACT], "huge": [HUGE]}
    with serving(recordings) as running:
        yield running


@pytest.fixture
def shown(backend, tmp_path):
    """The page as the browser has it in the end."""
    return lambda query: dump_of(f"{backend.url}/{query}", tmp_path)


def dump_of(url, profile):
    done = subprocess.run(
        [
            *(BROWSER, *FLAGS, f"--user-data-dir={profile}", "--virtual-time-budget=10000"),
            *("--dump-dom", url),
        ],
        capture_output=True,
        encoding="utf-8",
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def cards(page):
    """Each message as (class, what is read)."""
    found = re.findall(r'<article class="message ([\w ]+)">(.*?)</article>', page, re.DOTALL)
    return [(kind, html.unescape(re.sub("<[^>]*>", " ", inner)).split()) for kind, inner in found]


def status_of(page):
    return re.search(r'id="status"[^>]*>([^<]*)<', page)[1]


@needs_browser
def test_the_page_lists_the_recordings_and_waits(shown):
    page = shown("")
    options = re.findall("<option[^>]*>(.*?)</option>", page)
    assert options == ["call", "broken", "exact", "huge"]
    assert status_of(page) == "Choose a recording and play it."


@needs_browser
def test_the_page_shows_reasoning_preamble_and_call(shown):
    page = shown("?model=call")
    assert cards(page) == [
        ("analysis", ["reasoning", "on", "analysis", "end", "The", "table", "says", "it."]),
        ("commentary", ["preamble", "on", "commentary", "end", "I'll", "look."]),
        (
            "call",
            [
                "call",
                "functions.tide",
                "on",
                "commentary",
                "<|constrain|>json",
                "call",
                '{"at":',
                '"Oban"}',
            ],
        ),
    ]
    assert status_of(page).startswith(f"{len(ids(CALL))} tokens, ")
    assert ", no faults, " in status_of(page)


@needs_browser
def test_the_page_shows_what_breaks_the_format_and_what_must_not_be_executed(shown):
    page = shown("?model=broken&speed=5000")
    kinds = [kind for kind, _ in cards(page)]
    assert kinds == ["analysis", "fault", "commentary", "analysis", "call"]
    assert "<b>Hm</b>" in cards(page)[0][1], "text is text, not markup"
    assert cards(page)[1][1][:2] == ["expected", "start"]
    assert "truncated: must not be executed" in " ".join(cards(page)[-1][1])
    assert ", 1 fault, " in status_of(page)


@needs_browser
def test_arguments_are_shown_as_they_were_sampled(shown):
    texts = re.findall('<div class="text">(.*?)</div>', shown("?model=exact"), re.DOTALL)
    assert [html.unescape(text) for text in texts] == list(ARGUMENTS.values())


@needs_browser
def test_the_events_are_listed_as_they_came(shown, backend):
    page = shown("?model=huge")
    [log] = re.findall('<pre id="log">(.*?)</pre>', page, re.DOTALL)
    text = backend.request("GET", "/events?model=huge").text
    sent = re.findall("^data: (.*)$", text, re.MULTILINE)
    assert html.unescape(log).splitlines() == sent[:-1]
    assert '"token":9007199254740993' in log


@needs_browser
def test_the_page_shows_no_reasoning_where_it_is_hidden(tmp_path):
    with serving({"call": [CALL], "broken": [BROKEN]}, reasoning_key=None) as backend:
        for model, kinds in [
            ("call", ["commentary", "call"]),
            ("broken", ["fault", "commentary", "call"]),
        ]:
            page = dump_of(f"{backend.url}/?model={model}", tmp_path)
            assert [kind for kind, _ in cards(page)] == kinds
            assert not re.search("table|Hm|Secret", page)


@needs_browser
def test_the_page_says_that_the_server_has_refused(shown):
    page = shown("?model=call&speed=-1")
    assert status_of(page) == "The server refused the request or closed the connection."


@needs_browser
def test_closing_the_browser_stops_the_replay(tmp_path):
    with serving({"long": [LONG]}, speed=50) as backend:
        browser = subprocess.Popen(
            [
                *(BROWSER, *FLAGS, f"--user-data-dir={tmp_path}", "--remote-debugging-port=0"),
                f"{backend.url}/?model=long",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            backend.begun.wait(60)
        finally:
            browser.terminate()
            browser.communicate(timeout=PATIENCE)
        replay = backend.replay()
    assert replay.sent < replay.total


# -- What can be told without a browser --


def test_the_page_may_load_nothing_from_elsewhere(backend):
    response = backend.request("GET", "/")
    assert response.headers["content-security-policy"].startswith("default-src 'none';")
    assert not re.search(r"(src|href)=\"(?!data:)", response.text)
    assert "http" not in response.text


def test_the_types_that_the_page_names_are_those_of_the_events():
    page = Path(harmony_stream.__file__).parent / "serving" / "events.html"
    types = (Path(harmony_stream.__file__).parent / "events.d.ts").read_text()
    named = re.findall(r'import\("../events"\)\.(\w+)', page.read_text("utf-8"))
    assert len(named) == 6
    for name in named:
        assert re.search(rf"export (interface|type) {name}\b", types)
