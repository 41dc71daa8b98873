"""One class in the memory of this process: what the store holds of it, so that a room can look at it without asking the store.

Owns the copy and the counting. A change arrives here only after it was committed; each carries a number of its own by which the newer one
of two is known, in whatever order threads and replicas bring them. Must not read or write the store.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter, deque
from dataclasses import dataclass, field
from math import inf
from typing import Any

from lessons.classroom.keeping import LOG_LINES, Now
from lessons.classroom.model import ClassState, Line, Participant, Round, Vote

_stamps = itertools.count(1)


@dataclass(kw_only=True, eq=False)
class LiveClass:
    """Thread-safe; `lock` is held for moments only."""

    state: ClassState
    people: dict[str, Participant] = field(default_factory=dict)
    """By the hash of their token."""
    votes: dict[tuple[int, Round], dict[int, Vote]] = field(default_factory=dict)
    """(item, round) -> participant -> vote."""
    log: deque[Line] = field(default_factory=lambda: deque(maxlen=LOG_LINES))
    stamp: int = field(default_factory=lambda: next(_stamps))
    """Another one with everything that may change a view."""
    look_s: float = 0.0
    """Monotonic; when to ask the store again."""
    looking: threading.Lock = field(default_factory=threading.Lock)
    """Held by the one who asks it."""
    views: dict[str, tuple[int, Any, dict[str, Any]]] = field(default_factory=dict)
    """Role -> stamp, lesson and view."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    _people_changes: int = 0
    _vote_changes: int = 0
    _lines: int = 0

    @property
    def now(self) -> Now:
        """As `keeping.read_now` tells it of the store."""
        with self.lock:
            return self.state.version, self._people_changes, self._vote_changes, self._lines

    def set_state(self, state: ClassState) -> None:
        with self.lock:
            if state.version > self.state.version:
                self.state = state
                self._changed()

    def set_person(self, token_hash: str, person: Participant) -> None:
        with self.lock:
            known = self.people.get(token_hash)
            if known is None or known.changes < person.changes:
                self.people[token_hash] = person
                self._people_changes += person.changes - (known.changes if known else 0)
                self._changed()

    def set_vote(self, vote: Vote) -> None:
        with self.lock:
            cast = self.votes.setdefault((vote.item_no, vote.round), {})
            known = cast.get(vote.participant_id)
            if known is None or known.changes < vote.changes:
                cast[vote.participant_id] = vote
                self._vote_changes += vote.changes - (known.changes if known else 0)
                self._changed()

    def set_log(self, lines: list[Line], count: int) -> None:
        """The latest lines of the store, and how many there are up to the latest of them."""
        with self.lock:
            self._merge(lines)
            self._lines = count + sum(1 for line in self.log if lines and line.id > lines[-1].id)

    def add_line(self, line: Line) -> None:
        with self.lock:
            self._lines += self._merge([line]) if line.id else 0
            if not line.id:
                self._keep([*self.log, line])

    def _merge(self, lines: list[Line]) -> int:
        """How many of `lines` were not here."""
        known = {line.id for line in self.log}
        fresh = [line for line in lines if line.id not in known]
        if fresh:
            self._keep([*self.log, *fresh])
        return len(fresh)

    def _keep(self, lines: list[Line]) -> None:
        """One without a number comes after those of its time."""
        self.log = deque(sorted(lines, key=lambda line: (line.at_s, line.id or inf)), maxlen=LOG_LINES)
        self._changed()

    def change_person(self, person: Participant) -> None:
        """`set_person` of somebody who is here. Somebody from another replica comes with the next look at the store."""
        with self.lock:
            known = next((key for key, known in self.people.items() if known.id == person.id), None)
            if known is not None:
                self.set_person(known, person)

    def present(self) -> list[Participant]:
        """All but those who were removed."""
        with self.lock:
            return [person for person in self.people.values() if not person.removed]

    def phones(self, item_no: int, round: Round) -> Counter[str]:
        """Votes by choice, of everybody who was not removed."""
        with self.lock:
            removed = {person.id for person in self.people.values() if person.removed}
            return Counter(vote.choice for vote in self.votes.get((item_no, round), {}).values() if vote.participant_id not in removed)

    def counts(self, item_no: int, round: Round) -> Counter[str]:
        """`phones`, and the hands that were counted in the room."""
        counted = self.phones(item_no, round)
        counted.update(self.state.hands.get(f"{item_no}.{round}", {}))
        return counted

    def _changed(self) -> None:
        self.stamp = next(_stamps)
