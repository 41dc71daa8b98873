"""Addresses of pages: reading the query string of a link, and building one.

Every value is checked by itself; a wrong one is left out with a readable fault while the others hold. A link names a cause by its opaque
id, never an experiment, so that it gives nothing away before lock-in. Owns the names of the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from lessons.model import Lesson, LessonSet
from scenarios.addresses import LinkFault, changed_knobs, link_fault, shown, single_values, token
from scenarios.addresses import knobs as valid_knobs
from scenarios.config import RunConfig

LESSON, CAUSE, ATTEMPT, RUN = "lesson", "cause", "attempt", "run"
KNOBS = ("gpu", "gpus", "model", "batch", "precision", "seed", "hand_off", "preprocess")
PARAMETERS = (LESSON, CAUSE, ATTEMPT, RUN, *KNOBS)


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
            raise ValueError(f"cause={shown(cause_id or self.cause or '')}: must be one of {', '.join(c.id for c in lesson.causes)}")
        return lesson.config_of(cause.scenario, self.knobs)


def parse_link(query: Mapping[str, str | Sequence[str]], lessons: LessonSet) -> DeepLink:
    """Read the parameters of a page's address; never raises."""
    faults: list[LinkFault] = []
    values = single_values(query, PARAMETERS, faults)
    lesson = _known_lesson(values.get(LESSON), lessons, faults)
    return DeepLink(
        lesson=lesson.id if lesson else None,
        cause=_known_cause(values.get(CAUSE), lesson, lessons, faults),
        attempt=token(ATTEMPT, values, faults),
        run=token(RUN, values, faults),
        knobs=valid_knobs(values, KNOBS, faults),
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
    named = {LESSON: lesson, CAUSE: cause, ATTEMPT: attempt, RUN: run, **changed_knobs(knobs or {})}
    query = urlencode({name: value for name, value in named.items() if value is not None})
    return f"?{query}" if query else ""


def _known_lesson(value: str | None, lessons: LessonSet, faults: list[LinkFault]) -> Lesson | None:
    if value is None:
        return None
    lesson = lessons.get(value)
    if lesson is None:
        faults.append(link_fault(LESSON, value, f"must be one of {', '.join(known.id for known in lessons.lessons)}"))
    return lesson


def _known_cause(value: str | None, lesson: Lesson | None, lessons: LessonSet, faults: list[LinkFault]) -> str | None:
    if value is None:
        return None
    within = lesson or lessons.lessons[0]  # the page's own choice where a link names none
    if within.cause(value) is None:
        # The causes that exist are not listed: how many there are, and under which option, is not for this page to say.
        faults.append(link_fault(CAUSE, value, f"is no cause of the lesson {within.id}"))
    else:
        return value
    return None
