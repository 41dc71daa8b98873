"""The small seeded irregularity of kernels and hosts, so that a lane is neither a ruler's line nor different from run to run.

Owns the random factors. Every rank can compute every other rank's factors: they depend on seed, rank, step and kind alone.
"""

from __future__ import annotations

import zlib
from functools import lru_cache

from scenarios.telemetry import Kind

SPREAD: dict[Kind, float] = {
    "forward": 0.008, "backward": 0.008, "optimizer": 0.01, "decode": 0.03, "load": 0.05, "scatter": 0.05,
    "validate": 0.008, "checkpoint": 0.05, "replicate": 0.05,
}
"""Relative standard deviations; our choice, not fitted. Kinds that are missing have none."""


@lru_cache(maxsize=65_536)
def factor(seed: int, rank: int, step: int, kind: Kind) -> float:
    """A factor around 1 for one kind of work of one rank in one step, within three standard deviations."""
    spread = SPREAD.get(kind, 0.0)
    if spread == 0.0:
        return 1.0
    bits = zlib.crc32(f"{seed}/{rank}/{step}/{kind}".encode())
    first, second = (((bits >> shift) & 0xFFFF) * 0x9E3779B1 & 0xFFFFFFFF for shift in (0, 16))
    # Three uniform variables of variance 1/12, from three mixes of the hash, make one of standard deviation 0.5 within +-1.5.
    draw = (first ^ second ^ bits) / 2**32 + first / 2**32 + second / 2**32 - 1.5
    return 1.0 + spread * 2.0 * draw


def jittered(duration_ns: int, seed: int, rank: int, step: int, kind: Kind) -> int:
    return round(duration_ns * factor(seed, rank, step, kind))
