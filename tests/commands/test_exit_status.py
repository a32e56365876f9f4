"""The exit statuses, as the help of the commands has them."""

import pytest

from harmony_stream.cli import main
from harmony_stream.commands.exit_status import ExitStatus


@pytest.mark.parametrize(
    ("status", "number"),
    [
        (ExitStatus.OK, 0),
        (ExitStatus.FAULTS, 1),
        (ExitStatus.TROUBLE, 2),
        (ExitStatus.INTERRUPTED, 130),
        (ExitStatus.BROKEN_PIPE, 141),
    ],
)
def test_a_status_is_the_number_that_shells_see(status, number):
    assert status == number
    assert list(ExitStatus).count(status) == 1


@pytest.mark.parametrize("command", ["replay", "check", "stats", "convert", "render", "tools"])
def test_the_help_of_a_command_names_the_statuses_that_it_has(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    _, statuses = capsys.readouterr().out.split("exit status:")
    assert str(int(ExitStatus.OK)) in statuses
    assert f"{int(ExitStatus.TROUBLE)} " in statuses
