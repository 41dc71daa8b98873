"""What the samples on a page are, in the words that every page uses: virtual or nvml.

Owns these words, and what the bar on top says of this machine. Must not import streamlit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scenarios.backend import usable
from scenarios.machine import RealGpus, TorchBuild, obstacles, real_gpus, torch_build, were_found, why_virtual

SOURCE_WORDS = {"virtual": "Simulated timing, real DDP", "nvml": "Real GPUs, NVML"}
MOST_GPUS = 8

_MODELLED = "The training code runs for real; times, memory and power are modelled."


@dataclass(frozen=True, kw_only=True)
class Badge:
    """`source` is what a run gets here that asks for nothing special."""

    source: str
    title: str

    @property
    def words(self) -> str:
        return SOURCE_WORDS[self.source]


def told(sources: Iterable[str | None]) -> str:
    """Of several runs shown together: `virtual`, `nvml`, both, or nothing where none is known."""
    known = set(sources)
    return " and ".join(source for source in ("virtual", "nvml") if source in known)


def seconds_of(source: str) -> str:
    """The name of a time axis."""
    return "virtual seconds" if source == "virtual" else "seconds"


def machine_badge(found: RealGpus | None = None, torch: TorchBuild | None = None) -> Badge:
    """For the bar on top. The driver is asked only where PyTorch could use its GPUs: no page waits for it in vain."""
    torch = torch or torch_build()
    if torch is None or torch.cuda is None:
        return Badge(source="virtual", title=_MODELLED)
    found = found or real_gpus()
    here = () if obstacles(found, torch) else usable(found)
    if not here:
        return Badge(source="virtual", title=_MODELLED)
    what = were_found(tuple(target.gpu.name for target in here))
    if len(here) < MOST_GPUS:
        of = "of one GPU uses it" if len(here) == 1 else f"of up to {len(here)} uses them"
        return Badge(source="virtual", title=f"{_MODELLED} {_capital(what)}; a run {of}, and then says NVML.")
    return Badge(
        source="nvml", title=f"{_capital(what)}: runs use them, and NVML reads them. A run on virtual GPUs says so.",
    )


def machine_heading(found: RealGpus, torch: TorchBuild | None = None) -> str:
    """What was found, and what it means for runs: a sentence or two."""
    why, here = why_virtual(found, torch), usable(found)
    if why or not here:
        return f"{_capital(why or 'no real GPU is shown to CUDA')}, so runs use virtual GPUs."
    what = _capital(were_found(tuple(target.gpu.name for target in here)))
    if len(here) >= MOST_GPUS:
        return f"{what}, and runs use them."
    of = "one GPU use it" if len(here) == 1 else f"up to {len(here)} GPUs use them"
    return f"{what}. Runs of {of}; runs of more, such as those of most lessons, use virtual ones."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
