"""Launching: from the request to the first DDP step of eight ranks, by the warm launcher and by torchrun, taking turns.

Both start the same script, `scenarios/catalog/sharded.py`. The first sample is what a visitor sees first.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time

from _common import ROOT, arguments, report
from _runs import first_step_s, over, recorded, wait_for, warm_runs

from scenarios.config import RunConfig
from scenarios.runs import Runs

RANKS = 8


def by_launcher(runs: Runs, seed: int) -> tuple[float, float]:
    """Seconds to the first step and to the first sample of a live run, which is then stopped."""
    config = RunConfig.parse({"scenario": "sharded", "gpus": RANKS, "seed": seed})
    asked_s = time.monotonic()
    run = runs.start(config, viewer="benchmark")
    step_s = first_step_s(run)
    sample_s = wait_for(lambda: recorded(run, '"event":"tick"'))
    runs.stop(run.run_id, "benchmark")
    over(runs, run)
    return step_s - asked_s, sample_s - asked_s


def by_torchrun() -> float:
    """Seconds to rank 0's report of its first step; the job is then ended."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS)]
    asked_s = time.monotonic()
    with subprocess.Popen(
        [sys.executable, *torchrun, "-m", "scenarios.catalog.sharded"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as job:
        assert job.stdout is not None
        assert job.stderr is not None
        try:
            for line in job.stdout:
                if line.startswith(b"step 1 "):
                    return time.monotonic() - asked_s
            raise RuntimeError(job.stderr.read().decode()[-2000:])
        finally:
            os.killpg(job.pid, signal.SIGKILL)


def main() -> None:
    options = arguments(__doc__, rounds=3)
    launched: list[tuple[float, float]] = []
    torchrun: list[float] = []
    with warm_runs() as runs:
        for number in range(options.rounds):
            launched += [by_launcher(runs, seed=3 * number + turn) for turn in range(3)]
            torchrun.append(by_torchrun())
    step_s = statistics.median(step for step, _ in launched)
    torchrun_s = statistics.median(torchrun)
    report(
        "launch",
        {
            "ranks": RANKS,
            "launcher_first_step_s": round(step_s, 3),
            "launcher_first_step_max_s": round(max(step for step, _ in launched), 3),
            "launcher_first_sample_s": round(statistics.median(sample for _, sample in launched), 3),
            "torchrun_first_step_s": round(torchrun_s, 3),
            "torchrun_first_step_min_s": round(min(torchrun), 3),
            "ratio": round(torchrun_s / step_s, 1),
        },
        as_json=options.json,
    )


if __name__ == "__main__":
    main()
