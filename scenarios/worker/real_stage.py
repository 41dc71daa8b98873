"""A real GPU of one rank: what the training loop does on it, seen by hooks and CUDA events, and reported a step behind.

Stands where `virtual_stage.py` stands on virtual GPUs, so that the scripts are the same. It adds no collective, and per step some ten
events and one short copy; utilization, memory and power come from NVML, asked by another process. Owns the hooks and the step reports.
"""

from __future__ import annotations

import datetime
import os
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig
from scenarios.costs.gpus import GPUS
from scenarios.costs.models import MODELS
from scenarios.rank_messages import Send, pack_floats
from scenarios.worker import place as places
from scenarios.worker.agreement import Agreement
from scenarios.worker.checksums import checksum
from scenarios.worker.clock import Clock, clock_of
from scenarios.worker.data import Samples
from scenarios.worker.decoding import decode_rows, passes_for
from scenarios.worker.displayed import SERIAL_BYTES, Displayed, row_form, serials_of, use_precision
from scenarios.worker.full_size import FullSizeSamples, affordable_workers, shared_memory_bytes
from scenarios.worker.real_step import RealStep, steps_spans
from scenarios.worker.sketch import SampledParameters
from scenarios.worker.stage import RunComplete
from scenarios.worker.timed_scatter import TimedScatter

WARM_UP_STEPS = 2
"""Not counted as seen: the first step builds kernels and buckets, for seconds on some cards."""
SKETCH_STEPS = 4
GROWTH = 16
"""How many times its first size a batch may reach that doubles until it does not fit."""
MEMORY_EVERY_NS = 200_000_000


_real_save = torch.save


class RealStage:
    """One rank's GPU and what the training loop tells it."""

    def __init__(self, config: RunConfig, *, rank: int, local_rank: int, world: int, collective_limit_s: float, send: Send) -> None:
        self._config, self._rank, self._world, self._send = config, rank, world, send
        here = places.claim_place(local_rank)
        self.torch_device, self.backend = here.device, here.backend
        self.workers = self._workers()
        self._limit = datetime.timedelta(seconds=collective_limit_s)
        use_precision(config.precision)
        torch.backends.cudnn.benchmark = True
        self._form = row_form(config.model)
        self._decodes_here = MODELS[config.model].decodes and config.preprocess == "gpu"
        self._passes = 1
        self._host_group: dist.ProcessGroup | None = None
        self._clock: Clock | None = None
        self._observed: nn.Module | None = None
        self._network: nn.Module | None = None
        self._checkpoint: Any = None
        self._step = RealStep(number=1)
        self._waiting: deque[RealStep] = deque()
        self._progress = 0.0
        self._memory_gib, self._memory_ns = 0.0, 0
        self._seen_from_ns: int | None = None

    def _workers(self) -> int:
        """As asked for, as far as this rank's part of shared memory goes; a batch that grows until it does not fit is loaded without."""
        grows = SCENARIOS[self._config.scenario].expected_outcome == "out_of_memory"
        batch_bytes = self._config.batch * (SERIAL_BYTES + row_form(self._config.model).bytes) * (GROWTH if grows else 1)
        here = int(os.environ.get("LOCAL_WORLD_SIZE", self._world))
        free_bytes = int(0.8 * shared_memory_bytes()) // here
        workers = affordable_workers(self._config.workers, batch_bytes=batch_bytes, free_bytes=free_bytes)
        if workers < self._config.workers:
            print(f"{workers} loader processes instead of {self._config.workers}: /dev/shm has no room for the batches of more", flush=True)
        return workers

    # What the job hands on to the script

    def dataset(self) -> Samples:
        decodes = MODELS[self._config.model].decodes and self._config.preprocess == "cpu"
        return FullSizeSamples(self._config.model, decode=decodes)

    def held_out(self) -> Samples:
        decodes = MODELS[self._config.model].decodes and self._config.preprocess == "cpu"
        return FullSizeSamples(self._config.model, decode=decodes, held_out=True)

    @property
    def checkpoint_file(self) -> str:
        """A real file on disk, removed when the rank ends in good order."""
        if self._checkpoint is None:
            self._checkpoint = tempfile.NamedTemporaryFile(prefix="shardlab-checkpoint-")  # noqa: SIM115
        return str(self._checkpoint.name)

    def network(self, *, decodes: bool) -> nn.Module:
        return Displayed(self._config.model, precision=self._config.precision, device=self.torch_device)

    def upload(self, files: Tensor) -> Tensor:
        return files.to(self.torch_device)

    def decode(self, files: Tensor) -> Tensor:
        step, clock = self._step, self._clock
        if clock is None:  # nobody observes
            return self._decoded(files.to(self.torch_device, non_blocking=True))
        step.loaded(time.monotonic_ns(), "validate" if self._validating else "load")
        begun = clock.mark()
        coded = files.to(self.torch_device, non_blocking=True)
        copied = clock.mark()
        step.work("copy", begun, copied)
        decoded = self._decoded(coded)
        if self._decodes_here:
            step.work("validate" if self._validating else "decode", copied, clock.mark())
        return decoded

    def _decoded(self, coded: Tensor) -> Tensor:
        return decode_rows(coded, passes=self._passes) if self._decodes_here else coded

    @property
    def hand_off_device(self) -> torch.device:
        return torch.device("cpu") if self._config.hand_off == "cpu" else self.torch_device

    @property
    def hand_off_group(self) -> dist.ProcessGroup | None:
        """Host memory travels over gloo, GPU memory over the default group's NCCL. Made when all ranks first ask for it."""
        if self._config.hand_off == "nccl":
            return None
        if self._host_group is None:
            self._host_group = dist.new_group(backend="gloo", timeout=self._limit)
        return self._host_group

    def empty_batch(self, batch: int) -> tuple[Tensor, Tensor]:
        where: dict[str, Any] = {"device": self.hand_off_device}
        if self._config.hand_off == "cpu" and self.torch_device.type == "cuda":
            where["pin_memory"] = True
        rows = torch.empty(batch, SERIAL_BYTES + self._form.bytes, dtype=torch.uint8, **where)
        return rows, torch.empty(batch, *self._form.label_shape, dtype=torch.int64, **where)

    # What training tells

    def observe(self, model: nn.Module, optimizer: torch.optim.Optimizer, *, steps_per_epoch: int) -> None:
        """Hook into training; called again, only the steps per epoch change."""
        self._steps_per_epoch = steps_per_epoch
        if self._observed is model:
            return
        self._observed = model
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._sketch = SampledParameters(parameters)
        self._agreement = Agreement(self._rank)
        if self._decodes_here:
            self._passes = self._agreement.passes(self._measured_passes)
        self._clock = clock_of(self.torch_device)
        zero_unix_ns = self._agreement.zero_unix_ns()
        self._zero_ns = time.monotonic_ns() - (time.time_ns() - zero_unix_ns)
        self._send({"kind": "begin", "zero_unix_ns": zero_unix_ns, "passes": self._passes})
        self._step.idle_since_ns = time.monotonic_ns()
        # The network itself, not DDP around it: a validation goes past DDP.
        self._network = model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
        self._network.register_forward_pre_hook(self._before_forward)
        self._network.register_forward_hook(self._after_forward)
        # The first parameter's gradient is the last to be there: its layer was the first.
        parameters[0].register_post_accumulate_grad_hook(self._after_backward)
        optimizer.register_step_pre_hook(self._before_step)
        optimizer.register_step_post_hook(self._after_step)
        torch.save = self._save
        if SCENARIOS[self._config.scenario].hands_out:
            dist.scatter = TimedScatter(self._scattering)  # type: ignore[assignment]

    def _measured_passes(self) -> int:
        rows = torch.randint(256, (self._config.batch, SERIAL_BYTES + self._form.bytes), dtype=torch.uint8, device=self.torch_device)
        return passes_for(rows[:256], images_per_second=GPUS[self._config.gpu].decode_images_s)

    @contextmanager
    def _scattering(self, src: int) -> Iterator[None]:
        """The hand-off: on the host by its clock, over NCCL by the stream that waits for it. Whoever receives, waits most of the time."""
        assert self._clock is not None
        step, sends = self._step, src == self._rank
        if self._config.hand_off == "cpu":
            start_ns = time.monotonic_ns()
            yield
            step.host("scatter" if sends else "wait", start_ns, time.monotonic_ns())
        else:
            begun = self._clock.mark()
            yield
            step.work("scatter" if sends else "spin", begun, self._clock.mark())

    def _before_forward(self, model: nn.Module, args: tuple[Tensor, ...]) -> None:
        assert self._clock is not None
        self._step.forward_from(self._clock.mark())
        if self._validating:
            return
        self._step.batches.append(_to_host(serials_of(args[0])))

    def _after_forward(self, model: nn.Module, args: object, output: object) -> None:
        assert self._clock is not None
        if self._validating:
            self._step.validated_to(self._clock.mark())
            return
        self._step.forward_to(self._clock.mark())

    @property
    def _validating(self) -> bool:
        return self._network is not None and not self._network.training

    def _save(self, *args: Any, **kwargs: Any) -> None:
        """Stands in for `torch.save`: the host's time in it is noted."""
        start_ns = time.monotonic_ns()
        _real_save(*args, **kwargs)
        self._step.host("checkpoint", start_ns, time.monotonic_ns())
        self._step.idle_since_ns = time.monotonic_ns()

    def _after_backward(self, parameter: Tensor) -> None:
        assert self._clock is not None
        self._step.backward_to(self._clock.mark())
        # DDP makes the stream wait for the gradients in such a callback too, which it asks for later than this one: hence twice.
        engine = torch.autograd.Variable._execution_engine
        engine.queue_callback(lambda: engine.queue_callback(self._after_gradients))

    def _after_gradients(self) -> None:
        assert self._clock is not None
        self._step.reduced_at(self._clock.mark())

    def _before_step(self, optimizer: torch.optim.Optimizer, args: object, kwargs: object) -> None:
        assert self._clock is not None
        self._step.optimizer_from(self._clock.mark())

    def _after_step(self, optimizer: torch.optim.Optimizer, args: object, kwargs: object) -> None:
        assert self._clock is not None
        step = self._step
        if step.number % SKETCH_STEPS == 0:
            step.sketch = _to_host(self._sketch.take())
        step.end(self._clock.mark())
        self._progress += 1.0 / self._steps_per_epoch
        step.progress, step.steps_per_epoch = self._progress, self._steps_per_epoch
        step.learning_rate = float(optimizer.param_groups[0]["lr"])
        self._waiting.append(step)
        self._step = RealStep(number=step.number + 1)
        while len(self._waiting) > 1:  # the host stays one step ahead of its GPU
            self._report(self._waiting.popleft())
        self._step.idle_since_ns = time.monotonic_ns()
        if self._is_over(step.number):
            raise RunComplete

    def _is_over(self, step: int) -> bool:
        if self._config.steps is not None and step >= self._config.steps:
            return True
        now_ns = time.monotonic_ns()
        if step == WARM_UP_STEPS:
            self._seen_from_ns = now_ns
        if self._config.view_s is None or self._seen_from_ns is None:
            return False
        seen_s = (now_ns - self._seen_from_ns) / 1e9
        return self._agreement.is_last(
            step, seen_enough=seen_s >= self._config.view_s, near=seen_s >= 0.7 * self._config.view_s
        )

    def _report(self, step: RealStep) -> None:
        """Send what the step came to, once its GPU has ended it."""
        clock = self._clock
        assert clock is not None
        clock.wait(step.ended)
        spans = steps_spans(step, clock, zero_ns=self._zero_ns, rank=self._rank, alone=self._world == 1)
        self._send(
            {
                "kind": "step", "step": step.number, "trained": True, "progress": round(step.progress, 9),
                "steps_per_epoch": step.steps_per_epoch, "batch": step.samples, "learning_rate": step.learning_rate,
                "memory_gib": self._memory(), "apart": 0.0, "processes": 1, "end_ns": max(0, clock.ns(step.ended) - self._zero_ns),
                "spans": spans, "serials": step.packed_serials(),
                "sketch": "" if step.sketch is None else pack_floats(step.sketch.tolist()),
            }
        )

    def _memory(self) -> float:
        """What PyTorch holds on the GPU, in GiB; asked for now and then."""
        now_ns = time.monotonic_ns()
        if self.torch_device.type == "cuda" and now_ns - self._memory_ns >= MEMORY_EVERY_NS:
            self._memory_ns = now_ns
            self._memory_gib = torch.cuda.memory_reserved(self.torch_device) / 2**30
        return self._memory_gib

    # Ends

    def finish(self) -> None:
        """Training is over: report what is still on its way."""
        while self._waiting:
            self._report(self._waiting.popleft())

    def broke_off(self) -> None:
        """Training failed: report the steps that were ended before, and how far memory had grown. The GPU itself may be gone."""
        if self._clock is None:
            return
        try:
            self.finish()
            if self.torch_device.type == "cuda":
                self._memory_gib = torch.cuda.max_memory_reserved(self.torch_device) / 2**30
        except RuntimeError:  # torch.AcceleratorError is one: the device answers nothing any more
            self._waiting.clear()
        self._send(
            {
                "kind": "step", "step": self._step.number, "trained": False, "progress": round(self._progress, 9),
                "steps_per_epoch": self._steps_per_epoch, "batch": 0, "learning_rate": None, "memory_gib": self._memory_gib,
                "apart": 0.0, "processes": 1, "end_ns": max(0, time.monotonic_ns() - self._zero_ns),
                "spans": [], "serials": "", "sketch": "",
            }
        )

    def checksum(self) -> str | None:
        """Of the parameters (no buffers: BatchNorm's differ between healthy replicas); None before anything was observed."""
        return None if self._observed is None else checksum(self._observed.parameters())


def _to_host(values: Tensor) -> Tensor:
    """A copy in host memory that is there when the stream has come to it: nobody waits for it now."""
    if values.device.type != "cuda":
        return values.clone()
    out = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    out.copy_(values, non_blocking=True)
    return out
