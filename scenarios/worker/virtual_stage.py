"""Turns what a training script does into work of a virtual GPU, by hooks on its loader, model, gradients and optimizer.

Owns the mapping from PyTorch events to charges and to step reports. The script itself stays vanilla. Must not decide what
anything costs (`costs/`) or how clocks advance (`virtual/`).
"""

from __future__ import annotations

import datetime
import os
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import _set_pg_timeout as set_group_timeout

from scenarios.config import RunConfig
from scenarios.costs import pricing
from scenarios.costs.gpus import GPUS
from scenarios.costs.models import MODELS
from scenarios.costs.shapes import StepCosts
from scenarios.telemetry import Span
from scenarios.virtual.collective import BackwardPass
from scenarios.virtual.device import DeviceSetup, VirtualDevice, arrival
from scenarios.worker.checksums import host_checksum
from scenarios.worker.data import FEATURES, NumberedSamples, ProxyNetwork, serial_numbers
from scenarios.worker.exchange import Sketch, Slots, gradient_hook, relative_distance, waited_in_vain
from scenarios.worker.hand_off import VirtualScatter
from scenarios.worker.report import Send, pack_serials, pack_span
from scenarios.worker.stage import RunComplete, Wrapped

ACTIVATION_TENSORS = 160
"""Into how many equal tensors the activations are cut to find the allocation that no longer fits; ResNet-50 keeps about 160."""


PEER_LOST_S = 1.0
"""How long the others spin for a rank whose process has ended, until torchrun, which looks every 0.1 s, has ended them. Our assumption."""

_real_save = torch.save


class VirtualStage:
    """The virtual GPU of one rank and what the training loop tells it."""

    torch_device = torch.device("cpu")
    """A virtual GPU computes on the CPU; only its time is the card's."""
    backend = "gloo"
    workers = 0
    """Loader workers are modelled, so that their timing does not depend on this machine."""
    checkpoint_file = os.devnull
    """A checkpoint is the proxy's."""
    hand_off_group = None
    """The default group."""
    hand_off_device = torch.device("cpu")

    def __init__(self, config: RunConfig, *, rank: int, local_rank: int, world: int, patience_s: float, send: Send) -> None:
        """`patience_s`: how long a collective waits in virtual time before the watchdog ends the rank."""
        self._config = config
        self._patience_s = patience_s
        self._rank, self._local_rank, self._world = rank, local_rank, world
        self._current_gpu = 0
        """What CUDA uses where no device is named; GPU 0 unless the script sets another."""
        self._guests = 0
        """Processes of other ranks that hold a CUDA context on this rank's GPU."""
        self._send = send
        self._spans: list[Span] = []
        self.device = VirtualDevice(DeviceSetup.of(config, rank=rank, world=world), self._spans.append)
        self._progress = 0.0
        self._serials: list[int] = []
        """Of the samples since the last report."""
        self._batch = 0
        self._seq_len: int | None = None
        """Tokens per sequence of the batch, where they vary."""
        self._has_batch = False
        """Between a forward pass and the exchange of its gradients."""
        self._learning_rate: float | None = None
        self._memory_gib = 0.0
        self._apart = 0.0
        self._last_collective_ns = 0
        self._observed: nn.parallel.DistributedDataParallel | None = None
        torch.cuda.set_device = self._set_gpu  # type: ignore[assignment]
        torch.save = self._save
        dist.scatter = VirtualScatter(self.device, config=config, rank=rank, world=world)  # type: ignore[assignment]

    def costs(self, batch: int, *, seq_len: int | None = None, world: int | None = None) -> StepCosts:
        """The displayed model's costs for `batch` samples of `seq_len` tokens (by default its own) on one GPU of `world` (of all)."""
        config = self._config
        return pricing.step_costs(
            model=config.model, gpu=config.gpu, precision=config.precision, batch=batch, world=world or self._world, seq_len=seq_len,
        )

    def dataset(self) -> NumberedSamples:
        return NumberedSamples(MODELS[self._config.model].epoch_samples, on_fetch=self.fetched)

    def held_out(self) -> NumberedSamples:
        return NumberedSamples(MODELS[self._config.model].held_out_samples, on_fetch=self.fetched, held_out=True)

    def network(self, *, decodes: bool) -> nn.Module:
        """A small proxy is computed, and the displayed model is charged."""
        return ProxyNetwork()

    def empty_batch(self, batch: int) -> tuple[Tensor, Tensor]:
        return torch.empty(batch, 1 + FEATURES), torch.empty(batch, dtype=torch.int64)

    def fetched(self, samples: int) -> None:
        """A loader handed over a batch: that of held-out samples while the network is in evaluation mode, else the training's."""
        if self._observed is not None and not self._observed.module.training:
            self.device.load_held_out(samples)
        else:
            self.device.end_validation()
            self.device.load(samples)

    def decode(self, files: Tensor) -> Tensor:
        self.device.decode(self.costs(len(files)))
        return files

    def upload(self, files: Tensor) -> Tensor:
        self.device.upload(self.costs(len(files)).encoded_bytes)
        return files

    def observe(self, model: Wrapped, optimizer: torch.optim.Optimizer, *, steps_per_epoch: int) -> None:
        """Hook into training; called again, only the steps per epoch change."""
        assert isinstance(model, nn.parallel.DistributedDataParallel)
        self._steps_per_epoch = steps_per_epoch
        if self._observed is model:
            return
        self._observed = model
        self._guests = self._count_guests()
        self._sketch = Sketch([parameter for parameter in model.parameters() if parameter.requires_grad])
        self._gradients = sum(parameter.requires_grad for parameter in model.parameters())
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(self._after_gradient)
        model.register_forward_pre_hook(self._before_forward)
        model.module.register_forward_pre_hook(self._before_validation)
        model.register_comm_hook(None, gradient_hook(self._world, self._outgoing, self._incoming, self._lost))
        optimizer.register_step_post_hook(self._after_step)

    def _set_gpu(self, device: int) -> None:
        """Stands in for `torch.cuda.set_device`."""
        self._current_gpu = device

    def _count_guests(self) -> int:
        """How many ranks of this node have left this rank's GPU as their current one: each opens a CUDA context there beside its own."""
        mine = torch.tensor([int(os.environ.get("GROUP_RANK", "0")), self._current_gpu])
        rows = torch.empty(self._world, len(mine), dtype=mine.dtype)
        dist.all_gather(list(rows.unbind(0)), mine)
        here = [int(mine[0]), self._local_rank]
        return sum(row.tolist() == here for rank, row in enumerate(rows) if rank != self._rank)

    def _before_forward(self, model: nn.parallel.DistributedDataParallel, inputs: tuple[Tensor, ...]) -> None:
        samples = inputs[0]
        serials = serial_numbers(samples)
        self._serials += serials
        self._batch = len(samples)
        self._seq_len = MODELS[self._config.model].batch_length(serials)
        self._has_batch = True
        # What DDP itself goes by: the context around the forward pass decides about the backward pass.
        self._all_reduces = model.require_backward_grad_sync
        self._gradients_due = self._gradients
        parts = pricing.memory(
            model=self._config.model, gpu=self._config.gpu, precision=self._config.precision, batch=self._batch, world=self._world,
            seq_len=self._seq_len, guests=self._guests,
        )
        limit_gib = GPUS[self._config.gpu].memory_gib
        if parts.total_gib > limit_gib:
            self._out_of_memory(parts.total_gib - parts.activations_gib, parts.activations_gib, limit_gib)
        self._memory_gib = parts.total_gib
        self.device.forward(self.costs(self._batch, seq_len=self._seq_len))

    def _before_validation(self, network: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if not network.training:
            self.device.validate(self.costs(len(inputs[0])))

    def _save(self, *args: Any, **kwargs: Any) -> None:
        """Stands in for `torch.save`: a checkpoint of the displayed model is charged, the proxy's is written."""
        self.device.checkpoint(pricing.checkpoint_bytes(model=self._config.model))
        _real_save(*args, **kwargs)

    def _out_of_memory(self, static_gib: float, activations_gib: float, limit_gib: float) -> None:
        """Run the part of the forward pass that fits, then fail as PyTorch does."""
        tensor_gib = activations_gib / ACTIVATION_TENSORS
        fitting = max(0, int((limit_gib - static_gib) / tensor_gib))
        self._memory_gib = min(limit_gib, static_gib + fitting * tensor_gib)
        self.device.forward(self.costs(self._batch, seq_len=self._seq_len), fraction=fitting / ACTIVATION_TENSORS)
        self._report(end_ns=self.device.compute_ns, trained=False)
        raise torch.OutOfMemoryError(
            f"CUDA out of memory. Tried to allocate {tensor_gib * 1024:.2f} MiB. GPU {self._rank} has a total capacity of "
            f"{limit_gib:.2f} GiB of which {(limit_gib - self._memory_gib) * 1024:.2f} MiB is free. (Virtual GPU: memory is "
            f"modelled. Batch {self._batch} needs {static_gib + activations_gib:.1f} GiB.)"
        )

    def _after_gradient(self, parameter: Tensor) -> None:
        """DDP calls no communication hook within `no_sync()`: there the pass is over with its last gradient."""
        self._gradients_due -= 1
        if self._gradients_due == 0 and not self._all_reduces:
            self.device.accumulate(self.costs(self._batch, seq_len=self._seq_len, world=1))

    def _outgoing(self) -> tuple[list[int], Tensor]:
        """A rank without a batch has joined (torch.distributed.algorithms.Join): DDP calls the hook for it all the same."""
        batch = self._batch if self._has_batch else 0
        return [self.device.host_ns, self.device.compute_ns, batch, self._seq_len or 0], self._sketch.take()

    def _incoming(self, slots: Slots) -> None:
        arrivals = [
            arrival(
                self.device.setup, rank=rank, step=self.device.step, host_ns=host_ns, compute_ns=compute_ns,
                costs=self.costs(batch, seq_len=seq_len or None) if batch else self.costs(self._config.batch).without_batch,
            )
            for rank, ((host_ns, compute_ns, batch, seq_len), _) in enumerate(slots)
        ]
        together: BackwardPass = self.device.backward(arrivals)
        self._last_collective_ns = together.collectives[-1].end_ns
        if self._has_batch:
            # A rank that has joined takes no optimizer step: until Join ends and brings it up to date, its weights are not compared.
            reference = next(weights for (_, _, batch, _), weights in slots if batch)
            self._apart = relative_distance(slots[self._rank][1], reference)
        else:
            self.device.shadow_step()
            self._report(end_ns=self.device.compute_ns, trained=False)
            self._end_if_complete()
        self._has_batch = False

    def _lost(self, error: Exception) -> None:
        """Some rank did not come to the exchange of gradients: this one's kernel has spun until the watchdog, or torchrun, ended it."""
        waited_s = self._patience_s if waited_in_vain(error) else PEER_LOST_S
        costs = self.costs(self._batch, seq_len=self._seq_len)
        self.device.wait_in_vain(costs if self._has_batch else costs.without_batch, round(waited_s * 1e9))
        self._report(end_ns=self.device.compute_ns, trained=False)

    def _after_step(self, optimizer: torch.optim.Optimizer, args: object, kwargs: object) -> None:
        if self.device.step == 0:
            # What was slow to start is over: from here on a rank that does not come is waited for as long as the run says.
            set_group_timeout(datetime.timedelta(seconds=self._patience_s))
        self.device.optimizer(self.costs(self._batch, seq_len=self._seq_len))
        self._progress += 1.0 / self._steps_per_epoch
        self._learning_rate = float(optimizer.param_groups[0]["lr"])
        self._report(end_ns=self.device.compute_ns, trained=True)
        self._end_if_complete()

    def _end_if_complete(self) -> None:
        limit_s = self._config.view_s
        if self.device.step == self._config.steps or (limit_s is not None and self._last_collective_ns >= limit_s * 1e9):
            raise RunComplete

    def _report(self, *, end_ns: int, trained: bool) -> None:
        self._send(
            {
                "kind": "step",
                "step": self.device.step,
                "trained": trained,
                "progress": round(self._progress, 9),
                "steps_per_epoch": self._steps_per_epoch,
                "batch": self._batch,
                "learning_rate": self._learning_rate,
                "memory_gib": self._memory_gib,
                "processes": 1 + self._guests,
                "apart": self._apart,
                "end_ns": end_ns,
                "spans": [pack_span(span) for span in self._spans],
                "serials": pack_serials(self._serials) if trained else "",
            }
        )
        self._spans.clear()
        self._serials.clear()

    def finish(self) -> None:
        """Every step has been reported."""

    def broke_off(self) -> None:
        """What memory broke off has been reported."""

    def checksum(self) -> str | None:
        """Of this rank's parameters."""
        return None if self._observed is None else host_checksum(self._observed.parameters())
