"""An item as the beginnings of a lesson: what the other program knew is in its place, the rest is the template of `python -m lessons new`.

Every place that is still to be written says TODO, so that `python -m lessons check` names it with its line, the preview shows the lesson,
and no learner ever sees it unfinished. Owns the files of one folder, as bytes by name. Must not write them.
"""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Iterable

from lessons import markdown
from lessons.exchange.item import Item, ItemOption
from lessons.front_matter import read_front_matter
from lessons.new import TEMPLATE
from lessons.reading import INFOGRAPHIC_FILE, LESSON_FILE, SLUG, TO_DO
from lessons.schema import EXAM_DOMAINS, SECTIONS, WHY_WORDS

PICTURES = "pictures"
_UNSAFE_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_WRONG = ("large_batch", "tiny_model", "unsharded", "starved_loader", "scheduler_desync")
"""Experiments that stand for the wrong options until a teacher has chosen others, with what their runs draw."""
_DRAWS = {
    "large_batch": "all_crash", "tiny_model": "all_low", "unsharded": "all_high", "starved_loader": "all_low",
    "scheduler_desync": "all_high", "rank0_loading": "only0",
}  # fmt: skip


def slug_of(item: Item, taken: Iterable[str]) -> str:
    """The name of the item's folder: its id where that can be one, else made of its title; one that is not taken."""
    wanted = item.id if SLUG.fullmatch(item.id) else re.sub(r"[^a-z0-9]+", "-", item.title.lower()).strip("-")[:34].strip("-")
    if not SLUG.fullmatch(wanted):
        wanted = f"question-{wanted}".strip("-")[:34].strip("-")
    known = set(taken)
    return next(name for number in range(1, len(known) + 2) if (name := wanted if number == 1 else f"{wanted[:36]}-{number}") not in known)


def files_of(item: Item, slug: str) -> dict[str, bytes]:
    """The folder's files by their path inside it."""
    template = (TEMPLATE / INFOGRAPHIC_FILE).read_text(encoding="utf-8")
    files = {LESSON_FILE: lesson_text(item, slug).encode(), INFOGRAPHIC_FILE: (item.infographic or template).encode()}
    for number, picture in enumerate(item.pictures, start=1):
        name = _UNSAFE_NAME.sub("-", picture.name.rpartition("/")[2]).lstrip(".-")[-60:] or "picture"
        files[f"{PICTURES}/{number}-{name}"] = picture.data
    return files


def lesson_text(item: Item, slug: str) -> str:
    """The whole lesson.md."""
    option_ids, cause_ids = _ids(item, slug)
    domains = [tag for tag in item.tags if tag in EXAM_DOMAINS]
    others = [tag for tag in item.tags if tag not in EXAM_DOMAINS]
    rows = ["---", f"title: {_quoted(item.title)}", "level: core", "minutes: 5", "topic: scaling"]
    rows.append(f"exam_domains: {json.dumps(domains or [EXAM_DOMAINS[0]])}")
    if others or not domains:
        tags = f"; its tags were {', '.join(others)}" if others else ""
        rows.append(f"# {TO_DO} choose its domains{_comment(tags)}")
    if item.pictures:
        rows.append(f"# {TO_DO} pictures came with the question ({len(item.pictures)}, in {PICTURES}/); no page shows them")
    rows += ["", "# Seen before an answer is locked in: nothing here may tell the cause.", f"# {TO_DO} the picture of the symptom"]
    rows += ["still: only0", f"question: {_quoted(item.question or f'{TO_DO} the question')}", "wordings:"]
    rows += [f'  - "{TO_DO} the same symptom told {how}, 40 to 90 words"' for how in ("by somebody else", "in a third way")]
    rows.append("options:")
    for option, option_id, cause_id in zip(item.options, option_ids, cause_ids, strict=True):
        rows += [f"  - id: {option_id}", f"    text: {_quoted(option.text)}", *(["    right: true"] if option.right else [])]
        rows.append(f"    causes: [{cause_id}]")
    rows += ["", "# From here on nothing is shown before an answer is locked in.", "causes:"]
    wrong = iter(_WRONG)
    for option, cause_id in zip(item.options, cause_ids, strict=True):
        rows += _cause(option, cause_id, "rank0_loading" if option.right else next(wrong))
    rows += ["", f"# {TO_DO} the symptom in figures", "symptom_when:"]
    rows.append("  - {that: \"outcome == 'finished'\", otherwise: the job does not run on}")
    rows += ["fix: sharded", "", f"# {TO_DO} claim what your texts say; `python -m lessons check --run` measures it"]
    rows += ["claims:", "  - sharded: speedup_vs_one_gpu >= 6", "---", ""]
    bodies = _template_bodies() | {name: text for name, text in _bodies(item, option_ids).items() if text}
    for section in SECTIONS:
        rows += [f"# {section}", "", bodies[section], ""]
    return "\n".join(rows)


def _cause(option: ItemOption, cause_id: str, scenario: str) -> list[str]:
    return [
        f"  # {_comment(option.text)}", f"  - id: {cause_id}", f'    title: "{TO_DO} this cause in a few words"',
        f"    scenario: {scenario}  # {TO_DO} the experiment that proves or disproves it",
        f"    matches_question: {str(option.right).lower()}", f"    draws: {_DRAWS[scenario]}",
        f'    shows: "{TO_DO} one or two sentences on what its run shows"',
    ]


def _bodies(item: Item, option_ids: list[str]) -> dict[str, str]:
    """The sections that the item fills; an empty one is left to the template."""
    words = markdown.prose(item.why).words
    fits = WHY_WORDS[0] <= words <= WHY_WORDS[1]
    why = item.why if fits or not words else f"{item.why}\n\n{TO_DO} {WHY_WORDS[0]} to {WHY_WORDS[1]} words; these are {words}"
    missing = {right: f"{TO_DO} why this is {'right' if right else 'wrong'}, and what its run shows" for right in (True, False)}
    rebuttals = [
        f"## {option_id}\n\n{option.rebuttal or missing[option.right]}" for option, option_id in zip(item.options, option_ids, strict=True)
    ]
    return {
        "Symptom": item.symptom, "Why": why, "In the exam": item.exam_box, "On call": item.on_call_box, "Rebuttals": "\n\n".join(rebuttals),
    }


def _template_bodies() -> dict[str, str]:
    front = read_front_matter((TEMPLATE / LESSON_FILE).read_text(encoding="utf-8"))
    return {section.title: section.body.strip() for section in markdown.sections(front.body, front.body_line)}


def _ids(item: Item, slug: str) -> tuple[list[str], list[str]]:
    """Ids of options and causes that tell nothing: the right answer often stands first in files of other programs.

    Options keep theirs where all can be kept.
    """
    draw = random.Random(slug)
    count = len(item.options)
    new = [f"{letter}{draw.randint(1, 9)}" for letter in draw.sample(string.ascii_lowercase, 2 * count)]
    ids = [option.id for option in item.options]
    kept = len(set(ids)) == len(ids) and all(SLUG.fullmatch(option_id) for option_id in ids)
    return (ids if kept else new[:count]), new[count:]


def _quoted(text: str) -> str:
    """A text as YAML: every JSON string is one."""
    return json.dumps(" ".join(text.split()), ensure_ascii=False)


def _comment(text: str) -> str:
    return " ".join(text.split())[:160]
