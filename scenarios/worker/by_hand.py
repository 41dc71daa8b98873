"""Running a catalog script under plain torchrun: `torchrun --nproc-per-node 8 -m scenarios.catalog.sharded [--batch 64 ...]`.

Owns the options and the few lines that rank 0 prints. The rank's code is the same as in the app.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from scenarios.config import RunConfig
from scenarios.settings import load_settings
from scenarios.worker.report import Message

if TYPE_CHECKING:
    from scenarios.worker.job import Job


def run_by_hand(train: Callable[[Job], None]) -> None:
    """Run one rank in this process, with RANK and WORLD_SIZE as torchrun sets them, and exit with its status."""
    from scenarios.worker.entry import run_script
    from scenarios.worker.job import Job

    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world))
    scenario = os.path.basename(sys.argv[0]).removesuffix(".py")
    try:
        config = RunConfig.parse({"scenario": scenario, "gpus": world, **_options(sys.argv[1:])})
    except ValueError as error:
        sys.exit(_unusable(str(error)))
    printer = _Printer(rank)
    job = Job(config, rank=rank, world=world, collective_limit_s=load_settings().collective_limit_s, send=printer)
    sys.exit(run_script(train, job, printer))


def _options(arguments: Sequence[str]) -> dict[str, str]:
    """`--name value` pairs as config fields."""
    options = iter(arguments)
    return {name.removeprefix("--").replace("-", "_"): next(options, "") for name in options}


def _unusable(message: str) -> int:
    print(message, file=sys.stderr)
    return 2


class _Printer:
    """Prints each of rank 0's steps and every rank's end, in place of the supervisor."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._busy_ns = self._end_ns = self._steps = 0

    def __call__(self, message: Message) -> None:
        if message["kind"] == "step":
            self._busy_ns += sum(span[6] for span in message["spans"] if span[1] in ("compute", "comm"))
            self._end_ns, self._steps = message["end_ns"], message["step"]
            if self._rank == 0:
                print(f"step {message['step']} at {message['end_ns'] / 1e9:.2f} virtual s, batch {message['batch']}", flush=True)
        elif message["kind"] == "done":
            busy_pct = 100 * min(1.0, self._busy_ns / max(1, self._end_ns))
            print(
                f"rank {self._rank}: {self._steps} steps in {self._end_ns / 1e9:.2f} virtual s, "
                f"GPU busy {busy_pct:.0f} %, parameters {message['checksum']}", flush=True,
            )
        else:
            print(f"rank {self._rank}: {message['type']}: {message['message']}", file=sys.stderr, flush=True)
