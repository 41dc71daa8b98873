"""Claims about runs: a tiny language of comparisons over a run's summary, parsed and evaluated here, never by Python.

    gpus[0].gpu_util >= 85
    max(gpus[1:].gpu_util) <= 35
    epoch_seconds >= 7 * sharded.epoch_seconds and distinct(replica_checksums) == 1

A name is a field of the run's own summary, or another experiment whose summary is at hand. `[n]` picks one item, `[a:b]` several, a
field after several is taken from each. Functions: min, max, mean, spread (largest - smallest), distinct, count. What was not measured
(None) makes a claim undecided, never true or false. Owns what a claim means; must not start runs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lessons.claim_language import Call, ClaimError, Comparison, Literal, Node, PathNode, parse_claim, text_of

__all__ = ["ClaimError", "Claimed", "NotMeasured", "evaluate", "parse_claim"]

Summary = Mapping[str, Any]
Value = float | str | bool | list[Any]

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt,
}
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}
_FUNCTIONS: dict[str, Callable[[list[Any]], float]] = {
    "min": min, "max": max, "mean": lambda values: sum(values) / len(values), "spread": lambda values: max(values) - min(values),
    "distinct": lambda values: len({str(value) for value in values}), "count": len,
}


class NotMeasured(Exception):
    """Something in the claim was not measured; the message names it."""


@dataclass(frozen=True, kw_only=True)
class Claimed:
    """What became of a claim: True or False, or None where something was not measured."""

    holds: bool | None
    message: str
    """The claim and what was measured, for people."""


def evaluate(expression: str, summary: Summary, others: Mapping[str, Summary] | None = None) -> Claimed:
    """Judge `expression` on `summary`; `others` are the summaries of further experiments, by name.

    Raises ClaimError where the claim does not fit the summary (a field that is not there, text compared with a number).
    """
    measured: list[str] = []
    for comparison in parse_claim(expression):
        try:
            left = _value(comparison.left, summary, others or {})
            right = _value(comparison.right, summary, others or {})
        except NotMeasured as missing:
            return Claimed(holds=None, message=f"{expression}: {missing} was not measured")
        holds = _compare(comparison, left, right)
        sides = [(comparison.left, left), (comparison.right, right)]
        measured.append(", ".join(f"{text_of(node)} is {_shown(value)}" for node, value in sides if not isinstance(node, Literal)))
        if not holds:
            return Claimed(holds=False, message=f"{expression}: {measured[-1]}")
    return Claimed(holds=True, message=f"{expression}: {'; '.join(measured)}")


def _value(node: Node, summary: Summary, others: Mapping[str, Summary]) -> Value:
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, PathNode):
        return _looked_up(node, summary, others)
    if isinstance(node, Call):
        return _called(node, _value(node.argument, summary, others))
    left, right = (_value(side, summary, others) for side in (node.left, node.right))
    if not _is_number(left) or not _is_number(right):
        raise ClaimError(f"{text_of(node)}: only numbers can be combined by {node.sign}")
    if node.sign == "/" and right == 0:
        raise NotMeasured(f"{text_of(node)} (a division by 0)")
    return _ARITHMETIC[node.sign](float(left), float(right))  # type: ignore[arg-type]


def _looked_up(path: PathNode, summary: Summary, others: Mapping[str, Summary]) -> Value:
    value: Any
    if path.root in summary:
        value = summary[path.root]
    elif path.root in others:
        value = others[path.root]
    else:
        raise ClaimError(f"{path.text}: the summary has no field {path.root!r}, and no other run of that name is at hand")
    for step in path.steps:
        value = _stepped(path, value, step)
    if value is None or (isinstance(value, list) and (not value or any(item is None for item in value))):
        raise NotMeasured(path.text)
    if isinstance(value, Mapping):
        raise ClaimError(f"{path.text} is a group of fields, not a value")
    return value  # type: ignore[no-any-return]


def _stepped(path: PathNode, value: Any, step: str | int | slice) -> Any:
    if value is None:
        raise NotMeasured(path.text)
    if isinstance(step, str):
        if isinstance(value, list):
            return [_stepped(path, item, step) for item in value]
        if not isinstance(value, Mapping) or step not in value:
            raise ClaimError(f"{path.text}: there is no field {step!r}")
        return value[step]
    if not isinstance(value, list):
        raise ClaimError(f"{path.text}: only a list can be indexed")
    if isinstance(step, int) and step >= len(value):
        raise NotMeasured(path.text)
    return value[step]


def _called(call: Call, value: Value) -> float:
    if not isinstance(value, list):
        raise ClaimError(f"{call.function}() takes a list")
    if call.function not in ("distinct", "count") and not all(_is_number(item) for item in value):
        raise ClaimError(f"{call.function}() takes numbers")
    return float(_FUNCTIONS[call.function](value))


def _compare(comparison: Comparison, left: Value, right: Value) -> bool:
    if isinstance(left, list) or isinstance(right, list):
        raise ClaimError(f"{comparison.text}: a list cannot be compared; use min(), max(), mean(), spread(), distinct() or count()")
    if _is_number(left) != _is_number(right):
        raise ClaimError(f"{comparison.text}: {_shown(left)} and {_shown(right)} are not of one kind")
    return bool(_COMPARISONS[comparison.sign](left, right))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(value: Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
