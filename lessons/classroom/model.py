"""The shapes of a class, frozen: how it stands, who takes part, what a vote is acknowledged with, and what can be refused.

Owns shapes and refusals. Must not store, count or decide what may be seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

State = Literal["lobby", "vote", "votes", "discuss", "revote", "predict", "experiments", "key", "explanation", "ended"]
STATES: tuple[State, ...] = get_args(State)
Round = Literal["first", "second", "predict"]
ROUNDS: tuple[Round, ...] = get_args(Round)
Order = Literal["experiments_first", "key_first"]
ORDERS: tuple[Order, ...] = get_args(Order)
Tone = Literal["info", "good", "warn", "bad"]
TONES: tuple[Tone, ...] = get_args(Tone)

STATE_WORDS: dict[State, str] = {
    "lobby": "Lobby", "vote": "Vote", "votes": "Votes shown", "discuss": "Discuss", "revote": "Second vote", "predict": "Predict",
    "experiments": "Experiments", "key": "Key", "explanation": "Explanation", "ended": "Ended",
}


class UnknownClassError(LookupError):
    """No class has this code."""

    def __init__(self) -> None:
        super().__init__("There is no class with this code. Check it with your instructor.")


class UnknownParticipantError(LookupError):
    """Nobody in this class has this token."""

    def __init__(self) -> None:
        super().__init__("You are not in this class yet. Join it first.")


class RemovedError(PermissionError):
    """The instructor has removed this participant."""

    def __init__(self) -> None:
        super().__init__("The instructor has removed you from this class.")


class ClassFullError(PermissionError):
    """No more participants are let in."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"This class is full: it takes {limit} participants.")


class VoteClosedError(ValueError):
    """This vote is not open, or no longer; nothing was recorded."""


class StaleClassError(RuntimeError):
    """The class went on since whoever acts has looked at it; nothing was changed. `current` is how it stands now."""

    def __init__(self, current: ClassState) -> None:
        self.current = current
        super().__init__("The class went on in the meantime; nothing was changed.")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a class was, for the way back."""

    item_no: int
    state: State


@dataclass(frozen=True, kw_only=True)
class ClassState:
    """How a class stands. What happened to it is in its log, who is in it and what they voted in tables of their own."""

    code: str
    title: str
    lesson_ids: tuple[str, ...]
    """The items, in order."""
    plan: tuple[float, ...]
    """Minutes, one for each item."""
    version: int
    """+1 at each thing the instructor does. Joins and votes do not change it, or an instructor could never act while they come in."""
    state: State = "lobby"
    item_no: int = 0
    """From 1; 0 in the lobby."""
    order: Order = "experiments_first"
    closes_s: float | None = None
    """Unix seconds at which the open vote closes by itself."""
    blank: bool = False
    frozen: Mapping[str, Any] | None = None
    """What the projector goes on showing."""
    show_names: bool = False
    notes: Mapping[str, str] = field(default_factory=dict)
    """Item number as text -> the instructor's own."""
    hands: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """"{item}.{round}" -> choice -> hands that were counted in the room."""
    keys_seen: tuple[int, ...] = ()
    """Items whose key was on screen: they are not voted on again."""
    trail: tuple[Place, ...] = ()
    """Where the class came from, latest last."""
    run: Mapping[str, Any] | None = None
    """The run on all screens."""
    race: tuple[Mapping[str, Any], ...] = ()
    created_s: float = 0.0
    changed_s: float = 0.0
    started_s: float | None = None
    """When the first vote was opened."""
    item_s: float | None = None
    """When the present item was begun."""
    ended_s: float | None = None

    @property
    def lesson_id(self) -> str | None:
        """The lesson of the present item; None in the lobby and after the end."""
        return self.lesson_ids[self.item_no - 1] if self.state not in ("lobby", "ended") else None

    @property
    def key_seen(self) -> bool:
        """Whether the key of the present item was on screen."""
        return self.item_no in self.keys_seen


@dataclass(frozen=True, kw_only=True)
class Participant:
    """Somebody in a class. Their token is known to their browser only; it is empty where it was read from the store."""

    id: int
    code: str
    nickname: str | None
    hidden: bool
    removed: bool
    changes: int
    """+1 with each change; which of two copies is the newer one."""
    joined_s: float
    token: str = field(default="", repr=False)


@dataclass(frozen=True, kw_only=True)
class Vote:
    """The latest choice of somebody in a round of an item."""

    participant_id: int
    item_no: int
    round: Round
    choice: str
    changes: int
    """How often it was cast anew; the order of what one participant did."""
    first_s: float
    at_s: float


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """A vote is in the store."""

    code: str
    version: int
    item_no: int
    round: Round
    choice: str
    at_s: float


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of the console's log: what happened, and what to do."""

    id: int
    """In the order in which they were written; 0 for one that the store could not take."""
    at_s: float
    words: str
    tone: Tone = "info"
