"""Which arguments of tool calls must be JSON, and are not."""

import pytest

from harmony_stream.adapters.arguments import lack_arguments, lack_json
from harmony_stream.adapters.routing import route
from harmony_stream.values.header import Header
from harmony_stream.values.messages import Role

ASSISTANT = Role.ASSISTANT
CASES = [
    # recipient, content type, arguments, whether they lack JSON
    ("functions.f", None, '{"a": 1}', False),
    ("functions.f", None, '{"a": ', True),
    ("functions.f", "json", "", True),
    ("functions.f", "JSON", "bad", True),
    ("functions.f", "<|constrain|>application/json", "bad", True),
    ("functions.f", "<|constrain|>json", "[1, 2] 3", True),
    ("functions.f", "code", "1 +", False),
    ("browser.search", None, "tides", False),
    ("browser.search", "json", "tides", True),
    ("python", "code", "1 +", False),
    ("functions.f", None, "[" * 100_000, True),
    ("functions.f", None, "[" * 128 + "]" * 128, False),
    ("functions.f", None, "[" * 129 + "]" * 129, True),
    ("functions.f", None, '"' + "[" * 501 + '"', False),
    ("functions.f", None, '{"a": "\\"' + "[" * 501, True),
    ("functions.f", None, "1" * 5000, False),
    ("functions.f", None, "NaN", True),
    ("functions.f", None, '[-Infinity, "NaN"]', True),
    ("functions.f", None, '["NaN"]', False),
    ("f", None, "ls", True),
    ("python", None, "1 +", False),
    ("functions.", None, "ls", False),
    ("assistant", "json", "{", False),
    (None, "json", "{", False),
]


@pytest.mark.parametrize(("recipient", "content_type", "arguments", "lacks"), CASES)
def test_arguments_must_be_json_where_the_header_says_so(recipient, content_type, arguments, lacks):
    header = Header(ASSISTANT, None, "commentary", recipient, content_type)
    assert lack_json(header, arguments) is lacks


@pytest.mark.parametrize("blank", ["", " ", "\n\u00a0", "\u200b", "\ufeff "])
@pytest.mark.parametrize("content_type", [None, "json", "Json", "application/json"])
def test_arguments_in_which_nothing_is_seen_are_no_arguments(blank, content_type):
    header = Header(ASSISTANT, None, "commentary", "functions.f", content_type)
    assert lack_arguments(route(header), header, blank)
    assert not lack_arguments(route(header), header, blank + "0")


def test_a_declared_tool_of_a_built_in_name_takes_json():
    header = Header(ASSISTANT, None, "commentary", "python")
    assert lack_json(header, "1 +", {"python"})
