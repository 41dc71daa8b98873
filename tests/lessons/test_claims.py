"""The language of claims: what holds, what was measured, what cannot be told, and that nothing else is understood."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessons.claim_fields import check_fields
from lessons.claims import ClaimError, evaluate, parse_claim

SUMMARY: dict[str, Any] = {
    "outcome": "finished",
    "gpus": [{"rank": 0, "gpu_util": 98.0, "parts": [1, 2]}, {"rank": 1, "gpu_util": 15.0}, {"rank": 2, "gpu_util": 16.5}],
    "epoch_seconds": 30.0, "steps": 40, "unique_fraction": None, "replica_checksums": ["aa", "aa", "ab"], "epoch_measured": True,
    "partly": [1.0, None],
}
OTHERS = {"sharded": {"epoch_seconds": 4.0, "gpus": [{"gpu_util": 90.0}]}}


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        ("gpus[0].gpu_util >= 98", True),
        ("gpus[0].gpu_util > 98", False),
        ("max(gpus[1:].gpu_util) <= 16.5", True),
        ("max(gpus.gpu_util) <= 16.5", False),
        ("min(gpus[0:2].gpu_util) == 15", True),
        ("spread(gpus[1:].gpu_util) == 1.5", True),
        ("mean(gpus[1:].gpu_util) == 15.75", True),
        ("distinct(replica_checksums) == 2", True),
        ("count(gpus) == 3", True),
        ("outcome == 'finished'", True),
        ('outcome != "finished"', False),
        ("epoch_seconds >= 7 * sharded.epoch_seconds", True),
        ("epoch_seconds >= 8 * sharded.epoch_seconds", False),
        ("epoch_seconds / sharded.epoch_seconds == 7.5", True),
        ("gpus[0].gpu_util - max(sharded.gpus.gpu_util) == 8", True),
        ("2 + 3 * 4 == 14", True),
        ("(2 + 3) * 4 == 20", True),
        ("10 - 4 - 3 == 3", True),
        ("-steps < 0", True),
        ("steps == 40 and epoch_seconds == 30", True),
        ("steps == 40 and epoch_seconds == 31", False),
        ("unique_fraction == 1", None),
        ("gpus[5].gpu_util > 0", None),
        ("max(partly) > 0", None),
        ("max(gpus[5:].gpu_util) > 0", None),
        ("steps / 0 > 1", None),
        ("steps == 41 and unique_fraction == 1", False),
    ],
)
def test_claims_are_judged(claim: str, holds: bool | None) -> None:
    assert evaluate(claim, SUMMARY, OTHERS).holds is holds


def test_the_message_holds_what_was_measured() -> None:
    judged = evaluate("epoch_seconds >= 8 * sharded.epoch_seconds", SUMMARY, OTHERS)
    assert judged.message == "epoch_seconds >= 8 * sharded.epoch_seconds: epoch_seconds is 30, 8 * sharded.epoch_seconds is 32"
    assert evaluate("unique_fraction == 1", SUMMARY).message == "unique_fraction == 1: unique_fraction was not measured"
    assert evaluate("outcome == 'x'", SUMMARY).message == "outcome == 'x': outcome is finished"


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ("", "expected a value, found the end"),
        ("steps", "expected one of"),
        ("steps >=", "expected a value"),
        ("steps >= 1 or steps >= 2", "expected `and`"),
        ("steps >= 1 2", "expected `and`"),
        ("sum(gpus.gpu_util) > 1", "no function 'sum'"),
        ("gpus[x].gpu_util > 1", "expected a whole number"),
        ("gpus[1.5] > 1", "expected a whole number"),
        ("gpus[0 > 1", "expected ']'"),
        ("(steps > 1", r"expected '\)'"),
        ("gpus. > 1", "name of a field"),
        ("steps ** 2 > 1", "expected a value"),
        ("steps > 1; import os", "'; import o' is not understood"),
        ("__import__('os') == 1", "no function '__import__'"),
        ("steps >= $1", "'\\$1' is not understood"),
        ("'open > 1", "is not understood"),
    ],
)
def test_what_is_no_claim_says_where(claim: str, message: str) -> None:
    with pytest.raises(ClaimError, match=message):
        parse_claim(claim)


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ("speed > 1", "no field 'speed'"),
        ("gpus[0].power > 1", "no field 'power'"),
        ("steps[0] > 1", "only a list"),
        ("steps.x > 1", "no field 'x'"),
        ("gpus.gpu_util > 1", "a list cannot be compared"),
        ("gpus[0] > 1", "a group of fields"),
        ("outcome > 1", "not of one kind"),
        ("max(replica_checksums) > 1", "takes numbers"),
        ("max(steps) > 1", "takes a list"),
        ("outcome + 1 > 1", "only numbers"),
        ("unsharded.steps > 1", "no other run of that name"),
        ("steps.__class__ == 1", "no field '__class__'"),
    ],
)
def test_what_does_not_fit_the_summary_says_so(claim: str, message: str) -> None:
    with pytest.raises(ClaimError, match=message):
        evaluate(claim, SUMMARY, OTHERS)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="gpusteps[]().:0123456789<>=+-*/ 'andmx_", max_size=40))
def test_any_text_is_a_claim_or_a_readable_fault(text: str) -> None:
    try:
        judged = evaluate(text, SUMMARY, OTHERS).holds
    except ClaimError:
        judged = None
    assert judged in (True, False, None)


_NUMBERS = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


@settings(max_examples=200, deadline=None)
@given(_NUMBERS, _NUMBERS, st.sampled_from("+-*"))
def test_arithmetic_is_that_of_python(left: float, right: float, sign: str) -> None:
    expected = {"+": left + right, "-": left - right, "*": left * right}[sign]
    names = {"a": left, "b": right, "c": expected}
    assert evaluate(f"a {sign} b == c", names).holds is True


@pytest.mark.parametrize("claim", [
    "gpus[0].gpu_util >= 90", "max(gpus[1:].spin_pct) <= 1", "distinct(replica_checksums) == 1", "wait_windows.count >= 2",
    "gpus.power_w[0] > 1", "own.gpus[2].processes == sharded.steps and outcome == 'finished'",
    "-last_batch_that_fitted < order_repeated_pct",
])
def test_fields_that_a_run_has_are_known_without_one(claim: str) -> None:
    check_fields(claim, ["sharded", "own"])


@pytest.mark.parametrize(("claim", "message"), [
    ("gpus[0].gpu_utl > 1", "no field 'gpu_utl'; there are rank, gpu_util"),
    ("steps > 1 and max(gpus.heat) > 1", "no field 'heat'"),
    ("unsharded.steps > 1", "no field 'unsharded'; there are source, .*; experiments: sharded"),
    ("sharded.stepps > 1", "no field 'stepps'"),
    ("steps.x > 1", "before 'x' has no fields"),
    ("steps[0] > 1", "only a list"),
    ("steps >> 1", "expected a value"),
])
def test_a_field_that_no_run_has_is_found_without_one(claim: str, message: str) -> None:
    with pytest.raises(ClaimError, match=message):
        check_fields(claim, ["sharded"])


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (f"{'(' * 100}1{')' * 100} >= 1", "at most 20 brackets and signs may be inside each other"),
        (f"{'-' * 100}1 >= 1", "at most 20 brackets and signs may be inside each other"),
        (f"{'max(' * 100}1 >= 1", "at most 20 brackets and signs may be inside each other"),
        (f"{'1+' * 5000}1 >= 1", "has 10006 characters; at most 500 are allowed"),
        (f"gpus[{'9' * 5000}].gpu_util >= 1", "has 5020 characters; at most 500 are allowed"),
    ],
)
def test_a_claim_that_would_break_its_reader_is_refused(expression: str, message: str) -> None:
    with pytest.raises(ClaimError, match=re.escape(message)):
        parse_claim(expression)
