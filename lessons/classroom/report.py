"""What a page to print says of a class afterwards, as plain values for JSON: for its instructor, because every key is in it.

Owns what is in the report. It names nobody: the table of results does. Must not draw.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lessons.classroom.analysis import Change, ItemAnalysis
from lessons.classroom.memory import LiveClass
from lessons.classroom.model import Round
from lessons.classroom.results import letter_of
from lessons.model import SILHOUETTES


def report(live: LiveClass, items: Iterable[ItemAnalysis], now_s: float) -> dict[str, Any]:
    state = live.state
    until_s = state.ended_s if state.ended_s is not None else now_s
    return {
        "code": state.code, "title": state.title, "created_s": state.created_s, "started_s": state.started_s, "ended_s": state.ended_s,
        "minutes_used": None if state.started_s is None else round((until_s - state.started_s) / 60, 1),
        "minutes_planned": round(sum(state.plan), 1), "participants": len(live.present()),
        "items_planned": len(state.lesson_ids), "items": [_item(live, item) for item in items],
    }


def _item(live: LiveClass, item: ItemAnalysis) -> dict[str, Any]:
    lesson = item.lesson
    predictions = item.counts["predict"]
    return {
        "no": item.item_no, "lesson_id": item.lesson_id, "title": lesson.title if lesson else item.lesson_id,
        "question": lesson.question if lesson else "", "symptom_html": lesson.symptom.html if lesson else "",
        "options": [
            {
                "id": option.id, "letter": letter_of(lesson, option.id), "text": option.text, "right": option.right,
                **{f"{each}_n": item.counts[each].get(option.id, 0) for each in ("first", "second")},
                **{f"{each}_share": _share(item, each, option.id) for each in ("first", "second")},
            }
            for option in (lesson.options if lesson else ())
        ],
        "votes": {each: sum(item.counts[each].values()) for each in ("first", "second", "predict")}, "hands": item.hands,
        "facility": item.facility, "second_facility": item.second_facility, "discrimination": item.discrimination,
        "change": _change(item.change),
        "predictions": [
            {"id": name, "words": words, "n": predictions.get(name, 0), "share": _share(item, "predict", name)}
            for name, words in SILHOUETTES.items()
        ],
        "predicted_right": item.predicted_right,
        "why_html": lesson.why.html if lesson else "",
        "notes": live.state.notes.get(str(item.item_no), ""),
    }


def _share(item: ItemAnalysis, round_name: Round, choice: str) -> float | None:
    shares = item.shares[round_name]
    return None if shares is None else shares.get(choice, 0.0)


def _change(change: Change | None) -> dict[str, Any] | None:
    if change is None:
        return None
    return {
        "stayed_right": change.stayed_right, "became_right": change.became_right, "became_wrong": change.became_wrong,
        "stayed_wrong": change.stayed_wrong, "gain": change.gain,
    }
