"""The real app as a process of its own, for browser tests and benchmarks.

Owns starting, waiting for and ending `streamlit run`. Must not import anything of the app.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class AppServer:
    """`streamlit run SCRIPT` in the script's folder (or `cwd`, whose settings it takes) on a free loopback port.

    It has a data folder and a log of its own.

    Use as a context manager, or call `start` and `stop`. `kill` ends it as a crash would, so that a test can start it again on the
    same port and data folder.
    """

    def __init__(
        self, data_dir: Path, *, script: Path = ROOT / "app.py", env: dict[str, str] | None = None, ready_path: str = "/healthz",
        cwd: Path | None = None,
    ) -> None:
        self.data_dir = data_dir
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = data_dir / "server.log"
        self.process: subprocess.Popen[bytes] | None = None
        self._script = script
        self._cwd = cwd or script.parent
        self._env = env or {}
        self._ready_url = self.url + ready_path

    def start(self, ready_limit_s: float = 60.0) -> Self:
        """Start the server and return as soon as it answers. Raises RuntimeError with the log's end when it does not."""
        self.spawn()
        deadline = time.monotonic() + ready_limit_s
        while time.monotonic() < deadline:
            if self.answers():
                return self
            if self.process is not None and self.process.poll() is not None:
                break
            time.sleep(0.05)
        log = self.log_text()
        self.stop()
        raise RuntimeError(f"{self._script.name} did not answer {self._ready_url}:\n{log[-4000:]}")

    def spawn(self) -> None:
        """Start the process without waiting for it."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable, "-m", "streamlit", "run", str(self._script), "--server.address", "127.0.0.1", "--server.port", str(self.port),
            "--server.headless", "true", "--server.fileWatcherType", "none", "--browser.gatherUsageStats", "false",
        ]  # fmt: skip
        env = {**os.environ, "SHARDLAB_DATA_DIR": str(self.data_dir), "PYTHONUNBUFFERED": "1", **self._env}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self._cwd, env=env, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def answers(self) -> bool:
        """True when the ready path answers 200 now."""
        try:
            with urllib.request.urlopen(self._ready_url, timeout=2) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def log_text(self) -> str:
        """Everything the server has printed so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def kill(self) -> None:
        """End the server process alone with SIGKILL, as a crash does; what it started has to notice by itself."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self, limit_s: float = 10.0) -> None:
        """End the server and whatever is left of its process group."""
        process = self.process
        if process is None:
            return
        self._signal_group(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(limit_s)
        self._signal_group(signal.SIGKILL)
        process.wait()
        self.process = None

    def _signal_group(self, number: signal.Signals) -> None:
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
