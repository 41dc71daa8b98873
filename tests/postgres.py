"""A PostgreSQL for the tests: found, or installed (`python -m tests.postgres`), and started as a throw-away cluster of one's own.

PostgreSQL refuses to run as root: then its processes are those of another user. Nothing of it listens on a port.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

ROOT = Path(__file__).resolve().parents[1]
DEBIAN = Path("/usr/lib/postgresql")
USERS = ("postgres", "nobody")
QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "listen_addresses=", "shared_buffers=16MB", "jit=off")
"""Nothing here has to survive a power cut."""


def find_postgres() -> Path | None:
    """The folder of initdb and postgres, or None. SHARDLAB_TEST_POSTGRES names one explicitly."""
    on_path = shutil.which("postgres")
    versions = sorted(DEBIAN.glob("*/bin"), key=lambda path: -float(re.sub(r"[^\d.]", "", path.parent.name) or 0))
    named = os.environ.get("SHARDLAB_TEST_POSTGRES")
    candidates = [*([Path(named)] if named else []), *versions, *([Path(on_path).resolve().parent] if on_path else [])]
    return next((path for path in candidates if (path / "initdb").exists() and (path / "postgres").exists()), None)


def ensure_postgres() -> Path:
    """`find_postgres`, installed first where there is none. Raises RuntimeError where that fails."""
    found = find_postgres()
    if found is None:
        subprocess.run(["sh", str(ROOT / ".ci/debian"), "postgresql"], stdin=subprocess.DEVNULL)
        found = find_postgres()
    if found is None:
        raise RuntimeError("no PostgreSQL found or installed; install one and name its bin folder in SHARDLAB_TEST_POSTGRES")
    return found


class Cluster:
    """A running server with a socket in a folder of its own. Use as a context manager; `url` names one of its databases."""

    def __init__(self) -> None:
        self._bin = ensure_postgres()
        self._folder = Path(tempfile.mkdtemp(prefix="shardlab-postgres-"))
        self._data = self._folder / "data"
        self._user = next(user for user in USERS if _exists(user)) if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        self._log = self._folder / "log"

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://shardlab@/{database}?host={self._folder}"

    def start(self) -> None:
        if self._user:
            shutil.chown(self._folder, self._user)
        settings = [word for setting in QUICK for word in ("-c", setting)]
        if not self._data.exists():
            self._run("initdb", "-D", str(self._data), "-U", "shardlab", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        told = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            command = [str(self._bin / "postgres"), "-D", str(self._data), "-k", str(self._folder), *settings]
            self._process = subprocess.Popen(
                command, user=self._user, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + 20
        while b"ready to accept connections" not in self._log.read_bytes()[told:]:
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError(f"PostgreSQL did not start:\n{self._log.read_text()}")
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends it in order, cutting connections; SIGQUIT as a crash would."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(20)
            self._process = None

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """It answers nobody and refuses nobody, as behind a network that lets nothing through."""
        assert self._process is not None
        processes = [psutil.Process(self._process.pid), *psutil.Process(self._process.pid).children(recursive=True)]
        for process in processes:
            process.suspend()
        try:
            yield
        finally:
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._bin / program), *arguments]
        done = subprocess.run(command, user=self._user, cwd=self._folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise RuntimeError(f"{program} failed:\n{done.stdout}{done.stderr}")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


if __name__ == "__main__":
    try:
        print(ensure_postgres())
    except RuntimeError as fault:
        sys.exit(str(fault))
