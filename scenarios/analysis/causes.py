"""The causes a diagnosis knows, one function each: figures in, a finding with evidence and confidence out.

Spans decide about time where there are any: they say what a GPU waited for. Samples alone say less, and their findings say so by a lower
confidence. Thresholds come as ramps, (none, sure), because a cause that costs 4 % of a step is there but not the matter; each was set in
the middle of the gap that the recorded runs leave, which `tests/benchmarks/diagnosis.py` measures anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

from scenarios.analysis.breakdown import WORK, Part
from scenarios.analysis.figures import APART, Figures

CERTAIN = 0.97
"""No figure makes surer than this: there may be causes that nobody listed."""

PREPARING: tuple[Part, ...] = ("input", "decode", "copy", "hand_off")
"""What a step needs before it can go forward."""

BY_SAMPLES = 0.85
"""How sure samples alone can make about where time goes."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    cause: str
    title: str
    confidence: float
    evidence: tuple[str, ...]
    rank: int | None = None
    needs_steady: bool = True
    """False where the finding holds whether or not there is a steady part to average over."""
    lower: bool = True
    """Whether the title's first letter may become a small one within a sentence."""


def ramp(value: float, none: float, sure: float) -> float:
    """0 at `none`, 1 at `sure` and beyond, straight between; `none` may be the larger one."""
    return min(1.0, max(0.0, (value - none) / (sure - none)))


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
    return _finding("not_sharded", "Data is not sharded", CERTAIN * ramp(100 - found.distinct_pct, 0.3, 5), evidence, needs_steady=False)


def batch_too_large(found: Figures) -> Finding | None:
    """Memory at the limit on every rank (an allocation that fails leaves less than 2 % free), and a run that ends there or grew to it."""
    share, limit = found.near_limit, found.memory_limit_gib
    if share is None or limit is None:
        return None
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
        return _finding("batch_too_large", "The batch is too large", confidence, evidence, needs_steady=False)
    if found.memory_growth >= 1.5 and share >= 0.5:
        evidence = [f"Memory has grown from {found.first_memory_gib:.1f} to {held}: another such rise would not fit."]
        return _finding("batch_too_large", "The batch grows towards the limit", 0.45, evidence, needs_steady=False)
    return None


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
    return _finding("schedulers_out_of_step", title, confidence, evidence, needs_steady=False)


def one_rank_feeds(found: Figures) -> Finding | None:
    """One GPU works while the others wait for it to hand over data: on the host, or in a kernel."""
    if found.gpus < 2:
        return None
    return _feeds_by_spans(found) if found.breakdown else _feeds_by_samples(found)


def _feeds_by_spans(found: Figures) -> Finding | None:
    rank = min(found.breakdown, key=lambda each: each.share("wait", "spin")).rank
    mine, theirs = found.share_of(rank, "wait", "spin"), found.share_of_others(rank, "wait", "spin")
    if theirs - mine <= 0.1:
        return None
    on_host = found.share_of_others(rank, "wait") > found.share_of_others(rank, "spin")
    prepares = found.share_of(rank, *PREPARING) - found.share_of_others(rank, *PREPARING)
    if not found.hands_over and (not on_host or prepares < 0.1):
        return None
    if prepares < 0.05:  # data is handed over, but that is not what they wait for
        return None
    how = "idle, waiting for another rank" if on_host else "spinning in a collective, busy by nvidia-smi"
    evidence = [
        f"{_all_but(rank, found.gpus)} spend {100 * theirs:.0f} % of each step {how}; GPU {rank} waits for {100 * mine:.0f} % of it.",
        f"GPU {rank} spends {_ms(found, rank, *PREPARING)} of a {1000 * found.step_s:.0f} ms step on waiting for data, decoding, "
        f"copying and handing it over, the others {_ms_of_others(found, rank, *PREPARING)}.",
    ]
    evidence += _busy_evidence(found, rank) if on_host else _useful_evidence(found, rank)
    return _finding(
        "rank0_feeds", f"All data goes through GPU {rank}", CERTAIN * ramp(theirs - mine, 0.1, 0.3), evidence, rank=rank
    )


def _feeds_by_samples(found: Figures) -> Finding | None:
    busy = {rank.rank: rank.busy for rank in found.ranks}
    if not busy or any(value is None for value in busy.values()):
        return None
    first = max(busy, key=lambda rank: busy[rank] or 0.0)
    mine, theirs = found.of(first, "busy") or 0.0, found.mean("busy", found.others(first)) or 0.0
    spin = found.mean("spin", found.others(first)) or 0.0
    if mine - theirs > 20 and spin < 15:
        alike = ramp(max(busy[rank] or 0.0 for rank in found.others(first)) - theirs, 30, 15)
        # Others that wait are idle, then fill their cores; others with small kernels never do, and wait for nobody.
        fill = (found.mean("useful", found.others(first)) or 0.0) / max(theirs - spin, 1.0)
        confidence = BY_SAMPLES * ramp(mine - theirs, 20, 40) * alike * ramp(fill, 0.35, 0.6)
        return _finding("rank0_feeds", f"All data goes through GPU {first}", confidence, _busy_evidence(found, first), rank=first)
    late = _latest(found)
    if late is None:
        return None
    rank, ahead = late
    # Spinning says who is waited for, not why. A GPU less than twice as fast as the others is called slow, not busy with their data.
    confidence = 0.58 * ramp(ahead, 40, 60) * (1.0 if rank == 0 else 0.4)
    evidence = [f"{_all_but(rank, found.gpus)} spin in a collective {found.mean('spin', found.others(rank)) or 0:.0f} % of the time."]
    return _finding("rank0_feeds", f"All data goes through GPU {rank}", confidence, evidence + _useful_evidence(found, rank), rank=rank)


def straggler(found: Figures) -> Finding | None:
    """The rank that waits least in collectives is the one that the others wait for."""
    if found.gpus < 2:
        return None
    return _straggler_by_spans(found) if found.breakdown else _straggler_by_samples(found)


def _straggler_by_spans(found: Figures) -> Finding | None:
    """Its forward pass is compared, not its backward pass: that one is slowed by whoever spins beside it."""
    slow = max(found.breakdown, key=lambda each: each.parts["forward"])
    rank, parts = slow.rank, slow.parts
    usual_s = median(each.parts["forward"] for each in found.breakdown if each.rank != rank)
    longer = parts["forward"] / usual_s - 1 if usual_s else 0.0
    waits, others_wait = found.share_of(rank, "spin"), found.share_of_others(rank, "spin")
    if longer > 0.02:
        # Jitter makes forward passes differ by up to 1 % of a mean over ten steps.
        confidence = CERTAIN * ramp(longer, 0.02, 0.08) * ramp(others_wait - waits, 0.01, 0.03)
        evidence = [
            f"GPU {rank}'s forward pass takes {1000 * parts['forward']:.1f} ms, {100 * longer:.0f} % longer than the median of the others "
            f"({1000 * usual_s:.1f} ms).",
            f"The others spin {100 * others_wait:.0f} % of each step in the all-reduce; GPU {rank} waits least, {100 * waits:.1f} %.",
        ]
        if confidence >= 0.05:
            return _finding("straggler", f"GPU {rank} is slower than the others", confidence, evidence, rank=rank, lower=False)
    return _starved_alone(found)


def _starved_alone(found: Figures) -> Finding | None:
    """One rank's loader or host is late, and only this one's."""
    late = max(found.breakdown, key=lambda each: each.share("input", "launch"))
    mine, theirs = late.share("input", "launch"), found.share_of_others(late.rank, "input", "launch")
    waits = found.share_of_others(late.rank, "spin") - late.share("spin")
    # Where others wait as well, it is not this rank alone; where it feeds them, that is the cause.
    if found.hands_over or theirs > 0.3 * mine or mine - theirs < 0.05:
        return None
    what = "its loader is late" if late.share("input") > late.share("launch") else "its host launches too slowly"
    evidence = [
        f"GPU {late.rank} idles {100 * mine:.0f} % of each step because {what}, the others {100 * theirs:.0f} %.",
        f"The others spin {100 * waits:.0f} points of a step longer than it does.",
    ]
    confidence = 0.9 * ramp(mine - theirs, 0.05, 0.15) * ramp(waits, 0.02, 0.05)
    return _finding("straggler", f"GPU {late.rank} is late: {what}", confidence, evidence, rank=late.rank, lower=False)


def _straggler_by_samples(found: Figures) -> Finding | None:
    late = _latest(found)
    if late is None:
        return None
    rank, ahead = late
    busy, others_busy = found.of(rank, "busy") or 0.0, found.mean("busy", found.others(rank)) or 0.0
    if busy < others_busy - 5:  # it idles, so that it is not its GPU that is slow
        return None
    # Jitter alone makes ranks spin up to 1 %. Much spinning has another explanation, see _feeds_by_samples.
    confidence = BY_SAMPLES * ramp(ahead, 1.5, 5) * (1 - 0.6 * ramp(ahead, 40, 60) * (rank == 0))
    waits = found.of(rank, "spin") or 0.0
    evidence = [
        f"Each of the others spins {waits + ahead:.0f} % of the time or more in collectives; GPU {rank} waits least, {waits:.1f} %.",
        *_useful_evidence(found, rank),
    ]
    return _finding("straggler", f"GPU {rank} is slower than the others", confidence, evidence, rank=rank, lower=False)


def _latest(found: Figures) -> tuple[int, float] | None:
    """The rank that spins least, and how many percent of the time the next one spins more; None where spinning was not measured."""
    spins = {rank.rank: rank.spin for rank in found.ranks if rank.spin is not None}
    if len(spins) < max(2, found.gpus):
        return None
    rank = min(spins, key=lambda each: spins[each])
    return rank, min(value for other, value in spins.items() if other != rank) - spins[rank]


def launch_bound(found: Figures) -> Finding | None:
    """The GPU idles between kernels: they end before the host has launched the next."""
    title = "Launch-bound: the kernels are too small"
    if found.breakdown:
        share = found.share("launch")
        evidence = [
            f"The GPUs idle {100 * share:.0f} % of each step because the host cannot launch fast enough: kernels fill "
            f"{100 * found.share(*WORK):.0f} % of it.",
            *_fill_evidence(found),
        ]
        return _finding("launch_bound", title, CERTAIN * ramp(share, 0.1, 0.3), evidence)
    busy, useful, spin = found.mean("busy"), found.mean("useful"), found.mean("spin") or 0.0
    if busy is None or useful is None or busy <= 0:
        return None
    # A starved GPU is idle, then fills its cores; one with small kernels fills a fraction of them whenever it is busy.
    fill = useful / max(busy - spin, 1.0)
    confidence = BY_SAMPLES * ramp(busy, 85, 60) * ramp(fill, 0.6, 0.35) * _even(found)
    return _finding("launch_bound", title, confidence, [_even_evidence(found), *_fill_evidence(found)])


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
            *([_even_evidence(found)] if found.ranks else []),
        ]
        return _finding("input_bound", title, CERTAIN * ramp(share, 0.04, 0.15), evidence)
    busy, useful, spin = found.mean("busy"), found.mean("useful"), found.mean("spin") or 0.0
    if busy is None or useful is None or busy <= 0:
        return None
    fill = useful / max(busy - spin, 1.0)
    late = _latest(found)
    # The latest rank idles for its batch; ranks that have theirs spin for it. So its utilization is the lowest, never the highest.
    lowest = min(rank.busy or 0.0 for rank in found.ranks)
    waits = late is None or (found.of(late[0], "busy") or 0.0) <= lowest + 5
    confidence = BY_SAMPLES * ramp(lowest, 92, 75) * ramp(fill, 0.45, 0.65) * _even(found) * waits
    return _finding("input_bound", title, 0.9 * confidence, [_even_evidence(found), *_fill_evidence(found)])


def communication_bound(found: Figures) -> Finding | None:
    """The GPU is busy moving gradients, not computing."""
    title = "Communication-bound: the gradients take longer than the work"
    if found.breakdown:
        share = found.share("all_reduce")
        hidden = median(each.hidden_all_reduce_ns / each.window_ns for each in found.breakdown)
        evidence = [
            f"{100 * share:.0f} % of each step is all-reduce with no kernel to hide behind ({1000 * share * found.step_s:.0f} of "
            f"{1000 * found.step_s:.0f} ms); another {100 * hidden:.0f} % is hidden.",
            *_fill_evidence(found),
        ]
        title = title if share > found.share(*WORK) else "Communication is not hidden"
        return _finding("communication_bound", title, CERTAIN * ramp(share, 0.05, 0.2), evidence)
    busy, useful, spin = found.mean("busy"), found.mean("useful"), found.mean("spin")
    if busy is None or useful is None or spin is None:
        return None
    # Small kernels one after another would look the same in samples.
    confidence = 0.7 * ramp(busy, 85, 95) * ramp(useful, 60, 40) * ramp(spin, 10, 4) * _even(found)
    return _finding("communication_bound", title, confidence, [_even_evidence(found), *_fill_evidence(found)])


CAUSES: tuple[Callable[[Figures], Finding | None], ...] = (
    not_sharded, batch_too_large, schedulers_out_of_step, one_rank_feeds, straggler, launch_bound, input_bound, communication_bound,
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
        well = BY_SAMPLES * ramp(busy, 75, 92) * (0.6 if useful is None else ramp(useful, 45, 70))
    if found.ranks:
        evidence.append(_even_evidence(found))
    if found.broken_off:
        well = min(well, 0.5)
        evidence.append(f"Yet the last step of {_count(len(found.broken_off), 'rank')} broke off before its optimizer.")
    if found.gpus > 1 and found.distinct_pct is None:
        well = min(well, 0.55)
        evidence.append("How many samples were distinct was not measured: unsharded data would look the same.")
    elif found.gpus > 1:
        evidence.append("No sample went to two GPUs.")
    if found.gpus > 1 and found.apart == 0:
        evidence.append("The replicas' weights agree.")
    return _finding("healthy", "Nothing holds this run back", min(well, 1 - against), evidence)


def _even(found: Figures) -> float:
    """1 where all GPUs are used alike (half of what they are busy, for waiting shifts between them), 0 where one stands out."""
    known = [rank.busy for rank in found.ranks if rank.busy is not None]
    return ramp(max(known) - min(known), 60, 45) if known else 0.0


def _even_evidence(found: Figures) -> str:
    busy, useful = found.mean("busy"), found.mean("useful")
    who = f"All {found.gpus} GPUs are" if found.gpus > 1 else "The GPU is"
    said = f"{who} busy {busy:.0f} % of the time (nvidia-smi)" if busy is not None else f"{who} of unknown utilization"
    return said + (f", with useful work on {useful:.0f} % of the cores." if useful is not None else ".")


def _fill_evidence(found: Figures) -> list[str]:
    power, limit = found.mean("power_w"), found.power_limit_w
    if power is None or not limit:
        return []
    return [f"They draw {power:.0f} of {limit:.0f} W each." if found.gpus > 1 else f"It draws {power:.0f} of {limit:.0f} W."]


def _busy_evidence(found: Figures, rank: int) -> list[str]:
    mine, theirs = found.of(rank, "busy"), found.mean("busy", found.others(rank))
    if mine is None or theirs is None:
        return []
    return [f"GPU {rank} is busy {mine:.0f} % of the time (nvidia-smi), {_all_but(rank, found.gpus)} {theirs:.0f} % on average."]


def _useful_evidence(found: Figures, rank: int) -> list[str]:
    mine, theirs = found.of(rank, "useful"), found.mean("useful", found.others(rank))
    if mine is None or theirs is None:
        return []
    return [f"GPU {rank} does useful work on {mine:.0f} % of its cores, {_all_but(rank, found.gpus)} on {theirs:.0f} %."]


def _all_but(rank: int, gpus: int) -> str:
    if gpus == 2:
        return f"GPU {1 - rank}"
    return f"GPUs 1-{gpus - 1}" if rank == 0 else f"the other {gpus - 1} GPUs"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _ms(found: Figures, rank: int, *parts: Part) -> str:
    return f"{1000 * found.step_s * found.share_of(rank, *parts):.0f} ms"


def _ms_of_others(found: Figures, rank: int, *parts: Part) -> str:
    return f"{1000 * found.step_s * found.share_of_others(rank, *parts):.0f} ms"


def _finding(
    cause: str, title: str, confidence: float, evidence: Iterable[str], *, rank: int | None = None, needs_steady: bool = True,
    lower: bool = True,
) -> Finding:
    sentences = tuple(text[:1].upper() + text[1:] for text in evidence)
    return Finding(
        cause=cause, title=title, confidence=round(confidence, 2), evidence=sentences, rank=rank, needs_steady=needs_steady, lower=lower
    )
