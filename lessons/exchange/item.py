"""A question as it travels between Shardlab and other programs: the part of a lesson that they know as well.

Owns the shape, what a lesson gives into it, and the cleaning of texts that come from outside. All texts are Markdown. Must not know any
file format.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lessons.markdown import prose
from lessons.model import Lesson

OPTIONS = (2, 6)
"""How many options a lesson may have."""

_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture that came with a question and that no lesson can show as it is."""

    name: str
    data: bytes


@dataclass(frozen=True, kw_only=True)
class ItemOption:
    id: str
    """Empty where the file has none."""
    text: str
    right: bool
    rebuttal: str


@dataclass(frozen=True, kw_only=True)
class Item:
    """One question with the feedback of each option."""

    id: str
    """The lesson's id, or what the other program calls it; may be empty."""
    title: str
    symptom: str
    question: str
    options: tuple[ItemOption, ...]
    why: str
    exam_box: str = ""
    on_call_box: str = ""
    tags: tuple[str, ...] = ()
    infographic: str = ""
    """SVG that was read strictly (`lessons.svg`)."""
    infographic_alt: str = ""
    pictures: tuple[Picture, ...] = ()
    line: int = 1
    """Where it begins in its file."""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why a file, or one question of it, cannot become a lesson."""

    file: str
    line: int
    question: str
    """Its title; empty where the fault is the file's."""
    message: str

    def __str__(self) -> str:
        about = f"question {self.question[:60]!r}: " if self.question else ""
        return f"{self.file}:{self.line}: {about}{self.message}"


def item_of(lesson: Lesson) -> Item:
    """What of a lesson other programs can take: no experiments, no claims."""
    return Item(
        id=lesson.id, title=lesson.title, symptom=lesson.symptom.markdown, question=lesson.question,
        options=tuple(
            ItemOption(id=option.id, text=option.text, right=option.right, rebuttal=option.rebuttal.markdown) for option in lesson.options
        ),
        why=lesson.why.markdown, exam_box=lesson.exam_box.markdown, on_call_box=lesson.on_call_box.markdown, tags=lesson.exam_domains,
        infographic=lesson.infographic, infographic_alt=lesson.infographic_alt,
    )


def clean(text: str) -> str:
    """`text` without the characters that neither XML nor YAML can hold, and with one kind of line end."""
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", ""))


def html_of(markdown: str) -> str:
    """A text of an item as safe HTML."""
    return prose(clean(markdown)).html


def html_of_line(markdown: str) -> str:
    """One line of Markdown as HTML without a paragraph around it."""
    return re.sub(r"\A<p>(.*)</p>\Z", r"\1", html_of(" ".join(markdown.split())), flags=re.DOTALL)
