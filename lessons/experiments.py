"""The experiments of a lesson: which ones it shows, which one a run belongs to, and how one differs from another.

An experiment is a scenario of the catalog with knobs; `Lesson.config_of` makes a config of its name. Two of them may share a scenario, so
the scenario of a run does not say which cause it shows. Must not start runs or read records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lessons.claim_language import roots
from lessons.model import Lesson
from scenarios.catalog import SCENARIOS, Metric, Scenario
from scenarios.config import RunConfig
from scenarios.knob_words import LABELS, value_text

_FOLLOWS = {"straggler_pct": "straggler"}
"""A knob that says nothing while another one is not set."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """How an experiment is presented, once it may be named."""

    name: str
    config: RunConfig
    """With its own knobs, without a learner's."""
    title: str
    what: str
    """What its code does, and with which knobs."""
    metric: Metric
    """The metric that shows its effect."""
    odd_rank: int | None
    """The lane to be set off."""

    @property
    def scenario(self) -> Scenario:
        return SCENARIOS[self.config.scenario]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A knob in which two experiments differ, for people."""

    label: str
    own: str
    other: str


def shown_experiments(lesson: Lesson) -> tuple[str, ...]:
    """Every experiment the lesson shows: those of its causes, the fix and the race, each once."""
    names = [*(cause.scenario for cause in lesson.causes), lesson.fix, *(racer.scenario for racer in lesson.race)]
    return tuple(dict.fromkeys(names))


def named_experiments(lesson: Lesson) -> tuple[str, ...]:
    """Every experiment that a lesson shows or speaks of in its claims, each once."""
    names = list(shown_experiments(lesson))
    for claim in lesson.claims:
        referred = [root for root in roots(claim.expression) if root in lesson.experiments or root in SCENARIOS]
        names += [claim.scenario, *referred]
    return tuple(dict.fromkeys(names))


def shown_as(lesson: Lesson, cause_id: str | None) -> Shown:
    """The experiment of a cause, or of the healthy script for an id that is no cause's."""
    cause = lesson.cause(cause_id) if cause_id else None
    name = cause.scenario if cause else lesson.fix
    config = lesson.config_of(name)
    scenario = SCENARIOS[config.scenario]
    knobs = own_knobs(config)
    odd_rank = scenario.odd_rank if config.straggler is None else config.straggler
    return Shown(
        name=name, config=config, title=scenario.title if cause is None else cause.title,
        what=f"{scenario.what} {knobs}." if knobs else scenario.what,
        metric=cause.opens_on if cause and cause.opens_on else scenario.opening_metric,
        odd_rank=odd_rank if cause is None or cause.odd_gpu is None else cause.odd_gpu,
    )


def own_knobs(config: RunConfig) -> str:
    """What a config changes about its scenario, in words; empty for the scenario at its defaults."""
    changed = differences(config, RunConfig.parse({"scenario": config.scenario}))
    return "; ".join(f"{difference.label}: {difference.own}" for difference in changed)


def in_words(config: RunConfig) -> str:
    """A config for whoever reads a log: the scenario and what is changed about it."""
    knobs = own_knobs(config)
    return f"{config.scenario} ({knobs})" if knobs else config.scenario


def cause_of(lesson: Lesson, config: RunConfig, preferred: str | None = None) -> str | None:
    """Id of the cause that a run of `config` shows, whatever other knobs a learner has turned; None for the healthy script.

    Of several experiments of one scenario it is the one with the most knobs that the run shares. Where one experiment serves several
    causes, or a cause and the healthy script, it is what is `preferred` of them: a cause, or None for the healthy script.
    """
    found: list[tuple[int, bool, str | None]] = []
    for cause_id, name in (*((cause.id, cause.scenario) for cause in lesson.causes), (None, lesson.fix)):
        own = lesson.config_of(name)
        if own.scenario == config.scenario:
            found.append((_shared(own, config), cause_id == preferred, cause_id))
    return max(found, key=lambda one: one[:2])[2] if found else None


def _shared(own: RunConfig, config: RunConfig) -> int:
    """How many of an experiment's own knobs `config` has; -1 where it lacks one."""
    plain = RunConfig.parse({"scenario": own.scenario}).model_dump()
    knobs = {name: value for name, value in own.model_dump().items() if value != plain[name]}
    given = config.model_dump()
    if own.straggler is not None:  # with fewer GPUs the last of them is the slow one
        knobs["straggler"] = min(own.straggler, config.gpus - 1)
    return len(knobs) if all(given[name] == value for name, value in knobs.items()) else -1


def differences(own: RunConfig, other: RunConfig, *, without: Sequence[str] = ("scenario", "backend")) -> tuple[Difference, ...]:
    """The knobs in which two configs differ, in the order of the config."""
    left, right = own.model_dump(), other.model_dump()
    found = []
    for name in left:
        leader = _FOLLOWS.get(name)
        if name in without or left[name] == right[name] or (leader and left[leader] is None and right[leader] is None):
            continue
        found.append(Difference(label=LABELS.get(name, name), own=_text(name, left[name]), other=_text(name, right[name])))
    return tuple(found)


def _text(name: str, value: Any) -> str:
    return "none" if value is None else value_text(name, value)
