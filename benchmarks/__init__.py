"""The benchmarks: `python -m benchmarks` measures this library beside the wheels that it replaces.

`rows.py` lists what is measured. A job runs in a worker, which is a process in an environment of
its own. `rounds.py` measures all ways of a row by turns, and `report.py` writes what was found.
"""
