"""Joining: CPU of the web server per new session, up to the end of its first page.

Sessions speak Streamlit's own protocol over loopback, without a browser. Compared with a minimal Streamlit app, which is what
Streamlit itself costs. The launcher and its runs are not counted.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import psutil
from _common import ROOT, arguments, report
from _sessions import join_together

from tests.browser.server import AppServer

MINIMAL = "import streamlit as st\nst.title('A minimal page')\n"


def cost(script: Path, ready_path: str, data_dir: Path, sessions: int) -> dict[str, float]:
    """CPU milliseconds and bytes per session, and the seconds until all sessions that came at once have their page."""
    with AppServer(data_dir, script=script, ready_path=ready_path) as server:
        assert server.process is not None
        process = psutil.Process(server.process.pid)
        asyncio.run(join_together(server.url, 3))  # imports and caches of the first visitors
        time.sleep(0.5)
        before, started = process.cpu_times(), time.perf_counter()
        spent: list[tuple[float, float]] = []

        def read() -> None:
            now = process.cpu_times()
            spent.append((now.user + now.system - before.user - before.system, time.perf_counter() - started))

        received = asyncio.run(join_together(server.url, sessions, while_open=read))
    cpu_s, wall_s = spent[0]
    return {"cpu_ms": 1000 * cpu_s / sessions, "all_joined_s": wall_s, "kib": received / sessions / 1024}


def main() -> None:
    options = arguments(__doc__, sessions=50)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "minimal.py").write_text(MINIMAL)
        app = cost(ROOT / "app.py", "/healthz", folder / "app", options.sessions)
        minimal = cost(folder / "minimal.py", "/_stcore/health", folder / "minimal", options.sessions)
    report(
        "join",
        {
            "sessions": options.sessions,
            "app_cpu_ms_per_session": round(app["cpu_ms"], 1),
            "minimal_cpu_ms_per_session": round(minimal["cpu_ms"], 1),
            "app_all_joined_s": round(app["all_joined_s"], 2),
            "minimal_all_joined_s": round(minimal["all_joined_s"], 2),
            "app_kib_per_session": round(app["kib"], 1),
        },
        as_json=options.json,
    )


if __name__ == "__main__":
    main()
