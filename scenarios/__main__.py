"""`python -m scenarios`: the experiments from a terminal. See cli.py."""

import sys

from scenarios.cli import main

if __name__ == "__main__":
    sys.exit(main())
