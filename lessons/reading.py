"""One lesson from its folder: lesson.md and infographic.svg, with every fault on its line.

Owns reading and assembling. Rules about single fields are in `lessons.schema`, about good texts in `lessons.quality`, Markdown and SVG in
their modules.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lessons import markdown
from lessons.front_matter import FrontMatter, FrontMatterError, not_readable, read_front_matter, validate
from lessons.glossary import GLOSSARY_FILE
from lessons.markdown import Section
from lessons.model import KINDS, Cause, Claim, Condition, Fault, FaultKind, Lesson, Option, OwnJobCheck, Prose, Racer, Term
from lessons.quality import Judged, advice
from lessons.schema import OWN_EXPERIMENTS, SECTIONS, WHY_WORDS, WORDING_WORDS, LessonMatter, speaks_of_letters
from lessons.svg import sanitise_svg

LESSON_FILE = "lesson.md"
INFOGRAPHIC_FILE = "infographic.svg"
TO_DO = "TODO:"
"""Marks what is still to be written. A lesson with such a mark in it is unfinished, and shown in the preview only."""
LONGEST_LESSON = 200_000
"""Characters of lesson.md."""

SLUG = re.compile(r"^[a-z][a-z0-9-]{0,39}$")
_TO_DO = re.compile(rf"\b{TO_DO}\s*(?P<what>(?:(?!\]\()[^<])*)")


@dataclass(frozen=True, kw_only=True)
class Read:
    """What became of a folder."""

    lesson: Lesson | None
    """None where there is a fault; where there are only things to do, it is there and unfinished."""
    faults: tuple[Fault, ...]

    @property
    def finished(self) -> bool:
        """Whether it may be shown to learners."""
        return self.lesson is not None and all(fault.kind == "advice" for fault in self.faults)


def read_lesson(folder: Path, terms: dict[str, Term]) -> Read:
    """One lesson and everything that is wrong with it; `terms` are the glossary's."""
    report = _Report(folder)
    if not SLUG.match(folder.name):
        report.add(LESSON_FILE, 1, f"the folder's name {folder.name!r} is the lesson's address: small letters, digits and -, at most 40")
    picture = _infographic(folder, report)
    text = _read(folder / LESSON_FILE, report)
    if text is None:
        return Read(lesson=None, faults=report.sorted())
    report.find_to_dos(LESSON_FILE, text)
    if len(text) > LONGEST_LESSON:
        report.add(LESSON_FILE, 1, f"the file has {len(text)} characters; at most {LONGEST_LESSON} are allowed")
        return Read(lesson=None, faults=report.sorted())
    try:
        front = read_front_matter(text)
    except FrontMatterError as error:
        report.add(LESSON_FILE, error.line, str(error))
        return Read(lesson=None, faults=report.sorted())
    lesson = _lesson(folder, front, picture, terms, report)
    return Read(lesson=None if report.broken else lesson, faults=report.sorted())


def _lesson(folder: Path, front: FrontMatter, picture: tuple[str, str], terms: dict[str, Term], report: _Report) -> Lesson | None:
    own = front.values.get("experiments")
    matter, found = validate(LessonMatter, front, {OWN_EXPERIMENTS: tuple(own) if isinstance(own, dict) else ()})
    for line, message in found:
        report.add(LESSON_FILE, line, message)
    parts = _sections(front, report)
    if matter is None:
        return None
    for index, term in enumerate(matter.terms):
        if term not in terms:
            report.add(LESSON_FILE, front.line_of(("terms", index)), f"terms: {term!r} is not in {GLOSSARY_FILE}")
    wordings = _wordings(matter, front, report)
    if len(parts) < len(SECTIONS):
        return None
    rebuttals = _rebuttals(parts["Rebuttals"], [option.id for option in matter.options], report)
    commands = _own_job(parts["On your own job"], report)
    why, sources = parts["Why"], parts["Sources"]
    for line, message in markdown.sources(sources)[1]:
        report.add(LESSON_FILE, line, message, about=sources.body)
    if not markdown.sources(sources)[0]:
        report.add(LESSON_FILE, sources.line, "Sources is empty: a lesson names what it rests on", about=sources.body)
    told = markdown.prose(why.body)
    if not WHY_WORDS[0] <= told.words <= WHY_WORDS[1]:
        allowed = f"{WHY_WORDS[0]} to {WHY_WORDS[1]}"
        report.add(LESSON_FILE, why.line, f"Why has {told.words} words; the short explanation has {allowed}", about=why.body)
    if report.broken:
        return None
    judged = Judged(
        matter=matter, front=front, parts=parts, rebuttals=rebuttals, commands=commands, alt=picture[1],
        sources=len(markdown.sources(sources)[0]), symptom=markdown.prose(parts["Symptom"].body),
    )
    for line, message, about in advice(judged):
        report.add(LESSON_FILE if line else INFOGRAPHIC_FILE, line or 1, message, about=about, kind="advice")
    return _assembled(folder, front, matter, parts, wordings, rebuttals, commands, told, picture, terms)


class _Report:
    """Gathers what is wrong, under the lesson's folder name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.name
        self.faults: list[Fault] = []

    def add(self, file: str, line: int, message: str, *, about: str = "", kind: FaultKind = "fault") -> None:
        """`about` is the text that is judged: while there is something to do in it, that is all that is said of it."""
        if TO_DO not in about:
            self.faults.append(Fault(file=f"{self._folder}/{file}", line=line, message=message, kind=kind))

    def find_to_dos(self, file: str, text: str) -> None:
        """Those outside of code: what stands in a sample of a script or a log is no note to the teacher."""
        in_code = False
        for number, row in enumerate(text.splitlines(), start=1):
            in_code ^= row.startswith("```")
            found = _TO_DO.search(row)
            if found and not in_code:
                what = " ".join(found.group("what").split()).rstrip("'\"}]>- ") or "finish this"
                self.add(file, number, what[:140], kind="to do")

    @property
    def broken(self) -> bool:
        return any(fault.kind == "fault" for fault in self.faults)

    def sorted(self) -> tuple[Fault, ...]:
        """What keeps it from being shown first, then what is to do; advice once nothing is broken."""
        kept = [fault for fault in self.faults if fault.kind != "advice" or not self.broken]
        return tuple(sorted(kept, key=lambda fault: (KINDS.index(fault.kind), fault.file, fault.line)))


def _assembled(
    folder: Path, front: FrontMatter, matter: LessonMatter, parts: dict[str, Section], wordings: list[Prose], rebuttals: dict[str, Prose],
    commands: list[OwnJobCheck], why: Prose, picture: tuple[str, str], terms: dict[str, Term],
) -> Lesson:
    render: Callable[[str], Prose] = lambda name: markdown.prose(parts[name].body)  # noqa: E731 - six equal calls below
    return Lesson(
        id=folder.name, title=matter.title, level=matter.level, minutes=matter.minutes, topic=matter.topic,
        exam_domains=tuple(matter.exam_domains), still=matter.still, symptom=render("Symptom"), wordings=tuple(wordings),
        question=matter.question,
        options=tuple(
            Option(id=option.id, text=option.text, right=option.right, rebuttal=rebuttals[option.id], causes=tuple(option.causes))
            for option in matter.options
        ),
        causes=tuple(Cause(**cause.model_dump(), line=front.line_of(("causes", number))) for number, cause in enumerate(matter.causes)),
        symptom_when=tuple(Condition(that=one.that, otherwise=one.otherwise) for one in matter.symptom_when),
        evidence=tuple(matter.evidence), fix=matter.fix,
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
        folder=folder, experiments=matter.experiments,
    )


def _wordings(matter: LessonMatter, front: FrontMatter, report: _Report) -> list[Prose]:
    """The other tellings of the symptom."""
    found = []
    for index, text in enumerate(matter.wordings):
        line = front.line_of(("wordings", index))
        told = markdown.prose(text)
        if markdown.has_raw_html(text) is not None:
            report.add(LESSON_FILE, line, f"wordings.{index}: raw HTML is not rendered in lessons; write Markdown")
        if not WORDING_WORDS[0] <= told.words <= WORDING_WORDS[1]:
            allowed = f"{WORDING_WORDS[0]} to {WORDING_WORDS[1]}"
            message = f"wordings.{index} has {told.words} words; another telling of the symptom has {allowed}"
            report.add(LESSON_FILE, line, message, about=text)
        found.append(told)
    return found


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
    report.find_to_dos(INFOGRAPHIC_FILE, text)
    svg, alt, faults = sanitise_svg(text)
    for line, message in faults:
        report.add(INFOGRAPHIC_FILE, line, message)
    return svg, alt


def _read(path: Path, report: _Report) -> str | None:
    try:
        odd = not_readable(path)
        if odd is None:
            return path.read_text(encoding="utf-8")
        report.add(path.name, 1, odd)
    except FileNotFoundError:
        report.add(path.name, 1, "the file is missing")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        report.add(path.name, line, "is not UTF-8 text")
    except OSError as error:
        report.add(path.name, 1, f"cannot be read: {error.strerror}")
    return None


