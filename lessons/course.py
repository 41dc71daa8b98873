"""The course: the order of the lessons and the part of it that each belongs to, read from course.yaml beside their folders.

    stages:
      - name: Foundations
        lessons: [one-busy-gpu, eight-busy-no-faster]

Owns reading and checking it. A lesson that it does not list comes last, in the order of the alphabet. Must not read lessons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from lessons.front_matter import read_yaml_file, validate
from lessons.model import CourseStage, Fault
from lessons.schema import SafeId, Text

COURSE_FILE = "course.yaml"


class _StageMatter(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Annotated[Text, Field(max_length=40)]
    lessons: list[SafeId] = []


class _CourseMatter(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    stages: list[_StageMatter]


@dataclass(frozen=True, kw_only=True)
class Course:
    """The stages as they are written; empty where there is no file."""

    stages: tuple[CourseStage, ...] = ()

    def place(self, lesson_id: str) -> tuple[int, str]:
        """What to sort lessons by."""
        order = [known for stage in self.stages for known in stage.lessons]
        return (order.index(lesson_id) if lesson_id in order else len(order), lesson_id)

    def stages_of(self, lesson_ids: Sequence[str]) -> tuple[CourseStage, ...]:
        """The stages with those of their lessons that are there; a stage without any is left out."""
        kept = [CourseStage(name=stage.name, lessons=tuple(one for one in stage.lessons if one in lesson_ids)) for stage in self.stages]
        return tuple(stage for stage in kept if stage.lessons)


def merged(course: Course, other: Course) -> Course:
    """`course`, with the parts of `other` after its own; a part that both have is one, and goes on with the lessons of `other`."""
    stages = {stage.name: stage.lessons for stage in course.stages}
    for stage in other.stages:
        stages[stage.name] = (*stages.get(stage.name, ()), *stage.lessons)
    return Course(stages=tuple(CourseStage(name=name, lessons=lessons) for name, lessons in stages.items()))


def load_course(root: Path, folders: Sequence[str]) -> tuple[Course, list[Fault]]:
    """The course of `root`, whose lessons' folders are `folders`, and every fault with its line.

    What is wrong is left out and the rest holds: a course never takes a lesson away.
    """
    front, faults = read_yaml_file(root / COURSE_FILE)
    if front is None:
        return Course(), faults
    matter, found = validate(_CourseMatter, front)
    faults += [Fault(file=COURSE_FILE, line=line, message=message) for line, message in found]
    if matter is None:
        return Course(), faults
    known: set[str] = set()
    stages = []
    for number, stage in enumerate(matter.stages):
        kept = []
        for index, lesson_id in enumerate(stage.lessons):
            message = f"{lesson_id!r} is listed twice" if lesson_id in known else f"there is no folder {lesson_id!r}"
            if lesson_id in known or lesson_id not in folders:
                line = front.line_of(("stages", number, "lessons", index))
                faults.append(Fault(file=COURSE_FILE, line=line, message=f"stages.{number}.lessons.{index}: {message}"))
            else:
                kept.append(lesson_id)
            known.add(lesson_id)
        stages.append(CourseStage(name=stage.name, lessons=tuple(kept)))
    return Course(stages=tuple(stages)), faults
