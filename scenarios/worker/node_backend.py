"""What a job under torchrun uses, real GPUs or virtual ones: every rank looks at its own node, and all do the same.

Owns that agreement, which goes through torchrun's own store: a node without GPUs makes all of them virtual, rather than half the ranks wait
for the other half.
"""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Mapping

from torch._C._distributed_c10d import TCPStore

from scenarios.backend import Choice, choose
from scenarios.config import RunConfig

AGREE_LIMIT = datetime.timedelta(seconds=120)
"""How long ranks may differ in starting."""


def node_choice(config: RunConfig, environ: Mapping[str, str], *, rank: int, world: int) -> Choice:
    """Decide for all ranks. Raises ValueError as `choose` does, where this node cannot do what is demanded."""
    here = int(environ.get("LOCAL_WORLD_SIZE", world))
    mine = choose(config.model_copy(update={"gpus": here}))
    if config.backend == "auto" and here < world and environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        mine = _agreed(mine, environ, rank=rank, world=world)
    return Choice(config=config.model_copy(update={"backend": mine.config.backend, "gpu": mine.config.gpu}), reason=mine.reason)


def _agreed(mine: Choice, environ: Mapping[str, str], *, rank: int, world: int) -> Choice:
    store = TCPStore(environ["MASTER_ADDR"], int(environ["MASTER_PORT"]), is_master=False, timeout=AGREE_LIMIT)
    restart = environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    store.set(f"shardlab/backend/{restart}/{rank}", json.dumps([mine.real, mine.config.gpu, mine.reason]))
    said = [json.loads(store.get(f"shardlab/backend/{restart}/{other}")) for other in range(world)]
    return agreement(mine, said)


def agreement(mine: Choice, said: list[tuple[bool, str, str]]) -> Choice:
    """Of what all ranks said: (real, kind of GPU, reason), in their order. Only if all have real GPUs are they used."""
    without = next((number for number, (real, _, _) in enumerate(said) if not real), None)
    _, kind, reason = said[0 if without is None else without]
    if without is None:
        return Choice(config=mine.config.model_copy(update={"gpu": kind}), reason=reason)
    config = mine.config.model_copy(update={"backend": "auto", "gpu": kind})
    return Choice(config=config, reason=reason if len({text for _, _, text in said}) == 1 else f"on the node of rank {without}, {reason}")


def local_device() -> int:
    return int(os.environ.get("LOCAL_RANK", "0"))
