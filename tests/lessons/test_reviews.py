"""Reviews on both databases: when a cause comes back, in which form, and that nothing of it is told before it is named."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from lessons.attempts import Attempt
from lessons.cards import MYSTERY, wording_form
from lessons.causes import cause_of_lesson
from lessons.judgements import seen_by
from lessons.learners import new_token
from lessons.learning import Learning
from lessons.model import Lesson, LessonSet
from lessons.mystery import Mystery
from lessons.public_view import public_view
from lessons.reviews import forms_of
from lessons.store import Store

DAY_S = 86_400.0
WRONG = "m4"


@pytest.fixture
def learning(database: Store) -> Learning:
    return Learning(database)


@pytest.fixture
def lessons(lesson: Lesson) -> LessonSet:
    return LessonSet(lessons=(lesson,), faults=())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], float]:
    """`clock(3.0)` lets three days pass and says what time it is then."""
    now = [time.time()]
    monkeypatch.setattr(time, "time", lambda: now[0])

    def pass_days(days: float) -> float:
        now[0] += days * DAY_S
        return now[0]

    return pass_days


def answered(learning: Learning, token: str, lesson: Lesson, option: str = "", certainty: str = "fairly") -> Attempt:
    """The lesson, answered and explained."""
    store = learning.attempts
    attempt = store.open(lesson, learner=token)
    attempt = store.lock_in(attempt, lesson, option or lesson.key.id, certainty, learner=token)  # type: ignore[arg-type]
    return store.show_answer(store.see_verdict(store.predict(attempt, None)), lesson)


def finished(learning: Learning, item: Attempt | Mystery, lesson: Lesson) -> str:
    """The review, named right; returns the form in which it was asked."""
    if isinstance(item, Mystery):
        learning.mysteries.answer(item, f"c{item.candidates.index(item.cause)}", "power", "fairly")
        return MYSTERY
    store = learning.attempts
    store.explain(store.see_verdict(store.predict(store.lock_in(item, lesson, lesson.key.id, "fairly"), None)), lesson)
    return wording_form(item.lesson_id, item.wording)


def test_nothing_is_due_for_a_newcomer(learning: Learning, lessons: LessonSet) -> None:
    due = learning.reviews.due(new_token(), lessons)
    assert (due.count, due.minutes, due.next_due_s) == (0, 0, None)
    assert learning.reviews.begin(new_token(), lessons) is None


def test_what_was_answered_comes_back_when_its_day_has_come(
    learning: Learning, lesson: Lesson, lessons: LessonSet, clock: Callable[[float], float]
) -> None:
    token = new_token()
    answered(learning, token, lesson)
    due = learning.reviews.due(token, lessons)
    assert due.count == 0
    assert due.next_due_s == pytest.approx(clock(0) + 2 * DAY_S, abs=60), "two days after a first right answer"
    assert learning.reviews.begin(token, lessons) is None
    clock(2.1)
    assert (learning.reviews.due(token, lessons).count, learning.reviews.due(token, lessons).minutes) == (1, 2)


@pytest.mark.parametrize(("option", "certainty", "days"), [(WRONG, "certain", 1), ("", "guess", 1), ("", "fairly", 2), ("", "certain", 2)])
def test_the_first_interval_follows_the_answer(
    learning: Learning, lesson: Lesson, lessons: LessonSet, clock: Callable[[float], float], option: str, certainty: str, days: int
) -> None:
    token = new_token()
    answered(learning, token, lesson, option, certainty)
    assert learning.reviews.due(token, lessons).next_due_s == pytest.approx(clock(0) + days * DAY_S, abs=60)


def test_it_never_comes_back_the_same_way_twice_in_a_row(
    learning: Learning, lesson: Lesson, lessons: LessonSet, clock: Callable[[float], float]
) -> None:
    token = new_token()
    answered(learning, token, lesson)
    forms, gaps = [wording_form(lesson.id, None)], []
    for seed in range(10):
        due_s = learning.reviews.due(token, lessons).next_due_s
        assert due_s is not None
        gaps.append(due_s - clock(0))
        clock(gaps[-1] / DAY_S + 0.1)
        item = learning.reviews.begin(token, lessons, seed=seed)
        assert item is not None
        again = learning.reviews.begin(token, lessons, seed=seed + 100)
        assert again is not None
        assert again.token == item.token, "under way until it was named"
        forms.append(finished(learning, item, lesson))
    assert all(one != next_one for one, next_one in itertools.pairwise(forms))
    assert wording_form(lesson.id, None) not in forms[1:], "its own text was read with the explanation"
    assert {MYSTERY, wording_form(lesson.id, 0), wording_form(lesson.id, 1)} <= set(forms)
    assert gaps == sorted(gaps), "named right again and again, it comes ever more rarely"


def test_another_wording_is_shown_with_other_places_and_no_answer(
    learning: Learning, lesson: Lesson, lessons: LessonSet, clock: Callable[[float], float]
) -> None:
    token = new_token()
    answered(learning, token, lesson)
    clock(3)
    seen = set()
    for seed in range(20):
        item = learning.reviews.begin(token, lessons, seed=seed)
        if isinstance(item, Attempt):
            view = public_view(lesson, item)
            assert view.kind == "review"
            assert view.symptom in lesson.wordings
            assert (view.judged, view.lesson, view.causes) == ((), None, ())
            seen.add(tuple(option.id for option in view.options))
            learning.attempts.show_answer(item, lesson)
        elif isinstance(item, Mystery):
            assert item.review
            learning.mysteries.give_up(item)
        clock(1.1)  # what was shown on request comes back tomorrow
    assert len(seen) > 1


def test_a_cause_without_a_lesson_or_a_mystery_run_is_not_asked(
    learning: Learning, lesson: Lesson, lessons: LessonSet, clock: Callable[[float], float]
) -> None:
    token = new_token()
    only = replace(lesson, options=tuple(replace(option, right=option.id == WRONG) for option in lesson.options))
    answered(learning, token, only)
    clock(30)
    assert cause_of_lesson(only) != cause_of_lesson(lesson)
    assert forms_of("unheard_of", lessons) == []
    assert learning.reviews.due(token, lessons).count == 1, "as a mystery run"
    item = learning.reviews.begin(token, lessons)
    assert isinstance(item, Mystery)
    assert item.cause == cause_of_lesson(only)


def test_a_clock_that_was_set_back_breaks_nothing(
    learning: Learning, lesson: Lesson, lessons: LessonSet, clock: Callable[[float], float]
) -> None:
    token = new_token()
    answered(learning, token, lesson)
    clock(-5)
    answered(learning, token, lesson, WRONG)
    assert learning.reviews.due(token, lessons).next_due_s is not None


def test_what_was_answered_under_a_wrong_clock_comes_back(
    learning: Learning, lesson: Lesson, lessons: LessonSet, clock: Callable[[float], float]
) -> None:
    token = new_token()
    clock(4000)
    answered(learning, token, lesson)
    now_s = clock(-4000)
    assert learning.reviews.due(token, lessons).count == 1, "not in eleven years"
    item = learning.reviews.begin(token, lessons)
    assert item is not None
    finished(learning, item, lesson)
    next_due_s = learning.reviews.due(token, lessons).next_due_s
    assert next_due_s is not None
    assert now_s < next_due_s < now_s + 30 * DAY_S


def test_a_mistaken_cause_is_among_the_candidates(
    learning: Learning, lesson: Lesson, lessons: LessonSet, clock: Callable[[float], float]
) -> None:
    token = new_token()
    answered(learning, token, lesson, "q7", "fairly")  # schedulers out of step: nothing like it
    for seed in range(12):
        clock(1.5)
        item = learning.reviews.begin(token, lessons, seed=seed)
        if isinstance(item, Mystery):
            assert "scheduler_desync" in item.candidates
            return
        if isinstance(item, Attempt):
            learning.attempts.show_answer(item, lesson)
    pytest.fail("never asked as a mystery run")


def test_a_judgement_is_counted_once_though_two_tabs_see_it(learning: Learning, lesson: Lesson, lessons: LessonSet) -> None:
    token = new_token()
    attempt = answered(learning, token, lesson)
    due = learning.reviews.due(token, lessons)
    learning.attempts.show_answer(attempt, lesson)
    assert learning.reviews.due(token, lessons) == due
    with learning.store.read() as connection:
        kept = seen_by(connection, learning.learners.find(token) or 0)
    assert len(kept) == 1
