"""The lab through navigation.py: knobs, URL, the runs asked for, sweeps and comparison; without a browser, on runs that only pretend."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages.components import source_words
from pages.lab_compare import differing
from pages.lab_sweep import CSV_COLUMNS, sweep_csv
from pages.lab_views import largest_fitting, why_they_differ
from scenarios import backend
from scenarios.config import RunConfig
from scenarios.costs.predict import predict
from scenarios.machine import RealGpus, TorchBuild
from scenarios.nvml.inventory import Gpu, Inventory
from scenarios.sweep_plan import SweepPlan
from scenarios.sweeps import SWEEPS_AT_ONCE, Point, Sweep, get_sweeps
from tests.pages.conftest import PretendedRuns
from tests.scenarios.lifecycle.conftest import wait_until

Page = Callable[..., AppTest]


def html_of(page: AppTest) -> str:
    return "\n".join(str(node.proto.body) for node in page.get("html"))


def button(page: AppTest, key: str) -> Any:
    return next(button for button in page.button if button.key == key)


def press(page: AppTest, key: str) -> AppTest:
    button(page, key).click().run()
    assert not page.exception
    return page


def turned(page: AppTest, key: str, value: Any) -> AppTest:
    widget = next(widget for widget in (*page.selectbox, *page.number_input) if widget.key == key)
    widget.set_value(value).run()
    assert not page.exception
    return page


def summary(rate: float = 1000.0, **figures: Any) -> dict[str, Any]:
    gpu = {"gpu_util": 90.0, "sm_active": 80.0, "power_w": 300.0, "memory_gib": 13.0, "spin_pct": 0.0}
    return {
        "source": "virtual", "outcome": "finished", "gpus": [{"rank": 0, **gpu}], "samples_per_second": rate,
        "unique_samples_per_second": rate, "times_trained": 1.0, "epoch_seconds": 4.0, "speedup_vs_one_gpu": 7.5, "peak_memory_gib": 13.2,
        "memory_limit_gib": 79.2, "last_batch_that_fitted": 256, "steps": 90, **figures,
    }


def test_every_knob_goes_into_the_address_and_into_the_run(lab_page: Page, pretended: PretendedRuns) -> None:
    page = lab_page()
    turned(page, "lab-scenario", "rank0_loading")
    turned(page, "lab-gpu", "h100-80gb")
    turned(page, "lab-gpus", 4)
    turned(page, "lab-batch", 64)
    turned(page, "lab-precision", "tf32")
    turned(page, "lab-workers", 2)
    turned(page, "lab-hand_off", "nccl")
    turned(page, "lab-preprocess", "cpu")
    turned(page, "lab-link", "pcie4")
    turned(page, "lab-straggler", 2)
    turned(page, "lab-straggler_pct", 80)
    turned(page, "lab-seed", 7)
    wanted = {
        "scenario": "rank0_loading", "gpu": "h100-80gb", "gpus": 4, "batch": 64, "precision": "tf32", "workers": 2, "hand_off": "nccl",
        "preprocess": "cpu", "link": "pcie4", "straggler": 2, "straggler_pct": 80, "seed": 7,
    }
    assert {name: page.query_params[name] for name in wanted} == {name: str(value) for name, value in wanted.items()}
    press(page, "lab-run")
    run = next(iter(pretended.runs.values()))
    assert run.config == RunConfig.parse(wanted)
    assert page.query_params["run"] == run.run_id
    assert button(page, "lab-run").disabled, "while it goes on"
    pretended.end(summary=summary())
    assert not button(page.run(), "lab-run").disabled


def test_a_model_brings_a_batch_that_makes_sense(lab_page: Page) -> None:
    page = turned(lab_page(), "lab-model", "bert_large")
    assert page.query_params["batch"] == "32"


def test_what_does_not_apply_is_disabled_with_its_reason(lab_page: Page) -> None:
    page = lab_page(gpus="1", model="bert_large", batch="8")
    shown = {field.label: (field.value, field.disabled) for field in page.text_input}
    assert shown["Link"] == ("One GPU needs no link", True)
    assert shown["Images decoded on"] == ("Sequences need none", True)
    assert shown["Shards from GPU 0"] == ("Only if GPU 0 loads all", True)


def test_a_wrong_address_gets_a_sentence_and_markup_stays_text(lab_page: Page) -> None:
    page = lab_page(gpu="<img src=x onerror=alert(1)>", gpus="99", seed="3")
    shown = html_of(page)
    assert "A part of this link was left out" in shown
    assert "<img" not in shown
    assert next(field for field in page.number_input if field.key == "lab-seed").value == 3


def test_an_empty_lab_invites_and_a_preset_fills_and_runs(lab_page: Page, pretended: PretendedRuns) -> None:
    page = press(lab_page(), "lab-start-slow")
    run = next(iter(pretended.runs.values()))
    assert (run.config.straggler, run.config.straggler_pct) == (3, 50)
    assert page.query_params["straggler"] == "3"
    assert page.query_params["run"] == run.run_id


def test_a_full_queue_is_a_sentence(lab_page: Page, pretended: PretendedRuns) -> None:
    pretended.full = True
    assert "50 runs are waiting already" in html_of(press(lab_page(), "lab-run"))


def test_the_recording_can_be_watched_and_its_knobs_come_back(lab_page: Page, pretended: PretendedRuns) -> None:
    config = RunConfig.parse({"scenario": "sharded", "seed": 4})
    run = pretended.start(config, viewer="")
    pretended.end(summary=summary())
    pretended.recorded[config.key] = run
    page = press(lab_page(seed="4"), "lab-watch")
    assert page.query_params["run"] == run.run_id
    turned(page, "lab-gpus", 2)
    assert page.query_params["run"] == run.run_id, "the picture stays"
    press(page, "lab-back")
    assert "gpus" not in page.query_params


def test_memory_is_drawn_for_the_knobs_without_any_run(lab_page: Page) -> None:
    shown = html_of(lab_page(view="memory"))
    assert "Fits: " in shown
    assert "of 79.2 GiB" in shown
    assert "Does not fit" in html_of(lab_page(view="memory", batch="8192"))
    edge = largest_fitting(RunConfig.parse({"scenario": "sharded"}))
    assert edge in (512, 1024, 2048)
    assert largest_fitting(RunConfig.parse({"scenario": "sharded", "gpu": "t4-16gb", "model": "bert_large", "precision": "fp32"})) < edge


def test_prediction_and_measurement_differ_for_named_reasons(lab_page: Page, pretended: PretendedRuns) -> None:
    page = press(lab_page(view="predicted"), "lab-run")
    assert "Press Run to measure it" in html_of(page)
    pretended.end(summary=summary(rate=9000.0))
    assert "9,000/s" in html_of(page.run())
    assert "below predicted: each GPU also decodes its images" in html_of(page)
    config = RunConfig.parse({"scenario": "unsharded", "straggler": 2, "link": "pcie4", "workers": 0, "preprocess": "cpu"})
    found = predict(model="resnet50", gpu="a100-80gb", precision="amp", batch=256, gpus=8)
    text = why_they_differ(config, found, summary(rate=2 * found["samples_per_second"]))
    assert text.startswith("Measured is 100 % above predicted: the script has a mistake")
    assert all(word in text for word in ("CPU decodes", "fetch their own", "GPU 2 is slow", "another link"))


def test_up_to_four_runs_are_compared_by_the_knobs_that_differ(lab_page: Page, pretended: PretendedRuns) -> None:
    runs = []
    for seed, gpus in ((0, 8), (0, 4), (1, 8)):
        runs.append(pretended.start(RunConfig.parse({"scenario": "sharded", "seed": seed, "gpus": gpus}), viewer=""))
        pretended.end(summary=summary(rate=100.0 * gpus))
    page = lab_page(run=runs[0].run_id, pin=".".join(run.run_id for run in runs[1:]))
    press(page, "lab-pin")
    assert page.query_params["pin"].split(".") == [run.run_id for run in (runs[1], runs[2], runs[0])]
    assert page.query_params["view"] == "compare"
    assert differing(runs) == [("GPUs", ["8", "4", "8"]), ("Seed", ["0", "0", "1"])]
    shown = html_of(page)
    assert ">400<" in shown
    assert ">800<" in shown
    press(page, "lab-unpin-A")
    assert page.query_params["pin"].split(".") == [runs[2].run_id, runs[0].run_id]
    assert "not known here any more" in html_of(lab_page(pin="nosuchrun", view="compare"))


def test_a_sweep_from_its_form_to_its_results(lab_page: Page, pretended: PretendedRuns) -> None:
    page = lab_page(view="sweep", over="gpus", values="1,2")
    press(page, "lab-sweep-run")
    sweep_id = page.query_params["sweep"]
    for rate in (100.0, 190.0):
        wait_until(lambda: any(not run_over(run) for run in pretended.runs.values()), what="a point under way")
        pretended.end(summary=summary(rate=rate))
        pretended.finish()
    wait_until(lambda: get_sweeps().get(sweep_id).over, what="the sweep over")  # type: ignore[union-attr]
    shown = html_of(page.run())
    assert "Done." in shown
    assert "190/s" in shown
    assert [run.config.gpus for run in pretended.runs.values()] == [1, 2]


def test_a_second_sweep_waits_for_the_first_and_stop_ends_it(lab_page: Page, pretended: PretendedRuns) -> None:
    page = press(lab_page(view="sweep", over="batch", values="8,16"), "lab-sweep-run")
    assert button(page, "lab-sweep-run").disabled
    sweep_id = page.query_params["sweep"]
    press(page, "lab-sweep-stop")
    assert get_sweeps().get(sweep_id).state == "stopped"  # type: ignore[union-attr]
    assert "Stopped after 0 of 2 points" in html_of(page)
    assert "Run the rest" in [button.label for button in page.button]


def test_a_flood_of_sweeps_is_refused_with_a_sentence(lab_page: Page) -> None:
    for number in range(SWEEPS_AT_ONCE):
        plan = SweepPlan.parse(base=RunConfig.parse({"scenario": "sharded", "seed": number}), knob="gpus", values=(1, 2))
        get_sweeps().start(plan, viewer=f"somebody {number}")
    page = press(lab_page(view="sweep"), "lab-sweep-run")
    assert f"{SWEEPS_AT_ONCE} sweeps are under way here already" in html_of(page)
    assert "sweep" not in page.query_params


def test_an_unknown_or_impossible_sweep_is_a_sentence(lab_page: Page) -> None:
    assert "not known here any more" in html_of(lab_page(view="sweep", sweep="f" * 24))
    page = press(lab_page(view="sweep", straggler="5", over="gpus", values="2,8"), "lab-sweep-run")
    assert "This sweep is not possible. straggler='5': must be a rank from 0 to 1." in unescape(html_of(page))


def run_over(run: Any) -> bool:
    return bool(run.over)


@pytest.mark.parametrize("reason", ["=cmd|' /C calc'!A0", "@SUM(1)"])
def test_the_csv_holds_numbers_and_fixed_words_only(reason: str) -> None:
    plan = SweepPlan.parse(base=RunConfig.parse({"scenario": "sharded"}), knob="link", values=("pcie4", "nvlink3"))
    points = (
        Point(value="nvlink3", config=plan.points[0], state="finished", summary={**summary(), "source": reason, "epoch_seconds": reason}),
        Point(value="pcie4", config=plan.points[1], state="failed", reason=reason),
    )
    text = sweep_csv(Sweep(sweep_id="a" * 24, plan=plan, state="finished", points=points, left_s=0.0))
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == list(CSV_COLUMNS)
    assert rows[1][:5] == ["", "link", "nvlink3", "finished", "1000"]
    assert rows[2][:5] == ["", "link", "pcie4", "failed", ""]
    assert reason not in text


def real_machine(monkeypatch: pytest.MonkeyPatch, gpus: int) -> None:
    """A machine whose driver and PyTorch have so many H200."""
    inventory = Inventory(
        driver="580.1", cuda=(13, 0), links=(),
        gpus=tuple(
            Gpu(
                index=index, name="NVIDIA H200", uuid=f"GPU-{index}", bus_id="", memory_gib=140.0, capability=(9, 0), gpm=True, mig=False,
                instances=(), fault="",
            )
            for index in range(gpus)
        ),
    )  # fmt: skip
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for module in (backend, source_words):
        monkeypatch.setattr(module, "torch_build", lambda: TorchBuild(version="2.13.0+cu130", cuda=(13, 0)))
        monkeypatch.setattr(module, "real_gpus", lambda: RealGpus(inventory=inventory, reason=""))


def test_fewer_real_gpus_than_asked_for_are_said_and_offered(lab_page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    real_machine(monkeypatch, 1)
    page = lab_page()
    assert "Runs on virtual GPUs: 8 were asked for and 1 real GPU (NVIDIA H200) was found." in html_of(page)
    press(page, "lab-backend-Use the real GPU")
    assert page.query_params["gpus"] == "1"
    assert "Runs on real GPUs, read by NVML: 1 real GPU (NVIDIA H200) was found." in html_of(page)
    assert "The real ones" in [field.value for field in page.text_input], "the kind cannot be chosen"
    press(page, "lab-backend-Use virtual GPUs")
    assert page.query_params["backend"] == "virtual"
    assert "Runs on virtual GPUs, as you chose." in html_of(page)
    press(page, "lab-backend-Use the real GPUs")
    assert "backend" not in page.query_params


def test_a_link_that_demands_real_gpus_says_that_there_are_none(lab_page: Page) -> None:
    page = lab_page(backend="cuda")
    assert "This link asks for real GPUs that are not here." in html_of(page)
    press(page, "lab-backend-Use virtual GPUs")
    assert page.query_params["backend"] == "virtual"
