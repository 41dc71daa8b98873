"""The commands `export` and `import` of `python -m lessons`.

    export --format moodle|gift|csv-coverage|coverage|csv-answers|csv-lessons [LESSON...] [-o FILE] [--bom]
    import FILE [--into FOLDER] [--format moodle|gift] [--leave-out]

Owns arguments and what is printed. Exit codes are those of `lessons.cli`.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lessons.exchange.coverage import coverage, coverage_csv, coverage_text
from lessons.exchange.gift_write import gift
from lessons.exchange.importing import RefusedError, import_file
from lessons.exchange.item import item_of
from lessons.exchange.moodle_write import moodle_xml
from lessons.loader import load_lessons
from lessons.model import Lesson, NoLessonsError
from lessons.store import StoreError
from scenarios.cli_output import guarded
from scenarios.settings import load_settings

DONE, REFUSED, UNUSABLE = 0, 1, 2
FORMATS = ("moodle", "gift", "csv-coverage", "coverage", "csv-answers", "csv-lessons")
RESULTS = ("csv-answers", "csv-lessons")
IMPORTED = Path("imported-lessons")


def add_commands(commands: Any, parser: Callable[..., argparse.ArgumentParser]) -> None:
    """`export` and `import`; each sets `command` to what carries it out."""
    export = commands.add_parser("export", help="lessons for Moodle, a coverage table, or results as CSV", allow_abbrev=False)
    export.add_argument("lessons", nargs="*", metavar="LESSON", help="ids of lessons (default: all)")
    export.add_argument("--format", choices=FORMATS, required=True, help="csv-answers and csv-lessons are results, from the store")
    export.add_argument("-o", "--output", type=Path, metavar="FILE", help="where to write it (default: standard output)")
    export.add_argument("--bom", action="store_true", help="begin a CSV with the mark by which Excel knows UTF-8")
    export.set_defaults(command=_export)
    bring = commands.add_parser("import", help="questions from Moodle XML or GIFT as the beginnings of lessons", allow_abbrev=False)
    bring.add_argument("file", type=Path, metavar="FILE")
    bring.add_argument("--into", type=Path, default=IMPORTED, metavar="FOLDER", help=f"folder of lessons (default: {IMPORTED})")
    bring.add_argument("--format", choices=("moodle", "gift"), help="default: told from the file")
    bring.add_argument("--leave-out", action="store_true", help="leave out questions of other kinds instead of refusing the file")
    bring.set_defaults(command=_import)


def carried_out(options: argparse.Namespace) -> int:
    """The exit code of the command that `options` name; its faults are one line each on standard error."""
    try:
        return guarded(lambda: int(options.command(options)))
    except (NoLessonsError, StoreError) as error:
        print(error, file=sys.stderr)
        return REFUSED
    except ValueError as error:  # arguments, or a setting in the environment, that cannot be used
        print(error, file=sys.stderr)
        return UNUSABLE


def _export(options: argparse.Namespace) -> int:
    lessons = load_lessons().lessons
    chosen = [lesson for lesson in lessons if not options.lessons or lesson.id in options.lessons]
    unknown = [name for name in options.lessons if name not in {lesson.id for lesson in lessons}]
    if unknown:
        raise ValueError(f"LESSON={unknown[0][:40]!r}: must be one of {', '.join(lesson.id for lesson in lessons)}")
    text = _text(options.format, chosen, bom=options.bom)
    if options.output is None:
        print(text, end="")
    else:
        # Line ends are those of the format, whatever the system's are.
        options.output.write_text(text, encoding="utf-8", newline="")
        print(f"{options.output}: {_count(options.format, chosen, text)}", file=sys.stderr)
    return DONE


def _count(kind: str, lessons: Sequence[Lesson], text: str) -> str:
    """What was written, in words: a file of results without a row is one where nobody has answered."""
    if kind in RESULTS:
        rows = sum(1 for _ in csv.reader(io.StringIO(text, newline=""))) - 1
        return f"{kind}, {_counted(rows, 'row')}" + ("" if rows else ": nothing has been answered yet")
    return f"{_counted(len(lessons), 'lesson')} as {kind}"


def _counted(number: int, one: str) -> str:
    return f"{number} {one}" if number == 1 else f"{number} {one}s"


def _text(kind: str, lessons: Sequence[Lesson], *, bom: bool) -> str:
    if kind in RESULTS:
        return _results(kind, [lesson.id for lesson in lessons], bom=bom)
    if kind == "moodle":
        return moodle_xml(map(item_of, lessons))
    if kind == "gift":
        return gift(map(item_of, lessons))
    return coverage_csv(coverage(lessons), bom=bom) if kind == "csv-coverage" else coverage_text(coverage(lessons))


def _results(kind: str, lesson_ids: Sequence[str], *, bom: bool) -> str:
    # Imported only here: the other formats need no store.
    from lessons.exchange.results import answers_csv, lessons_csv
    from lessons.learning import Learning

    learning = Learning.open(load_settings())
    try:
        attempts = [attempt for attempt in learning.attempts.all() if attempt.lesson_id in lesson_ids]
    finally:
        learning.close()
    return (answers_csv if kind == "csv-answers" else lessons_csv)(attempts, load_lessons(), bom=bom)


def _import(options: argparse.Namespace) -> int:
    if not options.file.is_file():
        raise ValueError(f"FILE={str(options.file)!r}: must be a file of Moodle XML or GIFT")
    if options.into.exists() and not options.into.is_dir():
        raise ValueError(f"into={str(options.into)!r}: must be a folder, or not exist yet")
    try:
        made, left_out = import_file(options.file, options.into, kind=options.format, leave_out=options.leave_out)
    except RefusedError as refused:
        print("\n".join(str(refusal) for refusal in refused.refusals))
        print(f"{options.file}: refused for {_counted(len(refused.refusals), 'reason')}; nothing was written", file=sys.stderr)
        return REFUSED
    for refusal in left_out:
        print(f"left out: {refusal}")
    for one in made:
        wrong = [fault for fault in one.faults if fault.kind == "fault"]
        print(f"{one.folder}: {one.title}: {sum(fault.kind == 'to do' for fault in one.faults)} things to do")
        for fault in wrong:
            print(f"    {fault}")
    print(f"{_counted(len(made), 'lesson')} begun in {options.into}; go on with: python -m lessons check {options.into}", file=sys.stderr)
    return DONE
