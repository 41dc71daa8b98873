"""Memory: web server, launcher and one live run together, as PSS (shared pages counted once).

A server on a fresh data folder measures its experiments by itself; the peak is read while the first of those runs is live, with
one open session beside it.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import psutil
from _common import arguments, report
from _sessions import join_together

from tests.browser.server import AppServer

GB = 1e9
RANKS = 8


def pss_gb(processes: list[psutil.Process]) -> float:
    """Proportional set size of the processes that still exist, in GB (10^9 bytes)."""
    total = 0
    for process in processes:
        try:
            total += process.memory_full_info().pss
        except psutil.NoSuchProcess:
            continue
    return total / GB


def parts(server: psutil.Process) -> tuple[list[psutil.Process], list[psutil.Process]]:
    """(the launcher, everything it started)."""
    for child in server.children():
        try:
            if "scenarios.launcher" in child.cmdline():
                return [child], child.children(recursive=True)
        except psutil.NoSuchProcess:
            continue
    return [], []


def watch(server: psutil.Process, seconds: float) -> dict[str, float]:
    """The largest sum seen while all ranks of a run were alive, with its parts. Raises SystemExit when no run was live."""
    best: dict[str, float] = {"total_gb": 0.0}
    deadline = time.monotonic() + seconds
    seen_s = 0.0
    while time.monotonic() < deadline and seen_s < 8:
        launcher, run = parts(server)
        if len(run) > RANKS:
            now = {"web_server_gb": pss_gb([server]), "launcher_gb": pss_gb(launcher), "run_gb": pss_gb(run)}
            now["total_gb"] = sum(now.values())
            now["processes"] = 1 + len(launcher) + len(run)
            best = max(best, now, key=lambda figures: figures["total_gb"])
            seen_s += 0.25
        time.sleep(0.25)
    if not best["total_gb"]:
        raise SystemExit("no run was live within the time")
    return best


def main() -> None:
    options = arguments(__doc__, seconds=60)
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name, AppServer(Path(name), env={"SHARDLAB_LIVE_RUNS": "1"}) as server:
        assert server.process is not None
        process = psutil.Process(server.process.pid)
        asyncio.run(join_together(server.url, 1, while_open=lambda: figures.update(watch(process, options.seconds))))
    report("memory", {key: round(value, 3) for key, value in figures.items()} | {"limit_gb": 1.5}, as_json=options.json)


if __name__ == "__main__":
    main()
