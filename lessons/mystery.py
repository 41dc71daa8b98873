"""Mystery runs: a live run without a label; the learner names its cause and the figure that told it, graded against what was run.

    mystery = mysteries.begin(learner)                          # drawn on the server, kept under a random token
    run = mysteries.run(mystery, get_runs())                    # a hidden run: its id, feed and exports say nothing about it
    view = mysteries.view(mystery)                              # all that may reach the browser
    mystery = mysteries.answer(mystery, "c3", "power", "fairly", get_runs())

A `Mystery` holds its answer: pages show a `MysteryView` only. Before the answer nothing else may depend on the mystery: no accent on a
lane, no opening metric, no link to the lab. Owns the table `mysteries` and its two stages. Drawing is in `lessons.mystery_deck`.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from sqlalchemy import Connection, insert, select, update

from lessons import judgements
from lessons.cards import MYSTERY, schedule
from lessons.causes import cause_name
from lessons.grading import Certainty, Stake, marks, stakes
from lessons.judgements import Judgement
from lessons.learners import ensure_learner, learner_id, well_formed
from lessons.mystery_deck import deck_causes, draw, hand_of
from lessons.mystery_hands import FIGURES, Figure
from lessons.store import Store
from lessons.store.tables import mysteries as table
from scenarios.config import RunConfig
from scenarios.runs import Run

MINUTES = 2
"""How long one takes: twelve seconds of run, and looking."""

Stage = Literal["open", "graded"]


class StartsRuns(Protocol):
    """The part of `scenarios.runs.Runs` that is needed here."""

    def start(self, config: RunConfig, *, viewer: str, hidden: bool = False) -> Run: ...
    def get(self, run_id: str, *, hidden: bool = False) -> Run | None: ...
    def reveal(self, run_id: str) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Mystery:
    """As it is in the store. Holds the answer: never to be sent to a browser."""

    token: str
    learner_id: int
    stage: Stage
    version: int
    cause: str
    config: RunConfig
    candidates: tuple[str, ...]
    review: bool
    """Asked because its cause was due."""
    costs: bool
    """Whether a wrong answer costs marks."""
    run_id: str | None
    answer: str | None
    """The cause that was named; None before, and where the learner asked to be told."""
    certainty: Certainty | None
    figure: Figure | None


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A cause on offer. Its id is its place in the list and says nothing."""

    id: str
    name: str


@dataclass(frozen=True, kw_only=True)
class FigureVerdict:
    """What a figure tells about this run."""

    figure: Figure
    label: str
    tells: bool
    """Whether it can tell this cause from all others."""
    why: str


@dataclass(frozen=True, kw_only=True)
class MysteryVerdict:
    """What is said once the cause was named."""

    right: bool
    marks: float
    named: str | None
    """The cause that was named, for people; None where the learner asked to be told."""
    name: str
    """The cause that it was, for people."""
    cause: str
    figure: FigureVerdict | None
    """The figure that the learner went by."""
    telling: tuple[FigureVerdict, ...]
    """All figures that tell it."""
    config: RunConfig
    """What was run."""


@dataclass(frozen=True, kw_only=True)
class MysteryView:
    """Everything a page may put into the browser."""

    token: str
    stage: Stage
    review: bool
    minutes: int
    run_id: str | None
    """None before its run was started."""
    candidates: tuple[Candidate, ...]
    figures: Mapping[Figure, str]
    """What may be named as the figure that told it."""
    stakes: tuple[Stake, ...]
    """What each certainty would earn and cost; empty once graded."""
    verdict: MysteryVerdict | None


class StaleMystery(Exception):
    """It was answered elsewhere (another tab) since the caller read it; `current` is how it stands now."""

    def __init__(self, current: Mystery) -> None:
        self.current = current
        super().__init__("This run was named in another tab; this is how it stands now.")


class Mysteries:
    """All mystery runs of one store. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(
        self, learner: str, *, cause: str | None = None, review: bool = False, seed: int | None = None, confused_with: Collection[str] = (),
    ) -> Mystery:
        """The learner's open mystery run, or a new one: of `cause`, else of any cause, and never in a setting this learner has had before.

        `seed` makes it reproducible. Raises StoreError, ValueError for a cause that is not in the deck, DeadToken.
        """
        seed = secrets.randbelow(2**53) if seed is None else seed
        with self._store.write() as connection:
            own = ensure_learner(connection, learner)
            return _open(connection, own) or begin_in(
                connection, own, cause=cause or _any_cause(connection, own, seed), review=review, seed=seed, confused_with=confused_with
            )

    def open(self, learner: str) -> Mystery | None:
        """The one that this learner has not named yet; None where there is none."""
        if not well_formed(learner):
            return None
        with self._store.read() as connection:
            own = learner_id(connection, learner)
            return None if own is None else _open(connection, own)

    def get(self, token: str, learner: str) -> Mystery | None:
        """The mystery run with this token, for its own learner; None for everybody else and for an unknown token."""
        if not well_formed(learner) or not 0 < len(token) <= 64 or "\x00" in token:
            return None
        with self._store.read() as connection:
            own = learner_id(connection, learner)
            found = None if own is None else read_mystery(connection, token)
            return found if found is not None and found.learner_id == own else None

    def run(self, mystery: Mystery, runs: StartsRuns, *, afresh: bool = False) -> tuple[Mystery, Run]:
        """Its run: the one under way or over, or a new one where there is none, where it broke off, or where it is asked for `afresh`.

        Raises QueueFull, StoreError.
        """
        known = runs.get(mystery.run_id, hidden=True) if mystery.run_id and not afresh else None
        if known is not None and known.state not in ("failed", "timeout", "stopped", "interrupted"):
            return mystery, known
        run = runs.start(mystery.config, viewer=mystery.token, hidden=mystery.stage == "open")
        with self._store.write() as connection:
            connection.execute(update(table).where(table.c.token == mystery.token).values(run_id=run.run_id, changed_s=time.time()))
            current = read_mystery(connection, mystery.token)
        return current or mystery, run

    def answer(self, mystery: Mystery, candidate: str, figure: str, certainty: str, runs: StartsRuns | None = None) -> Mystery:
        """Name the cause (by the id of a candidate) and the figure that told it: graded, in one transaction. Its run is then revealed.

        Raises ValueError for what is not on offer, StaleMystery where it was named in another tab, StoreError.
        """
        named = _candidate(mystery, candidate)
        if figure not in FIGURES:
            raise ValueError(f"figure={figure[:40]!r}: must be one of {', '.join(FIGURES)}")
        if certainty not in get_args(Certainty):
            raise ValueError(f"certainty={certainty[:40]!r}: must be one of {', '.join(get_args(Certainty))}")
        return self._grade(mystery, runs, answer=named, figure=figure, certainty=certainty)

    def give_up(self, mystery: Mystery, runs: StartsRuns | None = None) -> Mystery:
        """To be told instead: nothing is earned or lost, and the cause comes back soon. Raises StaleMystery, ValueError, StoreError."""
        return self._grade(mystery, runs, answer=None, figure=None, certainty=None)

    def _grade(self, mystery: Mystery, runs: StartsRuns | None, **said: str | None) -> Mystery:
        now_s = time.time()
        with self._store.write() as connection:
            done = connection.execute(
                update(table).where(table.c.token == mystery.token, table.c.stage == "open").values(
                    stage="graded", version=mystery.version + 1, changed_s=now_s, **said
                )
            )
            current = read_mystery(connection, mystery.token)
            if current is not None and done.rowcount == 1:
                judgement = _judgement(current, now_s)
                judgements.write(connection, current.learner_id, judgement, seen=True)
                schedule(connection, current.learner_id, judgement, MYSTERY)
        if current is None:
            raise ValueError("This run is no longer known here.")
        if done.rowcount != 1:
            raise StaleMystery(current)
        if runs is not None and current.run_id:
            runs.reveal(current.run_id)
        return current

    def view(self, mystery: Mystery) -> MysteryView:
        """What may be shown of it now."""
        return mystery_view(mystery)


def begin_in(
    connection: Connection, own: int, *, cause: str, review: bool, seed: int, confused_with: Collection[str] = ()
) -> Mystery:
    """A new mystery run inside a transaction of somebody else's."""
    used = set(connection.execute(select(table.c.setting).where(table.c.learner_id == own)).scalars())
    drawn = draw(seed, cause, used=used, confused_with=confused_with)
    now_s = time.time()
    values: dict[str, Any] = {
        "token": secrets.token_urlsafe(16), "learner_id": own, "stage": "open", "version": 1, "seed": seed, "cause": drawn.cause,
        "config": drawn.config.model_dump(), "setting": drawn.setting, "candidates": list(drawn.candidates), "review": review,
        "costs": judgements.may_cost(connection, own, None), "run_id": None, "answer": None, "certainty": None, "figure": None,
        "created_s": now_s, "changed_s": now_s,
    }
    connection.execute(insert(table).values(**values))
    return _mystery(values)


def mystery_view(mystery: Mystery) -> MysteryView:
    """Everything a page may put into the browser: nothing of it depends on the cause before it was named."""
    return MysteryView(
        token=mystery.token, stage=mystery.stage, review=mystery.review, minutes=MINUTES, run_id=mystery.run_id,
        candidates=tuple(Candidate(id=f"c{number}", name=cause_name(cause)) for number, cause in enumerate(mystery.candidates)),
        figures=FIGURES, stakes=stakes(costs=mystery.costs) if mystery.stage == "open" else (), verdict=_verdict(mystery),
    )


def _verdict(mystery: Mystery) -> MysteryVerdict | None:
    if mystery.stage != "graded":
        return None
    right = mystery.answer == mystery.cause
    hand = hand_of(mystery.config)
    tells = hand.tells if hand else {}
    telling = tuple(FigureVerdict(figure=name, label=FIGURES[name], tells=True, why=why) for name, why in tells.items())
    own = next((verdict for verdict in telling if verdict.figure == mystery.figure), None)
    if own is None and mystery.figure is not None:
        own = FigureVerdict(figure=mystery.figure, label=FIGURES[mystery.figure], tells=False, why=hand.hides if hand else "")
    return MysteryVerdict(
        right=right, marks=0.0 if mystery.answer is None else marks(right=right, certainty=mystery.certainty, costs=mystery.costs),
        named=None if mystery.answer is None else cause_name(mystery.answer), name=cause_name(mystery.cause), cause=mystery.cause,
        figure=own, telling=telling, config=mystery.config,
    )


def _judgement(mystery: Mystery, now_s: float) -> Judgement:
    verdict = _verdict(mystery)
    assert verdict is not None
    return Judgement(
        at_s=now_s, kind="mystery", ref=mystery.token, try_no=1, lesson_id=None, cause=mystery.cause, taken_for=mystery.answer or "",
        correct=verdict.right, certainty=mystery.certainty, marks=verdict.marks, figure=mystery.figure,
        figure_told=verdict.figure.tells if verdict.figure else None,
    )


def _candidate(mystery: Mystery, candidate: str) -> str:
    ids = [f"c{number}" for number in range(len(mystery.candidates))]
    if candidate not in ids:
        raise ValueError(f"cause={candidate[:40]!r}: must be one of {', '.join(ids)}")
    return mystery.candidates[ids.index(candidate)]


def _any_cause(connection: Connection, own: int, seed: int) -> str:
    """Any of the deck, the rarer it was asked the likelier, and never for certain: whoever keeps count must not know the next one."""
    asked = list(connection.execute(select(table.c.cause).where(table.c.learner_id == own)).scalars())
    causes = deck_causes()
    return random.Random(seed).choices(causes, weights=[1 / (1 + asked.count(cause)) for cause in causes])[0]


def _open(connection: Connection, own: int) -> Mystery | None:
    row = connection.execute(
        select(table).where(table.c.learner_id == own, table.c.stage == "open").order_by(table.c.created_s.desc()).limit(1)
    ).mappings().first()
    return None if row is None else _mystery(row)


def read_mystery(connection: Connection, token: str) -> Mystery | None:
    """The one with this token, whosever it is; inside a transaction."""
    row = connection.execute(select(table).where(table.c.token == token)).mappings().first()
    return None if row is None else _mystery(row)


def _mystery(row: Mapping[Any, Any]) -> Mystery:
    known = {name: row[name] for name in Mystery.__dataclass_fields__}
    return Mystery(**{**known, "config": RunConfig.parse(row["config"]), "candidates": tuple(row["candidates"])})
