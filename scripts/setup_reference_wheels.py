"""Set up one environment for each wheel that the differential tests compare with.

openai-harmony and oss-harmony install the same module name, so each needs an environment of its
own: ``.reference/openai-harmony-0.0.8`` and ``.reference/oss-harmony-0.0.11``, made with pip.
What is there already is left alone, so that a second run costs nothing.

    python scripts/setup_reference_wheels.py
"""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / ".reference"
WHEELS = {"openai-harmony": "0.0.8", "oss-harmony": "0.0.11"}


def environment(distribution: str, version: str) -> Path:
    """The interpreter of the environment that holds *distribution*, made if it is missing."""
    folder = FOLDER / f"{distribution}-{version}"
    python = folder / "bin" / "python"
    # Written last: an environment whose installation broke off is made afresh.
    done = folder / "installed"
    if not done.exists():
        venv.create(folder, clear=True, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", f"{distribution}=={version}"]
        subprocess.run(command, check=True)
        done.touch()
    return python


def main() -> None:
    """Make every environment and say where it is."""
    for distribution, version in WHEELS.items():
        print(environment(distribution, version))


if __name__ == "__main__":
    main()
