"""Hears that the server is being told to end, before the server waits for its connections: streams have to end first.

Owns the chaining of signal handlers. Linux and macOS; must not end anything itself.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType


def on_exit_signal(heard: Callable[[], None]) -> None:
    """Call `heard` at SIGINT or SIGTERM, then whatever handled them so far. Does nothing outside the main thread.

    uvicorn waits at its end for every response to be complete; an event stream never is. `heard` runs as a signal handler: set a flag.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        before = signal.getsignal(number)
        if callable(before):
            signal.signal(number, _chained(heard, before))


def _chained(heard: Callable[[], None], before: Callable[[int, FrameType | None], object]) -> Callable[[int, FrameType | None], None]:
    def handler(number: int, frame: FrameType | None) -> None:
        heard()
        before(number, frame)

    return handler
