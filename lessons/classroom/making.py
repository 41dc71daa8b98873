"""Making a class of lessons: what an instructor asks for, checked.

Owns the limits of a class. Must not store it.
"""

from __future__ import annotations

from collections.abc import Sequence

from lessons.classroom.model import ClassState
from lessons.classroom.words import LONGEST_TITLE, clean_line, new_code
from lessons.model import LessonSet

MOST_ITEMS = 50
MOST_MINUTES = 480


def new_class(known: LessonSet, lesson_ids: Sequence[str], *, title: str, plan: Sequence[float] | None, now_s: float) -> ClassState:
    """A class in its lobby, under a code that may be taken. `plan`: minutes of each item; None: those of the lessons. Raises ValueError."""
    lessons = [lesson for lesson in map(known.get, lesson_ids) if lesson is not None]
    missing = [str(lesson_id)[:40] for lesson_id in lesson_ids if known.get(lesson_id) is None]
    if missing or not 1 <= len(lessons) <= MOST_ITEMS:
        raise ValueError(f"lesson_ids={', '.join(missing[:5]) or len(lessons)}: must be 1 to {MOST_ITEMS} lessons that are there")
    minutes = tuple(float(each) for each in (plan if plan is not None else [lesson.minutes for lesson in lessons]))
    if len(minutes) != len(lessons) or not all(0 < each <= MOST_MINUTES for each in minutes):
        raise ValueError(f"plan={minutes[:5]}: must be the minutes of each item, more than 0 and up to {MOST_MINUTES}")
    words = clean_line("title", title, LONGEST_TITLE) or (lessons[0].title[:LONGEST_TITLE] if len(lessons) == 1 else "Class")
    return ClassState(
        code=new_code(), title=words, lesson_ids=tuple(lesson_ids), plan=minutes, version=1, created_s=now_s, changed_s=now_s
    )
