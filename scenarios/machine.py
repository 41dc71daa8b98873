"""What GPUs this machine really has, and what keeps runs from them.

Owns the finding and its wording; what a single run uses is decided in `backend.py`. The driver is asked by a process of its own with a time
limit, so that one that hangs holds up nobody.
Sampling real GPUs is not its business (scenarios/nvml); must not import torch.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from scenarios.nvml.inventory import Inventory
from scenarios.settings import PROJECT_ROOT

ASK_LIMIT_S = 20.0
"""A driver that keeps nothing in memory between two questions takes seconds for eight GPUs."""
LOOK_AGAIN_S = 5.0
"""Whoever presses the button twice does not ask the driver twice."""

_COMMAND = (sys.executable, "-m", "scenarios.nvml.inventory")
_lock = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class RealGpus:
    """The GPUs that the driver reports; none, with the reason, where it cannot be asked."""

    inventory: Inventory | None
    reason: str
    """Why there are none, one clause; empty where there are some."""
    asked_s: float = 0.0
    """When, by the system's clock."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(gpu.name for gpu in self.inventory.gpus) if self.inventory else ()


@dataclass(frozen=True, kw_only=True)
class TorchBuild:
    """The PyTorch that is installed, as its files say: nobody imports it here."""

    version: str
    cuda: tuple[int, int] | None


def real_gpus() -> RealGpus:
    """Ask the driver once per process."""
    with _lock:  # visitors who come together ask once
        return _real_gpus()


def look_again() -> None:
    """Have the driver asked anew, unless it just was."""
    with _lock:
        if _real_gpus.cache_info().currsize and time.time() - _real_gpus().asked_s > LOOK_AGAIN_S:
            _real_gpus.cache_clear()


def forget() -> None:
    """Have the driver asked anew in any case."""
    _real_gpus.cache_clear()


@lru_cache(maxsize=1)
def _real_gpus() -> RealGpus:
    asked_s = time.time()
    answer = _answer()
    if "inventory" not in answer:
        return RealGpus(inventory=None, reason=str(answer["reason"]), asked_s=asked_s)
    inventory = Inventory.from_json(json.dumps(answer["inventory"]))
    return RealGpus(inventory=inventory, reason="" if inventory.gpus else "the NVIDIA driver reports no GPU", asked_s=asked_s)


def _answer() -> dict[str, object]:
    asking = subprocess.Popen(
        _COMMAND, cwd=PROJECT_ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        out, fault = asking.communicate(timeout=ASK_LIMIT_S)
    except subprocess.TimeoutExpired:
        asking.kill()  # not waited for: a process that hangs inside the driver may not even end then
        return {"reason": f"the NVIDIA driver did not answer within {ASK_LIMIT_S:g} s"}
    try:
        found: dict[str, object] = json.loads(out)
    except ValueError:
        last = (fault.strip().splitlines() or [f"status {asking.returncode}"])[-1]
        return {"reason": f"asking the NVIDIA driver failed ({last})"}
    return found


def why_virtual(found: RealGpus, torch: TorchBuild | None = None) -> str:
    """One clause for a page or a terminal: why no run here can use a real GPU; empty where one can."""
    first = next(iter(obstacles(found, torch)), "")
    return f"{were_found(found.names)}, but {first}" if first and found.names else first


def obstacles(found: RealGpus, torch: TorchBuild | None = None) -> tuple[str, ...]:
    """Everything that keeps all runs from the real GPUs, one clause each, what comes first first; none where they can be used."""
    if found.inventory is None or not found.inventory.gpus:
        return (found.reason,)
    torch = torch or torch_build()
    inventory = found.inventory
    clauses = []
    if all(gpu.fault for gpu in inventory.gpus):
        clauses.append(f"none can be used: {inventory.gpus[0].fault}")
    if torch is None or torch.cuda is None:
        clauses.append(f"the PyTorch installed here{f' ({torch.version})' if torch else ''} is built without CUDA")
    elif inventory.cuda is not None and inventory.cuda[0] < torch.cuda[0]:
        clauses.append(
            f"the NVIDIA driver is too old: {inventory.driver} knows CUDA up to {_dotted(inventory.cuda)}, "
            f"and PyTorch {torch.version} needs {torch.cuda[0]}.0 or newer"
        )
    return tuple(clauses)


def were_found(names: tuple[str, ...]) -> str:
    """How many GPUs of which kind, as a clause: "8 real GPUs (NVIDIA H100 80GB HBM3) were found"."""
    kinds = Counter(names)
    listed = names[0] if len(kinds) == 1 else ", ".join(f"{count} {name}" for name, count in kinds.items())
    return f"{len(names)} real GPUs ({listed}) were found" if len(names) > 1 else f"1 real GPU ({listed}) was found"


@lru_cache(maxsize=1)
def torch_build() -> TorchBuild | None:
    """Version and CUDA of the installed PyTorch, or None where there is none."""
    spec = importlib.util.find_spec("torch")  # finds it, does not import it
    if spec is None or spec.origin is None:
        return None
    text = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    version = re.search(r"^__version__ = '([^']+)'", text, re.MULTILINE)
    cuda = re.search(r"^cuda\b[^=]*= '(\d+)\.(\d+)", text, re.MULTILINE)
    return TorchBuild(version=version[1] if version else "", cuda=(int(cuda[1]), int(cuda[2])) if cuda else None)


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
