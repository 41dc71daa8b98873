"""What the audience and the projector may see of a class in its present state: the only doors to a phone and to the wall.

    votes         from "Votes shown" on, never while a vote is open
    run, predictions   from the experiments on
    key           once it is on screen, with all rebuttals
    explanation   in the explanation

Owns the filter. Names are on the projector only where the instructor put them there. Must not store, act or know who asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from lessons.classroom.analysis import most_voted
from lessons.classroom.memory import LiveClass
from lessons.classroom.model import ClassState, Round, State
from lessons.classroom.shown import PUBLIC, RACING
from lessons.classroom.states import VOTING, WITH_RUNS
from lessons.model import SILHOUETTES, Cause, Lesson

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
AFTER_THE_VOTES: frozenset[State] = frozenset({"predict", "experiments", "key", "explanation"})


def shared_view(live: LiveClass, lesson: Lesson | None) -> dict[str, Any]:
    """What every role sees. `lesson`: of the present item; None where there is none, or where it is no longer there."""
    state = live.state
    return {
        "version": state.version, "code": state.code, "title": state.title, "state": state.state,
        "item": None if lesson is None else _item(state, lesson),
        "closes_s": state.closes_s, "round": VOTING.get(state.state) if lesson else None, "may_vote": False,
        "votes": _votes(live), "predictions": _predictions(live), "predict": _predict(live, lesson),
        "run": _run(live, lesson, state.run), "race": _race(live, lesson),
        "key": _key(state, lesson), "explanation": _explanation(state, lesson),
    }


def audience_base(live: LiveClass, lesson: Lesson | None) -> dict[str, Any]:
    """What all of the audience see alike."""
    return {"role": "audience", **shared_view(live, lesson)}


def audience_me(live: LiveClass, token_hash: str) -> dict[str, Any] | None:
    """What only this participant sees; None for somebody who is not in the class, or not any longer."""
    with live.lock:
        person = live.people.get(token_hash)
        if person is None or person.removed:
            return None
        mine: dict[str, str | None] = {}
        for name in ("first", "second", "predict"):
            vote = live.votes.get((live.state.item_no, _round(name)), {}).get(person.id)
            mine[name] = None if vote is None else vote.choice
        return {"nickname": person.nickname, "votes": mine}


def projector_picture(live: LiveClass, lesson: Lesson | None) -> dict[str, Any]:
    """What the projector shows while it is not frozen, without names."""
    voting = VOTING.get(live.state.state)
    answered = 0 if voting is None else live.phones(live.state.item_no, voting).total()
    return {"role": "projector", **shared_view(live, lesson), "answered": answered, "joined": len(live.present())}


def projector_base(live: LiveClass, lesson: Lesson | None) -> dict[str, Any]:
    """What the projector shows: the picture of before while it is frozen. Names go at once, whatever is frozen."""
    state = live.state
    picture = projector_picture(live, lesson) if state.frozen is None else dict(state.frozen)
    view = {**picture, "version": state.version, "blank": state.blank, "frozen": state.frozen is not None}
    if state.show_names:
        view["names"] = [person.nickname for person in live.present() if person.nickname and not person.hidden]
    return view


def predicted_cause(live: LiveClass, lesson: Lesson | None) -> Cause | None:
    """The cause whose picture the class predicts: that of the option with the most votes; None where nobody has voted."""
    option = None if lesson is None else lesson.option(most_voted(_latest(live)) or "")
    return None if lesson is None or option is None else lesson.cause(option.causes[0])


def counted(counts: Mapping[str, int]) -> dict[str, Any]:
    return {"total": sum(counts.values()), "counts": dict(counts)}


def latest_round(live: LiveClass) -> Round:
    """The second vote, where there was one at the present item."""
    return "second" if live.counts(live.state.item_no, "second") else "first"


def _latest(live: LiveClass) -> Counter[str]:
    return live.counts(live.state.item_no, latest_round(live))


def _item(state: ClassState, lesson: Lesson) -> dict[str, Any]:
    return {
        "no": state.item_no, "of": len(state.lesson_ids), "title": lesson.title, "level": lesson.level,
        "symptom_html": lesson.symptom.html, "question": lesson.question, "still": lesson.still,
        "options": [{"id": option.id, "letter": LETTERS[index], "text": option.text} for index, option in enumerate(lesson.options)],
    }


def _votes(live: LiveClass) -> dict[str, Any] | None:
    state = live.state
    seen = any(place.item_no == state.item_no and place.state == "votes" for place in state.trail)
    if not (state.state == "votes" or state.state in AFTER_THE_VOTES or (state.state == "discuss" and seen)):
        return None
    second = live.counts(state.item_no, "second")
    return {"first": counted(live.counts(state.item_no, "first")), "second": counted(second) if second else None}


def _predictions(live: LiveClass) -> dict[str, Any] | None:
    return counted(live.counts(live.state.item_no, "predict")) if live.state.state in WITH_RUNS else None


def _predict(live: LiveClass, lesson: Lesson | None) -> dict[str, Any] | None:
    if live.state.state != "predict":
        return None
    cause = predicted_cause(live, lesson)
    choices = [{"id": name, "words": words} for name, words in SILHOUETTES.items()]
    return {"cause_title": None if cause is None else cause.title, "choices": choices}


def _race(live: LiveClass, lesson: Lesson | None) -> list[dict[str, Any]] | None:
    if live.state.state not in WITH_RUNS or not live.state.race:
        return None
    racers = [{**(_run(live, lesson, racer) or {}), **{name: racer[name] for name in RACING}} for racer in live.state.race]
    if not live.state.key_seen:
        for racer in racers:  # the odd one is the cause that matches the question: the key
            racer["role"] = "rest" if racer["role"] == "odd" else racer["role"]
    return racers


def _run(live: LiveClass, lesson: Lesson | None, run: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if run is None or live.state.state not in WITH_RUNS:
        return None
    cause = predicted_cause(live, lesson)
    shown = {name: run[name] for name in PUBLIC}
    if shown["prediction"] is None and cause is not None and run["cause_id"] == cause.id:
        shown["prediction"] = most_voted(live.counts(live.state.item_no, "predict"))
    return shown


def _key(state: ClassState, lesson: Lesson | None) -> dict[str, Any] | None:
    """Once seen it stays: an experiment that comes after it is watched with it."""
    if lesson is None or state.state not in WITH_RUNS or not state.key_seen:
        return None
    rebuttals = [{"option_id": option.id, "html": option.rebuttal.html} for option in lesson.options]
    return {"option_id": lesson.key.id, "rebuttals": rebuttals}


def _explanation(state: ClassState, lesson: Lesson | None) -> dict[str, Any] | None:
    if lesson is None or state.state != "explanation":
        return None
    return {
        "why_html": lesson.why.html, "infographic_svg": lesson.infographic, "infographic_alt": lesson.infographic_alt,
        "exam_html": lesson.exam_box.html, "on_call_html": lesson.on_call_box.html,
    }


def _round(name: str) -> Round:
    return "first" if name == "first" else "second" if name == "second" else "predict"
