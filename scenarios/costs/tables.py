"""Reads the committed tables of walked training steps.

Owns the reading and the evaluation of their polynomials in batch and sequence length; `walk.py` writes them. Must not import torch.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

from scenarios.costs.models import MODELS

OpClass = Literal["conv", "grouped_conv", "matmul", "norm", "elementwise"]

_FOLDER = Path(__file__).with_name("tables")


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """Kernels that move the same bytes and do the same operations; coefficients of `terms`."""

    op_class: OpClass
    half: bool
    """Computed in 16 bits."""
    flops: tuple[float, ...]
    bytes: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Program:
    """One training step in one numeric regime (fp32 and tf32 share one)."""

    kinds: tuple[Kind, ...]
    forward: tuple[int, ...]
    """Kernels in launch order, as indices into `kinds`."""
    backward: tuple[int, ...]
    ready: tuple[tuple[int, int], ...]
    """(backward kernels launched before, elements) of each gradient, in the order they become ready."""
    optimizer: tuple[int, ...]
    """Bytes moved by each launch of the optimizer."""
    state_copies: int
    """fp32 values of optimizer state per parameter."""
    alive: tuple[tuple[float, ...], ...]
    """Bytes alive at the moments that can be the peak, without parameters, gradients and optimizer state."""

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Kernels of each kind in forward and backward together."""
        found = Counter(self.forward + self.backward)
        return tuple(found[index] for index in range(len(self.kinds)))

    @cached_property
    def parameters(self) -> int:
        return sum(elements for _, elements in self.ready)


def table_name(model: str, task: str) -> str:
    """The table of a model; BERT's pre-training has heads of its own."""
    table = MODELS[model].table
    return f"{table}_pretrain" if table == "bert_large" and task == "pretrain" else table


@lru_cache(maxsize=64)
def program(name: str, *, amp: bool) -> Program:
    """The walked step of table `name`. Raises KeyError for a name without a table."""
    path = _FOLDER / f"{name}.json"
    if name not in MODELS and not path.exists():
        raise KeyError(name)
    found = json.loads(path.read_text())["amp" if amp else "float"]
    return Program(
        kinds=tuple(
            Kind(op_class=op_class, half=dtype == "half", flops=tuple(flops), bytes=tuple(moved))
            for op_class, dtype, flops, moved in found["kinds"]
        ),
        forward=tuple(found["forward"]), backward=tuple(found["backward"]),
        ready=tuple((kernels, elements) for kernels, elements in found["ready"]),
        optimizer=tuple(found["optimizer"]), state_copies=found["state_copies"], alive=tuple(map(tuple, found["alive"])),
    )


def terms(*, batch: int, seq_len: int | None) -> tuple[float, ...]:
    """The powers that coefficients belong to: 1, s, s*s, b, b*s, b*s*s; or 1, b."""
    if seq_len is None:
        return (1.0, float(batch))
    return (1.0, float(seq_len), float(seq_len**2), float(batch), float(batch * seq_len), float(batch * seq_len**2))


def value(coefficients: tuple[float, ...], powers: tuple[float, ...]) -> float:
    return sum(c * p for c, p in zip(coefficients, powers, strict=True))
