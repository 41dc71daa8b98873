"""Builds the stub libnvidia-ml.so.1 where it is not there or older than its source: `python -m tests.nvml.build`.

A compiler that is there comes first; then Debian's, as root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_name("stub.c")
BUILT = ROOT / ".venv/nvml"
COMPILERS = ("cc", "gcc", "clang")
APIS = {"current": 570, "old": 470, "ancient": 300}
"""Driver branches whose functions a library exports."""


def library_folder(api: str = "current") -> Path:
    """The folder with the stub, built first where it has to be. Raises RuntimeError where there is no compiler."""
    options = ("-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", f"-DSTUB_API={APIS[api]}")
    return _built(BUILT / api / "libnvidia-ml.so.1", SOURCE, *options).parent


def query_program() -> Path:
    """The program that takes one look at every GPU and ends, as `nvidia-smi` does. Raises RuntimeError where there is no compiler."""
    return _built(BUILT / "smi", SOURCE.with_name("smi.c"), "-ldl")


def _built(target: Path, source: Path, *options: str) -> Path:
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f"{target.name}.{os.getpid()}")  # two test runs at a time must not load each other's half
        command = [find_compiler(), "-std=gnu17", "-O2", "-Wall", "-Wextra", "-o", str(fresh), str(source), *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{source.name} does not compile:\n{done.stderr}")
        fresh.replace(target)
    return target


def find_compiler() -> str:
    """The path of a C compiler, installed first where there is none."""
    found = _compiler()
    if not found:
        subprocess.run(["sh", str(ROOT / ".ci/debian"), "gcc", "libc6-dev"])
        found = _compiler()
    if not found:
        raise RuntimeError("no C compiler found or installed (cc, gcc or clang); the tests of the NVML sampler need one")
    return found


def _compiler() -> str | None:
    named = os.environ.get("CC")
    return next((path for name in (named, *COMPILERS) if name and (path := shutil.which(name))), None)


if __name__ == "__main__":
    try:
        for name in APIS:
            library_folder(name)
    except RuntimeError as fault:
        sys.exit(str(fault))
    print(BUILT)
