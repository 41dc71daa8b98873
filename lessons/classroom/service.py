"""The classes of this process, on the store: made, joined, voted in and driven by an instructor.

Whatever returns is on the disk; a StoreError says that it is not. Owns the one instance of the process. What can be done in which state is
decided in `lessons.classroom.actions`, what may be seen in `lessons.classroom.views`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lessons.classroom import keeping, people
from lessons.classroom.actions import apply
from lessons.classroom.casting import cast
from lessons.classroom.doing import Around
from lessons.classroom.looking import Looking
from lessons.classroom.making import new_class
from lessons.classroom.model import (
    ROUNDS,
    TONES,
    ClassState,
    Line,
    Participant,
    Receipt,
    RemovedError,
    StaleClassError,
    Tone,
    UnknownClassError,
    UnknownParticipantError,
)
from lessons.classroom.turns import Gate, alone
from lessons.classroom.views import projector_picture
from lessons.classroom.words import clean_nickname, is_token, new_code, new_token, normal_code
from lessons.learners import hashed
from lessons.learning import get_learning
from lessons.loader import load_lessons
from lessons.model import SILHOUETTES, LessonSet
from lessons.store import Store, StoreError

PARTICIPANTS_LIMIT = 1_000

log = logging.getLogger("shardlab.classroom")


class Classroom(Looking):
    """All classes of one store. Thread-safe. Everything here raises StoreError where the store cannot keep it."""

    def __init__(
        self, store: Store, *, lessons: Callable[[], LessonSet] = load_lessons, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(store, lessons=lessons, clock=clock)
        self._gate = Gate(store)

    def create(self, lesson_ids: Sequence[str], *, title: str = "", plan: Sequence[float] | None = None) -> ClassState:
        """A class in its lobby. `plan`: minutes, one for each item; left out, those of the lessons. Raises ValueError."""
        made = new_class(self._lessons(), lesson_ids, title=title, plan=plan, now_s=self._clock())
        with self.store.write() as connection:
            while not keeping.insert_class(connection, made):
                made = replace(made, code=new_code())
            keeping.insert_line(connection, made.code, "The class was made.", "info", made.created_s)
        return made

    def delete(self, code: str) -> bool:
        """The class with everybody's votes. False where there is none."""
        code = normal_code(code)
        with self.store.write() as connection:
            done = keeping.delete_class(connection, code)
        self._copies.forget(code)
        self._copies.tell(code)
        return done

    def join(
        self, code: str, token: str | None = None, nickname: str | None = None, *, limit: int = PARTICIPANTS_LIMIT
    ) -> Participant:
        """The participant of this token: the same one where it is in the class, else a new one.

        A browser has one token for all its classes; what cannot be one is replaced. A nickname renames, an empty one takes the name away,
        None leaves it as it is. Raises UnknownClassError, ClassFullError, RemovedError, ValueError.
        """
        live = self._copies.of(code)
        name = clean_nickname(nickname)
        own = token if token is not None and is_token(token) else new_token()
        known = live.people.get(hashed(own))
        if known is not None and known.removed:
            raise RemovedError
        if known is None or (nickname is not None and known.nickname != name):
            with self.store.write() as connection:
                known = people.join(
                    connection, live.state.code, own, name, rename=nickname is not None, limit=limit, now_s=self._clock()
                )
            live.set_person(hashed(own), known)
            self._copies.tell(known.code)
        return replace(known, token=own)

    def vote(self, code: str, token: str, *, round: str, choice: str, item_no: int) -> Receipt:
        """Record a vote, in place of the one before; one that is recorded already is acknowledged again, also after the end.

        Raises UnknownClassError, UnknownParticipantError, RemovedError, VoteClosedError, and ValueError for what cannot be chosen.
        """
        live = self._copies.of(code, look=False)
        if not is_token(token):
            raise UnknownParticipantError
        which = next((known for known in ROUNDS if known == round), None)
        if which is None:
            raise ValueError(f"round={str(round)[:20]!r}: must be one of {', '.join(ROUNDS)}")
        possible = self._choices(live.state, item_no)[which]
        if choice not in possible:
            raise ValueError(f"choice={str(choice)[:40]!r}: must be one of {', '.join(possible) or 'no item ' + str(item_no)[:20]}")
        with self._gate.vote(), self.store.write() as connection:
            vote, version = cast(connection, live.state.code, token, round=which, choice=choice, item_no=item_no, now_s=self._clock())
        live.set_vote(vote)
        self._copies.tell(live.state.code)
        return Receipt(code=live.state.code, version=version, item_no=item_no, round=which, choice=choice, at_s=vote.at_s)

    def act(self, code: str, action: str, /, *, expect_version: int | None = None, **arguments: Any) -> ClassState:
        """One thing the instructor does: see `ACTIONS` and `PEOPLE_ACTIONS`. With `expect_version` only if nothing was done since.

        Raises UnknownClassError, StaleClassError, ValueError.
        """
        live = self._copies.of(code)
        now_s, person = self._clock(), None
        picture = projector_picture(live, self._lesson(live.state)) if action == "freeze" else {}
        with self.store.write() as connection:
            alone(connection, live.state.code)
            before = keeping.read_class(connection, live.state.code)
            if before is None:
                raise UnknownClassError
            if expect_version is not None and expect_version != before.version:
                raise StaleClassError(before)
            if action in people.PEOPLE_ACTIONS:
                done, person = people.moderate(connection, before, action, arguments, now_s=now_s)
            else:
                choices = self._choices(before, before.item_no)
                done = apply(before, Around(now_s=now_s, choices=choices, picture=picture), action, arguments)
            if not keeping.replace_class(connection, done.state):
                raise StaleClassError(before)
            line = keeping.insert_line(connection, before.code, done.words, "info", now_s) if done.words else None
        with live.lock:
            live.set_state(done.state)
            if person is not None:
                live.change_person(person)
            if line is not None:
                live.add_line(line)
        self._copies.tell(before.code)
        return done.state

    def note(self, code: str, words: str, tone: Tone = "info", *, stored: bool = True) -> None:
        """A line for the console's log: what happened, and what to do. In memory only where the store cannot take it now, or is not to."""
        live = self._copies.of(code, look=False)
        if tone not in TONES:
            raise ValueError(f"tone={str(tone)[:20]!r}: must be one of {', '.join(TONES)}")
        now_s = self._clock()
        words = words.replace("\x00", "")  # PostgreSQL keeps no such character
        line = Line(id=0, at_s=now_s, words=words[: keeping.LONGEST_LINE], tone=tone)
        try:
            if stored:
                with self.store.write() as connection:
                    line = keeping.insert_line(connection, live.state.code, words, tone, now_s)
        except StoreError as fault:
            log.warning("class %s: %s (%s)", live.state.code, words, fault)
        live.add_line(line)
        self._copies.tell(live.state.code)

    def _choices(self, state: ClassState, item_no: int) -> Mapping[str, tuple[str, ...]]:
        """What can be chosen in an item, by round."""
        there = isinstance(item_no, int) and 1 <= item_no <= len(state.lesson_ids)
        lesson = self._lesson_of(state.lesson_ids[item_no - 1]) if there else None
        options = () if lesson is None else tuple(option.id for option in lesson.options)
        return {"first": options, "second": options, "predict": tuple(SILHOUETTES) if lesson else ()}


_classroom: Classroom | None = None
_lock = threading.Lock()


def get_classroom() -> Classroom:
    """That of this process, on the store of its learners. Raises StoreError where that cannot be opened now."""
    global _classroom
    store = get_learning().store
    with _lock:
        if _classroom is None or _classroom.store is not store:
            _classroom = Classroom(store)
        return _classroom


def close_classroom() -> None:
    """Forget the instance of this process; the store stays open."""
    global _classroom
    with _lock:
        _classroom = None
