"""What may be shown of a lesson at a stage of an attempt, and nothing else. The only door from lessons to a page before lock-in.

    question, second_try   the question; after a wrong first answer also what was said about that one
    predict, run           the question, the own answer, the title of its cause and its run: the proof comes before the verdict
    verdict                whether it was right, with the rebuttal of that option
    explained              everything

Owns the filter. Must not grade or store.
"""

from __future__ import annotations

from dataclasses import dataclass

from lessons.attempts import Attempt, Kind, Stage, runnable_causes
from lessons.grading import Stake, Verdict, grade, option_order, stakes
from lessons.model import Lesson, Prose, Silhouette, Term


@dataclass(frozen=True, kw_only=True)
class PublicOption:
    id: str
    text: str


@dataclass(frozen=True, kw_only=True)
class PublicCause:
    """A cause that may be run and named. Its experiment is looked up on the server, by `Lesson.cause`."""

    id: str
    title: str
    shows: str
    """What its run shows; empty before the verdict, because the learner is still predicting it."""
    note: str


@dataclass(frozen=True, kw_only=True)
class JudgedAnswer:
    """One answer that has had its verdict."""

    option_id: str
    text: str
    verdict: Verdict
    predicted: Silhouette | None
    drew: Silhouette
    """What the run of its cause draws."""


@dataclass(frozen=True, kw_only=True)
class PublicView:
    """Everything a page may put into the browser at this stage."""

    lesson_id: str
    title: str
    level: str
    minutes: int
    topic: str
    still: Silhouette
    symptom: Prose
    """In the words of this attempt: a review tells it otherwise than the lesson does."""
    kind: Kind
    question: str
    terms: tuple[Term, ...]
    options: tuple[PublicOption, ...]
    stage: Stage
    try_no: int
    answer: PublicOption | None
    """The latest option locked in."""
    prediction: Silhouette | None
    causes: tuple[PublicCause, ...]
    """Those that may be run and named now; the first belongs to the latest answer."""
    judged: tuple[JudgedAnswer, ...]
    may_try_again: bool
    score: float | None
    """0..1, once the attempt is over."""
    marks: float | None
    """Certainty-based marks, once the attempt is over; may be below 0."""
    stakes: tuple[Stake, ...]
    """What each certainty would earn and cost now; empty where no answer is asked for."""
    lesson: Lesson | None
    """The whole lesson, once explained."""


def public_view(lesson: Lesson, attempt: Attempt) -> PublicView:
    """What may be shown of `lesson` to the owner of `attempt`. Raises ValueError where they do not belong together."""
    if attempt.lesson_id != lesson.id:
        raise ValueError(f"the attempt is at {attempt.lesson_id!r}, not at {lesson.id!r}")
    judged = _judged(lesson, attempt)
    explained = attempt.stage == "explained"
    option = lesson.option(attempt.answer) if attempt.answer else None
    return PublicView(
        lesson_id=lesson.id, title=lesson.title, level=lesson.level, minutes=lesson.minutes, topic=lesson.topic, still=lesson.still,
        symptom=_symptom(lesson, attempt), kind=attempt.kind, question=lesson.question, terms=lesson.terms,
        options=_options(lesson, attempt),
        stage=attempt.stage, try_no=attempt.try_no,
        answer=PublicOption(id=option.id, text=option.text) if option else None,
        prediction=attempt.prediction,
        causes=_causes(lesson, attempt),
        judged=judged,
        may_try_again=attempt.stage == "verdict" and not judged[-1].verdict.final,
        score=score(lesson, attempt),
        marks=marks_of(lesson, attempt),
        stakes=stakes(costs=attempt.costs, try_no=attempt.try_no) if attempt.stage in ("question", "second_try") else (),
        lesson=lesson if explained else None,
    )


def score(lesson: Lesson, attempt: Attempt) -> float | None:
    """0..1; None while the attempt goes on. An answer shown on request scores 0."""
    if not _over(lesson, attempt):
        return None
    if attempt.shown:
        return 0.0
    return max((verdict.score for verdict in _verdicts(lesson, attempt)), default=0.0)


def marks_of(lesson: Lesson, attempt: Attempt) -> float | None:
    """Certainty-based marks; None while the attempt goes on. Where the answer was shown on request, losses stand and nothing is earned."""
    if not _over(lesson, attempt):
        return None
    marks = [verdict.marks for verdict in _verdicts(lesson, attempt)]
    return sum(min(0.0, each) for each in marks) if attempt.shown else sum(marks, 0.0)


def _over(lesson: Lesson, attempt: Attempt) -> bool:
    return attempt.stage == "explained" or (attempt.stage == "verdict" and _judged(lesson, attempt)[-1].verdict.final)


def _verdicts(lesson: Lesson, attempt: Attempt) -> list[Verdict]:
    """On all answers that the lesson still knows: it may have been rewritten since."""
    return [
        grade(lesson, answer, number, certainty, costs=attempt.costs)
        for number, (answer, certainty) in enumerate(zip(attempt.answers, attempt.certainties, strict=True), start=1)
        if lesson.option(answer) is not None
    ]


def _symptom(lesson: Lesson, attempt: Attempt) -> Prose:
    """A wording that the lesson no longer has (it was rewritten) is told in the lesson's own words."""
    wording = attempt.wording
    return lesson.symptom if wording is None or not 0 <= wording < len(lesson.wordings) else lesson.wordings[wording]


def _options(lesson: Lesson, attempt: Attempt) -> tuple[PublicOption, ...]:
    by_id = {option.id: option for option in lesson.options}
    return tuple(PublicOption(id=name, text=by_id[name].text) for name in option_order(lesson, attempt.seed))


def _judged(lesson: Lesson, attempt: Attempt) -> tuple[JudgedAnswer, ...]:
    """The answers whose verdict has been seen: while the latest is predicted and run, only those before it."""
    open_answer = attempt.stage in ("predict", "run")
    answers = attempt.answers[:-1] if open_answer else attempt.answers
    found = []
    for number, answer in enumerate(answers, start=1):
        option = lesson.option(answer)
        cause = lesson.cause(option.causes[0]) if option else None
        if option is None or cause is None:  # the lesson was rewritten since
            continue
        predicted = attempt.predictions[number - 1] if number <= len(attempt.predictions) else None
        found.append(
            JudgedAnswer(
                option_id=option.id, text=option.text, predicted=predicted, drew=cause.draws,
                verdict=grade(lesson, answer, number, attempt.certainties[number - 1], costs=attempt.costs),
            )
        )
    return tuple(found)


def _causes(lesson: Lesson, attempt: Attempt) -> tuple[PublicCause, ...]:
    own = lesson.option(attempt.answer) if attempt.answer else None
    first = own.causes[0] if own else None
    being_predicted = first if attempt.stage in ("predict", "run") else None
    runnable = [cause for cause in lesson.causes if cause.id in runnable_causes(lesson, attempt)]
    return tuple(
        PublicCause(
            id=cause.id, title=cause.title,
            shows="" if cause.id == being_predicted else cause.shows, note="" if cause.id == being_predicted else cause.note,
        )
        for cause in sorted(runnable, key=lambda cause: cause.id != first)
    )
