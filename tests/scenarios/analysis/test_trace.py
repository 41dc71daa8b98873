"""Exported traces: readable by Perfetto, and HolisticTraceAnalysis finds the shares that we state."""

from __future__ import annotations

import json
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hta.trace_analysis import TraceAnalysis

from scenarios.analysis.breakdown import gpu_shares
from scenarios.analysis.measured_spans import breakdown_of_run
from scenarios.analysis.trace import THREADS, chrome_trace, trace_events, trace_lines, write_rank_traces
from scenarios.cli_trace import TraceTarget
from scenarios.record import end_of, spans_of
from tests.scenarios.analysis.made import span
from tests.scenarios.conftest import RunFresh

CASES: dict[str, dict[str, Any]] = {
    "sharded": {"scenario": "sharded"},
    "launch-bound": {"scenario": "tiny_model"},
    "rank 0 feeds over the host": {"scenario": "rank0_loading"},
    "rank 0 feeds over NCCL": {"scenario": "rank0_loading", "hand_off": "nccl"},
    "input-bound": {"scenario": "sharded", "preprocess": "cpu"},
    "communication-bound": {"scenario": "sharded", "model": "mlp_wide", "link": "pcie4"},
}


def analysed(run_dir: Path, folder: Path) -> TraceAnalysis:
    write_rank_traces(run_dir, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TraceAnalysis(trace_dir=str(folder), include_last_profiler_step=True)


@pytest.mark.parametrize("case", CASES)
def test_hta_finds_our_shares(case: str, run_fresh: RunFresh, tmp_path: Path) -> None:
    run_dir = run_fresh(**CASES[case], gpus=4, steps=6)
    assert (end_of(run_dir) or {})["outcome"] == "finished"
    analysis = analysed(run_dir, tmp_path / "trace")
    table = analysis.get_temporal_breakdown(visualize=False).set_index("rank")
    ours = gpu_shares(spans_of(run_dir), warm_up_steps=0)
    assert list(table.index.sort_values()) == [shares.rank for shares in ours] == [0, 1, 2, 3]
    for shares in ours:
        theirs = table.loc[shares.rank]
        assert theirs["idle_time_pctg"] == pytest.approx(100 * shares.idle, abs=1)
        assert theirs["compute_time_pctg"] == pytest.approx(100 * shares.compute, abs=1)
        assert theirs["non_compute_time_pctg"] == pytest.approx(100 * (shares.communication + shares.copies), abs=1)


def test_hta_finds_how_much_communication_is_hidden(run_fresh: RunFresh, tmp_path: Path) -> None:
    run_dir = run_fresh(scenario="sharded", gpus=4, steps=6, gpu="rtx4090-24gb", batch=64)
    analysis = analysed(run_dir, tmp_path / "trace")
    overlap = analysis.get_comm_comp_overlap(visualize=False).set_index("rank")["comp_comm_overlap_pctg"]
    for rank, pct in overlap.items():
        mine = [made for made in spans_of(run_dir) if made.rank == rank]
        total_ns = sum(made.end_ns - made.start_ns for made in mine if made.stream == "comm")
        shares = next(shares for shares in gpu_shares(mine, warm_up_steps=0))
        device = [made for made in mine if made.stream != "host"]
        window_ns = max(made.end_ns for made in device) - min(made.start_ns for made in device)
        assert pct == pytest.approx(100 * (1 - shares.communication * window_ns / total_ns), abs=1)


def test_hta_names_the_steps(run_fresh: RunFresh, tmp_path: Path) -> None:
    analysis = analysed(run_fresh(scenario="sharded", gpus=4, steps=6), tmp_path / "trace")
    assert analysis.t.get_iterations(0) == [0, 1, 2, 3, 4, 5]


def test_one_file_holds_all_ranks_for_perfetto(run_fresh: RunFresh) -> None:
    run_dir = run_fresh(scenario="rank0_loading", gpus=4, steps=6)
    trace = json.loads("".join(trace_lines(run_dir)))
    assert trace == json.loads(json.dumps(chrome_trace(run_dir)))
    named = {(event["pid"], event["args"]["name"]) for event in trace["traceEvents"] if event["name"] == "process_name"}
    assert named == {(rank, f"rank {rank}") for rank in range(4)}
    # On one thread events follow one another: Perfetto would draw one of two that cross in the wrong place.
    for rank in range(4):
        for thread in THREADS.values():
            mine = [event for event in trace["traceEvents"] if event["ph"] == "X" and (event["pid"], event["tid"]) == (rank, thread)]
            mine.sort(key=lambda event: (event["ts"], event["ts"] + event["dur"]))
            assert all(left["ts"] + left["dur"] <= right["ts"] for left, right in pairwise(mine))


def test_a_span_with_launch_gaps_is_as_busy_in_the_trace() -> None:
    kernels = [event for event in trace_events([span(0, "compute", "forward", 0, 3, 13, busy=0.3)]) if event.get("cat") == "kernel"]
    assert len(kernels) > 10
    assert sum(kernel["dur"] for kernel in kernels) == pytest.approx(3000, abs=len(kernels))
    assert (kernels[0]["ts"], kernels[-1]["ts"] + kernels[-1]["dur"]) == (3000, 13000)
    assert len([event for event in trace_events([span(0, "compute", "forward", 0, 3, 13)]) if event.get("cat") == "kernel"]) == 1


def test_a_folder_gets_one_file_a_rank_and_a_file_gets_all(run_fresh: RunFresh, tmp_path: Path) -> None:
    run_dir = run_fresh(scenario="sharded", gpus=4, steps=6)
    TraceTarget.parse(f"{tmp_path}/new/").write(run_dir)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [f"rank-{rank}.json" for rank in range(4)]
    assert json.loads((tmp_path / "new/rank-2.json").read_text())["distributedInfo"] == {"backend": "nccl", "rank": 2, "world_size": 4}
    assert TraceTarget.parse(str(tmp_path)).per_rank, "a folder that exists needs no slash"
    TraceTarget.parse(f"{tmp_path}/all.json").write(run_dir)
    assert {event["pid"] for event in json.loads((tmp_path / "all.json").read_text())["traceEvents"]} == {0, 1, 2, 3}
    for unusable, why in (("all.json/", "without /"), ("no/where/", "exists"), ("no/where.json", "exists")):
        with pytest.raises(ValueError, match=why):
            TraceTarget.parse(f"{tmp_path}/{unusable}")


def test_a_record_without_spans_is_an_empty_trace(tmp_path: Path) -> None:
    assert json.loads("".join(trace_lines(tmp_path)))["traceEvents"] == []
    assert write_rank_traces(tmp_path, tmp_path / "trace") == []
    assert breakdown_of_run(tmp_path) == ()
