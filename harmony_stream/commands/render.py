"""`harmony-stream render`: shows a conversation as the prompt that a model reads."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from harmony_stream.commands.exit_status import ExitStatus
from harmony_stream.commands.inputs import CommandError, load_json, name_of
from harmony_stream.errors import RenderError
from harmony_stream.rendering.profiles import OPENAI_0_0_8, PROFILES
from harmony_stream.rendering.render import Renderer
from harmony_stream.support.value import Value
from harmony_stream.support.value_kinds import plain_error
from harmony_stream.values.messages import Conversation, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_DESCRIPTION = """\
Show a conversation as the prompt that a model reads.

CONVERSATION.json holds {"messages": [...]} as Conversation.to_json() writes it, or the list of
messages alone.
"""
_NOTES = """\
examples:
  harmony-stream render examples/prompts/conversation.json
  harmony-stream render --profile guide --tokens examples/prompts/conversation.json
  harmony-stream render --for training examples/prompts/conversation.json

exit status: 0; 2 if the file cannot be used or the conversation cannot be rendered, and nothing is
shown.
"""
_PURPOSES: dict[str, Callable[[Renderer, Conversation], list[int]]] = {
    "completion": lambda renderer, conversation: renderer.render_conversation_for_completion(
        conversation, Role.ASSISTANT
    ),
    "training": Renderer.render_conversation_for_training,
}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    render = commands.add_parser(
        "render",
        help="show a conversation as a prompt",
        description=_DESCRIPTION,
        epilog=_NOTES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    render.add_argument(
        "file", metavar="CONVERSATION.json", help="conversation; - for standard input"
    )
    view = render.add_mutually_exclusive_group()
    view.add_argument("--tokens", action="store_true", help="token ids as a JSON array")
    view.add_argument(
        "--text", action="store_true", help="text with special tokens spelled out (default)"
    )
    add_profile(render)
    render.add_argument(
        "--for",
        dest="purpose",
        choices=_PURPOSES,
        default="completion",
        help="purpose: a completion ends with <|start|>assistant, training ends an answer with "
        "<|return|> (default: completion)",
    )
    render.set_defaults(run=run)


def add_profile(parser: argparse.ArgumentParser) -> None:
    """Declare `--profile`."""
    parser.add_argument(
        "--profile",
        choices=PROFILES,
        default=OPENAI_0_0_8.name,
        help="layout of openai-harmony, oss-harmony or the format guide "
        f"(default: {OPENAI_0_0_8.name})",
    )


def run(arguments: argparse.Namespace) -> int:
    """Render the conversation and return the exit status."""
    conversation = _conversation(arguments.file, load_json(arguments.file))
    renderer = Renderer(profile=arguments.profile)
    try:
        tokens = _PURPOSES[arguments.purpose](renderer, conversation)
    except RenderError as error:
        raise CommandError(f"{name_of(arguments.file)}: {error}") from error
    print(json.dumps(tokens) if arguments.tokens else renderer.vocabulary.decode(tokens))
    return ExitStatus.OK


def _conversation(path: str, value: Any) -> Conversation:  # noqa: ANN401
    fields = {"messages": value} if isinstance(value, list) else value
    if isinstance(value, list) and value and isinstance(value[0], int):
        raise CommandError(f"{name_of(path)}: not a conversation but token ids: replay them")
    try:
        conversation = Conversation.from_dict(fields)
    except (ValueError, TypeError, KeyError) as error:
        reason = plain_error(error) if isinstance(error, ValueError) else error
        raise CommandError(f"{name_of(path)}: not a conversation: {reason}") from error
    for place in left_out(fields["messages"], conversation.messages, "messages"):
        raise CommandError(
            f"{name_of(path)}: {place} is not a field that a prompt can hold; leave it out, or "
            "make a conversation of chat messages with conversation_from_chat"
        )
    return conversation


# A message also has the fields of its author, and a content its type.
_BESIDE_FIELDS = {"role", "name", "type"}


def left_out(given: Any, made: Any, place: str) -> Iterator[str]:  # noqa: ANN401
    """Yield the paths in JSON for which the value that was made from it has no field."""
    if isinstance(given, list) and isinstance(made, list):
        for number, pair in enumerate(zip(given, made, strict=True)):
            yield from left_out(*pair, f"{place}[{number}]")
    elif isinstance(given, dict) and isinstance(made, Value):
        fields = made.model_fields
        yield from (f"{place}.{name}" for name in given if name not in _BESIDE_FIELDS.union(fields))
        for name in given.keys() & fields:
            yield from left_out(given[name], getattr(made, name), f"{place}.{name}")
    elif isinstance(given, dict) and isinstance(made, dict):
        for name in given.keys() & made:
            yield from left_out(given[name], made[name], f"{place}[{name!r}]")
