"""Where a message goes: by recipient first, by channel second."""

import pytest
from strategies import events_of

from harmony_stream.adapters.routing import (
    Route,
    RouteKind,
    Unlabelled,
    is_unlabelled,
    route,
    stray_route,
    tool_route,
)
from harmony_stream.values.events import Malformed, MessageStart
from harmony_stream.values.header import Header
from harmony_stream.values.messages import Role

ASSISTANT = Role.ASSISTANT

# header fields (role, name, channel, recipient) -> route
HEADERS = [
    ((ASSISTANT, None, "analysis", None), Route(RouteKind.REASONING)),
    ((ASSISTANT, None, "commentary", None), Route(RouteKind.TEXT)),
    ((ASSISTANT, None, "final", None), Route(RouteKind.TEXT)),
    ((ASSISTANT, None, None, None), Route(RouteKind.TEXT)),
    ((ASSISTANT, None, "finalx", None), Route(RouteKind.REASONING)),
    ((ASSISTANT, None, "final", "assistant"), Route(RouteKind.TEXT)),
    ((ASSISTANT, None, "commentary", "assistant"), Route(RouteKind.REASONING)),
    ((ASSISTANT, None, None, "all"), Route(RouteKind.TEXT)),
    ((ASSISTANT, None, "analysis", "final"), Route(RouteKind.REASONING)),
    ((ASSISTANT, None, "final", "User."), Route(RouteKind.TEXT)),
    ((ASSISTANT, None, "commentary", "functions.f"), Route(RouteKind.FUNCTION, "f")),
    ((ASSISTANT, None, "analysis", "functions.f"), Route(RouteKind.FUNCTION, "f")),
    ((ASSISTANT, None, "final", "functions.f"), Route(RouteKind.FUNCTION, "f")),
    ((ASSISTANT, None, None, "f"), Route(RouteKind.FUNCTION, "f")),
    ((ASSISTANT, None, "analysis", "python"), Route(RouteKind.CODE, "python")),
    ((Role.TOOL, "functions.f", "commentary", "assistant"), Route(RouteKind.RESULT, "f")),
    ((Role.TOOL, "container.exec", None, None), Route(RouteKind.RESULT, "container.exec")),
    ((Role.TOOL, None, None, None), Route(RouteKind.RESULT, "")),
    ((Role.USER, None, None, None), Route(RouteKind.HIDDEN)),
    ((Role.SYSTEM, None, None, None), Route(RouteKind.HIDDEN)),
    ((Role.DEVELOPER, None, "final", None), Route(RouteKind.HIDDEN)),
]


@pytest.mark.parametrize(("fields", "expected"), HEADERS)
def test_the_recipient_decides_and_then_the_channel(fields, expected):
    assert route(Header(*fields)) == expected


# recipient, declared tools -> route
TOOLS = [
    ("functions.get_weather", (), Route(RouteKind.FUNCTION, "get_weather")),
    ("get_weather", (), Route(RouteKind.FUNCTION, "get_weather")),
    ("get_weather", {"get_weather"}, Route(RouteKind.FUNCTION, "get_weather")),
    ("functions.get_weather", {"get_weather"}, Route(RouteKind.FUNCTION, "get_weather")),
    ("functions.unknown", {"get_weather"}, Route(RouteKind.FUNCTION, "unknown")),
    ("unknown", {"get_weather"}, Route(RouteKind.FUNCTION, "unknown")),
    ("functions.f", {"functions.f"}, Route(RouteKind.FUNCTION, "functions.f")),
    ("functions.python", (), Route(RouteKind.FUNCTION, "python")),
    ("functions.browser.search", (), Route(RouteKind.FUNCTION, "browser.search")),
    ("functions", (), Route(RouteKind.FUNCTION, "functions")),
    ("all", {"all"}, Route(RouteKind.FUNCTION, "all")),
    ("user", {"user"}, Route(RouteKind.FUNCTION, "user")),
    ("assistant", {"assistant"}, Route(RouteKind.FUNCTION, "assistant")),
    ("functions.assistant", {"assistant"}, Route(RouteKind.FUNCTION, "assistant")),
    ("python", {"Python"}, Route(RouteKind.CODE, "python")),
    ("function.f", (), Route(RouteKind.SERVER_TOOL, "f", "function")),
    ("function.f", {"f"}, Route(RouteKind.FUNCTION, "f")),
    ("python", (), Route(RouteKind.CODE, "python")),
    ("python", {"python"}, Route(RouteKind.FUNCTION, "python")),
    ("browser.search", (), Route(RouteKind.WEB_SEARCH, "browser.search")),
    ("browser.open", (), Route(RouteKind.WEB_SEARCH, "browser.open")),
    ("browser.find", (), Route(RouteKind.WEB_SEARCH, "browser.find")),
    ("browser.search", {"browser.search"}, Route(RouteKind.FUNCTION, "browser.search")),
    ("browser.close", (), Route(RouteKind.SERVER_TOOL, "close", "browser")),
    ("container.exec", (), Route(RouteKind.SERVER_TOOL, "exec", "container")),
    ("knots.sum", {"knots.sum"}, Route(RouteKind.FUNCTION, "knots.sum")),
    ("a.b.c", (), Route(RouteKind.SERVER_TOOL, "b.c", "a")),
    (".f", (), Route(RouteKind.FUNCTION, ".f")),
    ("f.", (), Route(RouteKind.FUNCTION, "f.")),
]


@pytest.mark.parametrize(("recipient", "tools", "expected"), TOOLS)
def test_declared_names_go_first_bare_or_prefixed_then_built_in_tools(recipient, tools, expected):
    assert tool_route(recipient, tools) == expected
    assert route(Header(ASSISTANT, None, "analysis", recipient), tools) == expected


@pytest.mark.parametrize(("recipient", "tools"), [row[:2] for row in TOOLS])
def test_a_call_and_its_result_have_one_name(recipient, tools):
    result = route(Header(Role.TOOL, recipient, "commentary", "assistant"), tools)
    assert result.name == tool_route(recipient, tools).full_name


@pytest.mark.parametrize(
    "recipient", ["functions.", "functions.functions.", ".", "..", "function."]
)
def test_a_call_of_no_name_goes_where_its_channel_says(recipient):
    for channel in ("analysis", "commentary", "final", None, "thoughts"):
        called, said = Header(ASSISTANT, None, channel, recipient), Header(ASSISTANT, None, channel)
        assert route(called, {"f"}) == route(said)


PLACES = [None, "assistant", "all", "user"]


@pytest.mark.parametrize("recipient", PLACES)
@pytest.mark.parametrize("channel", ["analysis", "commentary", "final", None, "thoughts"])
def test_what_a_person_may_see_is_what_the_header_says(channel, recipient):
    header = Header(ASSISTANT, None, channel, recipient)
    if header.is_tool_call:
        assert route(header).kind is RouteKind.FUNCTION
    else:
        assert (route(header).kind is RouteKind.TEXT) == header.is_visible
        assert route(header).kind in (RouteKind.TEXT, RouteKind.REASONING)


def test_text_that_no_known_channel_labels_goes_where_the_caller_says():
    bare, unknown = Header(ASSISTANT), Header(ASSISTANT, None, "thoughts")
    assert is_unlabelled(bare)
    assert is_unlabelled(unknown)
    swapped = Unlabelled(without_channel="reasoning", on_unknown_channel="content")
    assert route(bare, (), swapped).kind is RouteKind.REASONING
    assert route(unknown, (), swapped).kind is RouteKind.TEXT


@pytest.mark.parametrize(
    "header",
    [
        Header(ASSISTANT, None, "analysis"),
        Header(ASSISTANT, None, None, "functions.f"),
        Header(ASSISTANT, None, "thoughts", "assistant"),
        Header(Role.USER),
    ],
)
def test_where_unlabelled_text_goes_is_nothing_to_other_messages(header):
    swapped = Unlabelled(without_channel="reasoning", on_unknown_channel="content")
    assert not is_unlabelled(header)
    assert route(header, (), swapped) == route(header)


# What the model sampled, and whether the text that is outside of messages is hidden.
STRAY = [
    ("Let me look.<|channel|>analysis<|message|>Hm.<|end|>", False),
    ("Let me look.<|channel|>commentary to=functions.f<|message|>{}<|call|>", False),
    ("<|channel|>final Here it is:<|message|>Four.<|end|>", False),
    ("<|channel|>final(Yes)<|message|>Four.<|end|>", False),
    ("<|channel|>final<|message|>Four.<|end|>stray<|start|>", False),
    ("<|channel|>analysis we think<|message|>Hm.<|end|>", True),
    ("<|channel|>analysis\u2014we<|message|>Hm.<|end|>", True),
    ("<|channel|>analysis(we)<|message|>Hm.<|end|>", True),
    ("<|channel|>analysis" + " " * 600 + "we think<|message|>Hm.<|end|>", True),
    ("<|channel|>analysis" + " " * 600 + "we think<|channel|>final<|message|>Hm.<|end|>", True),
    ("<|channel|>analysis<|constrain|>:we<|message|>Hm.<|end|>", True),
    ("<|channel|>analysis we think<|channel|>final<|message|>Four.<|end|>", True),
    ("<|channel|>gossip we think<|channel|>final<|message|>Four.<|end|>", True),
    ("analysis we think<|message|>Hm.<|end|>", True),
    ("assistantAnalysis we think<|message|>Hm.<|end|>", True),
    ("we think<|channel|>commentary to=assistant<|message|>Hm.<|end|>", True),
]


@pytest.mark.parametrize(("text", "is_hidden"), STRAY)
def test_text_outside_of_messages_is_hidden_where_it_belongs_to_a_thought(text, is_hidden):
    events = events_of(text)
    [stray, *_] = [event for event in events if isinstance(event, Malformed) and event.text]
    starts = [event for event in events if isinstance(event, MessageStart)]
    headers = [each.header for each in starts if each.start <= stray.start < each.stop]
    found = stray_route(stray, headers[0] if headers else None, Unlabelled())
    assert (found.kind is RouteKind.REASONING) is is_hidden
