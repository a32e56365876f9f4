"""The built-in tools."""

import json

import openai_harmony
import pytest

from harmony_stream.values.tools import ToolNamespaceConfig


@pytest.mark.parametrize("name", ["browser", "python"])
def test_a_built_in_tool_is_word_for_word_that_of_openai_harmony(name):
    ours = getattr(ToolNamespaceConfig, name)()
    theirs = getattr(openai_harmony.ToolNamespaceConfig, name)()

    assert json.dumps(ours.model_dump()) == json.dumps(theirs.model_dump())


def test_a_changed_built_in_tool_does_not_change_the_next_one():
    browser = ToolNamespaceConfig.browser()
    browser.tools[0].parameters["properties"]["query"]["type"] = "number"
    browser.tools.pop()

    assert ToolNamespaceConfig.browser().tools[0].parameters["properties"]["query"] == {
        "type": "string"
    }
    assert len(ToolNamespaceConfig.browser().tools) == 3


def test_parts_of_a_built_in_tool_do_not_change_each_other():
    search, open_page, _ = ToolNamespaceConfig.browser().tools
    search.parameters["properties"]["query"]["type"] = "number"

    assert open_page.parameters["properties"]["source"] == {"type": "string"}
    assert search.parameters["properties"]["source"] == {"type": "string"}
