"""Parse a table of sampled tokens on all cores, or all machines, with Ray Data.

    pip install 'harmony-stream[arrow]' 'ray[data]'
    python examples/replay_on_ray.py [ROLLOUTS.parquet MESSAGES_FOLDER]

Without arguments it makes a small table as `ray.data.llm` writes it, and prints what was said.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from functools import partial
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from harmony_stream import logs

# "<|channel|>analysis<|message|>Hi<|end|><|start|>assistant<|channel|>final<|message|>Hello" ...
ANSWERED = [200005, 35644, 200008, 12194, 200007, 200006, 173781, 200005, 17196, 200008, 13225]


def make_rollouts(path: Path) -> None:
    """A table of completions: one that is whole, and one that was cut."""
    rows = [[*ANSWERED, 200002], ANSWERED[:4]] * 4
    table = {"id": [f"r{number}" for number in range(8)], "generated_tokens": rows}
    pq.write_table(pa.table(table), path)


def parse_rollouts(rollouts: Path, messages: Path) -> None:
    """Read completions; write a folder of Parquet files with one row a message."""
    import ray  # slow to import, and only needed here

    ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR)
    parse = partial(logs.parse_table, ids="generated_tokens", keep=["id"])
    dataset = ray.data.read_parquet(str(rollouts))
    dataset.map_batches(parse, batch_format="pyarrow").write_parquet(str(messages))
    ray.shutdown()


def main() -> None:
    """Parse the given table, or one made up."""
    with tempfile.TemporaryDirectory() as folder:
        if len(sys.argv) > 2:
            rollouts, messages = map(Path, sys.argv[1:3])
        else:
            rollouts, messages = Path(folder, "rollouts.parquet"), Path(folder, "messages")
            make_rollouts(rollouts)
        parse_rollouts(rollouts, messages)
        table = pq.read_table(messages).sort_by("id")
        for row in table.select(["id", "channel", "text", "end"]).slice(0, 20).to_pylist():
            print(row)


if __name__ == "__main__":
    main()
