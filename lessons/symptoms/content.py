"""What the symptom finder knows, read from content/symptoms.yaml: questions, causes, and how often each cause shows which answer, with why.

    questions:                        causes:
      busy:                             rank0_loading:
        ask: Which GPUs are busy?         title: All data goes through GPU 0
        look: nvidia-smi, GPU-Util        experiment: {scenario: rank0_loading}
        answers: {only0: Only GPU 0}      evidence:
                                            busy: {shows: {only0: mostly}, because: GPU 0 decodes for all eight.}

Owns reading and checking it. Must not rank anything or know about runs beyond their configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from lessons.front_matter import read_yaml_file, validate
from lessons.markdown import has_raw_html
from lessons.model import Fault
from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig

SYMPTOMS_FILE = "symptoms.yaml"

How = Literal["always", "mostly", "sometimes", "rarely", "never"]
"""How often jobs with a cause show an answer."""
Usual = Literal["common", "occasional", "rare"]
"""How often a cause is met at all."""

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]


def _without_html(text: str) -> str:
    if has_raw_html(text) is not None:
        raise ValueError("raw HTML is not rendered; write Markdown")
    return text


def _runnable(knobs: dict[str, Any]) -> dict[str, Any]:
    RunConfig.parse(knobs)  # raises ValueError naming the knob
    return knobs


Knobs = Annotated[dict[str, Any], AfterValidator(_runnable)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Words = Annotated[Text, Field(max_length=400), AfterValidator(_without_html)]
Line = Annotated[Text, Field(max_length=160)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class QuestionMatter(_Strict):
    ask: Line
    look: Line
    answers: Annotated[dict[Name, Line], Field(min_length=2, max_length=6)]


class EvidenceMatter(_Strict):
    shows: Annotated[dict[Name, How], Field(min_length=1)]
    because: Words


class CommandMatter(_Strict):
    language: Literal["sh", "py"] = "sh"
    command: Text
    healthy: Text
    ill: Text


class CauseMatter(_Strict):
    title: Line
    telltale: Line
    usual: Usual
    experiment: Knobs | None = None
    healthy: Knobs = Field(default_factory=lambda: {"scenario": "sharded"})
    no_experiment: Line | None = None
    evidence: Annotated[dict[Name, EvidenceMatter], Field(min_length=1)]
    confirm: Words
    command: CommandMatter
    fix: Words

    @model_validator(mode="after")
    def _shown_or_said(self) -> Self:
        if (self.experiment is None) == (self.no_experiment is None):
            raise ValueError("give either an experiment, or the reason why there is none (no_experiment)")
        return self


class SymptomsMatter(_Strict):
    questions: Annotated[dict[Name, QuestionMatter], Field(min_length=2)]
    causes: Annotated[dict[Name, CauseMatter], Field(min_length=2)]


@dataclass(frozen=True, kw_only=True)
class Question:
    """One thing that somebody with a problem may have seen."""

    id: str
    ask: str
    look: str
    """Where to see it."""
    answers: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """How often a cause shows which answer to one question; an answer that is not named is rare."""

    shows: Mapping[str, How]
    because: str


@dataclass(frozen=True, kw_only=True)
class Command:
    """What confirms a cause on one's own cluster."""

    language: Literal["sh", "py"]
    command: str
    healthy: str
    ill: str


@dataclass(frozen=True, kw_only=True)
class SymptomCause:
    """One thing that may be wrong in a job."""

    id: str
    title: str
    telltale: str
    """One line for the printed page."""
    usual: Usual
    experiment: RunConfig | None
    """The run that shows it."""
    healthy: RunConfig
    """The same without the mistake."""
    no_experiment: str
    """Why no run shows it; empty where one does."""
    evidence: Mapping[str, Evidence]
    """By question; a question that is not there is no evidence about this cause."""
    confirm: str
    command: Command
    fix: str


@dataclass(frozen=True, kw_only=True)
class Symptoms:
    """Everything the finder knows."""

    questions: tuple[Question, ...]
    causes: tuple[SymptomCause, ...]

    def question(self, question_id: str) -> Question | None:
        """The question with this id; None for an unknown one."""
        return next((question for question in self.questions if question.id == question_id), None)

    def cause(self, cause_id: str) -> SymptomCause | None:
        """The cause with this id; None for an unknown one."""
        return next((cause for cause in self.causes if cause.id == cause_id), None)


def load_symptoms(root: Path) -> tuple[Symptoms | None, list[Fault]]:
    """What `root`/symptoms.yaml says, or None and every fault with its line; None without a fault where there is no such file."""
    front, faults = read_yaml_file(root / SYMPTOMS_FILE)
    if front is None:
        return None, faults
    matter, found = validate(SymptomsMatter, front)
    faults += [Fault(file=SYMPTOMS_FILE, line=line, message=message) for line, message in found]
    if matter is None:
        return None, faults
    for cause_id, cause in matter.causes.items():
        for question_id, evidence in cause.evidence.items():
            question = matter.questions.get(question_id)
            known = question.answers if question else {}
            unknown = [answer for answer in evidence.shows if answer not in known]
            if question is None or unknown:
                what = f"is no answer to {question_id}; answers are {', '.join(known)}" if question else (
                    f"is no question; questions are {', '.join(matter.questions)}"
                )
                line = front.line_of(("causes", cause_id, "evidence", question_id))
                wrong = unknown[0] if question else question_id
                faults.append(Fault(file=SYMPTOMS_FILE, line=line, message=f"{cause_id}: {wrong!r} {what}"))
    return (None, faults) if faults else (_assembled(matter), [])


def _assembled(matter: SymptomsMatter) -> Symptoms:
    return Symptoms(
        questions=tuple(Question(id=name, **question.model_dump()) for name, question in matter.questions.items()),
        causes=tuple(_cause(name, cause) for name, cause in matter.causes.items()),
    )


def _cause(name: str, cause: CauseMatter) -> SymptomCause:
    return SymptomCause(
        id=name, title=cause.title, telltale=cause.telltale, usual=cause.usual, confirm=cause.confirm, fix=cause.fix,
        experiment=None if cause.experiment is None else RunConfig.parse(cause.experiment), healthy=RunConfig.parse(cause.healthy),
        no_experiment=cause.no_experiment or "", command=Command(**cause.command.model_dump()),
        evidence={question: Evidence(**evidence.model_dump()) for question, evidence in cause.evidence.items()},
    )


def scenarios_shown(symptoms: Symptoms) -> set[str]:
    """The experiments of the catalog that some cause is shown by."""
    return {cause.experiment.scenario for cause in symptoms.causes if cause.experiment is not None} & set(SCENARIOS)


_known: dict[Path, tuple[tuple[int, int], Symptoms]] = {}


def symptoms_at(root: Path) -> Symptoms | None:
    """What `root`/symptoms.yaml says; the file is read again only when it has changed. None where it is missing or has a fault."""
    try:
        status = (root / SYMPTOMS_FILE).stat()
    except OSError:
        return None
    stamp = (status.st_mtime_ns, status.st_size)
    if root not in _known or _known[root][0] != stamp:
        found, _ = load_symptoms(root)
        if found is None:
            return None
        _known[root] = (stamp, found)
    return _known[root][1]
