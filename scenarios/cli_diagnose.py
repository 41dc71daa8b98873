"""`python -m scenarios diagnose`: why a recorded run is as fast as it is, and where its steps' time goes; also the last lines of `run`.

Owns how both look in a terminal and as JSON. Must not judge: that is `analysis/`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from scenarios.analysis.breakdown import PART_LABELS, PARTS, Part, RankBreakdown
from scenarios.analysis.diagnosis import Diagnosis, diagnose_run, likelihood
from scenarios.analysis.measured_spans import breakdown_of_run
from scenarios.record import EVENTS, source_of
from scenarios.run_folder import RunFolder
from scenarios.settings import load_settings

DIAGNOSE_HELP = "why a recorded run is as fast as it is"
RUN_HELP = "id of a run in SHARDLAB_DATA_DIR, or the folder of a record"

ALIKE = 0.05
"""Ranks whose parts all differ by less than this share of a step share a column."""

SHOWN = 0.005
"""Parts that take less than this share of a step on every rank have no row."""


def diagnose_command(options: argparse.Namespace) -> int:
    """Raises ValueError where there is no such record."""
    run_dir = record_named(options.run)
    diagnosis, ranks = diagnose_run(run_dir), breakdown_of_run(run_dir)
    if options.json:
        found = {"run": run_dir.resolve().name, "source": source_of(run_dir), **diagnosis.as_dict}
        print(json.dumps(found | {"breakdown": breakdown_json(ranks)}))
        return 0
    console = Console()
    print_diagnosis(console, diagnosis, every=True)
    print_breakdown(console, ranks, source=source_of(run_dir))
    return 0


def record_named(text: str) -> Path:
    """The folder of a record. Raises ValueError, in one line, where there is none."""
    if (Path(text) / EVENTS).is_file():
        return Path(text)
    folder = RunFolder(load_settings().data_dir)
    try:
        run_dir = folder.path(text)
    except ValueError:
        run_dir = None
    if run_dir is None or not (run_dir / EVENTS).is_file():
        raise ValueError(f"run={text[:200]!r}: must be the folder of a record, or the id of a run in {folder.root}")
    return run_dir


def breakdown_json(ranks: Sequence[RankBreakdown]) -> list[dict[str, Any]]:
    """Seconds of a steady step by part, per rank."""
    return [
        {
            "rank": rank.rank, "steps": rank.steps, "step_seconds": rank.step_s, "parts": rank.parts,
            "hidden_all_reduce_seconds": rank.hidden_all_reduce_s,
        }
        for rank in ranks
    ]


def print_diagnosis(console: Console, diagnosis: Diagnosis, *, every: bool) -> None:
    """The sentence; with `every` each cause and its evidence too."""
    console.print(diagnosis.sentence, highlight=False, markup=False)
    if not every:
        return
    for finding in diagnosis.findings:
        title = f"{finding.title}: {likelihood(finding)} ({100 * finding.confidence:.0f} %)"
        console.print(f"\n{title}", style="bold", highlight=False, markup=False)
        for sentence in finding.evidence:
            console.print(f"  {sentence}", highlight=False, markup=False)
    console.print()


def print_breakdown(console: Console, ranks: Sequence[RankBreakdown], *, source: str) -> None:
    """A row for each part that takes time, a column for all GPUs that are alike; nothing without a steady step."""
    if not ranks:
        return
    step_ms = 1000 * sum(rank.step_s for rank in ranks) / len(ranks)
    shown = [part for part in PARTS if any(rank.share(part) >= SHOWN for rank in ranks)]
    groups = _alike(ranks, shown)
    table = Table(title=f"Where a step of {step_ms:.1f} ms goes, % of it ({source})")
    table.add_column("")
    for group in groups:
        table.add_column(f"GPU {_names([rank.rank for rank in group])}", justify="right")
    for part in shown:
        table.add_row(PART_LABELS[part], *(f"{100 * sum(rank.share(part) for rank in group) / len(group):.1f}" for group in groups))
    console.print(table)


def _alike(ranks: Sequence[RankBreakdown], parts: Sequence[Part]) -> list[list[RankBreakdown]]:
    groups: list[list[RankBreakdown]] = []
    for rank in ranks:
        fitting = (group for group in groups if all(abs(group[0].share(part) - rank.share(part)) < ALIKE for part in parts))
        group = next(fitting, None)
        if group is None:
            groups.append([rank])
        else:
            group.append(rank)
    return groups


def _names(ranks: list[int]) -> str:
    """"0, 2-5": neighbours as a range."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and runs[-1][-1] == rank - 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
