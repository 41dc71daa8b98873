"""The displayed models at full size, as a rank trains them on a real GPU: each takes a batch as rows of bytes and returns its logits.

A row is a sample's serial number (8 bytes) and the sample itself. So that a number is never lost, rows stay rows through loaders, decoding
and hand-offs, and the network alone reads what is in them. Owns the form of the rows, mixed precision and the switches of TF32.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from scenarios.config import Precision
from scenarios.costs.architectures import ARCHITECTURES, MLP_WIDE_WIDTH, MLP_WIDTH
from scenarios.costs.models import MODELS

SERIAL_BYTES = 8
IMAGE = (3, 224, 224)
IMAGE_CLASSES, ROW_CLASSES = 1000, 10
SOFTENED = 0.02
"""Factor on the logits of all models but the ResNets: the scripts' one learning rate suits those, and the others would diverge with it."""
WORDS = {"bert_large": 30_528, "gpt2_medium": 50_257}


@dataclass(frozen=True, kw_only=True)
class RowForm:
    """What follows the serial number in a row, and what a label is."""

    bytes: int
    label_shape: tuple[int, ...]
    classes: int


def row_form(model: str) -> RowForm:
    """The rows of a displayed model."""
    facts = MODELS[model]
    shortest, length = facts.lengths or (facts.seq_len or 0, facts.seq_len or 0)
    if model in ("mlp", "mlp_wide"):
        return RowForm(bytes=4 * (MLP_WIDTH if model == "mlp" else MLP_WIDE_WIDTH), label_shape=(), classes=ROW_CLASSES)
    if facts.table == "bert_large":  # words, kinds and mask; where the answer starts and ends
        return RowForm(bytes=3 * 8 * length, label_shape=(2,), classes=shortest)
    if model == "gpt2_medium":
        return RowForm(bytes=8 * length, label_shape=(length,), classes=WORDS[model])
    channels, height, width = IMAGE
    return RowForm(bytes=channels * height * width, label_shape=(), classes=IMAGE_CLASSES)


def serials_of(rows: Tensor) -> Tensor:
    """The serial numbers of a batch, on its device."""
    return rows[:, :SERIAL_BYTES].contiguous().view(torch.int64).flatten()


def use_precision(precision: Precision) -> None:
    """Switch TF32 for this process. Mixed precision computes what it leaves in fp32 in TF32, as tuned scripts do."""
    torch.backends.cuda.matmul.allow_tf32 = precision != "fp32"
    torch.backends.cudnn.allow_tf32 = precision != "fp32"


def half_type(device: torch.device) -> torch.dtype:
    """Of autocast: bfloat16 where the tensor cores know it, else float16."""
    if device.type != "cuda" or torch.cuda.get_device_capability(device) >= (8, 0):
        return torch.bfloat16
    return torch.float16


class Displayed(nn.Module):
    """One displayed model, built on `device` from the random numbers of that device."""

    def __init__(self, model: str, *, precision: Precision, device: torch.device) -> None:
        super().__init__()
        with device:
            self.model = ARCHITECTURES[MODELS[model].table].build()
        self._amp = precision == "amp"
        self._half = half_type(device)
        self._inputs = reader(model)
        if not MODELS[model].decodes:
            self.model.apply(_small_weights)
        self._images = ARCHITECTURES[MODELS[model].table].has_sequences is False and MODELS[model].decodes
        if self._images and self._amp:  # tensor cores read channels last; in fp32 and TF32 cuDNN would convert both ways
            self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._places_last = model == "gpt2_medium"

    def forward(self, rows: Tensor) -> Tensor:
        """Logits in fp32, classes in dimension 1, for `torch.nn.functional.cross_entropy`."""
        inputs = self._inputs(rows)
        if self._images and self._amp:
            inputs = (inputs[0].contiguous(memory_format=torch.channels_last),)
        with torch.autocast(rows.device.type, dtype=self._half) if self._amp else nullcontext():
            logits: Tensor = self.model.logits(*inputs)  # type: ignore[operator]
        logits = (logits.transpose(1, 2) if self._places_last else logits).float()
        return logits if self._images else logits * SOFTENED


def _small_weights(module: nn.Module) -> None:
    """As transformers begin: at the scripts' learning rate, PyTorch's own beginning would make deep sums of blocks diverge."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)


def reader(model: str) -> Callable[[Tensor], tuple[Tensor, ...]]:
    """What turns rows into the model's inputs."""
    facts = MODELS[model]
    length = facts.lengths[1] if facts.lengths else facts.seq_len or 0
    if model in ("mlp", "mlp_wide"):
        return lambda rows: (rows.view(torch.float32)[:, SERIAL_BYTES // 4 :],)
    if facts.table == "bert_large":

        def question(rows: Tensor) -> tuple[Tensor, ...]:
            # Sequences of many lengths are read as ones of their mean length: the tokens of a packed batch, without its kernels.
            read = facts.batch_length(serials_of(rows).tolist()) if facts.lengths else length
            words, kinds, mask = (part[:, :read] for part in rows.view(torch.int64)[:, 1:].split(length, dim=1))
            return words, kinds, (1.0 - mask.float())[:, None, None, :] * -10_000.0

        return question
    if model == "gpt2_medium":

        def text(rows: Tensor) -> tuple[Tensor, ...]:
            later = torch.ones(length, length, dtype=torch.bool, device=rows.device).triu(1)
            return rows.view(torch.int64)[:, 1:], later

        return text
    return lambda rows: (rows[:, SERIAL_BYTES:].view(-1, *IMAGE).float().mul_(1 / 127.5).sub_(1.0),)
