"""The constants that turn operations and bytes into time, and how each was found.

Owns the numbers that were fitted or chosen. They depend on precision and operator class only, never on a row of the published figures.
`fit.py` finds the fitted ones again. Must not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """Fields marked fitted come from reference/throughput.csv, rows marked tuned; all others are chosen, with their source."""

    conv_fp32: float = 0.72
    """Fitted. Share of the peak rate reached by convolutions outside the tensor cores."""
    conv_tf32: float = 0.31
    """Fitted."""
    conv_amp: float = 0.37
    """Fitted."""
    matmul_fp32: float = 0.63
    """Fitted. The same for matrix products."""
    matmul_tf32: float = 0.48
    """Fitted."""
    matmul_amp: float = 0.62
    """Fitted."""
    elementwise: float = 0.55
    """Fitted. Share of the counted bytes that element-wise kernels and norms really move: published scripts fuse some, caches serve others."""
    contention: float = 0.25
    """Fitted. Slowing of compute kernels while a collective runs beside them."""
    host_us_per_sample: float = 9.0
    """Fitted, published rows with image input only: time per image and step lost to each further rank that shares the host's input pipeline."""
    bandwidth: float = 0.85
    """Chosen: share of the peak memory bandwidth that streaming kernels reach (STREAM-like measurements on V100 and A100: 0.83-0.90)."""
    grouped_conv: float = 0.30
    """Chosen: rate of grouped convolutions against dense ones (no tuned row has them)."""
    nchw_passes: float = 2.0
    """Chosen: TF32 convolutions on NCHW tensors are transposed to NHWC and back, which moves their bytes so many times more."""


FITTED = (
    "conv_fp32", "conv_tf32", "conv_amp", "matmul_fp32", "matmul_tf32", "matmul_amp", "elementwise", "contention", "host_us_per_sample",
)

CALIBRATION = Calibration()
