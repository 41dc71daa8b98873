"""Running a catalog script under plain torchrun: `torchrun --nproc-per-node 8 -m scenarios.catalog.sharded [--batch 64 ...]`.

`--record FOLDER` keeps what the ranks report, for `python -m scenarios import`; `--collect ADDRESS` sends it to a running app.
Owns the options and the few lines that rank 0 prints. The rank's code is the same as in the app.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from scenarios.catalog import SCENARIOS
from scenarios.cluster.own_gpu import OwnGpu
from scenarios.cluster.reporting import Destination, Reporter
from scenarios.cluster.wide import parse_wide
from scenarios.cluster.wire import hello
from scenarios.config import RunConfig
from scenarios.processes import die_with_parent
from scenarios.settings import load_settings
from scenarios.worker.report import Message, Send, pipe_sender

if TYPE_CHECKING:
    from scenarios.worker.job import Job


VIRTUAL = "virtual s"
"""The unit of virtual time."""


def run_by_hand(train: Callable[[Job], None]) -> None:
    """Run one rank, with RANK and WORLD_SIZE as torchrun sets them, and exit with its status.

    Where the messages are wanted (--record, --collect), the rank is forked: this process hears it and keeps or sends what it says.
    """
    from scenarios.worker.entry import run_script
    from scenarios.worker.job import Job
    from scenarios.worker.node_backend import local_device, node_choice

    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world))
    scenario = os.path.basename(sys.argv[0]).removesuffix(".py")
    try:
        limit_s = load_settings().collective_limit_s
        options = _options(sys.argv[1:])
        destination = Destination.of(options, os.environ)
        config = parse_wide({"scenario": scenario, "gpus": world, **options})
        if SCENARIOS[scenario].one_process:
            config = _of_one_process(scenario, options, world)
        choice = node_choice(config, os.environ, rank=rank, world=world)
        config = choice.config
        gpu = OwnGpu(local_device()) if choice.real and destination else None
        part = destination.open_part(rank) if destination else None
    except ValueError as error:
        sys.exit(_unusable(str(error)))
    if "TORCHELASTIC_RUN_ID" in os.environ and part is None:
        die_with_parent()  # a killed torchrun leaves its ranks behind otherwise, and theirs is a run that nobody watches
    if rank == 0 and choice.reason and config.backend != "virtual":
        print(f"{'Real' if choice.real else 'Virtual'} GPUs, since {choice.reason}.", flush=True)
    send: Send = _Printer(rank, "s" if choice.real else VIRTUAL)
    if destination is not None and part is not None:
        reporter = Reporter(destination, part, rank, gpu=gpu)
        said = hello(
            config, rank=rank, world=world, node=int(os.environ.get("GROUP_RANK", "0")), collective_limit_s=limit_s,
            card=gpu.card if gpu else None, backend_reason=choice.reason,
        )
        pipe = reporter.fork(said)
        if pipe is None:
            os._exit(reporter.status)
        send = _both(send, pipe_sender(pipe))
    job = Job(config, rank=rank, world=world, collective_limit_s=limit_s, send=send)
    status = run_script(train, job, send)
    # No interpreter shutdown: the group's threads may still run then, which ends a rank that did its work with an abort; and a group whose
    # peers are gone can take long to be torn down.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _of_one_process(scenario: str, options: dict[str, str], world: int) -> RunConfig:
    """One process is started, and drives as many GPUs as --gpus says. Raises ValueError where it cannot be so."""
    if world > 1:
        raise ValueError(f"nproc-per-node='{world}': must be 1, as one process of {scenario} drives all GPUs")
    for name in ("record", "collect"):
        if name in options:
            raise ValueError(f"{name}={options[name][:60]!r}: is for scripts with a process for each GPU")
    return RunConfig.parse({"scenario": scenario, **options})


def _both(first: Send, second: Send) -> Send:
    def send(message: Message) -> None:
        first(message)
        second(message)

    return send


def _options(arguments: Sequence[str]) -> dict[str, str]:
    """`--name value` pairs as config fields."""
    options = iter(arguments)
    return {name.removeprefix("--").replace("-", "_"): next(options, "") for name in options}


def _unusable(message: str) -> int:
    print(message, file=sys.stderr)
    return 2


class _Printer:
    """Prints each of rank 0's steps and every rank's end, in place of the supervisor."""

    def __init__(self, rank: int, unit: str) -> None:
        self._rank, self._unit = rank, unit
        self._busy_ns = self._end_ns = self._steps = 0

    def __call__(self, message: Message) -> None:
        if message["kind"] == "step" and message.get("gpu", 0) == 0:
            self._busy_ns += sum(span[6] for span in message["spans"] if span[1] in ("compute", "comm"))
            self._end_ns, self._steps = message["end_ns"], message["step"]
            if self._rank == 0:
                print(f"step {message['step']} at {message['end_ns'] / 1e9:.2f} {self._unit}, batch {message['batch']}", flush=True)
        elif message["kind"] == "done":
            busy_pct = 100 * min(1.0, self._busy_ns / max(1, self._end_ns))
            busy = f"GPU busy {busy_pct:.0f} %, " if self._unit == VIRTUAL else ""  # of a real one, NVML knows
            said = f"{self._steps} steps in {self._end_ns / 1e9:.2f} {self._unit}, {busy}parameters {message['checksum']}"
            print(f"rank {self._rank}: {said}\n", end="", flush=True)  # one write: eight ranks share the terminal
        elif message["kind"] == "error":
            print(f"rank {self._rank}: {message['type']}: {message['message']}", file=sys.stderr, flush=True)
