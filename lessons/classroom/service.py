"""The classes of this process, on the store: made, joined, voted in, driven by an instructor, and looked at.

A class lives in the store; this process keeps a copy in memory, which it compares with the store every half second, because other replicas
write to it too. While the store is away a class can still be looked at. Owns that copy and the one instance of the process. What may be
seen is decided in `lessons.classroom.views`, what can be done in `lessons.classroom.actions`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lessons.classroom import keeping
from lessons.classroom.actions import Around, Done, apply
from lessons.classroom.casting import cast
from lessons.classroom.console import causes_view, console_base, plan_view
from lessons.classroom.memory import LiveClass
from lessons.classroom.model import (
    ROUNDS,
    TONES,
    ClassFullError,
    ClassState,
    Line,
    Participant,
    Receipt,
    RemovedError,
    Round,
    StaleClassError,
    Tone,
    UnknownClassError,
    UnknownParticipantError,
)
from lessons.classroom.views import audience_base, audience_me, projector_base, projector_picture
from lessons.classroom.words import LONGEST_TITLE, clean_line, clean_nickname, is_code, is_token, new_code, new_token, normal_code
from lessons.evidence import Recordings
from lessons.learners import hashed
from lessons.learning import get_learning
from lessons.loader import load_lessons
from lessons.model import SILHOUETTES, Lesson, LessonSet, NoLessonsError
from lessons.store import Store, StoreError

LOOK_EVERY_S = 0.5
"""How long a replica may not know what another one has done."""
PARTICIPANTS_LIMIT = 1_000
MOST_ITEMS = 50
MOST_MINUTES = 480
KEPT_IN_MEMORY = 100
"""Classes; the one that nobody has looked at for longest is read again when somebody does."""

log = logging.getLogger("shardlab.classroom")


class Classroom:
    """All classes of one store. Thread-safe. What it raises is said in `lessons.classroom.model`, and StoreError."""

    def __init__(self, store: Store, *, lessons: Callable[[], LessonSet] = load_lessons, clock: Callable[[], float] = time.time) -> None:
        self.store = store
        self._lessons = lessons
        self._clock = clock
        self._live: dict[str, LiveClass] = {}
        self._lock = threading.Lock()
        self._listeners: list[Callable[[str], None]] = []

    # --- a class ------------------------------------------------------------------------------------------------------------------------

    def create(self, lesson_ids: Sequence[str], *, title: str = "", plan: Sequence[float] | None = None) -> ClassState:
        """A class in its lobby. `plan`: minutes, one for each item; left out, those of the lessons. Raises ValueError."""
        known = self._lessons()
        lessons = [known.get(lesson_id) for lesson_id in lesson_ids]
        missing = [str(lesson_id)[:40] for lesson_id, lesson in zip(lesson_ids, lessons, strict=True) if lesson is None]
        if missing or not 1 <= len(lessons) <= MOST_ITEMS:
            raise ValueError(f"lesson_ids={', '.join(missing) or len(lessons)}: must be 1 to {MOST_ITEMS} lessons that are there")
        minutes = tuple(float(lesson.minutes) for lesson in lessons if lesson) if plan is None else tuple(float(each) for each in plan)
        if len(minutes) != len(lessons) or not all(0 < each <= MOST_MINUTES for each in minutes):
            raise ValueError(f"plan={minutes}: must be one number of minutes for each item, up to {MOST_MINUTES}")
        now_s = self._clock()
        first = lessons[0]
        words = clean_line("title", title, LONGEST_TITLE) or (first.title[:LONGEST_TITLE] if first and len(lessons) == 1 else "Class")
        with self.store.write() as connection:
            while True:
                state = ClassState(
                    code=new_code(), title=words, lesson_ids=tuple(lesson_ids), plan=minutes, version=1, created_s=now_s, changed_s=now_s
                )
                if keeping.insert_class(connection, state):
                    break
            keeping.insert_line(connection, state.code, "The class was made.", "info", now_s)
        return state

    def classes(self) -> list[ClassState]:
        """All of them, latest first."""
        with self.store.read() as connection:
            return keeping.read_classes(connection)

    def delete(self, code: str) -> bool:
        """The class with everybody's votes. False where there is none."""
        code = normal_code(code)
        with self.store.write() as connection:
            done = keeping.delete_class(connection, code)
        with self._lock:
            self._live.pop(code, None)
        self._tell(code)
        return done

    def state(self, code: str) -> ClassState:
        return self._of(code).state

    def lesson(self, code: str) -> Lesson | None:
        """That of the present item; None in the lobby and after the end, or where the lesson is no longer there."""
        return self._lesson(self._of(code).state)

    # --- participants -------------------------------------------------------------------------------------------------------------------

    def join(
        self, code: str, token: str | None = None, nickname: str | None = None, *, limit: int = PARTICIPANTS_LIMIT
    ) -> Participant:
        """The participant of this token: the same one for a token that is in the class, else a new one.

        A browser has one token for all its classes; what cannot be one is replaced. A nickname renames, None leaves the name as it is.
        Raises UnknownClassError, ClassFullError, RemovedError, ValueError.
        """
        live = self._of(code)
        name = clean_nickname(nickname)
        own = token if token is not None and is_token(token) else new_token()
        known = live.people.get(hashed(own))
        if known is not None and known.removed:
            raise RemovedError
        if known is None or (nickname is not None and known.nickname != name):
            with self.store.write() as connection:
                known = self._join(connection, live.state.code, own, name, limit, rename=nickname is not None)
            live.set_person(hashed(own), known)
            self._tell(live.state.code)
        return replace(known, token=own)

    def _join(self, connection: Any, code: str, token: str, name: str | None, limit: int, *, rename: bool) -> Participant:
        known = keeping.find_participant(connection, code, token)
        if known is None:
            if keeping.count_participants(connection, code) >= limit:
                raise ClassFullError(limit)
            known = keeping.insert_participant(connection, code, token, name, self._clock())
        if known.removed:
            raise RemovedError
        if rename and known.nickname != name:
            known = keeping.change_participant(connection, code, known.id, nickname=name) or known
        return known

    def vote(self, code: str, token: str, *, round: str, choice: str, item_no: int) -> Receipt:
        """Record a vote, in place of the one before. After this it is on the disk; an equal one is acknowledged again.

        Raises UnknownClassError, UnknownParticipantError, RemovedError, VoteClosedError, and ValueError for what cannot be chosen.
        """
        live = self._of(code, look=False)
        if not is_token(token):
            raise UnknownParticipantError
        which = next((each for each in ROUNDS if each == round), None)
        if which is None:
            raise ValueError(f"round={str(round)[:20]!r}: must be one of {', '.join(ROUNDS)}")
        possible = self._choices(live.state, item_no)[which]
        if choice not in possible:
            raise ValueError(f"choice={str(choice)[:40]!r}: must be one of {', '.join(possible)}")
        with self.store.write() as connection:
            vote, version = cast(connection, live.state.code, token, round=which, choice=choice, item_no=item_no, now_s=self._clock())
        live.set_vote(vote)
        self._tell(live.state.code)
        return Receipt(code=live.state.code, version=version, item_no=item_no, round=which, choice=choice, at_s=vote.at_s)

    def answered(self, code: str, round: Round) -> int:
        """Participants who have voted in a round of the present item."""
        live = self._of(code)
        return live.phones(live.state.item_no, round).total()

    # --- the instructor -----------------------------------------------------------------------------------------------------------------

    def act(self, code: str, action: str, *, expect_version: int | None = None, **arguments: Any) -> ClassState:
        """One thing the instructor does, see `ACTIONS` and `PEOPLE_ACTIONS`. With `expect_version` only if nothing has happened since.

        Raises UnknownClassError, StaleClassError, ValueError.
        """
        live = self._of(code)
        around = self._around(live)
        person: tuple[str, Participant] | None = None
        with self.store.write() as connection:
            before = keeping.read_class(connection, live.state.code)
            if before is None:
                raise UnknownClassError
            if expect_version is not None and expect_version != before.version:
                raise StaleClassError(before)
            if action in PEOPLE_ACTIONS:
                done, person = self._moderate(connection, live, before, action, **arguments)
            else:
                done = apply(before, around, action, arguments)
            if not keeping.replace_class(connection, done.state):
                raise StaleClassError(before)
            line = keeping.insert_line(connection, before.code, done.words, done.tone, around.now_s) if done.words else None
        live.set_state(done.state)
        if person is not None:
            live.set_person(*person)
        live.add_lines([line] if line else [])
        self._tell(live.state.code)
        return done.state

    def _moderate(
        self, connection: Any, live: LiveClass, before: ClassState, action: str, participant: int | None = None, **unknown: Any
    ) -> tuple[Done, tuple[str, Participant]]:
        found = live.person(participant) if isinstance(participant, int) else None
        if found is None or unknown:
            raise ValueError(f"participant={str(participant)[:20]}: nobody in this class")
        change, words = PEOPLE_ACTIONS[action]
        person = keeping.change_participant(connection, before.code, found[1].id, **change)
        if person is None:
            raise ValueError(f"participant={str(participant)[:20]}: nobody in this class")
        now = replace(before, version=before.version + 1, changed_s=self._clock())
        return Done(state=now, words=f"{person.nickname or 'Somebody'} {words}."), (found[0], person)

    def note(self, code: str, words: str, tone: Tone = "info") -> None:
        """A line for the console's log: what happened, and what to do. Kept in memory only where the store cannot take it now."""
        live = self._of(code, look=False)
        if tone not in TONES:
            raise ValueError(f"tone={str(tone)[:20]!r}: must be one of {', '.join(TONES)}")
        now_s = self._clock()
        try:
            with self.store.write() as connection:
                line = keeping.insert_line(connection, live.state.code, words, tone, now_s)
        except StoreError as fault:
            log.warning("class %s: %s (%s)", live.state.code, words, fault)
            line = Line(id=0, at_s=now_s, words=words[: keeping.LONGEST_LINE], tone=tone)
        live.add_lines([line])
        self._tell(live.state.code)

    # --- views --------------------------------------------------------------------------------------------------------------------------

    def stamp(self, code: str) -> int:
        """Another number with everything that may change a view of this class: state, joins, votes, the end of a timer."""
        live = self._of(code)
        closes_s = live.state.closes_s
        return 2 * live.stamp + int(closes_s is not None and self._clock() >= closes_s)

    def subscribe(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """`listener` is called with the code of a class that has changed, in the thread that did it; returns how to end that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def audience_base(self, code: str) -> dict[str, Any]:
        """What the whole audience sees alike, built once per `stamp`: everything of `audience_view` but `me`."""
        return self._view(self._of(code), "audience", audience_base)

    def audience_me(self, code: str, token: str | None) -> dict[str, Any]:
        """What only this participant sees. Raises UnknownParticipantError, RemovedError."""
        live = self._of(code)
        key = hashed(token) if token is not None and is_token(token) else ""
        found = audience_me(live, key)
        if found is None:
            if key in live.people:
                raise RemovedError
            raise UnknownParticipantError
        return found

    def audience_view(self, code: str, token: str | None) -> dict[str, Any]:
        """Raises UnknownClassError, UnknownParticipantError, RemovedError."""
        return {**self.audience_base(code), "me": self.audience_me(code, token)}

    def projector_view(self, code: str, *, here: int = 0, join_words: str = "") -> dict[str, Any]:
        return {**self._view(self._of(code), "projector", projector_base), "here": here, "join_words": join_words}

    def console_view(
        self, code: str, *, here: int = 0, reconnecting: int = 0, recordings: Recordings | None = None
    ) -> dict[str, Any]:
        live = self._of(code)
        view = self._view(live, "console", console_base)
        view |= {"here": here, "reconnecting": reconnecting, "plan": plan_view(live.state, view["server_s"])}
        view["causes"] = causes_view(self._lesson(live.state), recordings)
        return view

    # --- inside -------------------------------------------------------------------------------------------------------------------------

    def _view(self, live: LiveClass, role: str, build: Callable[[LiveClass, Lesson | None], dict[str, Any]]) -> dict[str, Any]:
        """A copy of the view of a role, built once per stamp, with what the time changes."""
        lesson = self._lesson(live.state)
        with live.lock:
            kept = live.views.get(role)
            if kept is None or kept[0] != live.stamp or kept[1] is not lesson:
                kept = live.views[role] = (live.stamp, lesson, build(live, lesson))
        now_s = self._clock()
        view = kept[2]
        open_now = view["round"] is not None and (view["closes_s"] is None or now_s < view["closes_s"])
        return {**view, "server_s": round(now_s, 3), "may_vote": open_now}

    def _around(self, live: LiveClass) -> Around:
        lesson = self._lesson(live.state)
        return Around(
            now_s=self._clock(), choices=self._choices(live.state, live.state.item_no), picture=projector_picture(live, lesson)
        )

    def _choices(self, state: ClassState, item_no: int) -> Mapping[str, tuple[str, ...]]:
        """What can be chosen in an item, by round."""
        lesson_id = state.lesson_ids[item_no - 1] if isinstance(item_no, int) and 1 <= item_no <= len(state.lesson_ids) else None
        lesson = None if lesson_id is None else self._lesson_of(lesson_id)
        options = () if lesson is None else tuple(option.id for option in lesson.options)
        return {"first": options, "second": options, "predict": tuple(SILHOUETTES)}

    def _lesson(self, state: ClassState) -> Lesson | None:
        return None if state.lesson_id is None else self._lesson_of(state.lesson_id)

    def _lesson_of(self, lesson_id: str) -> Lesson | None:
        try:
            return self._lessons().get(lesson_id)
        except NoLessonsError:
            return None

    def _of(self, code: str, *, look: bool = True) -> LiveClass:
        """The copy in memory, as fresh as `LOOK_EVERY_S`; as old as need be while the store is away. Raises UnknownClassError."""
        code = normal_code(code)
        if not is_code(code):
            raise UnknownClassError
        with self._lock:
            live = self._live.get(code)
        if live is None:
            live = self._read(code, None)
            with self._lock:
                live = self._live.setdefault(code, live)
                while len(self._live) > KEPT_IN_MEMORY:
                    del self._live[min(self._live, key=lambda known: self._live[known].looked_s)]
        elif look and time.monotonic() - live.looked_s > LOOK_EVERY_S:
            live.looked_s = time.monotonic()
            try:
                with self.store.read() as connection:
                    now = keeping.read_now(connection, code)
            except StoreError:
                return live
            if now != live.now:
                self._read(code, live)
                self._tell(code)
        return live

    def _read(self, code: str, live: LiveClass | None) -> LiveClass:
        """Everything of a class from the store, into `live`."""
        with self.store.read() as connection:
            state = keeping.read_class(connection, code)
            people = keeping.read_participants(connection, code)
            votes = keeping.read_votes(connection, code)
            lines = keeping.read_log(connection, code)
        if state is None:
            with self._lock:
                self._live.pop(code, None)
            raise UnknownClassError
        live = live or LiveClass(state=state, looked_s=time.monotonic())
        live.set_state(state)
        for token_hash, person in people.items():
            live.set_person(token_hash, person)
        for vote in votes:
            live.set_vote(vote)
        live.add_lines(lines)
        return live

    def _tell(self, code: str) -> None:
        for listener in list(self._listeners):
            try:
                listener(code)
            except Exception:
                log.exception("a listener of class %s failed", code)


PEOPLE_ACTIONS: dict[str, tuple[dict[str, bool], str]] = {
    "hide": ({"hidden": True}, "is hidden"), "unhide": ({"hidden": False}, "is shown again"),
    "remove": ({"removed": True}, "was removed"), "restore": ({"removed": False}, "was let in again"),
}
"""What they change about a participant, and the words for it."""

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
