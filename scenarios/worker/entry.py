"""A rank's life: seed the environment, run the scenario's script, report how it ended.

Owns the boundary between a training script and whoever started it (the supervisor, or a person with torchrun).
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import traceback
from collections.abc import Callable
from typing import cast

import torch

from scenarios.config import RunConfig
from scenarios.error_meanings import timed_out
from scenarios.worker.exchange import BY_ITSELF, say_how_it_broke
from scenarios.worker.job import Job
from scenarios.worker.report import Send, pipe_sender
from scenarios.worker.stage import RunComplete

Train = Callable[[Job], None]

FAILED, WAITED_IN_VAIN = 1, 3
LEAVE_S = 0.1
"""How long a rank that failed stays for the others to read what it has sent them."""


def train_function(scenario: str) -> Train:
    """The `train` of a catalog script."""
    return cast(Train, importlib.import_module(f"scenarios.catalog.{scenario}").train)


def run_script(train: Train, job: Job, send: Send) -> int:
    """Run `train` and send its end: `done` with the parameters' checksum, or `error` with type and traceback.

    Returns an exit status: 0, FAILED, or WAITED_IN_VAIN where the error is that another rank did not come.
    """
    torch.set_num_threads(1)
    try:
        try:
            train(job)
        except RunComplete:
            pass
        job.finish()
    except Exception as error:
        job.broke_off()
        send({"kind": "error", "type": type(error).__name__, "message": str(error), "traceback": traceback.format_exc()})
        say_how_it_broke(BY_ITSELF)
        return WAITED_IN_VAIN if timed_out(str(error)) else FAILED
    send({"kind": "done", "checksum": job.checksum()})
    return 0


def rank_process(config: RunConfig, *, rank: int, collective_limit_s: float, messages_fd: int, control_fd: int) -> int:
    """The forked rank: join the supervisor's store, train, and stay until the supervisor lets go of `control_fd`.

    Waiting matters: a rank that leaves while a slower one still reads its last gradients would break that one's collective. One that fails
    leaves soon, and the others notice; one that waited in vain stays, for the others are to find out by themselves.
    """
    gc.freeze()  # pages shared with the launcher stay shared
    gc.disable()  # a rank lives for seconds
    port = os.read(control_fd, 16).decode().strip()
    os.environ.update(
        MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(config.processes),
        LOCAL_WORLD_SIZE=str(config.processes), GLOO_SOCKET_IFNAME="lo",
        TORCHELASTIC_USE_AGENT_STORE="True", TORCHELASTIC_RESTART_COUNT="0",
    )
    # NCCL's watchdog ends a rank at the limit; it would first wait for all ranks to write down what they did.
    os.environ.setdefault("TORCH_NCCL_DUMP_ON_TIMEOUT", "0")
    send = pipe_sender(messages_fd)
    job = Job(config, rank=rank, world=config.processes, collective_limit_s=collective_limit_s, send=send)
    status = run_script(train_function(config.scenario), job, send)
    select.select([control_fd], [], [], LEAVE_S if status == FAILED else None)
    return status
