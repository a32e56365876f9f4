"""`harmony-stream serve`: serves token logs to clients of OpenAI's APIs."""

from __future__ import annotations

import argparse
import socket
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from harmony_stream.commands.arguments import LOG_HELP, port, speed, word
from harmony_stream.commands.exit_status import ExitStatus
from harmony_stream.commands.inputs import CommandError, source_of
from harmony_stream.commands.terminal import complain, visible
from harmony_stream.support.extras import MissingExtraError

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from harmony_stream.adapters import Problem

_SERVE = """\
Serve token logs as if a model answered: /v1/chat/completions and /v1/responses, streaming and not,
/v1/models, the parser's events at /events, and at / a page that shows them.
"""
_NOTES = """\
examples:
  harmony-stream serve examples/two_plus_two.json --speed 30
  harmony-stream serve call.jsonl answer.jsonl --port 0

The model gpt-oss-20b (--model) answers the first turn of a conversation with the first completion
of the logs, the next turn with the next one: send the results of tools, and the next log continues.
Each log is a model as well, by the name of its file (stdin for -), and each of its completions:
batch:2. Of a full stream, which begins with <|start|>, the assistant's turns are served. A stop
token (<|return|>, <|call|>, <|endoftext|>) ends a completion; what the assistant says after it is
the next one.

exit status: 2 for logs or an address that cannot be used; 130 after Ctrl-C.
"""
_EXTRA = ("starlette", "uvicorn")
_PENDING_CONNECTIONS = 2048


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = commands.add_parser(
        "serve",
        help="serve token logs to clients of OpenAI's APIs",
        description=_SERVE,
        epilog=_NOTES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("logs", metavar="LOG", nargs="+", help=LOG_HELP)
    parser.add_argument(
        "--host", type=word, default="127.0.0.1", help="address (default: 127.0.0.1)"
    )
    parser.add_argument(
        "--port", type=port, default=8000, help="port (default: 8000; 0 picks a free one)"
    )
    parser.add_argument(
        "--speed",
        type=speed,
        metavar="TOKENS_PER_SECOND",
        help="tokens per second (default: as fast as the client reads)",
    )
    parser.add_argument(
        "--model",
        type=word,
        default="gpt-oss-20b",
        help="name of all logs together (default: gpt-oss-20b)",
    )
    parser.add_argument(
        "--reasoning-key",
        choices=("reasoning", "reasoning_content", "both", "none"),
        default="reasoning",
        help="key of reasoning in Chat Completions (default: reasoning); "
        "'none' hides reasoning at each address, and in the reports of this command",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    for module in _EXTRA:
        _need(module)
    from harmony_stream.serving import make_server

    server = make_server(_app(arguments))
    with _listen(arguments.host, arguments.port) as listening:
        host, port = listening.getsockname()[:2]
        address = f"[{host}]" if ":" in host else host
        _tell(f"http://{address}:{port}/ shows the logs; http://{address}:{port}/v1 serves them")
        server.run(sockets=[listening])
    return ExitStatus.OK


def _need(module: str) -> None:
    try:
        import_module(module)
    except ImportError as error:
        raise MissingExtraError(module, "serve") from error


def _app(arguments: argparse.Namespace) -> Starlette:
    from harmony_stream import serving

    sources = map(source_of, arguments.logs)
    try:
        recordings = serving.load_recordings(sources, name=arguments.model, report=complain)
    except ValueError as error:
        raise CommandError(str(error)) from error
    _tell(f"models: {', '.join(recordings)}")
    engine = serving.RecordedEngine(recordings, speed=arguments.speed, on_end=_tell)
    key = None if arguments.reasoning_key == "none" else arguments.reasoning_key
    report = _tell_problem if key else _tell_kind_of_problem
    return serving.create_app(engine, serving.Settings(reasoning_key=key, on_problem=report))


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        host.encode("idna")  # create_server leaves its socket open if the name is not valid
        return socket.create_server((host, port), family=family, backlog=_PENDING_CONNECTIONS)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", error)
        raise CommandError(f"cannot listen on {host}, port {port}: {reason}") from error


def _tell(news: object) -> None:
    with suppress(OSError):  # nobody has to read the news
        print(visible(str(news)), flush=True)


def _tell_problem(problem: Problem) -> None:
    complain(problem.message)


def _tell_kind_of_problem(problem: Problem) -> None:
    """Leave out its sentence, which may quote reasoning."""
    complain(f"{problem.kind} at position {problem.start}")
