"""The shapes of a lesson, frozen: what the loader hands to pages, grading and evidence.

Owns shapes and look-ups. Must not read files, grade or know about runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from scenarios.catalog import Metric
from scenarios.config import RunConfig

Silhouette = Literal["only0", "all_high", "all_low", "all_crash", "low0"]
"""The five pictures among which a learner predicts: which GPUs are busy."""

SILHOUETTES: dict[Silhouette, str] = {
    "only0": "only GPU 0 high",
    "all_high": "all eight high",
    "all_low": "all eight low",
    "all_crash": "all crash",
    "low0": "GPU 0 low, the rest high",
}


FaultKind = Literal["fault", "to do", "advice"]
KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
"""fault: the lesson cannot be shown. to do: it is unfinished. advice: it can be shown, and would be better otherwise."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something a teacher has to mend, with the place where it is."""

    file: str
    """Relative to the folder of the lessons."""
    line: int
    """From 1."""
    message: str
    kind: FaultKind = "fault"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"

    @property
    def text(self) -> str:
        """The message, with what it is where it is no fault."""
        return self.message if self.kind == "fault" else f"{self.kind}: {self.message}"


@dataclass(frozen=True, kw_only=True)
class Prose:
    """A text of a lesson: its Markdown, and the same as sanitised HTML without raw HTML in it."""

    markdown: str
    html: str
    words: int

    def __str__(self) -> str:
        return self.markdown


@dataclass(frozen=True, kw_only=True)
class Option:
    """One answer of a question. Its id is opaque: it says nothing about letter or rightness."""

    id: str
    text: str
    right: bool
    rebuttal: Prose
    """Why it is wrong, or, for the right one, why it is right. Never speaks of letters: options are shuffled."""
    causes: tuple[str, ...]
    """Ids of the causes it stands for; the first is the one whose run proves or disproves it."""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One thing that may be wrong in a job, with the experiment that shows what it looks like."""

    id: str
    """Opaque and safe for URLs."""
    title: str
    """Shown only once an answer is locked in."""
    scenario: str
    """Name of its experiment: one of the lesson's own, or of the catalog. `Lesson.config_of` knows both."""
    matches_question: bool
    """What the lesson claims. `lessons.evidence` judges from figures; `check --run` compares the two."""
    draws: Silhouette
    """The picture that its run draws; `check --run` compares it with the figures."""
    shows: str
    """One sentence: what its run shows."""
    note: str
    """What to watch out for when reading its run; may be empty."""
    opens_on: Metric | None = None
    """The metric that shows its effect; None: as the scenario says."""
    odd_gpu: int | None = None
    """The lane that is set off; None: as the experiment says."""
    line: int | None = None
    """Where it begins in lesson.md."""


@dataclass(frozen=True, kw_only=True)
class OwnJobCheck:
    """A command to copy into one's own job, with what it prints when all is well and when it is not."""

    title: str
    why: Prose
    language: Literal["sh", "py"]
    """Where the command goes: a shell, or the training script."""
    command: str
    healthy: str
    ill: str


@dataclass(frozen=True, kw_only=True)
class Source:
    title: str
    url: str
    says: str
    """What the lesson takes from it."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A machine-readable statement about the run of an experiment."""

    scenario: str
    expression: str
    line: int


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One feature of a symptom, checked on a run's summary."""

    that: str
    """An expression of `lessons.claims`."""
    otherwise: str
    """What to say of a run where it does not hold."""


@dataclass(frozen=True, kw_only=True)
class Racer:
    scenario: str
    label: str


@dataclass(frozen=True, kw_only=True)
class Term:
    """A glossary entry for a pop-over."""

    id: str
    name: str
    short: str
    """One or two sentences, plain text."""


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One question with its experiments and explanations. Everything but `id` ... `options[].text` is secret before lock-in."""

    id: str
    """The folder's name: neutral, safe for URLs."""
    title: str
    level: str
    minutes: int
    topic: str
    exam_domains: tuple[str, ...]
    still: Silhouette
    """The still picture of the symptom, shown with the question."""
    symptom: Prose
    wordings: tuple[Prose, ...]
    """Other tellings of the same symptom, for when the item comes back."""
    question: str
    options: tuple[Option, ...]
    causes: tuple[Cause, ...]
    symptom_when: tuple[Condition, ...]
    """The symptom as conditions on a run's summary; a run matches the question where all hold, tried in order."""
    evidence: tuple[str, ...]
    """Columns of the evidence table: names in `lessons.evidence_columns.COLUMNS`."""
    fix: str
    """Experiment of the healthy script."""
    race: tuple[Racer, ...]
    terms: tuple[Term, ...]
    why: Prose
    full_story: Prose
    exam_box: Prose
    on_call_box: Prose
    on_your_own_job: tuple[OwnJobCheck, ...]
    what_to_try: Prose
    sources: tuple[Source, ...]
    infographic: str
    """Sanitised SVG with title and desc, for embedding in a page."""
    infographic_alt: str
    claims: tuple[Claim, ...]
    folder: Path
    experiments: Mapping[str, RunConfig] = field(default_factory=dict)
    """The lesson's own: a scenario of the catalog with knobs, by a name that is as secret as a scenario's."""

    def config_of(self, name: str, knobs: Mapping[str, Any] | None = None) -> RunConfig:
        """What to run for an experiment of this lesson or of the catalog, with a learner's knobs on top of its own.

        Knobs without an effect are left out. Raises ValueError for an unknown name, or knobs that do not go together.
        """
        own = self.experiments.get(name)
        values = {**({"scenario": name} if own is None else own.model_dump()), **(knobs or {})}
        if own is not None and own.straggler is not None and "straggler" not in (knobs or {}):
            # On fewer GPUs the last one is the slow one: the experiment stays what it is.
            values["straggler"] = min(own.straggler, int(values["gpus"]) - 1)
        return RunConfig.applied(values)

    def option(self, option_id: str) -> Option | None:
        """The option with this id; None for an unknown one."""
        return next((option for option in self.options if option.id == option_id), None)

    def cause(self, cause_id: str) -> Cause | None:
        """The cause with this id; None for an unknown one."""
        return next((cause for cause in self.causes if cause.id == cause_id), None)

    def option_of(self, cause_id: str) -> Option | None:
        """The option that stands for this cause."""
        return next((option for option in self.options if cause_id in option.causes), None)

    @property
    def key(self) -> Option:
        """The right option; the schema makes sure that there is exactly one."""
        return next(option for option in self.options if option.right)


@dataclass(frozen=True, kw_only=True)
class CourseStage:
    """A part of the course: its name, and the ids of its lessons in order."""

    name: str
    lessons: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LessonSet:
    """All lessons that could be loaded, in the order of the course, and what is wrong with the others."""

    lessons: tuple[Lesson, ...]
    faults: tuple[Fault, ...]
    """Faults, and what is left to do in unfinished lessons."""
    stages: tuple[CourseStage, ...] = ()
    """The parts of the course, with those of their lessons that could be loaded. A lesson may belong to none."""
    advice: tuple[Fault, ...] = ()
    """What would make lessons better that can be shown as they are."""

    def get(self, lesson_id: str) -> Lesson | None:
        """The lesson with this id; None for an unknown one."""
        return next((lesson for lesson in self.lessons if lesson.id == lesson_id), None)

    def stage_of(self, lesson_id: str) -> str | None:
        """Name of the part of the course that a lesson belongs to; None where the course does not list it."""
        return next((stage.name for stage in self.stages if lesson_id in stage.lessons), None)


class NoLessonsError(ValueError):
    """Not one lesson could be loaded; the message holds every fault."""

    def __init__(self, faults: tuple[Fault, ...], root: Path) -> None:
        self.faults = faults
        lines = "\n".join(str(fault) for fault in faults)
        super().__init__(f"no lesson could be loaded from {root}" + (f":\n{lines}" if lines else ": it holds no lesson folder"))
