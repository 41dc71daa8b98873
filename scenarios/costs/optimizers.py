"""How many kernels PyTorch's multi-tensor optimizers launch, and the bytes each moves.

Owns the launch rule of ATen/native/cuda/MultiTensorApply.cuh: a launch holds at most so many tensors (by the number of lists it works on)
and 320 chunks of 65,536 elements. Must not import torch.
"""

from __future__ import annotations

_CHUNK_ELEMENTS = 65_536
_MAX_BLOCKS = 320
_MAX_TENSORS = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}
"""depth_to_max_tensors of MultiTensorApply.cuh."""

# (lists a launch works on, fp32 values read or written per parameter) of each call of one step.
_CALLS: dict[str, tuple[tuple[int, int], ...]] = {
    # torch.optim.SGD(momentum, weight_decay, foreach): g+wd*p -> new; buf*=m; buf+=g; p-=lr*buf
    "sgd": ((3, 3), (1, 2), (2, 3), (2, 3)),
    # torch.optim.AdamW(fused): one kernel reads p, g, m and v and writes p, m and v
    "adamw": ((4, 7),),
}


def optimizer_launches(optimizer: str, sizes: list[int]) -> list[int]:
    """Bytes moved by each kernel of one optimizer step over fp32 parameters of `sizes` elements."""
    moved: list[int] = []
    for lists, values in _CALLS[optimizer]:
        moved.extend(elements * values * 4 for elements in _launches(sizes, _MAX_TENSORS[lists]))
    return moved


def _launches(sizes: list[int], max_tensors: int) -> list[int]:
    """Elements handled by each launch."""
    launches: list[int] = []
    tensors = blocks = elements = 0
    for size in sizes:
        tensors += 1
        for start in range(0, size, _CHUNK_ELEMENTS):
            chunk = min(_CHUNK_ELEMENTS, size - start)
            blocks, elements = blocks + 1, elements + chunk
            full_tensors = tensors == max_tensors and start + chunk == size
            if full_tensors or blocks == _MAX_BLOCKS:
                launches.append(elements)
                blocks, elements = 0, 0
                tensors = 0 if start + chunk == size else 1
    if elements:
        launches.append(elements)
    return launches
