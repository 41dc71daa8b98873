"""The shapes in which costs are handed to the virtual devices.

Owns the dataclasses only; `pricing.py` fills them. Must not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """Kernels launched back to back on one stream.

    With kernel durations d_1..d_K and a host that needs l to launch each one, the stream finishes at
    max(stream_free + busy_ns, host_start + critical_ns), where critical_ns = max over j of (j*l + d_j + ... + d_K).
    """

    kernels: int
    busy_ns: int
    """Sum of the kernel durations."""
    launch_ns: int
    """Host time to launch all kernels, K*l."""
    critical_ns: int
    """Finish time on an idle stream, counted from the first launch."""
    sm_active: float
    """Mean share (0..1) of the SMs that do useful work while a kernel is resident."""


EMPTY = Phase(kernels=0, busy_ns=0, launch_ns=0, critical_ns=0, sm_active=0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepCosts:
    """One training step of one rank."""

    decode: Phase
    """Decoding and augmenting one batch with kernels on the rank's own GPU; zero for data that needs none."""
    forward: Phase
    backward: tuple[Phase, ...]
    """One phase per gradient bucket, in the order in which the buckets fill (DDP: first 1 MiB, then 25 MiB)."""
    bucket_bytes: tuple[int, ...]
    """Gradient bytes of each bucket; the same length as `backward`."""
    optimizer: Phase
    encoded_bytes: int
    """Bytes of one batch as read by the loader and copied to the GPU before decoding."""
    decoded_bytes: int
    """Bytes of one batch after decoding (uint8 images): what a hand-off moves."""
    contention: float
    """Share (>= 0) by which compute kernels are slowed while a collective runs beside them."""

    @property
    def without_batch(self) -> StepCosts:
        """Of a rank that has nothing to compute and still takes part in the exchange of gradients."""
        return replace(self, backward=(EMPTY,) * len(self.backward))


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryParts:
    """GPU memory of one rank in GiB, by part."""

    parameters_gib: float
    gradients_gib: float
    optimizer_gib: float
    activations_gib: float
    workspace_gib: float
    context_gib: float

    @property
    def total_gib(self) -> float:
        return (
            self.parameters_gib + self.gradients_gib + self.optimizer_gib
            + self.activations_gib + self.workspace_gib + self.context_gib
        )
