"""How much GPU memory one rank needs during a training step.

Owns the memory model: counted bytes (parameters, gradients, optimizer state, the peak of living activations) plus a sum for what is not
counted (workspaces, cached blocks, CUDA context). Must not import torch.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from scenarios.costs.gpus import GPUS
from scenarios.costs.models import MODELS
from scenarios.costs.shapes import MemoryParts
from scenarios.costs.tables import program, table_name, terms, value

Path = Literal["pytorch", "tensorflow"]

_GIB = 2**30
_CONTEXT_GIB = 0.7
"""CUDA context with the modules of cuBLAS, cuDNN and PyTorch's own kernels loaded: 0.5-0.8 GiB by nvidia-smi."""
GUEST_CONTEXT_GIB = 0.5
"""The CUDA context of another process that uses the GPU for nothing else. Our assumption, at the low end of what is reported:
from half a GiB to 1,369 MiB (pytorch discussion 66080, where copies of the weights came with it); pytorch/examples#1142 names the cause."""
_NCCL_GIB = 0.6
"""Eight ranks against one: 28.3 and 27.6 GiB, reference/out_of_memory.csv (FlagPerf)."""
_WORKSPACE_GIB = 1.0
"""cuBLAS and cuDNN workspaces and blocks the allocator keeps."""
_NCHW_BLOCKS = 3
"""fp32 and TF32 convolutions on NCHW tensors work on transposed copies of what they read and write; the allocator keeps such a workspace of
the largest layer for the forward pass and for each of the two gradients. Reasoned, not fitted: 25.3 GiB against 27.6 published."""
_TENSORFLOW_GIB = 5.0
"""Static memory that the TensorFlow scripts of the published rows hold beyond PyTorch's: a declared path."""


@lru_cache(maxsize=64)
def checkpoint_bytes(*, model: str, task: str = "finetune") -> int:
    """What has to be kept to go on training later: parameters and optimizer state. Unknown names raise KeyError."""
    steps = program(table_name(model, task), amp=False)
    return round(4 * steps.parameters * (1 + steps.state_copies))


@lru_cache(maxsize=1024)
def memory(
    *, model: str, gpu: str, precision: str, batch: int, world: int,
    seq_len: int | None = None, task: str = "finetune", path: Path = "pytorch", guests: int = 0,
) -> MemoryParts:
    """Memory of one rank's GPU, of `world`, at the peak of a step with `batch` samples, in GiB. Unknown names raise KeyError.

    `guests`: other processes that hold a context on it.
    """
    if gpu not in GPUS:
        raise KeyError(gpu)
    facts = MODELS[model]
    steps = program(table_name(model, task), amp=precision == "amp")
    powers = terms(batch=batch, seq_len=(seq_len or facts.seq_len) if facts.seq_len else None)
    parameters = 4 * steps.parameters / _GIB
    activations = max(value(moment, powers) for moment in steps.alive) / _GIB
    convolutions = [value(kind.bytes, powers) for kind in steps.kinds if kind.op_class in ("conv", "grouped_conv")]
    transposed = 0.0 if precision == "amp" else _NCHW_BLOCKS * max(convolutions, default=0.0) / _GIB
    several = world > 1
    return MemoryParts(
        parameters_gib=parameters,
        # DDP keeps every gradient a second time, in its bucket (gradient_as_bucket_view is off by default).
        gradients_gib=parameters * (2 if several else 1),
        optimizer_gib=parameters * steps.state_copies,
        activations_gib=activations,
        workspace_gib=_WORKSPACE_GIB + transposed + (_TENSORFLOW_GIB if path == "tensorflow" else 0.0),
        context_gib=_CONTEXT_GIB + (_NCCL_GIB if several else 0.0) + guests * GUEST_CONTEXT_GIB,
    )
