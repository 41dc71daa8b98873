"""What the query strings of pages have in common: one value per parameter, tokens, and the knobs of a run, each checked by itself.

Owns how a value that cannot be used is left out and told. Must not know which parameters a page has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scenarios.config import RunConfig

_TOKEN = re.compile(r"[A-Za-z0-9_-]{6,64}")
_ANY_SCENARIO = "rank0_loading"
"""Knobs are checked by themselves, with a scenario on which each of them has an effect."""
LONGEST_SHOWN = 40


@dataclass(frozen=True, kw_only=True)
class LinkFault:
    """A parameter that was left out, and why."""

    parameter: str
    message: str
    """For people: names the parameter, its value and what is allowed."""

    def __str__(self) -> str:
        return self.message


def link_fault(name: str, value: str, message: str) -> LinkFault:
    """A fault with name and value shown, shortened."""
    return LinkFault(parameter=name, message=f"{shown(name)}={shown(value)}: {message}" if value else f"{shown(name)}: {message}")


def shown(text: str) -> str:
    """`text` in quotes, at most LONGEST_SHOWN characters of it."""
    return repr(text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…")


def single_values(query: Mapping[str, str | Sequence[str]], parameters: Sequence[str], faults: list[LinkFault]) -> dict[str, str]:
    """The values of known parameters that are given once and are not empty; faults for the others."""
    values: dict[str, str] = {}
    for name, given in query.items():
        several = [given] if isinstance(given, str) else list(given)
        if name not in parameters:
            faults.append(link_fault(name, "".join(several[-1:]), f"is no parameter of this page; there are {', '.join(parameters)}"))
        elif len(several) > 1:
            faults.append(link_fault(name, ", ".join(several), "is given more than once"))
        elif several and several[0] != "":
            values[name] = several[0]
    return values


def is_token(value: str) -> bool:
    """Whether it may be the name of a run, an attempt or a sweep."""
    return _TOKEN.fullmatch(value) is not None


def token(name: str, values: Mapping[str, str], faults: list[LinkFault]) -> str | None:
    """The parameter `name` where it has the form of a token; whether it exists is for others to say."""
    value = values.get(name)
    if value is None or is_token(value):
        return value
    faults.append(link_fault(name, value, "must be 6 to 64 letters, digits, - or _"))
    return None


def knobs(values: Mapping[str, str], names: Sequence[str], faults: list[LinkFault]) -> dict[str, str | int]:
    """Those of the knobs `names` that are given and allowed."""
    found: dict[str, str | int] = {}
    for name in names:
        if name not in values:
            continue
        try:
            found[name] = getattr(RunConfig.parse({"scenario": _ANY_SCENARIO, name: values[name]}), name)
        except ValueError as error:
            faults.append(LinkFault(parameter=name, message=str(error)))
    return found


def changed_knobs(given: Mapping[str, str | int], scenario: str | None = None) -> dict[str, str | int]:
    """`given` without what is a default anyway. Without a scenario a model always counts: which one is the default depends on it."""
    defaults = RunConfig.parse({"scenario": scenario or _ANY_SCENARIO}).model_dump()
    return {name: value for name, value in given.items() if (name == "model" and scenario is None) or value != defaults[name]}
