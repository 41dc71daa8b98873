"""The causes of the whole course: one name for what is wrong in a run, whichever lesson, wording or mystery run shows it.

What a learner has mastered, mixes up and is asked again is counted by these. A cause is told from a run's configuration. Owns keys and
their names for people, which are shown only once an answer is locked in (mystery runs offer several of them as candidates).
"""

from __future__ import annotations

from lessons.model import Lesson
from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig

HEALTHY = "sharded"
SLOW_GPU = "slow_gpu"
SLOW_LINK = "slow_link"

_HEALTHY = ("accumulate", "shared_validation", "uneven_joined")
"""Partners of a mistake in which nothing is wrong either."""
_KNOBS = {SLOW_GPU: "One GPU is slower than the others", SLOW_LINK: "The link between the GPUs is too slow"}
_NAMES = {"sharded": "Nothing is wrong", "unsharded": "The data is not sharded", "tiny_model": "The model's kernels are too small"}
"""Where the experiment's title does not read as a cause."""


def cause_of(config: RunConfig) -> str:
    """The cause that a run of this configuration shows: what its knobs break in an otherwise healthy script, else its experiment."""
    if config.scenario in _HEALTHY:
        return HEALTHY
    if config.scenario == HEALTHY:
        if config.straggler is not None:
            return SLOW_GPU
        if config.link:
            return SLOW_LINK
    return config.scenario


def cause_name(cause: str) -> str:
    """For people. A cause that is no longer known here (a store of another version) is named by its key."""
    if cause in _KNOBS:
        return _KNOBS[cause]
    scenario = SCENARIOS.get(cause)
    return _NAMES.get(cause) or (scenario.title if scenario else cause.replace("_", " "))


def config_of(lesson: Lesson, cause_id: str) -> RunConfig:
    """What proves a cause of a lesson. Raises ValueError for an unknown cause."""
    cause = lesson.cause(cause_id)
    if cause is None:
        raise ValueError(f"cause={cause_id[:40]!r}: must be one of {', '.join(known.id for known in lesson.causes)}")
    return lesson.config_of(cause.scenario)


def cause_of_option(lesson: Lesson, option_id: str) -> str:
    """The cause that an option of a lesson stands for, by its first experiment. Raises ValueError for an unknown option."""
    option = lesson.option(option_id)
    if option is None:
        raise ValueError(f"option={option_id[:40]!r}: must be one of {', '.join(known.id for known in lesson.options)}")
    return cause_of(config_of(lesson, option.causes[0]))


def cause_of_lesson(lesson: Lesson) -> str:
    """The cause that a lesson teaches: that of its right option."""
    return cause_of_option(lesson, lesson.key.id)


def typical_config(cause: str) -> RunConfig | None:
    """A run that shows a cause as plainly as it can; None for a cause that is no longer known here."""
    knobs: dict[str, dict[str, str | int]] = {
        SLOW_GPU: {"scenario": "sharded", "straggler": 3},
        SLOW_LINK: {"scenario": "sharded", "model": "bert_large", "batch": 8, "link": "pcie3"},
    }
    if cause not in knobs and cause not in SCENARIOS:
        return None
    return RunConfig.parse(knobs.get(cause, {"scenario": cause}))
