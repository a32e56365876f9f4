"""`python -m harmony_stream` is the command `harmony-stream`."""

import sys

from harmony_stream.cli import main

if __name__ == "__main__":
    sys.exit(main())
