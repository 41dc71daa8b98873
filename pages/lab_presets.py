"""Three experiments to begin with: what an empty lab offers. Data only.

Owns which settings they fill in. Must not import streamlit.
"""

from __future__ import annotations

from dataclasses import dataclass

from pages.lab_link import LabLink
from scenarios.costs.gpus import GPUS
from scenarios.costs.links import LINKS


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One experiment: a state of the lab, and whether it is a sweep."""

    name: str
    title: str
    what: str
    """One sentence: what will be done."""
    link: LabLink
    """Views and knobs; `over` and `values` where it is a sweep."""

    @property
    def sweeps(self) -> bool:
        return self.link.over is not None


_LINKS = tuple(name for name in ("pcie3-host", "pcie3", "pcie4", "pcie5", "nvlink2", "nvlink3", "nvlink4") if name in LINKS)

PRESETS = (
    Preset(
        name="links", title="Which link starves BERT-large?",
        what="Eight A100 and a small batch, swept over every link from PCIe 3 to NVLink 4: watch the gradients queue up.",
        link=LabLink(knobs={"model": "bert_large", "batch": 8}, view="sweep", over="link", values=_LINKS),
    ),
    Preset(
        name="memory", title="Find the memory edge of ResNet-50",
        what=f"One run per batch, doubling from 64 to 2,048 on cards of {GPUS['a100-80gb'].memory_gib:.0f} GiB, until one no longer fits.",
        link=LabLink(view="sweep", over="batch", values=(64, 128, 256, 512, 1024, 2048)),
    ),
    Preset(
        name="slow", title="One slow GPU holds back seven",
        what="GPU 3 takes half as long again for every kernel. Which of the eight lanes tells you so?",
        link=LabLink(knobs={"straggler": 3, "straggler_pct": 50}),
    ),
)  # fmt: skip
