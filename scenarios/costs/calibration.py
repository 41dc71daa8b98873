"""The constants that turn operations and bytes into time, and how each was found.

Owns the numbers that were fitted or chosen. Each belongs to an operator class, a GPU generation or a declared framework path, none to a row
of the published figures. `fit.py` finds the fitted ones again. Must not import torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """Fields marked fitted come from reference/throughput.csv, rows marked tuned; all others are chosen, with their source."""

    conv: float = 0.839
    """Fitted. Share of the peak rate reached by convolutions outside the tensor cores."""
    conv_tensor: float = 0.554
    """Fitted. The same on tensor cores, TF32 as 16 bit."""
    matmul: float = 0.706
    """Fitted. The same for matrix products in every precision."""
    elementwise: float = 0.905
    """Fitted. Share of the counted bytes that element-wise kernels and norms really move: caches serve some."""
    elementwise_fused: float = 0.398
    """Fitted. The same on a declared path: BERT's pre-training scripts compile chains of element-wise operations into one kernel
    (TorchScript and NVFuser, says their README); fine-tuning and convolutional scripts do not."""
    host_images_s: float = 22_250.0
    """Fitted to the scaling of rows with image input: images a second that the input pipeline of one host delivers, for a host of the
    PCIe 4 generation. A declared path: published scripts whose input pipeline stalls each step."""
    card_spread: float = 0.026
    """Fitted to the scaling of all tuned rows: relative standard deviation of the speed of cards of one kind, of which the slowest decides
    a step. A declared path: published runs, whose one-GPU figure comes from one card. Our virtual cards are all alike, unless one is made
    a straggler."""
    contention: float = 0.35
    """Chosen: slowing of compute kernels while a collective runs beside them. NCCL's kernels hold about 16 of an A100's 108 SMs and move
    three times the bus bandwidth through its memory, 35 % of what it has. The published scalings cannot tell: collectives are too short."""
    bandwidth: float = 0.85
    """Chosen: share of the peak memory bandwidth that streaming kernels reach (STREAM-like
    measurements on V100 and A100: 0.83-0.90)."""
    grouped_conv: float = 0.30
    """Chosen: rate of grouped convolutions against dense ones, from an earlier coarse fit (no tuned row has them)."""
    generations: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({"hopper": 0.7, "blackwell": 0.5}), hash=False)
    """Chosen: newer tensor cores reach less of their peak in the same scripts, against Ampere's. From the ratios of H100 and B200 to A100
    within one untuned source (lambdal/deeplearning-benchmark, ResNet-50 and BERT-large)."""


RATES = ("conv", "conv_tensor", "matmul", "elementwise", "elementwise_fused")
SCALING = ("host_images_s", "card_spread")
FITTED = RATES + SCALING

PRIOR = Calibration(
    conv=0.6, conv_tensor=0.6, matmul=0.6, elementwise=0.6, elementwise_fused=0.6, host_images_s=20_000.0,
    card_spread=0.01,
)
"""Where the fit starts, and what decides a constant that the rows at hand leave open."""

CALIBRATION = Calibration()
