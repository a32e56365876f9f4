"""`harmony-stream render` and `harmony-stream tools`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harmony_stream import (
    Conversation,
    DeveloperContent,
    Message,
    Renderer,
    ToolDescription,
    cli,
)

QUESTION = Message.from_role_and_content("user", "What is 2 + 2?")
ANSWER = Message.from_role_and_content("assistant", "4").with_channel("final")
CONVERSATION = Conversation.from_messages([QUESTION, ANSWER])
WEATHER = {
    "name": "get_weather",
    "description": "Gets the weather.",
    "parameters": {
        "type": "object",
        "properties": {"unit": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
    },
}


@pytest.fixture(name="run")
def _run(tmp_path, capsys):
    def run(command, content, *options):
        path = tmp_path / "given.json"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        status = cli.main([command, *options, str(path)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err.replace(str(path), "FILE")

    return run


@pytest.mark.parametrize("view", [[], ["--text"]])
def test_a_conversation_is_shown_as_text_with_its_special_tokens(run, view):
    text = "<|start|>user<|message|>What is 2 + 2?<|end|>"
    text += "<|start|>assistant<|channel|>final<|message|>4<|end|><|start|>assistant\n"
    assert run("render", CONVERSATION.to_json(), *view) == (0, text, "")


@pytest.mark.parametrize("profile", ["openai-0.0.8", "oss-0.0.11", "guide"])
def test_a_conversation_is_shown_as_the_tokens_of_its_profile(run, profile):
    status, out, _ = run("render", CONVERSATION.to_json(), "--tokens", "--profile", profile)
    tokens = Renderer(profile=profile).render_conversation_for_completion(CONVERSATION, "assistant")
    assert (status, json.loads(out)) == (0, tokens)


def test_a_conversation_for_training_ends_with_return(run):
    _, out, _ = run("render", CONVERSATION.to_json(), "--for", "training")
    assert out.endswith("4<|return|>\n")


def test_a_list_of_messages_will_do(run):
    _, out, _ = run("render", json.dumps([QUESTION.to_dict()]))
    assert out == "<|start|>user<|message|>What is 2 + 2?<|end|><|start|>assistant\n"


def test_a_conversation_is_read_from_standard_input():
    command = [sys.executable, "-m", "harmony_stream", "render", "-"]
    given = CONVERSATION.to_json().encode()
    done = subprocess.run(command, input=given, capture_output=True, check=True)
    assert done.stdout.startswith(b"<|start|>user<|message|>What is 2 + 2?")


ENVELOPES = [
    WEATHER,
    [WEATHER],
    [{"type": "function", "function": WEATHER}],
    [{"type": "function", **WEATHER}],
]


@pytest.mark.parametrize("tools", ENVELOPES)
def test_tools_are_shown_as_typescript_out_of_any_envelope(run, tools):
    status, out, _ = run("tools", json.dumps(tools), "--profile", "guide")
    assert (status, out.splitlines()[6:9]) == (
        0,
        ["// Gets the weather.", "type get_weather = (_: {", "unit?: string | null,"],
    )


def test_a_tool_that_says_null_of_itself_says_nothing(run):
    silent = {"name": "now", "description": None, "parameters": None}
    status, out, _ = run("tools", json.dumps([silent]))
    assert (status, out.splitlines()[6:8]) == (0, ["type now = () => any;", ""])


def test_tools_are_shown_as_the_wheel_writes_them_unless_told_otherwise(run):
    _, out, _ = run("tools", json.dumps([WEATHER]))
    assert "unit?: any," in out


FORGED = Message.from_role_and_content(
    "developer",
    DeveloperContent.new().with_function_tools([ToolDescription.new("a b", "")]),
)
RESULT_ON_FINAL = {"role": "tool", "name": "functions.f", "content": "2", "channel": "final"}
TOOLS = Message.from_role_and_content("developer", DeveloperContent.new())
REFUSED = [
    ("render", "{\n[", "FILE:2: not JSON: Expecting property name enclosed in double quotes"),
    ("render", b'"\n\xff"', "FILE:2: not UTF-8: invalid start byte"),
    ("render", "[" * 100_000, "FILE: JSON nested too deeply: more than 128 levels"),
    ("render", "3", "FILE: not a conversation"),
    ("render", "[200006, 1428]", "FILE: not a conversation but token ids: replay them"),
    ("render", '[{"role": "pirate", "content": ""}]', "pirate"),
    (
        "render",
        '[{"role": "assistant", "content": "", "channel": "a b"}]',
        "FILE: message 0: channel 'a b'",
    ),
    (
        "tools",
        json.dumps([WEATHER, {**WEATHER, "name": "f = () => any;\n\n} // namespace functions"}]),
        "FILE: tools[1].name 'f = () => any;\\n\\n} // namespace functions' is not a name",
    ),
    (
        "render",
        json.dumps([FORGED.to_dict()]),
        "FILE: message 0: tools[0].name 'a b' is not a name that a call can have; names are made",
    ),
    ("render", json.dumps([RESULT_ON_FINAL]), "FILE: message 0: channel 'final' would be read"),
    (
        "render",
        json.dumps([{"role": "user", "content": "a", "tool_calls": []}]),
        "FILE: messages[0].tool_calls is not a field that a prompt can hold; leave it out, or make",
    ),
    (
        "render",
        json.dumps(
            [{"role": "developer", "content": [{"type": "developer_content", "instruction": "a"}]}]
        ),
        "FILE: messages[0].content[0].instruction is not a field that a prompt can hold",
    ),
    (
        "render",
        json.dumps(
            [
                {
                    **TOOLS.to_dict(),
                    "content": [
                        {
                            **TOOLS.to_dict()["content"][0],
                            "tools": {
                                "functions": {
                                    "name": "functions",
                                    "tools": [{"name": "f", "description": "", "parametrs": {}}],
                                }
                            },
                        }
                    ],
                }
            ]
        ),
        "FILE: messages[0].content[0].tools['functions'].tools[0].parametrs is not a field",
    ),
    (
        "tools",
        json.dumps([{"name": "f", "parametrs": {}}]),
        "FILE: tool 0: no field for 'parametrs'; a tool has name, description and parameters",
    ),
    (
        "tools",
        '[{"type": "web_search"}]',
        "FILE: tool 0: type 'web_search' is not a function; only",
    ),
    (
        "tools",
        '[{"name": "f"}, {"name": "f"}]',
        "FILE: tool 1: the name 'f' is not unique; give another",
    ),
    ("tools", "[3]", "FILE: tool 0: expected an object with a name, found 3"),
    ("tools", "[{}]", "FILE: tool 0: ToolDescription.name is missing"),
]


@pytest.mark.parametrize(("command", "content", "reason"), REFUSED)
def test_what_cannot_be_used_is_told_in_one_line(run, command, content, reason):
    status, out, err = run(command, content)
    assert (status, out) == (2, "")
    assert err.startswith("harmony-stream: FILE")
    assert reason in err
    assert err.count("\n") == 1


def test_a_reference_that_leads_nowhere_names_the_tool(run):
    tool = {**WEATHER, "parameters": {"type": "object", "properties": {"x": {"$ref": "#/no"}}}}
    status, _, err = run("tools", json.dumps([tool]), "--profile", "guide")
    assert status == 2
    assert "get_weather" in err
    assert "#/no" in err


def test_a_file_that_is_not_there_is_told_in_one_line(capsys):
    assert cli.main(["tools", "/nowhere/schemas.json"]) == 2
    assert capsys.readouterr().err == (
        "harmony-stream: /nowhere/schemas.json: No such file or directory\n"
    )


def test_the_example_of_a_conversation_declares_the_tools_of_the_example_of_schemas(capsys):
    prompts = Path(__file__).parent.parent / "examples" / "prompts"
    assert cli.main(["render", str(prompts / "conversation.json")]) == 0
    prompt = capsys.readouterr().out
    assert cli.main(["tools", str(prompts / "schemas.json")]) == 0
    assert capsys.readouterr().out.strip() in prompt
