"""Draw the rooms of the library and which of them import which, for CONTRIBUTING.md.

    python scripts/make_house_diagram.py [--check]

`FLOORS` below is the rule; tests/test_imports.py holds each module to it. The arrows are measured.
With `--check` nothing is written; the exit status is 1 if the page does not show today's rooms.
"""

from __future__ import annotations

import argparse
import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "harmony_stream"
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN = "<!-- rooms: made by scripts/make_house_diagram.py -->"
END = "<!-- end of rooms -->"

# From the bottom up: a room imports only floors below its own, and rooms of one floor do not know
# each other. Imports for types only count as well.
FLOORS = [
    ["errors"],
    ["support"],
    ["values", "vocabulary"],
    ["parsing", "rendering", "adapters"],
    ["history", "drop_in", "logs"],
    ["serving"],
    ["commands"],
    ["cli"],
    ["__main__"],
]


def room_of(module: Path) -> str:
    """The folder, or the file, at the top of the package."""
    return module.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(source: str) -> Iterator[str]:
    """What a module imports, by dotted name: modules, and names that may be modules."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where they lead"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def rooms_imported_by(source: str) -> set[str]:
    """The rooms that a module imports from."""
    names = [name.split(".") for name in imports_of(source)]
    return {name[1] for name in names if name[0] == "harmony_stream" and len(name) > 1}


def diagram() -> str:
    """The floors, the highest first, and the arrows that no way over other rooms says already."""
    lines = ["```mermaid", "flowchart TB"]
    for number, rooms in reversed(list(enumerate(FLOORS[:-1]))):
        inside = [f"        {room}" for room in rooms]
        lines += [f"    subgraph floor{number}[ ]", *inside, "    end"]
    arrows = _arrows()
    implied = {(a, c) for a, b in arrows for other, c in arrows if b == other}
    lines += [f"    {room} --> {other}" for room, other in sorted(arrows - implied)]
    return "\n".join([*lines, "```"])


def _arrows() -> set[tuple[str, str]]:
    known = {room for rooms in FLOORS[:-1] for room in rooms}
    return {
        (room_of(module), other)
        for module in PACKAGE.rglob("*.py")
        for other in rooms_imported_by(module.read_text("utf-8")) & known
        if room_of(module) in known - {other}
    }


def page() -> str:
    """CONTRIBUTING.md with today's diagram."""
    text = PAGE.read_text("utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    return f"{before}{BEGIN}\n\n{diagram()}\n\n{END}{after}"


def main() -> int:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; status 1 if it differs"
    )
    found = page()
    if parser.parse_args().check:
        return int(PAGE.read_text("utf-8") != found)
    PAGE.write_text(found, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
