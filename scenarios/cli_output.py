"""A command's last words where its output cannot be written: the reader of a pipe has left, or the disk is full.

Owns that such an end is one line on standard error and an exit code, as every other. Must not know the commands.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

BROKEN_OFF = 1


def guarded(command: Callable[[], int]) -> int:
    """The exit code of `command`, everything it printed being written; 1, with one line on standard error, where the system refused."""
    try:
        code = command()
        sys.stdout.flush()
        return code
    except OSError as error:
        print(f"The command broke off: {error.strerror or error}.", file=sys.stderr)
        # What is still held would be tried again at the interpreter's end, with a complaint of its own.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_OFF
