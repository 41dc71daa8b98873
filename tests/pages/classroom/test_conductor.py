"""The runs of a class: what is put on the screens, what takes its place when it does not come, and what the console is told."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lessons.classroom import Classroom, ClassState, StaleClassError
from lessons.store import StoreError
from pages.classroom import conductor as conducting
from pages.classroom.conductor import FIX, RACE, Conductor
from scenarios.config import RunConfig
from scenarios.record import append_event
from scenarios.runs import Run
from tests.pages.classroom.conftest import LESSON
from tests.pages.conftest import PretendedRuns

Conduct = Callable[[Callable[[Conductor], Awaitable[None]]], None]


@pytest.fixture
def code(classroom: Classroom, lobby: ClassState) -> str:
    """A class at its experiments."""
    classroom.act(lobby.code, "next")
    classroom.act(lobby.code, "go_to", state="votes")
    classroom.act(lobby.code, "go_to", state="experiments")
    return lobby.code


@pytest.fixture
def urged() -> list[str]:
    return []


@pytest.fixture
def conduct(classroom: Classroom, runs: PretendedRuns, urged: list[str], monkeypatch: pytest.MonkeyPatch) -> Conduct:
    """Calls something with a conductor, in an event loop of its own."""
    monkeypatch.setattr(conducting, "START_LIMIT_S", 0.3)
    monkeypatch.setattr(conducting, "WATCH_EVERY_S", 0.02)

    def run(script: Callable[[Conductor], Awaitable[None]]) -> None:
        async def whole() -> None:
            made = Conductor(lambda: runs, lambda: classroom, asyncio.to_thread, asyncio.to_thread, urged.append)  # type: ignore[arg-type,return-value]
            try:
                await script(made)
            finally:
                await made.close()

        asyncio.run(whole())

    return run


def causes(classroom: Classroom, code: str) -> list[str]:
    lesson = classroom.lesson(code)
    assert lesson is not None
    return [cause.id for cause in lesson.causes]


def on_screen(classroom: Classroom, code: str) -> dict[str, Any]:
    return dict(classroom.state(code).run or {})


def said(classroom: Classroom, code: str) -> dict[str, Any]:
    return dict(classroom.console_view(code)["log"][-1])


async def until(condition: Callable[[], object], limit_s: float = 10.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def record(runs: PretendedRuns, classroom: Classroom, code: str, name: str | None = None) -> Run:
    """A recording of an experiment of the present item; by default the first cause's."""
    lesson = classroom.lesson(code)
    assert lesson is not None
    config = lesson.config_of(name or lesson.causes[0].scenario)
    run = runs.start(config, viewer="somebody")
    runs.recorded[config.key] = runs.runs[run.run_id] = dataclasses.replace(run, state="finished")
    return run


def last(runs: PretendedRuns) -> Run:
    return list(runs.runs.values())[-1]


def test_a_live_run_is_on_the_screens_at_once(
    conduct: Conduct, classroom: Classroom, code: str, runs: PretendedRuns, urged: list[str]
) -> None:
    cause = causes(classroom, code)[0]

    async def script(conductor: Conductor) -> None:
        await conductor.experiment(code, cause)
        run = on_screen(classroom, code)
        assert (run["run_id"], run["mode"], run["cause_id"]) == (last(runs).run_id, "live", cause)
        assert run["title"] == classroom.lesson(code).cause(cause).title  # type: ignore[union-attr]
        append_event(last(runs).run_dir, "tick", {"t_ms": 200})
        await asyncio.sleep(0.5)
        assert on_screen(classroom, code) == run, "it has drawn in time and stays"

    conduct(script)
    assert urged[0] == code


@pytest.mark.parametrize("how", ["slow", "full", "broken", "hangs"])
def test_where_a_live_run_does_not_come_the_recording_does_and_the_console_says_why(
    conduct: Conduct, classroom: Classroom, code: str, runs: PretendedRuns, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = record(runs, classroom, code)
    runs.full = how == "full"
    if how == "hangs":
        monkeypatch.setattr(runs, "start", lambda *arguments, **named: time.sleep(1.0))

    async def script(conductor: Conductor) -> None:
        await conductor.experiment(code, causes(classroom, code)[0])
        if how == "broken":  # as where the launcher is: the run comes back as one that failed
            run = last(runs)
            end = {"outcome": "failed", "expected": False, "sentence": "The launcher cannot be started.", "t_ms": 0}
            append_event(run.run_dir, "end", end)
            runs.runs[run.run_id] = dataclasses.replace(run, state="failed")
        await until(lambda: on_screen(classroom, code)["mode"] == "recorded")
        await until(lambda: said(classroom, code)["tone"] == "warn")
        if how in ("slow", "broken"):
            await until(lambda: len(runs.runs) == 1)  # the run that came too late was given up

    conduct(script)
    run, line = on_screen(classroom, code), said(classroom, code)
    assert run["run_id"] == recording.run_id
    assert run["recorded_words"].startswith("Recorded here on ")
    why = {"slow": "did not begin", "full": "are waiting already", "broken": "launcher cannot be started", "hangs": "did not begin"}
    assert why[how] in line["words"]
    assert "recording is on the screens" in line["words"]
    assert "Run it again" in line["words"]


def test_without_a_recording_the_console_says_what_can_be_done(
    conduct: Conduct, classroom: Classroom, code: str, runs: PretendedRuns
) -> None:
    runs.full = True

    async def script(conductor: Conductor) -> None:
        await conductor.experiment(code, causes(classroom, code)[0])

    conduct(script)
    assert on_screen(classroom, code) == {}
    assert (said(classroom, code)["tone"], "no recording" in said(classroom, code)["words"]) == ("bad", True)


def test_a_slow_run_without_a_recording_is_waited_for(conduct: Conduct, classroom: Classroom, code: str, runs: PretendedRuns) -> None:
    async def script(conductor: Conductor) -> None:
        await conductor.experiment(code, causes(classroom, code)[0])
        run = last(runs)
        await until(lambda: "as soon as it begins" in said(classroom, code)["words"])
        await asyncio.sleep(0.3)
        assert (on_screen(classroom, code)["run_id"], on_screen(classroom, code)["mode"]) == (run.run_id, "live")
        assert run.run_id in runs.runs, "it was not given up"
        append_event(run.run_dir, "tick", {"t_ms": 200})
        await asyncio.sleep(0.2)
        record(runs, classroom, code)
        await asyncio.sleep(0.2)
        assert on_screen(classroom, code)["mode"] == "live", "it has begun, and goes on"

    conduct(script)
    assert len([line for line in classroom.console_view(code)["log"] if "could not be shown live" in line["words"]]) == 1


def test_a_recording_that_is_there_before_the_live_run_takes_its_place(
    conduct: Conduct, classroom: Classroom, code: str, runs: PretendedRuns
) -> None:
    async def script(conductor: Conductor) -> None:
        await conductor.experiment(code, causes(classroom, code)[0])
        late = last(runs)
        await until(lambda: "as soon as it begins" in said(classroom, code)["words"])
        recording = record(runs, classroom, code)
        await until(lambda: on_screen(classroom, code)["run_id"] == recording.run_id)
        await until(lambda: late.run_id not in runs.runs)

    conduct(script)


@pytest.mark.parametrize(("recorded", "todo"), [(True, "Play the recording (P)"), (False, "there is no recording")])
def test_a_run_that_dies_on_screen_is_told_with_what_to_do(
    conduct: Conduct, classroom: Classroom, code: str, runs: PretendedRuns, recorded: bool, todo: str
) -> None:
    if recorded:
        record(runs, classroom, code)

    async def script(conductor: Conductor) -> None:
        await conductor.experiment(code, causes(classroom, code)[0])
        run = last(runs)
        append_event(run.run_dir, "tick", {"t_ms": 200})
        await asyncio.sleep(0.1)
        append_event(run.run_dir, "end", {"outcome": "failed", "expected": False, "sentence": "Rank 3 ended at 4.2 s.", "t_ms": 4200})
        runs.runs[run.run_id] = dataclasses.replace(run, state="failed")
        await until(lambda: "broke off" in said(classroom, code)["words"])
        assert on_screen(classroom, code)["run_id"] == run.run_id, "what it has shown stays"

    conduct(script)
    line = said(classroom, code)
    assert line["tone"] == "bad"
    assert "Rank 3 ended at 4.2 s." in line["words"]
    assert todo in line["words"]


@pytest.mark.parametrize(("outcome", "expected"), [("finished", True), ("out_of_memory", True), ("timeout", True)])
def test_an_end_that_is_expected_is_no_news(
    conduct: Conduct, classroom: Classroom, code: str, runs: PretendedRuns, outcome: str, expected: bool
) -> None:
    async def script(conductor: Conductor) -> None:
        await conductor.experiment(code, causes(classroom, code)[0])
        run = last(runs)
        append_event(run.run_dir, "tick", {"t_ms": 200})
        append_event(run.run_dir, "end", {"outcome": outcome, "expected": expected, "sentence": "As expected.", "t_ms": 900})
        runs.runs[run.run_id] = dataclasses.replace(run, state=outcome)  # type: ignore[arg-type]
        await asyncio.sleep(0.5)

    conduct(script)
    assert "broke off" not in said(classroom, code)["words"]


def test_a_server_that_begins_anew_says_what_became_of_the_run_on_screen_once(
    conduct: Conduct, classroom: Classroom, code: str, runs: PretendedRuns
) -> None:
    async def before(conductor: Conductor) -> None:
        await conductor.experiment(code, causes(classroom, code)[0])
        append_event(last(runs).run_dir, "tick", {"t_ms": 200})

    async def after(conductor: Conductor) -> None:
        await conductor.look_after(code)
        await until(lambda: "broke off" in said(classroom, code)["words"])
        await conductor.look_after(code)
        await asyncio.sleep(0.1)

    conduct(before)
    run = last(runs)
    end = {"outcome": "interrupted", "expected": False, "sentence": "The server restarted at 0.2 s.", "t_ms": 200}
    append_event(run.run_dir, "end", end)
    runs.runs[run.run_id] = dataclasses.replace(run, state="interrupted")
    conduct(after)
    lines = [line["words"] for line in classroom.console_view(code)["log"] if "broke off" in line["words"]]
    assert len(lines) == 1
    assert "The server restarted" in lines[0]


def test_a_run_of_another_replica_is_told_here_where_that_one_cannot(
    classroom: Classroom, code: str, runs: PretendedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two conductors on one class. The one that has started the run tells how it ended, unless it is gone."""
    monkeypatch.setattr(conducting, "WATCH_EVERY_S", 0.02)
    monkeypatch.setattr(conducting, "OTHERS_FIRST_S", 0.4)

    def lines() -> list[str]:
        return [line["words"] for line in classroom.console_view(code)["log"] if "broke off" in line["words"]]

    async def script(there_s: float) -> None:
        ask = asyncio.to_thread
        here, there = (Conductor(lambda: runs, lambda: classroom, ask, ask, lambda code: None) for _ in range(2))  # type: ignore[arg-type,return-value]
        await there.experiment(code, causes(classroom, code)[0])
        run = last(runs)
        append_event(run.run_dir, "tick", {"t_ms": 200})
        await here.look_after(code)
        await asyncio.sleep(0.2)
        if not there_s:
            await there.close()
        append_event(run.run_dir, "end", {"outcome": "failed", "expected": False, "sentence": f"Rank 3 ended, {there_s}.", "t_ms": 200})
        runs.runs[run.run_id] = dataclasses.replace(run, state="failed")
        await until(lambda: any(f"Rank 3 ended, {there_s}." in line for line in lines()))
        await asyncio.sleep(0.6)
        await here.close()
        await there.close()

    asyncio.run(script(1.0))
    assert len(lines()) == 1
    asyncio.run(script(0.0))
    assert len(lines()) == 2


def test_a_run_that_another_replica_takes_off_the_screens_ends(
    conduct: Conduct, classroom: Classroom, code: str, runs: PretendedRuns
) -> None:
    async def script(conductor: Conductor) -> None:
        await conductor.experiment(code, causes(classroom, code)[0])
        run = last(runs)
        append_event(run.run_dir, "tick", {"t_ms": 200})
        await asyncio.sleep(0.2)
        classroom.act(code, "show_run", run={**on_screen(classroom, code), "run_id": "of-another-one", "showing": 2})
        await until(lambda: run.run_id not in runs.runs)

    conduct(script)


@pytest.mark.parametrize("times", [2, 3])
def test_what_somebody_else_does_in_the_same_instant_does_not_keep_a_run_off_the_screens(
    conduct: Conduct, classroom: Classroom, code: str, runs: PretendedRuns, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(runs, classroom, code)
    act, refused = classroom.act, []

    def stale(*arguments: Any, **named: Any) -> ClassState:
        if len(refused) < times:
            refused.append(StaleClassError(classroom.state(code)))
            raise refused[-1]
        return act(*arguments, **named)

    async def script(conductor: Conductor) -> None:
        monkeypatch.setattr(classroom, "act", stale)
        if times < conducting.TRIES:
            await conductor.experiment(code, causes(classroom, code)[0], mode="recorded")
            return
        with pytest.raises(StaleClassError):
            await conductor.experiment(code, causes(classroom, code)[0], mode="recorded")

    conduct(script)
    assert bool(on_screen(classroom, code)) == (times < conducting.TRIES)


def test_a_store_that_is_away_when_the_recording_is_needed_is_said(
    conduct: Conduct, classroom: Classroom, code: str, runs: PretendedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(runs, classroom, code)

    def away(*arguments: Any, **named: Any) -> ClassState:
        raise StoreError("The database cannot be reached just now.")

    async def script(conductor: Conductor) -> None:
        await conductor.experiment(code, causes(classroom, code)[0])
        monkeypatch.setattr(classroom, "act", away)
        await until(lambda: "could not be changed" in said(classroom, code)["words"])

    conduct(script)
    assert "The database cannot be reached just now." in said(classroom, code)["words"]


def test_pause_and_replay_reach_the_run_on_screen(conduct: Conduct, classroom: Classroom, code: str, runs: PretendedRuns) -> None:
    recording = record(runs, classroom, code)

    async def script(conductor: Conductor) -> None:
        with pytest.raises(ValueError, match="No run is on the screens"):
            await conductor.pause(code, True)
        await conductor.experiment(code, causes(classroom, code)[0], mode="recorded")
        first = on_screen(classroom, code)
        await conductor.pause(code, True)
        assert on_screen(classroom, code) == {**first, "paused": True}
        await conductor.replay(code)
        assert on_screen(classroom, code) == {**first, "showing": first["showing"] + 1}
        await conductor.clear(code)
        assert on_screen(classroom, code) == {}

    conduct(script)
    assert recording.run_id in runs.runs


def test_two_presses_at_once_have_one_run(conduct: Conduct, classroom: Classroom, code: str, runs: PretendedRuns) -> None:
    async def script(conductor: Conductor) -> None:
        first, second = causes(classroom, code)[:2]
        await asyncio.gather(conductor.experiment(code, first), conductor.experiment(code, second))
        assert [run.run_id for run in runs.runs.values()] == [on_screen(classroom, code)["run_id"]]

    conduct(script)


def test_off_the_screens_is_not_overtaken_by_a_run_that_was_starting(
    conduct: Conduct, classroom: Classroom, code: str, runs: PretendedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = runs.start

    def slowly(*arguments: Any, **named: Any) -> Run:
        time.sleep(0.2)
        return start(*arguments, **named)

    monkeypatch.setattr(runs, "start", slowly)

    async def script(conductor: Conductor) -> None:
        pressed = asyncio.create_task(conductor.experiment(code, causes(classroom, code)[0]))
        await asyncio.sleep(0.05)
        await conductor.clear(code)
        await pressed
        assert on_screen(classroom, code) == {}

    conduct(script)


def test_another_run_ends_the_one_before(conduct: Conduct, classroom: Classroom, code: str, runs: PretendedRuns) -> None:
    async def script(conductor: Conductor) -> None:
        await conductor.experiment(code, causes(classroom, code)[0])
        first = last(runs)
        append_event(first.run_dir, "tick", {"t_ms": 200})
        await conductor.experiment(code, FIX)
        assert first.run_id not in runs.runs
        assert on_screen(classroom, code)["title"] == "The healthy script"
        assert last(runs).config == classroom.lesson(code).config_of(classroom.lesson(code).fix)  # type: ignore[union-attr]

    conduct(script)


def test_knobs_are_turned_for_everybody_and_the_recording_says_that_they_are_not(
    conduct: Conduct, classroom: Classroom, code: str, runs: PretendedRuns
) -> None:
    record(runs, classroom, code)
    cause = causes(classroom, code)[0]

    async def script(conductor: Conductor) -> None:
        await conductor.experiment(code, cause, knobs={"gpus": 4})
        assert last(runs).config.gpus == 4
        await until(lambda: on_screen(classroom, code)["mode"] == "recorded")
        assert on_screen(classroom, code)["recorded_words"].endswith(", with the usual knobs")
        for knobs, words in (({"scenario": "sharded"}, "knobs: scenario"), ({"gpus": 99}, "gpus='99'")):
            with pytest.raises(ValueError, match=words):
                await conductor.experiment(code, cause, knobs=knobs)

    conduct(script)


@pytest.mark.parametrize("what", ["nonsense", "../../etc", ""])
def test_an_unknown_experiment_is_refused(conduct: Conduct, classroom: Classroom, code: str, runs: PretendedRuns, what: str) -> None:
    async def script(conductor: Conductor) -> None:
        with pytest.raises(ValueError, match="must be one of"):
            await conductor.experiment(code, what)
        with pytest.raises(ValueError, match="no recording"):
            await conductor.experiment(code, causes(classroom, code)[0], mode="recorded")

    conduct(script)
    assert runs.runs == {}


def test_no_run_is_started_before_the_experiments(conduct: Conduct, classroom: Classroom, lobby: ClassState, runs: PretendedRuns) -> None:
    async def script(conductor: Conductor) -> None:
        for _ in range(5):  # vote, votes, discuss, revote, predict
            classroom.act(lobby.code, "next")
            with pytest.raises(ValueError, match="would give the vote away"):
                await conductor.experiment(lobby.code, FIX)

    conduct(script)
    assert runs.runs == {}


def test_the_race_is_measured_where_it_was_not_and_shown_when_it_is(
    conduct: Conduct, classroom: Classroom, code: str, runs: PretendedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = {"run_id": "a", "title": "Sharded", "role": "right", "epoch_s": 9.0, "measured": True, "points": [(0.0, 0.0), (9.0, 100.0)]}
    lanes = [lane, {**lane, "run_id": "b", "title": "Unsharded", "role": "odd"}]
    ready: list[list[dict[str, Any]]] = [[lane]]
    left = [[RunConfig.parse({"scenario": "sharded"})]]
    monkeypatch.setattr(conducting, "racers", lambda lesson, runs: ready[0])
    monkeypatch.setattr(conducting, "unmeasured", lambda lesson, runs: left[0])

    async def script(conductor: Conductor) -> None:
        await conductor.experiment(code, RACE)
        assert "being run now" in said(classroom, code)["words"]
        await until(lambda: runs.runs)
        assert last(runs).pace == "fast"
        ready[0], left[0] = lanes, []
        await until(lambda: classroom.state(code).race)

    conduct(script)
    view = classroom.audience_base(code)
    assert view["race"][0]["points"] == [[0.0, 0.0], [9.0, 100.0]]
    assert (view["race"][0]["role"], view["run"]) == ("right", None)


def test_a_lesson_has_a_race_of_whole_epochs(classroom: Classroom, code: str, runs: PretendedRuns) -> None:
    from pages.classroom.racing import POINTS, racers, thinned, unmeasured

    lesson = classroom.lesson(code)
    assert lesson is not None
    assert lesson.id == LESSON
    assert racers(lesson, runs) == []  # type: ignore[arg-type]
    wanted = unmeasured(lesson, runs)  # type: ignore[arg-type]
    assert [config.epochs for config in wanted] == [1] * len(lesson.race)
    points = [(float(number), float(number)) for number in range(500)]
    assert (len(thinned(points)), thinned(points)[0], thinned(points)[-1]) == (POINTS, points[0], points[-1])
    assert thinned(points[:3]) == points[:3]
