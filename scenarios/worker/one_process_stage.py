"""The virtual GPUs of one process that drives them all: `torch.nn.DataParallel` on the CPU, charged as on as many GPUs.

The batch is really cut into one part a GPU, each goes through the network by itself, and their gradients add up, as DataParallel has it.
Without GPUs PyTorch would call the network once for the whole batch, so the wrapper's forward pass is replaced here. Owns the mapping from
PyTorch events to charges and step reports; must not decide what anything costs or how clocks advance.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from scenarios.config import RunConfig
from scenarios.costs import one_process as costs
from scenarios.costs.gpus import GPUS
from scenarios.costs.models import MODELS
from scenarios.costs.shapes import StepCosts
from scenarios.telemetry import Span
from scenarios.virtual.device import DeviceSetup, VirtualDevice
from scenarios.virtual.one_process import OneProcess
from scenarios.worker.checksums import host_checksum
from scenarios.worker.data import NumberedSamples, ProxyNetwork, serial_numbers
from scenarios.worker.report import Send, pack_serials, pack_span
from scenarios.worker.stage import RunComplete, Wrapped


class OneProcessStage:
    """All GPUs of the run, and what the training loop tells them."""

    torch_device = torch.device("cpu")
    backend = "gloo"
    workers = 0
    """Loader workers are modelled, so that their timing does not depend on this machine."""
    checkpoint_file = os.devnull
    hand_off_group = None
    hand_off_device = torch.device("cpu")

    def __init__(self, config: RunConfig, *, send: Send) -> None:
        self._config, self._send = config, send
        self._spans: list[Span] = []
        self.gpus = OneProcess(
            [VirtualDevice(DeviceSetup.of(config, rank=rank, world=config.gpus), self._spans.append) for rank in range(config.gpus)]
        )
        self._progress = 0.0
        self._parts: list[Tensor] = []
        """The present batch as it was cut up."""
        self._observed: Wrapped | None = None
        self._steps_per_epoch = 1
        _data_parallel_without_cuda(self._forward)

    def dataset(self) -> NumberedSamples:
        return NumberedSamples(MODELS[self._config.model].epoch_samples, on_fetch=self.gpus.load)

    def held_out(self) -> NumberedSamples:
        return NumberedSamples(MODELS[self._config.model].held_out_samples, on_fetch=self.gpus.load, held_out=True)

    def network(self, *, decodes: bool) -> nn.Module:
        """A small proxy is computed, and the displayed model is charged."""
        return ProxyNetwork()

    def decode(self, files: Tensor) -> Tensor:
        raise RuntimeError("each replica decodes its own part: the script has to upload, not decode")

    def upload(self, files: Tensor) -> Tensor:
        self.gpus.upload(len(files) * self._sample_bytes)
        return files

    @property
    def _sample_bytes(self) -> int:
        """As it comes from the loader."""
        model = MODELS[self._config.model]
        return model.encoded_bytes_per_sample if self._config.preprocess == "gpu" else model.decoded_bytes_per_sample

    def empty_batch(self, batch: int) -> tuple[Tensor, Tensor]:
        raise RuntimeError("no rank hands shards out to others here")

    def observe(self, model: Wrapped, optimizer: torch.optim.Optimizer, *, steps_per_epoch: int) -> None:
        """Hook into training; called again, only the steps per epoch change."""
        self._steps_per_epoch = steps_per_epoch
        if self._observed is model:
            return
        self._observed = model
        optimizer.register_step_pre_hook(self._before_step)
        optimizer.register_step_post_hook(self._after_step)

    def costs(self, part: Tensor) -> StepCosts:
        """The displayed model's costs for one GPU's part of the batch."""
        config = self._config
        return costs.costs_by_threads(
            model=config.model, gpu=config.gpu, precision=config.precision, batch=len(part), gpus=config.gpus,
            seq_len=MODELS[config.model].batch_length(serial_numbers(part)),
        )

    def _forward(self, model: nn.DataParallel[nn.Module], batch: Tensor) -> Tensor:
        """What `DataParallel.forward` does where there are GPUs: cut up, replicate, run, gather."""
        self._parts = list(batch.chunk(self._config.gpus))
        self._fill_memory()
        step, largest = self.costs(self._parts[0]), len(self._parts[0])
        self._gathered_bytes = costs.outputs_bytes(model=self._config.model, batch=largest)
        self.gpus.forward(step, scattered_bytes=largest * self._sample_bytes, gathered_bytes=self._gathered_bytes)
        outputs = torch.cat([model.module(part) for part in self._parts])
        self.gpus.loss(largest)
        return outputs

    def _fill_memory(self) -> None:
        """Each GPU's memory; fails as PyTorch does where GPU 0, which holds most, has too little."""
        config, part = self._config, self._parts[0]
        seq_len = MODELS[config.model].batch_length(serial_numbers(part))
        parts = [
            costs.memory_of(
                model=config.model, gpu=config.gpu, precision=config.precision, batch=len(part), gpus=config.gpus, rank=rank,
                seq_len=seq_len,
            )
            for rank in range(config.gpus)
        ]
        limit_gib = GPUS[config.gpu].memory_gib
        self._memory_gib = [min(limit_gib, each.total_gib) for each in parts]
        if parts[0].total_gib > limit_gib:
            self.gpus.first.forward(self.costs(part), fraction=0.9)
            self._report(trained=False)
            raise torch.OutOfMemoryError(
                f"CUDA out of memory. GPU 0 has a total capacity of {limit_gib:.2f} GiB. (Virtual GPU: memory is modelled. Batch "
                f"{len(part)} on each of {config.gpus} GPUs needs {parts[0].total_gib:.1f} GiB on GPU 0.)"
            )

    def _before_step(self, *_: Any) -> None:
        """The backward pass is over: autograd has returned."""
        self.gpus.backward(self.costs(self._parts[0]), gathered_bytes=self._gathered_bytes)

    def _after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self.gpus.optimizer(self.costs(self._parts[0]))
        self._progress += 1.0 / self._steps_per_epoch
        self._report(trained=True, learning_rate=float(optimizer.param_groups[0]["lr"]))
        limit_s = self._config.view_s
        if self.gpus.first.step == self._config.steps or (limit_s is not None and self.gpus.first.compute_ns >= limit_s * 1e9):
            raise RunComplete

    def _report(self, *, trained: bool, learning_rate: float | None = None) -> None:
        """A report for each GPU. All end the step when GPU 0 does: no other can begin the next before."""
        for rank, device in enumerate(self.gpus.devices):
            part = self._parts[rank] if rank < len(self._parts) else self._parts[0][:0]
            self._send(
                {
                    "kind": "step", "gpu": rank, "step": device.step, "trained": trained, "progress": round(self._progress, 9),
                    "steps_per_epoch": self._steps_per_epoch, "batch": len(part), "learning_rate": learning_rate,
                    "memory_gib": self._memory_gib[rank], "processes": 1, "apart": 0.0, "end_ns": self.gpus.first.compute_ns,
                    "spans": [pack_span(span) for span in self._spans if span.rank == rank],
                    "serials": pack_serials(serial_numbers(part)) if trained else "",
                }
            )
        self._spans.clear()

    def finish(self) -> None:
        """Every step has been reported."""

    def broke_off(self) -> None:
        """What memory broke off has been reported."""

    def checksum(self) -> str | None:
        """Of the parameters on GPU 0, of which all replicas are copies."""
        return None if self._observed is None else host_checksum(self._observed.parameters())


def _data_parallel_without_cuda(forward: Callable[[nn.DataParallel[nn.Module], Tensor], Tensor]) -> None:
    """In this process DataParallel wraps a network without looking for GPUs, and `forward` is what it does with a batch."""

    def instead(model: nn.DataParallel[nn.Module], batch: Tensor) -> Tensor:
        return forward(model, batch)

    sys.modules[nn.DataParallel.__module__]._get_available_device_type = lambda: None  # type: ignore[attr-defined]
    nn.DataParallel.forward = instead  # type: ignore[method-assign, assignment]
