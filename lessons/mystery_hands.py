"""What mystery runs are drawn from: per cause the knobs that may be turned without hiding it, and the figures that tell it.

A hand is one way in which a cause shows itself. Whatever is drawn from it stays diagnosable: tests and `tests/benchmarks/mystery.py` ask
the diagnosis of `scenarios.analysis`, which sees figures only. Data; drawing is in `lessons.mystery_deck`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from lessons.causes import SLOW_GPU, SLOW_LINK

Figure = Literal[
    "busy", "useful", "waiting", "power", "memory", "speed", "trained", "order", "apart", "learning_rate", "slow_motion", "ended"
]

FIGURES: dict[Figure, str] = {
    "busy": "GPU busy, lane by lane",
    "useful": "Useful work",
    "waiting": "Busy but waiting: the hatched part of a lane",
    "power": "Power",
    "memory": "Memory, against the card's limit",
    "speed": "Epoch time and steps, against one GPU",
    "trained": "How often each sample is trained",
    "order": "Whether an epoch repeats the order of the one before",
    "apart": "How far the weights are apart",
    "learning_rate": "Learning rate per GPU",
    "slow_motion": "Slow motion: what each GPU does within a step",
    "ended": "How the run ended",
}
"""What a learner may name as the figure that told the cause, for people."""

Load = tuple[str, int]
"""A model and its batch per GPU."""

QUICK_CARDS = ("a100-80gb", "a100-40gb", "h100-80gb", "h200-141gb")
"""With NVLink, and quick enough for every load."""
CARDS = (*QUICK_CARDS, "v100-32gb", "rtx4090-24gb")
IMAGES: tuple[Load, ...] = (("resnet50", 128), ("resnet50", 192), ("resnet50", 256), ("resnet101", 96), ("resnet101", 128))
TEXT: tuple[Load, ...] = (("bert_large", 16), ("bert_large", 24), ("gpt2_medium", 4))

@dataclass(frozen=True, kw_only=True)
class Hand:
    """One way in which a cause shows itself."""

    cause: str
    scenario: str
    found: str
    """What the diagnosis calls it."""
    tells: Mapping[Figure, str]
    """The figures that tell this cause from all others, each with what it shows."""
    hides: str
    """What the other figures show instead."""
    cards: tuple[str, ...] = CARDS
    loads: tuple[Load, ...] = IMAGES
    knobs: Mapping[str, tuple[str | int, ...]] = field(default_factory=dict)
    """Further knobs, each with what it may be."""
    alike: tuple[str, ...] = ()
    """Causes whose runs look most like it: they come first among the candidates."""
    never_beside: tuple[str, ...] = ()
    """Causes that one could defend here as well: never among the candidates."""
    steps: int = 9
    """Steps within the twelve seconds of a run without which it does not show."""
    two_epochs: bool = False
    """It shows only where an epoch can be compared with the one before."""
    fills_memory: bool = False


_FED: dict[Figure, str] = {
    "speed": "Eight GPUs train little faster than one: they wait for what one of them hands out.",
    "slow_motion": "Within a step the bar goes from GPU 0 to the others: it loads and decodes for all of them before they can begin.",
}

HANDS: tuple[Hand, ...] = (
    Hand(
        cause="sharded", scenario="sharded", found="healthy", loads=(*IMAGES, *TEXT), cards=QUICK_CARDS,
        alike=("unsharded", "no_set_epoch", "scheduler_desync"),
        tells={
            "speed": "Close to eight times one GPU: there is nothing left to be lost.",
            "useful": "All eight do useful work nearly all the time, so that none of it is waiting.",
            "slow_motion": "A step is work from end to end, and the all-reduce hides behind it.",
        },
        hides="It is as it should be here, but that alone does not rule out a mistake that shows elsewhere.",
    ),
    Hand(
        cause="unsharded", scenario="unsharded", found="not_sharded", loads=(*IMAGES, *TEXT),
        alike=("sharded", "no_set_epoch", "scheduler_desync"),
        tells={
            "trained": "Each sample is trained eight times: every GPU goes through the whole data set.",
            "speed": "As many steps to an epoch as on one GPU, which therefore takes as long, with eight GPUs busy.",
        },
        hides="It looks as in a healthy run: eight GPUs busy with the same samples are busy all the same.",
    ),
    Hand(
        cause="rank0_loading", scenario="rank0_loading", found="rank0_feeds", knobs={"hand_off": ("cpu",)},
        alike=("starved_loader", SLOW_GPU, "tiny_model"),
        tells={
            **_FED,
            "busy": "GPU 0 is busy all the time and the other seven in short bursts: they wait on the host for their shard.",
            "useful": "Useful work is done by GPU 0 all the time, by the other seven in short bursts.",
            "power": "GPU 0 draws its full power, the other seven hardly more than when idle.",
        },
        hides="It does not tell whose work the others wait for.",
    ),
    Hand(
        cause="rank0_loading", scenario="rank0_loading", found="rank0_feeds", knobs={"hand_off": ("nccl",)},
        alike=(SLOW_GPU, SLOW_LINK, "sharded"),
        tells={
            **_FED,
            "waiting": "Seven lanes are hatched: they wait inside a kernel for GPU 0, which is the only one that is solid.",
            "useful": "All eight read busy, but useful work is done by GPU 0 alone most of the time.",
            "power": "All eight read busy, but seven of them draw hardly more than when idle.",
        },
        hides="By NCCL the seven wait inside a kernel, and a waiting kernel counts as busy.",
    ),
    Hand(
        cause="large_batch", scenario="large_batch", found="batch_too_large", cards=("a100-80gb", "a100-40gb", "h100-80gb", "v100-32gb"),
        loads=(("resnet50", 256), ("resnet101", 256), ("resnet50", 512)), alike=("sharded", "unsharded", SLOW_LINK), fills_memory=True,
        tells={
            "memory": "Memory rises on all eight alike until it meets the card’s limit.",
            "ended": "All ranks end out of memory in the same step.",
        },
        hides="Until memory runs out, all eight work as they should.",
    ),
    Hand(
        cause="scheduler_desync", scenario="scheduler_desync", found="schedulers_out_of_step",
        alike=("sharded", "unsharded", "no_set_epoch"),
        tells={
            "learning_rate": "The GPUs train with different learning rates: each lowered its own at another step.",
            "apart": "The weights drift apart from GPU 0’s; replicas that are in step stay at 0.",
        },
        hides="A learning rate changes no kernel: timing, memory and power are those of a healthy run.",
    ),
    Hand(
        cause="tiny_model", scenario="tiny_model", found="launch_bound", loads=(("mlp", 64), ("mlp", 128), ("mlp", 256), ("mlp", 512)),
        alike=("starved_loader", SLOW_LINK, "rank0_loading"),
        tells={
            "useful": "Hardly any useful work, on all eight alike: each kernel fills a fraction of the GPU.",
            "busy": "All eight are evenly low, without a pause: the gaps are between one small kernel and the next.",
            "power": "All eight draw little power, steadily.",
            "slow_motion": "Nobody waits for anybody: forward and backward pass fill the step, with gaps between their kernels.",
        },
        hides="It does not tell why the GPUs have little to do.",
    ),
    Hand(
        cause=SLOW_GPU, scenario="sharded", found="straggler", loads=(*IMAGES, ("bert_large", 16)),
        cards=QUICK_CARDS,
        knobs={"straggler": tuple(range(8)), "straggler_pct": (30, 40, 50, 60, 80, 100)}, alike=("rank0_loading", SLOW_LINK, "sharded"),
        tells={
            "waiting": "Seven lanes are hatched and one is not: they wait in the all-reduce for the one that does not wait.",
            "power": "One GPU draws its full power all the time, the others pause at less in every step.",
            "useful": "One GPU does useful work all the time, the others pause in every step.",
            "slow_motion": "One GPU’s forward and backward pass are longer than the others’, which wait for it at the end.",
        },
        hides="Who waits in a collective reads busy: the slow GPU does not stand out here.",
    ),
    Hand(
        cause=SLOW_LINK, scenario="sharded", found="communication_bound", loads=(("bert_large", 8), ("bert_large", 12)),
        cards=("a100-80gb", "h100-80gb", "h200-141gb"), knobs={"link": ("pcie3", "pcie3-host")}, alike=(SLOW_GPU, "tiny_model", "sharded"),
        never_beside=("accumulate_sync",),
        tells={
            "slow_motion": "Most of the step is the all-reduce, on all eight alike, with no work left to hide it behind.",
            "useful": "All eight read busy, and do little useful work: a kernel that moves gradients computes nothing.",
            "power": "All eight read busy at little power, alike.",
        },
        hides="A kernel that moves gradients counts as busy like one that computes.",
    ),
    Hand(
        cause="starved_loader", scenario="starved_loader", found="input_bound",
        loads=(("resnet50", 64), ("resnet50", 128), ("resnet101", 64)),
        alike=("tiny_model", "rank0_loading", SLOW_LINK),
        tells={
            "busy": "All eight rise and fall together: work for a moment, then nothing until the next batch is there.",
            "useful": "All eight do full work for a moment and none until the next batch is there.",
            "power": "All eight alternate between full power and hardly more than when idle.",
            "slow_motion": "Most of a step is the host loading and decoding, on all eight alike.",
        },
        hides="It does not tell what the GPUs have to wait for.",
    ),
    Hand(
        cause="no_set_epoch", scenario="no_set_epoch", found="same_order", two_epochs=True,
        alike=("sharded", "unsharded", "scheduler_desync"),
        tells={"order": "Every epoch after the first brings the samples in the very same order."},
        hides="Each GPU has its own shard and works as it should; only what comes when is wrong.",
    ),
    Hand(
        cause="rank0_validation", scenario="rank0_validation", found="one_rank_validates", steps=38,
        alike=("rank0_checkpoint", SLOW_GPU, "rank0_loading"),
        tells={
            "waiting": "Every few steps seven lanes are hatched for a while, and GPU 0’s is not: it works, and they wait for it.",
            "useful": "Every few steps GPU 0 alone does useful work for a while.",
            "power": "Every few steps seven GPUs draw hardly more than when idle for a while, and GPU 0 does not.",
            "slow_motion": "Every few steps GPU 0 has a stretch of forward passes of its own, while the others wait in the all-reduce.",
        },
        hides="Who waits in a collective reads busy, so that all eight look busy all the time.",
    ),
    Hand(
        cause="rank0_checkpoint", scenario="rank0_checkpoint", found="one_rank_checkpoints", steps=38,
        alike=("rank0_validation", SLOW_GPU, "starved_loader"),
        tells={
            "busy": "Every few steps GPU 0 falls to 0 for a while: its host writes, and the others wait inside a kernel.",
            "useful": "Every few steps nobody does useful work for a while, GPU 0 included.",
            "slow_motion": "Every few steps GPU 0’s host is busy with something of its own, while the others wait in the all-reduce.",
            "waiting": "Every few steps seven lanes are hatched for a while, and GPU 0’s is empty.",
        },
        hides="It does not tell what GPU 0 does meanwhile.",
    ),
    Hand(
        cause="accumulate_sync", scenario="accumulate_sync", found="exchanged_too_often", loads=(("bert_large", 8), ("bert_large", 12)),
        cards=("a100-80gb", "h100-80gb", "h200-141gb"), knobs={"link": ("pcie4",)}, steps=20,
        alike=(SLOW_GPU, "tiny_model", "sharded"), never_beside=(SLOW_LINK,),
        tells={
            "slow_motion": "Four backward passes to one optimizer step, and gradients travel after each of the four.",
        },
        hides="That gradients travel shows here, but not that three of four times they need not.",
    ),
    Hand(
        cause="lopsided_shards", scenario="lopsided_shards", found="uneven_work", cards=("a100-80gb", "h100-80gb", "h200-141gb"),
        loads=(("bert_large_varied", 12), ("bert_large_varied", 16), ("bert_large_varied", 24)),
        alike=(SLOW_GPU, "rank0_loading", SLOW_LINK),
        tells={
            "waiting": "The hatched part shrinks from GPU 0 to GPU 7, step by step: each has longer samples than the one before.",
            "useful": "Useful work rises from GPU 0 to GPU 7, step by step, and not on one GPU alone.",
            "power": "Power rises from GPU 0 to GPU 7, step by step, and not on one GPU alone.",
            "slow_motion": "Forward and backward pass are longer on each GPU than on the one before; all wait for GPU 7.",
        },
        hides="Who waits in a collective reads busy, so that all eight look alike here.",
    ),
    Hand(
        cause="no_set_device", scenario="no_set_device", found="guests_on_a_gpu", alike=("large_batch", "sharded", "rank0_loading"),
        tells={
            "memory": "GPU 0 holds some gigabytes more than the others from the start: a context of every other process lies on it.",
        },
        hides="Contexts take memory and no time: work and power are those of a healthy run.",
    ),
    Hand(
        cause="data_parallel", scenario="data_parallel", found="one_drives_all", cards=QUICK_CARDS,
        loads=(("bert_large", 4), ("bert_large", 6), ("bert_large", 8)), alike=("no_set_device", "rank0_loading", "tiny_model"),
        tells={
            "memory": "GPU 0 holds some gigabytes more than the others: the optimizer’s state and the sum of all gradients are there.",
            "slow_motion": "Each step begins with a copy of the network for every GPU, while all of them are idle. Nobody all-reduces.",
        },
        hides="That all eight are half idle shows, but not what their one host is busy with meanwhile.",
    ),
)
