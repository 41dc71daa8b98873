"""Causes in the training script that hold however long the run was: its data, its memory, its replicas."""

from __future__ import annotations

from statistics import median

from scenarios.analysis.breakdown import WORK
from scenarios.analysis.figures import APART, Figures
from scenarios.analysis.findings import CERTAIN, Finding, even_evidence, finding, ramp


def not_sharded(found: Figures) -> Finding | None:
    """A sampler that shards never gives two ranks the same sample: 0.3 % leaves room for the padding of an epoch's end."""
    if found.gpus < 2 or found.distinct_pct is None:
        return None
    times = 100 / found.distinct_pct
    evidence = [f"Each sample was trained {times:.1f} times: of the samples seen in this epoch {found.distinct_pct:.1f} % were distinct."]
    if abs(found.distinct_pct - 100 / found.gpus) < 1:
        evidence.append(f"That is 1 in {found.gpus}: all {found.gpus} GPUs draw the same batches.")
    busy = found.mean("busy")
    if busy is not None and busy > 85:
        evidence.append(f"All GPUs are busy all the same, {busy:.0f} % of the time: utilization hides it.")
    return finding("not_sharded", "Data is not sharded", CERTAIN * ramp(100 - found.distinct_pct, 0.3, 5), evidence, needs_steady=False)


def same_order(found: Figures) -> Finding | None:
    """Two epochs that are shuffled on their own do not share a batch: even one step in twenty is no accident."""
    if found.repeated_pct is None:
        return None
    evidence = [f"In this epoch {found.repeated_pct:.0f} % of the steps saw the same samples in the same order as in the one before."]
    if found.distinct_pct is not None and found.distinct_pct > 99 and found.gpus > 1:
        evidence.append(f"The shards are right all the same: {found.distinct_pct:.0f} % of the samples of an epoch are distinct.")
    return finding(
        "same_order", "Every epoch brings the samples in the same order", CERTAIN * ramp(found.repeated_pct, 5, 50), evidence,
        needs_steady=False,
    )


def batch_too_large(found: Figures) -> Finding | None:
    """Memory at the limit on every rank (an allocation that fails leaves less than 2 % free), and a run that ends there or grew to it."""
    share, limit = found.near_limit, found.memory_limit_gib
    if share is None or limit is None:
        return None
    memory = found.last_memory_gib
    if 0 < len(found.broken_off) < found.gpus and max(memory) >= 0.96 * limit:  # what some are given does not fit
        others = sorted(memory)[: -len(found.broken_off)]
        rank = found.broken_off[0]
        evidence = [
            f"GPU {rank} held {max(memory):.1f} of {limit:.1f} GiB as it broke off in the forward pass, "
            + (f"the others {others[0]:.1f} to {others[-1]:.1f} GiB." if others else "before any other had ended a step."),
            "The other ranks did not break off there: what it is given is more than what they are given, or its GPU holds more.",
        ]
        title = f"The batch is too large for GPU {rank}"
        return finding("batch_too_large", title, 0.9, evidence, rank=rank, needs_steady=False)
    held = f"{min(found.last_memory_gib):.1f} of {limit:.1f} GiB"
    where = "every GPU" if found.gpus > 1 else "the GPU"
    evidence = [f"Memory reached {held} on {where} in the last period ({100 * share:.0f} %)."]
    grew = found.memory_growth >= 1.3
    ended = len(found.broken_off) == found.gpus
    if grew:
        evidence.append(f"It had grown to that from {found.first_memory_gib:.1f} GiB.")
    if ended:
        every = f"All {found.gpus} ranks" if found.gpus > 1 else "The rank"
        evidence.append(f"{every} broke off in the forward pass of one step, without reaching the optimizer.")
    if share >= 0.96:
        confidence = {(True, True): CERTAIN, (True, False): 0.9, (False, True): 0.85, (False, False): 0.3}[grew, ended]
        return finding("batch_too_large", "The batch is too large", confidence, evidence, needs_steady=False)
    if found.memory_growth >= 1.5 and share >= 0.5:
        evidence = [f"Memory has grown from {found.first_memory_gib:.1f} to {held}: another such rise would not fit."]
        return finding("batch_too_large", "The batch grows towards the limit", 0.45, evidence, needs_steady=False)
    return None


def one_drives_all(found: Figures) -> Finding | None:
    """One process drives several GPUs: its threads take turns at launching, and what the GPUs share goes from and to GPU 0."""
    if found.drivers != 1 or found.gpus < 2:
        return None
    evidence = [f"One process drives all {found.gpus} GPUs: nvidia-smi lists the same one on each of them."]
    idle = 1 - found.share(*WORK)
    if found.breakdown:
        evidence.append(
            f"{100 * idle:.0f} % of each step is no work: the network is copied out and its gradients are summed for "
            f"{100 * found.share('replicate'):.0f} %, threads take turns at launching for {100 * found.share('launch'):.0f} %, the "
            f"batch is copied, or GPU 0 is waited for, {100 * found.share('copy', 'wait'):.0f} %."
        )
    else:
        busy = found.mean("busy")
        idle = 0.0 if busy is None else 1 - busy / 100
        evidence.append(even_evidence(found))
    if len(found.memory_gib) == found.gpus:
        first, *others = found.memory_gib
        evidence.append(f"GPU 0 holds {first:.1f} GiB, the others {median(others):.1f} GiB: it alone has the optimizer's state.")
    return finding("one_drives_all", "One process drives all GPUs", CERTAIN * ramp(idle, 0.02, 0.08), evidence, rank=0)


def guests_on_a_gpu(found: Figures) -> Finding | None:
    """Every process opens the GPU that is its current one, and that is GPU 0 unless it says otherwise. It costs memory, not time."""
    memory = found.memory_gib
    if found.gpus < 2 or len(memory) < found.gpus:
        return None
    fullest = max(range(found.gpus), key=lambda rank: memory[rank])
    others = [memory[rank] for rank in found.others(fullest)]
    more = memory[fullest] - median(others)
    evidence = [f"GPU {fullest} holds {more:.1f} GiB more than the others: {memory[fullest]:.1f} against {median(others):.1f} GiB."]
    title = f"Other ranks' processes hold memory on GPU {fullest}"
    if found.processes:
        counted = found.processes
        if counted[fullest] < 2 or min(counted) > 1:
            return None
        evidence.insert(0, f"{counted[fullest]} processes have a CUDA context on GPU {fullest}; one would do, as on the others.")
        return finding("guests_on_a_gpu", title, CERTAIN, evidence, rank=fullest, needs_steady=False)
    # Half a GiB is the least that a context takes. Uncounted, it might as well be outputs or a cache that this rank alone keeps.
    if max(others) - min(others) > 0.2 or more < 0.4 * (found.gpus - 1):
        return None
    evidence.append(
        f"That would be {more / (found.gpus - 1):.1f} GiB for each of the other {found.gpus - 1} processes; were they not there, this rank "
        "would keep something of its own. nvidia-smi lists them."
    )
    return finding("guests_on_a_gpu", title, 0.55, evidence, rank=fullest, needs_steady=False)


def schedulers_out_of_step(found: Figures) -> Finding | None:
    """Two periods, for a rank may be a step ahead of another in one; healthy replicas are 0 apart."""
    if found.gpus < 2:
        return None
    apart = found.apart is not None and found.apart > APART
    if found.rates_differ < 2 and not apart:
        return None
    evidence = []
    if found.rates_differ >= 2:
        rates = " and ".join(f"{rate:g}" for rate in found.rates[:3]) + (" and others" if len(found.rates) > 3 else "")
        evidence.append(f"The ranks train with different learning rates ({rates}) in {found.rates_differ} sample periods.")
    if apart:
        evidence.append(f"Weights have drifted up to {100 * (found.apart or 0):.2g} % apart from rank 0's; healthy replicas are 0 apart.")
    if found.rates_differ >= 2:
        title, confidence = "Schedulers are out of step", CERTAIN if apart else 0.75
    else:
        title, confidence = "Replicas are out of step", 0.5
        evidence.append("Their learning rates agree in every sample, so another cause is as likely as a scheduler.")
    return finding("schedulers_out_of_step", title, confidence, evidence, needs_steady=False)
