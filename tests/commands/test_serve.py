"""`harmony-stream serve`, and the example that stands on the same room."""

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import openai
import pytest
import uvicorn
from backend_harness import ANSWER, LONG, PATIENCE, asked, ids, running

from harmony_stream.adapters import Problem
from harmony_stream.commands import serve
from harmony_stream.commands.inputs import CommandError
from harmony_stream.logs import LogError, MissingExtraError

ROOT = Path(__file__).parent.parent.parent
BACKEND = ROOT / "examples" / "backend"
QUESTION = [{"role": "user", "content": "When is high tide?"}]


def arguments(*words):
    parser = argparse.ArgumentParser()
    serve.add_parser(parser.add_subparsers())
    return parser.parse_args(["serve", *map(str, words)])


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "tides.json"
    path.write_text(json.dumps(ids(ANSWER)))
    return path


@pytest.fixture
def served(monkeypatch):
    """What would be served: uvicorn's configuration and where it listens."""
    found = []

    def run(server, sockets):
        found.append((server.config, sockets[0].getsockname()))

    monkeypatch.setattr(uvicorn.Server, "run", run)
    return found


# -- In this process --


def test_the_command_listens_and_says_where(log, served, capsys):
    assert serve.run(arguments(log, "--port", 0)) == 0
    [(config, (host, port))] = served
    assert (host, config.ws, config.access_log) == ("127.0.0.1", "none", False)
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "models: gpt-oss-20b, tides",
        f"http://127.0.0.1:{port}/ shows the logs; http://127.0.0.1:{port}/v1 serves them",
    ]
    assert said.err == ""


def test_what_it_serves_answers_and_each_replay_is_told(log, served, monkeypatch, capsys):
    log.write_text(json.dumps(ids("<|channel|>odd<|message|>x<|end|>" + ANSWER.strip())))
    serve.run(arguments(log, "--port", 0, "--model", "mine", "--speed", 1000))
    monkeypatch.undo()
    with (
        running(served[0][0].app) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="any", timeout=PATIENCE) as client,
    ):
        client.responses.create(model="mine", input="?")
    said = capsys.readouterr()
    assert re.search(r"^mine, turn 1: \d+ tokens$", said.out, re.MULTILINE)
    assert "harmony-stream: " in said.err
    assert "odd" in said.err


SECRET = "<|channel|>analysis we should look<|message|>The table hides it.<|end|>"


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content", "both", "none"])
def test_the_key_of_reasoning_can_be_chosen_and_none_hides_it_everywhere(log, served, capsys, key):
    log.write_text(json.dumps(ids(SECRET + "<|start|>assistant" + ANSWER)))
    serve.run(arguments(log, "--port", 0, "--reasoning-key", key))
    app, body = served[0][0].app, {"model": "tides", "messages": QUESTION, "input": QUESTION}
    _, chat = asked(app, "POST", "/v1/chat/completions", body)
    others = [asked(app, "POST", "/v1/responses", body)[1], asked(app, "GET", "/events")[1]]
    message = json.loads(chat)["choices"][0]["message"]
    keys = {"both": {"reasoning", "reasoning_content"}, "none": set()}.get(key, {key})
    assert {"reasoning", "reasoning_content"} & set(message) == keys

    said = "".join(capsys.readouterr())
    everything = b"".join(others).decode() + said
    assert ("should" in said) == ("table" in everything) == (key != "none")
    if key == "none":
        assert "harmony-stream: unparsed_header_text at position " in said
        assert not re.search("should|look|hides", everything)


@pytest.mark.parametrize("tell", [serve._tell, serve._tell_problem, serve._tell_kind_of_problem])
def test_output_that_nobody_reads_does_not_stop_the_server(monkeypatch, tell):
    def closed(*_, **__):
        raise BrokenPipeError

    monkeypatch.setattr("builtins.print", closed)
    tell(Problem("hidden_call", "a call", 3, 9))


def test_names_of_files_cannot_colour_the_terminal(log, served, capsys):
    path = log.with_name("a\x1b[31m.json")
    log.rename(path)
    serve.run(arguments(path, "--port", 0))
    assert capsys.readouterr().out.startswith("models: gpt-oss-20b, a\\x1b[31m\n")


def test_a_log_may_come_from_standard_input(served, capsys):
    serve_stdin(json.dumps(ids(ANSWER)), "-", "--port", 0)
    assert capsys.readouterr().out.startswith("models: gpt-oss-20b, stdin\n")
    body = {"model": "stdin", "messages": QUESTION}
    _, answer = asked(served[0][0].app, "POST", "/v1/chat/completions", body)
    assert json.loads(answer)["choices"][0]["message"]["content"] == "High tide is at noon."


def test_standard_input_stands_beside_files_and_is_named_where_it_cannot_be_read(
    log, capsys, served
):
    serve_stdin("[200005]\nno log", log, "-", "--port", 0, "--model", "stdin")
    said = capsys.readouterr()
    assert said.out.startswith("models: stdin, tides, stdin-2\n")
    assert "<stdin>: line 2: " in said.err
    with pytest.raises(CommandError, match="nothing to serve"):
        serve_stdin("", "-")


def serve_stdin(text, *words):
    """Runs the command with this text as standard input."""
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        before = os.dup(0)
        try:
            os.dup2(file.fileno(), 0)
            assert serve.run(arguments(*words)) == 0
        finally:
            os.dup2(before, 0)
            os.close(before)


def test_a_recording_that_is_not_served_as_a_whole_is_reported(log, served, capsys):
    log.write_text(json.dumps(ids(f"{ANSWER}Lost<|start|>user<|message|>?<|end|>")))
    serve.run(arguments(log, "--port", 0))
    complaint = capsys.readouterr().err
    assert complaint.startswith(f"harmony-stream: {log}: ")
    assert complaint.endswith("is not in a turn: it is never served\n")


def test_an_address_of_ipv6_is_written_in_brackets(log, served, capsys):
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    serve.run(arguments(log, "--port", 0, "--host", "::1"))
    assert "http://[::1]:" in capsys.readouterr().out


def test_a_port_that_is_taken_is_a_sentence(log):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=f"cannot listen on 127.0.0.1, port {port}: "):
            serve.run(arguments(log, "--port", port))


def test_a_host_that_is_not_here_is_a_sentence(log):
    with pytest.raises(CommandError, match=r"cannot listen on 192\.0\.2\.1, port 8000: "):
        serve.run(arguments(log, "--host", "192.0.2.1"))


def test_what_is_no_name_of_a_host_is_a_sentence(log):
    with pytest.raises(CommandError, match=r"cannot listen on é\.\.b, port 8000: "):
        serve.run(arguments(log, "--host", "é..b"))


def test_a_log_that_cannot_be_read_is_a_sentence(tmp_path):
    with pytest.raises(LogError, match=r"none\.json: No such file"):
        serve.run(arguments(tmp_path / "none.json"))


def test_logs_without_completions_are_a_sentence(tmp_path, capsys):
    path = tmp_path / "empty.jsonl"
    path.write_text('{"token_ids": [-1]}')
    with pytest.raises(CommandError, match="nothing to serve"):
        serve.run(arguments(path))
    assert "empty.jsonl: line 1: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--port", "65536"], "65536 is not a number from 0 to 65535"),
        (["--port", "high"], "invalid port value"),
        (["--speed", "0"], "0 is not a number of tokens per second, at least 0.001"),
        (["--speed", "inf"], "inf is not a number of tokens per second"),
        (["--speed", "nan"], "nan is not a number of tokens per second"),
        (["--host", ""], "argument --host: it is empty"),
        (["--model", " "], "argument --model: it is empty"),
        (["--reasoning-key", "thinking"], "argument --reasoning-key: invalid choice"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(words, complaint, capsys):
    with pytest.raises(SystemExit):
        arguments("log", *words)
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_the_extra_is_named_if_it_is_not_installed(log, served, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError) as caught:
        serve.run(arguments(log, "--port", 0))
    assert (caught.value.module, caught.value.extra) == (missing, "serve")


def test_the_command_loads_the_extra_only_when_it_runs():
    code = (
        "import sys, harmony_stream.commands.serve; "
        "print({'starlette', 'uvicorn', 'harmony_stream.serving'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "set()\n"


# -- As processes --

RUN = (
    "import sys; from harmony_stream import cli; from harmony_stream.commands import serve; "
    "cli._COMMANDS = (serve,); sys.exit(cli.main())"
)


@contextmanager
def process(*command):
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env=environment,
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def test_ctrl_c_ends_the_server_while_streams_are_open(log):
    log.write_text(json.dumps(ids(LONG)))
    with process("-c", RUN, "serve", log, "--port", 0, "--speed", 20) as server:
        server.stdout.readline()
        url = re.search("http://[0-9.:]+/v1", server.stdout.readline())[0]
        with openai.OpenAI(base_url=url, api_key="any", timeout=PATIENCE) as client:
            next(iter(client.responses.create(model="tides", input="?", stream=True)))
            server.send_signal(signal.SIGINT)
            assert server.wait(PATIENCE) == 130
        assert re.fullmatch(r"tides, turn 1: \d+ of \d+ tokens\n", server.stdout.read())


def test_the_example_of_a_client_has_its_tool_called_by_the_example_of_a_server():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with process("-W", "error", BACKEND / "server.py", port) as server:
        for line in server.stdout:
            if "running on" in line:
                break
        client = [sys.executable, BACKEND / "client.py", f"http://127.0.0.1:{port}/v1"]
        done = subprocess.run(client, capture_output=True, encoding="utf-8", timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    call, answer = done.stdout.splitlines()
    assert call == 'get_gauge({"station": "Cologne"})'
    assert answer
