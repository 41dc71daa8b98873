"""Who exchanges gradients with whom, and how often, from real eight-rank runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scenarios.analysis.diagnosis import SURE, diagnose, diagnose_run
from scenarios.costs.gpus import GPUS
from scenarios.record import end_of, head_of, samples_of, spans_of
from scenarios.telemetry import Kind

pytestmark = pytest.mark.slow


def ended(run_dir: Path) -> dict[str, Any]:
    end = end_of(run_dir)
    assert end is not None
    return end


def test_without_no_sync_each_micro_batch_exchanges_what_the_last_alone_has_to(run_fresh: Callable[..., Path]) -> None:
    runs = {name: run_fresh(scenario=name, steps=7) for name in ("accumulate", "accumulate_sync")}
    once, often = (ended(run_dir)["summary"] for run_dir in runs.values())

    def count(name: str, kind: Kind) -> int:
        return sum(span.kind == kind and span.rank == 3 and span.step == 5 for span in spans_of(runs[name]))

    assert count("accumulate", "forward") == count("accumulate_sync", "forward") == 4
    assert count("accumulate_sync", "all_reduce") == 4 * count("accumulate", "all_reduce")
    step_s = {name: summary["samples_per_second"] for name, summary in (("once", once), ("often", often))}
    exposed = [summary["gpus"][3]["exposed_pct"] / summary["samples_per_second"] for summary in (once, often)]
    assert 3 < exposed[1] / exposed[0] < 4.5, "the same samples, four times the exchange"
    assert step_s["once"] > 1.25 * step_s["often"]
    assert len(set(once["replica_checksums"])) == len(set(often["replica_checksums"])) == 1
    assert "they only exchange gradients" in ended(runs["accumulate_sync"])["sentence"]
    assert diagnose_run(runs["accumulate"]).findings[0].cause == "healthy"
    found = diagnose_run(runs["accumulate_sync"]).findings
    assert found[0].cause == "exchanged_too_often"
    assert all(finding.confidence < SURE for finding in found[1:])


@pytest.fixture(scope="module")
def hung(default_run: Callable[[str], Path]) -> Path:
    return default_run("uneven_inputs")


def test_a_rank_with_fewer_batches_leaves_the_others_waiting_until_the_watchdog(hung: Path) -> None:
    end = ended(hung)
    assert (end["outcome"], end["expected"]) == ("timeout", True)
    first, *others = end["summary"]["gpus"]
    assert (first["gpu_util"], first["power_w"]) == (0.0, GPUS["a100-80gb"].idle_w)
    assert min(gpu["gpu_util"] for gpu in others) > 99
    assert min(gpu["spin_pct"] for gpu in others) > 99
    assert max(gpu["power_w"] for gpu in others) < GPUS["a100-80gb"].peak_w / 2
    last = max(sample.end_ns for sample in samples_of(hung))
    assert (last - 1e9 * end["summary"]["virtual_s"]) / 1e9 == pytest.approx(4, abs=0.2), "as long as a collective waits"
    assert "Timed out waiting 4000ms" in end["error"]
    assert end["sentence"].startswith("GPUs 1-7 show 100 % at 1")
    assert "Rank 1 waited in a collective" in end["sentence"]
    assert "it has fewer batches" in end["sentence"]
    assert end["summary"]["epochs_seen"] == pytest.approx(40 / 26, abs=0.001), "not the two of rank 0"
    assert end["rank"] != 0
    found = diagnose_run(hung).findings
    assert (found[0].cause, found[0].rank) == ("never_joined", 0)
    assert all(finding.confidence < SURE for finding in found[1:])
    alone = diagnose(samples_of(hung), (), head_of(hung)).findings
    assert (alone[0].cause, alone[0].rank) == ("never_joined", 0)


def test_how_long_a_hang_takes_to_be_noticed_is_not_in_its_samples(hung: Path, run_fresh: Callable[..., Path]) -> None:
    assert ended(run_fresh(scenario="uneven_inputs"))["summary"]["digest"] == ended(hung)["summary"]["digest"]


def test_join_lets_the_rank_that_is_through_take_part_until_the_others_are(hung: Path, default_run: Callable[[str], Path]) -> None:
    run_dir = default_run("uneven_joined")
    end, ill = ended(run_dir), ended(hung)
    assert end["outcome"] == "finished"
    assert end["summary"]["steps"] == 2 * end["summary"]["steps_per_epoch"] == 2 * ill["summary"]["steps_per_epoch"]
    assert len(set(end["summary"]["replica_checksums"])) == 1, "Join hands the last weights to all"
    first, *others = end["summary"]["gpus"]
    assert first["spin_pct"] > 15 > 2 > max(gpu["spin_pct"] for gpu in others)
    assert min(gpu["gpu_util"] for gpu in end["summary"]["gpus"]) > 99
    assert all(sample.weights_apart == 0 for sample in samples_of(run_dir))
    spans = [span for span in spans_of(run_dir) if span.rank == 0 and span.step == end["summary"]["steps"] - 1]
    assert {span.kind for span in spans} == {"spin", "all_reduce", "wait"}, "nothing to compute, and still there"
    assert diagnose_run(run_dir).findings[0].cause == "healthy"


def test_a_run_that_ends_before_the_batches_do_ends_on_all_ranks(run_fresh: Callable[..., Path]) -> None:
    for scenario, steps in (("uneven_inputs", 6), ("uneven_joined", 22)):
        end = ended(run_fresh(scenario=scenario, gpus=2, epochs=1, batch=1024, steps=steps))
        assert (end["outcome"], end["summary"]["steps"]) == ("finished", steps)
