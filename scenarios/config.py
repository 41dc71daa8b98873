"""A run's configuration: frozen, validated, and the key under which equal runs are shared.

Owns what may be asked of a run. Must not start anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from scenarios.catalog import SCENARIOS
from scenarios.costs.gpus import GPUS
from scenarios.costs.links import LINKS
from scenarios.costs.models import MODELS
from scenarios.faults import fault_line, one_of

Precision = Literal["fp32", "tf32", "amp"]

WATCHED_EPOCHS = 3
"""Epochs of a run that is told neither epochs nor steps; `RunConfig.view_s` may end it earlier."""


class RunConfig(BaseModel):
    """What to run. Build it with `RunConfig.parse`, which turns every fault into one readable ValueError."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: str
    gpu: str = "a100-80gb"
    gpus: int = Field(default=8, ge=1, le=8)
    model: str = ""
    """Displayed model, whose costs are charged; empty means the scenario's own."""
    batch: int = Field(default=256, ge=1, le=8192)
    """Samples per GPU and step."""
    precision: Precision = "amp"
    epochs: int | None = Field(default=None, ge=1, le=100)
    """None: as much as is worth watching, see `view_s` and WATCHED_EPOCHS."""
    steps: int | None = Field(default=None, ge=4, le=100_000)
    """None: no limit on the steps."""
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    hand_off: Literal["cpu", "nccl"] = "cpu"
    """rank0_loading: hand shards out over the host, or GPU to GPU."""
    preprocess: Literal["gpu", "cpu"] = "gpu"
    """Where samples are decoded and augmented."""
    workers: int = Field(default=8, ge=0, le=32)
    """DataLoader workers of each rank."""
    link: str = ""
    """What joins the GPUs of the node; empty means the GPU's own link."""
    straggler: int | None = Field(default=None, ge=0, le=7)
    """The rank whose GPU is slow; None: no rank."""
    straggler_pct: int = Field(default=50, ge=1, le=400)
    """By how much its kernels take longer."""
    backend: Literal["auto", "virtual", "cuda"] = "auto"

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """Validate `values` (from a CLI, a URL or a page).

        Raises ValueError with one line naming the field, its value and what is allowed.
        """
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise ValueError(fault_line(error, cls)) from None

    @classmethod
    def applied(cls, values: Mapping[str, Any]) -> Self:
        """`parse`, without the knobs that would have no effect here: one set of knobs serves every experiment of a lesson."""
        kept = dict(values)
        scenario = SCENARIOS.get(str(kept.get("scenario")))
        model = MODELS.get(str(kept.get("model") or (scenario.model if scenario else "")))
        if scenario is not None and not scenario.hands_out:
            kept.pop("hand_off", None)
        if model is not None and not model.decodes:
            kept.pop("preprocess", None)
        for name in scenario.decided if scenario is not None else ():
            kept.pop(name, None)
        return cls.parse(kept)

    @field_validator("scenario")
    @classmethod
    def _known_scenario(cls, value: str) -> str:
        return one_of(value, SCENARIOS)

    @field_validator("gpu")
    @classmethod
    def _known_gpu(cls, value: str) -> str:
        return one_of(value, GPUS)

    @field_validator("model")
    @classmethod
    def _known_model(cls, value: str) -> str:
        return value if value == "" else one_of(value, MODELS)

    @field_validator("link")
    @classmethod
    def _known_link(cls, value: str) -> str:
        return value if value == "" else one_of(value, LINKS)

    @model_validator(mode="after")
    def _straggler_is_a_rank(self) -> Self:
        if self.straggler is not None and self.straggler >= self.gpus:
            raise ValueError(f"straggler='{self.straggler}': must be a rank from 0 to {self.gpus - 1}")
        return self

    @model_validator(mode="after")
    def _knobs_have_an_effect(self) -> Self:
        if self.hand_off != "cpu" and not SCENARIOS[self.scenario].hands_out:
            raise ValueError(f"hand_off={self.hand_off!r}: must be cpu, as {self.scenario} hands no shards out")
        own = SCENARIOS[self.scenario].own
        for name in sorted(SCENARIOS[self.scenario].decided):
            if getattr(self, name) != own[name]:
                raise ValueError(f"{name}='{getattr(self, name)}': must be {own[name]}, as the script of {self.scenario} decides it")
        if self.preprocess != "gpu" and not MODELS[self.model].decodes:
            raise ValueError(f"preprocess={self.preprocess!r}: must be gpu, as the samples of {self.model} need no decoding")
        return self

    @model_validator(mode="before")
    @classmethod
    def _own_knobs(cls, values: Any) -> Any:
        """What is not given is the scenario's own, where it has an effect."""
        scenario = SCENARIOS.get(str(values.get("scenario"))) if isinstance(values, dict) else None
        if scenario is None:
            return values
        model = values.get("model") or scenario.model
        own = dict(scenario.own)
        if model not in MODELS or not MODELS[model].decodes:
            own.pop("preprocess", None)
        return {**own, **values, "model": model}

    @property
    def processes(self) -> int:
        """How many train."""
        return 1 if SCENARIOS[self.scenario].one_process else self.gpus

    @property
    def view_s(self) -> float | None:
        """Virtual seconds after which a run without --epochs and --steps ends; None: no limit."""
        return 12.0 if self.epochs is None and self.steps is None else None

    @property
    def key(self) -> str:
        """Equal for equal configs: the key of single flight and of recordings."""
        text = json.dumps(self.model_dump(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]
