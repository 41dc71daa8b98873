"""Runs of more GPUs than one machine of ours starts: a cluster's ranks may be more than eight.

Owns that wider limit. What this machine starts itself stays within `RunConfig`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from scenarios.config import RunConfig

MOST_RANKS = 64


class WideConfig(RunConfig):
    """A config whose ranks somebody else starts."""

    gpus: int = Field(default=8, ge=1, le=MOST_RANKS)


def parse_wide(values: Mapping[str, Any]) -> RunConfig:
    """A plain `RunConfig` where it suffices, so that equal configs stay equal. Raises ValueError as `RunConfig.parse` does."""
    config = WideConfig.parse(values)
    return config if config.gpus > 8 else RunConfig.parse(values)
