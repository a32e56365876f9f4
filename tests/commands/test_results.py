"""Results of commands on logs: one for each batch, in order, with reports on standard error."""

import argparse

import pytest

from harmony_stream.commands.arguments import add_arguments
from harmony_stream.commands.results import results
from harmony_stream.logs import LogError


def numbers_of(batch):
    return [record.number for record in batch.records]


@pytest.fixture
def run(tmp_path):
    """Gives the numbers of the records that are read of some logs."""

    def of(*contents, options=()):
        paths = [tmp_path / f"{number}.jsonl" for number, _ in enumerate(contents)]
        for path, content in zip(paths, contents, strict=True):
            path.write_text(content)
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        arguments = parser.parse_args([*map(str, paths), *options])
        return [number for each in results(arguments, numbers_of) for number in each]

    return of


GOOD, BAD = '{"ids": [5]}\n', "x\n"


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_results_come_in_the_order_of_the_logs(run, jobs, capsys):
    assert run(GOOD * 2, GOOD * 3, options=["--jobs", jobs]) == [1, 2, 1, 2, 3]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("count", "lines"), [(1, 1), (20, 20), (21, 21), (99, 21)])
def test_at_most_twenty_records_are_reported_one_by_one(run, capsys, count, lines):
    assert run(GOOD + BAD * count + GOOD) == [1, count + 2]
    reports = capsys.readouterr().err.splitlines()
    assert len(reports) == lines
    last = f"harmony-stream: and {count - 20} more records that cannot be read"
    assert (reports[-1] == last) == (count > 20)


def test_a_bad_record_can_end_the_results(run, capsys):
    with pytest.raises(LogError, match="line 2: not JSON"):
        run(GOOD + BAD, options=["--stop-on-error"])
    assert capsys.readouterr().err == ""
