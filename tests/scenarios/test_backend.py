"""Real GPUs or virtual ones: what decides, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from scenarios import backend
from scenarios.backend import Choice, alike, choose, kind_of
from scenarios.config import RunConfig
from scenarios.machine import RealGpus, TorchBuild
from scenarios.nvml.inventory import Gpu, Inventory, MigInstance

CUDA_TORCH = TorchBuild(version="2.13.0+cu130", cuda=(13, 0))
CPU_TORCH = TorchBuild(version="2.13.0+cpu", cuda=None)
NO_DRIVER = RealGpus(inventory=None, reason="no NVIDIA driver is installed")


def gpu(index: int, name: str = "NVIDIA H200", *, fault: str = "", instances: tuple[MigInstance, ...] = ()) -> Gpu:
    return Gpu(
        index=index, name=name, uuid=f"GPU-{index}", bus_id="", memory_gib=140.0, capability=(9, 0), gpm=True, mig=bool(instances),
        instances=instances, fault=fault,
    )  # fmt: skip


def machine(*gpus: Gpu, cuda: tuple[int, int] = (13, 0)) -> RealGpus:
    return RealGpus(inventory=Inventory(driver="580.1", cuda=cuda, gpus=gpus, links=()), reason="")


EIGHT = machine(*map(gpu, range(8)))
ONE = machine(gpu(0))


def decide(
    found: RealGpus, *, environ: dict[str, str] | None = None, torch: TorchBuild = CUDA_TORCH, named: bool = False, **knobs: Any
) -> Choice:
    config = RunConfig.parse({"scenario": "sharded", **knobs})
    return choose(config, found=found, torch=torch, environ=environ or {}, gpu_named=named)


def test_auto_takes_the_real_gpus_where_all_that_were_asked_for_are_there() -> None:
    choice = decide(EIGHT)
    assert (choice.real, choice.config.gpu, choice.offer) == (True, "h200-141gb", "")
    assert choice.reason == "8 real GPUs (NVIDIA H200) were found"
    assert decide(EIGHT, gpus=2).reason == "8 real GPUs (NVIDIA H200) were found, of which the first 2 are used"
    assert decide(ONE, gpus=1).real
    assert not decide(EIGHT, backend="virtual").real


def test_fewer_than_asked_for_is_never_silent() -> None:
    choice = decide(ONE)
    assert not choice.real
    assert choice.reason == "8 were asked for and 1 real GPU (NVIDIA H200) was found"
    assert choice.offer == "run with --gpus 1 to use the real one"
    assert choice.offered_gpus == 1
    with pytest.raises(ValueError, match=r"^gpus='8': must be at most 1 with backend cuda: 1 real GPU \(NVIDIA H200\) was found"):
        decide(ONE, backend="cuda")


@pytest.mark.parametrize(
    ("found", "torch", "words"),
    [
        (NO_DRIVER, CUDA_TORCH, "no NVIDIA driver is installed"),
        (EIGHT, CPU_TORCH, "is built without CUDA"),
        (machine(gpu(0), cuda=(12, 4)), CUDA_TORCH, "the NVIDIA driver is too old"),
        (machine(gpu(0, fault="it fell off the bus")), CUDA_TORCH, "none can be used: it fell off the bus"),
    ],
)
def test_what_keeps_all_runs_from_real_gpus_is_the_reason_or_the_refusal(found: RealGpus, torch: TorchBuild, words: str) -> None:
    choice = decide(found, torch=torch, gpus=1)
    assert not choice.real
    assert words in choice.reason
    with pytest.raises(ValueError, match=r"^backend='cuda': ") as refused:
        decide(found, torch=torch, gpus=1, backend="cuda")
    assert words in str(refused.value)
    assert str(refused.value).endswith("allowed here: auto, virtual")


@pytest.mark.parametrize(
    ("knobs", "field", "words"),
    [
        ({"straggler": 3}, "straggler", "no real GPU can be made slow on demand"),
        ({"link": "pcie4"}, "link", "real GPUs are joined as they are"),
        ({"gpu": "v100-16gb"}, "gpu", "the real ones are no V100-16GB but NVIDIA H200"),
    ],
)
def test_what_only_virtual_gpus_can_do_is_explained(knobs: dict[str, Any], field: str, words: str) -> None:
    choice = decide(EIGHT, **knobs)
    assert not choice.real
    assert words in choice.reason
    assert f"--{field}" in choice.offer
    with pytest.raises(ValueError, match=f"^{field}=") as refused:
        decide(EIGHT, backend="cuda", **knobs)
    assert words in str(refused.value)


def test_the_default_kind_asks_for_nothing_unless_it_was_named() -> None:
    assert decide(EIGHT, gpu="h200-141gb").real
    assert decide(EIGHT).real
    assert "no A100-80GB" in decide(EIGHT, named=True).reason


def test_only_what_cuda_shows_counts() -> None:
    assert decide(EIGHT, environ={"CUDA_VISIBLE_DEVICES": "6,7"}, gpus=2).real
    assert "2 real GPUs" in decide(EIGHT, environ={"CUDA_VISIBLE_DEVICES": "6,7"}).reason
    hidden = decide(EIGHT, environ={"CUDA_VISIBLE_DEVICES": ""}, gpus=1)
    assert (hidden.real, hidden.offer) == (False, "")
    assert "no real GPU is shown to CUDA" in hidden.reason
    lost = machine(gpu(0), gpu(1, fault="it fell off the bus"), gpu(2))
    assert decide(lost, gpus=1).real
    assert not decide(lost, gpus=2).real, "what numbers CUDA gives to those behind it is not known"


def test_one_process_sees_one_mig_instance() -> None:
    slices = tuple(
        MigInstance(slot=slot, gpu_instance=slot, compute_instance=0, uuid=f"MIG-{slot}", name="3g.40gb", memory_gib=40.0)
        for slot in (0, 1)
    )
    found = machine(gpu(0, instances=slices), gpu(1, instances=slices))
    assert decide(found, gpus=1).real
    assert not decide(found, gpus=2).real


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("NVIDIA H200", "h200-141gb"), ("NVIDIA H100 80GB HBM3", "h100-80gb"), ("NVIDIA H100 PCIe", "h100-80gb-pcie"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb"), ("NVIDIA A100 80GB PCIe", "a100-80gb-pcie"), ("Tesla V100-SXM2-16GB", "v100-16gb"),
        ("NVIDIA GeForce RTX 4090", "rtx4090-24gb"), ("Tesla T4", "t4-16gb"), ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA GH200 480GB", None), ("NVIDIA H100 NVL", None),
    ],
)  # fmt: skip
def test_a_card_s_name_is_its_kind_or_none(name: str, kind: str | None) -> None:
    assert kind_of(name) == kind


def test_a_card_that_is_in_no_table_is_used_all_the_same() -> None:
    choice = decide(machine(gpu(0, "NVIDIA GH200 480GB")), gpus=1)
    assert (choice.real, choice.config.gpu) == (True, "a100-80gb")


def test_without_cuda_in_pytorch_the_driver_is_not_even_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "real_gpus", lambda: pytest.fail("asked"))
    monkeypatch.setattr(backend, "torch_build", lambda: CPU_TORCH)
    choice = choose(RunConfig.parse({"scenario": "sharded"}))
    assert choice.reason == "the PyTorch installed here (2.13.0+cpu) is built without CUDA"
    assert backend.resolved(choice.config) == choice.config


def test_runs_to_be_compared_are_all_real_or_all_virtual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(backend, "torch_build", lambda: CUDA_TORCH)
    monkeypatch.setattr(backend, "real_gpus", lambda: machine(*map(gpu, range(4))))
    few, many = (RunConfig.parse({"scenario": "sharded", "gpus": gpus}) for gpus in (2, 8))
    assert [config.backend for config in alike([few, few])] == ["auto", "auto"]
    assert [config.backend for config in alike([few, many])] == ["virtual", "virtual"]
    assert alike([many, many]) == [many, many]
