"""The cost model against published figures: what `python -m scenarios validate` prints.

`python -m scenarios.costs.validate` writes the same to reference/validation.json, from which pages are drawn without waiting.

Owns the comparison and its honesty: every row is listed, rows that were not fitted to are marked, each tuned row is also predicted by
constants fitted without it, and rows of other sources that nothing was fitted to stand apart. (They were in view when the form of the model
was chosen, and ratios within one of their sources gave the shares of the newest generations.) Must not import torch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

from scenarios.costs.calibration import CALIBRATION, FITTED, RATES, SCALING, Calibration
from scenarios.costs.fit import fit
from scenarios.costs.footprint import memory
from scenarios.costs.gpus import GPUS
from scenarios.costs.predict import micro_step_seconds
from scenarios.costs.published import MemoryLimit, Throughput, held_out_rows, memory_rows, throughput_rows

MEASURED_GIB = 27.6
"""The one published measurement of memory in use: ResNet-50, TF32, batch 256, one A100-40GB (FlagPerf)."""

_COMMITTED = Path(__file__).with_name("reference") / "validation.json"

CONSTANT_SCALING = 0.945
"""What to beat: every scaling predicted by one number."""


def validate() -> dict[str, Any]:
    """Predicted against published rows. Errors are relative: +0.1 is a prediction 10 % too high; None where it cannot be compared."""
    rows = throughput_rows()
    throughput = [_throughput(row, others=[other for other in rows if other != row]) for row in rows]
    held_out = [_throughput(row) for row in held_out_rows()]
    tuned, untuned = _split(throughput)
    memory_found = [_memory(row) for row in memory_rows()]
    measured = memory(model="resnet50", gpu="a100-40gb", precision="tf32", batch=256, world=1).total_gib
    return {
        "fitted_constants": len(FITTED),
        "fitted_rows": sum(row["predicted_one_gpu_per_s"] is not None for row in tuned),
        "constants": constants(),
        "one_gpu": _errors(tuned, "one_gpu_error"),
        "leave_one_out": _errors(tuned, "leave_one_out_one_gpu_error"),
        "scaling": _errors(tuned, "scaling_error"),
        "leave_one_out_scaling": _errors(tuned, "leave_one_out_scaling_error"),
        "constant_scaling": _errors(tuned, "constant_scaling_error"),
        "untuned": _both(untuned),
        "held_out": {name: _both(found) for name, found in zip(("tuned", "untuned"), _split(held_out), strict=True)},
        "throughput": throughput,
        "held_out_rows": held_out,
        "median_error": _median(tuned, "one_gpu_error", "total_error"),
        "worst_error": _worst(tuned, "one_gpu_error", "total_error"),
        "median_leave_one_out_error": _median(tuned, "leave_one_out_one_gpu_error", "leave_one_out_total_error"),
        "worst_leave_one_out_error": _worst(tuned, "leave_one_out_one_gpu_error", "leave_one_out_total_error"),
        "median_scaling_error": _median(tuned, "scaling_error"),
        "worst_scaling_error": _worst(tuned, "scaling_error"),
        "memory": memory_found,
        "memory_rows_right": sum(row["right"] for row in memory_found),
        "memory_measured_gib": MEASURED_GIB,
        "memory_predicted_gib": measured,
        "memory_error": measured / MEASURED_GIB - 1.0,
    }


@lru_cache(maxsize=1)
def committed() -> dict[str, Any]:
    """What `validate` found when it was last committed, rounded; a test holds it equal to what it finds now."""
    found: dict[str, Any] = json.loads(_COMMITTED.read_text())
    return found


def rounded(value: Any) -> Any:
    """`value` with its numbers at five digits: what differs between machines is left out."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    return [rounded(inner) for inner in value] if isinstance(value, list) else value


def main() -> None:
    """Write what is found now."""
    _COMMITTED.write_text(json.dumps(rounded(validate()), indent=1) + "\n")


def constants() -> list[dict[str, Any]]:
    """The constants of the model: name, value, and what it was fitted to, None where it was chosen."""
    fitted = {**dict.fromkeys(RATES, "one-GPU throughput"), **dict.fromkeys(SCALING, "scaling")}
    found: list[dict[str, Any]] = []
    for field in fields(Calibration):
        value = getattr(CALIBRATION, field.name)
        values = {field.name: value} if isinstance(value, float) else {f"tensor cores, {key}": share for key, share in value.items()}
        found.extend({"name": name, "value": number, "fitted_to": fitted.get(name)} for name, number in values.items())
    return found


def _throughput(row: Throughput, others: list[Throughput] | None = None) -> dict[str, Any]:
    """One row, predicted; a tuned one of which there are `others` also by constants fitted to those alone."""
    published = {
        "one_gpu": row.one_gpu_per_s, "total": row.total_per_s, "scaling": row.total_per_s / row.gpus / row.nodes / row.one_gpu_per_s,
    }
    now = _predicted(row, CALIBRATION)
    without = _predicted(row, fit(others)) if others and row.tuned else dict.fromkeys(published)
    known = row.batch is not None and row.nodes == 1  # a figure on several nodes shares its one-GPU figure with that on one
    found: dict[str, Any] = {
        "model": row.model, "gpu": row.gpu, "precision": row.precision, "batch": row.batch, "seq_len": row.seq_len,
        "accumulate": row.accumulate, "task": row.task, "gpus": row.gpus, "nodes": row.nodes, "network": row.network, "input": row.input,
        "tuned": row.tuned, "source": row.source,
        "published_one_gpu_per_s": row.one_gpu_per_s, "published_total_per_s": row.total_per_s, "published_scaling": published["scaling"],
        "predicted_one_gpu_per_s": now["one_gpu"] if known else None, "predicted_total_per_s": now["total"] if known else None,
        "predicted_scaling": now["scaling"],
    }
    several = row.gpus * row.nodes > 1
    for name, wanted in published.items():
        compared = several if name == "scaling" else known
        found[f"{name}_error"] = now[name] / wanted - 1.0 if compared else None
        left_out = without[name]
        found[f"leave_one_out_{name}_error"] = left_out / wanted - 1.0 if compared and left_out else None
    found["constant_scaling_error"] = CONSTANT_SCALING / published["scaling"] - 1.0 if several else None
    return found


def _predicted(row: Throughput, calibration: Calibration) -> dict[str, float]:
    batch, ranks = row.setup.batch, row.gpus * row.nodes
    one = batch / micro_step_seconds(row.one_gpu_setup, calibration=calibration)
    total = batch * ranks / micro_step_seconds(row.setup, gpus=row.gpus, nodes=row.nodes, calibration=calibration)
    return {"one_gpu": one, "total": total, "scaling": total / one / ranks}


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


def _split(rows: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Tuned and untuned rows."""
    listed = list(rows)
    return [row for row in listed if row["tuned"]], [row for row in listed if not row["tuned"]]


def _both(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: _errors(rows, f"{name}_error") for name in ("one_gpu", "scaling", "constant_scaling")}


def _errors(rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """How many rows, and the median and the worst absolute error."""
    found = _absolute(rows, (name,))
    return {"rows": len(found), "median": median(found) if found else None, "worst": max(found, default=None)}


def _absolute(rows: list[dict[str, Any]], names: tuple[str, ...]) -> list[float]:
    return [abs(row[name]) for row in rows for name in names if row[name] is not None]


def _median(rows: list[dict[str, Any]], *names: str) -> float:
    return median(_absolute(rows, names))


def _worst(rows: list[dict[str, Any]], *names: str) -> float:
    return max(_absolute(rows, names))


if __name__ == "__main__":
    main()
