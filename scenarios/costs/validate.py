"""The cost model against published figures: what `python -m scenarios validate` prints.

Owns the comparison and its honesty: every row is listed, rows that were not fitted to are marked, and each tuned row is also predicted by
constants fitted without it. Must not import torch.
"""

from __future__ import annotations

from statistics import median
from typing import Any

from scenarios.costs.calibration import CALIBRATION, FITTED, Calibration
from scenarios.costs.fit import fit_host_cost, fit_rates
from scenarios.costs.footprint import memory
from scenarios.costs.gpus import GPUS
from scenarios.costs.predict import predict
from scenarios.costs.published import MemoryLimit, Throughput, memory_rows, throughput_rows

MEASURED_GIB = 27.6
"""The one published measurement of memory in use: ResNet-50, TF32, batch 256, one A100-40GB (FlagPerf)."""


def validate() -> dict[str, Any]:
    """Predicted against published rows. Errors are relative: +0.1 is a prediction 10 % too high; None where it cannot be compared."""
    rows = throughput_rows()
    throughput = [_throughput(row, rows) for row in rows]
    tuned = [row for row in throughput if row["tuned"]]
    memory_found = [_memory(row) for row in memory_rows()]
    measured = memory(model="resnet50", gpu="a100-40gb", precision="tf32", batch=256, world=1).total_gib
    return {
        "fitted_constants": len(FITTED),
        "fitted_rows": sum(row["predicted_one_gpu_per_s"] is not None for row in tuned),
        "throughput": throughput,
        "median_error": _median(tuned, "one_gpu_error", "total_error"),
        "worst_error": _worst(tuned, "one_gpu_error", "total_error"),
        "median_leave_one_out_error": _median(tuned, "leave_one_out_one_gpu_error", "leave_one_out_total_error"),
        "worst_leave_one_out_error": _worst(tuned, "leave_one_out_one_gpu_error", "leave_one_out_total_error"),
        "median_scaling_error": _median(tuned, "scaling_error"),
        "memory": memory_found,
        "memory_rows_right": sum(row["right"] for row in memory_found),
        "memory_measured_gib": MEASURED_GIB,
        "memory_predicted_gib": measured,
        "memory_error": measured / MEASURED_GIB - 1.0,
    }


def _throughput(row: Throughput, rows: list[Throughput]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "model": row.model, "gpu": row.gpu, "precision": row.precision, "batch": row.batch, "seq_len": row.seq_len,
        "accumulate": row.accumulate, "task": row.task, "gpus": row.gpus, "tuned": row.tuned, "source": row.source,
        "published_one_gpu_per_s": row.one_gpu_per_s, "published_total_per_s": row.total_per_s,
        "published_scaling": row.total_per_s / row.gpus / row.one_gpu_per_s,
        "predicted_one_gpu_per_s": None, "predicted_total_per_s": None, "predicted_scaling": None,
        "one_gpu_error": None, "total_error": None, "scaling_error": None,
        "leave_one_out_one_gpu_error": None, "leave_one_out_total_error": None,
    }
    now = _predicted(row, CALIBRATION, batch=row.batch or UNSTATED_BATCH)
    found["predicted_scaling"] = now["scaling"]
    found["scaling_error"] = now["scaling"] / found["published_scaling"] - 1.0
    if row.batch is None:
        return found
    found["predicted_one_gpu_per_s"] = now["one_gpu_samples_per_second"]
    found["predicted_total_per_s"] = now["samples_per_second"]
    found["one_gpu_error"] = now["one_gpu_samples_per_second"] / row.one_gpu_per_s - 1.0
    found["total_error"] = now["samples_per_second"] / row.total_per_s - 1.0
    if row.tuned:
        others = [other for other in rows if other != row]
        without = _predicted(row, fit_host_cost(others, fit_rates(others)), batch=row.batch)
        found["leave_one_out_one_gpu_error"] = without["one_gpu_samples_per_second"] / row.one_gpu_per_s - 1.0
        found["leave_one_out_total_error"] = without["samples_per_second"] / row.total_per_s - 1.0
    return found


UNSTATED_BATCH = 4
"""Batch per GPU assumed where a source gives none; only the scaling of such a row is compared."""


def _predicted(row: Throughput, calibration: Calibration, *, batch: int) -> dict[str, Any]:
    return predict(
        model=row.model, gpu=row.gpu, precision=row.precision, batch=batch, gpus=row.gpus, seq_len=row.seq_len,
        accumulate=row.accumulate, task=row.task, calibration=calibration,
    )


def _memory(row: MemoryLimit) -> dict[str, Any]:
    limit = GPUS[row.gpu].memory_gib
    fits, oom = (
        None if batch is None else memory(
            model=row.model, gpu=row.gpu, precision=row.precision, batch=batch, world=1, seq_len=row.seq_len, path=row.path,
        ).total_gib
        for batch in (row.fits_batch, row.oom_batch)
    )
    return {
        "model": row.model, "gpu": row.gpu, "precision": row.precision, "seq_len": row.seq_len, "path": row.path, "source": row.source,
        "limit_gib": limit, "fits_batch": row.fits_batch, "fits_batch_gib": fits, "oom_batch": row.oom_batch, "oom_batch_gib": oom,
        "right": fits is not None and fits <= limit and (oom is None or oom > limit),
    }


def _errors(rows: list[dict[str, Any]], names: tuple[str, ...]) -> list[float]:
    return [abs(row[name]) for row in rows for name in names if row[name] is not None]


def _median(rows: list[dict[str, Any]], *names: str) -> float:
    return median(_errors(rows, names))


def _worst(rows: list[dict[str, Any]], *names: str) -> float:
    return max(_errors(rows, names))
