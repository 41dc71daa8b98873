"""Looking at classes: their views, and what is left of them afterwards.

A view is built once for everybody who has the same role, and again when its class has changed. Views share what is inside them: whoever
gets one may replace its fields, not change them. What may be seen is decided in `lessons.classroom.views` and `lessons.classroom.console`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from lessons.classroom import keeping
from lessons.classroom.analysis import ItemAnalysis, analyse
from lessons.classroom.console import causes_view, console_base, plan_view
from lessons.classroom.copies import Copies, Listener
from lessons.classroom.memory import LiveClass
from lessons.classroom.model import ClassState, RemovedError, UnknownParticipantError
from lessons.classroom.report import report
from lessons.classroom.results import items_csv, results_csv
from lessons.classroom.views import audience_base, audience_me, projector_base
from lessons.classroom.words import is_token
from lessons.evidence import Recordings
from lessons.learners import hashed
from lessons.loader import load_lessons
from lessons.model import Lesson, LessonSet, NoLessonsError
from lessons.store import Store

View = dict[str, Any]


class Looking:
    """All classes of one store, for those who look. Thread-safe. Raises UnknownClassError; StoreError for a class not yet looked at."""

    def __init__(
        self, store: Store, *, lessons: Callable[[], LessonSet] = load_lessons, clock: Callable[[], float] = time.time
    ) -> None:
        self.store = store
        self._lessons = lessons
        self._clock = clock
        self._copies = Copies(store)

    def classes(self) -> list[ClassState]:
        """All of them, latest first. Raises StoreError."""
        with self.store.read() as connection:
            return keeping.read_classes(connection)

    def state(self, code: str) -> ClassState:
        return self._copies.of(code).state

    def lesson(self, code: str) -> Lesson | None:
        """That of the present item; None in the lobby and after the end, or where the lesson is no longer there."""
        return self._lesson(self._copies.of(code).state)

    def joined(self, code: str) -> int:
        """How many take part."""
        return len(self._copies.of(code).present())

    def stamp(self, code: str) -> int:
        """Another number after everything that may change a view of this class: what is done, joins, votes, the end of a timer."""
        live = self._copies.of(code)
        closes_s = live.state.closes_s
        return 2 * live.stamp + int(closes_s is not None and self._clock() >= closes_s)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """`listener` is called with the code of a class that has changed, in the thread that noticed; returns how to end that.

        What another replica does, and the end of a timer, is noticed by `stamp` and the views only.
        """
        return self._copies.subscribe(listener)

    def audience_base(self, code: str) -> View:
        """What the whole audience sees alike: everything of `audience_view` but `me`."""
        return self._view(self._copies.of(code), "audience", audience_base)

    def audience_me(self, code: str, token: str | None) -> View:
        """What only this participant sees. Raises UnknownParticipantError, RemovedError."""
        live = self._copies.of(code)
        key = hashed(token) if token is not None and is_token(token) else ""
        if key and key not in live.people:
            live = self._copies.fresh(code)  # they may have joined at another replica a moment ago
        found = audience_me(live, key)
        if found is None:
            raise RemovedError if key in live.people else UnknownParticipantError
        return found

    def audience_view(self, code: str, token: str | None) -> View:
        """For the phone of this participant. Raises UnknownParticipantError, RemovedError."""
        return {**self.audience_base(code), "me": self.audience_me(code, token)}

    def projector_view(self, code: str, *, here: int = 0, join_words: str = "") -> View:
        """For the wall. `here`: open feeds of the audience; `join_words`: the address to join at."""
        return {**self._view(self._copies.of(code), "projector", projector_base), "here": here, "join_words": join_words}

    def console_view(
        self, code: str, *, here: int = 0, reconnecting: int = 0, recordings: Recordings | None = None, unreachable: str = ""
    ) -> View:
        """For the instructor. `recordings` tells for which causes there is one; `unreachable` why no phone can come in."""
        live = self._copies.of(code)
        view = self._view(live, "console", console_base)
        view |= {"here": here, "reconnecting": reconnecting, "plan": plan_view(live.state, view["server_s"])}
        view["warning"] = view["warning"] or (unreachable if view["state"] == "lobby" else "")
        view["causes"] = causes_view(self._lesson(live.state), recordings)
        return view

    def analysis(self, code: str) -> tuple[ItemAnalysis, ...]:
        """The figures of every item that was voted on."""
        live = self._copies.of(code)
        return analyse(live, self._lesson_of)

    def results_csv(self, code: str, *, bom: bool = False) -> str:
        """One row per participant."""
        return results_csv(self._copies.of(code), self._lesson_of, bom=bom)

    def items_csv(self, code: str, *, bom: bool = False) -> str:
        """One row per item."""
        live = self._copies.of(code)
        return items_csv(analyse(live, self._lesson_of), bom=bom)

    def report(self, code: str) -> View:
        """What a page to print says of the class."""
        live = self._copies.of(code)
        return report(live, analyse(live, self._lesson_of), self._clock())

    def _view(self, live: LiveClass, role: str, build: Callable[[LiveClass, Lesson | None], View]) -> View:
        """A copy of the view of a role, with what only the time changes."""
        lesson = self._lesson(live.state)
        with live.lock:
            kept = live.views.get(role)
            if kept is None or kept[0] != live.stamp or kept[1] is not lesson:
                kept = live.views[role] = (live.stamp, lesson, build(live, lesson))
        view, now_s = kept[2], self._clock()
        open_now = view["round"] is not None and (view["closes_s"] is None or now_s < view["closes_s"])
        return {**view, "server_s": round(now_s, 3), "may_vote": open_now}

    def _lesson(self, state: ClassState) -> Lesson | None:
        return None if state.lesson_id is None else self._lesson_of(state.lesson_id)

    def _lesson_of(self, lesson_id: str) -> Lesson | None:
        """None where it is no longer there."""
        try:
            return self._lessons().get(lesson_id)
        except NoLessonsError:
            return None
