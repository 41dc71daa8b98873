"""From folders to lessons: reads `<root>/<slug>/lesson.md` and `infographic.svg`, and reports every fault with file and line.

A broken lesson is left out with its faults while the others stay. Owns reading and assembling; rules about single fields are in
`lessons.schema`, Markdown and SVG in their modules.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from lessons import markdown
from lessons.front_matter import FrontMatter, FrontMatterError, read_front_matter, validate
from lessons.glossary import GLOSSARY_FILE, load_glossary
from lessons.markdown import Section
from lessons.model import Cause, Claim, Condition, Fault, Lesson, LessonSet, NoLessonsError, Option, OwnJobCheck, Prose, Racer, Term
from lessons.schema import SECTIONS, WHY_WORDS, LessonMatter, speaks_of_letters
from lessons.svg import sanitise_svg

CONTENT = Path(__file__).resolve().parent / "content"
LESSON_FILE = "lesson.md"
INFOGRAPHIC_FILE = "infographic.svg"

_SLUG = re.compile(r"^[a-z][a-z0-9-]{0,39}$")
_Stamp = tuple[tuple[str, int, int], ...]
_loaded: dict[Path, tuple[_Stamp, LessonSet]] = {}


def load_lessons(root: Path = CONTENT) -> LessonSet:
    """All lessons under `root`. Files are read again only when one of them has changed.

    Raises NoLessonsError, with every fault in its message, where not one lesson could be loaded.
    """
    stamp = _stamp(root)
    known = _loaded.get(root)
    if known is None or known[0] != stamp:
        known = (stamp, read_lessons(root))
        _loaded[root] = known
    if not known[1].lessons:
        raise NoLessonsError(known[1].faults, root)
    return known[1]


def read_lessons(root: Path) -> LessonSet:
    """Read `root` afresh; may hold no lesson at all."""
    terms, faults = load_glossary(root)
    lessons: list[Lesson] = []
    folders = sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith((".", "_"))) if root.is_dir() else []
    for folder in folders:
        lesson, found = load_lesson(folder, terms)
        faults += found
        if lesson is not None:
            lessons.append(lesson)
    return LessonSet(lessons=tuple(lessons), faults=tuple(faults))


def load_lesson(folder: Path, terms: dict[str, Term]) -> tuple[Lesson | None, list[Fault]]:
    """One lesson and its faults; None as soon as there is one."""
    report = _Report(folder)
    if not _SLUG.match(folder.name):
        report.add(LESSON_FILE, 1, f"the folder's name {folder.name!r} is the lesson's address: small letters, digits and -, at most 40")
    svg, alt = _infographic(folder, report)
    text = _read(folder / LESSON_FILE, report)
    if text is None:
        return None, report.faults
    try:
        front = read_front_matter(text)
    except FrontMatterError as error:
        report.add(LESSON_FILE, error.line, str(error))
        return None, report.faults
    matter, found = validate(LessonMatter, front)
    for line, message in found:
        report.add(LESSON_FILE, line, message)
    parts = _sections(front, report)
    if matter is None:
        return None, report.faults
    for index, term in enumerate(matter.terms):
        if term not in terms:
            report.add(LESSON_FILE, front.line_of(("terms", index)), f"terms: {term!r} is not in {GLOSSARY_FILE}")
    if len(parts) < len(SECTIONS):
        return None, report.faults
    rebuttals = _rebuttals(parts["Rebuttals"], [option.id for option in matter.options], report)
    commands = _own_job(parts["On your own job"], report)
    sources, source_faults = markdown.sources(parts["Sources"])
    for line, message in source_faults:
        report.add(LESSON_FILE, line, message)
    why = markdown.prose(parts["Why"].body)
    if not WHY_WORDS[0] <= why.words <= WHY_WORDS[1]:
        report.add(LESSON_FILE, parts["Why"].line, f"Why has {why.words} words; the short explanation has {WHY_WORDS[0]} to {WHY_WORDS[1]}")
    if not sources:
        report.add(LESSON_FILE, parts["Sources"].line, "Sources is empty: a lesson names what it rests on")
    if report.faults:
        return None, report.faults
    return _assembled(folder, front, matter, parts, rebuttals, commands, why, (svg, alt), terms), []


class _Report:
    """Gathers faults under the lesson's folder name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.name
        self.faults: list[Fault] = []

    def add(self, file: str, line: int, message: str) -> None:
        self.faults.append(Fault(file=f"{self._folder}/{file}", line=line, message=message))


def _assembled(
    folder: Path, front: FrontMatter, matter: LessonMatter, parts: dict[str, Section], rebuttals: dict[str, Prose],
    commands: list[OwnJobCheck], why: Prose, picture: tuple[str, str], terms: dict[str, Term],
) -> Lesson:
    render: Callable[[str], Prose] = lambda name: markdown.prose(parts[name].body)  # noqa: E731 - six equal calls below
    return Lesson(
        id=folder.name, title=matter.title, level=matter.level, minutes=matter.minutes, topic=matter.topic,
        exam_domains=tuple(matter.exam_domains), still=matter.still, symptom=render("Symptom"), question=matter.question,
        options=tuple(
            Option(id=option.id, text=option.text, right=option.right, rebuttal=rebuttals[option.id], causes=tuple(option.causes))
            for option in matter.options
        ),
        causes=tuple(Cause(**cause.model_dump()) for cause in matter.causes),
        symptom_when=tuple(Condition(that=one.that, otherwise=one.otherwise) for one in matter.symptom_when), fix=matter.fix,
        race=tuple(Racer(scenario=racer.scenario, label=racer.label) for racer in matter.race),
        terms=tuple(terms[term] for term in matter.terms),
        why=why, full_story=render("Full story"), exam_box=render("In the exam"), on_call_box=render("On call"),
        on_your_own_job=tuple(commands), what_to_try=render("What to try"), sources=tuple(markdown.sources(parts["Sources"])[0]),
        infographic=picture[0], infographic_alt=picture[1],
        claims=tuple(
            Claim(scenario=scenario, expression=expression, line=front.line_of(("claims", index, scenario)))
            for index, claim in enumerate(matter.claims)
            for scenario, expression in claim.items()
        ),
        folder=folder,
    )


def _sections(front: FrontMatter, report: _Report) -> dict[str, Section]:
    """The level-1 sections by title, those that are well formed."""
    raw = markdown.has_raw_html(front.body)
    if raw is not None:
        report.add(LESSON_FILE, front.body_line + raw, "raw HTML is not rendered in lessons; write Markdown")
    parts: dict[str, Section] = {}
    for section in markdown.sections(front.body, front.body_line):
        if section.title not in SECTIONS:
            what = f"the section {section.title!r} is not known" if section.title else "text before the first section"
            report.add(LESSON_FILE, section.line, f"{what}; sections are {', '.join(SECTIONS)}")
        elif section.title in parts:
            report.add(LESSON_FILE, section.line, f"the section {section.title!r} stands here twice")
        elif not section.body.strip():
            report.add(LESSON_FILE, section.line, f"the section {section.title!r} is empty")
        else:
            parts[section.title] = section
    for name in SECTIONS:
        if name not in parts and not any(repr(name) in fault.message for fault in report.faults):
            report.add(LESSON_FILE, front.body_line, f"the section {name!r} is missing")
    return parts


def _rebuttals(section: Section, option_ids: list[str], report: _Report) -> dict[str, Prose]:
    rebuttals: dict[str, Prose] = {}
    for part in markdown.sections(section.body, section.body_line, level=2):
        if part.title not in option_ids:
            report.add(LESSON_FILE, part.line, f"Rebuttals: {part.title or 'text'!r} is no option; options are {', '.join(option_ids)}")
            continue
        letter = speaks_of_letters(part.body)
        if letter:
            report.add(LESSON_FILE, part.line, f"Rebuttals: {letter!r} speaks of a letter, and options are shuffled; say what it claims")
        rebuttals[part.title] = markdown.prose(part.body)
    for option_id in option_ids:
        if option_id not in rebuttals or not rebuttals[option_id].words:
            report.add(LESSON_FILE, section.line, f"Rebuttals: the option {option_id!r} has no text under `## {option_id}`")
    return rebuttals


def _own_job(section: Section, report: _Report) -> list[OwnJobCheck]:
    checks: list[OwnJobCheck] = []
    for part in markdown.sections(section.body, section.body_line, level=2):
        blocks = {fence.language: fence.text for fence in markdown.fences(part)}
        language: Literal["sh", "py"] = "py" if "py" in blocks else "sh"
        missing = [name for name in (language, "healthy", "ill") if not blocks.get(name)]
        if not part.title or missing:
            what = f"has no fenced block {', '.join(missing)}" if part.title else "text before the first `## ` heading"
            needed = "each check has the blocks sh (or py), healthy and ill"
            report.add(LESSON_FILE, part.line, f"On your own job: {part.title!r} {what}; {needed}")
            continue
        why = markdown.prose(markdown.without_fences(part))
        checks.append(
            OwnJobCheck(
                title=part.title, why=why, language=language, command=blocks[language], healthy=blocks["healthy"], ill=blocks["ill"]
            )
        )
    return checks


def _infographic(folder: Path, report: _Report) -> tuple[str, str]:
    text = _read(folder / INFOGRAPHIC_FILE, report)
    if text is None:
        return "", ""
    svg, alt, faults = sanitise_svg(text)
    for line, message in faults:
        report.add(INFOGRAPHIC_FILE, line, message)
    return svg, alt


def _read(path: Path, report: _Report) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        report.add(path.name, 1, "the file is missing")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        report.add(path.name, line, "is not UTF-8 text")
    except OSError as error:
        report.add(path.name, 1, f"cannot be read: {error.strerror}")
    return None


def _stamp(root: Path) -> _Stamp:
    """Changes whenever a file under `root` does."""
    found = []
    for path in sorted(root.rglob("*")) if root.is_dir() else []:
        try:
            status = path.stat()
        except OSError:
            continue
        found.append((str(path), status.st_mtime_ns, status.st_size))
    return tuple(found)
