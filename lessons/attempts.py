"""Attempts at questions: what a learner answered, predicted and ran, each under a random token of its own.

Owns the table and the order of the stages. A call returns only after its transaction was committed. Every change is made against the
version that the caller saw, so that two tabs cannot overwrite each other: the later one gets StaleAttempt with the state as it now is.
What may be shown of an attempt is decided in `lessons.public_view`, what an answer is worth in `lessons.grading`.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from sqlalchemy import Connection, bindparam, insert, select, update

from lessons.cards import schedule, wording_form
from lessons.causes import HEALTHY, cause_of_lesson, cause_of_option
from lessons.grading import TRIES, Certainty, grade
from lessons.judgements import Judgement, may_cost, see, write
from lessons.learners import ensure_learner, learner_id, well_formed
from lessons.model import SILHOUETTES, Lesson, LessonSet, Silhouette
from lessons.store import STORE_FILE, Store, StoreError, open_store
from lessons.store.tables import attempts as table

__all__ = [
    "STORE_FILE", "Attempt", "AttemptStore", "Certainty", "Kind", "Stage", "StaleAttempt", "StoreError", "UnknownAttempt",
    "runnable_causes",
]

Stage = Literal["question", "predict", "run", "verdict", "second_try", "explained"]
Kind = Literal["lesson", "review"]
LONGEST_TOKEN = 64


_BY_TOKEN = select(table).where(table.c.token == bindparam("token"))
_AT_LESSON = (
    select(table).where(table.c.learner_id == bindparam("own"), table.c.lesson_id == bindparam("lesson")).order_by(table.c.created_s)
)
"""Built once: every page asks them."""


class StaleAttempt(Exception):
    """The attempt went on elsewhere (another tab) since the caller read it; `current` is how it stands now."""

    def __init__(self, current: Attempt) -> None:
        self.current = current
        super().__init__("This attempt went on in another tab; this is how it stands now.")


class UnknownAttempt(Exception):
    """No attempt has this token."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One learner's way through one question, as of `version`."""

    token: str
    lesson_id: str
    stage: Stage
    version: int
    answers: tuple[str, ...]
    """Option ids, first try first."""
    certainties: tuple[Certainty | None, ...]
    """One for each answer."""
    predictions: tuple[Silhouette | None, ...]
    """One for each answer that has come so far; None where the learner went on without predicting."""
    runs: Mapping[str, str]
    """Cause id -> id of its latest run."""
    shown: bool
    """The learner asked for the answer before being right."""
    created_s: float
    changed_s: float
    learner_id: int | None = None
    """Whose it is inside the store; None for nobody's, as those of before there were learners."""
    kind: Kind = "lesson"
    seed: int | None = None
    """Shuffles the options, see `lessons.grading.option_order`; None leaves them as written."""
    wording: int | None = None
    """Which of the lesson's other wordings tells the symptom; None: the lesson's own text."""
    costs: bool = False
    """Whether a wrong answer may cost marks: not in the first lesson that this learner answered."""

    @property
    def stored(self) -> bool:
        """Whether it is in the store; one that `AttemptStore.open` made up is stored by its first answer."""
        return bool(self.token)

    @property
    def try_no(self) -> int:
        """Number of the answer being given or judged, from 1."""
        return min(TRIES, len(self.answers) + 1) if self.stage in ("question", "second_try") else max(1, len(self.answers))

    @property
    def answer(self) -> str | None:
        """The latest option locked in."""
        return self.answers[-1] if self.answers else None

    @property
    def prediction(self) -> Silhouette | None:
        """The prediction that belongs to the latest answer."""
        return self.predictions[-1] if self.answers and len(self.predictions) == len(self.answers) else None

    @property
    def certainty(self) -> Certainty | None:
        return self.certainties[-1] if self.certainties else None


class AttemptStore:
    """All attempts of one store. Thread-safe."""

    def __init__(self, store: Store | Path, *, busy_limit_s: float = 5.0) -> None:
        """`store`, or the data folder of one to be opened. Raises StoreError where that cannot be opened or created."""
        self._store = store if isinstance(store, Store) else open_store(store, busy_limit_s=busy_limit_s)

    def close(self) -> None:
        self._store.close()

    def open(self, lesson: Lesson, *, learner: str | None, token: str | None = None) -> Attempt:
        """The attempt that a page goes on with, so that nothing is lost on another browser or after a reload.

        It is the one with this token (from the address), if it is at this lesson and belongs to the learner or to nobody; else the
        learner's latest unfinished one at this lesson; else a fresh one, which is kept nowhere until the first answer is locked in.
        One that cannot be gone on with (see `fits`) is passed over.
        """
        with self._store.read() as connection:
            own = learner_id(connection, learner) if learner is not None and well_formed(learner) else None
            found = _read(connection, token) if token and _usable(token) else None
            usable = found is not None and found.lesson_id == lesson.id and fits(lesson, found.stage, found.answers)
            if found is not None and usable and found.learner_id in (None, own):
                return found
            if own is None:
                return _fresh(lesson.id, seed=shuffle_seed(learner or "", lesson.id, 0))
            mine = connection.execute(_AT_LESSON, {"own": own, "lesson": lesson.id}).mappings().all()
            unfinished = [
                row for row in mine
                if row["stage"] != "explained" and row["kind"] == "lesson" and fits(lesson, row["stage"], row["answers"])
            ]
            if unfinished:
                return _attempt(unfinished[-1])
            return _fresh(
                lesson.id, learner_id=own, costs=may_cost(connection, own, lesson.id),
                seed=shuffle_seed(learner or "", lesson.id, len(mine)),
            )

    def start(
        self, lesson_id: str, *, learner: str | None = None, kind: Kind = "lesson", seed: int | None = None, wording: int | None = None,
    ) -> Attempt:
        """A new attempt at the stage "question", under a token nobody can guess. Raises StoreError, ValueError, DeadToken."""
        with self._store.write() as connection:
            attempt = _fresh(lesson_id, kind=kind, seed=seed, wording=wording)
            return _insert(connection, attempt, learner, {})

    def get(self, token: str) -> Attempt | None:
        """The attempt with this token; None for one that was never given out."""
        if not _usable(token):
            return None
        with self._store.read() as connection:
            return _read(connection, token)

    def all(self) -> list[Attempt]:
        """Every attempt in the store, oldest first: for results, which whoever runs the server takes out."""
        with self._store.read() as connection:
            return [_attempt(row) for row in connection.execute(select(table).order_by(table.c.created_s, table.c.token)).mappings()]

    def lock_in(
        self, attempt: Attempt, lesson: Lesson, option_id: str, certainty: Certainty | None = None, *, learner: str | None = None
    ) -> Attempt:
        """question -> predict, or second_try -> predict: one transaction, also where it stores the attempt (then `learner` owns it).

        Raises ValueError for an unknown option, or one that was already refuted.
        """
        if lesson.option(option_id) is None:
            raise ValueError(f"option={option_id[:40]!r}: must be one of {', '.join(option.id for option in lesson.options)}")
        if option_id in attempt.answers:
            raise ValueError("This option was already refuted; choose another one.")
        if certainty is not None and certainty not in get_args(Certainty):
            raise ValueError(f"certainty={certainty!r}: must be one of {', '.join(get_args(Certainty))}")
        return self._move(
            attempt, ("question", "second_try"), "predict", learner=learner,
            then=lambda connection, now: _judge(connection, now, lesson),
            answers=[*attempt.answers, option_id], certainties=[*attempt.certainties, certainty],
        )

    def predict(self, attempt: Attempt, silhouette: Silhouette | None) -> Attempt:
        """predict -> run. None goes on without a prediction. Raises ValueError for an unknown silhouette."""
        if silhouette is not None and silhouette not in SILHOUETTES:
            raise ValueError(f"prediction={silhouette!r}: must be one of {', '.join(SILHOUETTES)}")
        return self._move(attempt, ("predict",), "run", predictions=[*attempt.predictions, silhouette])

    def record_run(self, token: str, lesson: Lesson, cause_id: str, run_id: str) -> Attempt:
        """Remember the latest run of a cause. Two tabs may both do so: no version is asked for, the later one stays.

        Before the explanation only the cause of the learner's own answers has a run. Raises UnknownAttempt, ValueError.
        """
        for _ in range(20):
            attempt = self.get(token)
            if attempt is None:
                raise UnknownAttempt(token)
            if cause_id not in runnable_causes(lesson, attempt):
                raise ValueError(f"cause={cause_id[:40]!r}: cannot be run at this point")
            try:
                return self._move(attempt, get_args(Stage), attempt.stage, runs={**attempt.runs, cause_id: run_id})
            except StaleAttempt:
                continue
        raise StoreError("The attempt is being changed elsewhere; please try again.")

    def see_verdict(self, attempt: Attempt) -> Attempt:
        """run -> verdict: the run has been watched, or skipped."""
        return self._move(attempt, ("run",), "verdict", then=lambda connection, now: _see(connection, now))

    def try_again(self, attempt: Attempt, lesson: Lesson) -> Attempt:
        """verdict -> second_try, after a wrong first answer. Raises ValueError where no try is left."""
        if len(attempt.answers) >= TRIES or lesson.key.id in attempt.answers:
            raise ValueError("There is no second try here.")
        return self._move(attempt, ("verdict",), "second_try")

    def explain(self, attempt: Attempt, lesson: Lesson) -> Attempt:
        """verdict -> explained, after a right answer or the last try. Raises ValueError before that; see `show_answer`."""
        if lesson.key.id not in attempt.answers and len(attempt.answers) < TRIES:
            raise ValueError("There is a second try; ask for the answer to be shown instead.")
        return self._move(attempt, ("verdict",), "explained")

    def show_answer(self, attempt: Attempt, lesson: Lesson, *, learner: str | None = None) -> Attempt:
        """From anywhere to explained: "Show the answer now". It costs the score unless the last verdict was final already."""
        judged = attempt.stage == "verdict" and (lesson.key.id in attempt.answers or len(attempt.answers) >= TRIES)
        return self._move(
            attempt, get_args(Stage), "explained", learner=learner, then=lambda connection, now: _see(connection, now, forfeit=True),
            shown=attempt.shown or not (judged or attempt.stage == "explained"),
        )

    def _move(
        self, attempt: Attempt, allowed: tuple[str, ...], stage: str, *, learner: str | None = None,
        then: Callable[[Connection, Attempt], None] = lambda connection, now: None, **changes: Any,
    ) -> Attempt:
        """One step, if the attempt still is as the caller saw it; `then` does what belongs to it in the same transaction.

        Raises StaleAttempt, UnknownAttempt, ValueError, StoreError, and DeadToken where an attempt is stored for a deleted learner.
        """
        if attempt.stage not in allowed:
            current = self.get(attempt.token)
            if current is not None and current.version != attempt.version:
                raise StaleAttempt(current)
            raise ValueError(f"This is not possible now: the question is at the stage {attempt.stage!r}. This is how it stands.")
        with self._store.write() as connection:
            if not attempt.stored:
                current = _insert(connection, attempt, learner, {**changes, "stage": stage})
                then(connection, current)
                return current
            values = {**changes, "stage": stage, "version": attempt.version + 1, "changed_s": time.time()}
            done = connection.execute(
                update(table).where(table.c.token == attempt.token, table.c.version == attempt.version).values(**values)
            )
            current = _read(connection, attempt.token)
            if current is not None and done.rowcount == 1:
                then(connection, current)
        if current is None:
            raise UnknownAttempt(attempt.token)
        if done.rowcount != 1:
            raise StaleAttempt(current)
        return current


def runnable_causes(lesson: Lesson, attempt: Attempt) -> tuple[str, ...]:
    """Ids of the causes that may be run now: those of the learner's own answers (the first of each), all of them once explained."""
    if attempt.stage == "explained":
        return tuple(cause.id for cause in lesson.causes)
    options = [lesson.option(answer) for answer in attempt.answers]
    return tuple(option.causes[0] for option in options if option is not None)


def fits(lesson: Lesson, stage: str, answers: Collection[str]) -> bool:
    """Whether an attempt can be gone on with, or looked at: a lesson that was rewritten may lack the option that is to be judged."""
    return stage == "explained" or all(lesson.option(answer) is not None for answer in answers)


def shuffle_seed(learner: str, lesson_id: str, number: int) -> int:
    """The seed of a learner's attempt number `number` at a lesson: a reload before the first answer shows the same order again."""
    digest = hashlib.sha256(f"{learner} {lesson_id} {number}".encode()).digest()
    return int.from_bytes(digest[:7], "big")


def _usable(token: str) -> bool:
    return 0 < len(token) <= LONGEST_TOKEN and "\x00" not in token


def _fresh(lesson_id: str, **more: Any) -> Attempt:
    """At the question, not in the store yet."""
    return Attempt(
        token="", lesson_id=lesson_id, stage="question", version=0, answers=(), certainties=(), predictions=(), runs={}, shown=False,
        created_s=0.0, changed_s=0.0, **more,
    )


def insert_attempt(connection: Connection, lesson_id: str, own: int, **more: Any) -> Attempt:
    """A new attempt of a learner at the question, inside a transaction of somebody else's."""
    return _store(connection, _fresh(lesson_id, **more), own, {})


def open_review(connection: Connection, own: int, lessons: LessonSet) -> Attempt | None:
    """The review of one of these lessons that the learner has not come to the end of."""
    rows = connection.execute(
        select(table).where(table.c.learner_id == own, table.c.kind == "review", table.c.stage != "explained").order_by(table.c.created_s)
    ).mappings()
    found = ((row, lessons.get(row["lesson_id"])) for row in rows)
    return next((_attempt(row) for row, lesson in found if lesson is not None and fits(lesson, row["stage"], row["answers"])), None)


def _insert(connection: Connection, attempt: Attempt, learner: str | None, changes: dict[str, Any]) -> Attempt:
    return _store(connection, attempt, None if learner is None else ensure_learner(connection, learner), changes)


def _store(connection: Connection, attempt: Attempt, own: int | None, changes: dict[str, Any]) -> Attempt:
    """Keep an attempt that `_fresh` made, with its first changes already."""
    now_s = time.time()
    values: dict[str, Any] = {
        "token": secrets.token_urlsafe(16), "lesson_id": attempt.lesson_id, "stage": attempt.stage, "version": 1, "answers": [],
        "certainties": [], "predictions": [], "runs": {}, "shown": False, "created_s": now_s, "changed_s": now_s, "learner_id": own,
        "kind": attempt.kind, "seed": attempt.seed, "wording": attempt.wording,
        "costs": own is not None and (attempt.kind == "review" or may_cost(connection, own, attempt.lesson_id)),
    }
    connection.execute(insert(table).values(**values | changes))
    return _attempt(values | changes)


def _judge(connection: Connection, attempt: Attempt, lesson: Lesson) -> None:
    """The judgement on the answer just locked in; nobody's answers are not judged beyond the page."""
    if attempt.learner_id is None or attempt.answer is None:
        return
    verdict = grade(lesson, attempt.answer, attempt.try_no, attempt.certainty, costs=attempt.costs)
    taken_for = cause_of_option(lesson, attempt.answer)
    if taken_for == HEALTHY and not verdict.right:  # a wrong option may be disproved by a healthy run: it is no cause then
        taken_for = ""
    judgement = Judgement(
        at_s=attempt.changed_s, kind=attempt.kind, ref=attempt.token, try_no=attempt.try_no, lesson_id=lesson.id,
        cause=cause_of_lesson(lesson), taken_for=taken_for, correct=verdict.right,
        certainty=attempt.certainty, marks=verdict.marks,
    )
    write(connection, attempt.learner_id, judgement, seen=False)


def _see(connection: Connection, attempt: Attempt, *, forfeit: bool = False) -> None:
    for judgement in see(connection, attempt.token, forfeit=forfeit):
        if judgement.try_no == 1 and attempt.learner_id is not None:
            schedule(connection, attempt.learner_id, judgement, wording_form(attempt.lesson_id, attempt.wording))


def _read(connection: Connection, token: str) -> Attempt | None:
    row = connection.execute(_BY_TOKEN, {"token": token}).mappings().first()
    return None if row is None else _attempt(row)


def _attempt(row: Mapping[Any, Any]) -> Attempt:
    as_tuples = {name: tuple(row[name]) for name in ("answers", "certainties", "predictions")}
    return Attempt(**{**row, **as_tuples})
