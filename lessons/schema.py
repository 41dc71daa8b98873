"""What a teacher writes into the front matter of lesson.md, checked field by field.

Owns names, limits and the rules between fields. The frozen shapes that the program uses are in `lessons.model`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from lessons.claim_fields import check_fields, summary_fields
from lessons.evidence_columns import COLUMNS, DEFAULT
from lessons.front_matter import PlacedError
from lessons.model import Silhouette
from scenarios.catalog import SCENARIOS, Metric
from scenarios.config import RunConfig

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
SafeId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")]

SECTIONS = ("Symptom", "Why", "Full story", "Rebuttals", "In the exam", "On call", "On your own job", "What to try", "Sources")
"""The level-1 headings of lesson.md, each exactly once."""

WHY_WORDS = (60, 90)
"""The short explanation is read beside the lanes: long enough to explain, short enough to be read."""


WORDING_WORDS = (40, 90)
"""Another telling of the symptom: as long as a symptom, and read in one go."""
FEWEST_WORDINGS = 2
MOST_COLUMNS = 7
"""Of an evidence table, so that it is read at a glance."""

EXAM_DOMAINS = (
    "Distributed training", "Performance analysis", "Data loading", "Memory", "Communication", "Fault finding", "Optimization",
)
"""The domains under which certifications ask about multi-GPU training, in our words. A lesson may name others."""

OWN_EXPERIMENTS = "experiments"
"""Key of the validation context: names of the lesson's own experiments. Whether one is well formed is told where it stands."""


def _experiment_name(name: str) -> str:
    if name in SCENARIOS:
        raise ValueError("an experiment of the catalog has this name; choose another one")
    if name in summary_fields():
        raise ValueError("a figure of every run has this name; choose another one")
    return name


def _experiment(value: Any) -> RunConfig:
    if not isinstance(value, Mapping) or "scenario" not in value:
        raise ValueError("an experiment is {scenario: NAME, knob: value, ...}")
    allowed = [name for name in RunConfig.model_fields if name != "backend"]
    unknown = [str(name) for name in value if name not in allowed]
    if unknown:
        raise ValueError(f"{', '.join(unknown)}: no such knob; there are {', '.join(allowed)}")
    return RunConfig.parse(dict(value))


def _named_experiment(name: str, info: ValidationInfo) -> str:
    own = (info.context or {}).get(OWN_EXPERIMENTS, ())
    if name not in SCENARIOS and name not in own:
        there_are = ", ".join([*SCENARIOS, *own])
        raise ValueError(f"there is no such experiment; there are {there_are}")
    return name


def _claim(expression: str, info: ValidationInfo) -> str:
    check_fields(expression, [*SCENARIOS, *(info.context or {}).get(OWN_EXPERIMENTS, ())])
    return expression


def _condition(expression: str) -> str:
    check_fields(expression, ())  # judged on one run alone
    return expression


ExperimentName = Annotated[str, AfterValidator(_named_experiment)]
"""A scenario of the catalog with its defaults, or one of the lesson's own experiments."""
OwnName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$"), AfterValidator(_experiment_name)]
Experiment = Annotated[RunConfig, PlainValidator(_experiment)]
Expression = Annotated[str, AfterValidator(_claim)]
Condition = Annotated[str, AfterValidator(_condition)]


def _column(name: str) -> str:
    if name not in COLUMNS:
        raise ValueError(f"there is no such column; there are {', '.join(COLUMNS)}")
    return name


ColumnName = Annotated[str, AfterValidator(_column)]


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
    scenario: ExperimentName
    matches_question: bool
    draws: Silhouette
    shows: Text
    note: str = ""
    opens_on: Metric | None = None
    odd_gpu: Annotated[int, Field(ge=0, le=7)] | None = None


class ConditionMatter(_Strict):
    """One feature of the symptom."""

    that: Condition
    otherwise: Text


class RacerMatter(_Strict):
    """One lane of the race."""

    scenario: ExperimentName
    label: Text


class LessonMatter(_Strict):
    """The front matter of one lesson."""

    title: Text
    level: Literal["intro", "core", "advanced"]
    minutes: Annotated[int, Field(ge=1, le=60)]
    topic: Text
    exam_domains: list[Text]
    still: Silhouette
    question: Text
    wordings: Annotated[list[Text], Field(min_length=FEWEST_WORDINGS)]
    options: Annotated[list[OptionMatter], Field(min_length=2, max_length=6)]
    experiments: dict[OwnName, Experiment] = {}
    causes: Annotated[list[CauseMatter], Field(min_length=1)]
    symptom_when: Annotated[list[ConditionMatter], Field(min_length=1)]
    evidence: Annotated[list[ColumnName], Field(min_length=1, max_length=MOST_COLUMNS)] = list(DEFAULT)
    fix: ExperimentName
    race: list[RacerMatter] = []
    terms: list[SafeId] = []
    claims: Annotated[list[dict[ExperimentName, Expression]], Field(min_length=1)]

    @field_validator("title")
    @classmethod
    def _neutral_title(cls, title: str, info: ValidationInfo) -> str:
        own = (info.context or {}).get(OWN_EXPERIMENTS, ())
        secret = [*SCENARIOS, *(scenario.title for scenario in SCENARIOS.values()), *own]
        if any(_spaced(name) in _spaced(title) for name in secret):
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
        rights = [option for option in self.options if option.right]
        if len(rights) != 1:
            raise PlacedError(("options",), f"exactly one option has `right: true`; here {len(rights)} have")
        for kind, ids in (("option", [o.id for o in self.options]), ("cause", [c.id for c in self.causes])):
            twice = next((number for number, one in enumerate(ids) if one in ids[:number]), None)
            if twice is not None:
                raise PlacedError((f"{kind}s", twice, "id"), f"two {kind}s have the same id, {ids[twice]}")
        fixed = next((number for number, cause in enumerate(self.causes) if cause.id == "fix"), None)
        if fixed is not None:
            raise PlacedError(("causes", fixed, "id"), "no cause can have the id fix; it stands for the healthy script")
        used = [cause for option in self.options for cause in option.causes]
        known = [cause.id for cause in self.causes]
        if sorted(used) != sorted(known):
            odd = sorted(set(used) ^ set(known)) or sorted({cause for cause in used if used.count(cause) > 1})
            raise PlacedError(("options",), f"each cause belongs to exactly one option; look at {', '.join(odd)}")
        if self.race and self.fix not in [racer.scenario for racer in self.race]:
            raise PlacedError(("race",), f"the race needs the healthy script, {self.fix}, among its lanes")
        if not any(cause.matches_question for cause in self.causes if cause.id in rights[0].causes):
            raise PlacedError(("causes", known.index(rights[0].causes[0])), "one cause of the right option has `matches_question: true`")
        return self


def _spaced(text: str) -> str:
    """`text` as words between blanks, so that a short name is not found inside a longer word."""
    return f" {re.sub(r'[^a-z0-9]+', ' ', text.lower()).strip()} "


_LETTERS = re.compile(
    r"\b(?:options?|answers?|choices?)\s+\(?[A-F]\b|\([A-F]\)|\b[A-F]\s+(?:is|was)\s+(?:wrong|right|correct|incorrect|true|false)\b"
)


def speaks_of_letters(text: str) -> str | None:
    """The first words of `text` that name an option by its letter; None where there are none. Options are shuffled."""
    found = _LETTERS.search(text)
    return found.group() if found else None
