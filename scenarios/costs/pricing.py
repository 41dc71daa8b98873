"""What a training step costs on a displayed GPU: kernel times, launch times and gradient buckets.

Owns the price of a step. Copies, collectives and power are `transfers.py`'s and memory `footprint.py`'s, given on from here. Must not
import torch: the web server and RunConfig import this.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from scenarios.costs.calibration import CALIBRATION, Calibration
from scenarios.costs.footprint import checkpoint_bytes as checkpoint_bytes
from scenarios.costs.footprint import memory as memory
from scenarios.costs.gpus import GPUS, Gpu
from scenarios.costs.models import MODELS
from scenarios.costs.shapes import EMPTY, Phase, StepCosts
from scenarios.costs.tables import Kind, OpClass, Program, program, table_name, terms, value
from scenarios.costs.transfers import all_reduce_ns as all_reduce_ns
from scenarios.costs.transfers import host_copy_ns as host_copy_ns
from scenarios.costs.transfers import link_of as link_of
from scenarios.costs.transfers import pcie_ns as pcie_ns
from scenarios.costs.transfers import power_w as power_w

FIRST_BUCKET_BYTES = 2**20
BUCKET_BYTES = 25 * 2**20
"""dist._DEFAULT_FIRST_BUCKET_BYTES and DDP's bucket_cap_mb."""

_FLOOR_NS: dict[OpClass, float] = {"elementwise": 2_000, "norm": 2_600, "matmul": 3_600, "conv": 4_000, "grouped_conv": 4_000}
"""Shortest kernels, as profiles of eager PyTorch on A100 show them: a launch of any size takes about 2 us on the GPU, a matrix product
with a prologue and a few k-steps somewhat more."""

_BLOCK_BYTES: dict[OpClass, float] = {"elementwise": 8_192, "norm": 8_192, "matmul": 32_768, "conv": 32_768, "grouped_conv": 32_768}
"""Bytes read and written by one thread block: 128 threads of 4 vectorised fp32 elements in and out; a 64x64 tile of a matrix product."""

FULL_SM = 0.92
"""SM activity of a GPU whose kernels fill it: guilbaults/slurm-job-exporter#30, H100."""

DECODE_KERNELS = 12
"""Launches per decoded batch: nvJPEG's batched decoder, then crop, resize, flip, cast and normalise."""


@lru_cache(maxsize=1024)
def step_costs(
    *, model: str, gpu: str, precision: str, batch: int, world: int,
    seq_len: int | None = None, task: str = "finetune", calibration: Calibration = CALIBRATION, launchers: int = 1,
) -> StepCosts:
    """Price one training step of one rank of `world`, with `batch` samples per rank.

    `seq_len` defaults to the model's own; `task` (finetune or pretrain) matters to bert_large only. `launchers`: threads of one
    interpreter that take turns at launching, each for a GPU of its own. Unknown names raise KeyError.
    """
    card, facts = GPUS[gpu], MODELS[model]
    pricer = _Pricer(card, precision, calibration, fused=task == "pretrain", launchers=launchers)
    steps = program(table_name(model, task), amp=precision == "amp")
    powers = terms(batch=batch, seq_len=(seq_len or facts.seq_len) if facts.seq_len else None)
    prices = [pricer.price(kind, powers) for kind in steps.kinds]
    buckets = gradient_buckets(steps)
    several = world > 1
    backward, done = [], 0
    for last_kernel, elements in buckets:
        kernels = [prices[index] for index in steps.backward[done:last_kernel]]
        done = last_kernel
        if several:
            kernels.extend(pricer.copy(count) for count in elements)
        backward.append(pricer.phase(kernels))
    optimizer = [pricer.moved(moved) for moved in steps.optimizer]
    if several:
        optimizer = [pricer.copy(count) for _, elements in buckets for count in elements] + optimizer
    return StepCosts(
        decode=_decode(card, batch, launchers) if facts.decodes else EMPTY,
        forward=pricer.phase([prices[index] for index in steps.forward]),
        backward=tuple(backward),
        bucket_bytes=tuple(4 * sum(elements) for _, elements in buckets),
        optimizer=pricer.phase(optimizer),
        encoded_bytes=batch * facts.encoded_bytes_per_sample,
        decoded_bytes=batch * facts.decoded_bytes_per_sample,
        contention=calibration.contention if several else 0.0,
    )


def input_pipeline_s(*, model: str, gpu: str, batch: int, ranks: int, calibration: Calibration) -> float:
    """Seconds that the host of published runs takes to feed one batch to each of its `ranks`; 0 where samples need no decoding.

    A declared path: published scripts whose input pipeline stalls each step. Our own scripts prefetch, and their loaders are simulated
    instead. A host is as fast as its PCIe generation says.
    """
    if not MODELS[model].decodes:
        return 0.0
    return batch * ranks / (calibration.host_images_s * GPUS[gpu].pcie_gb_s / _PCIE4_GB_S)


_PCIE4_GB_S = 25.0


def busy_ns(
    *, model: str, gpu: str, precision: str, batch: int, seq_len: int | None, task: str, accumulate: int, calibration: Calibration,
) -> float:
    """Kernel time of one micro-step on one GPU: what `step_costs` sums up to, without its order, for the many trials of a fit."""
    facts = MODELS[model]
    pricer = _Pricer(GPUS[gpu], precision, calibration, fused=task == "pretrain")
    steps = program(table_name(model, task), amp=precision == "amp")
    powers = terms(batch=batch, seq_len=(seq_len or facts.seq_len) if facts.seq_len else None)
    micro = sum(count * pricer.price(kind, powers)[0] for kind, count in zip(steps.kinds, steps.counts, strict=True))
    return micro + sum(pricer.moved(moved)[0] for moved in steps.optimizer) / accumulate


def gradient_buckets(steps: Program) -> list[tuple[int, list[int]]]:
    """(backward kernels done, elements of each gradient) of every bucket, in the order in which they fill.

    DDP's rule (compute_bucket_assignment_by_size): a bucket closes once it holds its limit or more; fp32 gradients, amp included.
    """
    buckets: list[tuple[int, list[int]]] = []
    elements: list[int] = []
    held = 0
    for kernels, count in steps.ready:
        elements.append(count)
        held += 4 * count
        if held >= (BUCKET_BYTES if buckets else FIRST_BUCKET_BYTES):
            buckets.append((kernels, elements))
            elements, held = [], 0
    if elements:
        buckets.append((len(steps.backward), elements))
    buckets[-1] = (len(steps.backward), buckets[-1][1])
    return buckets


_Priced = tuple[int, float]
"""(duration in ns, share of the SMs at work)."""


_NCHW_PASSES = 2.0
"""TF32 convolutions on NCHW tensors are transposed to NHWC and back, which moves their bytes so many times more."""


class _Pricer:
    """Prices kernels on one GPU in one precision. `fused`: the script's element-wise chains are fused (see calibration.py)."""

    def __init__(self, gpu: Gpu, precision: str, calibration: Calibration, *, fused: bool, launchers: int = 1) -> None:
        self._gpu = gpu
        self._launch_ns = launchers * round(gpu.launch_us * 1e3)
        plain = 1e3 * gpu.fp32_tflops
        tensor = 1e3 * {"fp32": 0.0, "tf32": gpu.tf32_tflops or 0.0, "amp": gpu.fp16_tflops}[precision]
        tensor *= calibration.generations.get(gpu.generation, 1.0)
        # Libraries pick the fastest kernel they have: on GPUs with few tensor cores TF32 may lose to fp32.
        conv = max(calibration.conv_tensor * tensor, calibration.conv * plain)
        self._flops_per_ns: dict[OpClass, float] = {
            "conv": conv, "grouped_conv": conv * calibration.grouped_conv, "matmul": calibration.matmul * max(tensor, plain),
        }
        self._bytes_per_ns = calibration.bandwidth * gpu.bandwidth_gb_s
        self._elementwise = calibration.elementwise_fused if fused else calibration.elementwise
        self._nchw_passes = _NCHW_PASSES if precision == "tf32" and calibration.conv_tensor * tensor >= conv else 0.0

    def price(self, kind: Kind, powers: tuple[float, ...]) -> _Priced:
        moved, op_class = value(kind.bytes, powers), kind.op_class
        work = moved / self._bytes_per_ns
        if op_class in ("elementwise", "norm"):
            work *= self._elementwise
        else:
            if op_class != "matmul":
                work *= 1.0 + self._nchw_passes
            # Operations and bytes of one kernel add up. The larger of the two alone (a roofline) would need a constant for each precision.
            work += value(kind.flops, powers) / self._flops_per_ns[op_class]
        return self._kernel(op_class, work, moved)

    def copy(self, elements: int) -> _Priced:
        """One gradient copied into its bucket, or back."""
        return self.moved(8 * elements)

    def moved(self, nbytes: float) -> _Priced:
        return self._kernel("elementwise", nbytes / self._bytes_per_ns, nbytes)

    def _kernel(self, op_class: OpClass, work: float, moved: float) -> _Priced:
        share = min(1.0, moved / _BLOCK_BYTES[op_class] / self._gpu.sms)
        return max(1, round(max(work, _FLOOR_NS[op_class]))), FULL_SM * share

    def phase(self, kernels: Sequence[_Priced]) -> Phase:
        return phase(kernels, launch_ns=self._launch_ns)


def phase(kernels: Sequence[_Priced], *, launch_ns: int) -> Phase:
    """Sum up kernels launched back to back."""
    busy = critical = 0
    active = 0.0
    for position in range(len(kernels), 0, -1):
        duration, share = kernels[position - 1]
        busy += duration
        active += duration * share
        critical = max(critical, position * launch_ns + busy)
    return Phase(
        kernels=len(kernels), busy_ns=busy, launch_ns=len(kernels) * launch_ns, critical_ns=critical,
        sm_active=active / busy if busy else 0.0,
    )


def _decode(gpu: Gpu, batch: int, launchers: int) -> Phase:
    each = max(2_000, round(batch / gpu.decode_images_s * 1e9 / DECODE_KERNELS))
    return phase([(each, FULL_SM * _DECODE_SM)] * DECODE_KERNELS, launch_ns=launchers * round(gpu.launch_us * 1e3))


_DECODE_SM = 0.75
"""Huffman decoding is branchy and fills the SMs less evenly than a convolution: our estimate."""
