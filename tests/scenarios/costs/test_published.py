"""The cost model against the published figures, and the fit against its own constants."""

from __future__ import annotations

from functools import lru_cache
from statistics import median
from typing import Any

import pytest

from scenarios.costs.calibration import CALIBRATION, FITTED
from scenarios.costs.fit import fit
from scenarios.costs.gpus import GPUS
from scenarios.costs.predict import predict
from scenarios.costs.pricing import memory
from scenarios.costs.published import held_out_rows, throughput_rows
from scenarios.costs.validate import committed, validate


@lru_cache(maxsize=1)
def _report() -> dict[str, Any]:
    return validate()


def test_committed_constants_are_what_the_fit_gives() -> None:
    found = fit(throughput_rows())
    for name in FITTED:
        assert getattr(found, name) == pytest.approx(getattr(CALIBRATION, name), rel=0.02), name


def test_one_gpu_rows_are_met_with_fewer_constants_than_rows() -> None:
    report = _report()
    assert report["fitted_constants"] == len(FITTED) < report["fitted_rows"] == report["one_gpu"]["rows"]
    assert report["one_gpu"]["median"] < 0.05
    assert report["one_gpu"]["worst"] < 0.10


def test_every_tuned_row_is_left_out_once() -> None:
    report = _report()
    assert report["leave_one_out"]["rows"] == report["fitted_rows"]
    assert report["leave_one_out"]["median"] < 0.10
    assert report["leave_one_out"]["worst"] < 0.20
    assert report["median_leave_one_out_error"] >= report["median_error"]
    for row in report["throughput"]:
        compared = row["tuned"] and row["one_gpu_error"] is not None
        assert (row["leave_one_out_one_gpu_error"] is not None) == compared, row


def test_scaling_is_better_than_a_constant() -> None:
    report = _report()
    assert report["scaling"]["rows"] == report["constant_scaling"]["rows"] == 10
    assert report["scaling"]["median"] < 0.75 * report["constant_scaling"]["median"]
    assert report["scaling"]["worst"] < 0.09
    assert report["leave_one_out_scaling"]["median"] < report["constant_scaling"]["median"]
    assert report["leave_one_out_scaling"]["worst"] < 0.09
    for row in report["throughput"]:
        assert abs(row["scaling_error"]) < 0.09, row


def test_rows_that_nothing_was_fitted_to_are_met_and_stand_apart() -> None:
    report = _report()
    assert len(report["throughput"]) == len(throughput_rows())
    assert len(report["held_out_rows"]) == len(held_out_rows()) > 40
    fitted = {(row["model"], row["gpu"], row["precision"], row["batch"], row["task"]) for row in report["throughput"] if row["tuned"]}
    fresh = [
        row for row in report["held_out_rows"]
        if row["tuned"] and row["nodes"] == 1 and (row["model"], row["gpu"], row["precision"], row["batch"], row["task"]) not in fitted
    ]
    assert len(fresh) >= 8
    assert median(abs(row["one_gpu_error"]) for row in fresh) < 0.10
    assert max(abs(row["one_gpu_error"]) for row in fresh) < 0.30
    held_out = report["held_out"]["tuned"]
    assert held_out["scaling"]["median"] < held_out["constant_scaling"]["median"]
    assert held_out["scaling"]["worst"] < 0.09


def _close(found: Any, wanted: Any) -> bool:
    if isinstance(found, dict):
        return found.keys() == wanted.keys() and all(_close(found[key], wanted[key]) for key in found)
    if isinstance(found, list):
        return len(found) == len(wanted) and all(map(_close, found, wanted))
    return bool(found == (pytest.approx(wanted, rel=1e-3, abs=1e-4) if isinstance(wanted, float) else wanted))


def test_what_is_committed_is_what_is_found_now() -> None:
    """If not: python -m scenarios.costs.validate."""
    report = _report()
    assert [key for key in report if not _close(report[key], committed()[key])] == []


def test_no_row_is_both_fitted_and_held_out() -> None:
    fitted = {(row.setup, row.gpus, row.nodes, row.total_per_s) for row in throughput_rows()}
    assert [row for row in held_out_rows() if (row.setup, row.gpus, row.nodes, row.total_per_s) in fitted] == []


def test_every_memory_row_is_on_the_right_side() -> None:
    report = _report()
    assert [row for row in report["memory"] if not row["right"]] == []
    assert abs(report["memory_error"]) < 0.10


def test_published_batches_fit_their_cards() -> None:
    for row in throughput_rows():
        if row.batch is not None:
            parts = memory(
                model=row.model, gpu=row.gpu, precision=row.precision, batch=row.batch, world=row.gpus, seq_len=row.seq_len, task=row.task,
            )
            assert parts.total_gib < GPUS[row.gpu].memory_gib, row


def test_prediction_has_the_promised_fields() -> None:
    found = predict(model="resnet50", gpu="a100-80gb", precision="amp", batch=256, gpus=8)
    assert set(found) == {"samples_per_second", "one_gpu_samples_per_second", "scaling", "memory_gib", "fits"}
    assert found["one_gpu_samples_per_second"] == pytest.approx(2470, rel=0.08)
    assert found["samples_per_second"] == pytest.approx(16_621, rel=0.08)
    assert found["fits"] is True
    assert predict(model="resnet50", gpu="a100-80gb", precision="amp", batch=2048, gpus=8)["fits"] is False
