"""Which call a result answers, by names alone. The errors are also tested with transcripts."""

import pytest

from harmony_stream.history.calls import OpenCalls
from harmony_stream.values.header import Header
from harmony_stream.values.messages import Role


def call(recipient, channel="commentary"):
    return Header(Role.ASSISTANT, None, channel, recipient)


def result(name):
    return Header(Role.TOOL, name, "commentary", "assistant")


def waiting(*headers):
    calls = OpenCalls()
    for header in headers:
        calls.add(header)
    return calls


# calls, the name that a result has, the recipients that it may be meant for
LIKE = [
    (["functions.tide"], "functions.tide", ["functions.tide"]),
    (["functions.tide"], "tide", ["functions.tide"]),
    (["functions.tide"], "function.tide", ["functions.tide"]),
    (["functions.functions.tide"], "functions.tide", ["functions.functions.tide"]),
    (["tide"], "functions.tide", ["tide"]),
    (["browser.find"], "find", ["browser.find"]),
    (["browser.find"], "functions.find", []),
    (["browser.find"], "browser", []),
    (["functions.tide", "browser.tide"], "tide", ["browser.tide", "functions.tide"]),
    (["functions.tide", "browser.tide"], "browser.tide", ["browser.tide"]),
    (["functions.tide", "functions.tide"], "tide", ["functions.tide"]),
    (["functions.tide"], "", []),
    ([], "tide", []),
]


@pytest.mark.parametrize(("recipients", "name", "found"), LIKE)
def test_a_result_is_meant_for_the_calls_that_are_named_like_it(recipients, name, found):
    assert waiting(*map(call, recipients)).like(name) == found


def test_a_call_waits_until_a_result_of_exactly_its_name_has_come():
    calls = waiting(call("functions.f"), call("functions.f"), result("f"), result("functions.f"))
    assert calls.recipient("f") == "functions.f"
    calls.add(result("functions.f"))
    assert calls.like("f") == []


@pytest.mark.parametrize(
    "header",
    [
        Header(Role.USER, None, None, "functions.f"),
        Header(Role.ASSISTANT, None, "final", "user"),
        Header(Role.ASSISTANT, None, "final"),
        Header(Role.TOOL, None),
        result("functions.f"),
    ],
)
def test_other_messages_and_results_of_no_call_change_nothing(header):
    calls = waiting(header, call("functions.g"))
    assert calls.like("f") == []
    assert calls.like("g") == ["functions.g"]


def test_the_channel_is_that_of_the_last_call():
    calls = waiting(call("python", "analysis"), call("f"), call("python", None))
    assert (calls.channel("python"), calls.channel("f")) == (None, "commentary")


def test_a_copy_goes_on_by_itself():
    calls = waiting(call("functions.f"))
    copied = calls.copy()
    copied.add(result("functions.f"))
    copied.add(call("python", "analysis"))
    assert calls.like("f") == ["functions.f"]
    assert calls.like("python") == copied.like("f") == []
    assert copied.channel("python") == "analysis"


TWO = [call("browser.f"), call("functions.f")]
ANSWERED = [call("functions.f"), result("functions.f")]
REFUSED = [
    (TWO, "f", "several: 'browser.f', 'functions.f'; give the recipient of one"),
    (ANSWERED, "functions.f", "each of its calls has a result; give one result for each call"),
    (TWO, "g", "calls that wait: 'browser.f', 'functions.f'; give the recipient of one"),
    ([], "g", "not a tool that was called; calls that wait: none; add its call before its result"),
    (ANSWERED, "f", "calls that wait: none; add its call before its result"),
]


@pytest.mark.parametrize(("headers", "name", "sentence"), REFUSED)
def test_a_result_without_one_call_is_refused_and_told_what_there_is(headers, name, sentence):
    with pytest.raises(ValueError, match=f"tool {name!r} .*{sentence}$"):
        waiting(*headers).recipient(name)


def test_a_name_that_is_only_like_its_call_is_refused():
    with pytest.raises(ValueError, match=r"is like 'functions\.f'; give the recipient of the call"):
        waiting(call("functions.f")).check("f")


@pytest.mark.parametrize("name", ["functions.f", "g", "old"])
def test_a_name_of_a_call_or_of_none_that_is_known_passes(name):
    calls = waiting(call("functions.f"), call("old"), result("old"))
    calls.check(name)
    assert calls.like("f") == ["functions.f"]
