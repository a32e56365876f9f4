"""Change the parser in small ways, and list the changes that no test notices.

    python scripts/mutants.py --sample 300 --seed 1 --log mutants.jsonl

A mutant is a module with one expression or statement changed. The tests run on it, in a copy of the
checkout, until one fails. A mutant that passes all of them survives: either it does the same as the
original, or a test is missing. That takes hours, so CI does not run it. `--again LOG` tries only
those that an earlier run has not killed.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
HISTORY = "harmony_stream/history/"
MODULES = [
    *("harmony_stream/values/header.py", "harmony_stream/values/read_header.py"),
    *("harmony_stream/values/header_words.py", "harmony_stream/values/role_rules.py"),
    "harmony_stream/values/fold.py",
    *(f"{HISTORY}policy.py", f"{HISTORY}normalize.py", "harmony_stream/parsing"),
]
# Those that kill most for their time come first.
TESTS_OF_HISTORY = [
    *("history/test_policy", "history/test_normalize", "history/test_history"),
    *("history/test_agent_session", "history/test_files", "history/test_transcript"),
]
TESTS = [
    *("values/test_read_header", "values/test_header", "rendering/test_sections"),
    *("values/test_role_rules", "values/test_header_words", "values/test_fold"),
    *("parsing/test_machine", "parsing/test_header_buffer", "parsing/test_utf8_buffer"),
    *("parsing/test_items", "parsing/test_malformed"),
    *("parsing/test_header_tokens", "values/test_events", "parsing/test_marked_text"),
    *("parsing/test_collect", "test_parse_cases", "parsing/test_states", "parsing/test_parser"),
    *("test_rare_inputs", "test_laws", "drop_in/test_streamable"),
]
# What tests import and no mutant changes is imported once.
PRELOADED = ["hypothesis.strategies", "openai_harmony", "pyarrow", "pydantic", "pytest"]
KEPT = [
    f"harmony_stream.{name}"
    for name in (
        *("errors", "support.value", "support.value_dump", "support.value_kinds"),
        *("vocabulary", "values.messages", "values.tools"),
    )
]

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr},
    **{ast.Continue: ast.Break, ast.Break: ast.Continue},
}
UNCHANGED = ("annotation", "returns", "decorator_list", "bases")
PART_OF_PATTERN = re.compile(r"\\u....|\\x..|\\.|.", re.DOTALL)


class Mutant(NamedTuple):
    """One change: which node of a module's tree, whose it is, and what takes its place."""

    module: str
    tree: ast.Module
    parent: ast.AST
    name: str
    at: int
    old: ast.AST
    new: ast.AST

    def put(self, node: ast.AST) -> None:
        """Put a node in the place."""
        if isinstance(among := getattr(self.parent, self.name), list):
            among[self.at] = node
        else:
            setattr(self.parent, self.name, node)

    def source(self) -> str:
        """The module with the change."""
        self.put(self.new)
        source = ast.unparse(ast.fix_missing_locations(self.tree))
        self.put(self.old)
        return source

    def words(self) -> list[str]:
        """Where, from what, and to what."""
        line = getattr(self.old, "lineno", getattr(self.parent, "lineno", 0))
        shown = [ast.unparse(self.old), ast.unparse(self.new)]
        if isinstance(self.old, ast.operator | ast.cmpop | ast.boolop):
            shown = [ast.unparse(self.parent), type(self.new).__name__]
        return [f"{self.module}:{line}", *shown]


def mutants_of(module: str) -> Iterator[Mutant]:
    """All mutants of a module, in the order of its lines."""
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    for parent, name, index, child in list(_places(tree)):
        for new in _changes(child):
            yield Mutant(module, tree, parent, name, index, child, new)


def _places(node: ast.AST) -> Iterator[tuple[ast.AST, str, int, ast.AST]]:
    """Each node below another: whose it is, in which field, which one of its list, and the node."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    for name, value in ast.iter_fields(node):
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if isinstance(child, ast.AST) and not is_docstring and name not in UNCHANGED:
                yield node, name, index, child
                yield from _places(child)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the place of a node."""
    if type(node) in SWAPS:
        yield SWAPS[type(node)]()
    match node:
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() as value):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.Constant(str() as value) if value:
            parts = PART_OF_PATTERN.findall(value)
            for at in range(len(parts) if "[" in value else 1):
                yield ast.Constant("".join(parts[:at] + parts[at + 1 :]))
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.BoolOp(values=values):
            yield from values
        case ast.IfExp(body=body, orelse=orelse):
            yield from (body, orelse)
        case ast.Tuple(elts=found, ctx=ast.Load()) | ast.List(elts=found, ctx=ast.Load()):
            for at in range(len(found)):
                yield type(node)(found[:at] + found[at + 1 :], ast.Load())
        case ast.Dict(keys=keys, values=values):
            for at in range(len(keys)):
                yield ast.Dict(keys[:at] + keys[at + 1 :], values[:at] + values[at + 1 :])
        case ast.Call(func=function, args=arguments, keywords=keywords):
            for at in range(len(keywords)):
                yield ast.Call(function, arguments, keywords[:at] + keywords[at + 1 :])
        case ast.comprehension(target=target, iter=source, ifs=[_, *_], is_async=is_async):
            yield ast.comprehension(target, source, [], is_async)
        case ast.Slice(lower=lower, upper=upper) if lower or upper:
            yield from (
                ast.Slice(*each) for each in {(None, upper), (lower, None)} - {(lower, upper)}
            )
        case ast.If(body=body, orelse=orelse):
            yield from (ast.If(ast.Constant(each), body, orelse) for each in (True, False))
        case ast.Return(value=ast.expr()):
            yield ast.Return(ast.Constant(None))
        case ast.Expr() | ast.AugAssign() | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()


# -- Trying them --


def modules_in(names: list[str]) -> list[str]:
    """The modules that are named, or in folders that are."""
    paths = [path for name in names for path in (ROOT / name, *sorted((ROOT / name).glob("*.py")))]
    return [str(path.relative_to(ROOT)) for path in paths if path.suffix == ".py"]


def make_copy() -> None:
    """Go to a copy of the checkout, and import there what does not change."""
    folder = tempfile.mkdtemp(prefix="mutants-")
    hidden = shutil.ignore_patterns(".[!c]*", "__pycache__")
    shutil.copytree(ROOT, folder, ignore=hidden, dirs_exist_ok=True)
    (Path(folder) / ".reference").symlink_to(ROOT / ".reference")  # the wheels to compare with
    os.chdir(folder)
    os.environ.update(PYTHONPATH=folder, CI="1", PYTHONDONTWRITEBYTECODE="1")
    sys.path.insert(0, folder)
    for name in (*PRELOADED, *KEPT):
        importlib.import_module(name)
    _ = sys.modules["harmony_stream.vocabulary"].Vocabulary.default().tiktoken_encoding
    for name in [name for name in sys.modules if name.startswith("harmony_stream")]:
        if name not in KEPT:
            del sys.modules[name]


def verdict(module: str, timeout: float) -> str:
    """What the tests of a module say of the copy as it is: killed, survived or timeout."""
    names = TESTS_OF_HISTORY if module.startswith(HISTORY) else TESTS
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        with open("output", "w") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        arguments = [f"tests/{name}.py" for name in names]
        arguments += ["-x", "-m", "not slow", "-p", "no:cacheprovider", "-W"]
        arguments.append("ignore::pytest.PytestAssertRewriteWarning")  # of what is preloaded
        os._exit(importlib.import_module("pytest").main(arguments))
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "killed" if status else "survived"
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modules", nargs="*", default=MODULES, help="paths of modules or folders")
    parser.add_argument("--sample", type=int, default=300, help="number of mutants (300)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (1)")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one mutant (900)")
    parser.add_argument("--log", type=Path, default="mutants.jsonl", help="where verdicts go")
    parser.add_argument("--again", type=Path, help="a log; what it has not killed is tried again")
    options = parser.parse_args()

    modules = modules_in(options.modules)
    every = [mutant for module in modules for mutant in mutants_of(module)]
    sample = random.Random(options.seed).sample(every, min(options.sample, len(every)))
    if options.again:
        earlier = map(json.loads, options.again.read_text().splitlines())
        left = [row["mutant"] for row in earlier if row["verdict"] != "killed"]
        sample = [mutant for mutant in every if mutant.words() in left]
    log = options.log.resolve()
    make_copy()
    for module in {module.startswith(HISTORY): module for module in modules}.values():
        assert verdict(module, options.timeout) == "survived", "a test fails without any change"
    counts: Counter[str] = Counter()
    for mutant in sample:
        Path(mutant.module).write_text(mutant.source(), encoding="utf-8")
        found = verdict(mutant.module, options.timeout)
        shutil.copyfile(ROOT / mutant.module, mutant.module)
        counts[found] += 1
        with log.open("a") as lines:
            lines.write(json.dumps({"verdict": found, "mutant": mutant.words()}) + "\n")
        if found != "killed":
            print(found, " | ".join(mutant.words()), flush=True)
    print(f"{len(sample)} of {len(every)} mutants: {dict(counts)}")


if __name__ == "__main__":
    main()
