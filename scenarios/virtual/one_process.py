"""One process that drives all GPUs of a node, as `torch.nn.DataParallel` does: one host thread launches, and GPU 0 is where all meets.

Owns the order of a step and who waits for whom; what things cost is `costs/one_process.py`'s. Every GPU's host is the same thread, so that
a GPU that is idle is explained by what that thread does meanwhile. Must not touch tensors.
"""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.costs import one_process as costs
from scenarios.costs.shapes import StepCosts
from scenarios.telemetry import Kind
from scenarios.virtual.device import VirtualDevice
from scenarios.virtual.host import JITTER_RANK
from scenarios.virtual.jitter import jittered


class OneProcess:
    """The GPUs of one process, in the order of a step: load, upload, forward, loss, backward and optimizer."""

    def __init__(self, devices: Sequence[VirtualDevice]) -> None:
        self.devices = tuple(devices)
        self.first = self.devices[0]
        self._setup = self.first.setup

    def load(self, samples: int) -> None:
        """The batch of all GPUs, from one loader."""
        self.first.load(samples)
        self._together("load")

    def upload(self, nbytes: int) -> None:
        """`tensor.to(device)`: the batch of all GPUs goes to GPU 0, behind all that GPU 0 has to do, and the host waits for it."""
        self._wait_for(self.first.compute_ns)
        self.first.upload(nbytes)
        self._wait_for(self.first.copy_ns)

    def forward(self, step: StepCosts, *, scattered_bytes: int, gathered_bytes: int) -> None:
        """Scatter the batch, copy the network, run a forward pass on each GPU by a thread of its own, gather the outputs.

        `step` is one GPU's; `scattered_bytes` and `gathered_bytes` are what each of the others is sent, and returns.
        """
        setup = self._setup
        if len(self.devices) == 1:  # then DataParallel calls the network, and nothing else
            self._run_forward(step)
            return
        self._from_first_to_others(scattered_bytes)
        self._join_nccl()
        took_ns = costs.replicate_host_ns(model=setup.model, gpus=setup.world) + setup.world * costs.THREAD_NS
        self._host("replicate", self.first.host_ns + jittered(took_ns, setup.seed, JITTER_RANK, self.first.step, "replicate"))
        self._run_forward(step)
        self._gather(gathered_bytes)

    def loss(self, batch: int) -> None:
        """`labels.to(device)` waits for GPU 0; then the loss of all outputs is computed there."""
        setup = self._setup
        self._wait_for(self.first.compute_ns)
        self.first.compute("forward", costs.loss(model=setup.model, gpu=setup.gpu, batch=batch, gpus=setup.world))
        self._together("wait")

    def backward(self, step: StepCosts, *, gathered_bytes: int) -> None:
        """Each GPU's backward pass, launched by a thread of autograd's; then the gradients of all are summed on GPU 0, behind the last."""
        setup = self._setup
        self._from_first_to_others(gathered_bytes)
        for device in self.devices:
            device.accumulate(step)
        self._together("wait")
        if len(self.devices) > 1:
            took_ns = costs.reduce_host_ns(model=setup.model, gpus=setup.world)
            self._host("replicate", self.first.host_ns + jittered(took_ns, setup.seed, JITTER_RANK, self.first.step, "replicate"))
            self._join_nccl()

    def optimizer(self, step: StepCosts) -> None:
        """On GPU 0, the only one that keeps weights from step to step; the others' step is over when it is."""
        self.first.optimizer(step)
        for device in self.devices[1:]:
            device.host_does("optimizer", self.first.compute_ns)
            device.end_step()

    def _run_forward(self, step: StepCosts) -> None:
        for device in self.devices:
            if device.setup.decode_on_gpu:
                device.compute("decode", step.decode)
            device.compute("forward", step.forward)
        self._together("wait")

    def _from_first_to_others(self, nbytes: int) -> None:
        """One copy after the other, in GPU 0's stream."""
        setup = self._setup
        for device in self.devices[1:]:
            start_ns = max(self.first.host_ns, self.first.compute_ns, device.compute_ns)
            end_ns = start_ns + costs.peer_copy_ns(nbytes, gpu=setup.gpu, link=setup.link)
            for end in (self.first, device):
                end.peer_copy(start_ns, end_ns)

    def _gather(self, nbytes: int) -> None:
        """Each in its own stream, and through GPU 0's one link; GPU 0 goes on when all have come."""
        setup = self._setup
        for device in self.devices[1:]:
            start_ns = max(device.compute_ns, device.host_ns, self.first.copy_ns)
            device.peer_copy(start_ns, start_ns + costs.peer_copy_ns(nbytes, gpu=setup.gpu, link=setup.link))
            self.first.copy_ns = device.copy_ns
        self.first.compute_ns = max(self.first.compute_ns, self.first.copy_ns)

    def _join_nccl(self) -> None:
        """A broadcast of the network from GPU 0, or the sum of its gradients there: all kernels start when the last GPU has come to it."""
        setup = self._setup
        start_ns = max(device.reach_nccl() for device in self.devices)
        end_ns = start_ns + costs.broadcast_ns(model=setup.model, gpu=setup.gpu, gpus=setup.world, link=setup.link)
        for device in self.devices:
            device.join_nccl("replicate", start_ns=start_ns, end_ns=end_ns)

    def _wait_for(self, until_ns: int) -> None:
        self._host("wait", until_ns)

    def _host(self, kind: Kind, until_ns: int) -> None:
        for device in self.devices:
            device.host_does(kind, until_ns)

    def _together(self, kind: Kind) -> None:
        """The main thread goes on when all are through."""
        self._host(kind, max(device.host_ns for device in self.devices))
