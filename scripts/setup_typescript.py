"""Install the TypeScript compiler, with which a test checks that printed tool types compile.

Goes to ``.reference/typescript``, by npm; what is there already is left alone.

    python scripts/setup_typescript.py
"""

from __future__ import annotations

import subprocess
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / ".reference" / "typescript"
VERSION = "5.9.3"


def compiler() -> Path:
    """The compiler, installed if it is missing."""
    path = FOLDER / "node_modules" / "typescript" / "bin" / "tsc"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        options = ["--prefix", str(FOLDER), "--no-audit", "--no-fund", "--silent"]
        subprocess.run(["npm", "install", *options, f"typescript@{VERSION}"], check=True)
    return path


if __name__ == "__main__":
    print(compiler())
