"""Mastery, confusions and progress: rules that hold for any history, and one object that says how far a learner has come."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from lessons import load_lessons
from lessons.attempts import Attempt
from lessons.causes import HEALTHY, cause_name, cause_of_lesson, cause_of_option, typical_config
from lessons.judgements import Judgement
from lessons.learners import new_token
from lessons.learning import Learning
from lessons.mastery import APART_S, LEVELS, confusions, mastery
from lessons.model import CourseStage, Lesson, LessonSet
from lessons.mystery_deck import deck_causes
from lessons.progress import course_order
from lessons.public_view import public_view
from lessons.store import Store

WRONG, OTHER_WRONG = "m4", "q7"
LESSONS = load_lessons()


@pytest.fixture
def learning(database: Store) -> Learning:
    return Learning(database)


def judged(at_s: float, correct: bool, *, cause: str = "unsharded", taken_for: str = "sharded", try_no: int = 1) -> Judgement:
    return Judgement(
        at_s=at_s, kind="mystery", ref=str(at_s), try_no=try_no, lesson_id=None, cause=cause, taken_for=cause if correct else taken_for,
        correct=correct, certainty="fairly", marks=0.0,
    )


HISTORY = st.lists(st.tuples(st.floats(0, 5 * APART_S), st.booleans(), st.sampled_from([1, 1, 1, 2])), max_size=12)


def history(steps: list[tuple[float, bool, int]]) -> list[Judgement]:
    at_s, found = 0.0, []
    for gap_s, correct, try_no in steps:
        at_s += gap_s
        found.append(judged(at_s, correct, try_no=try_no))
    return found


@settings(max_examples=100, deadline=None)
@given(steps=HISTORY, gap_s=st.floats(0, 5 * APART_S), other=st.booleans())
def test_right_never_lowers_wrong_never_raises_and_other_causes_do_not_matter(
    steps: list[tuple[float, bool, int]], gap_s: float, other: bool
) -> None:
    before = history(steps)
    at_s = (before[-1].at_s if before else 0.0) + gap_s
    share = mastery("unsharded", before).share
    assert mastery("unsharded", [*before, judged(at_s, True)]).share >= share
    assert mastery("unsharded", [*before, judged(at_s, False)]).share <= share
    assert mastery("unsharded", [*before, judged(at_s, other, cause="sharded")]).share == share
    assert mastery("unsharded", [*before, judged(at_s, True, try_no=2)]).share == share
    assert 0.0 <= share <= 1.0


def test_the_levels_in_words() -> None:
    def level(*answers: tuple[float, bool]) -> str:
        return mastery("unsharded", [judged(days * 86_400, correct) for days, correct in answers]).level

    assert level() == "not met"
    assert level((0, False)) == "met"
    assert level((0, True)) == "named once"
    assert level((0, True), (0.1, True), (0.2, True)) == "named once", "one sitting"
    assert level((0, True), (1, True)) == "named twice"
    assert level((0, True), (1, True), (5, True)) == "mastered"
    assert level((0, True), (1, True), (5, True), (6, False)) == "met"
    assert level((0, False), (1, True), (1.5, True), (2, True), (9, True)) == LEVELS[-1]


def test_what_is_taken_for_what_comes_with_both_runs_and_ends_when_named_right() -> None:
    history = [judged(1, False), judged(2, False), judged(3, False, taken_for="tiny_model"), judged(4, False, cause="slow_gpu")]
    found = confusions(history, LESSONS)
    assert [(each.cause, each.taken_for, each.times) for each in found] == [
        ("unsharded", "sharded", 2), ("slow_gpu", "sharded", 1), ("unsharded", "tiny_model", 1),
    ]
    first = found[0]
    assert (first.name, first.taken_for_name) == (cause_name("unsharded"), cause_name("sharded"))
    assert (first.config, first.taken_for_config) == (typical_config("unsharded"), typical_config("sharded"))
    assert [each.cause for each in confusions([*history, judged(5, True)], LESSONS)] == ["slow_gpu"]
    assert len(confusions([*history, judged(5, True, try_no=2)], LESSONS)) == 3, "at the second try it is no longer a choice"
    assert confusions([judged(1, False, taken_for="")], LESSONS) == (), "told on request"


def test_an_option_that_a_healthy_run_disproves_is_no_cause(learning: Learning) -> None:
    lesson = LESSONS.get("eight-busy-no-faster")
    assert lesson is not None
    option = next(option for option in lesson.options if cause_of_option(lesson, option.id) == HEALTHY)
    token, store = new_token(), learning.attempts
    attempt = store.lock_in(store.open(lesson, learner=token), lesson, option.id, "fairly", learner=token)
    store.show_answer(store.see_verdict(store.predict(attempt, None)), lesson)
    progress = learning.progress(token, LESSONS)
    assert [each.level for each in progress.mastery] == ["met"]
    assert progress.confusions == ()


def test_a_mistake_in_a_lesson_is_compared_by_that_lessons_runs(lesson: Lesson) -> None:
    mistake = replace(judged(1, False, cause=cause_of_lesson(lesson), taken_for="large_batch"), lesson_id=lesson.id)
    (confusion,) = confusions([mistake], LESSONS)
    cause = lesson.cause(lesson.key.causes[0])
    assert cause is not None
    assert confusion.config == lesson.config_of(cause.scenario)


def test_every_cause_has_a_name_and_a_typical_run() -> None:
    for cause in {*deck_causes(), *(cause_of_lesson(lesson) for lesson in LESSONS.lessons)}:
        assert cause_name(cause)
        assert typical_config(cause) is not None
    assert typical_config("unheard_of") is None
    assert cause_name("unheard_of") == "unheard of"


def test_a_newcomer_starts_with_the_first_lesson(learning: Learning) -> None:
    progress = learning.progress(new_token(), LESSONS)
    assert (progress.known, progress.done, progress.marks, progress.mastery) == (False, 0, 0.0, ())
    assert (progress.next.kind, progress.next.lesson_id) == ("start", LESSONS.lessons[0].id)
    assert [each.state for each in progress.lessons] == ["new"] * len(LESSONS.lessons)
    assert learning.progress("no token", LESSONS).next.kind == "start"


def test_progress_from_the_first_answer_to_the_next_lesson(learning: Learning, lesson: Lesson) -> None:
    token, store = new_token(), learning.attempts
    attempt = store.lock_in(store.open(lesson, learner=token), lesson, WRONG, "certain", learner=token)
    open_one = learning.progress(token, LESSONS)
    assert (open_one.known, open_one.answers, open_one.marks, open_one.mastery, open_one.confusions) == (True, 0, 0.0, (), ())
    assert (open_one.next.kind, open_one.next.attempt) == ("continue", attempt.token)
    attempt = store.see_verdict(store.predict(attempt, None))
    seen = learning.progress(token, LESSONS)
    assert (seen.answers, seen.marks) == (1, 0.0), "nothing is lost in the first lesson"
    assert (seen.mastery, seen.confusions) == ((), ()), "there is a second try, and a cause's name would end it"
    attempt = store.lock_in(store.try_again(attempt, lesson), lesson, lesson.key.id, "fairly")
    attempt = store.explain(store.see_verdict(store.predict(attempt, None)), lesson)
    done = learning.progress(token, LESSONS)
    assert [each.level for each in done.mastery] == ["met"]
    assert [each.taken_for for each in done.confusions] == ["large_batch"]
    own = next(each for each in done.lessons if each.lesson_id == lesson.id)
    assert (own.state, own.marks, own.right_first, own.attempt) == ("done", 0.5, False, None)
    assert (done.done, done.marks) == (1, 0.5)
    assert (done.next.kind, done.next.lesson_id) == ("lesson", done.lessons[1].lesson_id)


def test_the_marks_of_the_next_lesson_can_be_lost_and_only_its_first_attempt_counts(learning: Learning, lesson: Lesson) -> None:
    token, store = new_token(), learning.attempts
    store.show_answer(store.lock_in(store.open(lesson, learner=token), lesson, lesson.key.id, "certain", learner=token), lesson)
    second = LESSONS.lessons[1]
    wrong = next(option.id for option in second.options if not option.right)
    fresh = store.open(second, learner=token)
    assert [stake.wrong for stake in public_view(second, fresh).stakes] == [0.0, -2.0, -6.0]
    attempt = store.see_verdict(store.predict(store.lock_in(fresh, second, wrong, "certain", learner=token), None))
    store.show_answer(attempt, second)
    assert learning.progress(token, LESSONS).marks == -6.0, "an answer shown on request earned nothing in the first lesson"
    again = store.lock_in(store.open(second, learner=token), second, second.key.id, "certain", learner=token)
    store.explain(store.see_verdict(store.predict(again, None)), second)
    progress = learning.progress(token, LESSONS)
    assert progress.marks == -6.0
    assert next(each.marks for each in progress.lessons if each.lesson_id == second.id) == -6.0


def test_what_is_due_comes_before_new_lessons_and_mystery_runs_after_the_last(learning: Learning, lesson: Lesson) -> None:
    token, store = new_token(), learning.attempts
    for each in LESSONS.lessons:
        store.show_answer(store.lock_in(store.open(each, learner=token), each, each.key.id, "fairly", learner=token), each)
    assert learning.progress(token, LESSONS).next.kind == "mystery"
    later = learning.progress(token, LESSONS, now_s=time.time() + 30 * 86_400)
    assert later.next.kind == "review"
    assert later.due.count == len({cause_of_lesson(each) for each in LESSONS.lessons})


def test_the_course_is_shuffled_within_its_later_parts_alike_for_one_learner() -> None:
    made = [replace(LESSONS.lessons[0], id=f"lesson-{number}") for number in range(9)]
    stages = tuple(
        CourseStage(name=f"Part {part}", lessons=tuple(f"lesson-{number}" for number in range(3 * part, 3 * part + 3))) for part in range(2)
    )
    course = LessonSet(lessons=tuple(made), faults=(), stages=stages)
    orders = {token: [lesson.id for lesson in course_order(course, token)] for token in (new_token() for _ in range(20))}
    for token, order in orders.items():
        assert order == [lesson.id for lesson in course_order(course, token)]
        assert order[:3] == list(stages[0].lessons)
        assert sorted(order[3:6]) == list(stages[1].lessons)
        assert order[6:] == ["lesson-6", "lesson-7", "lesson-8"], "in no part"
    assert len({tuple(order) for order in orders.values()}) > 1


def test_a_full_history_is_read_with_few_queries(learning: Learning, database: Store) -> None:
    token, store = new_token(), learning.attempts
    for _ in range(3):
        for lesson in LESSONS.lessons:
            store.show_answer(store.lock_in(store.open(lesson, learner=token), lesson, lesson.key.id, "fairly", learner=token), lesson)
    statements: list[str] = []
    count: Callable[..., None] = lambda *args: statements.append(args[2])  # noqa: E731 - SQLAlchemy passes six arguments
    event.listen(database._engine, "before_cursor_execute", count)
    learning.progress(token, LESSONS)
    event.remove(database._engine, "before_cursor_execute", count)
    assert len([statement for statement in statements if statement.startswith("SELECT")]) == 4


def test_no_cause_is_named_while_a_second_try_is_left(learning: Learning, lesson: Lesson) -> None:
    token = new_token()
    attempt = learning.attempts.lock_in(learning.attempts.open(lesson, learner=token), lesson, WRONG, "guess", learner=token)
    attempt = learning.attempts.see_verdict(learning.attempts.predict(attempt, None))
    progress, export = learning.progress(token, LESSONS), learning.learners.export(token)
    assert export is not None
    assert (progress.mastery, progress.confusions, progress.answers) == ((), (), 1)
    assert [row["cause"] for row in export["judgements"]] == [None]
    learning.attempts.show_answer(attempt, lesson, learner=token)
    progress, export = learning.progress(token, LESSONS), learning.learners.export(token)
    assert export is not None
    assert [each.cause for each in progress.mastery] == [cause_of_lesson(lesson)]
    assert [row["cause"] for row in export["judgements"]] == [cause_of_lesson(lesson)]


@pytest.mark.parametrize("stage", ["predict", "run", "verdict", "second_try"])
def test_a_lesson_that_was_rewritten_in_the_middle_is_begun_anew(learning: Learning, lesson: Lesson, stage: str) -> None:
    """Its old attempt could neither be shown nor finished, and would be what comes next for ever."""
    token, wrong, store = new_token(), next(option for option in lesson.options if not option.right), learning.attempts
    left = store.lock_in(store.open(lesson, learner=token), lesson, wrong.id, "certain", learner=token)
    moves: list[Callable[[Attempt], Attempt]] = [
        lambda attempt: store.predict(attempt, "all_high"), store.see_verdict, lambda attempt: store.try_again(attempt, lesson),
    ]
    while left.stage != stage:
        left = moves.pop(0)(left)
    options = tuple(replace(option, id="x9") if option == wrong else option for option in lesson.options)
    rewritten = replace(lesson, options=options)
    lessons = LessonSet(lessons=(rewritten,), faults=())
    assert learning.progress(token, lessons).next.kind == "start"
    anew = store.open(rewritten, learner=token, token=left.token)
    assert public_view(rewritten, anew).stage == "question"
    anew = store.lock_in(anew, rewritten, rewritten.key.id, "fairly", learner=token)
    store.explain(store.see_verdict(store.predict(anew, None)), rewritten)
    mine = learning.progress(token, lessons)
    assert (mine.done, mine.marks, mine.next.kind) == (1, 2.0, "mystery")
    assert store.open(lesson, learner=token, token=left.token) == left, "the lesson as it was goes on with it"
