"""From answers to ranked causes, with what speaks for and against each.

The model is small and said in full. How often a cause is met, and how often it shows an answer, are words in symptoms.yaml; each word is
one number here. An answer that a cause does not name is `rarely`; a question that it does not name is no evidence either way. The numbers
of a question are scaled to add up to 1, and those of all answers are multiplied (naive Bayes: answers are taken to be independent given
the cause, which they are not quite, so shares are shown as words and not as percentages). Owns that arithmetic. Must not know about pages
or runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lessons.symptoms.content import How, Question, SymptomCause, Symptoms, Usual

Answers = Mapping[str, str]
"""Question id -> answer id; what is not known is left out."""

Side = Literal["fits", "against", "open"]
Likely = Literal["most likely", "likely", "possible", "unlikely"]

HOW: dict[How, float] = {"always": 0.95, "mostly": 0.7, "sometimes": 0.25, "rarely": 0.05, "never": 0.01}
USUAL: dict[Usual, float] = {"common": 3.0, "occasional": 2.0, "rare": 1.0}
UNNAMED: How = "rarely"

FITS, AGAINST = 1.3, 0.5
"""From how many times what an open question would give an answer speaks for a cause, and below how many against it."""
CONFLICT = 0.25
"""Answers contradict each other where the best cause has one that it shows less often than this against an open question."""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """What one answer says about one cause."""

    question: str
    asked: str
    answer: str
    """In words."""
    side: Side
    because: str
    """What the cause does to this figure; empty where it does nothing."""
    expected: tuple[str, ...]
    """The answers, in words, that the cause usually shows."""


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """One cause with its place."""

    cause: SymptomCause
    share: float
    """Of all causes together, 0..1; before any answer, how often it is met."""
    likely: Likely
    reasons: tuple[Reason, ...]

    @property
    def fits(self) -> int:
        return sum(reason.side == "fits" for reason in self.reasons)

    @property
    def against(self) -> int:
        return sum(reason.side == "against" for reason in self.reasons)


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """No single cause shows all these answers."""

    question: Question
    """The one to look at again: without it, the others fit a cause best."""
    without: SymptomCause
    """And this is the cause."""


def likelihood(cause: SymptomCause, question: Question, answer: str) -> float:
    """How often jobs with this cause show this answer."""
    evidence = cause.evidence.get(question.id)
    if evidence is None:
        return 1.0 / len(question.answers)
    numbers = {name: HOW[evidence.shows.get(name, UNNAMED)] for name in question.answers}
    return numbers[answer] / sum(numbers.values())


def rank(symptoms: Symptoms, answers: Answers) -> tuple[Ranked, ...]:
    """All causes, the likeliest first. Raises ValueError for an answer that is none."""
    asked = [(_question(symptoms, name), answer) for name, answer in answers.items()]
    for question, answer in asked:
        if answer not in question.answers:
            raise ValueError(f"{question.id}={answer[:40]!r}: must be one of {', '.join(question.answers)}")
    weights = {cause.id: _weight(cause, asked) for cause in symptoms.causes}
    total = sum(weights.values())
    ranked = [
        Ranked(
            cause=cause, share=weights[cause.id] / total, likely=_likely(weights[cause.id] / total, max(weights.values()) / total),
            reasons=tuple(_reason(cause, question, answer) for question, answer in asked),
        )
        for cause in symptoms.causes
    ]
    return tuple(sorted(ranked, key=lambda one: -one.share))


def conflict(symptoms: Symptoms, answers: Answers) -> Conflict | None:
    """Whether these answers contradict each other, and which of them to look at again."""
    if len(answers) < 2:
        return None
    best = rank(symptoms, answers)[0]
    if all(_ratio(best.cause, _question(symptoms, name), answer) > CONFLICT for name, answer in answers.items()):
        return None
    left_out = {name: {other: answer for other, answer in answers.items() if other != name} for name in answers}
    found = max(answers, key=lambda name: _fit(symptoms, left_out[name]))
    return Conflict(question=_question(symptoms, found), without=rank(symptoms, left_out[found])[0].cause)


def tells_most(symptoms: Symptoms, answers: Answers) -> Question | None:
    """The open question whose answer is expected to narrow the causes most; None where it would hardly change anything."""
    before = {one.cause.id: one.share for one in rank(symptoms, answers)}
    gains = {question.id: _gain(symptoms, before, question) for question in symptoms.questions if question.id not in answers}
    found = max(gains, key=lambda name: gains[name], default=None)
    return None if found is None or gains[found] < 0.1 else _question(symptoms, found)


def _question(symptoms: Symptoms, name: str) -> Question:
    question = symptoms.question(name)
    if question is None:
        raise ValueError(f"{name[:40]!r}: is no question; there are {', '.join(one.id for one in symptoms.questions)}")
    return question


def _weight(cause: SymptomCause, asked: list[tuple[Question, str]]) -> float:
    return USUAL[cause.usual] * math.prod(likelihood(cause, question, answer) for question, answer in asked)


def _ratio(cause: SymptomCause, question: Question, answer: str) -> float:
    """Against a cause about which the question says nothing."""
    return likelihood(cause, question, answer) * len(question.answers)


def _fit(symptoms: Symptoms, answers: Answers) -> float:
    """How well the best cause fits, each answer counted against an open question: comparable between sets of answers of one size."""
    asked = [(_question(symptoms, name), answer) for name, answer in answers.items()]
    return max(math.prod(_ratio(cause, question, answer) for question, answer in asked) for cause in symptoms.causes)


def _reason(cause: SymptomCause, question: Question, answer: str) -> Reason:
    ratio = _ratio(cause, question, answer)
    evidence = cause.evidence.get(question.id)
    shows = evidence.shows if evidence else {}
    usual = sorted((name for name, how in shows.items() if how in ("always", "mostly", "sometimes")), key=lambda name: -HOW[shows[name]])
    return Reason(
        question=question.id, asked=question.ask, answer=question.answers[answer],
        side="open" if evidence is None or AGAINST <= ratio <= FITS else "fits" if ratio > FITS else "against",
        because=evidence.because if evidence else "", expected=tuple(question.answers[name] for name in usual),
    )


def _likely(share: float, best: float) -> Likely:
    if share == best and share >= 0.4:
        return "most likely"
    return "likely" if share >= 0.15 else "possible" if share >= 0.03 else "unlikely"


def _gain(symptoms: Symptoms, before: Mapping[str, float], question: Question) -> float:
    """Expected bits by which the answer narrows the causes."""
    left = 0.0
    for answer in question.answers:
        joint = [before[cause.id] * likelihood(cause, question, answer) for cause in symptoms.causes]
        chance = sum(joint)
        left += chance * _bits([each / chance for each in joint]) if chance else 0.0
    return _bits(list(before.values())) - left


def _bits(shares: list[float]) -> float:
    return -sum(share * math.log2(share) for share in shares if share > 0)
