"""The lab's address: what is usable is used, the rest is left out with a sentence, and what is set reads back."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pages.lab_link import KNOBS, PARAMETERS, VIEWS, LabLink, changed, described, parse_lab_link, why_not
from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig
from scenarios.costs.gpus import GPUS
from scenarios.costs.links import LINKS
from scenarios.costs.models import MODELS


@pytest.mark.parametrize(
    ("query", "parameter", "message"),
    [
        ({"scenario": "mystery"}, "scenario", "must be one of sharded"),
        ({"gpus": "9"}, "gpus", "gpus='9': must be an integer from 1 to 8"),
        ({"gpu": "abacus"}, "gpu", "gpu='abacus': must be one of"),
        ({"batch": "1e3"}, "batch", "batch='1e3'"),
        ({"workers": "-1"}, "workers", "workers='-1'"),
        ({"link": "string"}, "link", "link='string': must be one of"),
        ({"straggler": "7", "gpus": "4"}, "straggler", "must be a rank from 0 to 3"),
        ({"straggler_pct": "80"}, "straggler_pct", "has no effect here. Choose a slow GPU first."),
        ({"link": "pcie4", "gpus": "1"}, "link", "has no effect here. One GPU needs no link."),
        ({"hand_off": "nccl"}, "hand_off", "hand_off='nccl'"),
        ({"workers": "4", "scenario": "starved_loader"}, "workers", "workers='4': must be 0"),
        ({"preprocess": "cpu", "model": "bert_large"}, "preprocess", "preprocess='cpu'"),
        ({"view": "<script>"}, "view", "must be one of time, memory"),
        ({"run": "../../etc"}, "run", "must be 6 to 64"),
        ({"sweep": "x"}, "sweep", "must be 6 to 64"),
        ({"pin": "aaaaaaaa.bbbbbbbb.cccccccc.dddddddd.eeeeeeee"}, "pin", "at most 4 runs"),
        ({"pin": "aaaaaaaa.="}, "pin", "at most 4 runs"),
        ({"over": "colour"}, "over", "must be one of gpus"),
        ({"values": "1,2"}, "values", "needs a knob"),
        ({"over": "gpus", "values": "1,99"}, "gpus", "gpus='99'"),
        ({"epochs": "3"}, "epochs", "is no parameter of this page"),
        ({"gpus": ["2", "4"]}, "gpus", "more than once"),
    ],
)
def test_each_fault_is_one_sentence_and_the_rest_holds(query: dict[str, str], parameter: str, message: str) -> None:
    link = parse_lab_link({"seed": "5", **query})
    assert [fault.parameter for fault in link.faults] == [parameter]
    assert message in str(link.faults[0])
    assert link.config.seed == 5
    if parameter in KNOBS and parameter not in ("gpus",):
        assert parameter not in link.knobs


def test_a_knob_without_effect_is_dropped_when_another_is_turned() -> None:
    link = parse_lab_link({"scenario": "rank0_loading", "hand_off": "nccl", "straggler": "6", "straggler_pct": "100"})
    assert changed(link, scenario="sharded").knobs == {"straggler": 6, "straggler_pct": 100}
    assert changed(link, gpus=4).knobs == {"hand_off": "nccl", "gpus": 4}
    assert changed(link, straggler=None).knobs == {"hand_off": "nccl"}
    starved = LabLink().with_config(RunConfig.parse({"scenario": "starved_loader"}))
    assert (starved.address(), changed(starved, scenario="sharded").config) == ("?scenario=starved_loader", LabLink().config)
    assert changed(LabLink().with_config(LabLink().config), scenario="starved_loader").config == starved.config
    assert parse_lab_link({"scenario": "starved_loader", "preprocess": "gpu"}).address() == "?scenario=starved_loader&preprocess=gpu"
    assert changed(LabLink(knobs={"model": "bert_large", "batch": 8}), scenario="tiny_model").config.model == "mlp"


def test_a_script_with_a_link_of_its_own_can_be_given_the_cards() -> None:
    slow = parse_lab_link({"scenario": "accumulate"})
    assert slow.config.link == "pcie4"
    fast = changed(slow, link=None)
    assert (fast.config.link, fast.address()) == ("nvlink3", "?scenario=accumulate&link=nvlink3")
    assert parse_lab_link(parse_qs(fast.address().removeprefix("?"))).config == fast.config
    assert changed(fast, link="pcie4").address() == "?scenario=accumulate"


def test_the_cards_own_link_is_the_same_run_whether_named_or_not() -> None:
    named = parse_lab_link({"link": GPUS["a100-80gb"].link})
    assert named.config.key == parse_lab_link({}).config.key
    assert named.faults == ()


def test_runs_of_lessons_can_be_opened_with_their_knobs() -> None:
    config = RunConfig.parse({"scenario": "rank0_loading", "hand_off": "nccl", "epochs": 1, "gpu": "h100-80gb"})
    link = LabLink(view="memory").with_config(config)
    assert (link.config.scenario, link.config.hand_off, link.config.gpu, link.config.epochs) == ("rank0_loading", "nccl", "h100-80gb", None)
    assert link.address() == "?scenario=rank0_loading&gpu=h100-80gb&hand_off=nccl&view=memory"


def test_reasons_name_what_is_missing() -> None:
    alone = RunConfig.parse({"scenario": "sharded", "gpus": 1, "model": "bert_large"})
    assert set(why_not(alone)) == {"hand_off", "preprocess", "link", "straggler", "straggler_pct"}
    assert why_not(RunConfig.parse({"scenario": "rank0_loading", "straggler": 1})) == {}


def test_a_run_in_one_line() -> None:
    config = RunConfig.parse({"scenario": "sharded", "straggler": 3, "link": "pcie4", "workers": 2})
    text = described(config)
    assert text.startswith("Correct sharding · 8 × A100-80GB · ResNet-50 · batch 256 · amp · 2 workers")
    assert "GPU 3 slower by 50 %" in text
    assert described(config, without="gpus").startswith("Correct sharding · A100-80GB · ResNet-50")
    assert "50 %" not in described(config, without="straggler_pct")


@settings(max_examples=100, deadline=None)
@given(
    st.fixed_dictionaries({}, optional={
        "gpus": st.integers(1, 8), "batch": st.integers(1, 8192), "seed": st.integers(0, 2**31 - 1), "workers": st.integers(0, 32),
        "gpu": st.sampled_from(sorted(GPUS)), "model": st.sampled_from(sorted(MODELS)), "link": st.sampled_from(sorted(LINKS)),
        "precision": st.sampled_from(["fp32", "tf32", "amp"]), "straggler": st.integers(0, 7), "straggler_pct": st.integers(1, 400),
        "hand_off": st.sampled_from(["cpu", "nccl"]), "preprocess": st.sampled_from(["gpu", "cpu"]),
    }),
    st.sampled_from(sorted(SCENARIOS)), st.sampled_from(VIEWS),
    st.lists(st.from_regex(r"[a-z0-9]{16}", fullmatch=True), max_size=4, unique=True),
)
def test_what_is_set_reads_back_from_its_address(knobs: dict[str, str | int], scenario: str, view: str, pins: list[str]) -> None:
    given = {name: str(value) for name, value in knobs.items()}
    first = parse_lab_link({"scenario": scenario, "view": view, "pin": ".".join(pins), **given})
    again = parse_lab_link(parse_qs(first.address().removeprefix("?")))
    assert again.faults == ()
    assert (again.config, again.view, again.pins) == (first.config, view, tuple(pins))


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.one_of(st.sampled_from(PARAMETERS), st.text(max_size=8)), st.text(max_size=30), max_size=6))
def test_no_address_breaks_the_lab(query: dict[str, str]) -> None:
    link = parse_lab_link(query)
    assert link.config.scenario in SCENARIOS
    assert set(link.knobs) <= set(KNOBS)
    assert all(str(fault) for fault in link.faults)


def test_long_lists_are_cut_short() -> None:
    link = parse_lab_link({"over": "batch", "values": ",".join(map(str, range(1, 5000))), "x" * 5000: "y" * 5000})
    assert len(link.values) < 120
    assert all(len(str(fault)) < 500 for fault in link.faults)
