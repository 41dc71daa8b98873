"""What is left of a class: figures against examples computed by hand, tables that execute nothing, and the report."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from lessons.classroom import Classroom
from lessons.classroom.analysis import Change, discrimination
from lessons.classroom.results import ITEM_COLUMNS
from lessons.loader import load_lessons
from tests.lessons.classroom.conftest import Clock
from tests.lessons.classroom.playing import FOURTH, OTHER, RIGHT, WRONG, cast, cast_all, go_to, new_class

FIRST = [RIGHT, RIGHT, RIGHT, RIGHT, WRONG, WRONG, WRONG, OTHER]
SECOND = [RIGHT, RIGHT, RIGHT, WRONG, RIGHT, RIGHT, RIGHT, OTHER]
PREDICTED = ["only0"] * 6 + ["all_low"] * 2


def saw_tooth() -> tuple[str, str]:
    """The right option of the second lesson, and a wrong one."""
    lesson = load_lessons().get("saw-tooth")
    assert lesson is not None
    return lesson.key.id, next(option.id for option in lesson.options if not option.right)


def played(room: Classroom) -> str:
    """Eight participants, two items. At the second, the 1st, 2nd, 3rd and 5th are right."""
    code, people = new_class(room, people=8, at="vote")
    cast_all(room, code, people, FIRST)
    go_to(room, code, "revote")
    cast_all(room, code, people, SECOND, round="second")
    go_to(room, code, "predict")
    cast_all(room, code, people, PREDICTED, round="predict")
    go_to(room, code, "explanation")
    room.act(code, "next")
    right, wrong = saw_tooth()
    cast_all(room, code, people, [right, right, right, wrong, right, wrong, wrong, wrong], item_no=2)
    return code


def test_the_figures_of_a_class_computed_by_hand(room: Classroom) -> None:
    one, two = room.analysis(played(room))
    assert (one.item_no, one.lesson_id, two.item_no) == (1, "one-busy-gpu", 2)
    assert one.counts == {
        "first": {RIGHT: 4, WRONG: 3, OTHER: 1}, "second": {RIGHT: 6, WRONG: 1, OTHER: 1}, "predict": {"only0": 6, "all_low": 2}
    }
    assert one.shares["first"] == {RIGHT: 0.5, WRONG: 0.375, OTHER: 0.125}
    assert (one.facility, one.second_facility, one.hands) == (0.5, 0.75, 0)
    assert one.distractors == {WRONG: 0.375, OTHER: 0.125, FOURTH: 0.0}
    assert one.change == Change(stayed_right=3, became_right=3, became_wrong=1, stayed_wrong=1)
    assert one.change.gain is None, "only four were wrong at first"
    assert one.predicted_right == 0.75, "most voted for the data path, which draws one busy GPU"
    # 3 right at both, 1 at the first only, 1 at the second only, 3 at neither: (3 * 3 - 1 * 1) / sqrt(4 * 4 * 4 * 4)
    assert one.discrimination == two.discrimination == pytest.approx(0.5)
    assert (two.facility, two.second_facility, two.change, two.predicted_right) == (0.5, None, None, None)


def test_discrimination_against_the_rest_of_several_items() -> None:
    # Rest scores 1, 1, 0.5, 0.5, 0 with item 1 right, right, right, wrong, wrong:
    # means 0.6 and 0.6; products 0.16 + 0.16 - 0.04 + 0.06 + 0.36 = 0.7; squares 1.2 and 0.16 + 0.16 + 0.01 + 0.01 + 0.36 = 0.7
    right = {
        1: {1: True, 2: True, 3: True, 4: False, 5: False}, 2: {1: True, 2: True, 3: True, 4: False, 5: False},
        3: {1: True, 2: True, 3: False, 4: True, 5: False},
    }
    assert discrimination(right, 1) == pytest.approx(0.7 / (1.2 * 0.7) ** 0.5)
    assert discrimination({1: right[1]}, 1) is None, "one item alone tells nothing"
    assert discrimination({1: right[1], 2: dict.fromkeys(range(1, 6), True)}, 1) is None, "nor does one that all got right"
    assert discrimination({1: right[1], 2: {1: True, 2: False, 3: True, 4: True}}, 1) is None, "nor four participants"
    assert discrimination({}, 1) is None


def test_the_gain_is_of_those_who_were_wrong() -> None:
    assert Change(stayed_right=0, became_right=4, became_wrong=9, stayed_wrong=1).gain == 0.8


@pytest.mark.parametrize(("votes", "said"), [(4, False), (5, True)])
def test_nothing_is_said_of_fewer_than_five_votes(room: Classroom, votes: int, said: bool) -> None:
    code, people = new_class(room, people=votes, at="vote")
    cast_all(room, code, people, [RIGHT] * votes)
    go_to(room, code, "revote")
    cast_all(room, code, people, [RIGHT] * votes, round="second")
    view = room.console_view(code)
    assert (view["suggestion"] is not None) == said
    assert (view["shares"]["right_pct"] is not None) == said
    go_to(room, code, "predict")
    cast_all(room, code, people, ["only0"] * votes, round="predict")
    (item,) = room.analysis(code)
    figures = (item.facility, item.second_facility, item.distractors, item.change, item.predicted_right, item.shares["first"])
    assert [figure is not None for figure in figures] == [said] * 6
    assert item.discrimination is None


def test_the_suggestion_follows_the_share_of_right_answers(room: Classroom) -> None:
    code, _ = new_class(room, at="vote")
    for right, of, words in (
        (0, 5, "Give a hint"), (34, 100, "Give a hint"), (35, 100, "Let them discuss"), (70, 100, "Let them discuss"),
        (71, 100, "Go on"), (5, 5, "Go on"),
    ):
        room.act(code, "hands", round="first", counts={RIGHT: right, WRONG: of - right})
        found = room.console_view(code)["suggestion"]
        assert (found["words"], found["n"], found["share_pct"], found["round"]) == (words, of, 100 * right / of, "first")
    room.act(code, "hands", round="second", counts={RIGHT: 5})
    assert room.console_view(code)["suggestion"] == {"words": "Go on", "n": 5, "share_pct": 100.0, "round": "second"}
    go_to(room, code, "key")
    assert room.console_view(code)["suggestion"] is None


def test_hands_are_in_the_shares_and_in_nobodys_results(room: Classroom) -> None:
    code, people = new_class(room, people=5, at="vote")
    cast_all(room, code, people, [RIGHT] * 5)
    room.act(code, "hands", round="first", counts={WRONG: 15})
    (item,) = room.analysis(code)
    assert (item.facility, item.hands, item.change) == (0.25, 15, None)
    assert len(rows_of(room.results_csv(code))) == 5


def test_whoever_was_removed_is_in_no_figure(room: Classroom) -> None:
    code, people = new_class(room, people=6, at="vote")
    cast_all(room, code, people, [RIGHT] * 5 + [WRONG])
    room.act(code, "remove", participant=people[5].id)
    (item,) = room.analysis(code)
    assert item.facility == 1.0
    assert [row["removed"] for row in rows_of(room.results_csv(code))] == ["no"] * 5 + ["yes"]


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_results_have_a_row_per_participant(room: Classroom) -> None:
    code = played(room)
    late = room.join(code, nickname="Late")
    rows = rows_of(room.results_csv(code))
    assert [row["participant"] for row in rows] == [str(number) for number in range(1, 10)]
    fifth = rows[4]
    assert {name: fifth[name] for name in fifth if not name.startswith("joined")} == {
        "participant": "5", "nickname": "", "removed": "no", "answered": "2", "right_first": "1", "right_second": "1",
        "item1_first": "A", "item1_first_right": "no", "item1_second": "C", "item1_second_right": "yes", "item1_predicted": "only0",
        "item2_first": rows[0]["item2_first"], "item2_first_right": "yes", "item2_second": "", "item2_second_right": "",
        "item2_predicted": "",
    }
    assert (rows[8]["nickname"], rows[8]["answered"], rows[8]["item1_first"], rows[8]["item1_first_right"]) == ("Late", "0", "", "")
    assert late.token not in room.results_csv(code)
    assert rows[0]["joined_utc"] == "1970-01-12T13:46:40Z"
    assert room.results_csv(code, bom=True).startswith("\ufeffparticipant")


def test_no_name_is_a_formula(room: Classroom) -> None:
    names = ["=cmd|'/c calc'!A1", "+1", "-1", "@SUM(A1)", "\uff1d1+1", '"=1', 'a","=1', "=1\u200d"]
    code, _ = new_class(room)
    for nickname in names:
        room.join(code, nickname=nickname)
    text = room.results_csv(code)
    rows = rows_of(text)
    assert [row["nickname"].lstrip("'") for row in rows] == names
    assert not {row["nickname"][0] for row in rows} & set("=+-@\uff1d")
    assert len(text.splitlines()) == 1 + len(names)


def test_items_have_a_row_each(room: Classroom) -> None:
    rows = rows_of(room.items_csv(played(room)))
    assert list(rows[0]) == list(ITEM_COLUMNS)
    assert rows[0] == {
        "item": "1", "lesson": "one-busy-gpu", "title": "One busy GPU, seven waiting", "votes_first": "8", "votes_second": "8",
        "predictions": "8", "hands": "0", "right_first_pct": "50", "right_second_pct": "75", "discrimination": "0.5", "stayed_right": "3",
        "became_right": "3", "became_wrong": "1", "stayed_wrong": "1", "gain_pct": "", "predicted_right_pct": "75",
        "counts_first": "A:3 B:1 C:4", "counts_second": "A:1 B:1 C:6", "wrong_shares_pct": "A:37.5 B:12.5 D:0.0",
    }
    assert (rows[1]["votes_second"], rows[1]["right_second_pct"], rows[1]["became_right"]) == ("0", "", "")


def test_the_report_says_all_of_it_and_names_nobody(room: Classroom, clock: Clock) -> None:
    code, people = new_class(room, people=5, at="vote")
    room.join(code, nickname="Ada Lovelace")
    room.act(code, "note", text="Took too long.")
    cast_all(room, code, people, [RIGHT, RIGHT, RIGHT, WRONG, WRONG])
    clock.now_s += 600
    room.act(code, "end")
    clock.now_s += 9_000
    said = room.report(code)
    json.dumps(said, allow_nan=False)
    assert "Ada" not in str(said)
    assert (said["minutes_used"], said["minutes_planned"], said["participants"], said["items_planned"]) == (10.0, 11.0, 6, 2)
    (item,) = said["items"]
    assert (item["facility"], item["votes"], item["notes"]) == (0.6, {"first": 5, "second": 0, "predict": 0}, "Took too long.")
    right = next(option for option in item["options"] if option["right"])
    assert (right["letter"], right["first_n"], right["first_share"], right["second_n"], right["second_share"]) == ("C", 3, 0.6, 0, None)
    assert [each["n"] for each in item["predictions"]] == [0] * 5


def test_a_report_of_nothing_is_empty(room: Classroom) -> None:
    code, _ = new_class(room)
    said = room.report(code)
    assert (said["items"], said["minutes_used"], said["participants"]) == ([], None, 0)
    assert rows_of(room.results_csv(code)) == rows_of(room.items_csv(code)) == []


def test_a_lesson_that_is_gone_takes_no_vote_with_it(database: Any, clock: Clock) -> None:
    lessons = load_lessons()
    gone = False

    def here() -> Any:
        return type("Set", (), {"get": staticmethod(lambda name: None if gone else lessons.get(name))})

    room = Classroom(database, lessons=here, clock=clock)
    code, people = new_class(room, lessons=["one-busy-gpu"], people=5, at="vote")
    cast_all(room, code, people, [RIGHT] * 5)
    gone = True
    view = room.console_view(code)
    assert (view["item"], view["round"], view["may_vote"]) == (None, None, False)
    assert "no longer there" in view["warning"]
    with pytest.raises(ValueError, match="choice"):
        cast(room, code, people[0], WRONG)
    for state in ("votes", "predict", "experiments", "key", "explanation", "ended"):
        go_to(room, code, state)
        room.audience_view(code, people[0].token)
        room.projector_view(code)
    (item,) = room.analysis(code)
    assert (item.counts["first"], item.facility, item.lesson) == ({RIGHT: 5}, None, None)
    assert rows_of(room.results_csv(code))[0]["item1_first"] == RIGHT
    assert rows_of(room.items_csv(code))[0]["lesson"] == "one-busy-gpu"
    assert room.report(code)["items"][0]["title"] == "one-busy-gpu"


def test_the_plan_counts_from_the_first_vote_to_the_end(room: Classroom, clock: Clock) -> None:
    code, _ = new_class(room)
    clock.now_s += 300
    assert room.console_view(code)["plan"] == {"used_s": 0.0, "planned_s": 660.0, "item_used_s": None, "item_planned_s": None}
    go_to(room, code, "vote")
    clock.now_s += 90
    assert room.console_view(code)["plan"] == {"used_s": 90.0, "planned_s": 660.0, "item_used_s": 90.0, "item_planned_s": 300.0}
    go_to(room, code, "explanation")
    room.act(code, "next")
    clock.now_s += 30
    assert room.console_view(code)["plan"] == {"used_s": 120.0, "planned_s": 660.0, "item_used_s": 30.0, "item_planned_s": 360.0}
    room.act(code, "end")
    clock.now_s += 1000
    assert room.console_view(code)["plan"] == {"used_s": 120.0, "planned_s": 660.0, "item_used_s": None, "item_planned_s": None}
