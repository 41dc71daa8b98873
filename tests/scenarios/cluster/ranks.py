"""Ranks as they report, without torch: the messages of a small run, and the parts they would write."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scenarios.cluster.parts import PartFile
from scenarios.cluster.wire import hello
from scenarios.config import RunConfig
from scenarios.rank_messages import Message, pack_serials

STEP_NS = 150_000_000
CONFIG = RunConfig.parse({"scenario": "sharded", "gpus": 4, "steps": 12})


def hello_of(rank: int, config: RunConfig = CONFIG, *, nodes: int = 2) -> Message:
    node = rank * nodes // config.gpus
    said = hello(config, rank=rank, world=config.gpus, node=node, collective_limit_s=20.0)
    return {**said, "host": f"host-{'ab'[node]}", "started_s": 1.7e9}


def step_of(rank: int, step: int) -> Message:
    start_ns, end_ns = (step - 1) * STEP_NS, step * STEP_NS
    spans: list[list[Any]] = [
        [rank, "compute", "forward", step, start_ns, start_ns + 40_000_000, 40_000_000, 0.9],
        [rank, "compute", "backward", step, start_ns + 40_000_000, end_ns - 1000 * rank, 100_000_000, 0.8],
        [rank, "comm", "all_reduce", step, start_ns + 60_000_000, end_ns, 60_000_000, 0.1],
    ]
    first = step * 8 + rank * 2
    return {
        "kind": "step", "step": step, "trained": True, "progress": step / 12, "steps_per_epoch": 12, "batch": 256, "learning_rate": 0.1,
        "memory_gib": 13.25, "apart": 0.0, "end_ns": end_ns, "spans": spans, "serials": pack_serials(range(first, first + 2)),
    }


def done() -> Message:
    return {"kind": "done", "checksum": "00ff" * 4}


def error(kind: str, text: str) -> Message:
    return {"kind": "error", "type": kind, "message": text, "traceback": ""}


def whole_rank(rank: int, config: RunConfig = CONFIG) -> list[Message]:
    return [hello_of(rank, config), *(step_of(rank, step) for step in range(1, 13)), done()]


def write_part(folder: Path, rank: int, messages: Iterable[Message], *, run: str = "") -> None:
    part = PartFile(folder, run=run, rank=rank, kept=True)
    for message in messages:
        part.append(message)
    part.close()
