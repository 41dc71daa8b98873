"""What the knobs of a run do, from real runs of a few steps; and which of them are refused because they would do nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scenarios.config import RunConfig
from scenarios.costs.gpus import GPUS
from scenarios.record import end_of, samples_of, spans_of
from scenarios.summary import one_gpu_epoch_seconds

RunFresh = Callable[..., Path]
pytestmark = pytest.mark.slow


def summary(run_dir: Path) -> dict[str, Any]:
    end = end_of(run_dir)
    assert end is not None
    assert end["outcome"] == "finished"
    return dict(end["summary"])


def means(run_dir: Path, name: str) -> list[float]:
    return [gpu[name] for gpu in summary(run_dir)["gpus"]]


def test_a_hand_off_by_nccl_makes_the_waiting_ranks_spin(run_fresh: RunFresh) -> None:
    run_dir = run_fresh(scenario="rank0_loading", hand_off="nccl", steps=16)
    assert min(means(run_dir, "gpu_util")[1:]) >= 95
    assert max(means(run_dir, "sm_active")[1:]) <= 35
    assert max(means(run_dir, "power_w")[1:]) < GPUS["a100-80gb"].peak_w / 2 < means(run_dir, "power_w")[0]
    assert min(means(run_dir, "spin_pct")[1:]) > 50 > means(run_dir, "spin_pct")[0]


@pytest.mark.parametrize("knobs", [{"scenario": "rank0_loading", "steps": 12}, {"scenario": "sharded", "steps": 24}], ids=str)
def test_preprocessing_on_the_cpu_starves_all_alike(run_fresh: RunFresh, knobs: dict[str, Any]) -> None:
    utils = means(run_fresh(**knobs, preprocess="cpu"), "gpu_util")
    assert max(utils) <= 50
    assert max(utils) - min(utils) <= 5


@pytest.mark.parametrize("knobs", [{"link": "pcie4"}, {"gpu": "rtx4090-24gb"}], ids=str)
def test_a_model_of_few_operations_over_a_slow_link_looks_busy_and_does_little(run_fresh: RunFresh, knobs: dict[str, Any]) -> None:
    run_dir = run_fresh(scenario="tiny_model", model="mlp_wide", steps=40, **knobs)
    assert min(means(run_dir, "gpu_util")) >= 90
    assert max(means(run_dir, "sm_active")) <= 35


def test_a_straggler_holds_all_back_and_is_the_one_that_does_not_wait(run_fresh: RunFresh) -> None:
    base = {"scenario": "sharded", "gpus": 4, "batch": 64, "steps": 24}
    even, slow = summary(run_fresh(**base)), run_fresh(**base, straggler=2, straggler_pct=100)
    ratio = even["samples_per_second"] / summary(slow)["samples_per_second"]
    assert 1.8 < ratio < 2.1
    spins = means(slow, "spin_pct")
    assert spins.index(min(spins)) == 2
    assert min(spins[:2] + spins[3:]) > spins[2] + 20
    assert summary(slow)["speedup_vs_one_gpu"] == pytest.approx(even["speedup_vs_one_gpu"] / ratio, rel=0.03), "one GPU is no straggler"


def test_a_slow_link_makes_collectives_long(run_fresh: RunFresh) -> None:
    def all_reduce_ns(run_dir: Path) -> int:
        return sum(span.end_ns - span.start_ns for span in spans_of(run_dir) if span.kind == "all_reduce" and span.rank == 0)

    base = {"scenario": "sharded", "gpus": 4, "batch": 64, "steps": 24}
    assert all_reduce_ns(run_fresh(**base, link="pcie4")) > 4 * all_reduce_ns(run_fresh(**base))


def test_without_workers_the_training_process_loads_and_the_gpus_wait(run_fresh: RunFresh) -> None:
    base = {"scenario": "sharded", "gpus": 4, "batch": 64, "steps": 24, "preprocess": "cpu"}
    run_dir = run_fresh(**base, workers=0)
    seen = {round(sample.gpu_util or 0.0) for sample in samples_of(run_dir) if sample.rank == 0}
    assert len(seen) >= 3
    assert min(seen) == 0, "a saw-tooth: while the process loads, the GPU idles"
    assert summary(run_dir)["samples_per_second"] < summary(run_fresh(**base))["samples_per_second"] / 4


def test_one_gpu_is_compared_under_the_same_workers_but_without_link_and_straggler() -> None:
    base: dict[str, Any] = {"scenario": "sharded", "preprocess": "cpu"}
    plain = one_gpu_epoch_seconds(RunConfig.parse(base))
    assert one_gpu_epoch_seconds(RunConfig.parse({**base, "link": "pcie3", "straggler": 0})) == plain
    assert one_gpu_epoch_seconds(RunConfig.parse({**base, "workers": 1})) > 2 * plain


def test_a_scenario_has_defaults_of_its_own_and_a_script_that_decides_a_knob_keeps_it() -> None:
    starved = RunConfig.parse({"scenario": "starved_loader"})
    assert (starved.workers, starved.preprocess) == (0, "cpu")
    assert RunConfig.parse({"scenario": "starved_loader", "preprocess": "gpu"}).preprocess == "gpu"
    assert RunConfig.parse({"scenario": "starved_loader", "model": "mlp"}).preprocess == "gpu", "rows need no decoding"
    with pytest.raises(ValueError, match="workers='4': must be 0, as the script of starved_loader decides it"):
        RunConfig.parse({"scenario": "starved_loader", "workers": 4})
    assert RunConfig.applied({"scenario": "starved_loader", "workers": 4}) == starved
    healthy = RunConfig.parse({"scenario": "sharded"})
    assert one_gpu_epoch_seconds(starved) == one_gpu_epoch_seconds(healthy), "its mistake is not the one GPU's"


def test_knobs_without_effect_are_refused_by_themselves_and_dropped_from_a_set() -> None:
    for values, words in (
        ({"scenario": "sharded", "hand_off": "nccl"}, "hand_off='nccl': must be cpu, as sharded hands no shards out"),
        ({"scenario": "rank0_loading", "model": "mlp", "preprocess": "cpu"}, "preprocess='cpu': must be gpu, as the samples of mlp"),
    ):
        with pytest.raises(ValueError, match=words) as fault:
            RunConfig.parse(values)
        assert "\n" not in str(fault.value)
    lesson_knobs = {"hand_off": "nccl", "preprocess": "cpu", "seed": 4}
    assert RunConfig.applied({"scenario": "tiny_model", **lesson_knobs}) == RunConfig.parse({"scenario": "tiny_model", "seed": 4})
    kept = RunConfig.applied({"scenario": "rank0_loading", **lesson_knobs})
    assert (kept.hand_off, kept.preprocess) == ("nccl", "cpu")
    with pytest.raises(ValueError, match="gpus='9'"):
        RunConfig.applied({"scenario": "sharded", "gpus": 9})
