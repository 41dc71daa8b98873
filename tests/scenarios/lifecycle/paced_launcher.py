"""The real launcher with a supervisor that only keeps time: queues and feeds can be tested to the tick, without training.

The run's `steps` are its ticks, 20 ms apart; its seed chooses how it behaves (see the constants). Run as a file by `Runs`.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from scenarios.config import RunConfig
from scenarios.launcher import Launcher
from scenarios.record_writer import RecordWriter
from scenarios.settings import Settings, load_settings

TICK_S = 0.02
DEAF = 1_000_001
"""Ignores SIGTERM and never ends."""
CRASHING = 1_000_002
"""Ends without an `end`, with a traceback."""
WRONG = 1_000_003
"""Ends as no scenario is expected to."""


def supervise(config: RunConfig, run_dir: Path, *, pace: str, settings: Settings) -> int:
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, signal.SIG_IGN if config.seed == DEAF else lambda number, frame: stopped.append(number))
    with RecordWriter(run_dir) as record:
        record.event("state", {"state": "starting"})
        record.event("head", {
            "gpus": config.gpus, "processes": config.processes, "gpu": "A100-80GB", "source": "virtual", "recorded_s": time.time(),
        })
        record.event("state", {"state": "running"})
        step = 0
        while (config.seed == DEAF or step < (config.steps or 10)) and not stopped:
            step += 1
            time.sleep(TICK_S)
            record.event("tick", tick(config.gpus, step))
        if config.seed == CRASHING:
            raise RuntimeError("the recorder lost its pen")
        outcome = "stopped" if stopped else "timeout" if config.seed == WRONG else "finished"
        record.event("end", {
            "outcome": outcome, "expected": outcome == "finished", "t_ms": 200 * step, "sentence": f"{step} ticks.",
            "rank": None, "error": None, "summary": None,
        })
    return 0


def tick(gpus: int, step: int) -> dict[str, Any]:
    figures = {name: [float(step)] * gpus for name in ("util", "useful", "spin", "mem", "power", "lr", "apart")}
    return {"t_ms": 200 * step, "step": step, "epoch": 0, "epoch_pct": 1.0, **figures}


if __name__ == "__main__":
    sys.exit(Launcher(supervise, load_settings()).serve())
