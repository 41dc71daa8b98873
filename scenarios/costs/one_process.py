"""What one process that drives several GPUs pays in each step (`torch.nn.DataParallel`): replicas, threads, copies, GPU 0's memory.

Owns those prices and their sources. Kernels, links and the memory of one GPU are `pricing.py`'s. Must not import torch.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from scenarios.costs.footprint import memory
from scenarios.costs.gpus import GPUS
from scenarios.costs.models import MODELS
from scenarios.costs.pricing import FULL_SM, phase, step_costs
from scenarios.costs.shapes import EMPTY, MemoryParts, Phase, StepCosts
from scenarios.costs.tables import program, table_name
from scenarios.costs.transfers import collective_ns, link_of

PIECES: dict[str, tuple[int, int, int]] = {
    "resnet50": (148, 161, 159), "resnet101": (284, 314, 312), "resnext101_32x8d": (284, 314, 312), "bert_large": (247, 391, 0),
    "gpt2_medium": (246, 388, 0), "mlp": (545, 1084, 0), "mlp_wide": (21, 36, 0),
}
"""Modules, parameters and buffers of a network, by its table; a test counts them."""

REPLICA_NS = 7_100
"""Python's work for one module, parameter or buffer of one replica: `Module._replicate_for_data_parallel` and the attributes that are set.
Measured on torch 2.13 with the broadcast left out: 26.6 ms for ResNet-50 on eight GPUs, 36.5 for BERT-large and 95 for 1,629 pieces of an
MLP, which is 7.1 to 7.3 us each."""

TENSOR_NS = 5_000
"""The host's work for one tensor of one replica in a coalesced broadcast or sum, packing and unpacking: pytorch/pytorch#3930 takes 34 ms
for 3,000 small tensors and two GPUs, 4 ms when they are one tensor."""

THREAD_NS = 100_000
"""Starting and joining one thread of a forward pass. Our assumption."""

COALESCED_BYTES = 10 * 2**20
"""Into pieces of this size `torch.nn.parallel.comm` packs what it broadcasts or sums."""

LOGIT_COPIES = 3
"""Of the whole batch's outputs, on GPU 0: as gathered, their log-softmax, their gradient."""


@lru_cache(maxsize=1024)
def costs_by_threads(*, model: str, gpu: str, precision: str, batch: int, gpus: int, seq_len: int | None = None) -> StepCosts:
    """The step of one GPU of `gpus`, whose forward passes are launched by as many threads of one interpreter.

    They take turns: each launch of a GPU's forward pass waits for those of all others, which is what the global interpreter lock means
    here (handing it over is taken to cost nothing). Backward passes are launched by autograd, which has a thread for each GPU and needs no
    interpreter. Nothing is copied into buckets.
    """
    shared = step_costs(
        model=model, gpu=gpu, precision=precision, batch=batch, world=1, seq_len=seq_len, launchers=gpus,
    )
    alone = step_costs(model=model, gpu=gpu, precision=precision, batch=batch, world=1, seq_len=seq_len)
    return replace(alone, forward=shared.forward, decode=shared.decode)


def replicate_host_ns(*, model: str, gpus: int) -> int:
    """The host's work to make a replica of the network for each GPU. Where nothing else is launched meanwhile, GPUs are idle for it."""
    modules, parameters, buffers = PIECES[MODELS[model].table]
    return gpus * ((modules + parameters + buffers) * REPLICA_NS + (parameters + buffers) * TENSOR_NS)


def reduce_host_ns(*, model: str, gpus: int) -> int:
    """The host's work to sum the gradients of all replicas on GPU 0."""
    return gpus * PIECES[MODELS[model].table][1] * TENSOR_NS


def weights_bytes(model: str) -> int:
    """What is broadcast to each replica, and summed from each."""
    return 4 * program(table_name(model, "finetune"), amp=False).parameters


def broadcast_ns(*, model: str, gpu: str, gpus: int, link: str = "") -> int:
    """The network from GPU 0 to all others, by NCCL; as long as the sum of their gradients on GPU 0."""
    left, total = weights_bytes(model), 0
    while left > 0:
        total += collective_ns(min(left, COALESCED_BYTES), gpu=gpu, world=gpus, link=link)
        left -= COALESCED_BYTES
    return total


def peer_copy_ns(nbytes: int, *, gpu: str, link: str = "") -> int:
    """One copy from GPU to GPU."""
    joined = link_of(gpu, link)
    return round(joined.latency_us * 1e3 + nbytes / joined.bus_gb_s)


def outputs_bytes(*, model: str, batch: int) -> int:
    """What a forward pass of `batch` samples returns, in fp32."""
    return 4 * batch * MODELS[model].outputs_per_sample


@lru_cache(maxsize=1024)
def memory_of(
    *, model: str, gpu: str, precision: str, batch: int, gpus: int, rank: int, seq_len: int | None = None,
) -> MemoryParts:
    """Memory of one of `gpus` GPUs at the peak of a step, with `batch` samples for each.

    Every GPU holds a copy of the weights and the gradients of its replica. Only GPU 0 has the optimizer's state, the sum of the gradients,
    the batch of all GPUs, and the outputs of all.
    """
    one = memory(model=model, gpu=gpu, precision=precision, batch=batch, world=gpus, seq_len=seq_len)
    if gpus == 1:
        return one
    if rank > 0:
        return replace(one, gradients_gib=one.parameters_gib, optimizer_gib=0.0)
    others = (gpus - 1) * LOGIT_COPIES * outputs_bytes(model=model, batch=batch)
    batches = gpus * batch * MODELS[model].encoded_bytes_per_sample
    return replace(one, activations_gib=one.activations_gib + (others + batches) / 2**30)


def loss(*, model: str, gpu: str, batch: int, gpus: int) -> Phase:
    """The loss and its gradient for the other GPUs' outputs, which GPU 0 computes as well: each of their copies read and written once."""
    moved = 2 * LOGIT_COPIES * (gpus - 1) * outputs_bytes(model=model, batch=batch)
    if not moved:
        return EMPTY
    return phase([(max(1, round(moved / GPUS[gpu].bandwidth_gb_s)), FULL_SM)], launch_ns=round(GPUS[gpu].launch_us * 1e3))
