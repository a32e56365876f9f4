"""Tools as values: descriptions, namespaces, and the two built-in tools."""

from __future__ import annotations

import json
from typing import Any, Self

from harmony_stream.support.value import Value

# The built-in tools word for word as models were trained on them: tokens depend on each letter.

_STRING = {"type": "string"}
_MINUS_ONE = {"type": "number", "default": -1}

_BROWSER: dict[str, Any] = {
    "name": "browser",
    "description": (
        "Tool for browsing.\n"
        "The `cursor` appears in brackets before each browsing display: `[{cursor}]`.\n"
        "Cite information from the tool using the following format:\n"
        "`【{cursor}†L{line_start}(-L{line_end})?】`, "
        "for example: `【6†L9-L11】` or `【8†L3】`.\n"
        "Do not quote more than 10 words directly from the tool output.\n"
        "sources=web (default: web)"
    ),
    "tools": [
        {
            "name": "search",
            "description": (
                "Searches for information related to `query` and displays `topn` results."
            ),
            "parameters": {
                "type": "object",
                "properties": {
                    "query": _STRING,
                    "topn": {"type": "number", "default": 10},
                    "source": _STRING,
                },
                "required": ["query"],
            },
        },
        {
            "name": "open",
            "description": (
                "Opens the link `id` from the page indicated by `cursor` "
                "starting at line number `loc`, showing `num_lines` lines.\n"
                "Valid link ids are displayed with the formatting: `【{id}†.*】`.\n"
                "If `cursor` is not provided, the most recent page is implied.\n"
                "If `id` is a string, it is treated as a fully qualified URL "
                "associated with `source`.\n"
                "If `loc` is not provided, the viewport will be positioned at the beginning "
                "of the document or centered on the most relevant passage, if available.\n"
                "Use this function without `id` to scroll to a new location of an opened page."
            ),
            "parameters": {
                "type": "object",
                "properties": {
                    "id": {"type": ["number", "string"], "default": -1},
                    "cursor": _MINUS_ONE,
                    "loc": _MINUS_ONE,
                    "num_lines": _MINUS_ONE,
                    "view_source": {"type": "boolean", "default": False},
                    "source": _STRING,
                },
            },
        },
        {
            "name": "find",
            "description": (
                "Finds exact matches of `pattern` in the current page, "
                "or the page given by `cursor`."
            ),
            "parameters": {
                "type": "object",
                "properties": {"pattern": _STRING, "cursor": _MINUS_ONE},
                "required": ["pattern"],
            },
        },
    ],
}

_PYTHON: dict[str, Any] = {
    "name": "python",
    "description": (
        "Use this tool to execute Python code in your chain of thought. "
        "The code will not be shown to the user. "
        "This tool should be used for internal reasoning, "
        "but not for code that is intended to be visible to the user "
        "(e.g. when creating plots, tables, or files).\n"
        "\n"
        "When you send a message containing Python code to python, "
        "it will be executed in a stateful Jupyter notebook environment. "
        "python will respond with the output of the execution or time out after 120.0 seconds. "
        "The drive at '/mnt/data' can be used to save and persist user files. "
        "Internet access for this session is UNKNOWN. Depends on the cluster."
    ),
    "tools": [],
}

FUNCTIONS = "functions"
"""The namespace of the functions that a request declares. Format guide, "Function calling"."""


class ToolDescription(Value):
    """One function that the model may call (the format guide, "Function calling").

    `name` does not contain the namespace. `parameters` is a JSON schema, or None without arguments.

    >>> ToolDescription.new("get_location", "Gets the location of the user.").parameters is None
    True
    """

    name: str
    description: str
    parameters: dict[str, Any] | None = None

    @classmethod
    def new(cls, name: str, description: str, parameters: dict[str, Any] | None = None) -> Self:
        """Return a function from positional arguments, as in openai_harmony."""
        return cls(name=name, description=description, parameters=parameters)


class ToolNamespaceConfig(Value):
    """Functions under a common name, written as one TypeScript namespace.

    A namespace without functions is a tool that takes bare text, like the built-in `python`.

    >>> clock = ToolNamespaceConfig(name="clock", tools=[ToolDescription.new("now", "Tells it.")])
    >>> clock.tools
    [ToolDescription(name='now', description='Tells it.', parameters=None)]
    """

    name: str
    description: str | None = None
    tools: list[ToolDescription]

    @staticmethod
    def browser() -> ToolNamespaceConfig:
        """Return the built-in browser (the format guide, "Browser tool").

        >>> [tool.name for tool in ToolNamespaceConfig.browser().tools]
        ['search', 'open', 'find']
        """
        return ToolNamespaceConfig.model_validate_json(json.dumps(_BROWSER))  # shares nothing

    @staticmethod
    def python() -> ToolNamespaceConfig:
        """Return the built-in Python (the format guide, "Python tool"). It takes code as bare text.

        >>> ToolNamespaceConfig.python().tools
        []
        """
        return ToolNamespaceConfig(**_PYTHON)
