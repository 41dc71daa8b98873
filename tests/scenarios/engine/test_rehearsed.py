"""A run rehearsed in one process has the summary of the real one, digest of all samples included: lessons are checked on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from scenarios.config import RunConfig
from scenarios.record import summary_of
from tests.rehearsed import REHEARSED, TRAINED, rehearsed_summary

pytestmark = pytest.mark.slow

RUNS: list[dict[str, Any]] = [
    {"scenario": "sharded", "gpus": 3, "link": "pcie4", "straggler": 1, "preprocess": "cpu", "workers": 2, "steps": 10},
    {"scenario": "sharded", "gpus": 1, "epochs": 1, "model": "mlp", "batch": 8192},
    {"scenario": "unsharded", "gpus": 2, "model": "bert_large", "batch": 8, "steps": 12, "seed": 5},
    {"scenario": "rank0_loading", "gpus": 3, "hand_off": "nccl", "steps": 10},
    {"scenario": "large_batch", "gpus": 2, "batch": 2048, "seed": 2},
    {"scenario": "scheduler_desync", "gpus": 3, "steps": 14},
    {"scenario": "tiny_model", "gpus": 2, "steps": 10, "gpu": "h100-80gb"},
    {"scenario": "starved_loader", "gpus": 2, "steps": 6},
    {"scenario": "no_set_epoch", "gpus": 2, "model": "mlp", "batch": 8192, "epochs": 2},
    {"scenario": "rank0_validation", "gpus": 2, "model": "mlp", "batch": 1024, "steps": 14},
    {"scenario": "rank0_checkpoint", "gpus": 2, "steps": 14},
    {"scenario": "lopsided_shards", "gpus": 3, "steps": 10},
    {"scenario": "accumulate", "gpus": 2, "steps": 5},
    {"scenario": "accumulate_sync", "gpus": 2, "steps": 5},
    {"scenario": "uneven_inputs", "gpus": 2, "model": "mlp", "batch": 8192, "epochs": 1},
    {"scenario": "uneven_joined", "gpus": 2, "model": "mlp", "batch": 8192, "epochs": 1},
    {"scenario": "no_set_device", "gpus": 3, "steps": 4},
    {"scenario": "no_set_device", "gpus": 4, "batch": 1800, "steps": 4},
]


def test_every_scenario_that_is_rehearsed_is_compared() -> None:
    assert {run["scenario"] for run in RUNS} == REHEARSED


@pytest.mark.parametrize("knobs", RUNS, ids=lambda knobs: f"{knobs['scenario']}-{knobs['gpus']}")
def test_the_summary_is_that_of_a_real_run(run_fresh: Callable[..., Path], knobs: dict[str, Any]) -> None:
    real = summary_of(run_fresh(**knobs, backend="virtual"))
    assert real is not None
    weights = knobs["scenario"] in TRAINED
    rehearsed = rehearsed_summary(RunConfig.parse(knobs), weights=weights)
    agreement = (_which_agree(rehearsed.pop("replica_checksums")), _which_agree(real.pop("replica_checksums")))
    assert rehearsed == real
    assert not weights or agreement[0] == agreement[1]


def _which_agree(checksums: Sequence[str | None]) -> list[int | None]:
    return [None if checksum is None else checksums.index(checksum) for checksum in checksums]
