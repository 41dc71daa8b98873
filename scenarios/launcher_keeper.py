"""Keeps one launcher alive for a server: starts it, starts it again when it dies, gives up when it cannot start at all.

Owns which launcher is the present one. What its runs come to is the caller's. Must not import torch.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scenarios.launcher_client import LauncherClient
from scenarios.settings import Settings

TRIES = 3
"""A launcher that dies this often before it was ready is left alone for a while."""
REST_S = 20.0


class LauncherKeeper:
    """Thread-safe. `on_message(message)` and `on_death(generation, text)` come from reader threads, without a lock held."""

    def __init__(
        self, settings: Settings, *, command: Sequence[str], log: Path,
        on_message: Callable[[dict[str, Any]], None], on_death: Callable[[int, str], None],
    ) -> None:
        self._settings = settings
        self._command = command
        self._log = log
        self._on_message = on_message
        self._on_death = on_death
        self._lock = threading.RLock()
        self._client: LauncherClient | None = None
        self._generation = 0
        self._early_deaths = 0
        self._closed = False
        self._broken_s = 0.0
        self.ready = False
        self.broken: str | None = None
        """Why no launcher can be started; None while all is well."""

    @property
    def pid(self) -> int | None:
        with self._lock:
            return None if self._client is None else self._client.pid

    def ensure(self) -> None:
        """Start one if there is none, unless that failed a moment ago."""
        with self._lock:
            if self._closed or self._client is not None or (self.broken and time.monotonic() - self._broken_s < REST_S):
                return
            self._generation += 1
            generation = self._generation
            self.ready = False
            try:
                self._client = LauncherClient(
                    self._settings, command=self._command, log=self._log, on_message=self._heard,
                    on_exit=lambda status: self._died(generation, status),
                )
                self.broken = None
            except OSError as error:
                self._give_up(f"The launcher of the runs cannot be started: {error}.")

    def send(self, message: dict[str, Any]) -> int:
        """Send to the present launcher; returns its generation. Lost where it has died: `on_death` names that generation."""
        with self._lock:
            if self._client is not None:
                self._client.send(message)
            return self._generation

    def kill(self) -> None:
        """It hangs: end it. `on_death` follows, and a new one starts."""
        with self._lock:
            if self._client is not None:
                self._client.kill()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            client, self._client = self._client, None
            self.ready = False
        if client is not None:
            client.close()

    def _heard(self, message: dict[str, Any]) -> None:
        if message.get("ready"):
            with self._lock:
                self.ready = True
                self._early_deaths = 0
        self._on_message(message)

    def _died(self, generation: int, status: int) -> None:
        how = f"was killed by signal {-status} ({signal.Signals(-status).name})" if status < 0 else f"exited with status {status}"
        text = f"The launcher of the runs {how}."
        with self._lock:
            if self._closed or generation != self._generation:
                return
            self._client = None
            if not self.ready:
                self._early_deaths += 1
            self.ready = False
            if self._early_deaths >= TRIES:
                self._give_up(f"{text} {self._last_words()}".strip())
            else:
                self.ensure()
        self._on_death(generation, text)

    def _give_up(self, text: str) -> None:
        self.broken = text
        self._broken_s = time.monotonic()
        self._early_deaths = 0

    def _last_words(self) -> str:
        try:
            lines = self._log.read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1][:200] if lines else ""
