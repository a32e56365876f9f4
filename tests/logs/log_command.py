"""The command line, with arguments of any type; `COMMAND` runs it as a process."""

import sys

from harmony_stream import cli

COMMAND = [sys.executable, "-m", "harmony_stream"]


def main(words):
    return cli.main(list(map(str, words)))
