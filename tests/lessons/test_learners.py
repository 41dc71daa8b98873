"""Learners on both databases: tokens that nobody can guess and the store does not hold, export without answers, deletion for good."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import select

from lessons.attempts import AttemptStore
from lessons.learners import TOKEN, DeadToken, Learners, new_token
from lessons.model import Lesson
from lessons.store import Store
from lessons.store.tables import dead_tokens, metadata

RIGHT, WRONG = "t2", "m4"


@pytest.fixture
def attempts(database: Store) -> AttemptStore:
    return AttemptStore(database)


@pytest.fixture
def learners(database: Store) -> Learners:
    return Learners(database)


def everything(database: Store) -> str:
    with database.read() as connection:
        return str([connection.execute(select(table)).all() for table in metadata.sorted_tables])


def test_tokens_are_well_formed_and_never_the_same() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(TOKEN.fullmatch(token) for token in tokens)


def test_looking_leaves_nothing_and_an_answer_makes_the_learner(
    attempts: AttemptStore, learners: Learners, lesson: Lesson, database: Store
) -> None:
    token = new_token()
    attempt = attempts.open(lesson, learner=token)
    assert not attempt.stored
    assert not learners.known(token)
    attempts.lock_in(attempt, lesson, RIGHT, "fairly", learner=token)
    assert learners.known(token)
    assert token not in everything(database)


@pytest.mark.parametrize("token", [None, "", "x", "' OR 1=1 --", "a" * 31, "a" * 33, "\x00" * 32, "ż" * 32])
def test_what_cannot_be_a_token_is_nobody(learners: Learners, attempts: AttemptStore, lesson: Lesson, token: str | None) -> None:
    assert learners.find(token) is None
    assert not attempts.open(lesson, learner=token).stored
    if token is not None:
        assert not learners.delete(token)
        assert learners.export(token) is None
        with pytest.raises(ValueError, match="learner"):
            attempts.start(lesson.id, learner=token)


def test_everything_goes_on_elsewhere_with_the_token(attempts: AttemptStore, lesson: Lesson) -> None:
    token = new_token()
    attempt = attempts.open(lesson, learner=token)
    attempt = attempts.predict(attempts.lock_in(attempt, lesson, WRONG, "guess", learner=token), "all_crash")
    assert attempts.open(lesson, learner=token) == attempt
    assert not attempts.open(lesson, learner=new_token()).stored


def test_an_attempt_of_somebody_else_is_not_gone_on_with(attempts: AttemptStore, lesson: Lesson) -> None:
    theirs = attempts.start(lesson.id, learner=new_token())
    nobodys = attempts.start(lesson.id)
    mine = new_token()
    assert attempts.open(lesson, learner=mine, token=theirs.token).token != theirs.token
    assert attempts.open(lesson, learner=mine, token=nobodys.token) == nobodys


def test_a_finished_lesson_is_begun_anew_with_another_order(attempts: AttemptStore, lesson: Lesson) -> None:
    token = new_token()
    first = attempts.open(lesson, learner=token)
    assert attempts.open(lesson, learner=token).seed == first.seed
    attempts.show_answer(first, lesson, learner=token)
    again = attempts.open(lesson, learner=token)
    assert not again.stored
    assert again.seed != first.seed


def test_the_export_holds_everything_and_no_open_answer(attempts: AttemptStore, learners: Learners, lesson: Lesson) -> None:
    token = new_token()
    attempts.lock_in(attempts.open(lesson, learner=token), lesson, WRONG, "certain", learner=token)
    export = learners.export(token)
    assert export is not None
    told = json.dumps(export)
    assert export["attempts"][0]["answers"] == [WRONG]
    assert export["judgements"] == []
    assert token not in told
    attempt = attempts.open(lesson, learner=token)
    attempts.see_verdict(attempts.predict(attempt, None))
    export = learners.export(token)
    assert export is not None
    assert [(row["correct"], row["certainty"]) for row in export["judgements"]] == [(False, "certain")]


def test_deletion_leaves_nothing_and_the_token_stays_dead(
    attempts: AttemptStore, learners: Learners, lesson: Lesson, database: Store
) -> None:
    token, other = new_token(), new_token()
    for each in (token, other):
        attempts.lock_in(attempts.open(lesson, learner=each), lesson, RIGHT, "fairly", learner=each)
    attempt = attempts.open(lesson, learner=token)
    assert learners.delete(token)
    assert not learners.delete(token)
    assert (learners.find(token), learners.export(token), learners.is_dead(token)) == (None, None, True)
    assert attempts.get(attempt.token) is None
    with pytest.raises(DeadToken):
        attempts.start(lesson.id, learner=token)
    assert learners.known(other)
    assert not learners.is_dead(other)
    assert attempts.open(lesson, learner=other).answers == (RIGHT,)
    with database.read() as connection:
        kept = {table.name: len(connection.execute(select(table)).all()) for table in metadata.sorted_tables}
        left = connection.execute(select(dead_tokens)).all()
    assert {name: count for name, count in kept.items() if count} == {"learners": 1, "attempts": 1, "judgements": 1, "dead_tokens": 1}
    assert token not in str(left)
