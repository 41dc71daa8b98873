"""What two readers of foreign files share: faults with file, line and question, and the checks that every question has to pass.

Owns what a question must have to become a lesson. Must not know any file format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lessons.exchange.item import OPTIONS, Item, ItemOption, Refusal
from lessons.exchange.texts import split_feedback, split_question

MOST_QUESTIONS = 500
LONGEST_TEXT = 100_000
"""Characters of one text of a question."""


@dataclass(kw_only=True)
class Gathered:
    """What was found in a file."""

    file: str
    items: list[Item] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    left_out: list[Refusal] = field(default_factory=list)
    """Questions of a kind that a lesson is not; refusals too, unless they are to be left out."""

    def refuse(self, line: int, question: str, message: str) -> None:
        self.refusals.append(Refusal(file=self.file, line=line, question=question, message=message))

    def other_kind(self, line: int, question: str, message: str) -> None:
        self.left_out.append(Refusal(file=self.file, line=line, question=question, message=message))


@dataclass(frozen=True, kw_only=True)
class FoundOption:
    id: str
    text: str
    percent: float
    """Share of the marks that it gives."""
    feedback: str
    line: int


def unlike_a_lesson(options: Sequence[FoundOption]) -> str | None:
    """Why these options are no question with one right answer; None where they are."""
    right = [option for option in options if option.percent >= 100]
    partly = [option for option in options if 0 < option.percent < 100]
    if partly:
        return f"{len(partly)} options give part of the marks; a lesson has exactly one right option and no half right ones"
    if len(right) != 1:
        return f"{len(right)} options are right; a lesson has exactly one"
    return None


def faults_of(title: str, stem: str, options: Sequence[FoundOption]) -> list[tuple[int, str]]:
    """(line, message) of everything that keeps a question of the right kind from becoming a lesson; line 0 is the question's own."""
    faults = []
    if not stem.strip():
        faults.append((0, "the question text is empty"))
    if not OPTIONS[0] <= len(options) <= OPTIONS[1]:
        faults.append((0, f"has {len(options)} options; a lesson has {OPTIONS[0]} to {OPTIONS[1]}"))
    faults += [(option.line, "an option has no text") for option in options if not option.text.strip()]
    texts = [" ".join(option.text.split()) for option in options if option.text.strip()]
    faults += [(0, f"two options have the same text {text[:40]!r}") for text in dict.fromkeys(texts) if texts.count(text) > 1]
    if any(len(text) > LONGEST_TEXT for text in (title, stem, *texts, *(option.feedback for option in options))):
        faults.append((0, f"a text has more than {LONGEST_TEXT} characters"))
    return faults


def item_from(
    *, item_id: str, title: str, stem: str, options: Sequence[FoundOption], feedback: str, tags: Sequence[str], line: int
) -> Item:
    """A question without faults, its texts in the places a lesson has for them."""
    symptom, question = split_question(stem)
    why, boxes = split_feedback(feedback)
    return Item(
        id=item_id, title=title, symptom=symptom, question=question, why=why, exam_box=boxes.get("In the exam", ""),
        on_call_box=boxes.get("On call", ""), tags=tuple(dict.fromkeys(tag for tag in tags if tag)), line=line,
        options=tuple(ItemOption(id=each.id, text=each.text, right=each.percent >= 100, rebuttal=each.feedback) for each in options),
    )
