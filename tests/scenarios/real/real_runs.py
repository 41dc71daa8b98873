"""Runs on "real" GPUs without one: `real_runs.py FOLDER JSON...` leaves a record of each config, the ranks computing on the CPU over gloo.

Only the place of a rank is another than on a GPU, and only in this process; NVML is the stub that the environment names.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch

from scenarios import supervisor
from scenarios.config import RunConfig
from scenarios.settings import Settings
from scenarios.worker import place


def on_the_cpu(local_rank: int) -> place.Place:
    return place.Place(device=torch.device("cpu"), backend="gloo")


def main(folder: Path, configs: list[str]) -> None:
    place.claim_place = on_the_cpu
    torch.cuda.set_device = lambda device: None
    for number, text in enumerate(configs):
        config = RunConfig.parse({"backend": "cuda", **json.loads(text)})
        pid = os.fork()  # the supervisor's store has threads: each run starts from a process without
        if pid == 0:
            status = 1
            try:
                settings = Settings(data_dir=folder, collective_limit_s=20.0)
                status = supervisor.supervise(config, folder / str(number), pace="live", settings=settings)
            finally:
                os._exit(status)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
