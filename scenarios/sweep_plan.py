"""What a sweep is: one base run, one knob and the values it takes. Frozen, validated, and the key under which equal sweeps are shared.

Owns which knobs may be swept and over how many values. Must not run anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_validator

from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig
from scenarios.costs.gpus import GPUS
from scenarios.costs.links import LINKS
from scenarios.faults import fault_line

Knob = Literal["gpus", "batch", "workers", "link", "gpu", "straggler_pct", "precision"]
KNOBS: tuple[Knob, ...] = get_args(Knob)
Value = str | int

FEWEST, MOST = 2, 12
"""How many points a sweep has."""
POINT_STEPS = 32
"""Steps of a point whose base says neither epochs nor steps: 30 of them count, which is enough for a mean of equal steps."""

NAMES: dict[Knob, tuple[str, ...]] = {"link": tuple(LINKS), "gpu": tuple(GPUS), "precision": ("fp32", "tf32", "amp")}
"""Knobs whose values are names, in the order in which they are shown."""


class SweepPlan(BaseModel):
    """A base run and the values of one knob. Build it with `SweepPlan.parse`, which turns every fault into one readable ValueError."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: RunConfig
    """Its own value of the knob is forgotten: equal sweeps are equal whatever it was."""
    knob: Knob
    values: tuple[Value, ...]
    """Distinct, in the order in which they are shown: numbers ascending, names as in their table."""

    @classmethod
    def parse(cls, *, base: RunConfig, knob: str, values: Sequence[Any]) -> Self:
        """Validate what a page or a file asks for. Raises ValueError with one line naming the field, its value and what is allowed."""
        if knob not in KNOBS:
            raise ValueError(f"knob={knob[:40]!r}: must be one of {', '.join(KNOBS)}")
        known = list(dict.fromkeys(_known(base, knob, value) for value in values[: 10 * MOST]))
        if not FEWEST <= len(known) <= MOST:
            raise ValueError(f"values={len(known)}: must be from {FEWEST} to {MOST} different values of {knob}")
        names = NAMES.get(knob)
        known.sort(key=names.index if names else None)
        try:
            return cls.model_validate({"base": _config(base, knob, known[0]).model_dump(), "knob": knob, "values": known})
        except ValidationError as error:
            raise ValueError(fault_line(error, cls)) from None

    @field_validator("base")
    @classmethod
    def _without_length(cls, base: RunConfig) -> RunConfig:
        """A point needs a steady part, not the seconds that a viewer watches. A run that is meant to break off goes on until it does."""
        watched = base.steps is None and base.epochs is None and SCENARIOS[base.scenario].expected_outcome == "finished"
        return base.model_copy(update={"steps": POINT_STEPS}) if watched else base

    @model_validator(mode="after")
    def _knob_has_an_effect(self) -> Self:
        if self.knob == "straggler_pct" and self.base.straggler is None:
            raise ValueError("knob='straggler_pct': needs a slow GPU to begin with")
        return self

    @cached_property
    def points(self) -> tuple[RunConfig, ...]:
        """One run per value."""
        return tuple(_config(self.base, self.knob, value) for value in self.values)

    @cached_property
    def key(self) -> str:
        """Equal for equal sweeps; a name of letters and digits."""
        return hashlib.sha256(" ".join([self.knob, *(point.key for point in self.points)]).encode()).hexdigest()[:24]

    def dump(self) -> Mapping[str, Any]:
        """As plain data that `load` reads back."""
        return {"base": self.base.model_dump(), "knob": self.knob, "values": list(self.values)}

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Self:
        """What `dump` gave. Raises ValueError."""
        return cls.parse(base=RunConfig.parse(data["base"]), knob=str(data["knob"]), values=list(data["values"]))


def _config(base: RunConfig, knob: str, value: Any) -> RunConfig:
    return RunConfig.parse({**base.model_dump(), knob: value})


def _known(base: RunConfig, knob: str, value: Any) -> Value:
    known: Value = getattr(_config(base, knob, value), knob)
    if known == "":
        raise ValueError(f"{knob}='': must be one of {', '.join(NAMES['link'])}")
    return known
