"""The pipe by which a forked rank tells its supervisor. The messages themselves are in `rank_messages.py`.

Writing waits only while the supervisor's buffer of a megabyte is full; virtual time does not pass then.
"""

from __future__ import annotations

import json
import os

from scenarios.rank_messages import Message, Send, pack_serials, pack_span, unpack_floats, unpack_serials, unpack_span

__all__ = ["Message", "Send", "pack_serials", "pack_span", "pipe_sender", "unpack_floats", "unpack_serials", "unpack_span"]


def pipe_sender(fd: int) -> Send:
    """Messages as JSON lines into `fd`."""

    def send(message: Message) -> None:
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        view = memoryview(line)
        while view:
            view = view[os.write(fd, view) :]

    return send
