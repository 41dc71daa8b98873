"""Certainty-based marks in words: what is at stake before an answer, and what it brought.

Owns the wording. What an answer is worth is decided by `lessons.grading`.
"""

from __future__ import annotations

from collections.abc import Sequence

from lessons.grading import LOSES, SECOND_TRY, Certainty, Stake

CERTAINTY: dict[Certainty, str] = {"guess": "Guess", "fairly": "Fairly", "certain": "Certain"}

WHY = (
    "Say how sure you really are. That is what pays best: **fairly** from about two chances in three of being right, **certain** from "
    "four in five. On call it counts the same way: a wrong cause held with certainty costs the night."
)


def signed(marks: float) -> str:
    """+2, −6, 0, +½."""
    size = {0.5: "½", 1.5: "1½", 2.5: "2½"}.get(abs(marks), f"{abs(marks):g}")
    return size if marks == 0 else f"{'+' if marks > 0 else '−'}{size}"


def marks_line(marks: float, answers: int) -> str:
    """+5 marks from 3 answers."""
    return f"{signed(marks)} {'mark' if 0 < abs(marks) <= 1 else 'marks'} from {answers} {'answer' if answers == 1 else 'answers'}"


def earned(marks: float | None) -> str:
    """", +2 marks", to be appended to a verdict; empty where nothing was earned or lost yet."""
    return "" if not marks else f", {signed(marks)} {'mark' if abs(marks) <= 1 else 'marks'}"


def stakes_line(stakes: Sequence[Stake], *, try_no: int) -> str:
    """What each certainty would earn and cost now, in one line."""
    if try_no > 1:
        return f"Right now earns {signed(SECOND_TRY)} mark, and a wrong answer costs nothing more."
    right = ", ".join(signed(stake.right) for stake in stakes)
    costs = ", ".join(signed(-LOSES[stake.certainty]) for stake in stakes)
    if all(stake.wrong == 0 for stake in stakes):
        return f"Right: {right}. Wrong: nothing is lost this first time; later {costs}."
    return f"Right: {right}. Wrong: {costs}."
