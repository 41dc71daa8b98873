"""Where this learner stands, for the pages that show it, and the words for what comes next.

Owns the way from cookie to progress, and the wording. Must not draw anything.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from lessons import LessonSet
from lessons.learning import get_learning
from lessons.progress import NextStep, Progress
from lessons.reviews import Due
from pages.learner import learner

NEXT_LABEL: Mapping[str, str] = {
    "start": "Start the lesson", "continue": "Go on with this lesson", "review": "Begin the review", "lesson": "Start the next lesson",
    "mystery": "Start a mystery run",
}


def progress(lessons: LessonSet) -> Progress:
    """All that is kept under this browser's cookie; that of a newcomer where nothing is. Raises StoreError."""
    return get_learning().progress(learner(), lessons)


def due_line(due: Due, now_s: float | None = None) -> str:
    """"3 due, 6 minutes", or when the next one will be."""
    if due.count:
        return f"{due.count} due, {due.minutes} minutes"
    if due.next_due_s is None:
        return "Nothing to come back yet: every cause that you answer comes back here, some days later."
    return f"Nothing is due. The next one comes {_in_words(due.next_due_s - (time.time() if now_s is None else now_s))}."


def _in_words(seconds: float) -> str:
    for size_s, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size_s:
            count = round(seconds / size_s)
            return f"in {count} {name}{'' if count == 1 else 's'}"
    return "in a minute"


def lesson_query(step: NextStep) -> dict[str, str]:
    """The parameters of the lesson page for a step that leads to a lesson."""
    named = {"lesson": step.lesson_id, "attempt": step.attempt}
    return {name: value for name, value in named.items() if value}
