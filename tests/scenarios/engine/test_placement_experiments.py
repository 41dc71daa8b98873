"""Which process is on which GPU, and what it costs, from real eight-rank runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scenarios.analysis.diagnosis import SURE, diagnose_run
from scenarios.costs.footprint import GUEST_CONTEXT_GIB
from scenarios.record import end_of

pytestmark = pytest.mark.slow


def test_without_set_device_every_process_holds_memory_on_gpu_0_and_nothing_else_changes(run_fresh: Callable[..., Path]) -> None:
    run_dir = run_fresh(scenario="no_set_device", steps=12)
    end, healthy = end_of(run_dir), end_of(run_fresh(scenario="sharded", steps=12))
    assert end is not None
    assert healthy is not None
    first, *others = end["summary"]["gpus"]
    assert (first["processes"], {gpu["processes"] for gpu in others}) == (8, {1})
    assert first["memory_gib"] == pytest.approx(others[0]["memory_gib"] + 7 * GUEST_CONTEXT_GIB)
    assert {gpu["processes"] for gpu in healthy["summary"]["gpus"]} == {1}
    for mine, theirs in zip(end["summary"]["gpus"], healthy["summary"]["gpus"], strict=True):
        assert mine["gpu_util"] == theirs["gpu_util"], "the kernels are the same, by construction"
    assert "8 processes hold memory on GPU 0" in end["sentence"]
    found = diagnose_run(run_dir).findings
    assert (found[0].cause, found[0].rank) == ("guests_on_a_gpu", 0)
    assert all(finding.confidence < SURE for finding in found[1:])


def test_near_the_edge_gpu_0_alone_runs_out_of_memory(run_fresh: Callable[..., Path]) -> None:
    run_dir = run_fresh(scenario="no_set_device", batch=1780)
    end = end_of(run_dir)
    assert end is not None
    assert (end["outcome"], end["expected"], end["summary"]["out_of_memory_ranks"]) == ("out_of_memory", False, [0])
    assert "GPU 0 has a total capacity" in end["error"]
    first, *others = (gpu["peak_memory_gib"] for gpu in end["summary"]["gpus"])
    assert first > 78.5
    assert others == pytest.approx([75.9] * 7, abs=0.2), "the others had room, and waited for it"
    assert end["sentence"].startswith("GPU 0 alone filled up: 79 of 79 GiB.")
    found = diagnose_run(run_dir).findings
    assert [(finding.cause, finding.rank) for finding in found if finding.confidence >= SURE] == [
        ("guests_on_a_gpu", 0), ("batch_too_large", 0),
    ]
