"""The recipes of docs/token_logs.md, on the engines that they are for."""

import logging
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from log_shapes import PROMPT, ROWS

from harmony_stream.logs import parse_batch, parse_table, to_arrow

ROOT = Path(__file__).resolve().parents[2]
MANY = ROWS * 50


@pytest.fixture
def rollouts(tmp_path):
    """A table as `ray.data.llm` writes it."""
    table = {
        "id": [f"r{number:03}" for number in range(len(MANY))],
        "prompt_token_ids": [PROMPT] * len(MANY),
        "generated_tokens": MANY,
    }
    path = tmp_path / "rollouts.parquet"
    pq.write_table(pa.table(table), path, row_group_size=30)
    return path


def texts(table):
    """Who said what, by record, in order."""
    columns = ["id", "index", "channel", "text", "end"]
    return table.select(columns).sort_by([("id", "ascending"), ("index", "ascending")]).to_pylist()


def wanted(rollouts):
    return texts(parse_table(pq.read_table(rollouts), "generated_tokens", keep=["id"]))


def test_the_pool_of_the_standard_library_maps_it():
    batches = [MANY[first : first + 20] for first in range(0, len(MANY), 20)]

    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        found = list(pool.map(parse_batch, batches))

    assert found == [parse_batch(batch) for batch in batches]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("processes", [None, 2])
def test_hugging_face_datasets_map_it(rollouts, tmp_path, monkeypatch, processes):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    dataset = datasets.Dataset.from_parquet(str(rollouts), cache_dir=str(tmp_path / "cache"))
    parse = partial(parse_table, ids="generated_tokens", keep=["id"])
    messages = dataset.with_format("arrow").map(
        parse, batched=True, remove_columns=dataset.column_names, num_proc=processes
    )

    assert texts(messages.data.table.combine_chunks()) == wanted(rollouts)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_ray_data_maps_it(rollouts, tmp_path):
    import ray

    ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR)
    try:
        parse = partial(parse_table, ids="generated_tokens", keep=["id"])
        dataset = ray.data.read_parquet(str(rollouts))
        dataset.map_batches(parse, batch_format="pyarrow", batch_size=16).write_parquet(
            str(tmp_path / "messages")
        )

        assert texts(pq.read_table(tmp_path / "messages")) == wanted(rollouts)

        def of_numpy(batch):
            # Rows of unequal length come as an array of objects.
            return to_arrow(parse_batch(batch["generated_tokens"]))

        numpy_batches = dataset.map_batches(of_numpy, batch_format="numpy")
        assert sorted(row["text"] for row in numpy_batches.take_all()) == sorted(
            parse_batch(MANY)["text"]
        )
    finally:
        ray.shutdown()


@pytest.mark.slow
def test_the_example_runs_as_it_stands():
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "replay_on_ray.py"],
        capture_output=True,
        text=True,
        check=True,
    )

    printed = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(printed) == 12
    assert printed[1] == "{'id': 'r0', 'channel': 'final', 'text': 'Hello', 'end': 'return'}"
    assert printed[2] == "{'id': 'r1', 'channel': 'analysis', 'text': 'Hi', 'end': 'truncated'}"
