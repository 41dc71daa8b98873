"""The knobs of a run in words for people: their names and the names of their values.

Owns these words only; what a knob may be is `scenarios.config`'s.
"""

from __future__ import annotations

from collections.abc import Callable

from scenarios.catalog import SCENARIOS
from scenarios.costs.gpus import GPUS
from scenarios.costs.links import LINKS
from scenarios.costs.models import MODELS

PRECISION = {"amp": "Mixed (amp)", "tf32": "TF32", "fp32": "FP32"}
HAND_OFF = {"cpu": "Over the host", "nccl": "By NCCL"}
PREPROCESS = {"gpu": "Each rank's GPU", "cpu": "The CPU"}
BACKENDS = {"auto": "Real GPUs where they suffice", "virtual": "Virtual GPUs", "cuda": "Real GPUs"}
LABELS = {
    "scenario": "Training script", "gpu": "GPU", "gpus": "GPUs", "model": "Model", "batch": "Batch per GPU", "precision": "Precision",
    "workers": "Loader workers", "preprocess": "Images decoded on", "hand_off": "Shards from GPU 0", "link": "Link",
    "straggler": "Slow GPU", "straggler_pct": "Slower by (%)", "seed": "Seed", "epochs": "Epochs", "steps": "Steps", "backend": "Runs on",
}  # fmt: skip

_VALUES: dict[str, Callable[[str], str]] = {
    "gpu": lambda key: GPUS[key].label, "model": lambda key: MODELS[key].label,
    "link": lambda key: LINKS[key].label if key else "the GPU's own",
    "precision": lambda key: PRECISION[key], "hand_off": lambda key: HAND_OFF[key], "preprocess": lambda key: PREPROCESS[key],
    "backend": lambda key: BACKENDS[key],
    "scenario": lambda key: SCENARIOS[key].title,
}


def value_text(name: str, value: str | int) -> str:
    """A value of a knob for people; as it is where there is no other word for it."""
    text = str(value)
    try:
        return _VALUES[name](text) if name in _VALUES else text
    except KeyError:
        return text
