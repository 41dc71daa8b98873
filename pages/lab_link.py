"""The lab's address: all that is set there, in readable names, and which knobs mean something for which run.

Every value is checked by itself; one that is wrong, impossible or without effect is left out with a sentence, the others hold. Must not
import streamlit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self
from urllib.parse import urlencode

from scenarios.addresses import LinkFault, changed_knobs, is_token, knobs, link_fault, single_values, token
from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig
from scenarios.costs.gpus import GPUS
from scenarios.costs.links import LINKS
from scenarios.costs.models import MODELS
from scenarios.sweep_plan import KNOBS as SWEPT
from scenarios.sweep_plan import SweepPlan

KNOBS = (
    "gpu", "gpus", "model", "batch", "precision", "workers", "hand_off", "preprocess", "link", "straggler", "straggler_pct", "seed",
    "backend",
)
SCENARIO, RUN, VIEW, PIN, SWEEP, OVER, VALUES = "scenario", "run", "view", "pin", "sweep", "over", "values"
PARAMETERS = (SCENARIO, *KNOBS, RUN, VIEW, PIN, SWEEP, OVER, VALUES)
VIEWS = ("time", "memory", "predicted", "compare", "sweep")
PINS = 4
"""Runs that can be compared."""
DEFAULT_SCENARIO = "sharded"
LONGEST_LIST = 300


@dataclass(frozen=True, kw_only=True)
class LabLink:
    """What is set in the lab. Everything in it is usable."""

    scenario: str = DEFAULT_SCENARIO
    knobs: Mapping[str, str | int] = field(default_factory=dict)
    """Only those that were given; together with the scenario they make a run."""
    run: str | None = None
    """The run that is shown."""
    view: str | None = None
    pins: tuple[str, ...] = ()
    """Runs to compare."""
    sweep: str | None = None
    """The sweep that is shown."""
    over: str | None = None
    """The knob chosen for the next sweep."""
    values: tuple[str | int, ...] = ()
    """And its values."""
    faults: tuple[LinkFault, ...] = ()

    @property
    def config(self) -> RunConfig:
        """The run that the knobs describe."""
        return RunConfig.parse({"scenario": self.scenario, **self.knobs})

    def with_config(self, config: RunConfig) -> Self:
        """The same with the knobs of `config`, as far as the lab has them."""
        given = {name: value for name in KNOBS if (value := getattr(config, name)) is not None}
        if config.backend == "cuda":  # decided where it ran: elsewhere the same knobs are run as that machine can
            del given["backend"]
        return replace(self, scenario=config.scenario, knobs=_settled(config.scenario, given, []), faults=())

    def query(self) -> dict[str, str]:
        """The parameters of the address; what is a default is left out."""
        named = {
            SCENARIO: None if self.scenario == DEFAULT_SCENARIO else self.scenario, **changed_knobs(self.knobs, self.scenario),
            RUN: self.run, VIEW: self.view, PIN: ".".join(self.pins), SWEEP: self.sweep, OVER: self.over,
            VALUES: ",".join(map(str, self.values)),
        }
        return {name: str(value) for name, value in named.items() if value not in (None, "")}

    def address(self) -> str:
        """The query string with its `?`; empty for the lab as it opens."""
        query = urlencode(self.query(), safe=",")
        return f"?{query}" if query else ""


def parse_lab_link(query: Mapping[str, str | Sequence[str]]) -> LabLink:
    """Read the lab's address; never raises."""
    faults: list[LinkFault] = []
    values = single_values(query, PARAMETERS, faults)
    scenario = _one_of(SCENARIO, values, SCENARIOS, faults) or DEFAULT_SCENARIO
    over = _one_of(OVER, values, SWEPT, faults)
    settled = _settled(scenario, knobs(values, KNOBS, faults), faults)
    return LabLink(
        scenario=scenario, knobs=settled, run=token(RUN, values, faults),
        view=_one_of(VIEW, values, VIEWS, faults), pins=_pins(values, faults), sweep=token(SWEEP, values, faults),
        over=over, values=_swept_values(over, values, faults), faults=tuple(faults),
    )


def why_not(config: RunConfig) -> dict[str, str]:
    """The knobs that mean nothing for this run, each with the reason."""
    model = MODELS[config.model]
    decided = SCENARIOS[config.scenario].decided
    reasons = {
        "hand_off": "" if SCENARIOS[config.scenario].hands_out else "Only if GPU 0 loads all",
        "preprocess": "" if model.decodes else f"{model.unit.capitalize()} need none",
        "workers": f"Always {config.workers} in this script" if "workers" in decided else "",
        "link": "" if config.gpus > 1 else "One GPU needs no link",
        "straggler": "" if config.gpus > 1 else "One GPU holds nobody back",
        "straggler_pct": "" if config.gpus > 1 and config.straggler is not None else "Choose a slow GPU first",
    }
    return {name: reason for name, reason in reasons.items() if reason}


def changed(link: LabLink, /, **values: Any) -> LabLink:
    """`link` with other knobs (or another scenario); what no longer means anything is dropped, without a word."""
    scenario = values.pop(SCENARIO, link.scenario)
    given = {**link.knobs, **values}
    if scenario != link.scenario:  # a default of the one before is no wish
        given = {**changed_knobs(link.knobs, link.scenario), **values}
        given.pop("model", None)
    if "link" in values and values["link"] is None:  # the card's own, which need not be the script's
        given["link"] = ""
    given = {name: value for name, value in given.items() if value is not None}
    return replace(link, scenario=scenario, knobs=_settled(scenario, given, []), faults=())


def lasting(plan: SweepPlan) -> str:
    """The base of a sweep in words: what all its points have in common."""
    return described(plan.base, without=plan.knob)


def described(config: RunConfig, *, without: str = "") -> str:
    """A run in one line: what it is, and whatever is not as usual."""
    parts = {
        "gpus": f"{config.gpus} GPU{'s' if config.gpus > 1 else ''}", "gpu": _gpu_words(config), "model": MODELS[config.model].label,
        "batch": f"batch {config.batch}", "precision": config.precision,
    }
    if without not in ("gpu", "gpus") and config.gpus > 1:
        parts["gpus"] = f"{config.gpus} × {parts.pop('gpu')}"
    unusual = changed_knobs({name: value for name in KNOBS if (value := getattr(config, name)) is not None}, config.scenario)
    words = {
        "workers": f"{config.workers} workers", "hand_off": "hand-off by NCCL", "preprocess": "decoding on the CPU",
        "link": LINKS[config.link].label if config.link else "", "seed": f"seed {config.seed}",
        "straggler": f"GPU {config.straggler} slower by {config.straggler_pct} %", "straggler_pct": "", "backend": "",
    }
    if without == "straggler_pct":
        words["straggler"] = f"GPU {config.straggler} slower"
    extras = {name: text for name, text in words.items() if name in unusual and text}
    shown = [text for name, text in {**parts, **extras}.items() if name != without]
    return " · ".join([SCENARIOS[config.scenario].title, *shown])


def _gpu_words(config: RunConfig) -> str:
    """A real GPU's own name stands in the record's head; the config knows only which row of the table it is, if any."""
    return "real GPU" if config.backend == "cuda" else GPUS[config.gpu].label


def _settled(scenario: str, given: Mapping[str, str | int], faults: list[LinkFault]) -> dict[str, str | int]:
    """`given` without what does not go together, and without what has no effect."""
    own = {"model": SCENARIOS[scenario].model, **SCENARIOS[scenario].own}
    if given.get("link") == "" and "link" in own:
        given = {**given, "link": GPUS[str(given.get("gpu", RunConfig.model_fields["gpu"].default))].link}
    left = {name: value for name, value in given.items() if value not in ("", own.get(name, ""))}
    while True:
        try:
            config = RunConfig.parse({"scenario": scenario, **left})
            break
        except ValueError as error:
            name = str(error).split("=", 1)[0]
            faults.append(LinkFault(parameter=name, message=str(error)))
            left = {other: value for other, value in left.items() if other != name} if name in left else {}
    if "link" not in own and left.get("link") == GPUS[config.gpu].link:  # said or not, it is the same link, and the same run
        del left["link"]
    usual = changed_knobs(left, scenario)
    for name, reason in why_not(config).items():
        if left.pop(name, None) is not None and name in usual:
            faults.append(link_fault(name, str(getattr(config, name)), f"has no effect here. {reason}."))
    return left


def _one_of(name: str, values: Mapping[str, str], allowed: Sequence[str] | Mapping[str, object], faults: list[LinkFault]) -> str | None:
    value = values.get(name)
    if value is None or value in allowed:
        return value
    faults.append(link_fault(name, value, f"must be one of {', '.join(allowed)}"))
    return None


def _pins(values: Mapping[str, str], faults: list[LinkFault]) -> tuple[str, ...]:
    given = values.get(PIN, "")
    names = tuple(dict.fromkeys(given[:LONGEST_LIST].split("."))) if given else ()
    if len(names) > PINS or not all(is_token(name) for name in names):
        faults.append(link_fault(PIN, given, f"must be the ids of at most {PINS} runs, with a dot between them"))
        return ()
    return names


def _swept_values(over: str | None, values: Mapping[str, str], faults: list[LinkFault]) -> tuple[str | int, ...]:
    """Values for the sweep's form, each possible by itself. Whether they make a sweep is said when one is asked for."""
    given = values.get(VALUES)
    if given is None:
        return ()
    if over is None:
        faults.append(link_fault(VALUES, given, "needs a knob to belong to (over)"))
        return ()
    found: dict[str | int, None] = {}
    for text in given[:LONGEST_LIST].split(","):
        one = knobs({over: text}, (over,), faults) if text else {}
        found.update(dict.fromkeys(one.values()))
    return tuple(found)
