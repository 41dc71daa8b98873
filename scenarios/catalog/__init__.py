"""The experiments, one short training script each; this file only describes them, so that it imports without torch.

Owns names, titles and defaults. The scripts beside it are for reading: vanilla PyTorch, their difference to `sharded.py`
is the mistake and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

PAUSE_EVERY = 12
"""Steps between two validations, or two checkpoints, of the scripts that make them: twice an epoch of the default run."""

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
    expected_outcome: Literal["finished", "out_of_memory", "timeout"] = "finished"
    patience_s: float | None = None
    """How long a collective waits where it is meant to wait in vain; None: as long as the settings say."""
    odd_rank: int | None = None
    """The rank whose lane is set off, where the symptom names one."""
    model: str = "resnet50"
    own: Mapping[str, str | int] = field(default_factory=dict)
    """Knobs beside the model whose default is another one here; a knob that is given wins, and one without effect is left as it is."""
    decided: frozenset[str] = frozenset()
    """Those of them that the script decides itself: no knob can turn them."""
    hands_out: bool = False
    """Rank 0 alone loads, and hands the others their samples."""
    one_process: bool = False
    """A single process drives all GPUs, where elsewhere each has its own."""
    micro_batches: int = 1
    """Batches that make an optimizer step; fewer at the end of an epoch."""
    pause: Literal["validate", "checkpoint"] | None = None
    """What rank 0 alone does every PAUSE_EVERY steps of an epoch."""

    @property
    def one_loader(self) -> bool:
        """Whether one DataLoader feeds all GPUs."""
        return self.hands_out or self.one_process

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
        Scenario(
            name="starved_loader",
            title="Starved by the loader",
            what="Each rank reads and decodes its batches in the training process itself, one sample after the other.",
            opening_metric="busy",
            own={"preprocess": "cpu", "workers": 0},
            decided=frozenset({"workers"}),
        ),
        Scenario(
            name="no_set_epoch",
            title="The same order every epoch",
            what="The sampler is never told the epoch, so that it shuffles each one alike.",
            opening_metric="busy",
        ),
        Scenario(
            name="rank0_validation",
            title="Validation on GPU 0 alone",
            what="Every few steps rank 0 validates the whole held-out set on its GPU, while the others go on to the next all-reduce.",
            opening_metric="busy",
            odd_rank=0,
            pause="validate",
        ),
        Scenario(
            name="shared_validation",
            title="Validation shared by all",
            what="Every few steps each rank validates its part of the held-out set, and the ranks add up their hits.",
            opening_metric="busy",
        ),
        Scenario(
            name="rank0_checkpoint",
            title="Checkpoints that all wait for",
            what="Every few steps rank 0 writes a checkpoint before it goes on, while the others wait in the next all-reduce.",
            opening_metric="busy",
            odd_rank=0,
            pause="checkpoint",
        ),
        Scenario(
            name="lopsided_shards",
            title="Lopsided shards",
            what="The data is sorted by length and cut into contiguous shards, so that the last rank gets the longest samples.",
            opening_metric="useful",
            odd_rank=7,
            model="bert_large_varied",
            own={"batch": 32},
        ),
        Scenario(
            name="accumulate",
            title="Gradients accumulated",
            what="Four micro-batches make a step; only the last of them exchanges gradients.",
            opening_metric="useful",
            model="bert_large",
            own={"batch": 12, "link": "pcie4"},
            micro_batches=4,
        ),
        Scenario(
            name="accumulate_sync",
            title="Gradients exchanged too often",
            what="Four micro-batches make a step; each of them exchanges gradients.",
            opening_metric="useful",
            model="bert_large",
            own={"batch": 12, "link": "pcie4"},
            micro_batches=4,
        ),
        Scenario(
            name="uneven_inputs",
            title="Uneven inputs",
            what="Rank 0 has fewer batches and leaves the loop; the others wait for it in the next all-reduce.",
            opening_metric="busy",
            odd_rank=0,
            expected_outcome="timeout",
            patience_s=4.0,
            own={"epochs": 2},
        ),
        Scenario(
            name="uneven_joined",
            title="Uneven inputs, joined",
            what="Rank 0 has fewer batches; a Join context lets it take part in the others' all-reduces until they are through.",
            opening_metric="busy",
            odd_rank=0,
            own={"epochs": 2},
        ),
        Scenario(
            name="no_set_device",
            title="Every process opens GPU 0",
            what="No process says which GPU is its own, so that each opens GPU 0 as well.",
            opening_metric="memory",
            odd_rank=0,
        ),
        Scenario(
            name="data_parallel",
            title="One process for all GPUs",
            what="nn.DataParallel: one process cuts each batch up, copies the network from GPU 0 to the others, and sums gradients there.",
            opening_metric="busy",
            odd_rank=0,
            model="bert_large",
            own={"batch": 6},
            one_process=True,
        ),
    )
}


def patience_s(scenario: str, usual_s: float) -> float:
    """How long a collective of `scenario` waits for a rank that does not come, where `usual_s` is what others wait."""
    own_s = SCENARIOS[scenario].patience_s
    return usual_s if own_s is None else min(own_s, usual_s)
