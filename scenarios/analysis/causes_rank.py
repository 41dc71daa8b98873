"""Causes in which one rank differs from the others: it feeds them, or they wait for it.

Spans decide about time where there are any; samples alone say less, see `causes.py`.
"""

from __future__ import annotations

from statistics import median

from scenarios.analysis.breakdown import Part
from scenarios.analysis.figures import Figures
from scenarios.analysis.findings import (
    BY_SAMPLES,
    CERTAIN,
    Finding,
    all_but,
    busy_evidence,
    finding,
    ms,
    ms_of_others,
    named,
    ramp,
    useful_evidence,
)

PREPARING: tuple[Part, ...] = ("input", "decode", "copy", "hand_off")
"""What a step needs before it can go forward."""

PAUSING: tuple[Part, ...] = ("validate", "checkpoint")
"""What is not a part of each step."""


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
        f"{all_but(rank, found.gpus)} spend {100 * theirs:.0f} % of each step {how}; GPU {rank} waits for {100 * mine:.0f} % of it.",
        f"GPU {rank} spends {ms(found, rank, *PREPARING)} of a {1000 * found.step_s:.0f} ms step on waiting for data, decoding, "
        f"copying and handing it over, the others {ms_of_others(found, rank, *PREPARING)}.",
    ]
    evidence += busy_evidence(found, rank) if on_host else useful_evidence(found, rank)
    return finding(
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
        return finding("rank0_feeds", f"All data goes through GPU {first}", confidence, busy_evidence(found, first), rank=first)
    late = latest(found)
    if late is None or found.windows is not None:
        return None
    rank, ahead = late
    # Spinning says who is waited for, not why. A GPU less than twice as fast as the others is called slow, not busy with their data.
    confidence = 0.58 * ramp(ahead, 40, 60) * (1.0 if rank == 0 else 0.4) * (1 - _more_work(found, rank))
    evidence = [f"{all_but(rank, found.gpus)} spin in a collective {found.mean('spin', found.others(rank)) or 0:.0f} % of the time."]
    return finding("rank0_feeds", f"All data goes through GPU {rank}", confidence, evidence + useful_evidence(found, rank), rank=rank)


def never_joined(found: Figures) -> Finding | None:
    """A collective waits for all ranks. One that has left the training loop never comes; the others wait until the watchdog ends them."""
    stuck = found.hang
    if stuck is None:
        return None
    absent, waiting = named(stuck.absent), named(stuck.waiting)
    one = len(stuck.absent) == 1
    evidence = [
        f"In the last {stuck.seconds:.1f} s no step ended: {waiting} {_wait(stuck.waiting)} in a collective, busy by nvidia-smi, while "
        f"{absent} {'has' if one else 'have'} no kernel to run.",
    ]
    if stuck.power_w is not None and found.power_limit_w:
        evidence.append(f"Those that wait draw {stuck.power_w:.0f} of {found.power_limit_w:.0f} W.")
    evidence.append(
        f"Why {'it does' if one else 'they do'} not come, samples and spans do not say: most often there were fewer batches, else another "
        "branch of the code or a host that hangs. py-spy dump shows where its process is."
    )
    title = f"{absent} never {'joins' if one else 'join'} the collective that the others wait in"
    confidence = CERTAIN if stuck.spin_measured else 0.75
    return finding(
        "never_joined", title, confidence, evidence, rank=stuck.absent[0] if one else None, needs_steady=False, lower=False
    )


def _wait(ranks: tuple[int, ...]) -> str:
    return "waits" if len(ranks) == 1 else "wait"


def one_rank_pauses(found: Figures) -> Finding | None:
    """One rank leaves training every so many steps, to validate or to write a checkpoint, and the others wait for it in a collective."""
    if found.gpus < 2:
        return None
    return _pauses_by_spans(found) if found.breakdown else _pauses_by_samples(found)


def _pauses_by_spans(found: Figures) -> Finding | None:
    late = max(found.breakdown, key=lambda each: each.share(*PAUSING))
    mine, theirs = late.share(*PAUSING), found.share_of_others(late.rank, *PAUSING)
    waits = found.share_of_others(late.rank, "spin", "wait") - late.share("spin", "wait")
    validates = late.share("validate") >= late.share("checkpoint")
    evidence = [
        f"GPU {late.rank} spends {100 * mine:.0f} % of the time {'validating' if validates else 'waiting for a checkpoint to be written'}, "
        f"the others {100 * theirs:.0f} %.",
        f"Meanwhile they wait for it in a collective: {100 * found.share_of_others(late.rank, 'spin', 'wait'):.0f} % of the time, "
        f"GPU {late.rank} itself {100 * late.share('spin', 'wait'):.0f} %.",
    ]
    confidence = CERTAIN * ramp(mine - theirs, 0.02, 0.08) * ramp(waits, 0.01, 0.05)
    return _pause(late.rank, confidence, evidence, validates=validates)


def _pauses_by_samples(found: Figures) -> Finding | None:
    """Samples show when the one rank keeps the others waiting and whether its GPU works meanwhile, but not at what."""
    windows = found.windows
    if windows is None or windows.busy_pct is None:
        return None
    evidence = [
        f"{all_but(windows.rank, found.gpus)} wait in a collective in {windows.count} stretches, {windows.share_pct:.0f} % of the time "
        "in all; between them they hardly wait.",
        f"GPU {windows.rank} is busy {windows.busy_pct:.0f} % of the time meanwhile. What it does, samples do not say: validating keeps "
        "a GPU busy, checkpoints and other files leave it idle.",
    ]
    validates = windows.busy_pct >= 50
    sure = ramp(windows.busy_pct, 50, 80) if validates else ramp(windows.busy_pct, 50, 20)
    return _pause(windows.rank, 0.9 * BY_SAMPLES * (0.5 + 0.5 * sure), evidence, validates=validates)


def _pause(rank: int, confidence: float, evidence: list[str], *, validates: bool) -> Finding:
    if validates:
        return finding("one_rank_validates", f"Only GPU {rank} validates, and the others wait", confidence, evidence, rank=rank)
    return finding("one_rank_checkpoints", f"The others wait while rank {rank} writes checkpoints", confidence, evidence, rank=rank)


def uneven_work(found: Figures) -> Finding | None:
    """One rank is late in every step because its samples are more work: then it holds more memory, and the others differ as well."""
    if found.gpus < 2:
        return None
    if found.breakdown:
        late = max(found.breakdown, key=lambda each: each.parts["forward"])
        rank, others = late.rank, [each.parts["forward"] for each in found.breakdown if each.rank != late.rank]
        usual_s = median(others)
        longer = late.parts["forward"] / usual_s - 1 if usual_s else 0.0
        confidence = CERTAIN * ramp(longer, 0.02, 0.08) * ramp(found.share_of_others(rank, "spin") - late.share("spin"), 0.01, 0.03)
        evidence = [
            f"Forward passes take from {1000 * min(others):.1f} to {1000 * late.parts['forward']:.1f} ms, GPU {rank}'s the longest; the "
            f"others spin {100 * found.share_of_others(rank, 'spin'):.0f} % of each step in the all-reduce."
        ]
    else:
        last = latest(found)
        if last is None or found.windows is not None:
            return None
        rank, ahead = last
        confidence = BY_SAMPLES * ramp(ahead, 1.5, 5)
        evidence = [f"The others spin in collectives at least {ahead:.0f} % of the time longer than GPU {rank} does."]
    mine, theirs = found.of(rank, "memory_gib"), [found.of(other, "memory_gib") for other in found.others(rank)]
    known = [value for value in theirs if value is not None]
    if mine is not None and known:
        evidence.append(
            f"It also holds {mine:.1f} GiB, the others {min(known):.1f} to {max(known):.1f} GiB: a GPU that is only slow would hold as "
            "much as they do, one with larger samples holds more."
        )
    title = f"GPU {rank} is given more work than the others"
    return finding("uneven_work", title, confidence * _more_work(found, rank), evidence, rank=rank, lower=False)


def _more_work(found: Figures, rank: int) -> float:
    """How plain it is that a late rank has more work, 0 to 1, rather than a slow GPU.

    Healthy ranks' memory and forward passes differ by 1 %; those of batches drawn from samples of many lengths by a few.
    """
    guests = bool(found.processes) and found.processes[rank] > 1  # whose memory it is does not matter then
    mine = None if guests else found.of(rank, "memory_gib")
    theirs = [value for other in found.others(rank) if (value := found.of(other, "memory_gib")) is not None]
    more = ramp(mine / median(theirs) - 1, 0.05, 0.12) if mine is not None and theirs else 0.0
    passes = [each.parts["forward"] for each in found.breakdown if each.rank != rank]
    differ = ramp(max(passes) / min(passes) - 1, 0.15, 0.4) if len(passes) > 1 and min(passes) else 0.0
    # Several slow GPUs would differ too, but in nothing else.
    return max(more, (0.6 if mine is None else 0.3) * differ)


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
        confidence = CERTAIN * ramp(longer, 0.02, 0.08) * ramp(others_wait - waits, 0.01, 0.03) * (1 - _more_work(found, rank))
        evidence = [
            f"GPU {rank}'s forward pass takes {1000 * parts['forward']:.1f} ms, {100 * longer:.0f} % longer than the median of the others "
            f"({1000 * usual_s:.1f} ms).",
            f"The others spin {100 * others_wait:.0f} % of each step in the all-reduce; GPU {rank} waits least, {100 * waits:.1f} %.",
        ]
        if confidence >= 0.05:
            return finding("straggler", f"GPU {rank} is slower than the others", confidence, evidence, rank=rank, lower=False)
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
    return finding("straggler", f"GPU {late.rank} is late: {what}", confidence, evidence, rank=late.rank, lower=False)


def _straggler_by_samples(found: Figures) -> Finding | None:
    late = latest(found)
    if late is None or found.windows is not None:  # a slow GPU is late in every step
        return None
    rank, ahead = late
    busy, others_busy = found.of(rank, "busy") or 0.0, found.mean("busy", found.others(rank)) or 0.0
    if busy < others_busy - 5:  # it idles, so that it is not its GPU that is slow
        return None
    # Jitter alone makes ranks spin up to 1 %. Much spinning has another explanation, see _feeds_by_samples.
    confidence = BY_SAMPLES * ramp(ahead, 1.5, 5) * (1 - 0.6 * ramp(ahead, 40, 60) * (rank == 0)) * (1 - _more_work(found, rank))
    waits = found.of(rank, "spin") or 0.0
    evidence = [
        f"Each of the others spins {waits + ahead:.0f} % of the time or more in collectives; GPU {rank} waits least, {waits:.1f} %.",
        *useful_evidence(found, rank),
    ]
    return finding("straggler", f"GPU {rank} is slower than the others", confidence, evidence, rank=rank, lower=False)


def latest(found: Figures) -> tuple[int, float] | None:
    """The rank that spins least, and how many percent of the time the next one spins more; None where spinning was not measured."""
    spins = {rank.rank: rank.spin for rank in found.ranks if rank.spin is not None}
    if len(spins) < max(2, found.gpus):
        return None
    rank = min(spins, key=lambda each: spins[each])
    return rank, min(value for other, value in spins.items() if other != rank) - spins[rank]
