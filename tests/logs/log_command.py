"""The commands on token logs behind a command line of their own; also run as a program."""

import argparse
import sys

from harmony_stream.commands import check, convert, stats

COMMAND = [sys.executable, __file__]


def main(words):
    parser = argparse.ArgumentParser("harmony-stream")
    commands = parser.add_subparsers(required=True)
    for command in (check, stats, convert):
        command.add_parser(commands)
    arguments = parser.parse_args(list(map(str, words)))
    try:
        return arguments.run(arguments)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
