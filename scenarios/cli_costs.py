"""`python -m scenarios predict|validate`: the cost model from a terminal.

Owns the arguments and what is printed; the figures are those of `scenarios/costs/`. Must not import torch.
"""

from __future__ import annotations

import argparse
import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from rich.console import Console
from rich.table import Table

from scenarios.config import Precision
from scenarios.costs.gpus import GPUS
from scenarios.costs.models import MODELS
from scenarios.costs.predict import predict
from scenarios.costs.validate import validate
from scenarios.faults import fault_line, one_of

PREDICT_OPTIONS = {
    "model": f"one of {', '.join(MODELS)} (required)",
    "gpu": "kind of GPU, such as a100-80gb (required)",
    "precision": "fp32, tf32 or amp (default amp)",
    "batch": "samples per GPU and micro-step (required)",
    "gpus": "GPUs of one node, 1 to 64 (default 8)",
    "seq_len": "tokens per sequence; default: the model's own",
    "accumulate": "micro-steps for each optimizer step (default 1)",
    "task": "pretrain or finetune (the default): which head and loss",
    "path": "pytorch (the default) or tensorflow: whose static memory",
}


class _Question(BaseModel):
    """What may be asked of `predict`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    gpu: str
    precision: Precision = "amp"
    batch: int = Field(ge=1, le=65_536)
    gpus: int = Field(default=8, ge=1, le=64)
    seq_len: int | None = Field(default=None, ge=8, le=8_192)
    accumulate: int = Field(default=1, ge=1, le=100_000)
    task: Literal["pretrain", "finetune"] = "finetune"
    path: Literal["pytorch", "tensorflow"] = "pytorch"

    @field_validator("model")
    @classmethod
    def _known_model(cls, value: str) -> str:
        return one_of(value, MODELS)

    @field_validator("gpu")
    @classmethod
    def _known_gpu(cls, value: str) -> str:
        return one_of(value, GPUS)

    @model_validator(mode="after")
    def _sequences(self) -> _Question:
        if self.seq_len is not None and MODELS[self.model].seq_len is None:
            raise ValueError(f"seq_len='{self.seq_len}': {self.model} has no sequences; leave it out")
        return self


def predict_command(options: argparse.Namespace) -> int:
    """Print the prediction. Raises ValueError naming the field, its value and what is allowed."""
    given = {name: getattr(options, name) for name in PREDICT_OPTIONS if getattr(options, name) is not None}
    try:
        question = _Question.model_validate(given)
    except ValidationError as error:
        raise ValueError(_fault(error)) from None
    found = predict(**question.model_dump())
    if options.json:
        print(json.dumps(found))
        return 0
    unit = MODELS[question.model].unit
    limit_gib = GPUS[question.gpu].memory_gib
    print(f"{found['samples_per_second']:,.1f} {unit}/s on {question.gpus} GPUs, {found['one_gpu_samples_per_second']:,.1f} on one: "
          f"scaling {100 * found['scaling']:.1f} %")
    print(f"{found['memory_gib']:.1f} GiB of {limit_gib:.1f} GiB on each: {'fits' if found['fits'] else 'does not fit'}")
    return 0


def validate_command(options: argparse.Namespace) -> int:
    """Print predicted against published rows with their errors."""
    found = validate()
    if options.json:
        print(json.dumps(found))
        return 0
    console = Console()
    console.print(_throughput_table(found["throughput"]))
    console.print(_memory_table(found["memory"]))
    console.print(
        f"{found['fitted_constants']} constants fitted to {found['fitted_rows']} tuned rows. "
        f"Median error {_pct(found['median_error'])}, worst {_pct(found['worst_error'])}. "
        "Each row predicted by constants fitted without it: median "
        f"{_pct(found['median_leave_one_out_error'])}, worst {_pct(found['worst_leave_one_out_error'])}.",
        highlight=False,
    )
    console.print(
        f"Memory: {found['memory_rows_right']} of {len(found['memory'])} published limits on the right side; "
        f"{found['memory_predicted_gib']:.1f} GiB predicted where {found['memory_measured_gib']:.1f} GiB were measured.",
        highlight=False,
    )
    return 0


def _throughput_table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="Samples per second on one GPU, and scaling")
    for title in ("Model", "GPU", "Precision", "Batch", "Published", "Predicted", "Error", "Left out", "Scaling error", "Tuned"):
        table.add_column(title, justify="left" if title in ("Model", "GPU", "Precision", "Tuned") else "right")
    for row in rows:
        predicted = row["predicted_one_gpu_per_s"]
        table.add_row(
            row["model"], row["gpu"], row["precision"], str(row["batch"] or "n/a"), f"{row['published_one_gpu_per_s']:,.1f}",
            "n/a" if predicted is None else f"{predicted:,.1f}", _pct(row["one_gpu_error"]), _pct(row["leave_one_out_one_gpu_error"]),
            _pct(row["scaling_error"]), "yes" if row["tuned"] else "no",
        )
    return table


def _memory_table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="Memory at published limits, GiB")
    for title in ("Model", "GPU", "Precision", "Limit", "Fits", "Predicted", "Out of memory", "Predicted", "Right"):
        table.add_column(title, justify="left" if title in ("Model", "GPU", "Precision", "Right") else "right")
    for row in rows:
        table.add_row(
            row["model"], row["gpu"], row["precision"], f"{row['limit_gib']:.1f}",
            str(row["fits_batch"] or "n/a"), _gib(row["fits_batch_gib"]),
            str(row["oom_batch"] or "n/a"), _gib(row["oom_batch_gib"]), "yes" if row["right"] else "no",
        )
    return table


def _pct(share: float | None) -> str:
    return "n/a" if share is None else f"{100 * share:.1f} %"


def _gib(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.1f}"


def _fault(error: ValidationError) -> str:
    fault = error.errors()[0]
    if fault["type"] == "missing":
        field = str(fault["loc"][0])
        return f"{field}=None: must be given with --{field.replace('_', '-')}: {PREDICT_OPTIONS[field]}"
    return fault_line(error, _Question)
