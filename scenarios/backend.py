"""What a run uses, real GPUs or virtual ones, and why: decided once, before it starts, and said wherever the run is shown.

`auto` takes the real GPUs where those asked for are there and nothing asked for exists only on virtual ones. Owns the rules and their
wording. What there is comes from `machine.py`; must not import torch.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig
from scenarios.costs.gpus import GPUS
from scenarios.costs.links import LINKS
from scenarios.machine import RealGpus, TorchBuild, obstacles, real_gpus, torch_build, were_found, why_virtual
from scenarios.nvml.visible import Target, visible

_DEFAULT_GPU = str(RunConfig.model_fields["gpu"].default)

_KINDS: tuple[tuple[frozenset[str], str], ...] = tuple(
    (frozenset(words.split()), kind)
    for words, kind in (
        ("A100 SXM4 80GB", "a100-80gb"), ("A100 SXM4 40GB", "a100-40gb"), ("A100 80GB PCIE", "a100-80gb-pcie"),
        ("A100 40GB PCIE", "a100-40gb-pcie"), ("H100 80GB HBM3", "h100-80gb"), ("H100 PCIE", "h100-80gb-pcie"), ("H200", "h200-141gb"),
        ("B200", "b200-180gb"), ("V100 SXM2 16GB", "v100-16gb"), ("V100 SXM2 32GB", "v100-32gb"), ("RTX 4090", "rtx4090-24gb"),
        ("RTX 3090", "rtx3090-24gb"), ("L4", "l4-24gb"), ("T4", "t4-16gb"),
    )
)  # fmt: skip
_MAKERS = frozenset({"NVIDIA", "TESLA", "GEFORCE"})


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a run uses. `config.backend` is `cuda` for real GPUs; anything else is virtual."""

    config: RunConfig
    reason: str
    """One clause."""
    offer: str = ""
    """How real GPUs that are here could be used, one clause; empty where they are, or where there are none."""
    offered_gpus: int = 0
    """So many could be used for such a run; 0 where the number is not what is in the way."""

    @property
    def real(self) -> bool:
        return self.config.backend == "cuda"


def kind_of(name: str) -> str | None:
    """The kind in the table of GPUs by the driver's name of a card; None for a card that is not in it."""
    words = frozenset(re.findall(r"[A-Z0-9]+", name.upper())) - _MAKERS
    return next((kind for known, kind in _KINDS if known == words), None)


def usable(found: RealGpus, environ: Mapping[str, str] | None = None) -> tuple[Target, ...]:
    """The devices that ranks 0, 1 and so on of this machine can have: those CUDA shows, up to the first that answers nothing."""
    if found.inventory is None:
        return ()
    targets = visible(found.inventory.gpus, os.environ if environ is None else environ).targets
    working = next((number for number, target in enumerate(targets) if target.gpu.fault), len(targets))
    one = any(target.instance for target in targets)  # a process sees one MIG instance only
    return targets[: min(1, working) if one else working]


def choose(
    config: RunConfig, *, found: RealGpus | None = None, torch: TorchBuild | None = None, environ: Mapping[str, str] | None = None,
    gpu_named: bool = False,
) -> Choice:
    """Decide for `config`. `gpu_named`: somebody asked for this kind of GPU, also where it is the default.

    Raises ValueError, with one line that names the field, where real GPUs are demanded and cannot be used.
    """
    if config.backend == "virtual":
        return Choice(config=config, reason="virtual GPUs were asked for")
    torch = torch or torch_build()
    if config.backend == "auto" and found is None and (torch is None or torch.cuda is None):
        return Choice(config=config, reason=_without_cuda(torch))  # the driver need not be asked
    found = found or real_gpus()
    demanded = config.backend == "cuda"
    if obstacles(found, torch):
        if demanded:
            raise ValueError(f"backend='cuda': {why_virtual(found, torch)}; allowed here: auto, virtual")
        return Choice(config=config, reason=why_virtual(found, torch))
    here = usable(found, environ)
    names = tuple(target.gpu.name for target in here)
    what = were_found(names) if names else "no real GPU is shown to CUDA"
    if config.gpus > len(here):
        most = f"at most {len(here)}" if here else "0"
        if demanded:
            raise ValueError(f"gpus='{config.gpus}': must be {most} with backend cuda: {what}; or leave the backend to auto or virtual")
        verb = "was" if config.gpus == 1 else "were"
        offer = f"run with --gpus {len(here)} to use the real {'one' if len(here) == 1 else 'ones'}" if here else ""
        offered = 0 if _only_virtual(config) else len(here)
        return Choice(config=config, reason=f"{config.gpus} {verb} asked for and {what}", offer=offer, offered_gpus=offered)
    kind = kind_of(names[0])
    field, why = _named_otherwise(config, kind, names, gpu_named) or _only_virtual(config) or ("", "")
    if why and demanded:
        raise ValueError(f"{field}='{getattr(config, field)}': {why}; leave it out, or choose backend virtual")
    if why:
        return Choice(config=config, reason=f"{what}, but {why}", offer=f"leave out --{field} to use {_them(len(here))}")
    used = what if len(here) == config.gpus else f"{what}, of which the first {config.gpus} {'is' if config.gpus == 1 else 'are'} used"
    return Choice(config=config.model_copy(update={"backend": "cuda", "gpu": kind or config.gpu}), reason=used)


def _named_otherwise(config: RunConfig, kind: str | None, names: tuple[str, ...], gpu_named: bool) -> tuple[str, str] | None:
    if config.gpu == kind or (config.gpu == _DEFAULT_GPU and not gpu_named):
        return None
    return "gpu", f"the real ones are no {GPUS[config.gpu].label} but {names[0]}"


def _only_virtual(config: RunConfig) -> tuple[str, str] | None:
    """(field, clause) of what was asked for and no real GPU can be told to do."""
    if SCENARIOS[config.scenario].one_process:
        return "scenario", "one process that drives several GPUs is not yet observed on real ones"
    if config.straggler is not None:
        return "straggler", "no real GPU can be made slow on demand"
    if config.link:
        return "link", f"real GPUs are joined as they are, not by {LINKS[config.link].label}"
    return None


def _them(count: int) -> str:
    return "the real one" if count == 1 else "the real ones"


def _without_cuda(torch: TorchBuild | None) -> str:
    return f"the PyTorch installed here{f' ({torch.version})' if torch else ''} is built without CUDA"


def resolved(config: RunConfig) -> RunConfig:
    """`config` as it would run here; unchanged where it demands real GPUs that cannot be used."""
    try:
        return choose(config).config
    except ValueError:
        return config


def alike(configs: Sequence[RunConfig]) -> list[RunConfig]:
    """`configs` so that all run on real GPUs or all on virtual ones: their results are to be compared."""
    real = [resolved(config).backend == "cuda" for config in configs]
    if any(real) and not all(real):
        return [config.model_copy(update={"backend": "virtual"}) for config in configs]
    return list(configs)
