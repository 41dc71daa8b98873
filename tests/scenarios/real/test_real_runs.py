"""Whole runs by the code for real GPUs, as far as it runs without one: the ranks compute on the CPU over gloo, NVML is the stub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scenarios.analysis.measured_spans import breakdown_of_run
from scenarios.analysis.trace import chrome_trace
from scenarios.record import csv_lines, end_of, head_of, read_events, samples_of, spans_of
from tests.nvml.build import library_folder

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
gpus 2
gpu * name NVIDIA H200
gpu * total_mib 143771
gpu * limit_mw 700000
gpu * util 93
gpu * gpm_sm 71
gpu * power_mw 512000
gpu * used_mib 20480
gpu 0 processes 815:20000
gpu 1 lost 1
"""
CONFIGS: tuple[dict[str, Any], ...] = (
    {"scenario": "tiny_model", "gpus": 2, "batch": 4, "steps": 6, "workers": 1},
    {"scenario": "rank0_loading", "model": "mlp", "gpus": 2, "batch": 4, "steps": 4, "workers": 0},
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """The records of CONFIGS."""
    folder = tmp_path_factory.mktemp("real")
    script = folder / "nvml.script"
    script.write_text(SCRIPT)
    env = {
        **os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
        "LD_LIBRARY_PATH": str(library_folder()), "NVML_STUB_SCRIPT": str(script),
    }  # fmt: skip
    env.pop("CUDA_VISIBLE_DEVICES", None)
    command = [sys.executable, "-m", "tests.scenarios.real.real_runs", str(folder), *map(json.dumps, CONFIGS)]
    subprocess.run(command, cwd=ROOT, env=env, check=True, timeout=170)
    return tuple(folder / str(number) for number in range(len(CONFIGS)))


def test_a_run_on_real_gpus_is_a_record_like_any_other(folders: tuple[Path, ...]) -> None:
    run_dir = folders[0]
    head, end = head_of(run_dir), end_of(run_dir)
    assert (head["gpu"], head["source"], head["memory_limit_gib"], head["power_limit_w"]) == ("NVIDIA H200", "nvml", 140.4, 700.0)
    assert end is not None
    assert end["outcome"] == "finished", end
    summary = end["summary"]
    assert (summary["source"], summary["steps"], summary["unique_fraction"]) == ("nvml", 6, 1.0)
    assert summary["speedup_vs_one_gpu"] is None, "what one GPU would take was not measured"
    assert summary["samples_per_second"] > 0
    assert summary["memory_limit_gib"] == 140.4
    assert len(set(summary["replica_checksums"])) == 1
    assert summary["replica_checksums"][0]
    first = summary["gpus"][0]
    assert (first["gpu_util"], first["sm_active"], first["spin_pct"], first["memory_gib"], first["power_w"]) == (93, 71, None, 20, 512)
    samples = samples_of(run_dir)
    assert [sample.end_ns for sample in samples[::2]] == [200_000_000 * number for number in range(1, len(samples) // 2 + 1)]
    assert {(sample.gpu_util, sample.sm_active, sample.power_w, sample.spin_pct) for sample in samples if sample.rank == 0} == {
        (93.0, 71.0, 512.0, None)
    }
    assert all(line.startswith("nvml,") for line in list(csv_lines(run_dir))[1:])


def test_a_gpu_that_falls_off_the_bus_ends_its_lane_and_not_the_run(folders: tuple[Path, ...]) -> None:
    end = end_of(folders[0])
    lanes = [event["data"] for event in read_events(folders[0]) if event["event"] == "lane"]
    assert end is not None
    assert [lane["rank"] for lane in lanes] == [1]
    assert "fell off the bus" in lanes[0]["message"]
    assert end["lanes"] == {"1": lanes[0]["message"]}
    assert samples_of(folders[0])[-1].gpu_util is None, "a gap, not 0"


def test_its_spans_say_where_a_step_s_time_goes(folders: tuple[Path, ...]) -> None:
    kinds = {(span.stream, span.kind) for span in spans_of(folders[0])}
    assert kinds >= {("host", "load"), ("compute", "forward"), ("compute", "backward"), ("compute", "optimizer"), ("copy", "copy")}
    rank = breakdown_of_run(folders[0])[0]
    assert sum(rank.parts_ns.values()) == rank.window_ns
    trace = chrome_trace(folders[0])
    assert trace["source"] == "nvml"
    assert not any("sm_active" in event.get("args", {}) for event in trace["traceEvents"]), "not known is not 0"
    assert rank.share("forward", "backward", "optimizer", "all_reduce") > 0.5


def test_a_hand_off_over_the_host_goes_through_gloo(folders: tuple[Path, ...]) -> None:
    end = end_of(folders[1])
    assert end is not None
    assert (end["outcome"], end["summary"]["steps"], end["summary"]["unique_fraction"]) == ("finished", 4, 1.0), end
    spans = list(spans_of(folders[1]))
    assert {span.rank for span in spans if span.kind == "scatter"} == {0}
    assert {span.rank for span in spans if span.kind == "wait"} == {1}
    assert {span.rank for span in spans if span.kind == "copy"} == {0}
