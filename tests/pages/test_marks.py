"""Marks in words: what is at stake is said before the first loss, and nothing reads "-0" or "+0.5 marks"."""

from __future__ import annotations

import pytest

from lessons.grading import stakes
from pages.components.marks import earned, marks_line, signed, stakes_line


@pytest.mark.parametrize(("marks", "text"), [(3.0, "+3"), (-6.0, "−6"), (0.0, "0"), (-0.0, "0"), (0.5, "+½"), (-1.5, "−1½")])
def test_signed(marks: float, text: str) -> None:
    assert signed(marks) == text


def test_marks_so_far_count_one_answer_as_one() -> None:
    assert [marks_line(2.0, 1), marks_line(-1.0, 3), marks_line(0.0, 1)] == [
        "+2 marks from 1 answer", "−1 mark from 3 answers", "0 marks from 1 answer",
    ]


def test_what_is_at_stake_is_said_before_anything_can_be_lost() -> None:
    first = stakes_line(stakes(costs=False), try_no=1)
    assert "nothing is lost this first time" in first
    assert "0, −2, −6" in first, "and what later ones cost"
    assert stakes_line(stakes(costs=True), try_no=1) == "Right: +1, +2, +3. Wrong: 0, −2, −6."
    assert "+½" in stakes_line(stakes(costs=True, try_no=2), try_no=2)


def test_a_verdict_says_its_marks_where_there_are_any() -> None:
    assert [earned(marks) for marks in (None, 0.0, 2.0, 0.5, -6.0)] == ["", "", ", +2 marks", ", +½ mark", ", −6 marks"]
