"""Predicted throughput, scaling and memory of one set-up: what `python -m scenarios predict` prints.

Owns the prediction of published-style figures: ready-made samples, no decoding on the GPU, all ranks simulated by the virtual devices. Must
not import torch.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from scenarios.costs.calibration import CALIBRATION, Calibration
from scenarios.costs.footprint import Path, memory
from scenarios.costs.gpus import GPUS
from scenarios.costs.pricing import step_costs
from scenarios.costs.shapes import StepCosts
from scenarios.virtual.simulate import steady_step_seconds

_STEPS, _WARM_UP = 10, 3


def predict(
    *, model: str, gpu: str, precision: str, batch: int, gpus: int, seq_len: int | None = None,
    accumulate: int = 1, task: str = "finetune", path: Path = "pytorch", calibration: Calibration = CALIBRATION,
) -> dict[str, Any]:
    """Samples per second on one GPU and on `gpus` together, scaling (1.0 is perfect) and memory of one rank.

    `batch` is per GPU and micro-step; `accumulate` micro-steps make one optimizer step. Unknown names raise KeyError.
    """
    one, several = (
        batch * world / micro_step_seconds(
            model=model, gpu=gpu, precision=precision, batch=batch, world=world, seq_len=seq_len, accumulate=accumulate, task=task,
            calibration=calibration,
        )
        for world in (1, gpus)
    )
    parts = memory(model=model, gpu=gpu, precision=precision, batch=batch, world=gpus, seq_len=seq_len, task=task, path=path)
    return {
        "samples_per_second": several,
        "one_gpu_samples_per_second": one,
        "scaling": several / one / gpus,
        "memory_gib": parts.total_gib,
        "fits": parts.total_gib <= GPUS[gpu].memory_gib,
    }


def micro_step_seconds(
    *, model: str, gpu: str, precision: str, batch: int, world: int, seq_len: int | None = None,
    accumulate: int = 1, task: str = "finetune", calibration: Calibration = CALIBRATION,
) -> float:
    """Mean seconds of one micro-step of `world` ranks."""
    costs = step_costs(
        model=model, gpu=gpu, precision=precision, batch=batch, world=world, seq_len=seq_len, task=task, calibration=calibration,
    )
    seconds = _step_seconds(replace(costs, shared_input_ns=0), gpu=gpu, world=world)
    if accumulate > 1:
        alone = step_costs(
            model=model, gpu=gpu, precision=precision, batch=batch, world=1, seq_len=seq_len, task=task, calibration=calibration,
        )
        silent = sum(phase.busy_ns for phase in (alone.forward, *alone.backward)) / 1e9
        seconds = (seconds + (accumulate - 1) * silent) / accumulate
    return seconds + costs.shared_input_ns / 1e9


@lru_cache(maxsize=256)
def _step_seconds(costs: StepCosts, *, gpu: str, world: int) -> float:
    return steady_step_seconds(costs, gpu=gpu, world=world, steps=_STEPS, warm_up=_WARM_UP)
