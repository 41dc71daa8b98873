"""Small truths about processes that Python's library does not offer. Linux only where it says so; must not import torch."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(number: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel send this process `number` when the thread that forked it ends (Linux; elsewhere the closed pipe does it)."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # it ended before the request took hold
            os.kill(os.getpid(), number)


def step_back(group: int, nice: int) -> None:
    """Lower the priority of a process group, if it still exists."""
    try:
        os.setpriority(os.PRIO_PGRP, group, nice)
    except (ProcessLookupError, PermissionError):
        return


def exit_text(rank: int, status: int) -> str:
    """A wait status in words."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"rank {rank} was killed by signal {number} ({signal.Signals(number).name})"
    return f"rank {rank} exited with status {os.WEXITSTATUS(status)} before it had finished"
