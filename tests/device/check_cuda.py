"""On a machine with one NVIDIA GPU: does all that needs one. `.venv/bin/python -m tests.device.check_cuda [--json] [--short]`.

Runs sharded, tiny_model and large_batch with one rank on CUDA, with NVML and GPM samples, and measures what sampling costs training. Takes
about five minutes (`--short`: two). Exit codes: 0 all as it should be, 1 something is not, 2 no GPU that runs can use, with the reason.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from scenarios.backend import choose
from scenarios.config import RunConfig

ROOT = Path(__file__).resolve().parents[2]
MOST_SLOWER_PCT = 1.0
RUN_LIMIT_S = 240
STEP = re.compile(r"^step (\d+) at ([\d.]+) s,", re.MULTILINE)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.device.check_cuda")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--short", action="store_true", help="one pair of runs instead of three for the cost of sampling")
    options = parser.parse_args()
    try:
        choice = choose(RunConfig.parse({"scenario": "sharded", "gpus": 1, "backend": "cuda"}))
    except ValueError as fault:
        print(f"This check needs a GPU that runs can use. {fault}", file=sys.stderr)
        return 2
    runs = {name: one_run(name) for name in ("sharded", "tiny_model", "large_batch")}
    sampling = cost_of_sampling(pairs=1 if options.short else 3)
    checks = judged(runs, sampling)
    found = {"gpu": choice.reason, "runs": runs, "sampling": sampling, "checks": checks}
    if options.json:
        print(json.dumps(found))
    else:
        show(found)
    return 0 if all(checks.values()) else 1


def one_run(scenario: str) -> dict[str, Any]:
    """The figures of a fresh run with one rank on CUDA."""
    command = [sys.executable, "-m", "scenarios", "run", scenario, "--gpus", "1", "--backend", "cuda", "--json"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=RUN_LIMIT_S)
    try:
        said = json.loads(ran.stdout)
    except ValueError:
        return {"outcome": "failed", "sentence": (ran.stderr.strip().splitlines() or ["no output"])[-1]}
    gpu = (said.get("gpus") or [{}])[0]
    kept = ("outcome", "source", "samples_per_second", "steps", "unique_fraction", "last_batch_that_fitted", "memory_limit_gib", "sentence")
    figures = ("gpu_util", "sm_active", "memory_gib", "peak_memory_gib", "power_w", "processes")
    return {**{name: said.get(name) for name in kept}, **{name: gpu.get(name) for name in figures}, "exit": ran.returncode}


def cost_of_sampling(*, pairs: int, steps: int = 200, warm_up: int = 40) -> dict[str, Any]:
    """How much longer a step takes while the GPU is sampled: pairs of runs of one script, without and with the sampler."""
    without, with_it = [], []
    for _ in range(pairs):
        without.append(step_seconds(steps, warm_up))
        with tempfile.TemporaryDirectory() as folder:
            with_it.append(step_seconds(steps, warm_up, "--record", str(Path(folder) / "parts")))
    plain_s, sampled_s = statistics.median(without), statistics.median(with_it)
    return {
        "step_s_without": plain_s, "step_s_with": sampled_s, "slower_pct": round(100 * (sampled_s / plain_s - 1), 2),
        "all_without": without, "all_with": with_it,
    }  # fmt: skip


def step_seconds(steps: int, warm_up: int, *options: str) -> float:
    """Mean seconds of a step of the ResNet-50 script after the first `warm_up`, by the times that it prints."""
    command = [sys.executable, "-m", "scenarios.catalog.sharded", "--backend", "cuda", "--steps", str(steps), *options]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=RUN_LIMIT_S)
    times = {int(step): float(at) for step, at in STEP.findall(ran.stdout)}
    if ran.returncode != 0 or steps not in times or warm_up not in times:
        raise SystemExit(f"the script did not train {steps} steps: {ran.stderr.strip()[-500:]}")
    return (times[steps] - times[warm_up]) / (steps - warm_up)


def judged(runs: dict[str, dict[str, Any]], sampling: dict[str, Any]) -> dict[str, bool]:
    """What has to hold."""
    large = runs["large_batch"]
    return {
        "samples come from NVML": all(run.get("source") == "nvml" for run in runs.values()),
        "sharded finishes, each sample once": runs["sharded"]["outcome"] == "finished" and runs["sharded"].get("unique_fraction") == 1.0,
        "sharded keeps the GPU busy": (runs["sharded"].get("gpu_util") or 0.0) > 60,
        "tiny_model finishes": runs["tiny_model"]["outcome"] == "finished",
        "power and memory are read": all(run.get("memory_gib") and run.get("power_w") for run in (runs["sharded"], runs["tiny_model"])),
        "large_batch runs out of memory for real": large["outcome"] == "out_of_memory" and large.get("exit") == 0,
        "sampling slows training by 1 % at most": sampling["slower_pct"] <= MOST_SLOWER_PCT,
    }


def show(found: dict[str, Any]) -> None:
    print(found["gpu"])
    for name, run in found["runs"].items():
        print(f"\n{name}")
        for key, value in run.items():
            print(f"  {key}: {value}")
    sampling = found["sampling"]
    print(
        f"\nA step takes {1000 * sampling['step_s_without']:.2f} ms, and {1000 * sampling['step_s_with']:.2f} ms while the GPU is sampled: "
        f"{sampling['slower_pct']:+.2f} %.\n"
    )
    for name, holds in found["checks"].items():
        print(f"{'ok ' if holds else 'NOT'} {name}")


if __name__ == "__main__":
    sys.exit(main())
