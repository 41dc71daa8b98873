"""A run's figures as a teacher needs them for claims: one line each, named as a claim names it.

Owns the wording of these lines. What may stand in a claim is `lessons.claim_language`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lessons.evidence import silhouette_of
from lessons.evidence_columns import Summary

LEFT_OUT = ("source", "digest", "scenario")
"""Fields that say nothing about what a run shows."""
OPTIONAL = ("wait_windows",)
"""Groups that a run has where there is something to say."""


def figure_lines(summary: Summary) -> Iterator[str]:
    """`gpus.gpu_util = 88.9, 23.1, ...` and so on, then what the run draws."""
    for name, value in summary.items():
        if name in LEFT_OUT or (name in OPTIONAL and value is None):
            continue
        if isinstance(value, Mapping):
            yield from (f"{name}.{field} = {_shown(inner)}" for field, inner in value.items())
        elif name == "gpus":
            yield from (f"gpus.{field} = {_several([gpu[field] for gpu in value])}" for field in value[0] if field != "rank")
        elif name == "replica_checksums":
            yield f"distinct({name}) = {len(set(value)) if None not in value else _shown(None)}"
        else:
            yield f"{name} = {_shown(value)}"
    yield f"draws: {silhouette_of(summary) or _shown(None)}"


def _several(values: Sequence[Any]) -> str:
    return ", ".join(map(_shown, values)) if len(set(values)) > 1 else f"{_shown(values[0])} (all)"


def _shown(value: Any) -> str:
    if value is None:
        return "not measured"
    return repr(value) if isinstance(value, str) else f"{value:.6g}" if isinstance(value, float) else str(value)
