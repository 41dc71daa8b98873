"""The command line of lessons: `python -m lessons check [FOLDER] [--run] [--json]`.

Owns arguments, exit codes and what is printed. Exit codes: 0 all is well, 1 there are faults or claims that do not hold, 2 unusable
arguments, with one line on standard error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from lessons.loader import CONTENT, read_lessons
from lessons.model import LessonSet
from scenarios.cli_output import guarded
from scenarios.settings import load_settings

WELL, FAULTY, UNUSABLE = 0, 1, 2


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line; argparse would print its usage too."""

    def error(self, message: str) -> NoReturn:
        print(" ".join(message.split()), file=sys.stderr)
        raise SystemExit(UNUSABLE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = _Parser(prog="python -m lessons", description="Lessons: folders with lesson.md and infographic.svg.", allow_abbrev=False)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    check = commands.add_parser("check", help="report every fault with file and line", allow_abbrev=False)
    check.add_argument("folder", nargs="?", type=Path, default=CONTENT, metavar="FOLDER", help="folder of lessons (default: the built-in)")
    check.add_argument("--run", action="store_true", help="also run the experiments and check every claim")
    check.add_argument("--json", action="store_true", help="print one JSON object")
    try:
        options = parser.parse_args(argv)
    except SystemExit as end:
        return int(end.code or 0)
    if not options.folder.is_dir():
        print(f"FOLDER={str(options.folder)!r}: must be a folder that holds one folder per lesson", file=sys.stderr)
        return UNUSABLE
    try:
        return guarded(lambda: _check(options.folder, run=options.run, as_json=options.json))
    except ValueError as error:  # a setting in the environment that cannot be used
        print(error, file=sys.stderr)
        return UNUSABLE


def _check(folder: Path, *, run: bool, as_json: bool) -> int:
    found = read_lessons(folder)
    checked: list[Any] = []
    if run and found.lessons:
        # Imported only here: a check of texts needs no launcher.
        from lessons.check_runs import check_by_running

        checked = list(check_by_running(found.lessons, load_settings(), lambda text: print(text, file=sys.stderr, flush=True)))
    well = bool(found.lessons) and not found.faults and all(one.holds for one in checked)
    if as_json:
        print(json.dumps(_report(found, checked)))
    else:
        _print(folder, found, checked)
    return WELL if well else FAULTY


def _print(folder: Path, found: LessonSet, checked: Sequence[Any]) -> None:
    for fault in found.faults:
        print(f"{folder / fault.file}:{fault.line}: {fault.message}")
    for one in checked:
        print(f"{'holds ' if one.holds else 'BROKEN'} {one}")
    for lesson in found.lessons:
        print(f"{lesson.id}: well formed, {len(lesson.options)} options, {len(lesson.causes)} causes, {len(lesson.claims)} claims")
    if not found.lessons:
        print(f"{folder}: no lesson could be loaded")
    broken = sum(not one.holds for one in checked)
    ran = f", {len(checked) - broken} statements hold and {broken} do not" if checked else ""
    print(f"lessons: {len(found.lessons)}, faults: {len(found.faults)}{ran}")


def _report(found: LessonSet, checked: Sequence[Any]) -> dict[str, Any]:
    return {
        "lessons": [lesson.id for lesson in found.lessons],
        "faults": [{"file": fault.file, "line": fault.line, "message": fault.message} for fault in found.faults],
        "checked": [
            {"lesson": one.lesson_id, "scenario": one.scenario, "line": one.line, "holds": one.holds, "message": one.message}
            for one in checked
        ],
    }
