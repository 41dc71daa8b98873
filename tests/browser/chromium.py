"""Finds a Chromium for the tests and benchmarks, or installs one: `python -m tests.browser.chromium`.

What is there already comes first; then Debian's package, as root; then the build that Playwright manages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
"""Headless, as root, in a container, and silent: without these Chromium looks up hosts of its maker at every start."""


def find_chromium() -> str | None:
    """The path of a Chromium that starts, or None. SHARDLAB_TEST_CHROMIUM names one explicitly."""
    candidates = [os.environ.get("SHARDLAB_TEST_CHROMIUM"), *(shutil.which(name) for name in NAMES), _playwright_chromium()]
    return next((path for path in candidates if path and _starts(path)), None)


def ensure_chromium() -> str:
    """The path of a Chromium, installed first where there is none. Raises RuntimeError where that fails too."""
    found = find_chromium()
    if found:
        return found
    if shutil.which("apt-get") and os.geteuid() == 0:
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        _try(["apt-get", "update", "-q"], env)
        if not _try(["apt-get", "install", "-yq", "--no-install-recommends", "chromium", "fonts-liberation"], env):
            _try(["apt-get", "install", "-yq", "--no-install-recommends", "chromium-browser"], env)
        found = find_chromium()
    if not found and _try([sys.executable, "-m", "playwright", "install", "chromium"]):
        found = find_chromium()
    if not found:
        raise RuntimeError("no Chromium found or installed; install one and name it in SHARDLAB_TEST_CHROMIUM")
    return found


def _starts(path: str) -> bool:
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _playwright_chromium() -> str | None:
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        return None
    try:
        with sync_playwright() as playwright:
            path = playwright.chromium.executable_path
    except Error:
        return None
    return path if path and Path(path).exists() else None


def _try(command: list[str], env: dict[str, str] | None = None) -> bool:
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, env=env, stdin=subprocess.DEVNULL).returncode == 0


if __name__ == "__main__":
    try:
        print(ensure_chromium())
    except RuntimeError as fault:
        sys.exit(str(fault))
