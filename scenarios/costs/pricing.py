"""What a step, a copy, a collective and a watt cost on a displayed GPU.

Owns the prices in virtual time. Must not import torch: the web server and RunConfig import this.
"""

from __future__ import annotations

from functools import lru_cache

from scenarios.costs.gpus import GPUS, Gpu
from scenarios.costs.models import MODELS
from scenarios.costs.shapes import MemoryParts, Phase, StepCosts

_GIB = 2**30
# forward GFLOPs a sample, element-wise bytes a sample in fp32 (forward), forward kernels, parameters
_ROUGH: dict[str, tuple[float, float, int, int]] = {
    "resnet50": (8.2, 220e6, 175, 25_557_032),
    "resnet101": (15.7, 330e6, 345, 44_549_160),
    "resnext101_32x8d": (32.9, 520e6, 345, 88_791_336),
    "bert_large": (250.0, 2200e6, 340, 335_141_888),
    "gpt2_medium": (800.0, 9000e6, 420, 354_823_168),
    "mlp": (0.05, 1.0e6, 2400, 10_000_000),
}


def _phase(kernels: int, total_s: float, gpu: Gpu, sm_active: float) -> Phase:
    kernel_ns = max(round(total_s * 1e9 / kernels), 2_500)
    launch_ns = round(gpu.launch_us * 1e3)
    busy = kernels * kernel_ns
    return Phase(
        kernels=kernels, busy_ns=busy, launch_ns=kernels * launch_ns,
        critical_ns=max(launch_ns + busy, kernels * launch_ns + kernel_ns), sm_active=sm_active,
    )


def _no_phase() -> Phase:
    return Phase(kernels=0, busy_ns=0, launch_ns=0, critical_ns=0, sm_active=0.0)


@lru_cache(maxsize=1024)
def step_costs(*, model: str, gpu: str, precision: str, batch: int, world: int) -> StepCosts:
    """Price one training step of one rank of `world`, `batch` samples per rank. Unknown names raise KeyError."""
    card, facts = GPUS[gpu], MODELS[model]
    gflops, elementwise, kernels, parameters = _ROUGH[model]
    peak = {"fp32": card.fp32_tflops, "tf32": card.tf32_tflops or card.fp32_tflops, "amp": card.fp16_tflops}[precision]
    scale = 0.5 if precision == "amp" else 1.0
    rate = {"fp32": 0.72, "tf32": 0.35, "amp": 0.37}[precision] * peak * 1e12
    forward_s = batch * (gflops * 1e9 / rate + elementwise * scale / (0.85 * card.bandwidth_gb_s * 1e9))
    sm = 0.9 if model != "mlp" else 0.12
    gradient_bytes = parameters * 4
    sizes = [2**20]
    while sum(sizes) < gradient_bytes:
        sizes.append(min(25 * 2**20, gradient_bytes - sum(sizes)))
    shares = [size / gradient_bytes for size in sizes]
    backward = tuple(_phase(max(1, round(2 * kernels * share)), 2 * forward_s * share, card, sm) for share in shares)
    decode = _no_phase()
    if facts.decodes:
        decode = _phase(8, batch / card.decode_images_s, card, 0.85)
    return StepCosts(
        decode=decode, forward=_phase(kernels, forward_s, card, sm), backward=backward, bucket_bytes=tuple(sizes),
        optimizer=_phase(10, parameters * 20 / (0.85 * card.bandwidth_gb_s * 1e9), card, 0.7),
        encoded_bytes=batch * facts.encoded_bytes_per_sample, decoded_bytes=batch * facts.decoded_bytes_per_sample,
        contention=0.25 if world > 1 else 0.0,
    )


@lru_cache(maxsize=1024)
def memory(*, model: str, gpu: str, precision: str, batch: int, world: int) -> MemoryParts:
    """GPU memory of one rank during a step, in GiB. Unknown names raise KeyError."""
    GPUS[gpu]
    _, elementwise, _, parameters = _ROUGH[model]
    scale = 0.5 if precision == "amp" else 1.0
    return MemoryParts(
        parameters_gib=parameters * 4 / _GIB, gradients_gib=parameters * 4 / _GIB * (2 if world > 1 else 1),
        optimizer_gib=parameters * 4 / _GIB, activations_gib=batch * elementwise * 0.62 * scale / _GIB,
        workspace_gib=0.6, context_gib=0.7 if world == 1 else 1.2,
    )


def all_reduce_ns(nbytes: int, *, gpu: str, world: int) -> int:
    """Duration of one ring all-reduce of `nbytes` among `world` GPUs, once the last has arrived; 0 for one GPU."""
    if world <= 1:
        return 0
    card = GPUS[gpu]
    hops = 2 * (world - 1)
    return round(hops * card.collective_latency_us * 1e3 + hops / world * nbytes / card.bus_gb_s)


def pcie_ns(nbytes: int, *, gpu: str) -> int:
    """Duration of one pinned copy of `nbytes` between host and GPU, either way."""
    return round(10_000 + nbytes / GPUS[gpu].pcie_gb_s)


def host_copy_ns(nbytes: int) -> int:
    """Duration of one memcpy of `nbytes` by one host thread, through shared memory."""
    return round(2_000 + nbytes / 8.0)


def power_w(gpu: str, *, busy: float, sm_active: float, spinning: float) -> float:
    """Mean power over a period.

    All shares are of the period, 0..1: `busy` any kernel resident, `sm_active` mean share of SMs doing useful work,
    `spinning` only a waiting collective resident (part of `busy`).
    """
    card = GPUS[gpu]
    span = card.peak_w - card.idle_w
    return card.idle_w + span * min(1.0, 0.13 * max(busy, spinning) + 0.75 * sm_active)
