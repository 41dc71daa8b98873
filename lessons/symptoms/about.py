"""Which lesson teaches a cause of the symptom finder.

Owns the look-up: a lesson teaches what the run shows that matches its question. Must not know pages.
"""

from __future__ import annotations

from lessons.causes import cause_of, cause_of_lesson
from lessons.model import Lesson, LessonSet
from lessons.symptoms.content import SymptomCause


def lesson_about(cause: SymptomCause, lessons: LessonSet) -> Lesson | None:
    """The first lesson of the course with this very experiment behind its right option, else one with the same kind of mistake."""
    if cause.experiment is None:
        return None
    taught = [
        lesson for lesson in lessons.lessons
        if any(lesson.config_of(own.scenario) == cause.experiment for own in lesson.causes if own.id in lesson.key.causes)
    ]  # fmt: skip
    first = [lesson for lesson in taught if _first_cause(lesson) == cause.experiment]
    alike = [lesson for lesson in lessons.lessons if cause_of_lesson(lesson) == cause_of(cause.experiment)]
    return next(iter([*first, *taught, *alike]), None)


def _first_cause(lesson: Lesson) -> object:
    cause = lesson.cause(lesson.key.causes[0])
    return None if cause is None else lesson.config_of(cause.scenario)
