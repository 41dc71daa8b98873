"""Decoding and augmentation as real work of a real GPU (or of the loader's processes): what follows entropy decoding in a JPEG decoder.

Dequantised 8 x 8 blocks go through the inverse cosine transform, colours are converted, the picture is cropped, scaled and mirrored, all
from the sample's own bytes. Entropy decoding, most of a real decoder's time, has no counterpart here: on a GPU the transform is repeated
until it takes as long as published decoders do (`Gpu.decode_images_s`), which is said wherever results are shown. Owns this work.
"""

from __future__ import annotations

import math
import time

import torch
from torch import Tensor
from torch.nn import functional as fn

from scenarios.worker.displayed import IMAGE, SERIAL_BYTES

CHUNK = 128
"""Pictures at a time: what lies between two steps stays small beside the model."""
BLOCK = 8
CROP = (16, 208)
MOST_PASSES = 200


def decode_rows(rows: Tensor, *, passes: int = 1) -> Tensor:
    """Rows of coefficients as rows of pixels, on the device where they lie. The serial numbers stay."""
    out = torch.empty_like(rows)
    out[:, :SERIAL_BYTES] = rows[:, :SERIAL_BYTES]
    for start in range(0, len(rows), CHUNK):
        part = rows[start : start + CHUNK, SERIAL_BYTES:]
        for _ in range(passes):
            out[start : start + CHUNK, SERIAL_BYTES:] = _pictures(part).flatten(1)
    return out


def passes_for(rows: Tensor, *, images_per_second: float) -> int:
    """How often to repeat a pass so that this device decodes so many pictures a second; measured on `rows`."""
    decode_rows(rows)
    _settle(rows.device)
    before_s = time.perf_counter()
    for _ in range(3):
        decode_rows(rows)
    _settle(rows.device)
    pass_s = (time.perf_counter() - before_s) / 3
    return max(1, min(MOST_PASSES, round(len(rows) / images_per_second / pass_s)))


def _settle(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _pictures(coefficients: Tensor) -> Tensor:
    """(n, 3 * 224 * 224) bytes of coefficients as (n, 3, 224, 224) bytes of pixels."""
    channels, height, width = IMAGE
    device = coefficients.device
    transform = _cosines().to(device)
    blocks = coefficients.reshape(-1, channels, height // BLOCK, width // BLOCK, BLOCK, BLOCK).float().sub_(128.0)
    blocks = torch.matmul(torch.matmul(transform.t(), blocks * _steps().to(device)), transform)
    planes = blocks.permute(0, 1, 2, 4, 3, 5).reshape(-1, channels, height, width)
    colours = torch.einsum("nchw,dc->ndhw", planes, _to_rgb().to(device)).add_(128.0)
    low, high = CROP
    scaled = fn.interpolate(colours[:, :, low:high, low:high], size=(height, width), mode="bilinear", align_corners=False)
    return scaled.flip(-1).clamp_(0.0, 255.0).to(torch.uint8)


def _cosines() -> Tensor:
    """The 8-point cosine transform, orthonormal."""
    rows = torch.arange(BLOCK)[:, None]
    columns = torch.arange(BLOCK)[None, :]
    matrix = torch.cos(math.pi * (2 * columns + 1) * rows / (2 * BLOCK)) * math.sqrt(2 / BLOCK)
    matrix[0] /= math.sqrt(2.0)
    return matrix


def _steps() -> Tensor:
    """Quantisation steps that grow with the frequency."""
    index = torch.arange(BLOCK, dtype=torch.float32)
    return 1.0 / (1.0 + index[:, None] + index[None, :])


def _to_rgb() -> Tensor:
    return torch.tensor([[1.0, 0.0, 1.402], [1.0, -0.344136, -0.714136], [1.0, 1.772, 0.0]])
