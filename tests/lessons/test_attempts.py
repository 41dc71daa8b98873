"""The store of attempts: stages, two tabs, restarts, forged tokens, a busy, full or broken database."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lessons.attempts import STORE_FILE, AttemptStore, StaleAttempt, StoreError, UnknownAttempt
from lessons.model import Lesson
from lessons.public_view import score

RIGHT, WRONG, OTHER_WRONG = "t2", "m4", "x8"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AttemptStore]:
    opened = AttemptStore(tmp_path, busy_limit_s=0.2)
    yield opened
    opened.close()


def test_a_right_first_answer_goes_through_all_stages(store: AttemptStore, lesson: Lesson) -> None:
    attempt = store.start(lesson.id)
    stages = [attempt.stage]
    attempt = store.lock_in(attempt, lesson, RIGHT, "fairly")
    stages.append(attempt.stage)
    attempt = store.predict(attempt, "only0")
    stages.append(attempt.stage)
    attempt = store.record_run(attempt.token, lesson, "k2", "run-1")
    attempt = store.see_verdict(attempt)
    stages.append(attempt.stage)
    attempt = store.explain(attempt, lesson)
    stages.append(attempt.stage)
    assert stages == ["question", "predict", "run", "verdict", "explained"]
    assert (attempt.answer, attempt.certainty, attempt.prediction, attempt.runs) == (RIGHT, "fairly", "only0", {"k2": "run-1"})
    assert score(lesson, attempt) == 1.0


def test_a_second_try_scores_less_and_keeps_the_first(store: AttemptStore, lesson: Lesson) -> None:
    attempt = store.see_verdict(store.predict(store.lock_in(store.start(lesson.id), lesson, WRONG), "all_crash"))
    with pytest.raises(ValueError, match="second try"):
        store.explain(attempt, lesson)
    attempt = store.try_again(attempt, lesson)
    assert (attempt.stage, attempt.try_no) == ("second_try", 2)
    with pytest.raises(ValueError, match="already refuted"):
        store.lock_in(attempt, lesson, WRONG)
    attempt = store.see_verdict(store.predict(store.lock_in(attempt, lesson, RIGHT, "certain"), "only0"))
    assert attempt.answers == (WRONG, RIGHT)
    assert attempt.certainties == (None, "certain")
    assert attempt.predictions == ("all_crash", "only0")
    assert score(lesson, store.explain(attempt, lesson)) == 0.5


def test_two_wrong_answers_end_the_tries(store: AttemptStore, lesson: Lesson) -> None:
    attempt = store.see_verdict(store.predict(store.lock_in(store.start(lesson.id), lesson, WRONG), None))
    attempt = store.lock_in(store.try_again(attempt, lesson), lesson, OTHER_WRONG)
    attempt = store.see_verdict(store.predict(attempt, None))
    with pytest.raises(ValueError, match="no second try"):
        store.try_again(attempt, lesson)
    assert score(lesson, attempt) == 0.0
    assert store.explain(attempt, lesson).stage == "explained"


@pytest.mark.parametrize("stage", ["question", "predict", "run"])
def test_showing_the_answer_is_possible_from_anywhere_and_costs_the_score(store: AttemptStore, lesson: Lesson, stage: str) -> None:
    attempt = store.start(lesson.id)
    if stage != "question":
        attempt = store.lock_in(attempt, lesson, RIGHT)
    if stage == "run":
        attempt = store.predict(attempt, "only0")
    attempt = store.show_answer(attempt, lesson)
    assert (attempt.stage, attempt.shown, score(lesson, attempt)) == ("explained", True, 0.0)


def test_showing_the_answer_after_a_right_verdict_costs_nothing(store: AttemptStore, lesson: Lesson) -> None:
    attempt = store.see_verdict(store.predict(store.lock_in(store.start(lesson.id), lesson, RIGHT), "only0"))
    assert score(lesson, store.show_answer(attempt, lesson)) == 1.0


def test_asking_for_the_answer_once_more_costs_nothing(store: AttemptStore, lesson: Lesson) -> None:
    attempt = store.see_verdict(store.predict(store.lock_in(store.start(lesson.id), lesson, RIGHT), "only0"))
    explained = store.explain(attempt, lesson)
    assert score(lesson, store.show_answer(explained, lesson)) == 1.0


def test_stages_cannot_be_skipped(store: AttemptStore, lesson: Lesson) -> None:
    attempt = store.start(lesson.id)
    for skip in (lambda: store.predict(attempt, "only0"), lambda: store.see_verdict(attempt), lambda: store.explain(attempt, lesson)):
        with pytest.raises(ValueError, match=r"not possible|second try"):
            skip()
    stored = store.get(attempt.token)
    assert stored is not None
    assert stored.stage == "question"


def test_everything_survives_a_restart(store: AttemptStore, lesson: Lesson, tmp_path: Path) -> None:
    attempt = store.predict(store.lock_in(store.start(lesson.id), lesson, RIGHT, "certain"), "all_high")
    store.close()
    reopened = AttemptStore(tmp_path)
    assert reopened.get(attempt.token) == attempt
    reopened.close()


def test_two_tabs_cannot_overwrite_each_other(store: AttemptStore, lesson: Lesson) -> None:
    seen_by_both = store.start(lesson.id)
    first = store.lock_in(seen_by_both, lesson, RIGHT)
    with pytest.raises(StaleAttempt) as stale:
        store.lock_in(seen_by_both, lesson, WRONG)
    assert stale.value.current == first
    assert store.get(seen_by_both.token) == first


def test_of_many_threads_exactly_one_locks_in(store: AttemptStore, lesson: Lesson, tmp_path: Path) -> None:
    attempt = store.start(lesson.id)
    outcomes: list[str] = []
    patient = AttemptStore(tmp_path, busy_limit_s=10)

    def lock(option: str) -> None:
        try:
            patient.lock_in(attempt, lesson, option)
            outcomes.append(option)
        except StaleAttempt:
            outcomes.append("stale")

    threads = [threading.Thread(target=lock, args=(option,)) for option in (RIGHT, WRONG, OTHER_WRONG, "q7") * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    patient.close()
    winners = [outcome for outcome in outcomes if outcome != "stale"]
    assert len(outcomes) == 12
    assert len(winners) == 1
    stored = store.get(attempt.token)
    assert stored is not None
    assert stored.answers == (winners[0],)


def test_runs_of_two_tabs_are_merged(store: AttemptStore, lesson: Lesson) -> None:
    attempt = store.show_answer(store.start(lesson.id), lesson)
    store.record_run(attempt.token, lesson, "k2", "run-a")
    merged = store.record_run(attempt.token, lesson, "k9", "run-b")
    assert merged.runs == {"k2": "run-a", "k9": "run-b"}


def test_only_the_own_cause_may_be_run_before_the_explanation(store: AttemptStore, lesson: Lesson) -> None:
    attempt = store.predict(store.lock_in(store.start(lesson.id), lesson, WRONG), None)
    with pytest.raises(ValueError, match="cannot be run"):
        store.record_run(attempt.token, lesson, "k2", "run-1")
    assert store.record_run(attempt.token, lesson, "k5", "run-1").runs == {"k5": "run-1"}


@pytest.mark.parametrize("token", ["", "x", "../../etc/passwd", "' OR 1=1 --", "a" * 10_000, "\x00", "żółw"])
def test_unknown_and_forged_tokens_are_nobodys(store: AttemptStore, token: str) -> None:
    store.start("one-busy-gpu")
    assert store.get(token) is None


def test_changing_an_unknown_attempt_says_so(store: AttemptStore, lesson: Lesson) -> None:
    with pytest.raises(UnknownAttempt):
        store.record_run("nobody", lesson, "k2", "run-1")


def test_tokens_cannot_be_guessed(store: AttemptStore) -> None:
    tokens = {store.start("one-busy-gpu").token for _ in range(50)}
    assert len(tokens) == 50
    assert min(len(token) for token in tokens) >= 21


@pytest.mark.parametrize(
    ("option", "certainty", "message"), [("zz", None, "option='zz'"), (RIGHT, "sure", "certainty='sure'")]
)
def test_unusable_answers_are_refused_by_name(
    store: AttemptStore, lesson: Lesson, option: str, certainty: str | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        store.lock_in(store.start(lesson.id), lesson, option, certainty)  # type: ignore[arg-type]


def test_a_busy_database_is_said_and_nothing_is_acknowledged(store: AttemptStore, lesson: Lesson, tmp_path: Path) -> None:
    attempt = store.start(lesson.id)
    other = sqlite3.connect(tmp_path / STORE_FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="busy; nothing was saved"):
        store.lock_in(attempt, lesson, RIGHT)
    other.execute("ROLLBACK")
    other.close()
    assert store.get(attempt.token) == attempt
    assert store.lock_in(attempt, lesson, RIGHT).answer == RIGHT


def test_a_full_disk_is_said(store: AttemptStore, lesson: Lesson) -> None:
    attempt = store.start(lesson.id)
    # SQLite's own limit on pages raises the same error as a full disk; here there is no room for one more page.
    with store._store.read() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")

    def fill() -> None:
        for _ in range(200):
            store.start(lesson.id)

    with pytest.raises(StoreError, match="full; nothing was saved"):
        fill()
    assert store.get(attempt.token) == attempt


def test_a_damaged_database_is_said(tmp_path: Path) -> None:
    (tmp_path / STORE_FILE).write_bytes(b"this is not a database, " * 200)
    with pytest.raises(StoreError, match="damaged"):
        AttemptStore(tmp_path)


def test_a_data_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="cannot be made"):
        AttemptStore(tmp_path / "file" / "data")
