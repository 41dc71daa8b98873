"""What the driver reports, through the real pynvml: GPUs, links, MIG, and why there is nothing to report."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scenarios.nvml.inventory import Inventory
from tests.nvml.build import ROOT

Env = Callable[..., dict[str, str]]

MIXED = """
gpus 4
driver 570.86.10
cuda 12080
gpu 1 name NVIDIA A100-SXM4-80GB
gpu 1 capability 80
gpu 2 capability 75
nvlink 0 1 4
nvlink 1 2 12
ancestor 0 2 10
ancestor 0 3 40
ancestor 1 3 20
gpu 2 mig_mode 0
gpu 3 mig_mode 1
gpu 3 mig 0 1 0 40448 MIG-aaaa1111-0000-5000-8000-000000000001 NVIDIA H100 MIG 3g.40gb
"""


def answer(env: dict[str, str]) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "scenarios.nvml.inventory"], cwd=ROOT, env=env, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def taken(env: dict[str, str]) -> Inventory:
    return Inventory.from_json(json.dumps(answer(env)["inventory"]))


def test_gpus_links_and_versions_are_those_of_the_driver(nvml_env: Env) -> None:
    found = taken(nvml_env(MIXED))
    assert (found.driver, found.cuda, len(found.gpus)) == ("570.86.10", (12, 8), 4)
    assert found.links == (
        ("X", "NV4", "PIX", "NODE"),
        ("NV4", "X", "NV12", "PXB"),
        ("PIX", "NV12", "X", "SYS"),
        ("NODE", "PXB", "SYS", "X"),
    )
    second = found.gpus[1]
    assert (second.name, second.capability, second.gpm, second.mig, second.bus_id) == (
        "NVIDIA A100-SXM4-80GB", (8, 0), False, False, "00000000:18:00.0",
    )  # fmt: skip
    assert second.memory_gib == pytest.approx(79.65, abs=0.01)
    assert [each.gpm for each in found.gpus] == [True, False, False, True]
    assert [(each.uuid[:8], each.gpu_instance, each.memory_gib) for each in found.gpus[3].instances] == [("MIG-aaaa", 1, 39.5)]


def test_a_switch_links_every_pair(nvml_env: Env) -> None:
    found = taken(nvml_env("gpus 3\n" + "".join(f"switch {index} 18\n" for index in range(3))))
    assert found.links == (("X", "NV18", "NV18"), ("NV18", "X", "NV18"), ("NV18", "NV18", "X"))


def test_a_gpu_that_is_gone_is_listed_with_its_fault(nvml_env: Env) -> None:
    found = taken(nvml_env("gpus 3\ngpu 1 error nvmlDeviceGetHandleByIndex 15\ngpu 2 error nvmlDeviceGetHandleByIndex 4"))
    assert [each.fault for each in found.gpus] == [
        "", "it fell off the bus (GPU is lost)", "NVML gives no handle for it; this user may lack permission",
    ]  # fmt: skip
    assert found.links[0] == ("X", "", "")


def test_an_old_driver_is_listed_with_what_it_knows(nvml_env: Env) -> None:
    found = taken(nvml_env("driver 470.57.02\ncuda 11040\ngpus 1", api="old"))
    assert (found.driver, found.cuda, found.gpus[0].gpm) == ("470.57.02", (11, 4), False)


@pytest.mark.parametrize(
    ("script", "api", "words"),
    [
        ("init 9", "current", "the NVIDIA driver is installed but not loaded"),
        ("init 4", "current", "this user may not ask the NVIDIA driver (no permission for /dev/nvidiactl)"),
        ("init 18", "current", "the NVIDIA driver and its library have different versions; a reboot mends that"),
        ("init 999", "current", "the NVIDIA driver cannot be asked: Unknown Error"),
        ("", "ancient", "the NVIDIA driver is too old to be asked (its library lacks what came with release 340)"),
    ],
)
def test_why_the_driver_cannot_be_asked(nvml_env: Env, script: str, api: str, words: str) -> None:
    assert answer(nvml_env(script, api=api)) == {"reason": words}


def test_without_a_library_there_is_no_driver(nvml_env: Env, tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("this is no library")
    found = answer({**nvml_env(), "LD_LIBRARY_PATH": str(tmp_path)})
    assert found == {"reason": "no NVIDIA driver is installed (libnvidia-ml.so.1 was not found)"}
