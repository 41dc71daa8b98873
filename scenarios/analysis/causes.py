"""The causes a diagnosis knows, one function each: figures in, a finding with evidence and confidence out.

Here are those in which all GPUs are alike, the list of all, and what is left when there is none. Spans decide about time where there are
any: they say what a GPU waited for. Samples alone say less, and their findings say so by a lower confidence. Thresholds come as ramps,
(none, sure), because a cause that costs 4 % of a step is there but not the matter; each was set in the middle of the gap that the
recorded runs leave, which `tests/benchmarks/diagnosis.py` measures anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median

from scenarios.analysis.breakdown import WORK
from scenarios.analysis.causes_rank import latest, never_joined, one_rank_feeds, one_rank_pauses, straggler, uneven_work
from scenarios.analysis.causes_script import (
    batch_too_large,
    guests_on_a_gpu,
    not_sharded,
    one_drives_all,
    same_order,
    schedulers_out_of_step,
)
from scenarios.analysis.figures import Figures
from scenarios.analysis.findings import BY_SAMPLES, CERTAIN, Finding, count, even, even_evidence, fill_evidence, finding, ramp


def launch_bound(found: Figures) -> Finding | None:
    """The GPU idles between kernels: they end before the host has launched the next."""
    title = "Launch-bound: the kernels are too small"
    if found.breakdown:
        share = found.share("launch")
        evidence = [
            f"The GPUs idle {100 * share:.0f} % of each step because the host cannot launch fast enough: kernels fill "
            f"{100 * found.share(*WORK):.0f} % of it.",
            *fill_evidence(found),
        ]
        return finding("launch_bound", title, CERTAIN * ramp(share, 0.1, 0.3), evidence)
    busy, useful, spin = found.mean("busy"), found.mean("useful"), found.mean("spin") or 0.0
    if busy is None or useful is None or busy <= 0:
        return None
    # A starved GPU is idle, then fills its cores; one with small kernels fills a fraction of them whenever it is busy.
    fill = useful / max(busy - spin, 1.0)
    confidence = BY_SAMPLES * ramp(busy, 85, 60) * ramp(fill, 0.6, 0.35) * even(found)
    return finding("launch_bound", title, confidence, [even_evidence(found), *fill_evidence(found)])


def input_bound(found: Figures) -> Finding | None:
    """The GPU idles while its host waits for the next batch."""
    title = "The loaders are too slow"
    if found.breakdown:
        # Whoever has its batch spins for the rank that has not: once most wait for batches, or one loads for all, the latest rank
        # says what it costs.
        usual, most = found.share("input"), max(each.share("input") for each in found.breakdown)
        share = most if usual > 0.03 or found.hands_over else usual
        evidence = [
            f"GPUs idle {100 * usual:.0f} % of each step, the latest {100 * most:.0f} % ({1000 * most * found.step_s:.0f} of "
            f"{1000 * found.step_s:.0f} ms), because their hosts wait for the next batch.",
            *([even_evidence(found)] if found.ranks else []),
            "No worker (num_workers=0), too few of them, slow decoding and slow storage would all look like this: try more workers first.",
        ]
        return finding("input_bound", title, CERTAIN * ramp(share, 0.04, 0.15), evidence)
    busy, useful, spin = found.mean("busy"), found.mean("useful"), found.mean("spin") or 0.0
    if busy is None or useful is None or busy <= 0:
        return None
    fill = useful / max(busy - spin, 1.0)
    late = latest(found)
    # The latest rank idles for its batch; ranks that have theirs spin for it. So its utilization is the lowest, never the highest.
    lowest = min(rank.busy or 0.0 for rank in found.ranks)
    waits = late is None or (found.of(late[0], "busy") or 0.0) <= lowest + 5
    confidence = BY_SAMPLES * ramp(lowest, 92, 75) * ramp(fill, 0.45, 0.65) * even(found) * waits * (found.windows is None)
    return finding("input_bound", title, 0.9 * confidence, [even_evidence(found), *fill_evidence(found)])


def exchanged_too_often(found: Figures) -> Finding | None:
    """Gradients are accumulated over several backward passes, and yet each pass all-reduces them. Only spans tell passes apart."""
    if found.passes < 2 or found.reduced_passes < 1.5:
        return None
    share, spared = found.share("all_reduce"), 1 - 1 / found.reduced_passes
    exposed_ms = 1000 * share * found.step_s
    evidence = [
        f"{found.passes} backward passes make a step, and {found.reduced_passes:.0f} of them all-reduce their gradients: the last alone "
        "would do.",
        f"{100 * share:.0f} % of each step is all-reduce with no kernel to hide behind; the last pass alone would leave about "
        f"{exposed_ms * (1 - spared):.0f} of {exposed_ms:.0f} ms.",
    ]
    confidence = CERTAIN * ramp(share * spared, 0.02, 0.12)
    return finding("exchanged_too_often", "Gradients are exchanged after every micro-batch", confidence, evidence)


def communication_bound(found: Figures) -> Finding | None:
    """The GPU is busy moving gradients, not computing."""
    title = "Communication-bound: the gradients take longer than the work"
    if found.breakdown:
        share = found.share("all_reduce")
        hidden = median(each.hidden_all_reduce_ns / each.window_ns for each in found.breakdown)
        evidence = [
            f"{100 * share:.0f} % of each step is all-reduce with no kernel to hide behind ({1000 * share * found.step_s:.0f} of "
            f"{1000 * found.step_s:.0f} ms); another {100 * hidden:.0f} % is hidden.",
            *fill_evidence(found),
        ]
        title = title if share > found.share(*WORK) else "Communication is not hidden"
        if found.reduced_passes > 1.5:  # what passes too many exchange has a finding of its own
            share /= found.reduced_passes
        return finding("communication_bound", title, CERTAIN * ramp(share, 0.05, 0.2), evidence)
    busy, useful, spin = found.mean("busy"), found.mean("useful"), found.mean("spin")
    if busy is None or useful is None or spin is None:
        return None
    # Small kernels one after another would look the same in samples.
    confidence = 0.7 * ramp(busy, 85, 95) * ramp(useful, 60, 40) * ramp(spin, 10, 4) * even(found)
    return finding("communication_bound", title, confidence, [even_evidence(found), *fill_evidence(found)])


CAUSES: tuple[Callable[[Figures], Finding | None], ...] = (
    not_sharded, same_order, batch_too_large, one_drives_all, guests_on_a_gpu, schedulers_out_of_step, never_joined, one_rank_feeds,
    one_rank_pauses, uneven_work, straggler, launch_bound, input_bound, exchanged_too_often, communication_bound,
)


def healthy(found: Figures, others: Iterable[Finding]) -> Finding:
    """Well used, and nothing else found. What was not measured keeps it from being certain."""
    against = max((finding.confidence for finding in others), default=0.0)
    evidence = []
    if found.breakdown:
        work = found.share(*WORK)
        well = CERTAIN * ramp(work, 0.75, 0.9)
        evidence.append(f"{100 * work:.0f} % of each step is the GPUs' own work; waiting and exposed communication take the rest.")
    else:
        busy, useful = found.mean("busy") or 0.0, found.mean("useful")
        well = BY_SAMPLES * ramp(busy, 75, 92) * (0.6 if useful is None else ramp(useful, 50, 82))
    if found.ranks:
        evidence.append(even_evidence(found))
    if found.broken_off:
        well = min(well, 0.5)
        evidence.append(f"Yet the last step of {count(len(found.broken_off), 'rank')} broke off before its optimizer.")
    if found.gpus > 1 and found.distinct_pct is None:
        well = min(well, 0.55)
        evidence.append("How many samples were distinct was not measured: unsharded data would look the same.")
    elif found.gpus > 1:
        evidence.append("No sample went to two GPUs.")
    if found.repeated_pct is None:
        evidence.append("Whether epochs differ in their order takes two of them to see.")
    if found.gpus > 1 and found.apart == 0:
        evidence.append("The replicas' weights agree.")
    return finding("healthy", "Nothing holds this run back", min(well, 1 - against), evidence)
