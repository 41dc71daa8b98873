"""Attempts at questions: what a learner answered, predicted and ran, kept in SQLite under a random token.

Owns the table and the order of the stages. A call returns only after its transaction was committed. Every change is made against the
version that the caller saw, so that two tabs cannot overwrite each other: the later one gets StaleAttempt with the state as it now is.
What may be shown of an attempt is decided in `lessons.public_view`.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from sqlalchemy import JSON, Connection, Engine, create_engine, event, insert, select, update
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.schema import CreateTable

from lessons.grading import TRIES
from lessons.model import SILHOUETTES, Lesson, Silhouette

Stage = Literal["question", "predict", "run", "verdict", "second_try", "explained"]
Certainty = Literal["guess", "fairly", "certain"]
STORE_FILE = "shardlab.db"
LONGEST_TOKEN = 64


class StoreError(RuntimeError):
    """The store cannot do it now; the message says why, for the person in front of the page."""


class StaleAttempt(Exception):
    """The attempt went on elsewhere (another tab) since the caller read it; `current` is how it stands now."""

    def __init__(self, current: Attempt) -> None:
        self.current = current
        super().__init__("This attempt went on in another tab; this is how it stands now.")


class UnknownAttempt(Exception):
    """No attempt has this token."""


class _Base(DeclarativeBase):
    pass


class _Row(_Base):
    __tablename__ = "attempts"

    token: Mapped[str] = mapped_column(primary_key=True)
    lesson_id: Mapped[str]
    stage: Mapped[str]
    version: Mapped[int]
    answers: Mapped[list[str]] = mapped_column(JSON)
    certainties: Mapped[list[str | None]] = mapped_column(JSON)
    predictions: Mapped[list[str | None]] = mapped_column(JSON)
    runs: Mapped[dict[str, str]] = mapped_column(JSON)
    shown: Mapped[bool]
    created_s: Mapped[float]
    changed_s: Mapped[float]


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
    """All attempts of one data folder. Thread-safe; tables are created when it is opened."""

    def __init__(self, data_dir: Path, *, busy_limit_s: float = 5.0) -> None:
        """Raises StoreError where the database cannot be opened or created."""
        try:
            data_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"The folder {data_dir} cannot be made: {error.strerror}.") from None
        self._engine = _engine(data_dir / STORE_FILE, busy_limit_s)
        with self._transaction() as connection:
            connection.execute(CreateTable(_Row.metadata.tables[_Row.__tablename__], if_not_exists=True))

    def close(self) -> None:
        self._engine.dispose()

    def start(self, lesson_id: str) -> Attempt:
        """A new attempt at the stage "question", under a token nobody can guess."""
        now_s = time.time()
        token = secrets.token_urlsafe(16)
        values: dict[str, Any] = {
            "token": token, "lesson_id": lesson_id, "stage": "question", "version": 1, "answers": [], "certainties": [], "predictions": [],
            "runs": {}, "shown": False, "created_s": now_s, "changed_s": now_s,
        }
        with self._transaction() as connection:
            connection.execute(insert(_Row).values(**values))
        return _attempt(values)

    def get(self, token: str) -> Attempt | None:
        """The attempt with this token; None for one that was never given out."""
        if not token or len(token) > LONGEST_TOKEN or "\x00" in token:
            return None
        with self._transaction() as connection:
            return _read(connection, token)

    def lock_in(self, attempt: Attempt, lesson: Lesson, option_id: str, certainty: Certainty | None = None) -> Attempt:
        """question -> predict, or second_try -> predict. Raises ValueError for an unknown option, or one that was already refuted."""
        if lesson.option(option_id) is None:
            raise ValueError(f"option={option_id[:40]!r}: must be one of {', '.join(option.id for option in lesson.options)}")
        if option_id in attempt.answers:
            raise ValueError("This option was already refuted; choose another one.")
        if certainty is not None and certainty not in get_args(Certainty):
            raise ValueError(f"certainty={certainty!r}: must be one of {', '.join(get_args(Certainty))}")
        return self._move(
            attempt, ("question", "second_try"), "predict",
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
        return self._move(attempt, ("run",), "verdict")

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

    def show_answer(self, attempt: Attempt, lesson: Lesson) -> Attempt:
        """From anywhere to explained: "Show the answer now". It costs the score unless the last verdict was final already."""
        judged = attempt.stage == "verdict" and (lesson.key.id in attempt.answers or len(attempt.answers) >= TRIES)
        return self._move(attempt, get_args(Stage), "explained", shown=attempt.shown or not (judged or attempt.stage == "explained"))

    def _move(self, attempt: Attempt, allowed: tuple[str, ...], stage: str, **changes: Any) -> Attempt:
        """One step, if the attempt still is as the caller saw it. Raises StaleAttempt, UnknownAttempt, ValueError, StoreError."""
        if attempt.stage not in allowed:
            current = self.get(attempt.token)
            if current is not None and current.version != attempt.version:
                raise StaleAttempt(current)
            raise ValueError(f"not possible at the stage {attempt.stage!r}")
        values = {**changes, "stage": stage, "version": attempt.version + 1, "changed_s": time.time()}
        with self._transaction() as connection:
            done = connection.execute(
                update(_Row).where(_Row.token == attempt.token, _Row.version == attempt.version).values(**values)
            )
            current = _read(connection, attempt.token)
        if current is None:
            raise UnknownAttempt(attempt.token)
        if done.rowcount != 1:
            raise StaleAttempt(current)
        return current

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """Commits on leaving; every failure of the database becomes a StoreError that a person can read."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            raise StoreError(_readable(str(error.orig))) from error
        except SQLAlchemyError as error:
            raise StoreError(f"The store failed: {error}.") from error


def runnable_causes(lesson: Lesson, attempt: Attempt) -> tuple[str, ...]:
    """Ids of the causes that may be run now: those of the learner's own answers (the first of each), all of them once explained."""
    if attempt.stage == "explained":
        return tuple(cause.id for cause in lesson.causes)
    options = [lesson.option(answer) for answer in attempt.answers]
    return tuple(option.causes[0] for option in options if option is not None)


def _engine(path: Path, busy_limit_s: float) -> Engine:
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": busy_limit_s, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        # FULL: in WAL mode a commit is on the disk when it returns; NORMAL could lose the last answers in a power cut.
        for pragma in ("journal_mode=WAL", "synchronous=FULL"):
            connection.execute(f"PRAGMA {pragma}")

    return engine


def _read(connection: Connection, token: str) -> Attempt | None:
    row = connection.execute(select(_Row.__table__).where(_Row.token == token)).mappings().first()
    return None if row is None else _attempt(dict(row))


def _attempt(row: Mapping[str, Any]) -> Attempt:
    as_tuples = {name: tuple(row[name]) for name in ("answers", "certainties", "predictions")}
    return Attempt(**{**row, **as_tuples})


_REASONS: tuple[tuple[str, str], ...] = (
    ("locked", "The store is busy; nothing was saved. Please try again in a moment."),
    ("full", "The disk of the server is full; nothing was saved. Whoever runs the server has to make room."),
    ("readonly", "The store cannot be written; nothing was saved. Whoever runs the server has to check its data folder."),
    ("unable to open", "The store cannot be opened. Whoever runs the server has to check its data folder."),
    ("malformed", "The store is damaged; nothing was saved. Whoever runs the server has to restore it from a backup."),
    ("not a database", "The store is damaged; nothing was saved. Whoever runs the server has to restore it from a backup."),
    ("no such table", "The store has lost a table; nothing was saved. Whoever runs the server has to restore it from a backup."),
    ("disk i/o", "The disk of the server failed; nothing was saved. Whoever runs the server has to look at it."),
)


def _readable(text: str) -> str:
    found = next((message for part, message in _REASONS if part in text.lower()), None)
    return found or f"The store failed; nothing was saved: {text}."


