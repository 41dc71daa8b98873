"""The experiments, one short training script each; this file only describes them, so that it imports without torch.

Owns names, titles and defaults. The scripts beside it are for reading: vanilla PyTorch, their difference to `sharded.py`
is the mistake and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Metric = Literal["busy", "useful", "memory", "power", "apart", "learning_rate"]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """How one experiment of the catalog is presented and run by default."""

    name: str
    title: str
    """For people who have locked in an answer; never shown before."""
    what: str
    """One sentence: what the code does."""
    opening_metric: Metric
    """The metric that shows the effect of this experiment."""
    expected_outcome: Literal["finished", "out_of_memory"] = "finished"
    odd_rank: int | None = None
    """The rank whose lane is set off, where the symptom names one."""
    model: str = "resnet50"
    hands_out: bool = False
    """Rank 0 alone loads, and hands the others their samples."""

    @property
    def path(self) -> Path:
        return Path(__file__).with_name(f"{self.name}.py")


SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            name="sharded",
            title="Correct sharding",
            what="A DistributedSampler gives every rank its own eighth of the data.",
            opening_metric="busy",
        ),
        Scenario(
            name="unsharded",
            title="Data not sharded",
            what="Every rank shuffles and trains on the whole data set.",
            opening_metric="busy",
        ),
        Scenario(
            name="rank0_loading",
            title="All data through GPU 0",
            what="Rank 0 reads and decodes the global batch on its GPU and hands shards out.",
            opening_metric="busy",
            odd_rank=0,
            hands_out=True,
        ),
        Scenario(
            name="large_batch",
            title="Batch too large",
            what="The batch doubles every few steps until it no longer fits.",
            opening_metric="memory",
            expected_outcome="out_of_memory",
        ),
        Scenario(
            name="scheduler_desync",
            title="Schedulers out of step",
            what="Each rank lowers its learning rate at a different step.",
            opening_metric="apart",
        ),
        Scenario(
            name="tiny_model",
            title="Model too simple",
            what="A deep, narrow MLP: thousands of kernels too small to fill a GPU.",
            opening_metric="useful",
            model="mlp",
        ),
    )
}
