"""From folders to lessons: the built-in course, and a folder of a teacher's own beside it.

A broken or unfinished lesson is left out with its faults while the others stay. Owns which folders are read and when they are read again.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from lessons.course import COURSE_FILE, Course, load_course, merged
from lessons.glossary import GLOSSARY_FILE, load_glossary
from lessons.model import Fault, Lesson, LessonSet, NoLessonsError, Term
from lessons.reading import INFOGRAPHIC_FILE, LESSON_FILE, read_lesson
from lessons.symptoms.content import load_symptoms
from scenarios.settings import PREFIX, load_settings

__all__ = ["CONTENT", "INFOGRAPHIC_FILE", "LESSON_FILE", "left_out", "load_lessons", "read_lessons", "roots_of_the_app"]

CONTENT = Path(__file__).resolve().parent / "content"

LOOK_EVERY_S = 0.25

_Stamp = tuple[tuple[str, int, int], ...]
_loaded: dict[tuple[tuple[Path, ...], bool], tuple[_Stamp, LessonSet]] = {}
_looked: dict[tuple[tuple[Path, ...], bool], tuple[float, LessonSet]] = {}
_reading = threading.RLock()
"""One reads, the others wait for it: thirty threads that each read the course keep a class waiting for half a minute after a restart."""


def roots_of_the_app() -> tuple[tuple[Path, ...], bool]:
    """The folders of lessons that the settings name, and whether unfinished ones are shown too (in the preview, which shows one folder)."""
    settings = load_settings()
    if settings.preview:
        return (settings.lessons_dir or CONTENT,), True
    return (CONTENT, *([settings.lessons_dir] if settings.lessons_dir else [])), False


def load_lessons(*roots: Path, unfinished: bool = False) -> LessonSet:
    """All lessons under `roots` (default: those of the app). Files are read again only when one of them has changed.

    Raises NoLessonsError, with every fault in its message, where not one lesson could be loaded.
    """
    if not roots:
        return _of_the_app()
    key = (tuple(roots), unfinished)
    stamp = tuple(one for root in roots for one in _stamp(root))
    with _reading:
        known = _loaded.get(key)
        if known is None or known[0] != stamp:
            known = (stamp, read_lessons(*roots, unfinished=unfinished))
            if not unfinished:
                for name, first, more in left_out(known[1].faults):
                    logging.getLogger("shardlab").warning("%s is left out: %s%s", name, first, f" and {more} more" if more else "")
            _loaded[key] = known
    if not known[1].lessons:
        raise NoLessonsError(known[1].faults, roots[-1])
    return known[1]


def left_out(faults: Iterable[Fault]) -> Iterator[tuple[str, Fault, int]]:
    """Each lesson (or other file) that has faults: its name, the first of them, and how many there are beside it."""
    by_name: dict[str, list[Fault]] = {}
    for fault in faults:
        by_name.setdefault(fault.file.partition("/")[0] or fault.file, []).append(fault)
    for name, found in by_name.items():
        yield name, found[0], len(found) - 1


def _of_the_app() -> LessonSet:
    """Those of the settings. A page asks several times while it is drawn; the disk is looked at once in LOOK_EVERY_S."""
    roots, unfinished = roots_of_the_app()
    looked = _looked.get((roots, unfinished))
    if looked is None or time.monotonic() - looked[0] >= LOOK_EVERY_S:
        looked = (time.monotonic(), load_lessons(*roots, unfinished=unfinished))
        _looked[roots, unfinished] = looked
    return looked[1]


def read_lessons(*roots: Path, unfinished: bool = False, only: str | None = None) -> LessonSet:
    """Read `roots` afresh, `unfinished` lessons too where that is asked for; may find no lesson at all. `only` names one folder.

    The course of a later folder goes on with that of the earlier ones, and so does its glossary.
    """
    terms, _ = load_glossary(CONTENT)
    lessons: dict[str, Lesson] = {}
    faults: list[Fault] = []
    advice: list[Fault] = []
    course = Course()
    for root in roots:
        own, told = load_glossary(root)
        terms = terms | own
        folders = _folders(root)
        listed, wrong = load_course(root, [folder.name for folder in folders])
        course = merged(course, listed)
        if not root.is_dir():
            told = [Fault(file=str(root), line=1, message=f"there is no such folder (see {PREFIX}LESSONS_DIR)")]
        _, in_symptoms = load_symptoms(root)
        faults += [] if only else [*told, *wrong, *in_symptoms]
        for folder in folders:
            if only in (None, folder.name):
                _take(folder, terms, lessons, faults, advice, unfinished=unfinished)
    ordered = sorted(lessons.values(), key=lambda lesson: course.place(lesson.id))
    stages = course.stages_of([lesson.id for lesson in ordered])
    return LessonSet(lessons=tuple(ordered), faults=tuple(faults), stages=stages, advice=tuple(advice))


def _take(
    folder: Path, terms: dict[str, Term], lessons: dict[str, Lesson], faults: list[Fault], advice: list[Fault], *, unfinished: bool
) -> None:
    read = read_lesson(folder, terms)
    if folder.name in lessons:
        message = "another folder of lessons has one of this name already, which stays; rename this one"
        faults.append(Fault(file=f"{folder.name}/{LESSON_FILE}", line=1, message=message))
        return
    advice += [fault for fault in read.faults if fault.kind == "advice"]
    faults += [fault for fault in read.faults if fault.kind != "advice"]
    if read.lesson is not None and (read.finished or unfinished):
        lessons[folder.name] = read.lesson


def _folders(root: Path) -> list[Path]:
    """The folders that may be lessons."""
    try:
        with os.scandir(root) as found:
            return [root / name for name in sorted(one.name for one in found if one.is_dir() and not one.name.startswith((".", "_")))]
    except OSError:
        return []


def _stamp(root: Path) -> Iterator[tuple[str, int, int]]:
    """Changes whenever a file of a lesson does."""
    files = [f"{root}/{COURSE_FILE}", f"{root}/{GLOSSARY_FILE}"]
    files += [f"{folder}/{name}" for folder in _folders(root) for name in (LESSON_FILE, INFOGRAPHIC_FILE)]
    for path in files:
        try:
            status = os.stat(path)
        except OSError:
            yield (path, 0, 0)
        else:
            yield (path, status.st_mtime_ns, status.st_size)
