"""What a cause is judged to be: a finding with its confidence and evidence, and the sentences that several causes share.

Owns the shape and the words. Which figures make a cause is for the modules `causes*` to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scenarios.analysis.breakdown import Part
from scenarios.analysis.figures import Figures

CERTAIN = 0.97
"""No figure makes surer than this: there may be causes that nobody listed."""

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


def finding(
    cause: str, title: str, confidence: float, evidence: Iterable[str], *, rank: int | None = None, needs_steady: bool = True,
    lower: bool = True,
) -> Finding:
    sentences = tuple(text[:1].upper() + text[1:] for text in evidence)
    return Finding(
        cause=cause, title=title, confidence=round(confidence, 2), evidence=sentences, rank=rank, needs_steady=needs_steady, lower=lower
    )


def even(found: Figures) -> float:
    """1 where all GPUs are used alike (half of what they are busy, for waiting shifts between them), 0 where one stands out."""
    known = [rank.busy for rank in found.ranks if rank.busy is not None]
    return ramp(max(known) - min(known), 60, 45) if known else 0.0


def even_evidence(found: Figures) -> str:
    busy, useful = found.mean("busy"), found.mean("useful")
    who = f"All {found.gpus} GPUs are" if found.gpus > 1 else "The GPU is"
    said = f"{who} busy {busy:.0f} % of the time (nvidia-smi)" if busy is not None else f"{who} of unknown utilization"
    return said + (f", with useful work on {useful:.0f} % of the cores." if useful is not None else ".")


def fill_evidence(found: Figures) -> list[str]:
    power, limit = found.mean("power_w"), found.power_limit_w
    if power is None or not limit:
        return []
    return [f"They draw {power:.0f} of {limit:.0f} W each." if found.gpus > 1 else f"It draws {power:.0f} of {limit:.0f} W."]


def busy_evidence(found: Figures, rank: int) -> list[str]:
    mine, theirs = found.of(rank, "busy"), found.mean("busy", found.others(rank))
    if mine is None or theirs is None:
        return []
    return [f"GPU {rank} is busy {mine:.0f} % of the time (nvidia-smi), {all_but(rank, found.gpus)} {theirs:.0f} % on average."]


def useful_evidence(found: Figures, rank: int) -> list[str]:
    mine, theirs = found.of(rank, "useful"), found.mean("useful", found.others(rank))
    if mine is None or theirs is None:
        return []
    return [f"GPU {rank} does useful work on {mine:.0f} % of its cores, {all_but(rank, found.gpus)} on {theirs:.0f} %."]


def all_but(rank: int, gpus: int) -> str:
    if gpus == 2:
        return f"GPU {1 - rank}"
    return f"GPUs 1-{gpus - 1}" if rank == 0 else f"the other {gpus - 1} GPUs"


def named(ranks: Sequence[int]) -> str:
    """GPU 0; GPUs 1-7; GPUs 0, 3, 4."""
    if len(ranks) == 1:
        return f"GPU {ranks[0]}"
    together = list(ranks) == list(range(ranks[0], ranks[-1] + 1))
    return f"GPUs {ranks[0]}-{ranks[-1]}" if together else f"GPUs {', '.join(map(str, ranks))}"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def ms(found: Figures, rank: int, *parts: Part) -> str:
    return f"{1000 * found.step_s * found.share_of(rank, *parts):.0f} ms"


def ms_of_others(found: Figures, rank: int, *parts: Part) -> str:
    return f"{1000 * found.step_s * found.share_of_others(rank, *parts):.0f} ms"
