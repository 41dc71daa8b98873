"""The launcher forks processes that use CUDA, so it must not have asked CUDA anything: a started driver does not survive a fork."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scenarios.worker.place import claim_place

ROOT = Path(__file__).resolve().parents[3]

ASK = """
import traceback
import torch

def trap(name):
    def asked(*arguments, **options):
        raise AssertionError(f"torch.cuda.{name} was called by\\n" + "".join(traceback.format_stack(limit=6)))
    return asked

for name in ("is_available", "device_count", "_lazy_init", "current_device", "get_device_properties", "get_device_capability"):
    assert hasattr(torch.cuda, name)
    setattr(torch.cuda, name, trap(name))
torch.accelerator.is_available = torch.accelerator.current_accelerator = trap("accelerator")
from scenarios import launcher
launcher.preload()
import os
assert os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] == "1"
assert launcher.threads() == 1
print("quiet")
"""


@pytest.mark.slow
def test_the_launcher_asks_nothing_of_cuda() -> None:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", ASK], cwd=ROOT, capture_output=True, text=True, timeout=100, env=env)
    assert done.stdout.strip() == "quiet", done.stderr[-2000:]


def test_a_rank_s_gpu_is_numbered_as_nvml_numbers_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    here = claim_place(3)
    assert (str(here.device), here.backend, os.environ["CUDA_DEVICE_ORDER"]) == ("cuda:3", "nccl", "PCI_BUS_ID")
