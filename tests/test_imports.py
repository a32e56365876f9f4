"""Which part of the library may know which other: imports go one way."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import harmony_stream

FOLDER = Path(harmony_stream.__file__).parent

# From the bottom up: a room may import from its own floor and from those below. Rooms of one
# floor that must not know each other are named in STRANGERS.
FLOORS = [
    ["errors", "files", "nesting", "records", "support"],
    ["vocabulary"],
    ["header", "messages", "tools"],
    ["parsing", "rendering"],
    ["history", "transcript", "transcript_calls", "transcript_files"],
    ["familiar"],
    ["encoding"],
    ["streamable"],
    ["grammar", "adapters"],
    ["logs"],
    ["inspector", "serving"],
    ["commands", "cli"],
    ["__main__"],
]
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
STRANGERS = {("parsing", "rendering"), ("rendering", "parsing")}
# The root gathers the names of the rooms; nobody may get them from there.
ROOT = "__init__"

MODULES = sorted(FOLDER.rglob("*.py"))


def room_of(module):
    return module.relative_to(FOLDER).parts[0].removesuffix(".py")


def rooms_imported_by(tree):
    """The rooms that a module imports when it runs, and those it only imports for types."""
    guarded = {
        id(node)
        for check in ast.walk(tree)
        if isinstance(check, ast.If) and ast.unparse(check.test) == "TYPE_CHECKING"
        for body in check.body
        for node in ast.walk(body)
    }
    for node in ast.walk(tree):
        if id(node) not in guarded:
            yield from rooms_in(node)


def rooms_in(node):
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative imports hide where they lead"
        names = [node.module or ""]
        if node.module == "harmony_stream":
            names = [f"harmony_stream.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        names = []
    for name in names:
        first, *rest = name.split(".")
        if first == "harmony_stream":
            yield rest[0] if rest else ROOT


@pytest.mark.parametrize("module", MODULES, ids=[str(m.relative_to(FOLDER)) for m in MODULES])
def test_a_room_imports_only_what_lies_below_it(module):
    room = room_of(module)
    imported = set(rooms_imported_by(ast.parse(module.read_text(encoding="utf-8"))))
    if room == ROOT:
        return
    assert room in FLOOR_OF, "a new room needs its place in FLOORS"
    above = {other for other in imported - {room} if FLOOR_OF.get(other, 99) > FLOOR_OF[room]}
    assert above == set()
    assert {(room, other) for other in imported} & STRANGERS == set()


def test_the_rooms_are_told_apart_by_the_imports_of_a_module():
    source = (
        "import harmony_stream.header\n"
        "from harmony_stream import vocabulary\n"
        "from harmony_stream.parsing.events import Event\n"
        "if TYPE_CHECKING:\n    from harmony_stream.cli import main\n"
        "def late():\n    from harmony_stream.rendering import render\n"
        "import json, attrs\n"
    )
    rooms = set(rooms_imported_by(ast.parse(source)))
    assert rooms == {"header", "vocabulary", "parsing", "rendering"}


def modules_after(code):
    script = f"{code}\nimport sys; print(*sorted(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return set(result.stdout.split())


HEAVY = {
    *("tiktoken", "regex", "requests", "urllib3", "pydantic", "rich", "pyarrow", "numpy"),
    *("fastapi", "starlette", "uvicorn", "http.server", "openai_harmony", "asyncio"),
}


def test_importing_the_library_loads_nothing_heavy():
    modules = modules_after("import harmony_stream")
    assert "harmony_stream.parsing.parser" in modules
    assert modules & HEAVY == set()
    rooms = {name.split(".")[1] for name in modules if name.startswith("harmony_stream.")}
    assert rooms & {"adapters", "logs", "grammar", "inspector", "cli", "commands"} == set()


def test_parsing_a_completion_loads_nothing_heavy():
    modules = modules_after(
        "import harmony_stream\n"
        "completion = harmony_stream.parse([200005, 17196, 200008, 13225, 200002])\n"
        "assert completion.final_text == 'Hello'"
    )
    assert modules & HEAVY == set()
    assert not any(name.startswith("harmony_stream.rendering") for name in modules)
