"""Why a run is as fast as it is: ranked causes, each with the figures that speak for it and how sure that is.

Owns the verdict: what is enough, the ranking, the words. The causes are judged in `causes*.py`. Works from samples, spans and the
record's head alone, never from the experiment's name or configuration, so that it may be asked about a run that hides them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenarios.analysis.causes import CAUSES, healthy
from scenarios.analysis.figures import Figures, figures
from scenarios.analysis.findings import Finding
from scenarios.analysis.measured_spans import spans_of_run
from scenarios.record import head_of, samples_of
from scenarios.telemetry import Sample, Span

ENOUGH_PERIODS = 3
ENOUGH_STEPS = 3
"""Steady sample periods, or steady steps with spans: means over fewer are an accident of where they were cut."""

SHOWN = 0.2
"""A finding below this confidence is not worth a line."""

SURE = 0.6
"""From here on a cause counts as found."""

_WORDS = ((0.85, "very likely"), (SURE, "likely"), (0.0, "possible"))


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    findings: tuple[Finding, ...]
    """Most likely first."""
    enough: bool
    sentence: str

    @property
    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "enough": self.enough,
            "sentence": self.sentence,
            "findings": [
                {
                    "cause": finding.cause, "title": finding.title, "confidence": finding.confidence, "likelihood": likelihood(finding),
                    "rank": finding.rank, "evidence": list(finding.evidence),
                }
                for finding in self.findings
            ],
        }


def likelihood(finding: Finding) -> str:
    """The confidence in words."""
    return next(word for least, word in _WORDS if finding.confidence >= least)


def diagnose(samples: Sequence[Sample], spans: Iterable[Span], head: Mapping[str, Any]) -> Diagnosis:
    """What holds this run back. `head` is the record's: the number of GPUs and the card's limits."""
    found = figures(samples, spans, head)
    missing = _missing(found)
    judged = [finding for cause in CAUSES if (finding := cause(found)) is not None and finding.confidence >= SHOWN]
    if missing:  # what needs no steady part may still be plain to see
        judged = [finding for finding in judged if not finding.needs_steady]
    else:
        well = healthy(found, judged)
        judged += [well] if well.confidence >= SHOWN else []
    ranked = tuple(sorted(judged, key=lambda finding: -finding.confidence))  # equals stay in the order of CAUSES: from the script outwards
    enough = not missing or any(finding.confidence >= SURE for finding in ranked)
    return Diagnosis(findings=ranked, enough=enough, sentence=_sentence(ranked, missing, enough=enough))


def diagnose_run(run_dir: Path) -> Diagnosis:
    """`diagnose` of a record."""
    return diagnose(samples_of(run_dir), spans_of_run(run_dir), head_of(run_dir))


def _missing(found: Figures) -> str:
    """What is lacking for a verdict on the steady part; empty if nothing is."""
    steps = min((rank.steps for rank in found.breakdown), default=0)
    if steps >= ENOUGH_STEPS:
        return ""
    if not found.ranks and not found.has_spans:
        return "there are no samples after the first two steps and no spans"
    spans = f"and {'only ' + str(steps) if steps else 'no'} steady {'step' if steps == 1 else 'steps'} with spans"
    if found.periods < ENOUGH_PERIODS:
        number = "no" if not found.periods else f"only {found.periods}"
        periods = f"is {number} sample period" if found.periods == 1 else f"are {number} sample periods"
        return f"there {periods} after the first two steps ({ENOUGH_PERIODS} are needed) {spans}"
    if found.gap_share > 0.5:
        return f"{100 * found.gap_share:.0f} % of the samples hold no utilization, {spans}"
    if any(rank.busy is None for rank in found.ranks):
        return f"a GPU's utilization was never measured, {spans}"
    return ""


def _sentence(ranked: tuple[Finding, ...], missing: str, *, enough: bool) -> str:
    if not enough:
        return f"Not enough evidence: {missing}."
    if not ranked:
        return "Nothing stands out, and the GPUs are not well used either: the cause is not among those that are looked for."
    first = ranked[0]
    text = f"{likelihood(first).capitalize()}: {first.title[:1].lower() + first.title[1:] if first.lower else first.title}."
    also = [finding.title for finding in ranked[1:] if finding.confidence >= SURE]
    return f"{text} {first.evidence[0]}" + (f" Also found: {'; '.join(also)}." if also else "")
