"""What a teacher writes into the front matter of lesson.md, checked field by field.

Owns names, limits and the rules between fields. The frozen shapes that the program uses are in `lessons.model`.
"""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from lessons.claims import parse_claim
from lessons.model import Silhouette
from scenarios.catalog import SCENARIOS

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
SafeId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")]

SECTIONS = ("Symptom", "Why", "Full story", "Rebuttals", "In the exam", "On call", "On your own job", "What to try", "Sources")
"""The level-1 headings of lesson.md, each exactly once."""

WHY_WORDS = (60, 90)
"""The short explanation is read beside the lanes: long enough to explain, short enough to be read."""


def _scenario(name: str) -> str:
    if name not in SCENARIOS:
        raise ValueError(f"there is no such experiment; there are {', '.join(SCENARIOS)}")
    return name


def _claim(expression: str) -> str:
    parse_claim(expression)  # raises ValueError with the place of the fault
    return expression


ScenarioName = Annotated[str, AfterValidator(_scenario)]
Expression = Annotated[str, AfterValidator(_claim)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class OptionMatter(_Strict):
    """One answer; its rebuttal stands under `# Rebuttals` / `## <id>`."""

    id: SafeId
    text: Text
    right: bool = False
    causes: Annotated[list[SafeId], Field(min_length=1)]


class CauseMatter(_Strict):
    """One cause with its experiment."""

    id: SafeId
    title: Text
    scenario: ScenarioName
    matches_question: bool
    draws: Silhouette
    shows: Text
    note: str = ""


class ConditionMatter(_Strict):
    """One feature of the symptom."""

    that: Expression
    otherwise: Text


class RacerMatter(_Strict):
    """One lane of the race."""

    scenario: ScenarioName
    label: Text


class LessonMatter(_Strict):
    """The front matter of one lesson."""

    title: Text
    level: Text
    minutes: Annotated[int, Field(ge=1, le=60)]
    topic: Text
    exam_domains: list[Text]
    still: Silhouette
    question: Text
    options: Annotated[list[OptionMatter], Field(min_length=2, max_length=6)]
    causes: Annotated[list[CauseMatter], Field(min_length=1)]
    symptom_when: Annotated[list[ConditionMatter], Field(min_length=1)]
    fix: ScenarioName
    race: list[RacerMatter] = []
    terms: list[SafeId] = []
    claims: Annotated[list[dict[ScenarioName, Expression]], Field(min_length=1)]

    @field_validator("title")
    @classmethod
    def _neutral_title(cls, title: str) -> str:
        told = [name for name, scenario in SCENARIOS.items() if name in title.lower() or scenario.title.lower() in title.lower()]
        if told:
            raise ValueError("the title gives the answer away: it names an experiment")
        return title

    @field_validator("claims")
    @classmethod
    def _one_claim_each(cls, claims: list[dict[str, str]]) -> list[dict[str, str]]:
        if any(len(claim) != 1 for claim in claims):
            raise ValueError("each claim is one `experiment: statement`")
        return claims

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if sum(option.right for option in self.options) != 1:
            raise ValueError("exactly one option has `right: true`")
        for kind, ids in (("option", [o.id for o in self.options]), ("cause", [c.id for c in self.causes])):
            if len(set(ids)) != len(ids):
                raise ValueError(f"two {kind}s have the same id; ids: {', '.join(ids)}")
        used = [cause for option in self.options for cause in option.causes]
        known = [cause.id for cause in self.causes]
        if sorted(used) != sorted(known):
            odd = sorted(set(used) ^ set(known)) or sorted({cause for cause in used if used.count(cause) > 1})
            raise ValueError(f"each cause belongs to exactly one option; look at {', '.join(odd)}")
        return self


_LETTERS = re.compile(
    r"\b(?:options?|answers?|choices?)\s+\(?[A-F]\b|\([A-F]\)|\b[A-F]\s+(?:is|was)\s+(?:wrong|right|correct|incorrect|true|false)\b"
)


def speaks_of_letters(text: str) -> str | None:
    """The first words of `text` that name an option by its letter; None where there are none. Options are shuffled."""
    found = _LETTERS.search(text)
    return found.group() if found else None
