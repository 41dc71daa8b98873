"""A rank's life: seed the environment, run the scenario's script, report how it ended.

Owns the boundary between a training script and whoever started it (the supervisor, or a person with torchrun).
"""

from __future__ import annotations

import gc
import importlib
import os
import traceback
from collections.abc import Callable
from typing import cast

import torch

from scenarios.config import RunConfig
from scenarios.worker.job import Job
from scenarios.worker.report import Send, pipe_sender
from scenarios.worker.virtual_stage import RunComplete

Train = Callable[[Job], None]


def train_function(scenario: str) -> Train:
    """The `train` of a catalog script."""
    return cast(Train, importlib.import_module(f"scenarios.catalog.{scenario}").train)


def run_script(train: Train, job: Job, send: Send) -> int:
    """Run `train` and send its end: `done` with the parameters' checksum, or `error` with type and traceback. Returns an exit status."""
    torch.set_num_threads(1)
    try:
        train(job)
    except RunComplete:
        pass
    except Exception as error:
        send({"kind": "error", "type": type(error).__name__, "message": str(error), "traceback": traceback.format_exc()})
        return 1
    send({"kind": "done", "checksum": job.checksum()})
    return 0


def rank_process(config: RunConfig, *, rank: int, collective_limit_s: float, messages_fd: int, control_fd: int) -> int:
    """The forked rank: join the supervisor's store, train, and stay until the supervisor lets go of `control_fd`.

    Waiting matters: a rank that leaves while a slower one still reads its last gradients would break that one's collective.
    """
    gc.freeze()  # pages shared with the launcher stay shared
    gc.disable()  # a rank lives for seconds
    port = os.read(control_fd, 16).decode().strip()
    os.environ.update(
        MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(config.gpus),
        LOCAL_WORLD_SIZE=str(config.gpus), GLOO_SOCKET_IFNAME="lo",
        TORCHELASTIC_USE_AGENT_STORE="True", TORCHELASTIC_RESTART_COUNT="0",
    )
    send = pipe_sender(messages_fd)
    job = Job(config, rank=rank, world=config.gpus, collective_limit_s=collective_limit_s, send=send)
    status = run_script(train_function(config.scenario), job, send)
    os.read(control_fd, 1)
    return status
