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
from scenarios.costs.links import LINKS, NETWORKS
from scenarios.costs.models import MODELS
from scenarios.costs.predict import Input, predict
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
    "link": "what joins the GPUs of a node; default: the GPU's own, such as nvlink3",
    "nodes": "nodes with so many GPUs each, at most 64 GPUs together (default 1)",
    "network": f"what joins the nodes: one of {', '.join(NETWORKS)} (required for more than one)",
    "input": "loader (the default): a host feeds images as published runs do; or synthetic: samples are ready-made",
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
    link: str = ""
    nodes: int = Field(default=1, ge=1, le=64)
    network: str = ""
    input: Input = "loader"

    @field_validator("model")
    @classmethod
    def _known_model(cls, value: str) -> str:
        return one_of(value, MODELS)

    @field_validator("gpu")
    @classmethod
    def _known_gpu(cls, value: str) -> str:
        return one_of(value, GPUS)

    @field_validator("link")
    @classmethod
    def _known_link(cls, value: str) -> str:
        return value if value == "" else one_of(value, LINKS)

    @field_validator("network")
    @classmethod
    def _known_network(cls, value: str) -> str:
        return value if value == "" else one_of(value, NETWORKS)

    @model_validator(mode="after")
    def _together(self) -> _Question:
        if self.gpus * self.nodes > 64:
            raise ValueError(f"nodes='{self.nodes}': with {self.gpus} GPUs each, at most {64 // self.gpus}")
        if self.nodes > 1 and not self.network:
            raise ValueError(f"network='': must be given for more than one node: one of {', '.join(NETWORKS)}")
        if self.nodes == 1 and self.network:
            raise ValueError(f"network='{self.network}': joins nodes, of which there is one; give nodes too, or leave it out")
        return self

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
    ranks = question.gpus * question.nodes
    print(f"{found['samples_per_second']:,.1f} {unit}/s on {ranks} GPUs, {found['one_gpu_samples_per_second']:,.1f} on one: "
          f"scaling {100 * found['scaling']:.1f} %")
    print(f"{found['memory_gib']:.1f} GiB of {limit_gib:.1f} GiB on each: {'fits' if found['fits'] else 'does not fit'}")
    if unit == "images":
        fed = "decoded by the host, as in published runs" if question.input == "loader" else "ready-made"
        print(f"Images {fed}. The experiments of `run` decode them on the GPUs, which takes part of each step.")
    return 0


def validate_command(options: argparse.Namespace) -> int:
    """Print predicted against published rows with their errors."""
    found = validate()
    if options.json:
        print(json.dumps(found))
        return 0
    console = Console()
    console.print(_throughput_table("Rows that constants are fitted to, and untuned ones", found["throughput"]))
    console.print(_throughput_table("Held out: other published rows, never fitted to", found["held_out_rows"]))
    console.print(_memory_table(found["memory"]))
    for line in summary(found):
        console.print(line, highlight=False)
    return 0


def summary(found: dict[str, Any]) -> list[str]:
    """What `validate` says in sentences: each kind of error apart."""
    held_out = found["held_out"]
    return [
        f"{found['fitted_constants']} constants fitted to {found['fitted_rows']} tuned rows of one-GPU throughput and "
        f"{found['scaling']['rows']} of scaling.",
        f"One GPU: {_spread(found['one_gpu'])}. Each row predicted by constants fitted without it: {_spread(found['leave_one_out'])}.",
        f"Scaling: {_spread(found['scaling'])}; fitted without the row {_spread(found['leave_one_out_scaling'])}; "
        f"the constant 0.945 would give {_spread(found['constant_scaling'])}.",
        f"Untuned rows, never fitted to: one GPU {_spread(found['untuned']['one_gpu'])}; scaling {_spread(found['untuned']['scaling'])}.",
        f"Held out, tuned scripts: one GPU {_spread(held_out['tuned']['one_gpu'])}; scaling {_spread(held_out['tuned']['scaling'])}.",
        f"Held out, untuned or older scripts: one GPU {_spread(held_out['untuned']['one_gpu'])}; "
        f"scaling {_spread(held_out['untuned']['scaling'])}.",
        f"Memory: {found['memory_rows_right']} of {len(found['memory'])} published limits on the right side; "
        f"{found['memory_predicted_gib']:.1f} GiB predicted where {found['memory_measured_gib']:.1f} GiB were measured.",
    ]


def _spread(errors: dict[str, Any]) -> str:
    return f"median error {_pct(errors['median'])}, worst {_pct(errors['worst'])} ({errors['rows']} rows)"


def _throughput_table(title: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(title=title)
    for title in ("Model", "GPU", "Precision", "Batch", "GPUs", "Published", "Predicted", "Error", "Left out", "Scaling error", "Tuned"):
        table.add_column(title, justify="left" if title in ("Model", "GPU", "Precision", "Tuned") else "right")
    for row in rows:
        predicted = row["predicted_one_gpu_per_s"]
        table.add_row(
            row["model"], row["gpu"], row["precision"], str(row["batch"] or "n/a"),
            str(row["gpus"] * row["nodes"]), f"{row['published_one_gpu_per_s']:,.1f}",
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
