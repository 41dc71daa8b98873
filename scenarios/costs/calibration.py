"""The constants that turn operations and bytes into time, and how each was found.

Owns the numbers that were fitted or chosen. They depend on precision and operator class only, never on a row of the published figures.
`fit.py` finds the fitted ones again. Must not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """Fields marked fitted come from reference/throughput.csv, rows marked tuned; all others are chosen, with their source."""

    conv_fp32: float = 0.659
    """Fitted. Share of the peak rate reached by convolutions outside the tensor cores."""
    conv_tf32: float = 0.283
    """Fitted."""
    conv_amp: float = 0.268
    """Fitted; tensor cores from Ampere on."""
    conv_amp_first: float = 0.34
    """Fitted; the first tensor cores (Volta and Turing), whose lower peak is easier to reach."""
    matmul_fp32: float = 0.627
    """Fitted. The same for matrix products."""
    matmul_tf32: float = 0.642
    """Fitted."""
    matmul_amp: float = 0.413
    """Fitted."""
    elementwise: float = 0.624
    """Fitted. Share of the counted bytes that element-wise kernels and norms really move: caches serve some, published
    scripts fuse others."""
    host_us_per_sample: float = 8.525
    """Fitted to the scaling of rows with image input: time per image and step lost to each further rank that shares the host's input
    pipeline, on a host of the PCIe 4 generation; other hosts are faster or slower as their PCIe is."""
    contention: float = 0.35
    """Chosen: slowing of compute kernels while a collective runs beside them. NCCL's kernels hold about 16 of an A100's 108 SMs and move
    three times the bus bandwidth through its memory, 35 % of what it has. The published scalings cannot tell: collectives are too short."""
    bandwidth: float = 0.85
    """Chosen: share of the peak memory bandwidth that streaming kernels reach (STREAM-like
    measurements on V100 and A100: 0.83-0.90)."""
    grouped_conv: float = 0.30
    """Chosen: rate of grouped convolutions against dense ones, from an earlier coarse fit (no tuned row has them)."""
    hopper: float = 0.58
    """Chosen: Hopper's tensor cores reach less of their peak in the same scripts. With it an H100 is 1.77 times an A100 at ResNet-50 amp,
    the ratio of the two within one untuned source (lambdal/deeplearning-benchmark)."""
    nchw_passes: float = 2.0
    """Chosen: TF32 convolutions on NCHW tensors are transposed to NHWC and back, which moves their bytes so many times more."""


RATES = ("conv_fp32", "conv_tf32", "conv_amp", "conv_amp_first", "matmul_fp32", "matmul_tf32", "matmul_amp", "elementwise")
SCALING = ("host_us_per_sample",)
FITTED = RATES + SCALING

PRIOR = Calibration(
    conv_fp32=0.6, conv_tf32=0.4, conv_amp=0.4, conv_amp_first=0.4, matmul_fp32=0.6, matmul_tf32=0.6, matmul_amp=0.6, elementwise=0.6,
    host_us_per_sample=8.0,
)
"""Where the fit starts, and what decides a constant that the rows at hand leave open."""

CALIBRATION = Calibration()
