"""What makes a lesson good, as far as it can be judged mechanically: advice to its teacher. None of it keeps a lesson from being shown.

Owns these rules. What a lesson must have to be shown at all is in `lessons.schema` and `lessons.reading`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lessons.claim_language import roots
from lessons.front_matter import FrontMatter
from lessons.markdown import Section
from lessons.model import OwnJobCheck, Prose
from lessons.schema import EXAM_DOMAINS, LessonMatter

Advice = tuple[int, str, str]
"""Line of lesson.md (0: the infographic), what would be better, and the text that is meant."""

OPTIONS = 4
OPTION_RATIO = 1.75
"""The longest option's length over the shortest one's."""
KEY_RATIO = 1.35
"""The right option's length over the longest wrong one's: a right answer that is spelled out most carefully gives itself away."""
OWN_JOB_CHECKS = 3
REBUTTAL_WORDS = (30, 110)
SYMPTOM_WORDS = (25, 110)
ALT_WORDS = 20
LONGEST_TITLE = 60
SOURCES = 2


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What is looked at."""

    matter: LessonMatter
    front: FrontMatter
    parts: Mapping[str, Section]
    rebuttals: Mapping[str, Prose]
    commands: Sequence[OwnJobCheck]
    alt: str
    sources: int
    symptom: Prose


def advice(judged: Judged) -> Iterator[Advice]:
    """Every piece of advice."""
    yield from _options(judged)
    yield from _texts(judged)
    yield from _experiments(judged)


def _options(judged: Judged) -> Iterator[Advice]:
    options = judged.matter.options
    line = judged.front.line_of(("options",))
    texts = " ".join(option.text for option in options)
    if len(options) != OPTIONS:
        yield line, f"options: there are {len(options)}; a question has {OPTIONS}", texts
    key = next(option.id for option in options if option.right)
    lengths = {option.id: len(option.text) for option in options}
    longest, shortest = max(lengths, key=lengths.__getitem__), min(lengths, key=lengths.__getitem__)
    if lengths[longest] > OPTION_RATIO * lengths[shortest]:
        told = f"{shortest} has {lengths[shortest]} characters and {longest} has {lengths[longest]}"
        yield line, f"options: {told}; options of similar length give nothing away", texts
    elif lengths[key] > KEY_RATIO * max(length for option_id, length in lengths.items() if option_id != key):
        yield line, f"options: the right one, {key}, is by far the longest, which gives it away", texts
    if len({option.text.rstrip()[-1] in ".!?" for option in options}) > 1:
        yield line, "options: some end with a full stop and some do not", texts


def _texts(judged: Judged) -> Iterator[Advice]:
    matter, front, parts = judged.matter, judged.front, judged.parts
    if len(matter.title) > LONGEST_TITLE:
        yield front.line_of(("title",)), f"title has {len(matter.title)} characters; at most {LONGEST_TITLE} fit on a phone", matter.title
    for index, domain in enumerate(matter.exam_domains):
        if domain not in EXAM_DOMAINS:
            allowed = ", ".join(EXAM_DOMAINS)
            yield front.line_of(("exam_domains", index)), f"exam_domains: {domain!r} is none of {allowed}", domain
    if not matter.exam_domains:
        yield front.line_of(("exam_domains",)), f"exam_domains: name at least one of {', '.join(EXAM_DOMAINS)}", ""
    if not SYMPTOM_WORDS[0] <= judged.symptom.words <= SYMPTOM_WORDS[1]:
        symptom = parts["Symptom"]
        yield symptom.line, f"Symptom has {judged.symptom.words} words; {_span(SYMPTOM_WORDS)} are read in one go", symptom.body
    for option in matter.options:
        told = judged.rebuttals[option.id]
        if not REBUTTAL_WORDS[0] <= told.words <= REBUTTAL_WORDS[1]:
            message = f"Rebuttals: {option.id} has {told.words} words; {_span(REBUTTAL_WORDS)} say why and what speaks against it"
            yield parts["Rebuttals"].line, message, told.markdown
    own_job = parts["On your own job"]
    if len(judged.commands) < OWN_JOB_CHECKS:
        yield own_job.line, f"On your own job has {len(judged.commands)} checks; a lesson has {OWN_JOB_CHECKS}", own_job.body
    if judged.sources < SOURCES:
        yield parts["Sources"].line, f"Sources has {judged.sources} entry; name at least {SOURCES}", parts["Sources"].body
    if len(judged.alt.split()) < ALT_WORDS:
        yield 0, f"<title> and <desc> have {len(judged.alt.split())} words; say in {ALT_WORDS} or more what the picture shows", judged.alt


def _experiments(judged: Judged) -> Iterator[Advice]:
    matter, front = judged.matter, judged.front
    spoken_of = {name for claim in matter.claims for name, expression in claim.items() for name in (name, *roots(expression))}
    claims = " ".join(expression for claim in matter.claims for expression in claim.values())
    for index, cause in enumerate(matter.causes):
        if cause.scenario not in spoken_of:
            message = f"causes.{index}: no claim speaks of {cause.scenario}, so nothing holds what `shows` says of it"
            yield front.line_of(("causes", index, "scenario")), message, claims


def _span(limits: tuple[int, int]) -> str:
    return f"{limits[0]} to {limits[1]}"
