"""How a run ended that could not say so itself: from exit status, log and disk to one sentence.

Owns the wording and the check that no process is left. Must not start anything.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
from pathlib import Path

DISK_FULL_STATUS = 74
"""Exit status of a supervisor that could not write its record (EX_IOERR of sysexits.h)."""

FULL_BELOW_BYTES = 65_536

_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def is_disk_full(error: OSError) -> bool:
    return error.errno in _DISK_ERRORS


def disk_sentence(error: OSError) -> str:
    """Why a record could not be written."""
    if is_disk_full(error):
        return "The disk is full: the run could not be recorded. Free some space and run it again."
    return f"The run could not be recorded: {error.strerror or error}."


def crash_sentence(run_dir: Path, status: int, error: str | None) -> tuple[str, str | None]:
    """(sentence, text of the failure) for a supervisor that left no `end`; `{t}` stands for the time shown so far."""
    if error:
        return f"The run could not be started: {error}", error
    if status == DISK_FULL_STATUS or _free_bytes(run_dir) < FULL_BELOW_BYTES:
        return "The disk is full: the run is recorded up to {t}. Free some space and run it again.", _log_tail(run_dir)
    if status < 0:
        return f"The run's supervisor was killed by signal {-status} ({signal.Signals(-status).name}) at {{t}}.", _log_tail(run_dir)
    log = _log_tail(run_dir)
    last = f": {log.splitlines()[-1][:200]}" if log else "."
    return f"The run's supervisor exited with status {status}{last}", log


def wait_gone(pid: int, limit_s: float) -> None:
    """Kill the process group `pid` leads and wait until it runs no more (a zombie does not run)."""
    deadline_s = time.monotonic() + limit_s
    while time.monotonic() < deadline_s:
        try:
            os.killpg(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return
        if not _runs(pid):
            return
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def _free_bytes(run_dir: Path) -> int:
    try:
        return shutil.disk_usage(run_dir).free
    except OSError:
        return FULL_BELOW_BYTES


def _log_tail(run_dir: Path) -> str | None:
    try:
        with (run_dir / "supervisor.log").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4000))
            return file.read().decode(errors="replace").strip() or None
    except OSError:
        return None
