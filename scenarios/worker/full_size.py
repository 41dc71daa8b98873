"""The data set of a real GPU's run: synthetic samples of full size that carry their serial number, made in the loader's processes.

Owns that data set. A sample costs its worker what copying it costs, and decoding where the CPU decodes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch
from torch import Tensor

from scenarios.costs.models import MODELS
from scenarios.worker.data import Samples
from scenarios.worker.decoding import decode_rows
from scenarios.worker.displayed import SERIAL_BYTES, WORDS, row_form

POOL_BYTES = 16 << 20
"""Random content that all samples are cut from."""
STRIDE_BYTES = 8 * 4_099


class FullSizeSamples(Samples):
    """`MODELS[model].epoch_samples` samples, or those to validate with; with `decode`, they come decoded."""

    def __init__(self, model: str, *, decode: bool = False, held_out: bool = False) -> None:
        self._size = MODELS[model].held_out_samples if held_out else MODELS[model].epoch_samples
        self._model = model
        self._form = row_form(model)
        self._decode = decode
        self._pool = _pool(model)
        self._places = (len(self._pool) - self._form.bytes) // 8

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
        """A whole batch at once, as DataLoader asks for where it is offered."""
        serials = torch.as_tensor(indices, dtype=torch.int64)
        rows = torch.empty(len(serials), SERIAL_BYTES + self._form.bytes, dtype=torch.uint8)
        rows[:, :SERIAL_BYTES] = serials[:, None].view(torch.uint8)
        for row, serial in zip(rows, serials.tolist(), strict=True):
            start = 8 * ((serial * STRIDE_BYTES // 8) % self._places)
            row[SERIAL_BYTES:] = self._pool[start : start + self._form.bytes]
        if MODELS[self._model].table == "bert_large":  # two parts of a text, all of it read
            length = self._form.bytes // (3 * 8)
            rows.view(torch.int64)[:, 1 + length : 1 + 2 * length] = torch.arange(length) >= length // 2
            rows.view(torch.int64)[:, 1 + 2 * length :] = 1
        if self._decode:
            rows = decode_rows(rows)
        return list(zip(rows.unbind(0), self._labels(serials, rows).unbind(0), strict=True))

    def _labels(self, serials: Tensor, rows: Tensor) -> Tensor:
        """The next word of a text; elsewhere a class that follows from the number."""
        if self._model == "gpt2_medium":
            return rows.view(torch.int64)[:, 1:].roll(-1, dims=1)
        places = torch.arange(max(1, sum(self._form.label_shape)), dtype=torch.int64)
        labels = (serials[:, None] * 7_919 + places * 104_729) % self._form.classes
        return labels if self._form.label_shape else labels[:, 0]


def affordable_workers(wanted: int, *, batch_bytes: int, free_bytes: int) -> int:
    """How many loader processes fit: each holds two batches in shared memory, and a full one kills them with SIGBUS. 0 needs none."""
    return max(0, min(wanted, free_bytes // (2 * batch_bytes)))


def shared_memory_bytes() -> int:
    """What is free for batches between processes."""
    try:
        found = os.statvfs("/dev/shm")
    except OSError:  # not Linux: no such limit
        return 1 << 62
    return found.f_bavail * found.f_frsize


def _pool(model: str) -> Tensor:
    """Bytes that mean something for the model wherever 8 of them begin."""
    generator = torch.Generator().manual_seed(20_26)
    if MODELS[model].table in WORDS:
        return torch.randint(WORDS[MODELS[model].table], (POOL_BYTES // 8,), generator=generator).view(torch.uint8)
    if not MODELS[model].decodes:
        return torch.randn(POOL_BYTES // 4, generator=generator).view(torch.uint8)
    return torch.randint(256, (POOL_BYTES,), dtype=torch.uint8, generator=generator)
