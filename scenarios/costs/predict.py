"""Predicted throughput, scaling and memory of one set-up: what `python -m scenarios predict` prints.

Owns the prediction of published-style figures: no decoding on the GPU, all ranks simulated by the virtual devices, then what published runs
lose beside them (an input pipeline, cards that differ). Must not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal

from scenarios.costs.calibration import CALIBRATION, Calibration
from scenarios.costs.footprint import Path, memory
from scenarios.costs.gpus import GPUS
from scenarios.costs.pricing import input_pipeline_s, step_costs
from scenarios.costs.shapes import StepCosts
from scenarios.virtual.simulate import steady_step_seconds

_STEPS, _WARM_UP = 10, 3

Input = Literal["loader", "synthetic"]
"""A declared path of published scripts: an input pipeline that can stall a step, or ready-made samples."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SetUp:
    """What one published figure is about, whatever the number of GPUs."""

    model: str
    gpu: str
    precision: str
    batch: int
    """Per GPU and micro-step."""
    seq_len: int | None = None
    accumulate: int = 1
    """Micro-steps that make one optimizer step."""
    task: str = "finetune"
    link: str = ""
    network: str = ""
    input: Input = "loader"


def predict(
    *, model: str, gpu: str, precision: str, batch: int, gpus: int, seq_len: int | None = None, accumulate: int = 1,
    task: str = "finetune", path: Path = "pytorch", nodes: int = 1, network: str = "", link: str = "", input: Input = "loader",
    calibration: Calibration = CALIBRATION,
) -> dict[str, Any]:
    """Samples per second on one GPU and on `gpus` of each of `nodes` together, scaling (1.0 is perfect) and memory of one rank.

    Unknown names raise KeyError.
    """
    setup = SetUp(
        model=model, gpu=gpu, precision=precision, batch=batch, seq_len=seq_len, accumulate=accumulate, task=task, link=link,
        network=network, input=input,
    )
    ranks = gpus * nodes
    one = batch / micro_step_seconds(setup, calibration=calibration)
    several = batch * ranks / micro_step_seconds(setup, gpus=gpus, nodes=nodes, calibration=calibration)
    parts = memory(model=model, gpu=gpu, precision=precision, batch=batch, world=ranks, seq_len=seq_len, task=task, path=path)
    return {
        "samples_per_second": several,
        "one_gpu_samples_per_second": one,
        "scaling": several / one / ranks,
        "memory_gib": parts.total_gib,
        "fits": parts.total_gib <= GPUS[gpu].memory_gib,
    }


def micro_step_seconds(setup: SetUp, *, gpus: int = 1, nodes: int = 1, calibration: Calibration = CALIBRATION) -> float:
    """Mean seconds of one micro-step of published runs on `gpus` of each of `nodes`."""
    return published_seconds(
        setup, device_seconds(setup, gpus=gpus, nodes=nodes, calibration=calibration), gpus=gpus, nodes=nodes, calibration=calibration
    )


def device_seconds(setup: SetUp, *, gpus: int = 1, nodes: int = 1, calibration: Calibration = CALIBRATION) -> float:
    """The same on the virtual devices: cards that are all alike, samples that are there in time."""
    priced = {
        "model": setup.model, "gpu": setup.gpu, "precision": setup.precision, "batch": setup.batch, "seq_len": setup.seq_len,
        "task": setup.task, "calibration": calibration,
    }
    seconds = _step_seconds(
        step_costs(world=gpus * nodes, **priced), gpu=setup.gpu, world=gpus * nodes, link=setup.link, nodes=nodes,
        network=setup.network if nodes > 1 else "",
    )
    if setup.accumulate > 1:
        alone = step_costs(world=1, **priced)
        silent = sum(phase.busy_ns for phase in (alone.forward, *alone.backward)) / 1e9
        seconds = (seconds + (setup.accumulate - 1) * silent) / setup.accumulate
    return seconds


def published_seconds(setup: SetUp, device_s: float, *, gpus: int, nodes: int, calibration: Calibration) -> float:
    """What `device_s` on the virtual devices is in a published run: the slowest card decides, and the host feeds all of them."""
    step_s = device_s * (1.0 + calibration.card_spread * slowest_of(gpus * nodes))
    if setup.input == "synthetic":
        return step_s
    return stalled(step_s, input_pipeline_s(model=setup.model, gpu=setup.gpu, batch=setup.batch, ranks=gpus, calibration=calibration))


def slowest_of(cards: int) -> float:
    """By how many standard deviations the slowest of so many cards is slower than the mean (Blom's approximation for a normal spread)."""
    return NormalDist().inv_cdf((cards - 0.375) / (cards + 0.25))


def stalled(step_s: float, input_s: float) -> float:
    """A step that overlaps with preparing the next batch: the longer of the two, rounded off where they are close, because both vary."""
    return float((step_s**_SHARPNESS + input_s**_SHARPNESS) ** (1.0 / _SHARPNESS))


_SHARPNESS = 4
"""Chosen: equal means then cost 19 %."""


@lru_cache(maxsize=512)
def _step_seconds(costs: StepCosts, *, gpu: str, world: int, link: str, nodes: int, network: str) -> float:
    return steady_step_seconds(costs, gpu=gpu, world=world, steps=_STEPS, warm_up=_WARM_UP, link=link, nodes=nodes, network=network)
