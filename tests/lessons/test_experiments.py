"""Experiments of a lesson: named once each, told apart by their knobs, and put into words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lessons.experiments import cause_of, differences, in_words, named_experiments, shown_as, shown_experiments
from lessons.model import Cause, Claim, Lesson
from scenarios.config import RunConfig


def _config(**values: object) -> RunConfig:
    return RunConfig.parse(values)


@pytest.fixture
def twins(lesson: Lesson) -> Lesson:
    """A lesson in which several experiments share a scenario: two with each other, one with the healthy script."""
    own = {
        "spin": _config(scenario="rank0_loading", hand_off="nccl"), "on_cpu": _config(scenario="rank0_loading", preprocess="cpu"),
        "slow": _config(scenario="sharded", straggler=3, straggler_pct=40),
    }
    names = {"k2": "spin", "k9": "rank0_loading", "k5": "on_cpu", "k7": "slow", "k3": "tiny_model"}
    causes = tuple(replace(cause, scenario=names[cause.id]) for cause in lesson.causes)
    return replace(lesson, experiments=own, causes=causes, race=(), claims=())


def test_every_experiment_that_is_shown_or_spoken_of_is_named_once(lesson: Lesson, twins: Lesson) -> None:
    assert sorted(shown_experiments(lesson)) == [
        "large_batch", "rank0_loading", "scheduler_desync", "sharded", "tiny_model", "unsharded",
    ]
    assert shown_experiments(twins) == ("on_cpu", "slow", "spin", "rank0_loading", "tiny_model", "sharded")
    claims = (Claim(scenario="spin", expression="steps >= 2 * unsharded.steps and max(slow.gpus.power_w) > 0", line=1),)
    assert named_experiments(replace(twins, claims=claims)) == (*shown_experiments(twins), "unsharded")


@pytest.mark.parametrize(
    ("config", "cause"),
    [
        ({"scenario": "rank0_loading"}, "k9"),
        ({"scenario": "rank0_loading", "hand_off": "nccl"}, "k2"),
        ({"scenario": "rank0_loading", "preprocess": "cpu", "batch": 64}, "k5"),
        ({"scenario": "sharded"}, None),
        ({"scenario": "sharded", "straggler": 3, "straggler_pct": 40, "gpu": "h100-80gb"}, "k7"),
        ({"scenario": "sharded", "straggler": 1, "straggler_pct": 40, "gpus": 2}, "k7"),
        ({"scenario": "sharded", "straggler": 3}, None),
        ({"scenario": "tiny_model", "gpus": 2}, "k3"),
        ({"scenario": "large_batch"}, None),
    ],
)
def test_a_run_belongs_to_the_cause_whose_knobs_it_has(twins: Lesson, config: dict[str, object], cause: str | None) -> None:
    assert cause_of(twins, RunConfig.parse(config)) == cause


def test_of_causes_with_one_experiment_the_preferred_one_is_meant(lesson: Lesson) -> None:
    def same(cause: Cause) -> Cause:
        return replace(cause, scenario="unsharded") if cause.id in ("k2", "k9") else cause

    both = replace(lesson, causes=tuple(map(same, lesson.causes)))
    config = _config(scenario="unsharded")
    assert [cause_of(both, config, preferred=preferred) for preferred in ("k9", "k2", "k3")] == ["k9", "k2", "k2"]


def test_a_run_that_a_cause_and_the_healthy_script_share_is_the_fix_unless_the_cause_is_preferred(lesson: Lesson) -> None:
    cause = lesson.causes[0]
    shared = replace(lesson, causes=(replace(cause, scenario=lesson.fix), *lesson.causes[1:]))
    config = lesson.config_of(lesson.fix)
    assert cause_of(shared, config) is None
    assert cause_of(shared, config, preferred=cause.id) == cause.id


def test_a_cause_is_shown_with_its_knobs_and_its_own_lane_and_metric(twins: Lesson) -> None:
    shown = shown_as(twins, "k2")
    assert (shown.name, shown.title, shown.odd_rank, shown.metric) == ("spin", "All data through GPU 0", 0, "busy")
    assert shown.what.endswith("hands shards out. Shards from GPU 0: By NCCL.")
    assert shown_as(twins, "k7").odd_rank == 3, "the slow GPU is the odd one"
    healthy = shown_as(twins, "fix")
    assert (healthy.name, healthy.title, healthy.odd_rank) == ("sharded", "Correct sharding", None)
    causes = tuple(replace(cause, opens_on="power", odd_gpu=7) if cause.id == "k2" else cause for cause in twins.causes)
    other = shown_as(replace(twins, causes=causes), "k2")
    assert (other.metric, other.odd_rank) == ("power", 7)


def test_differences_are_in_words() -> None:
    slow, healthy = _config(scenario="sharded", straggler=3, batch=64, link="pcie4"), _config(scenario="sharded")
    found = [(one.label, one.own, one.other) for one in differences(slow, healthy)]
    assert found[0] == ("Batch per GPU", "64", "256")
    assert found[1][0] == "Link"
    assert found[1][2] == "the GPU's own"
    assert found[2:] == [("Slow GPU", "3", "none")]
    assert differences(healthy, _config(scenario="sharded", straggler_pct=80)) == (), "nothing is slow"
    assert in_words(healthy) == "sharded"
    assert in_words(_config(scenario="sharded", batch=64)) == "sharded (Batch per GPU: 64)"
