"""The web server's end of the launcher: starts the process, sends it lines, hands on what it says.

Owns one launcher process and the thread that reads it. Restarting, queues and records are the caller's. Must not import torch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scenarios.settings import PREFIX, PROJECT_ROOT, Settings

COMMAND: tuple[str, ...] = (sys.executable, "-m", "scenarios.launcher")

CLOSE_S = 3.0
"""How long the launcher may take to end after its input was closed; then it is killed."""


class LauncherClient:
    """One launcher. `on_message` and `on_exit(status)` are called from its reader thread, `on_exit` once and last."""

    def __init__(
        self, settings: Settings, *, command: Sequence[str], log: Path,
        on_message: Callable[[dict[str, Any]], None], on_exit: Callable[[int], None],
    ) -> None:
        self._on_message = on_message
        self._on_exit = on_exit
        environ = {**os.environ, **{PREFIX + name.upper(): str(value) for name, value in settings.model_dump().items()}}
        try:
            log_file: Any = log.open("wb")
        except OSError:  # a full disk costs the log, not the launcher
            log_file = subprocess.DEVNULL
        try:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log_file, cwd=PROJECT_ROOT, env=environ,
                start_new_session=True,  # Ctrl-C in a terminal is for the server, which ends its runs itself
            )
        finally:
            if log_file is not subprocess.DEVNULL:
                log_file.close()
        self._writing = threading.Lock()
        self._reader = threading.Thread(target=self._read, name="launcher reader", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, message: dict[str, Any]) -> None:
        """Messages to a launcher that has died are dropped: `on_exit` tells about it."""
        assert self._process.stdin is not None
        with self._writing:
            try:
                self._process.stdin.write(json.dumps(message).encode() + b"\n")
                self._process.stdin.flush()
            except (BrokenPipeError, ValueError):
                return

    def kill(self) -> None:
        """End it at once; its supervisors and ranks die with it."""
        self._process.kill()

    def close(self) -> None:
        """End of input: it kills what it started and exits."""
        assert self._process.stdin is not None
        with self._writing:
            try:
                self._process.stdin.close()
            except BrokenPipeError:
                pass
        try:
            self._process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if threading.current_thread() is not self._reader:
            self._reader.join(CLOSE_S)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stdout:
            for line in stdout:
                try:
                    message = json.loads(line)
                except ValueError:
                    continue
                if isinstance(message, dict):
                    self._on_message(message)
        self._on_exit(self._process.wait())
