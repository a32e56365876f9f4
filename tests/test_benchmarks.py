"""The benchmarks run, and the pages say what they found."""

import json
import re
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.rounds import Effort, Spread, WaysDisagreeError, measure_row
from benchmarks.rows import OURS, ROWS, Row, Way
from benchmarks.workers import JobError, Workers, missing_libraries

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts" / "make_performance_page.py"
pages = runpy.run_path(str(SCRIPT))
RESULT = json.loads(pages["RESULT"].read_text("utf-8"))


def command(*arguments):
    return [sys.executable, "-m", "benchmarks", *arguments]


# -- Pages --


def test_the_tables_and_the_sentences_of_the_documents_are_those_of_the_result():
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("", 0)


def test_every_row_was_measured_and_is_on_the_page():
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    shown = re.findall(r"<!-- figures: (.+?) -->", page)
    assert sorted(shown) == sorted(["about", *ROWS])
    assert list(RESULT["rows"]) == list(ROWS)


def test_the_result_has_each_case_and_way_of_a_row():
    for name, row in ROWS.items():
        cases = RESULT["rows"][name]["cases"]
        assert list(cases) == list(row.cases), name
        for found in cases.values():
            assert list(found["figures"]) == [way.name for way in row.ways], name
            assert list(found["ratios"]) == [f"{over} / {under}" for over, under in row.ratios]


MEASURED = {
    "rows": {
        "per-token": {
            "cases": {
                "English": {"ratios": {"theirs / ours": {"median": 2.0}}},
                "emoji": {"ratios": {"theirs / ours": {"median": 8.0}}},
            }
        }
    }
}


@pytest.mark.parametrize(
    ("sentence", "is_wrong"),
    [
        ("It is 4 times as fast <!-- is: per-token, theirs / ours -->.", False),
        ("It is 4.9 times as fast <!-- is: per-token, theirs / ours -->.", False),
        ("It is 5.1 times as fast <!-- is: per-token, theirs / ours -->.", True),
        ("It is 2.9 times as fast <!-- is: per-token, theirs / ours -->.", True),
        ("With emoji 7x <!-- is: per-token, theirs / ours, emoji -->.", False),
        ("With emoji 4x <!-- is: per-token, theirs / ours, emoji -->.", True),
        ("It is 100 times as fast.", False),
    ],
)
def test_a_sentence_may_round_but_not_be_a_quarter_off(sentence, is_wrong):
    assert bool(list(pages["wrong_claims"](sentence, MEASURED))) is is_wrong


def test_a_sentence_about_a_row_that_is_not_there_is_an_error():
    with pytest.raises(KeyError, match="no-row"):
        list(pages["wrong_claims"]("It is 4 <!-- is: no-row, theirs / ours -->", MEASURED))


def test_the_plot_has_a_line_for_each_of_its_rows():
    assert pages["plot"](RESULT).count("<circle") == len(pages["BARS"])


# -- Measuring --


def test_ratios_compare_two_ways_of_one_round():
    row = Row(
        "row",
        "Steps.",
        "ns a token",
        (
            Way("one", "reading.steps", {"size": 1}),
            Way("all", "reading.steps", {"size": 1000}),
        ),
        (("one", "all"),),
        {"a call": {"text": "a short call"}},
    )
    with Workers("") as workers:
        found = measure_row(row, Effort(rounds=3, seconds=0.0001), workers, lambda text: None)
    figures = found["a call"].figures
    ones, alls = (figures[way]["ns a token"].rounds for way in ("one", "all"))
    ratios = found["a call"].ratios["one / all"].rounds
    assert ratios == pytest.approx(
        [one / every for one, every in zip(ones, alls, strict=True)], rel=0.01
    )


def test_ways_that_do_not_do_the_same_are_not_compared():
    ways = (
        Way("one", "reading.read", {"text": "a header"}),
        Way("other", "reading.read", {"text": "a short call"}),
    )
    with Workers("") as workers, pytest.raises(WaysDisagreeError, match="one"):
        measure_row(Row("row", "", "ns a token", ways), Effort(), workers, lambda text: None)


def test_a_job_that_raises_is_reported_with_its_traceback():
    with Workers("") as workers, pytest.raises(JobError, match="KeyError: 'no such text'"):
        workers.ask(OURS, "prepare", "way", "reading.read", {"text": "no such text"})


def test_a_spread_is_the_median_with_quartiles_and_extremes():
    spread = Spread.of([1.0, 2.0, 3.0, 4.0, 50.0])
    assert (spread.median, spread.quartiles, spread.least, spread.most) == (3, (2, 4), 1, 50)
    assert Spread.of([7.0]).quartiles == (7, 7)


# -- The command --


def test_the_rows_are_listed():
    done = subprocess.run(command("--list"), capture_output=True, text=True, check=True, cwd=ROOT)
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(ROWS)


@pytest.mark.parametrize(
    "wrong", [["--rows", "no-such-row"], ["--rounds", "0"], ["--out", "no/such/folder/file.json"]]
)
def test_wrong_arguments_are_refused_before_anything_is_measured(wrong):
    done = subprocess.run(command(*wrong), capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2
    assert wrong[1] in done.stderr


def test_a_quick_run_writes_tables_and_json(tmp_path):
    out = tmp_path / "result.json"
    rows = ["emoji", "writer"]
    arguments = command("--quick", "--rows", *rows, "--out", str(out))
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT)
    assert (done.stderr.splitlines(), done.returncode) == (["emoji", "writer Chat Completions"], 0)
    assert "emoji / plain" in done.stdout
    assert list(json.loads(out.read_text("utf-8"))["rows"]) == rows


@pytest.mark.slow
def test_each_row_runs():
    if missing := missing_libraries(ROWS.values()):
        pytest.skip(f"{missing}: run scripts/setup_reference_wheels.py first")
    done = subprocess.run(command("--quick"), capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert all(f"\n{name}: " in done.stdout for name in ROWS)


@pytest.mark.slow
def test_an_interrupt_ends_the_run_and_its_workers():
    arguments = command("--rows", "emoji", "--rounds", "100000")
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, cwd=ROOT) as running:
        assert running.stderr.readline() == "emoji\n"
        workers = Path(f"/proc/{running.pid}/task/{running.pid}/children")
        while not (children := workers.read_text().split()):
            pass
        running.send_signal(signal.SIGINT)
        assert running.stderr.read() == "interrupted\n"
    assert running.returncode == 130
    # A worker that has just been started ends by itself, as its input does.
    until = time.monotonic() + 30
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < until
        time.sleep(0.01)
