"""Draw the state table: a diagram for README.md, and the whole table as docs/state_table.md.

    python scripts/make_state_diagram.py [--check]

With `--check` nothing is written; the exit status is 1 if a file does not show today's table.
"""

from __future__ import annotations

import argparse
import inspect
import pathlib
import sys
from collections import defaultdict

from harmony_stream.parsing.states import TABLE, Cell, State, TokenKind
from harmony_stream.values.role_rules import ROLE_RULES

ROOT = pathlib.Path(__file__).parent.parent
BEGIN = "<!-- state diagram: made by scripts/make_state_diagram.py -->"
END = "<!-- end of state diagram -->"


def diagram() -> str:
    """The moves that are no fault, as a Mermaid diagram; faults are in the table."""
    moves: dict[tuple[State, State], list[str]] = defaultdict(list)
    for state, row in TABLE.items():
        for kind, cell in row.items():
            if cell.fault is None and kind is not TokenKind.END_OF_STREAM:
                moves[state, cell.next].append(_label(kind))
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> EXPECT_START: a full stream"]
    lines.append("    [*] --> ROLE: a completion")
    for (state, after), labels in moves.items():
        lines.append(f"    {state} --> {after}: {', '.join(labels)}")
    return "\n".join([*lines, "```"])


def _label(kind: TokenKind) -> str:
    # Mermaid takes "<|" and "|>" for the ends of shapes.
    return kind.value.strip("<|>")


def table() -> str:
    """The whole table, one row for each cell."""
    lines = [
        "# The state table",
        "",
        "Made from `harmony_stream/parsing/states.py` by `scripts/make_state_diagram.py`.",
        "A fault becomes a `Malformed` event, and in strict mode an error; the action is taken",
        "in both modes.",
        "",
        "| state | token | action | next state | fault | unless | then |",
        "|---|---|---|---|---|---|---|",
    ]
    for state, row in TABLE.items():
        for kind, cell in row.items():
            words = [state, _code(kind), *_what(cell), *_exception(cell)]
            lines.append(f"| {' | '.join(words)} |")
    return "\n".join([*lines, *_roles()]) + "\n"


def _what(cell: Cell) -> list[str]:
    return [cell.action, cell.next, f"`{cell.fault}`" if cell.fault else ""]


def _exception(cell: Cell) -> list[str]:
    if cell.unless is None:
        return ["", ""]
    action, after, _ = _what(cell.unless.cell)
    return [_escaped(cell.unless.condition), f"{action}, {after}"]


def _roles() -> list[str]:
    """The rules by which a header says who writes."""
    lines = [
        "",
        "## Who writes a message",
        "",
        "Made from `ROLE_RULES` of `harmony_stream/values/role_rules.py`. The first row that fits",
        "counts; the rows after a prompt are for headers whose role the prompt gave.",
        "",
        "| opened by | the header says | for example | fault | format guide |",
        "|---|---|---|---|---|",
    ]
    for rule in ROLE_RULES:
        opened = "`<\\|start\\|>`" if rule.spells_role else "the prompt"
        words = inspect.getdoc(rule.reads) or ""
        fault = f"`{rule.fault}`" if rule.fault else ""
        cells = [opened, _escaped(words.splitlines()[0]), _code(rule.example), fault]
        lines.append(f"| {' | '.join([*cells, rule.guide])} |")
    return lines


def _code(text: str) -> str:
    return f"`{_escaped(text)}`" if "<" in text else text


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def readme_with_diagram(text: str) -> str:
    """The README with today's diagram between its marks."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{diagram()}\n{END}{after}"


def main() -> int:
    """Write both files, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, tell by the status")
    check = parser.parse_args().check
    readme = ROOT / "README.md"
    wanted = {
        readme: readme_with_diagram(readme.read_text("utf-8")),
        ROOT / "docs" / "state_table.md": table(),
    }
    stale = [path for path, text in wanted.items() if _read(path) != text]
    for path in stale:
        print(f"{'stale' if check else 'written'}: {path.relative_to(ROOT)}")
        if not check:
            path.write_text(wanted[path], "utf-8")
    return 1 if check and stale else 0


def _read(path: pathlib.Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
