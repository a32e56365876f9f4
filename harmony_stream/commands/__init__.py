"""The commands of `harmony-stream`, one module for each.

The module of a command has `add_parser(commands)`, which declares the command and sets `run` as its
default, and `run(arguments)`, which returns the exit status. A command raises its errors; only
`harmony_stream.cli.main` turns them into a sentence and a status.
"""
