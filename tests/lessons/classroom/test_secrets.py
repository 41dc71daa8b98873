"""Nothing gives an answer away before its time: what phones and the wall get, searched for every secret at every state."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lessons.classroom import STATES, Classroom
from lessons.model import Lesson
from tests.lessons.classroom.playing import OTHER, RIGHT, WRONG, cast_all, new_class

SHARED = {
    "role", "version", "code", "title", "state", "server_s", "item", "closes_s", "votes", "predictions", "predict", "run", "race", "key",
    "explanation", "may_vote", "round",
}
AUDIENCE = SHARED | {"me"}
PROJECTOR = SHARED | {"here", "joined", "answered", "blank", "frozen", "join_words"}
CONSOLE = SHARED | {
    "here", "reconnecting", "joined", "answered", "participants", "shares", "predicted", "suggestion", "key_id", "warning", "notes", "plan",
    "back", "next", "skip", "go_to", "order", "may_reopen", "log", "causes", "blank", "frozen", "show_names", "hands",
}
NOTE = "Nobody but me may read this note."
NICKNAME = "Somebody's own name"
RUN = {"run_id": "a-run", "title": "All data through GPU 0", "cause_id": "k2"}


def texts_of(value: Any) -> Iterator[str]:
    """Every text in a view, names of fields too."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield str(name)
            yield from texts_of(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from texts_of(inner)
    elif isinstance(value, str):
        yield value


def secrets_of(lesson: Lesson) -> dict[str, list[str]]:
    """By the field of the view in which they may be, once it is there."""
    return {
        "key": [option.rebuttal.html for option in lesson.options],
        "explanation": [lesson.why.html, lesson.infographic, lesson.infographic_alt, lesson.exam_box.html, lesson.on_call_box.html],
        "title": [cause.title for cause in lesson.causes],
        "never": [
            *(cause.id for cause in lesson.causes), *(cause.scenario for cause in lesson.causes), *(cause.shows for cause in lesson.causes),
            *(cause.note for cause in lesson.causes if cause.note), lesson.fix, lesson.full_story.html, lesson.what_to_try.html,
            *(check.command for check in lesson.on_your_own_job), NOTE, "right", "key_id", "notes", "participants", "suggestion", "causes",
        ],
    }


def leaks(view: dict[str, Any], lesson: Lesson, *, but: tuple[str, ...] = ()) -> list[str]:
    """Secrets in a view that may not be there; `but` are kinds that may."""
    found = list(texts_of(view))
    secret = [text for kind, texts in secrets_of(lesson).items() if kind not in but for text in texts]
    short = {text for text in secret if len(text) < 20}
    return [text for text in found if text in short] + [text for text in secret if len(text) >= 20 for shown in found if text in shown]


@pytest.mark.parametrize("order", ["experiments_first", "key_first"])
def test_no_secret_is_out_before_its_time(room: Classroom, lesson: Lesson, order: str) -> None:
    code, people = new_class(room, lessons=[lesson.id], people=6)
    named = room.join(code, nickname=NICKNAME)
    room.act(code, "note", text=NOTE, item_no=1)
    room.act(code, "note", text=NOTE)
    if order == "key_first":
        room.act(code, "swap_order")
    cast = {
        "vote": ("first", [RIGHT, RIGHT, WRONG, WRONG, OTHER, RIGHT]), "revote": ("second", [RIGHT] * 5 + [OTHER]),
        "predict": ("predict", ["only0"] * 6),
    }
    seen: set[str] = set()
    while True:
        state = room.state(code).state
        seen.add(state)
        if state in cast:
            round_name, choices = cast[state]
            cast_all(room, code, people, choices, round=round_name)
        for view in (room.audience_view(code, people[0].token), room.projector_view(code)):
            said = f"{view['role']} at {state}"
            assert set(view) == (AUDIENCE if view["role"] == "audience" else PROJECTOR), said
            json.dumps(view, allow_nan=False)
            may = {"key": {"key", "title"}, "explanation": {"key", "explanation", "title"}, "predict": {"title"}}.get(state, set())
            may |= {"key"} if "key" in seen and state in ("experiments", "explanation") else set()
            assert leaks(view, lesson, but=tuple(may)) == [], said
            assert NICKNAME not in json.dumps(view), said
            assert (view["votes"] is not None) == (state in {"votes", "discuss", "predict", "experiments", "key", "explanation"}), said
            assert (view["predictions"] is not None) == (state in {"experiments", "key", "explanation"}), said
            assert (view["predict"] is not None) == (state == "predict"), said
            assert (view["key"] is not None) == (state in {"key", "explanation"} or (state == "experiments" and order == "key_first")), said
            assert (view["explanation"] is not None) == (state == "explanation"), said
            assert view["run"] is None, said
        assert room.audience_view(code, named.token)["me"]["nickname"] == NICKNAME
        if state == "ended":
            assert seen == set(STATES)
            break
        room.act(code, "next")


def test_the_cause_that_is_predicted_is_that_of_the_most_votes_right_or_wrong(room: Classroom, lesson: Lesson) -> None:
    code, people = new_class(room, people=6, at="vote")
    cast_all(room, code, people, [OTHER, OTHER, OTHER, RIGHT, WRONG, RIGHT])
    room.act(code, "go_to", state="predict")
    view = room.projector_view(code)
    assert view["predict"]["cause_title"] == "Schedulers out of step"
    assert [choice["id"] for choice in view["predict"]["choices"]] == ["only0", "all_high", "all_low", "all_crash", "low0"]
    assert leaks({**view, "predict": None}, lesson) == []
    assert sum(title in str(view) for title in secrets_of(lesson)["title"]) == 1, "and of no other"
    room.act(code, "back")
    room.act(code, "go_to", state="revote")
    cast_all(room, code, people, [WRONG] * 6, round="second")
    room.act(code, "next")
    assert room.projector_view(code)["predict"]["cause_title"] == "Batch too large", "the second vote, where there was one"


def test_without_votes_everybody_predicts_of_their_own_answer(room: Classroom) -> None:
    code, _ = new_class(room, at="predict")
    assert room.projector_view(code)["predict"]["cause_title"] is None


def test_a_run_names_its_cause_to_everybody_and_its_experiment_to_nobody(room: Classroom, lesson: Lesson) -> None:
    code, people = new_class(room, people=1, at="experiments")
    room.act(code, "show_run", run=RUN)
    for view in (room.audience_view(code, people[0].token), room.projector_view(code)):
        assert view["run"]["title"] == RUN["title"]
        assert leaks({**view, "run": {**view["run"], "title": ""}}, lesson) == []


def test_a_race_does_not_set_off_the_key_before_it_was_seen(room: Classroom) -> None:
    code, _ = new_class(room, at="experiments")
    racers = [{**RUN, "run_id": role, "role": role, "epoch_s": 3.0, "points": [[0, 0], [3, 100]]} for role in ("right", "odd", "rest")]
    room.act(code, "show_run", race=racers)
    race = room.projector_view(code)["race"]
    assert [racer["role"] for racer in race] == ["right", "rest", "rest"]
    assert (race[0]["epoch_s"], race[0]["points"], "cause_id" in race[0]) == (3.0, [[0.0, 0.0], [3.0, 100.0]], False)
    room.act(code, "next")
    assert [racer["role"] for racer in room.projector_view(code)["race"]] == ["right", "odd", "rest"]


def test_votes_stay_hidden_in_a_discussion_that_did_not_show_them(room: Classroom) -> None:
    code, people = new_class(room, people=5, at="vote")
    cast_all(room, code, people, [RIGHT] * 5)
    room.act(code, "go_to", state="discuss")
    assert room.projector_view(code)["votes"] is None
    room.act(code, "back")
    room.act(code, "next")
    room.act(code, "next")
    assert room.projector_view(code)["votes"]["first"]["total"] == 5


def test_opened_again_a_vote_hides_its_histogram(room: Classroom) -> None:
    code, people = new_class(room, people=5, at="vote")
    cast_all(room, code, people, [RIGHT] * 5)
    room.act(code, "next")
    room.act(code, "reopen")
    assert room.projector_view(code)["votes"] is None
    assert room.audience_view(code, people[0].token)["votes"] is None


def test_everybody_gets_the_same_view_and_their_own_votes(room: Classroom) -> None:
    code, people = new_class(room, people=2, at="vote")
    cast_all(room, code, people, [RIGHT, WRONG])
    views = [room.audience_view(code, person.token) for person in people]
    assert [view.pop("me")["votes"]["first"] for view in views] == [RIGHT, WRONG]
    assert views[0]["item"] is views[1]["item"], "built once"
    assert {name for view in views for name in view} == AUDIENCE - {"me"}


def test_the_console_has_what_the_contract_of_the_page_names(room: Classroom, lesson: Lesson) -> None:
    code, people = new_class(room, people=6, at="vote")
    cast_all(room, code, people, [RIGHT, RIGHT, WRONG, WRONG, OTHER, OTHER])
    view = room.console_view(code, here=5, reconnecting=1)
    assert set(view) == CONSOLE
    json.dumps(view, allow_nan=False)
    assert (view["here"], view["reconnecting"], view["joined"], view["answered"], view["key_id"]) == (5, 1, 6, 6, RIGHT)
    assert view["shares"]["options"][2] == {"id": RIGHT, "letter": "C", "n": 2, "pct": 33.3}
    assert [cause["id"] for cause in view["causes"]] == [*(cause.id for cause in lesson.causes), "fix"]
    assert (view["back"], view["next"], view["skip"]) == ("lobby", "votes", None)
    assert view["item"]["options"] == [
        {"id": option.id, "letter": letter, "text": option.text} for option, letter in zip(lesson.options, "ABCD", strict=True)
    ]


class Recorded:
    def __init__(self, *scenarios: str) -> None:
        self.scenarios = scenarios

    def recording(self, config: Any) -> Any:
        return object() if config.scenario in self.scenarios else None


def test_the_console_says_what_is_recorded(room: Classroom) -> None:
    code, _ = new_class(room, at="experiments")
    causes = room.console_view(code, recordings=Recorded("rank0_loading", "sharded"))["causes"]
    assert [cause["id"] for cause in causes if cause["recording_ready"]] == ["k2", "fix"]
    assert {cause["recording_ready"] for cause in room.console_view(code)["causes"]} == {None}
