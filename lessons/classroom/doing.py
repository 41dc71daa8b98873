"""What an action of an instructor takes and gives, for the modules that hold the actions.

Owns these shapes and the checks of single arguments, which come from a browser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lessons.classroom.model import ClassState

LONGEST_TIMER_S = 3_600


@dataclass(frozen=True, kw_only=True)
class Done:
    """How the class stands after an action, and what the log says of it; nothing where that would be noise."""

    state: ClassState
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class Around:
    """What an action has to know besides the class."""

    now_s: float
    choices: Mapping[str, tuple[str, ...]]
    """Round -> what can be chosen in the present item."""
    picture: Mapping[str, Any]
    """What the projector shows now."""


Action = Callable[..., Done]
"""Takes the class and what is around it by position, arguments of its own by name."""


def switch(name: str, value: object) -> bool:
    """`value` as on or off. Raises ValueError for anything else: "false" would be on."""
    if not isinstance(value, bool):
        raise ValueError(f"{name}={str(value)[:20]!r}: must be true or false")
    return value


def whole(name: str, value: object, least: int, most: int) -> int:
    """`value` as a whole number. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name}={str(value)[:20]}: must be a whole number from {least} to {most}")
    return value


def duration(value: object) -> float:
    """`value` as the seconds of a timer. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 1 <= value <= LONGEST_TIMER_S:
        raise ValueError(f"seconds={str(value)[:20]}: must be 1 to {LONGEST_TIMER_S}")
    return float(value)
