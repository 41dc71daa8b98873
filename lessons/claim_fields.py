"""Which fields a claim may speak of, checked before anything is run: those that a run's summary has, and names of experiments before them.

Reads them off the summary of a run that never began, so that no list of them can grow old. Must not judge claims.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any

from lessons.claim_language import Arithmetic, Call, ClaimError, Literal, Node, PathNode, parse_claim
from scenarios.config import RunConfig
from scenarios.summary import Tally, summarise

_GROUPS: Mapping[str, Mapping[str, None]] = {"wait_windows": dict.fromkeys(("rank", "count", "share_pct", "busy_pct"))}
"""Groups that a summary has only where there is something to say."""


@cache
def summary_fields() -> Mapping[str, Any]:
    """A summary with every field and hardly a value."""
    nothing = summarise(Tally(config=RunConfig.parse({"scenario": "sharded"})), [], outcome="stopped", source="virtual", digest="")
    return {**nothing, **_GROUPS}


def check_fields(expression: str, experiments: Collection[str]) -> None:
    """Raises ClaimError for a claim that cannot be read, or names a field that no run has or an experiment that is not known."""
    for comparison in parse_claim(expression):
        for node in (*_paths(comparison.left), *_paths(comparison.right)):
            _check(node, experiments)


def _paths(node: Node) -> Iterator[PathNode]:
    if isinstance(node, PathNode):
        yield node
    elif isinstance(node, Call):
        yield from _paths(node.argument)
    elif isinstance(node, Arithmetic):
        yield from _paths(node.left)
        yield from _paths(node.right)
    else:
        assert isinstance(node, Literal)


def _check(path: PathNode, experiments: Collection[str]) -> None:
    at: Any = {**dict.fromkeys(experiments, summary_fields()), **summary_fields()}
    for step in (path.root, *path.steps):
        if isinstance(step, str):
            group = at[0] if isinstance(at, list) and at else at
            if not isinstance(group, Mapping):
                raise ClaimError(f"{path.text}: what stands before {step!r} has no fields")
            if step not in group:
                others = ", ".join(name for name in group if at is not group or name not in experiments)
                known = f"{others}; experiments: {', '.join(experiments)}" if step == path.root else others
                raise ClaimError(f"{path.text}: there is no field {step!r}; there are {known}")
            at = [group[step]] if isinstance(at, list) else group[step]
        elif not isinstance(at, list):
            raise ClaimError(f"{path.text}: only a list can be indexed")
        elif isinstance(step, int):
            at = at[0] if at else None
