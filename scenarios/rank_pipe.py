"""The reading end of one rank's message pipe: whole JSON lines, never blocking. Must not interpret them."""

from __future__ import annotations

import fcntl
import json
import os
import sys
from contextlib import suppress
from typing import Any

PIPE_BYTES = 1 << 20
"""Room for about a thousand step reports, so that a rank never waits for the disk."""


class RankPipe:
    """Collects what a rank wrote."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.closed = False
        self._rest = b""
        os.set_blocking(fd, False)
        if sys.platform == "linux":
            with suppress(OSError):  # an unprivileged user's pipe budget is used up: the default size works too
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def read(self) -> list[dict[str, Any]]:
        """All whole messages that have arrived since the last call."""
        while not self.closed:
            try:
                chunk = os.read(self.fd, 1 << 18)
            except BlockingIOError:
                break
            self._rest += chunk
            if not chunk:
                self.closed = True
                os.close(self.fd)
        *lines, self._rest = self._rest.split(b"\n")
        return [json.loads(line) for line in lines]
