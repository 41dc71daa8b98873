"""A run on the screens of a class, as whoever starts it describes it: checked, because it goes to every browser.

Owns its fields. Must not look the run up.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lessons.model import Silhouette

RACERS = 4
PUBLIC = ("run_id", "title", "odd_rank", "metric", "mode", "recorded_words", "paused", "prediction", "sentence", "showing")
"""What every screen may know; which cause it is stays here."""
RACING = ("role", "epoch_s", "measured", "points")
"""What a racer has besides."""


class ShownRun(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    run_id: str = Field(min_length=1, max_length=200)
    title: str = Field(default="", max_length=200)
    odd_rank: int | None = Field(default=None, ge=0, le=1023)
    metric: str = Field(default="gpu_util", max_length=40)
    mode: Literal["live", "recorded"] = "live"
    recorded_words: str = Field(default="", max_length=200)
    paused: bool = False
    prediction: Silhouette | None = None
    """What the class predicted; left out, it is filled in for the cause that the class predicted."""
    sentence: str = Field(default="", max_length=500)
    cause_id: str | None = Field(default=None, max_length=80)
    showing: int = Field(default=0, ge=0)
    """Another number shows the same run anew, from its beginning."""
    role: Literal["odd", "rest", "right"] = "rest"
    epoch_s: float | None = Field(default=None, gt=0)
    """When a racer is through the data set."""
    measured: bool = True
    """False: reckoned from the rate of a shorter run."""
    points: tuple[tuple[float, float], ...] = Field(default=(), max_length=100)
    """A racer's (seconds, percent of the data set), in order, on one clock."""


def shown_run(fields: Any) -> dict[str, Any]:
    """`fields` as they are kept. Raises ValueError that names the first field that is wrong."""
    try:
        return ShownRun.model_validate(fields).model_dump(mode="json")
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(['run', *map(str, first['loc'])])[:80]}: {first['msg']}") from None


def shown_race(racers: Any) -> tuple[dict[str, Any], ...]:
    """Each of `racers` as `shown_run`. Raises ValueError."""
    if not isinstance(racers, (list, tuple)) or len(racers) > RACERS:
        raise ValueError(f"race: must be a list of at most {RACERS} runs")
    return tuple(shown_run(racer) for racer in racers)
