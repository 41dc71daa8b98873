"""Addresses of pages: reading the query string of a link, and building one.

Every value is checked by itself; a wrong one is left out with a readable fault while the others hold. A link names a cause by its opaque
id, never an experiment, so that it gives nothing away before lock-in. Owns the names of the parameters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from lessons.model import Lesson, LessonSet
from scenarios.config import RunConfig

LESSON, CAUSE, ATTEMPT, RUN = "lesson", "cause", "attempt", "run"
KNOBS = ("gpu", "gpus", "model", "batch", "precision", "seed", "hand_off", "preprocess")
PARAMETERS = (LESSON, CAUSE, ATTEMPT, RUN, *KNOBS)

_TOKEN = re.compile(r"^[A-Za-z0-9_-]{6,64}$")
_ANY_EXPERIMENT = "sharded"
"""Knobs are checked by themselves, and their limits do not depend on the experiment."""
LONGEST_SHOWN = 40


@dataclass(frozen=True, kw_only=True)
class LinkFault:
    """A parameter that was left out, and why."""

    parameter: str
    message: str
    """For people: names the parameter, its value and what is allowed."""

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, kw_only=True)
class DeepLink:
    """What a link asks for, as far as it is usable."""

    lesson: str | None = None
    cause: str | None = None
    attempt: str | None = None
    """Well formed; whether it exists is for the store to say."""
    run: str | None = None
    knobs: Mapping[str, str | int] = field(default_factory=dict)
    """Only those that were given and are allowed."""
    faults: tuple[LinkFault, ...] = ()

    def config(self, lesson: Lesson, cause_id: str | None = None) -> RunConfig:
        """The run of a cause (default: the link's) with the link's knobs.

        Raises ValueError for an unknown cause, or knobs that do not go together.
        """
        cause = lesson.cause(cause_id or self.cause or "")
        if cause is None:
            raise ValueError(f"cause={_shown(cause_id or self.cause or '')}: must be one of {', '.join(c.id for c in lesson.causes)}")
        return self.config_of(cause.scenario)

    def config_of(self, scenario: str) -> RunConfig:
        """An experiment, such as the fix, with the link's knobs. Raises ValueError as `RunConfig.parse` does."""
        return RunConfig.parse({"scenario": scenario, **self.knobs})


def parse_link(query: Mapping[str, str | Sequence[str]], lessons: LessonSet) -> DeepLink:
    """Read the parameters of a page's address; never raises."""
    faults: list[LinkFault] = []
    values: dict[str, str] = {}
    for name, given in query.items():
        several = [given] if isinstance(given, str) else list(given)
        if name not in PARAMETERS:
            faults.append(_fault(name, "".join(several[-1:]), f"is no parameter of this page; there are {', '.join(PARAMETERS)}"))
        elif len(several) > 1:
            faults.append(_fault(name, ", ".join(several), "is given more than once"))
        elif several and several[0] != "":
            values[name] = several[0]
    lesson = _known_lesson(values.get(LESSON), lessons, faults)
    return DeepLink(
        lesson=lesson.id if lesson else None,
        cause=_known_cause(values.get(CAUSE), lesson, lessons, faults),
        attempt=_token(ATTEMPT, values, faults),
        run=_token(RUN, values, faults),
        knobs=_knobs(values, faults),
        faults=tuple(faults),
    )


def build_link(
    *, lesson: str | None = None, cause: str | None = None, attempt: str | None = None, run: str | None = None,
    knobs: Mapping[str, str | int] | None = None,
) -> str:
    """A query string with its `?`; what is None or a default is left out. Raises ValueError for an unknown knob."""
    unknown = [name for name in knobs or {} if name not in KNOBS]
    if unknown:
        raise ValueError(f"knobs: {', '.join(unknown)} unknown; there are {', '.join(KNOBS)}")
    defaults = RunConfig.parse({"scenario": _ANY_EXPERIMENT}).model_dump()
    changed = {name: value for name, value in (knobs or {}).items() if name == "model" or value != defaults[name]}
    named = {LESSON: lesson, CAUSE: cause, ATTEMPT: attempt, RUN: run, **changed}
    query = urlencode({name: value for name, value in named.items() if value is not None})
    return f"?{query}" if query else ""


def _known_lesson(value: str | None, lessons: LessonSet, faults: list[LinkFault]) -> Lesson | None:
    if value is None:
        return None
    lesson = lessons.get(value)
    if lesson is None:
        faults.append(_fault(LESSON, value, f"must be one of {', '.join(known.id for known in lessons.lessons)}"))
    return lesson


def _known_cause(value: str | None, lesson: Lesson | None, lessons: LessonSet, faults: list[LinkFault]) -> str | None:
    if value is None:
        return None
    within = lesson or (lessons.lessons[0] if len(lessons.lessons) == 1 else None)
    if within is None:
        faults.append(_fault(CAUSE, value, "needs a lesson to belong to"))
    elif within.cause(value) is None:
        # The causes that exist are not listed: how many there are, and under which option, is not for this page to say.
        faults.append(_fault(CAUSE, value, f"is no cause of the lesson {within.id}"))
    else:
        return value
    return None


def _token(name: str, values: Mapping[str, str], faults: list[LinkFault]) -> str | None:
    value = values.get(name)
    if value is None or _TOKEN.match(value):
        return value
    faults.append(_fault(name, value, "must be 6 to 64 letters, digits, - or _"))
    return None


def _knobs(values: Mapping[str, str], faults: list[LinkFault]) -> dict[str, str | int]:
    knobs: dict[str, str | int] = {}
    for name in KNOBS:
        if name not in values:
            continue
        try:
            knobs[name] = getattr(RunConfig.parse({"scenario": _ANY_EXPERIMENT, name: values[name]}), name)
        except ValueError as error:
            faults.append(LinkFault(parameter=name, message=str(error)))
    return knobs


def _fault(name: str, value: str, message: str) -> LinkFault:
    return LinkFault(parameter=name, message=f"{_shown(name)}={_shown(value)}: {message}" if value else f"{_shown(name)}: {message}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…")
