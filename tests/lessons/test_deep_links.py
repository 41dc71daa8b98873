"""Links: what is usable is used, what is not is left out with a readable fault, and nothing tells the answer."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessons.deep_links import KNOBS, PARAMETERS, build_link, parse_link
from lessons.loader import load_lessons
from lessons.model import Lesson
from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig

LESSONS = load_lessons()


def test_a_whole_link_is_read(lesson: Lesson) -> None:
    link = parse_link(
        {
            "lesson": lesson.id, "cause": "k2", "attempt": "abcDEF123-_xyz", "run": "abc123XY", "gpu": "h100-80gb", "gpus": "4",
            "batch": "128", "precision": "tf32", "seed": "7", "hand_off": "nccl", "preprocess": "cpu", "model": "resnet50",
        },
        LESSONS,
    )
    assert link.faults == ()
    assert (link.lesson, link.cause, link.attempt, link.run) == (lesson.id, "k2", "abcDEF123-_xyz", "abc123XY")
    config = link.config(lesson)
    assert config == RunConfig(
        scenario="rank0_loading", gpu="h100-80gb", gpus=4, batch=128, precision="tf32", seed=7, hand_off="nccl", preprocess="cpu",
        model="resnet50",
    )


def test_an_empty_link_asks_for_nothing() -> None:
    link = parse_link({"lesson": "", "gpu": ""}, LESSONS)
    assert (link.lesson, link.cause, dict(link.knobs), link.faults) == (None, None, {}, ())


@pytest.mark.parametrize(
    ("query", "parameter", "message"),
    [
        ({"gpus": "99"}, "gpus", "gpus='99'"),
        ({"gpus": "many"}, "gpus", "gpus='many'"),
        ({"gpus": "0"}, "gpus", "must be an integer from 1 to 8"),
        ({"batch": "-1"}, "batch", "batch='-1'"),
        ({"batch": "1e9"}, "batch", "batch='1e9'"),
        ({"gpu": "abacus"}, "gpu", "must be one of"),
        ({"model": "gpt9"}, "model", "must be one of"),
        ({"precision": "fp8"}, "precision", "precision='fp8'"),
        ({"seed": "x"}, "seed", "seed='x'"),
        ({"hand_off": "pigeon"}, "hand_off", "hand_off='pigeon'"),
        ({"preprocess": "tpu"}, "preprocess", "preprocess='tpu'"),
        ({"lesson": "nothing"}, "lesson", "must be one of one-busy-gpu"),
        ({"lesson": "one-busy-gpu", "cause": "k0"}, "cause", "is no cause"),
        ({"attempt": "../../x"}, "attempt", "must be 6 to 64"),
        ({"run": "<script>"}, "run", "must be 6 to 64"),
        ({"scenario": "rank0_loading"}, "scenario", "no parameter"),
        ({"epochs": "3"}, "epochs", "no parameter"),
        ({"gpu": ["a100-80gb", "h100-80gb"]}, "gpu", "more than once"),
    ],
)
def test_each_fault_is_readable_and_the_rest_holds(query: dict[str, str], parameter: str, message: str) -> None:
    link = parse_link({"lesson": "one-busy-gpu", "seed": "5"} | query, LESSONS)
    assert [fault.parameter for fault in link.faults] == [parameter]
    assert message in str(link.faults[0])
    if parameter != "seed":
        assert link.knobs == {"seed": 5}
    else:
        assert link.knobs == {}


def test_a_fault_shows_a_long_value_shortened_and_names_no_cause(lesson: Lesson) -> None:
    link = parse_link({"cause": "k" * 5_000, "x" * 5_000: "y" * 5_000}, LESSONS)
    assert all(len(str(fault)) < 400 for fault in link.faults)
    told = " ".join(str(fault) for fault in link.faults)
    assert not any(cause.title in told or cause.id in told.split() for cause in lesson.causes)


def test_a_link_never_names_an_experiment(lesson: Lesson) -> None:
    for cause in lesson.causes:
        link = build_link(lesson=lesson.id, cause=cause.id, attempt="abcdef123", knobs={"gpus": 4, "model": "resnet50"})
        assert not any(name in link for name in SCENARIOS)


def test_what_is_a_default_is_left_out() -> None:
    assert build_link(lesson="a", knobs={"gpus": 8, "batch": 256, "seed": 3}) == "?lesson=a&seed=3"
    assert build_link() == ""
    with pytest.raises(ValueError, match="scenario unknown"):
        build_link(knobs={"scenario": "sharded"})


def test_knobs_that_do_not_go_with_a_cause_say_so(lesson: Lesson) -> None:
    with pytest.raises(ValueError, match="must be one of k5"):
        parse_link({"lesson": lesson.id}, LESSONS).config(lesson)


@settings(max_examples=100, deadline=None)
@given(st.fixed_dictionaries({}, optional={
    "gpus": st.integers(1, 8), "batch": st.integers(1, 8192), "seed": st.integers(0, 2**31 - 1),
    "gpu": st.sampled_from(["a100-80gb", "v100-16gb"]),
    "precision": st.sampled_from(["fp32", "tf32", "amp"]), "hand_off": st.sampled_from(["cpu", "nccl"]),
}), st.sampled_from(["k5", "k7", "k2", "k9", "k3", None]))
def test_a_built_link_reads_back_to_the_same_run(knobs: dict[str, str | int], cause: str | None) -> None:
    lesson = LESSONS.lessons[0]
    text = build_link(lesson=lesson.id, cause=cause, knobs=knobs)
    link = parse_link(parse_qs(text.removeprefix("?")), LESSONS)
    assert link.faults == ()
    assert link.config(lesson, cause or "k2") == RunConfig.applied({"scenario": lesson.cause(cause or "k2").scenario, **knobs})  # type: ignore[union-attr]


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.one_of(st.sampled_from(PARAMETERS), st.text(max_size=8)), st.text(max_size=30), max_size=6))
def test_no_address_breaks_the_page(query: dict[str, str]) -> None:
    link = parse_link(query, LESSONS)
    assert set(link.knobs) <= set(KNOBS)
    assert all(str(fault) for fault in link.faults)
