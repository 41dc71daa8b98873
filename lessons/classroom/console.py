"""What the instructor sees of a class: everything, with what to do next. Never for a projector or a phone.

Owns the console's view and the suggestion. Must not store or act.
"""

from __future__ import annotations

from typing import Any

from lessons.classroom.analysis import FEWEST
from lessons.classroom.memory import LiveClass
from lessons.classroom.model import ClassState, Round
from lessons.classroom.moves import place_of, reopened
from lessons.classroom.states import VOTING, ahead, back_place, next_place, skip_place
from lessons.classroom.views import LETTERS, latest_round, shared_view
from lessons.evidence import Recordings
from lessons.model import Lesson

HINT_BELOW_PCT = 35
GO_ON_ABOVE_PCT = 70


def console_base(live: LiveClass, lesson: Lesson | None) -> dict[str, Any]:
    state = live.state
    here = place_of(state)
    after, skip = next_place(here, state.order, len(state.lesson_ids)), skip_place(here, state.order)
    back = back_place(state.trail, state.keys_seen)
    voting = VOTING.get(state.state)
    return {
        "role": "console", **shared_view(live, lesson),
        "answered": 0 if voting is None else live.phones(state.item_no, voting).total(), "joined": len(live.present()),
        "participants": [
            {"id": person.id, "nickname": person.nickname, "hidden": person.hidden, "removed": person.removed}
            for person in live.people.values()
        ],
        "shares": None if lesson is None else shares(live, lesson, latest_round(live)),
        "predicted": dict(live.counts(state.item_no, "predict")),
        "suggestion": None if lesson is None else suggestion(live, lesson),
        "key_id": None if lesson is None else lesson.key.id,
        "warning": "The lesson of this item is no longer there. Go on, or end the class." if state.lesson_id and lesson is None else "",
        "notes": state.notes.get(str(state.item_no), ""),
        "back": None if back is None else back.state, "next": None if after is None else after.state,
        "skip": None if skip is None else skip.state, "go_to": list(ahead(here, state.order)), "order": state.order,
        "may_reopen": reopened(state) is not None,
        "log": [{"at_s": line.at_s, "words": line.words, "tone": line.tone} for line in live.log],
        "blank": state.blank, "frozen": state.frozen is not None, "show_names": state.show_names,
        "hands": {each: dict(state.hands.get(f"{state.item_no}.{each}", {})) for each in ("first", "second", "predict")},
    }


def plan_view(state: ClassState, now_s: float) -> dict[str, Any]:
    """The time used of the plan."""
    until = state.ended_s if state.ended_s is not None else now_s
    item = state.lesson_id is not None and state.item_s is not None
    return {
        "used_s": 0.0 if state.started_s is None else round(until - state.started_s, 1),
        "planned_s": round(60 * sum(state.plan), 1),
        "item_used_s": round(now_s - state.item_s, 1) if item and state.item_s is not None else None,
        "item_planned_s": round(60 * state.plan[state.item_no - 1], 1) if item else None,
    }


def causes_view(lesson: Lesson | None, recordings: Recordings | None) -> list[dict[str, Any]]:
    """What can be put on the screens: the causes, and the healthy script."""
    if lesson is None:
        return []
    named = [(cause.id, cause.title, cause.scenario, cause.note) for cause in lesson.causes]
    return [
        {
            "id": name, "title": title, "note": note,
            "recording_ready": None if recordings is None else recordings.recording(lesson.config_of(experiment)) is not None,
        }
        for name, title, experiment, note in [*named, ("fix", "The healthy script", lesson.fix, "")]
    ]


def shares(live: LiveClass, lesson: Lesson, round: Round) -> dict[str, Any]:
    """The votes of a round with their shares; the shares are None where there are too few."""
    counts = live.counts(live.state.item_no, round)
    total = sum(counts.values())
    right = counts[lesson.key.id]
    return {
        "round": round, "n": total, "right_pct": _pct(right, total),
        "options": [
            {"id": option.id, "letter": LETTERS[index], "n": counts[option.id], "pct": _pct(counts[option.id], total)}
            for index, option in enumerate(lesson.options)
        ],
    }


def suggestion(live: LiveClass, lesson: Lesson) -> dict[str, Any] | None:
    """What to do by the share of right answers of the latest round; None where there are too few votes, or the key was seen."""
    latest = latest_round(live)
    counts = live.counts(live.state.item_no, latest)
    total = counts.total()
    if total < FEWEST or live.state.key_seen:
        return None
    share = 100 * counts[lesson.key.id] / total
    words = "Give a hint" if share < HINT_BELOW_PCT else "Go on" if share > GO_ON_ABOVE_PCT else "Let them discuss"
    return {"words": words, "share_pct": round(share, 1), "n": total, "round": latest}


def _pct(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 1) if whole >= FEWEST else None
