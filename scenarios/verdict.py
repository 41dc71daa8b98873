"""How a run ended, from what its ranks said last: the outcome, whose fault it was, and the sentence about it.

Owns the `head` and `end` events of a record. Free of torch, processes and files; whoever watches the ranks (the supervisor, the
collector, an import) tells it what happened.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

from scenarios.cards import Card, source_of_config, virtual_card
from scenarios.config import RunConfig
from scenarios.error_meanings import meaning_of, timed_out
from scenarios.recorder import Recorder
from scenarios.seen import hang_sentence, sentence
from scenarios.settings import PROJECT_ROOT
from scenarios.summary import Tally, expected, summarise


@dataclass(frozen=True, kw_only=True)
class Failure:
    """How one rank broke off. `kind` is the error's type, or "signal", "exit", "vanished" (never heard of again), "ended" (on request)."""

    rank: int
    kind: str
    text: str
    order: float
    """Smaller is earlier: a count, or a time that all ranks share."""
    sentence: str | None = None
    """Where the watcher knows better than the text what happened."""
    node: dict[str, Any] | None = None

    @property
    def blame(self) -> tuple[int, float]:
        """Smaller is nearer to the cause: a rank killed by a signal comes before one whose peer vanished."""
        if self.kind == "vanished":
            return (2, self.order)
        if self.kind == "signal" and "SIGABRT" not in self.text:
            return (0, self.order)
        if self.kind == "ended" or self.lost_peer:
            return (4, self.order)
        if self.timed_out:  # who waited in vain first says nothing: it is the one that is not among them
            return (3, self.rank)
        return (0 if self.kind == "signal" else 1, self.order)

    @property
    def lost_peer(self) -> bool:
        """Whether it is only the echo of another rank's end."""
        known = meaning_of(self.text)
        return known is not None and known[0].lost_peer

    @property
    def timed_out(self) -> bool:
        return timed_out(self.text)

    @property
    def headline(self) -> str:
        """The one line of the text that says most: the known one, else the last."""
        known = meaning_of(self.text)
        lines = self.text.strip().splitlines() or [""]
        last = known[1] if known is not None else lines[-1].strip()
        if self.kind in ("signal", "exit") and last != lines[0].strip():
            return f"{lines[0].strip()}: {last}"
        return last

    @property
    def ending(self) -> str:
        """What happened to the rank, as a sentence."""
        line = shorten(self.headline, 220, placeholder=" …").rstrip(".")
        own = f"rank {self.rank} "
        where = f"on node {self.node['node']} ({self.node['host']}) " if self.node else ""
        return f"Rank {self.rank} {where}" + (f"{line.removeprefix(own)}." if line.startswith(own) else f"ended: {line}.")


def cause_of(failures: Sequence[Failure]) -> Failure:
    return min(failures, key=lambda failure: failure.blame)


def outcome_of(failures: Sequence[Failure]) -> str:
    """Of a run in which ranks broke off."""
    if any(failure.kind == "OutOfMemoryError" for failure in failures):
        return "out_of_memory"
    return "timeout" if cause_of(failures).timed_out else "failed"


def neutral(trace: str, scenario: str) -> str:
    """A traceback as every viewer may read it: without this machine's folders, and without the experiment's name."""
    return trace.replace(f"{PROJECT_ROOT}/", "").replace(f"scenarios/catalog/{scenario}.py", "train.py")


def run_head(config: RunConfig, *, card: Card | None = None, backend_reason: str = "", **more: Any) -> dict[str, Any]:
    """The `head` event. `card`: the real GPUs; `backend_reason`: why these GPUs, one clause."""
    card = card or virtual_card(config)
    return {
        "gpus": config.gpus, "processes": config.processes, "gpu": card.label,
        "memory_limit_gib": card.memory_gib, "power_limit_w": card.power_limit_w,
        "source": source_of_config(config), "backend_reason": backend_reason,
        "period_ms": 200, "steps_per_epoch": None, "recorded_s": time.time(), **more,
    }


def run_end(
    config: RunConfig, tally: Tally, recorder: Recorder, *, outcome: str, failures: Sequence[Failure], run_limit_s: float,
    collective_limit_s: float, card: Card | None = None,
) -> dict[str, Any]:
    """The `end` event: figures, the rank and node that broke off, its own words and what they mean."""
    full = sorted({failure.rank for failure in failures if failure.kind == "OutOfMemoryError"})
    summary = summarise(
        tally, recorder.samples, outcome=outcome, source=source_of_config(config), digest=recorder.digest, card=card, full=full
    )
    cause = cause_of(failures) if failures and outcome not in ("stopped", "finished") else None
    known = meaning_of(cause.text) if cause else None
    said = sentence(summary)
    if outcome == "stopped":
        said = "Stopped before the end."
    elif outcome == "timeout" and cause is None:
        said = f"The run took longer than {run_limit_s:.0f} s and was ended."
    elif outcome == "timeout" and cause is not None:
        waited = f"Rank {cause.rank} waited more than {collective_limit_s:.0f} s for the others."
        said = hang_sentence(summary, collective_limit_s) or waited
    elif outcome == "failed" and cause is not None:
        said = cause.sentence or cause.ending
    meaning = known[0].text.replace("This rank", f"Rank {cause.rank}") if known is not None and cause is not None else None
    if meaning and outcome in ("failed", "timeout"):
        said = f"{said} {meaning}"
    return {
        "outcome": outcome,
        "expected": expected(config, outcome),
        "t_ms": max([round(tally.virtual_s * 1000), *(sample.end_ns // 1_000_000 for sample in recorder.samples[-1:])]),
        "sentence": said,
        "rank": cause.rank if cause else None,
        "node": cause.node if cause else None,
        "error": cause.text if cause else None,
        "meaning": meaning,
        "summary": summary,
    }
