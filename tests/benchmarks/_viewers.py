"""Many viewers of one live run in one process, and an observer of its record: the load side of the fan-out benchmark.

`python _viewers.py watch PORT RUN COUNT` opens COUNT event streams and prints when each tick reached each of them;
`python _viewers.py observe FILE` prints when each tick stood in the record. Both end with the run. Times are CLOCK_MONOTONIC.
Plain sockets rather than an HTTP client: the client must not be what is measured.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import sys
import time
from array import array
from pathlib import Path

TICK = re.compile(rb"id: (\d+)\nevent: tick\n")
LIMIT_S = 90.0


def observe(path: Path) -> dict[int, float]:
    """Seconds at which each tick's line was whole, by event id."""
    seen: dict[int, float] = {}
    deadline, offset = time.monotonic() + LIMIT_S, 0
    while time.monotonic() < deadline:
        data = b""
        if path.exists():
            with path.open("rb") as file:
                file.seek(offset)
                data = file.read()
        now = time.monotonic()
        data = data[: data.rfind(b"\n") + 1]
        offset += len(data)
        for line in data.splitlines():
            event = json.loads(line)
            if event["event"] == "tick":
                seen[event["id"]] = now
            elif event["event"] == "end":
                return seen
        time.sleep(0.001)
    return seen


def watch(port: int, run_id: str, count: int) -> tuple[array[int], array[float]]:
    """(ids, seconds) of every tick that arrived, of all viewers together."""
    selector = selectors.DefaultSelector()
    request = f"GET /live?run={run_id} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\n\r\n".encode()
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(request)
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ)
    ids, times = array("q"), array("d")
    deadline, open_streams = time.monotonic() + LIMIT_S, count
    while open_streams and time.monotonic() < deadline:
        for key, _ in selector.select(1.0):
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            data = connection.recv(262_144)
            now = time.monotonic()
            for match in TICK.finditer(data):
                ids.append(int(match[1]))
                times.append(now)
            if not data or data.endswith(b"\r\n0\r\n\r\n"):
                selector.unregister(connection)
                connection.close()
                open_streams -= 1
    return ids, times


if __name__ == "__main__":
    if sys.argv[1] == "observe":
        print(json.dumps(observe(Path(sys.argv[2]))))
    else:
        all_ids, all_times = watch(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
        print(json.dumps({"ids": all_ids.tolist(), "times": all_times.tolist()}))
