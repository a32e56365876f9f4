"""Check that each module is covered by the test file of its own, run alone.

    python scripts/check_module_tests.py
    python scripts/check_module_tests.py --jobs 1 harmony_stream/values harmony_stream/errors.py

Tests mirror the package: `harmony_stream/values/header.py` has `tests/values/test_header.py`, run
together with the doctests of the module. They must reach each of its lines and branches without
help from other files, so that a change is tested where one looks for its test. `EXCEPTIONS` lists
the modules that do not get there, and may only shrink. The exit status is 1 if a module that is not
listed misses something, if its tests fail alone, or if a listed module needs no exception.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "harmony_stream"

# Why modules are not covered by test files of their own.
_OF_LOGS = "tests/logs has a file for each topic (formats, text, faults, commands), across modules"
_OF_COMMANDS = "tests/test_cli*.py and tests/logs/test_log_commands.py run all commands alike"
EXCEPTIONS = {
    **dict.fromkeys(
        (
            "logs/chat.py",
            "logs/columns.py",
            "logs/parts.py",
            "logs/read.py",
            "logs/readers/arrays.py",
            "logs/readers/captures.py",
            "logs/readers/json_lines.py",
            "logs/readers/json_values.py",
            "logs/readers/paths.py",
            "logs/readers/source.py",
            "logs/readers/tables.py",
            "logs/record.py",
            "logs/rows.py",
            "logs/selection.py",
            "logs/short_cut.py",
            "logs/work.py",
            "logs/write.py",
        ),
        _OF_LOGS,
    ),
    **dict.fromkeys(
        (
            "commands/check.py",
            "commands/convert.py",
            "commands/render.py",
            "commands/replay.py",
            "commands/screen.py",
            "commands/stats.py",
            "commands/tools.py",
        ),
        _OF_COMMANDS,
    ),
    **dict.fromkeys(
        (
            "rendering/typescript/as_the_wheels.py",
            "rendering/typescript/correct.py",
            "rendering/typescript/schema.py",
        ),
        "tests/rendering/typescript/test_init.py prints the same schemas with each printer",
    ),
    "serving/app.py": "each topic of serving is an address of the app over a real socket",
}


def has_code(module: Path) -> bool:
    """Return whether a module is more than a docstring, imports and `__all__`."""
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
                pass
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                pass
            case _:
                return True
    return False


def name_of(module: Path) -> str:
    """Return the name by which `EXCEPTIONS` lists a module: its path in the package."""
    return module.relative_to(PACKAGE).as_posix()


def test_file_of(module: Path) -> Path:
    """Return the path of a module's test file, by the rule."""
    inside = module.relative_to(PACKAGE)
    return ROOT / "tests" / inside.parent / f"test_{inside.stem.strip('_')}.py"


def run(module: Path, data: Path, cache: str) -> subprocess.CompletedProcess[str]:
    """Run a module's tests alone, and measure the module.

    Laws run on one example each: a line that is reached by luck is not tested. The runs share what
    they compile, also where Python is told to write no bytecode: that takes 2 s in each.
    """
    # Without the package as its source, coverage looks at one module only and imports nothing.
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={os.devnull}"]
    command += ["--branch", f"--include={module}"]
    command += ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    command += ["--hypothesis-seed=0", str(test_file_of(module)), str(module)]
    environment = {**os.environ, "COVERAGE_FILE": str(data), "HARMONY_STREAM_EXAMPLES": "1"}
    environment |= {"PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def missing_in(module: Path, data: Path) -> list[str]:
    """Return the lines and branches that a measured run did not reach."""
    report = data.with_suffix(".json")
    command = [sys.executable, "-m", "coverage", "json", "-q", "--fail-under=0"]
    command += [f"--data-file={data}", f"--include={module}", "-o", str(report)]
    subprocess.run(command, cwd=ROOT, check=True)
    [found] = json.loads(report.read_text())["files"].values()
    branches = [f"{start}->{stop}" for start, stop in found["missing_branches"]]
    return [*map(str, found["missing_lines"]), *branches]


def complaint(module: Path, cache: str) -> str:
    """Return what is wrong with a module's tests, or nothing."""
    name, file = name_of(module), test_file_of(module)
    if not file.exists():
        return "" if name in EXCEPTIONS else f"has no test file {file.relative_to(ROOT)}"
    with TemporaryDirectory() as folder:
        data = Path(folder) / "coverage"
        done = run(module, data, cache)
        if done.returncode:
            return f"tests fail when they run alone:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        missing = missing_in(module, data)
    if missing and name not in EXCEPTIONS:
        return f"{file.relative_to(ROOT)} alone does not reach {', '.join(missing)}"
    if not missing and name in EXCEPTIONS:
        return "is covered by its test file: take it off the list of exceptions"
    return ""


def modules_in(paths: list[str]) -> list[Path]:
    """Return the modules with code that are named, or in folders that are."""
    found = [module for path in paths for module in (Path(path), *Path(path).rglob("*.py"))]
    modules = dict.fromkeys(module.resolve() for module in found if module.suffix == ".py")
    return sorted(module for module in modules if has_code(module))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", default=[str(PACKAGE)], help="modules or folders (all)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (2)")
    options = parser.parse_args()

    modules = modules_in(options.paths)
    unknown = sorted(EXCEPTIONS.keys() - map(name_of, modules_in([str(PACKAGE)])))
    complaints = [f"{name}: is listed as an exception, but is not there" for name in unknown]
    with TemporaryDirectory() as cache, ThreadPoolExecutor(options.jobs) as pool:
        found = pool.map(complaint, modules, repeat(cache))
        for module, words in zip(modules, found, strict=True):
            complaints += [f"{name_of(module)}: {words}"] if words else []
    listed = [name for name in map(name_of, modules) if name in EXCEPTIONS]
    alone = len(modules) - len(listed)
    summary = f"To be covered by their own test files: {alone} modules; exceptions: {len(listed)}"
    print(*complaints, summary, sep="\n")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
