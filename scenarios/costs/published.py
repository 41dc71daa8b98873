"""The published figures in `reference/`, typed.

Owns reading them. Must not import torch.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from pathlib import Path as FilePath

from scenarios.costs.footprint import Path
from scenarios.costs.predict import Input, SetUp

_FOLDER = FilePath(__file__).with_name("reference")

UNSTATED_BATCH = 4
"""Batch per GPU of the one row whose source gives none (train_batch_size of its script: FlagOpen/FlagPerf
training/benchmarks/gpt2/pytorch/config/_base.py); only the scaling of such a row is compared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Throughput:
    """One row of throughput.csv or held_out.csv: samples per second on one GPU and on `gpus` of each node."""

    model: str
    gpu: str
    precision: str
    batch: int | None
    """Per GPU; None where the source does not state it: then only the scaling can be compared."""
    seq_len: int | None
    accumulate: int
    task: str
    gpus: int
    one_gpu_per_s: float
    total_per_s: float
    tuned: bool
    """A tuned script on the named hardware; other rows are shown, never fitted to."""
    source: str
    input: Input = "loader"
    """Whether the script has an input pipeline; declared by the source."""
    one_gpu_accumulate: int = 1
    """Micro-steps of the one-GPU run for each optimizer step."""
    nodes: int = 1
    network: str = ""

    @property
    def setup(self) -> SetUp:
        """What to predict, on all GPUs."""
        return SetUp(
            model=self.model, gpu=self.gpu, precision=self.precision, batch=self.batch or UNSTATED_BATCH, seq_len=self.seq_len,
            accumulate=self.accumulate, task=self.task or "finetune", network=self.network, input=self.input,
        )

    @property
    def one_gpu_setup(self) -> SetUp:
        """The same as the source ran it on one GPU."""
        return replace(self.setup, accumulate=self.one_gpu_accumulate)

    @property
    def name(self) -> str:
        return " ".join(str(part) for part in (self.model, self.gpu, self.precision, self.batch or "?", self.task) if part)


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryLimit:
    """One row of out_of_memory.csv: a batch that fits, and one that does not (None: not published)."""

    model: str
    gpu: str
    precision: str
    seq_len: int | None
    fits_batch: int
    oom_batch: int | None
    path: Path
    source: str


def throughput_rows() -> list[Throughput]:
    """The rows that constants are fitted to (those marked tuned)."""
    return [_throughput(row) for row in _rows("throughput.csv")]


def held_out_rows() -> list[Throughput]:
    """Rows that nothing was ever fitted to; collected afterwards, to check the model."""
    return [_throughput(row) for row in _rows("held_out.csv")]


def _throughput(row: dict[str, str]) -> Throughput:
    return Throughput(
        model=row["model"], gpu=row["gpu"], precision=row["precision"], batch=_number(row["batch_per_gpu"]),
        seq_len=_number(row["seq_len"]), accumulate=int(row["accumulate"]), task=row["task"], gpus=int(row["gpus"]),
        one_gpu_per_s=float(row["one_gpu_per_s"]), total_per_s=float(row["total_per_s"]), tuned=row["tuned"] == "yes",
        source=row["source"], input="synthetic" if row["input"] == "synthetic" else "loader",
        one_gpu_accumulate=int(row["one_gpu_accumulate"]), nodes=int(row.get("nodes") or 1), network=row.get("network") or "",
    )


def memory_rows() -> list[MemoryLimit]:
    return [
        MemoryLimit(
            model=row["model"], gpu=row["gpu"], precision=row["precision"], seq_len=_number(row["seq_len"]),
            fits_batch=int(row["fits_batch"]), oom_batch=_number(row["oom_batch"]),
            path="tensorflow" if row["path"] == "tensorflow" else "pytorch",
            source=row["source"],
        )
        for row in _rows("out_of_memory.csv")
    ]


def _number(text: str) -> int | None:
    return int(text) if text else None


def _rows(name: str) -> list[dict[str, str]]:
    with (_FOLDER / name).open(newline="") as file:
        return list(csv.DictReader(file))
