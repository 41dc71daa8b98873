"""The cost model against the published figures, and the fit against its own constants."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest

from scenarios.costs.calibration import CALIBRATION, FITTED
from scenarios.costs.fit import fit
from scenarios.costs.gpus import GPUS
from scenarios.costs.predict import predict
from scenarios.costs.pricing import memory
from scenarios.costs.published import throughput_rows
from scenarios.costs.validate import validate


@lru_cache(maxsize=1)
def _report() -> dict[str, Any]:
    return validate()


def test_committed_constants_are_what_the_fit_gives() -> None:
    found = fit(throughput_rows())
    for name in FITTED:
        assert getattr(found, name) == pytest.approx(getattr(CALIBRATION, name), rel=0.02), name


def test_tuned_rows_are_met() -> None:
    report = _report()
    assert report["median_error"] < 0.03
    assert report["worst_error"] < 0.10
    for row in report["throughput"]:
        if row["tuned"] and row["one_gpu_error"] is not None:
            assert abs(row["one_gpu_error"]) < 0.06, row


def test_every_row_is_listed_and_left_out_once() -> None:
    report = _report()
    assert len(report["throughput"]) == len(throughput_rows())
    left_out = [row for row in report["throughput"] if row["leave_one_out_one_gpu_error"] is not None]
    assert len(left_out) == report["fitted_rows"]
    assert report["fitted_constants"] == len(FITTED)
    assert report["median_leave_one_out_error"] >= report["median_error"]


def test_every_memory_row_is_on_the_right_side() -> None:
    report = _report()
    assert [row for row in report["memory"] if not row["right"]] == []
    assert abs(report["memory_error"]) < 0.10


def test_published_untuned_batches_fit_their_cards() -> None:
    for row in throughput_rows():
        if row.batch is not None:
            parts = memory(
                model=row.model, gpu=row.gpu, precision=row.precision, batch=row.batch, world=row.gpus, seq_len=row.seq_len, task=row.task,
            )
            assert parts.total_gib < GPUS[row.gpu].memory_gib, row


def test_prediction_has_the_promised_fields() -> None:
    found = predict(model="resnet50", gpu="a100-80gb", precision="amp", batch=256, gpus=8)
    assert set(found) == {"samples_per_second", "one_gpu_samples_per_second", "scaling", "memory_gib", "fits"}
    assert found["one_gpu_samples_per_second"] == pytest.approx(2470, rel=0.02)
    assert found["samples_per_second"] == pytest.approx(16_621, rel=0.05)
    assert found["fits"] is True
    assert predict(model="resnet50", gpu="a100-80gb", precision="amp", batch=2048, gpus=8)["fits"] is False


def test_accumulation_hides_the_all_reduce() -> None:
    setting: dict[str, Any] = {"model": "bert_large", "gpu": "v100-32gb", "precision": "fp32", "batch": 4, "gpus": 8}
    assert predict(**setting, accumulate=16)["scaling"] > predict(**setting)["scaling"]


def test_one_gpu_scales_perfectly() -> None:
    assert predict(model="gpt2_medium", gpu="a100-40gb", precision="tf32", batch=4, gpus=1)["scaling"] == 1.0
