"""Which part of the library may know which other: imports go one way."""

import re
import runpy
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import harmony_stream

FOLDER = Path(harmony_stream.__file__).parent

HOUSE = runpy.run_path(str(Path(__file__).parents[1] / "scripts" / "make_house_diagram.py"))
imports_of, room_of, rooms_imported_by = (
    HOUSE[name] for name in ("imports_of", "room_of", "rooms_imported_by")
)
FLOORS = HOUSE["FLOORS"]
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
# The root gathers the names of the rooms; nobody may get them from there.
ROOT = "__init__"

MODULES = sorted(FOLDER.rglob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=[str(m.relative_to(FOLDER)) for m in MODULES])
def test_a_room_imports_only_what_lies_below_it(module):
    room = room_of(module)
    if room == ROOT:
        return
    assert room in FLOOR_OF, "a new room needs its place in FLOORS"
    others = rooms_imported_by(module.read_text(encoding="utf-8")) - {room}
    assert {other for other in others if FLOOR_OF.get(other, 99) >= FLOOR_OF[room]} == set()


def test_each_room_of_the_floors_exists():
    assert FLOOR_OF.keys() == {room_of(module) for module in MODULES} - {ROOT}


def test_support_knows_nothing_of_harmony():
    sources = [each.read_text("utf-8") for each in MODULES if room_of(each) == "support"]
    assert set().union(*map(rooms_imported_by, sources)) - {"support"} <= {"errors"}


def file_of(name):
    """The file of a module; None for a name in one, and for a package, which hands names on."""
    path = FOLDER.parent / Path(*name.split(".")).with_suffix(".py")
    return path if path in MODULES else None


def test_no_files_import_each_other_in_a_circle():
    imported = {
        module: {file_of(name) for name in imports_of(module.read_text("utf-8"))}
        for module in MODULES
        if module.name != "__init__.py"
    }
    assert list(TopologicalSorter(imported).static_order())  # raises CycleError


def test_the_rooms_are_told_apart_by_the_imports_of_a_module():
    source = (
        "import harmony_stream.values.header\n"
        "from harmony_stream import vocabulary\n"
        "from harmony_stream.parsing.states import State\n"
        "if TYPE_CHECKING:\n    from harmony_stream.cli import main\n"
        "def late():\n    from harmony_stream.rendering import render\n"
        "import json, attrs\n"
    )
    rooms = rooms_imported_by(source)
    assert rooms == {"values", "vocabulary", "parsing", "cli", "rendering"}


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


def test_the_page_for_contributors_shows_the_rooms_as_they_are():
    assert HOUSE["PAGE"].read_text("utf-8") == HOUSE["page"]()


def test_the_page_for_contributors_names_each_room():
    table = HOUSE["PAGE"].read_text("utf-8").partition("| room |")[2].partition("\n\n")[0]
    named = set(
        re.findall(r"`(\w+)`", "\n".join(row.split("|")[1] for row in table.split("\n")[2:]))
    )
    assert named == FLOOR_OF.keys() - {"__main__"}
