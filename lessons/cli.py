"""The command line of lessons.

    new FOLDER [--title TITLE]           a lesson to be written
    preview [FOLDER] [--port PORT]       see it while it is written
    check [FOLDER] [--run] [--json]      everything that is wrong with it, with file and line; --run measures its claims
    figures FOLDER [EXPERIMENT...]       what its experiments measure, named as in claims

`export` and `import` are in `lessons.exchange.cli`. Owns arguments, exit codes and what is printed. Exit codes: 0 all is well, 1 there are
faults, things to do or claims that do not hold, 2 unusable arguments, with one line on standard error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from lessons.exchange.cli import add_commands, carried_out
from lessons.experiments import in_words, named_experiments
from lessons.figures import figure_lines
from lessons.loader import CONTENT, LESSON_FILE, read_lessons
from lessons.model import Fault, LessonSet
from lessons.new import new_lesson
from scenarios.catalog import SCENARIOS
from scenarios.settings import load_settings

WELL, FAULTY, UNUSABLE = 0, 1, 2
FOLDER_HELP = "folder of lessons, or of one lesson (default: the built-in course)"


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line; argparse would print its usage too."""

    def error(self, message: str) -> NoReturn:
        print(" ".join(message.split()), file=sys.stderr)
        raise SystemExit(UNUSABLE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = _Parser(prog="python -m lessons", description="Lessons: folders with lesson.md and infographic.svg.", allow_abbrev=False)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    new = commands.add_parser("new", help="begin a lesson", allow_abbrev=False)
    new.add_argument("folder", type=Path, metavar="FOLDER", help="the folder to be made; its name becomes the lesson's address")
    new.add_argument("--title", help="what is seen, never the cause")
    new.set_defaults(command=_new)
    preview = commands.add_parser("preview", help="see lessons while they are written", allow_abbrev=False)
    preview.add_argument("folder", nargs="?", type=Path, default=CONTENT, metavar="FOLDER", help=FOLDER_HELP)
    preview.add_argument("--port", type=int, default=8502, help="default: 8502")
    preview.set_defaults(command=_preview)
    check = commands.add_parser("check", help="report every fault with file and line", allow_abbrev=False)
    check.add_argument("folder", nargs="?", type=Path, default=CONTENT, metavar="FOLDER", help=FOLDER_HELP)
    check.add_argument("--run", action="store_true", help="also run the experiments and check every claim")
    check.add_argument("--json", action="store_true", help="print one JSON object")
    check.set_defaults(command=_check)
    figures = commands.add_parser("figures", help="run the experiments of a lesson and print what they measure", allow_abbrev=False)
    figures.add_argument("folder", type=Path, metavar="FOLDER", help="folder of a lesson")
    figures.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="its names of experiments (default: all it shows)")
    figures.set_defaults(command=_figures)
    add_commands(commands, _Parser)
    try:
        options = parser.parse_args(argv)
    except SystemExit as end:
        return int(end.code or 0)
    return carried_out(options)


def located(folder: Path) -> tuple[Path, str | None]:
    """The folder of lessons, and the name of one where FOLDER is a lesson's own. Raises ValueError where it is no folder."""
    if not folder.is_dir():
        raise ValueError(f"FOLDER={str(folder)!r}: must be a folder that holds one folder per lesson, or the folder of a lesson")
    if (folder / LESSON_FILE).exists():
        whole = folder.resolve()
        return (folder.parent if folder.name else whole.parent), whole.name
    return folder, None


def _new(options: argparse.Namespace) -> int:
    folder = new_lesson(options.folder, options.title)
    print(f"{folder}: made, with {LESSON_FILE} and an infographic to draw over. Every place to be written says TODO.")
    print(f"    see it:   python -m lessons preview {folder}")
    print(f"    check it: python -m lessons check {folder}")
    return WELL


def _preview(options: argparse.Namespace) -> int:
    # Imported only here: nothing else starts a server.
    from lessons.preview import preview

    if not 1 <= options.port <= 65_535:
        raise ValueError(f"port={options.port}: must be 1 to 65535")
    root, name = located(options.folder)
    return preview(root, name, port=options.port)


def _check(options: argparse.Namespace) -> int:
    root, name = located(options.folder)
    found = read_lessons(root, only=name)
    checked: list[Any] = []
    # What is only unfinished can be measured already.
    ready = read_lessons(root, only=name, unfinished=True).lessons
    if options.run and ready:
        # Imported only here: a check of texts needs no launcher.
        from lessons.check_runs import check_by_running

        checked = list(check_by_running(ready, load_settings(), lambda text: print(text, file=sys.stderr, flush=True)))
    well = bool(found.lessons) and not found.faults and not found.advice and all(one.holds for one in checked)
    if options.json:
        print(json.dumps(_report(found, checked)))
    else:
        _print(root, found, checked)
    return WELL if well else FAULTY


def _figures(options: argparse.Namespace) -> int:
    from lessons.check_runs import measuring

    root, name = located(options.folder)
    found = read_lessons(root, only=name, unfinished=True)
    if len(found.lessons) != 1:
        for fault in found.faults:
            print(f"{root / fault.file}:{fault.line}: {fault.text}")
        raise ValueError(f"FOLDER={str(options.folder)!r}: must be the folder of one lesson that can be read")
    lesson = found.lessons[0]
    known = [*named_experiments(lesson), *lesson.experiments]
    unknown = [wanted for wanted in options.experiments if wanted not in known and wanted not in SCENARIOS]
    if unknown:
        raise ValueError(f"EXPERIMENT={unknown[0][:40]!r}: must be one of {', '.join(dict.fromkeys(known))}, or of the catalog")
    chosen = {wanted: lesson.config_of(wanted) for wanted in options.experiments or named_experiments(lesson)}
    ended_well = True
    with measuring(load_settings(), lambda text: print(text, file=sys.stderr, flush=True)) as measure:
        for wanted, config in chosen.items():
            result = measure(config)
            ended_well &= not isinstance(result, str)
            print(f"{wanted}" + ("" if in_words(config) == wanted else f": {in_words(config)}"))
            for line in [result] if isinstance(result, str) else figure_lines(result):
                print(f"    {line}")
    return WELL if ended_well else FAULTY


def _print(root: Path, found: LessonSet, checked: Sequence[Any]) -> None:
    for fault in (*found.faults, *found.advice):
        print(f"{root / fault.file}:{fault.line}: {fault.text}")
    for one in sorted(checked, key=lambda one: not one.holds):  # what is broken is read last, at the end of a long list
        print(f"{'holds ' if one.holds else 'BROKEN'} {one}")
    for lesson in found.lessons:
        print(f"{lesson.id}: well formed, {len(lesson.options)} options, {len(lesson.causes)} causes, {len(lesson.claims)} claims")
    for name, left in _unfinished(found.faults).items():
        print(f"{name}: unfinished, {left} things to do")
    if not found.lessons and not _unfinished(found.faults):
        print(f"{root}: no lesson could be loaded")
    broken = sum(not one.holds for one in checked)
    to_do = sum(fault.kind == "to do" for fault in found.faults)
    rest = [f"faults: {len(found.faults) - to_do}"]
    rest += [f"to do: {to_do}"] if to_do else []
    rest += [f"advice: {len(found.advice)}"] if found.advice else []
    rest += [f"{len(checked) - broken} statements hold and {broken} do not"] if checked else []
    print(f"lessons: {len(found.lessons)}, {', '.join(rest)}")


def _unfinished(faults: Sequence[Fault]) -> dict[str, int]:
    """Lessons with nothing wrong but things to do, and how many these are."""
    kinds: dict[str, list[str]] = {}
    for fault in faults:
        kinds.setdefault(fault.file.partition("/")[0], []).append(fault.kind)
    return {name: len(found) for name, found in kinds.items() if set(found) == {"to do"}}


def _report(found: LessonSet, checked: Sequence[Any]) -> dict[str, Any]:
    return {
        "lessons": [lesson.id for lesson in found.lessons],
        "faults": [
            {"file": fault.file, "line": fault.line, "kind": fault.kind, "message": fault.message}
            for fault in (*found.faults, *found.advice)
        ],
        "checked": [
            {"lesson": one.lesson_id, "scenario": one.scenario, "line": one.line, "holds": one.holds, "message": one.message}
            for one in checked
        ],
    }
