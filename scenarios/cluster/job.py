"""What a job file is asked to hold, checked value by value: names, sizes, limits, and where the samples go.

Owns the request and what is allowed in it. Every text is limited to characters that mean nothing to a shell or to YAML, and is quoted
all the same where it is written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from scenarios.cluster.wide import MOST_RANKS, parse_wide
from scenarios.config import RunConfig
from scenarios.faults import fault_line

_LABEL = re.compile(r"[a-z]([a-z0-9-]{0,46}[a-z0-9])?")
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,+-]{0,63}")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}")
_PATH = re.compile(r"/[A-Za-z0-9_./@+=, -]{0,254}")
_TIME = re.compile(r"(\d{1,3}):([0-5]\d):([0-5]\d)")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\]")


class JobRequest(BaseModel):
    """One job: `nodes` times torchrun with `gpus_per_node` ranks. Build it with `JobRequest.parse`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: str
    nodes: int = Field(default=1, ge=1, le=MOST_RANKS)
    gpus_per_node: int = Field(default=8, ge=1, le=16)
    job_name: str = ""
    """Empty: after the experiment."""
    time: str = "00:30:00"
    partition: str = ""
    account: str = ""
    namespace: str = ""
    image: str = "shardlab:latest"
    claim: str = "shardlab-records"
    workdir: str = ""
    venv: str = ""
    collect: str = ""
    """Address of a running app that takes the samples; empty: a folder takes them."""
    record: str = ""
    """Folder on a disk that all nodes share."""

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """Raises ValueError with one line naming the field, its value and what is allowed."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise ValueError(fault_line(error, cls)) from None

    @field_validator("job_name", "namespace", "claim")
    @classmethod
    def _label(cls, value: str) -> str:
        return _matching(value, _LABEL, "must be 1 to 48 lower-case letters, digits and hyphens, beginning with a letter")

    @field_validator("partition", "account")
    @classmethod
    def _word(cls, value: str) -> str:
        return _matching(value, _WORD, "must be 1 to 64 letters, digits and _.,+-, not beginning with a sign")

    @field_validator("image")
    @classmethod
    def _image(cls, value: str) -> str:
        return _matching(value, _IMAGE, "must be the name of a container image, such as registry.example.org/shardlab:1.0")

    @field_validator("workdir", "venv", "record")
    @classmethod
    def _path(cls, value: str) -> str:
        return _matching(value, _PATH, "must be an absolute path of letters, digits, spaces and _./@+=,-")

    @field_validator("time")
    @classmethod
    def _limit(cls, value: str) -> str:
        allowed = "must be hours, minutes and seconds as HH:MM:SS, above 00:00:00"
        if not value.strip("0:"):
            raise ValueError(allowed)
        return _matching(value, _TIME, allowed)

    @field_validator("collect")
    @classmethod
    def _address(cls, value: str) -> str:
        return value and collector_address(value)

    @model_validator(mode="after")
    def _few_enough(self) -> Self:
        if self.ranks > MOST_RANKS:
            most = MOST_RANKS // self.gpus_per_node
            raise ValueError(f"nodes='{self.nodes}': must be at most {most} with {self.gpus_per_node} GPUs each")
        return self

    @property
    def ranks(self) -> int:
        return self.nodes * self.gpus_per_node

    @property
    def name(self) -> str:
        return self.job_name or f"shardlab-{self.scenario.replace('_', '-')}"

    @property
    def limit_s(self) -> int:
        hours, minutes, seconds = map(int, self.time.split(":"))
        return (hours * 60 + minutes) * 60 + seconds


class Job:
    """A request with the run's own options: what the three kinds of file have in common."""

    def __init__(self, request: JobRequest, options: Mapping[str, Any]) -> None:
        """Raises ValueError as `RunConfig.parse` does."""
        self.request = request
        self.config: RunConfig = parse_wide({"scenario": request.scenario, "gpus": request.ranks, **options})
        if self.config.processes < self.config.gpus:
            raise ValueError(f"scenario={request.scenario!r}: must have a process for each GPU, as torchrun starts them")
        self._given = tuple(options)

    @property
    def on_gpus(self) -> bool:
        """Whether the job asks for GPUs. Virtual ones need none."""
        return self.config.backend != "virtual"

    @property
    def what(self) -> str:
        nodes, gpus = self.request.nodes, self.request.gpus_per_node
        where = f"1 node with {gpus} GPUs" if nodes == 1 else f"{nodes} nodes with {gpus} GPUs each, {self.request.ranks} ranks"
        return f"{self.request.scenario}, {where}"

    def torchrun(self, *, endpoint: str, run: str, record: str, conf: str = "") -> str:
        """The line that all files are built around. The arguments are shell text, such as a quoted variable."""
        options = [f"--{name.replace('_', '-')} {shlex.quote(str(getattr(self.config, name)))}" for name in self._given]
        if self.request.collect:
            options.append(f"--collect {shlex.quote(self.request.collect)} --run-id {run}")
        if self.request.record or not self.request.collect:
            options.append(f"--record {record}")
        return " ".join(
            [
                f"torchrun --nnodes {self.request.nodes} --nproc-per-node {self.request.gpus_per_node}",
                f"--rdzv-backend c10d --rdzv-endpoint {endpoint} --rdzv-id {run}",
                *([f"--rdzv-conf {conf}"] if conf else []),
                f"-m scenarios.catalog.{self.request.scenario}",
                *options,
            ]
        )


def collector_address(value: str) -> str:
    """`value` without a slash at its end; raises ValueError where it is no http address of a server."""
    allowed = "must be the address of a running app, such as http://shardlab.example.org:8501"
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise ValueError(allowed) from None
    host = parts.netloc.removesuffix(f":{port}") if port is not None else parts.netloc
    plain = parts.path in ("", "/") and not parts.query and not parts.fragment
    if parts.scheme not in ("http", "https") or not plain or not _HOST.fullmatch(host) or port == 0:
        raise ValueError(allowed)
    return value.rstrip("/?#")


def _matching(value: str, pattern: re.Pattern[str], allowed: str) -> str:
    """`value` where it is empty or fits; else ValueError."""
    if value and (not pattern.fullmatch(value) or "//" in value or ".." in value):
        raise ValueError(allowed)
    return value
