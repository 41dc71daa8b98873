"""Nothing of the key can be read from what a page is given before the stage at which it may be known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lessons.attempts import Attempt, AttemptStore
from lessons.grading import grade
from lessons.model import Lesson
from lessons.public_view import public_view
from scenarios.catalog import SCENARIOS


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AttemptStore]:
    opened = AttemptStore(tmp_path)
    yield opened
    opened.close()


def _texts(thing: Any) -> Iterator[str]:
    """Every string (and, as text, every other value) that can be reached from `thing`."""
    if is_dataclass(thing):
        for field in fields(thing):
            yield from _texts(getattr(thing, field.name))
    elif isinstance(thing, dict):
        yield from _texts(list(thing.items()))
    elif isinstance(thing, (list, tuple)):
        for item in thing:
            yield from _texts(item)
    else:
        yield str(thing)


def _all(thing: Any) -> str:
    return "\n".join(_texts(thing))


def _secrets(lesson: Lesson) -> list[str]:
    """Texts that tell the answer, or name a cause or an experiment."""
    return [
        *SCENARIOS, *(scenario.title for scenario in SCENARIOS.values()),
        *(option.rebuttal.markdown[:40] for option in lesson.options),
        *(cause.title for cause in lesson.causes), *(cause.shows for cause in lesson.causes), *(cause.id for cause in lesson.causes),
        lesson.why.markdown[:40], lesson.full_story.markdown[:40], lesson.exam_box.markdown[:40], lesson.on_call_box.markdown[:40],
        lesson.infographic_alt[:30],
    ]


def _without_the_question(lesson: Lesson, told: str) -> str:
    """The question itself may use words ("sharded") that are also names of experiments."""
    for public in (*(option.text for option in lesson.options), *(term.short for term in lesson.terms)):
        told = told.replace(public, "")
    return told


def test_before_lock_in_nothing_is_told(store: AttemptStore, lesson: Lesson) -> None:
    attempt = store.start(lesson.id)
    told = _without_the_question(lesson, _all(public_view(lesson, attempt)) + _all(attempt)).replace(attempt.token, "")  # random letters
    assert [secret for secret in _secrets(lesson) if secret.lower() in told.lower()] == []
    assert "True" not in told
    assert lesson.symptom.markdown in told


def test_whatever_is_right_the_view_before_lock_in_is_the_same(store: AttemptStore, lesson: Lesson) -> None:
    attempt = store.start(lesson.id)
    other_key = replace(lesson, options=tuple(replace(option, right=option.id == "m4") for option in lesson.options))
    assert public_view(other_key, attempt) == public_view(lesson, attempt)


def _at(store: AttemptStore, lesson: Lesson, option: str, stage: str) -> Attempt:
    attempt = store.lock_in(store.start(lesson.id), lesson, option)
    if stage == "predict":
        return attempt
    attempt = store.predict(attempt, "only0")
    return attempt if stage == "run" else store.see_verdict(attempt)


@pytest.mark.parametrize("stage", ["predict", "run"])
@pytest.mark.parametrize("option", ["m4", "q7", "t2", "x8"])
def test_the_proof_comes_before_the_verdict(store: AttemptStore, lesson: Lesson, option: str, stage: str) -> None:
    view = public_view(lesson, _at(store, lesson, option, stage))
    own = lesson.option(option)
    assert own is not None
    told = _all(view)
    assert (view.judged, view.score, view.lesson) == ((), None, None)
    assert [cause.id for cause in view.causes] == [own.causes[0]]
    assert view.causes[0].shows == ""
    for other in lesson.causes:
        assert (other.title in told) == (other.id == own.causes[0])
    assert not any(known.rebuttal.markdown in told for known in lesson.options)
    assert [name for name in SCENARIOS if name in _without_the_question(lesson, told)] == []


@pytest.mark.parametrize("option", ["m4", "q7", "x8"])
def test_a_wrong_first_answer_is_told_its_rebuttal_and_not_the_key(store: AttemptStore, lesson: Lesson, option: str) -> None:
    attempt = _at(store, lesson, option, "verdict")
    for stage_attempt in (attempt, store.try_again(attempt, lesson)):
        view = public_view(lesson, stage_attempt)
        told = _all(view)
        assert view.judged[0].verdict == grade(lesson, option, 1)
        assert view.score is None
        assert view.lesson is None
        assert lesson.option(option).rebuttal.markdown in told  # type: ignore[union-attr]
        hidden = [other for other in lesson.options if other.id != option]
        assert not any(other.rebuttal.markdown in told for other in hidden)
        assert not any(lesson.cause(cause).title in told for other in hidden for cause in other.causes)  # type: ignore[union-attr]
    assert public_view(lesson, attempt).may_try_again


def test_a_right_answer_is_told_so_and_then_everything(store: AttemptStore, lesson: Lesson) -> None:
    attempt = _at(store, lesson, "t2", "verdict")
    view = public_view(lesson, attempt)
    assert (view.judged[0].verdict.right, view.score, view.may_try_again, view.lesson) == (True, 1.0, False, None)
    assert view.causes[0].shows
    view = public_view(lesson, store.explain(attempt, lesson))
    assert view.lesson is lesson
    assert view.causes[0].id == "k2"
    assert len(view.causes) == len(lesson.causes)


def test_the_prediction_is_set_beside_what_the_run_draws(store: AttemptStore, lesson: Lesson) -> None:
    judged = public_view(lesson, _at(store, lesson, "x8", "verdict")).judged[0]
    assert (judged.predicted, judged.drew) == ("only0", "all_low")


def test_an_attempt_at_another_lesson_is_refused(store: AttemptStore, lesson: Lesson) -> None:
    with pytest.raises(ValueError, match="not at"):
        public_view(lesson, store.start("another"))


@pytest.mark.parametrize(("option", "attempt_no", "score"), [("t2", 1, 1.0), ("t2", 2, 0.5), ("m4", 1, 0.0), ("m4", 2, 0.0)])
def test_grades(lesson: Lesson, option: str, attempt_no: int, score: float) -> None:
    verdict = grade(lesson, option, attempt_no)
    assert verdict.score == score
    assert verdict.right == (option == "t2")
    assert verdict.final == (option == "t2" or attempt_no == 2)
    assert verdict.rebuttal == lesson.option(option).rebuttal  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("option", "attempt_no", "message"), [("zz", 1, "option='zz'"), ("t2", 0, "attempt_no=0"), ("t2", 3, "attempt_no=3")]
)
def test_ungradable_answers_are_refused(lesson: Lesson, option: str, attempt_no: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        grade(lesson, option, attempt_no)
