"""`python -m lessons preview`: the app on this machine only, showing one folder of lessons as they are written.

Owns how that server is started. What it shows beside the lesson is drawn by `pages.preview_bar`.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

from scenarios.settings import PREFIX, PROJECT_ROOT, load_settings

HOST = "localhost"


def preview(root: Path, name: str | None, *, port: int) -> int:
    """Serve `root` until interrupted or terminated; `name` is the lesson to begin with.

    Raises ValueError where the port cannot be used.
    """
    _claimable(port)
    address = f"http://{HOST}:{port}/lesson" + (f"?{urlencode({'lesson': name})}" if name else "")
    print(f"{address}\n    An edit is seen within a second. Stop with Ctrl-C.", flush=True)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: a server left behind would hold the port
    try:
        with subprocess.Popen(command(port), cwd=PROJECT_ROOT, env=environment(root)) as server:
            try:
                return 1 if server.wait() else 0
            except KeyboardInterrupt:
                server.send_signal(signal.SIGINT)
                server.wait()
                return 0
    finally:
        signal.signal(signal.SIGTERM, before)


def command(port: int) -> list[str]:
    """What is started. It shows keys and lets everybody see every stage, so it listens on this machine only."""
    return [
        sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port), "--server.address", HOST,
        "--server.showEmailPrompt", "false",
    ]


def environment(root: Path) -> dict[str, str]:
    """The settings of the preview: answers given while writing stay out of the real store, and records stay for the next time."""
    data_dir = load_settings().data_dir.resolve() / "preview"
    own = {"LESSONS_DIR": str(root.resolve()), "PREVIEW": "1", "DATA_DIR": str(data_dir), "DATABASE_URL": ""}
    return {**os.environ, **{PREFIX + name: value for name, value in own.items()}}


def _claimable(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise ValueError(f"port={port}: {error.strerror}; name another one with --port") from None
