"""The commands of `harmony-stream`, one module for each.

A module has `add_parser(commands)`, which declares the command and sets `run` as its default, and
`run(arguments) -> int`, which gives the exit status.
"""
