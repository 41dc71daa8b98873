"""Real GPUs under torchrun: each rank's GPU is sampled beside it, and what comes of it is a record like any other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scenarios.backend import Choice
from scenarios.cluster.importing import import_folder
from scenarios.cluster.parts import PartReader, part_path
from scenarios.cluster.wire import checked
from scenarios.config import RunConfig
from scenarios.record import head_of, read_events, samples_of
from scenarios.run_folder import RunFolder
from scenarios.worker.node_backend import agreement
from tests.nvml.build import library_folder

ROOT = Path(__file__).resolve().parents[3]


def run_rank(tmp_path: Path, script: str, seconds: float = 1.5) -> subprocess.CompletedProcess[str]:
    (tmp_path / "nvml.script").write_text(script)
    env = {**os.environ, "LD_LIBRARY_PATH": str(library_folder()), "NVML_STUB_SCRIPT": str(tmp_path / "nvml.script")}
    env.pop("CUDA_VISIBLE_DEVICES", None)
    command = [sys.executable, "-m", "tests.scenarios.real.real_rank", str(tmp_path / "parts"), str(seconds)]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)


def test_a_rank_s_readings_and_steps_become_a_record(tmp_path: Path) -> None:
    ran = run_rank(tmp_path, "gpus 1\ngpu 0 name NVIDIA H200\ngpu 0 util 88\ngpu 0 gpm_sm 60\ngpu 0 processes 7:2048")
    assert ran.returncode == 0, ran.stderr
    messages = [message for _, message in PartReader(part_path(tmp_path / "parts", 0)).messages()]
    kinds = [message["kind"] for message in messages]
    assert (kinds[0], kinds[-1]) == ("hello", "done"), "nothing comes after a rank's end"
    assert kinds.count("reading") >= 5
    entry, end = import_folder(tmp_path / "parts", tmp_path / "data")
    run_dir = RunFolder(tmp_path / "data").path(entry.run_id)
    head = head_of(run_dir)
    assert (head["source"], head["gpu"], head["backend_reason"]) == ("nvml", "NVIDIA H200", "1 real GPU was found")
    assert [event["event"] for event in read_events(run_dir)[:2]] == ["state", "head"]
    assert (end["outcome"], end["summary"]["source"], end["summary"]["speedup_vs_one_gpu"]) == ("finished", "nvml", None)
    samples = samples_of(run_dir)
    assert {(sample.gpu_util, sample.sm_active, sample.spin_pct, sample.processes) for sample in samples} == {(88.0, 60.0, None, 1)}
    assert len(samples) >= 5


def test_a_lost_gpu_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    assert run_rank(tmp_path, "gpus 2\ngpu 0 util 88\ngpu 0 lost 0.6").returncode == 0
    _, end = import_folder(tmp_path / "parts", tmp_path / "data")
    assert end["outcome"] == "finished"
    assert "fell off the bus" in end["lanes"]["0"]


def test_a_gpu_that_cannot_be_sampled_is_one_line(tmp_path: Path) -> None:
    ran = run_rank(tmp_path, "init 9")
    assert ran.returncode == 1
    reason = "GPU 0 cannot be sampled: the NVIDIA driver is installed but not loaded"
    assert ran.stderr.strip() == f"backend='cuda': {reason}; allowed here: virtual"


def test_all_ranks_do_the_same_and_one_node_without_gpus_decides() -> None:
    config = RunConfig.parse({"scenario": "sharded"})
    mine = Choice(config=config.model_copy(update={"backend": "cuda", "gpu": "h100-80gb"}), reason="8 real GPUs were found")
    real, virtual = (True, "h200-141gb", "8 real GPUs were found"), (False, "a100-80gb", "no NVIDIA driver is installed")
    assert agreement(mine, [real, real]).config.gpu == "h200-141gb", "rank 0's, so that all run one config"
    assert agreement(mine, [real, real]).real
    decided = agreement(mine, [real, virtual])
    assert (decided.real, decided.config.gpu) == (False, "a100-80gb")
    assert decided.reason == "on the node of rank 1, no NVIDIA driver is installed"
    assert agreement(mine, [virtual, virtual]).reason == "no NVIDIA driver is installed"


READING: dict[str, Any] = {
    "kind": "reading", "end_ns": 200_000_000,
    "gpu": {"gpu_util": 50.0, "sm_active": None, "memory_gib": 1.0, "power_w": 70.0, "processes": 2},
}  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"end_ns": 200_000_001}, {"end_ns": 0}, {"gpu": {**READING["gpu"], "gpu_util": 101.0}},
        {"gpu": {**READING["gpu"], "power_w": float("nan")}}, {"gpu": {"gpu_util": 1.0}}, {"kind": "lane", "message": ""},
    ],
)  # fmt: skip
def test_readings_from_anywhere_are_checked(wrong: dict[str, Any]) -> None:
    assert checked(READING, 0) == READING
    assert checked({**READING, "gpu": None}, 0)["gpu"] is None
    with pytest.raises(ValueError, match="message has a field that cannot be used"):
        checked({**READING, **wrong}, 0)
