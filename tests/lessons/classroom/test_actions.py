"""What the instructor does: each action where it is possible, refused where it is not, and never twice by a double click."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lessons.classroom import Classroom, StaleClassError, UnknownClassError
from lessons.classroom.actions import ACTIONS
from lessons.classroom.people import PEOPLE_ACTIONS
from tests.lessons.classroom.conftest import Clock
from tests.lessons.classroom.playing import RIGHT, WRONG, cast, cast_all, go_to, new_class

RUN = {"run_id": "r1", "title": "All data through GPU 0", "metric": "gpu_util", "mode": "live"}


def test_a_double_click_does_not_skip_two_states(room: Classroom) -> None:
    code, _ = new_class(room, at="votes")
    seen = room.console_view(code)["version"]
    room.act(code, "next", expect_version=seen)
    with pytest.raises(StaleClassError, match="nothing was changed") as stale:
        room.act(code, "next", expect_version=seen)
    assert (stale.value.current.state, room.state(code).state) == ("discuss", "discuss")


def test_votes_and_joins_do_not_make_the_instructor_late(room: Classroom) -> None:
    code, people = new_class(room, people=2, at="vote")
    seen = room.console_view(code)["version"]
    cast(room, code, people[0], RIGHT)
    room.join(code)
    assert room.act(code, "next", expect_version=seen).state == "votes"


def test_back_undoes_what_harms_nothing(room: Classroom) -> None:
    code, _ = new_class(room, at="experiments")
    ways = []
    while (to := room.console_view(code)["back"]) is not None:
        assert room.act(code, "back").state == to
        ways.append(to)
    assert ways == ["predict", "revote", "discuss", "votes", "vote", "lobby"]
    with pytest.raises(ValueError, match="no way back"):
        room.act(code, "back")


def test_back_goes_where_the_class_came_from(room: Classroom) -> None:
    code, _ = new_class(room, at="votes")
    room.act(code, "skip")
    assert room.state(code).state == "predict"
    assert room.act(code, "back").state == "votes"


def test_no_way_leads_from_a_key_to_a_vote_of_the_same_item(room: Classroom) -> None:
    code, _ = new_class(room, at="key")
    assert room.act(code, "back").state == "experiments"
    assert room.console_view(code)["back"] is None
    for action in ("back", "reopen"):
        with pytest.raises(ValueError, match="key of this item was seen"):
            room.act(code, action)
    with pytest.raises(ValueError, match="key of this item was seen"):
        room.act(code, "hands", round="first", counts={RIGHT: 3})
    go_to(room, code, "explanation")
    room.act(code, "next")
    assert (room.state(code).item_no, room.state(code).state) == (2, "vote")
    assert room.act(code, "back").state == "explanation", "the next item was opened too early: that can be undone"


def test_the_end_can_be_undone(room: Classroom) -> None:
    code, _ = new_class(room, at="discuss")
    assert room.act(code, "end").state == "ended"
    with pytest.raises(ValueError, match="ended"):
        room.act(code, "end")
    with pytest.raises(ValueError, match="nothing comes next"):
        room.act(code, "next")
    after = room.act(code, "back")
    assert (after.state, after.item_no, after.ended_s) == ("discuss", 1, None)


@pytest.mark.parametrize("order", ["experiments_first", "key_first"])
def test_experiments_and_key_can_be_swapped_until_one_of_them_is_on(room: Classroom, order: str) -> None:
    code, _ = new_class(room, at="predict")
    if order == "key_first":
        room.act(code, "swap_order")
    first, second = ("experiments", "key") if order == "experiments_first" else ("key", "experiments")
    assert room.act(code, "next").state == first
    with pytest.raises(ValueError, match="order of this item is fixed"):
        room.act(code, "swap_order")
    assert room.act(code, "next").state == second
    assert room.act(code, "next").state == "explanation"
    assert room.act(code, "swap_order").order != order, "for the next item"


@pytest.mark.parametrize(("at", "to"), [("votes", "vote"), ("discuss", "vote"), ("predict", "revote"), ("experiments", "revote")])
def test_the_latest_vote_can_be_opened_again_until_the_key_was_seen(room: Classroom, at: str, to: str) -> None:
    code, people = new_class(room, people=1, at=at)
    assert room.console_view(code)["may_reopen"]
    assert room.act(code, "reopen").state == to
    cast(room, code, people[0], RIGHT, round="first" if to == "vote" else "second")


@pytest.mark.parametrize("at", ["lobby", "vote", "revote", "ended"])
def test_there_is_nothing_to_open_again(room: Classroom, at: str) -> None:
    code, _ = new_class(room, lessons=["one-busy-gpu"], at=at)
    assert not room.console_view(code)["may_reopen"]
    with pytest.raises(ValueError, match=r"no vote to open again|key of this item was seen"):
        room.act(code, "reopen")


def test_a_vote_whose_time_is_up_is_opened_again_where_it_is(room: Classroom, clock: Clock) -> None:
    code, people = new_class(room, people=1, at="predict")
    room.act(code, "timer", seconds=10)
    clock.now_s += 20
    assert room.act(code, "reopen").state == "predict"
    cast(room, code, people[0], "only0", round="predict")


def test_go_to_names_what_is_possible(room: Classroom) -> None:
    code, _ = new_class(room, at="votes")
    for state in ("explanation", "vote", "ended", "nowhere"):
        with pytest.raises(ValueError, match=rf"state='{state}': must be one of discuss, revote, predict, experiments, key"):
            room.act(code, "go_to", state=state)
    assert room.act(code, "go_to", state="experiments").state == "experiments"


def test_a_timer_is_set_extended_and_taken_away(room: Classroom, clock: Clock) -> None:
    code, _ = new_class(room)
    for action, arguments in (("timer", {"seconds": 30}), ("extend", {})):
        with pytest.raises(ValueError, match=r"open vote|no timer"):
            room.act(code, action, **arguments)
    go_to(room, code, "vote")
    assert room.act(code, "timer", seconds=30).closes_s == clock.now_s + 30
    assert room.act(code, "extend", seconds=15).closes_s == clock.now_s + 45
    clock.now_s += 60
    assert not room.console_view(code)["may_vote"]
    assert room.act(code, "extend", seconds=20).closes_s == clock.now_s + 20, "from now, where time was up"
    assert room.console_view(code)["may_vote"]
    assert room.act(code, "timer", seconds=None).closes_s is None
    for seconds in (0, -1, 3601, float("nan"), float("inf"), True, "30"):
        with pytest.raises(ValueError, match=r"seconds=.*must be 1 to 3600"):
            room.act(code, "timer", seconds=seconds)
    assert room.act(code, "timer", seconds=30).closes_s is not None
    assert room.act(code, "next").closes_s is None, "a timer ends with its vote"


def test_hands_are_added_to_the_phones_and_replaced_by_a_second_count(room: Classroom) -> None:
    code, people = new_class(room, people=1, at="vote")
    cast(room, code, people[0], RIGHT)
    room.act(code, "hands", round="first", counts={RIGHT: 2, WRONG: 4})
    room.act(code, "hands", round="first", counts={RIGHT: 3, WRONG: 0})
    view = room.console_view(code)
    assert (view["shares"]["n"], view["hands"]["first"], view["answered"]) == (4, {RIGHT: 3}, 1)
    go_to(room, code, "votes")
    assert room.projector_view(code)["votes"]["first"] == {"total": 4, "counts": {RIGHT: 4}}
    for counts in ({"zz": 1}, {RIGHT: -1}, {RIGHT: 10_001}, {RIGHT: True}, {RIGHT: 1.5}, [RIGHT]):
        with pytest.raises(ValueError, match="counts"):
            room.act(code, "hands", round="first", counts=counts)
    with pytest.raises(ValueError, match="round='third': must be one of first, second, predict"):
        room.act(code, "hands", round="third", counts={})


def test_a_blank_projector_says_so_and_keeps_its_picture(room: Classroom) -> None:
    code, _ = new_class(room, at="votes")
    room.act(code, "blank", on=True)
    view = room.projector_view(code)
    assert (view["blank"], view["state"], room.console_view(code)["blank"]) == (True, "votes", True)
    assert not room.projector_view(code)["frozen"]
    room.act(code, "blank", on=False)
    assert not room.projector_view(code)["blank"]
    with pytest.raises(ValueError, match="on='false': must be true or false"):
        room.act(code, "blank", on="false")


def test_a_frozen_projector_keeps_its_picture_also_after_a_restart(room: Classroom, again: Any) -> None:
    code, people = new_class(room, people=3, at="vote")
    cast(room, code, people[0], RIGHT)
    room.act(code, "freeze", on=True)
    cast(room, code, people[1], RIGHT)
    room.act(code, "freeze", on=True)
    go_to(room, code, "key")
    for view in (room.projector_view(code), again().projector_view(code)):
        assert (view["state"], view["answered"], view["key"], view["frozen"]) == ("vote", 1, None, True)
        assert view["version"] == room.state(code).version
    assert room.audience_view(code, people[0].token)["state"] == "key", "the phones follow"
    room.act(code, "freeze", on=False)
    assert room.projector_view(code)["state"] == "key"


def test_names_are_on_the_projector_only_where_they_were_put_there(room: Classroom) -> None:
    code, _ = new_class(room)
    people = [room.join(code, nickname=name) for name in ("Ada", "Bob", "Cleo")]
    room.join(code)
    assert "names" not in room.projector_view(code)
    room.act(code, "show_names", on=True)
    assert room.projector_view(code)["names"] == ["Ada", "Bob", "Cleo"]
    room.act(code, "freeze", on=True)
    room.act(code, "hide", participant=people[0].id)
    room.act(code, "remove", participant=people[1].id)
    assert room.projector_view(code)["names"] == ["Cleo"], "whatever is frozen"
    room.act(code, "unhide", participant=people[0].id)
    room.act(code, "restore", participant=people[1].id)
    assert room.projector_view(code)["names"] == ["Ada", "Bob", "Cleo"]
    room.act(code, "show_names", on=False)
    assert "names" not in room.projector_view(code)


def test_notes_belong_to_an_item_and_to_the_console(room: Classroom) -> None:
    code, people = new_class(room, people=1)
    room.act(code, "note", text="Say hello.")
    room.act(code, "note", text="Ask who has seen it.\r\nThen wait.", item_no=1)
    assert room.console_view(code)["notes"] == "Say hello."
    go_to(room, code, "vote")
    assert room.console_view(code)["notes"] == "Ask who has seen it.\nThen wait."
    assert "notes" not in room.projector_view(code) | room.audience_view(code, people[0].token)
    for arguments in ({"text": "x" * 4001}, {"text": "\x00"}, {"text": 3}, {"text": "x", "item_no": 3}, {"text": "x", "item_no": True}):
        with pytest.raises(ValueError, match=r"text|item_no"):
            room.act(code, "note", **arguments)


@pytest.mark.parametrize("at", ["lobby", "vote", "votes", "discuss", "revote", "predict", "ended"])
def test_no_run_is_shown_before_the_experiments(room: Classroom, at: str) -> None:
    code, _ = new_class(room, lessons=["one-busy-gpu"], at=at)
    with pytest.raises(ValueError, match="give the vote away"):
        room.act(code, "show_run", run=RUN)
    assert room.projector_view(code)["run"] is None


def test_a_run_is_on_all_screens_until_the_next_item(room: Classroom) -> None:
    code, people = new_class(room, people=6, at="vote")
    cast_all(room, code, people, [RIGHT] * 6)
    go_to(room, code, "predict")
    cast_all(room, code, people, ["only0"] * 4 + ["all_low"] * 2, round="predict")
    go_to(room, code, "experiments")
    room.act(code, "show_run", run={**RUN, "cause_id": "k2"})
    for view in (room.projector_view(code), room.audience_view(code, people[0].token), room.console_view(code)):
        assert view["run"] == {
            "run_id": "r1", "title": "All data through GPU 0", "odd_rank": None, "metric": "gpu_util", "mode": "live", "recorded_words": "",
            "paused": False, "prediction": "only0", "sentence": "", "showing": 0,
        }, "with what the class predicted of this cause, and without its id"
    room.act(code, "show_run", run={**RUN, "cause_id": "k9"})
    assert room.projector_view(code)["run"]["prediction"] is None, "the class predicted another cause"
    room.act(code, "show_run", race=[RUN, {**RUN, "run_id": "r2"}])
    view = room.projector_view(code)
    assert (view["run"], [racer["run_id"] for racer in view["race"]]) == (None, ["r1", "r2"])
    room.act(code, "show_run", run=RUN)
    assert room.projector_view(code)["race"] is None
    room.act(code, "back")
    assert room.projector_view(code)["run"] is None
    room.act(code, "next")
    assert room.projector_view(code)["run"]["run_id"] == "r1", "going back and on again keeps it"
    room.act(code, "show_run", run=None)
    assert room.projector_view(code)["run"] is None
    room.act(code, "show_run", run=RUN)
    go_to(room, code, "explanation")
    room.act(code, "next")
    assert room.state(code).run is None


def test_a_run_that_is_described_wrongly_is_refused(room: Classroom) -> None:
    code, _ = new_class(room, at="experiments")
    for fields, named in (
        ({}, "run.run_id"), ({**RUN, "mode": "faked"}, "run.mode"), ({**RUN, "odd_rank": -1}, "run.odd_rank"),
        ({**RUN, "key": "t2"}, "run.key"), ({**RUN, "epoch_s": float("inf")}, "run.epoch_s"),
        ({**RUN, "prediction": "none"}, "run.prediction"),
        ([RUN], "run"), ({**RUN, "sentence": "x" * 501}, "run.sentence"),
    ):
        with pytest.raises(ValueError, match=re.escape(named)):
            room.act(code, "show_run", run=fields)
    with pytest.raises(ValueError, match="race: must be a list of at most 4"):
        room.act(code, "show_run", race=[RUN] * 5)


def test_the_log_tells_what_happened_latest_last_and_survives(room: Classroom, again: Any, clock: Clock) -> None:
    code, _ = new_class(room, at="vote")
    clock.now_s += 1
    room.note(code, "The live start failed: the recording is on the screens.", "warn")
    for view in (room.console_view(code), again().console_view(code)):
        assert [line["words"] for line in view["log"]] == [
            "The class was made.", "Vote, item 1.", "The live start failed: the recording is on the screens."
        ]
        assert view["log"][-1]["tone"] == "warn"
    for number in range(60):
        room.note(code, f"line {number}")
    assert [line["words"] for line in room.console_view(code)["log"]] == [f"line {number}" for number in range(10, 60)]
    with pytest.raises(ValueError, match="tone='loud'"):
        room.note(code, "x", "loud")  # type: ignore[arg-type]


def test_what_is_no_action_is_refused_in_words(room: Classroom) -> None:
    code, _ = new_class(room)
    before = room.state(code)
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("nothing", {}, "action='nothing': must be one of next, back"), ("next", {"faster": 1}, "takes nothing else, not faster"),
        ("timer", {}, "takes seconds, not nothing"), ("blank", {}, "takes on"), ("remove", {}, "participant: must be the number"),
        ("remove", {"participant": 10**9}, "somebody in this class"), ("hide", {"participant": True}, "participant=True"),
        ("hide", {"participant": 1, "on": True}, "nothing else"),
    ]
    for action, arguments, said in cases:
        with pytest.raises(ValueError, match=said):
            room.act(code, action, **arguments)
    assert room.state(code) == before


def test_nobody_is_moderated_from_another_class(room: Classroom) -> None:
    code, _ = new_class(room)
    elsewhere, people = new_class(room, people=1)
    with pytest.raises(ValueError, match="somebody in this class"):
        room.act(code, "remove", participant=people[0].id)
    assert room.joined(elsewhere) == 1


def test_an_unknown_class_is_unknown_to_every_door(room: Classroom) -> None:
    for code in ("AAAAAA", "", "x" * 100_000, "AAAAA'"):
        for door in (
            lambda code: room.act(code, "next"), lambda code: room.join(code), room.state, room.projector_view, room.console_view,
            room.audience_base, room.report, room.results_csv, room.stamp, lambda code: room.note(code, "x"),
            lambda code: room.vote(code, "x" * 43, round="first", choice=RIGHT, item_no=1),
        ):
            with pytest.raises(UnknownClassError):
                door(code)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2), max_leaves=4,
)
NAMES = ["seconds", "on", "state", "round", "counts", "participant", "text", "item_no", "run", "race", "x"]


@given(
    at=st.sampled_from(["lobby", "vote", "experiments"]), action=st.sampled_from([*ACTIONS, *PEOPLE_ACTIONS]) | st.text(max_size=5),
    arguments=st.dictionaries(st.sampled_from(NAMES), JSON, max_size=3),
)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_browser_sends_is_done_or_refused_in_words(room: Classroom, at: str, action: str, arguments: dict[str, Any]) -> None:
    code, _ = new_class(room, at=at)
    before = room.state(code)
    try:
        after = room.act(code, action, **arguments)
    except ValueError:
        assert room.state(code) == before
    else:
        assert after.version == before.version + 1
        assert room.console_view(code)["version"] == after.version
