"""A server that begins one real run, says so on standard output and then waits to be killed. Run as a file by test_faults.py."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from scenarios.config import RunConfig
from scenarios.runs import Runs
from scenarios.settings import Settings

if __name__ == "__main__":
    runs = Runs(Settings(data_dir=Path(sys.argv[1])))
    run = runs.start(RunConfig.parse({"scenario": "sharded", "epochs": 20}), viewer="a")
    while '"event":"tick"' not in (run.run_dir / "events.jsonl").read_text() if (run.run_dir / "events.jsonl").exists() else True:
        time.sleep(0.02)
    print(json.dumps({"run_id": run.run_id}), flush=True)
    time.sleep(60)
