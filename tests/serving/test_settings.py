"""Settings: each is checked when it is given, and named where it cannot be used."""

import datetime
import fractions
import functools
import json
import logging
import math
import time

import pytest
from backend_harness import Listening, asked

from harmony_stream import Vocabulary
from harmony_stream.serving import RecordedEngine, Settings, create_app, make_server

CHAT = {"model": "any", "messages": [{"role": "user", "content": "?"}]}


async def later(*_):
    raise NotImplementedError


def piecewise(*_):
    yield "call_1"


class Later:
    async def __call__(self, problem):
        raise NotImplementedError


REFUSED = {
    "reasoning_key": [
        (ValueError, ["thinking", "", "none", 5, True, [], {}]),
    ],
    "date": [
        (ValueError, ["today", "", "2025-6-28", "20250628", "2025-02-30", "28 June 2025",
                      "2025-06-28T00:00", " 2025-06-28", "2025-W26-6", "2025-06-28\n# Tools"]),
        (TypeError, [20250628, 1.5, True, b"2025-06-28", datetime.date(2025, 6, 28), [], later,
                     lambda day: day]),
    ],
    "keep_alive": [
        (ValueError, [0, 0.0, -1, -0.5, math.nan, math.inf, -math.inf, 1e10,
                      10**400]),
        (TypeError, ["15", None, True, fractions.Fraction(1, 2), [15], 1j, time.time]),
    ],
    "on_problem": [(TypeError, ["print", 5, [print], later, Later(), piecewise, lambda: None,
                               lambda a, b: None])],
    "ids": [(TypeError, [None, "call_", 5, later, piecewise, lambda: "id"])],
    "clock": [(TypeError, [None, 0.0, "now", later, lambda zone: 0.0])],
    "page": [(TypeError, ["yes", 1, 0, [], "False"])],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        (name, value, error)
        for name, groups in REFUSED.items()
        for error, values in groups
        for value in values
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_by_name_when_it_is_given(name, value, error):
    with pytest.raises(error, match=rf"^Settings\.{name}: (?s:.*) is not (?s:.*); give "):
        Settings(**{name: value})


TAKEN = {
    "reasoning_key": ["reasoning", "reasoning_content", "both", None],
    "date": [None, "2025-06-28", "0001-01-01", lambda: None, lambda day="2025-06-28": day],
    "keep_alive": [1, 0.001, 1e9, 15.0],
    "on_problem": [None, print, [].append, lambda problem: None, lambda *problems: None],
    "ids": [str.upper, "{}1".format, lambda prefix: prefix, functools.partial(max, "", key=len)],
    "clock": [time.time, lambda: 1, functools.partial(float, 5)],
    "page": [True, False, None],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in TAKEN.items() for value in values]
)
def test_a_setting_that_can_be_used_is_taken_as_it_is(name, value):
    assert getattr(Settings(**{name: value}), name) is value


def test_every_setting_is_in_both_tables():
    assert set(REFUSED) == set(TAKEN) == set(Settings.__slots__) - {"__weakref__"}


# -- The date --


def prompted_text(settings):
    engine = Listening()
    status, _ = asked(create_app(engine, settings), "POST", "/v1/chat/completions", CHAT)
    assert status == 200
    return Vocabulary.default().decode(engine.prompts[0].tokens)


@pytest.mark.parametrize("date", ["2025-06-28", lambda: "2025-06-28"])
def test_the_model_is_told_the_date(date):
    assert "\nCurrent date: 2025-06-28\n" in prompted_text(Settings(date=date))


def test_a_function_is_asked_for_the_date_each_time():
    days = iter(["2025-06-28", "2025-06-29"])
    settings = Settings(date=lambda: next(days))
    assert [settings.today(), settings.today()] == ["2025-06-28", "2025-06-29"]


@pytest.mark.parametrize(
    ("value", "error"),
    [("today", ValueError), (datetime.date(2025, 6, 28), TypeError), (5, TypeError)],
)
def test_a_function_that_returns_no_date_fails_by_name(value, error):
    with pytest.raises(error, match=r"^Settings\.date: .*, which the function returned, is not a"):
        Settings(date=lambda: value).today()


def test_a_date_that_cannot_be_had_is_a_fault_of_the_server(caplog):
    settings = Settings(date=lambda: "soon")
    app = create_app(Listening(), settings)
    with caplog.at_level(logging.ERROR), pytest.raises(ValueError, match="'soon'"):
        asked(app, "POST", "/v1/chat/completions", CHAT)


# -- The clock --


@pytest.mark.parametrize("value", ["now", None, math.nan, math.inf])
def test_a_clock_that_gives_no_time_is_refused_before_there_is_a_request(value):
    with pytest.raises(TypeError, match=r"^Settings\.clock: .* is not a number of seconds; give"):
        create_app(Listening(), Settings(clock=lambda: value))


# -- The page --


@pytest.mark.parametrize(
    ("page", "status"), [(None, 404), (False, 404), (True, 200)], ids=["unsaid", "off", "on"]
)
@pytest.mark.parametrize("path", ["/", "/events"])
def test_an_engine_of_ones_own_has_a_page_only_if_it_is_asked_for(page, status, path):
    engine = Listening()
    found, answer = asked(create_app(engine, Settings(page=page)), "GET", path)
    assert found == status
    if status == 404:
        assert json.loads(answer)["error"]["message"] == f"Invalid URL (GET {path})"
        assert engine.prompts == []


@pytest.mark.parametrize(("page", "status"), [(None, 200), (False, 404), (True, 200)])
def test_recordings_have_a_page_unless_it_is_refused(page, status):
    app = create_app(RecordedEngine({"any": [[200002]]}), Settings(page=page))
    assert {asked(app, "GET", path)[0] for path in ("/", "/events")} == {status}
    assert asked(app, "GET", "/v1/models")[0] == 200


# -- The server --


@pytest.mark.parametrize("app", [None, "app", Listening()])
def test_what_is_no_app_is_refused_before_it_is_served(app):
    with pytest.raises(TypeError, match=r"^app: .* is not an ASGI app; give one"):
        make_server(app)
