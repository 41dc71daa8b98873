"""Sweeps: what may be swept, progress and results, stopping, limits, restarts, and the edges at which runs do not come about."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scenarios import launcher_client
from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig
from scenarios.runs import QueueFull, Run, Runs
from scenarios.settings import Settings
from scenarios.sweep_plan import POINT_STEPS, SweepPlan
from scenarios.sweeps import Sweep, SweepRefused, Sweeps
from tests.scenarios.lifecycle.conftest import PACED, MakeRuns, wait_until

MakeSweeps = Callable[..., Sweeps]


def plan(knob: str = "gpus", values: tuple[Any, ...] = (1, 2, 4, 8), **base: Any) -> SweepPlan:
    return SweepPlan.parse(base=RunConfig.parse({"scenario": "sharded", **base}), knob=knob, values=values)


class ScriptedRuns:
    """Runs that end when the test says so."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings(data_dir=folder)
        self.asked: list[RunConfig] = []
        self.priorities: set[str] = set()
        self.full = False
        self.recorded: dict[str, Run] = {}
        self.viewers: dict[str, set[str]] = {}
        self._runs: dict[str, Run] = {}

    def start(self, config: RunConfig, *, viewer: str, pace: str = "live", priority: str = "visitor") -> Run:
        if self.full:
            raise QueueFull("50 runs are waiting already. Please try again in a minute.")
        self.asked.append(config)
        self.priorities.add(f"{priority} {pace}")
        run = self._run(config, "running")
        self.viewers[run.run_id] = {viewer}
        return run

    def _run(self, config: RunConfig, state: Any, end: dict[str, Any] | None = None) -> Run:
        run_id = next((known.run_id for known in self._runs.values() if known.config == config), f"{len(self._runs):016x}")
        run = Run(
            run_id=run_id, config=config, key=config.key, state=state, created_s=0.0, run_dir=Path("/nowhere"), pace="fast",
            unwritten_end=end,
        )
        self._runs[run_id] = run
        return run

    def end(self, state: str = "finished", **end: Any) -> None:
        """The run under way ends."""
        run = wait_until(lambda: next((run for run in self._runs.values() if not run.over), None), what="a run under way")
        self._run(run.config, state, {"outcome": state, "summary": {"samples_per_second": 100.0 * run.config.gpus}, **end})

    def get(self, run_id: str) -> Run | None:
        return self._runs.get(run_id)

    def recording(self, config: RunConfig) -> Run | None:
        return self.recorded.get(config.key)

    def stop(self, run_id: str, viewer: str) -> None:
        self.viewers[run_id].discard(viewer)
        if not self.viewers[run_id]:
            self._run(self._runs[run_id].config, "stopped", {"outcome": "stopped", "sentence": "Stopped.", "summary": None})


@pytest.fixture
def make_sweeps() -> Iterator[MakeSweeps]:
    made: list[Sweeps] = []

    def make(runs: Any, **options: Any) -> Sweeps:
        made.append(Sweeps(runs, **options))
        return made[-1]

    yield make
    for sweeps in made:
        sweeps.close()


@pytest.fixture
def scripted(tmp_path: Path) -> ScriptedRuns:
    return ScriptedRuns(tmp_path)


def over(sweeps: Sweeps, sweep: Sweep, limit_s: float = 20.0) -> Sweep:
    def now() -> Sweep | None:
        found = sweeps.get(sweep.sweep_id)
        return found if found is not None and found.over else None

    return wait_until(now, limit_s, "the sweep over")  # type: ignore[no-any-return]


# What may be swept


@pytest.mark.parametrize(
    ("knob", "values", "base", "message"),
    [
        ("colour", (1, 2), {}, "knob='colour': must be one of gpus, batch"),
        ("gpus", (1, 9), {}, "gpus='9': must be an integer from 1 to 8"),
        ("gpus", ("many", 2), {}, "gpus='many'"),
        ("gpus", (4, 4), {}, "values=1: must be from 2 to 12"),
        ("batch", tuple(range(1, 14)), {}, "values=13: must be from 2 to 12"),
        ("link", ("nvlink3", "string"), {}, "link='string': must be one of"),
        ("link", ("", "pcie4"), {}, "link='': must be one of"),
        ("gpu", ("a100-80gb", "abacus"), {}, "gpu='abacus': must be one of"),
        ("precision", ("amp", "fp8"), {}, "precision='fp8'"),
        ("straggler_pct", (10, 50), {}, "needs a slow GPU"),
        ("straggler_pct", (10, 0), {"straggler": 1}, "must be an integer from 1 to 400"),
        ("gpus", (2, 8), {"straggler": 5}, "straggler='5': must be a rank from 0 to 1"),
        ("workers", (2, [3]), {}, "workers="),
    ],
)
def test_what_cannot_be_swept_is_one_line(knob: str, values: tuple[Any, ...], base: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"^\S[^\n]*$") as raised:
        plan(knob, values, **base)
    assert message in str(raised.value)


def test_equal_sweeps_are_equal_whatever_order_or_base_value() -> None:
    one, other = plan("gpus", (8, "1", 4, 1), gpus=2), plan("gpus", (1, 4, 8))
    assert one.key == other.key
    assert one.values == (1, 4, 8)
    assert plan("precision", ("amp", "fp32")).values == ("fp32", "amp")
    assert plan("gpus", (1, 4), seed=1).key != plan("gpus", (1, 4)).key
    assert SweepPlan.load(one.dump()) == one


def test_points_are_short_but_for_runs_that_break_off_by_themselves() -> None:
    assert {point.steps for point in plan().points} == {POINT_STEPS}
    assert {point.steps for point in plan(steps=9).points} == {9}
    breaking = next(name for name, scenario in SCENARIOS.items() if scenario.expected_outcome == "out_of_memory")
    assert {point.steps for point in plan(scenario=breaking).points} == {None}


# Real runs


@pytest.mark.slow
def test_a_sweep_over_batches_ends_at_the_memory_edge(tmp_path: Path, make_sweeps: MakeSweeps) -> None:
    runs = Runs(Settings(data_dir=tmp_path, live_runs=1), launcher_command=launcher_client.COMMAND)
    try:
        sweeps = make_sweeps(runs)
        sweep = sweeps.start(plan("batch", (64, 128, 8192), gpus=2, steps=6), viewer="a")
        found = over(sweeps, sweep, 60)
        assert found.state == "finished"
        assert [point.state for point in found.points] == ["finished", "finished", "out_of_memory"]
        rates = [point.summary["samples_per_second"] for point in found.points if point.summary]
        assert 0 < rates[0] < rates[1]
        assert rates[2] is None
        sweeps.close()
        again = make_sweeps(runs).get(sweep.sweep_id)
        assert again is not None
        assert [(point.state, point.summary) for point in again.points] == [(point.state, point.summary) for point in found.points]
    finally:
        runs.close()


def test_a_run_without_figures_is_no_result(make_runs: MakeRuns, make_sweeps: MakeSweeps) -> None:
    runs = make_runs()
    sweeps = make_sweeps(runs)
    sweep = over(sweeps, sweeps.start(plan("batch", (1, 2), gpus=2, steps=4), viewer="a"))
    # The paced supervisor writes no summary.
    assert {point.reason for point in sweep.points} == {"4 ticks."}
    assert {runs.get(str(point.run_id)).state for point in sweep.points} == {"finished"}  # type: ignore[union-attr]


# Edges


def test_points_come_one_at_a_time_behind_visitors(scripted: ScriptedRuns, make_sweeps: MakeSweeps) -> None:
    sweeps = make_sweeps(scripted)
    sweep = sweeps.start(plan(values=(1, 2)), viewer="a")
    assert (sweep.state, sweep.done, len(sweep.points)) == ("running", 0, 2)
    under_way = wait_until(lambda: sweeps.get(sweep.sweep_id).under_way)  # type: ignore[union-attr]
    assert under_way.value == 1
    assert len(scripted.asked) == 1
    scripted.end()
    wait_until(lambda: len(scripted.asked) == 2)
    now = sweeps.get(sweep.sweep_id)
    assert now is not None
    assert now.done == 1
    assert 0 < now.left_s < 5
    scripted.end()
    assert [point.summary["samples_per_second"] for point in over(sweeps, sweep).points if point.summary] == [100.0, 200.0]
    assert scripted.priorities == {"background fast"}


def test_a_recording_counts_unless_all_is_run_afresh(scripted: ScriptedRuns, make_sweeps: MakeSweeps) -> None:
    sweeps, wanted = make_sweeps(scripted), plan(values=(1, 2))
    for config in wanted.points:
        scripted.recorded[config.key] = scripted._run(config, "finished", {"summary": {"samples_per_second": 7.0}})
    first = over(sweeps, sweeps.start(wanted, viewer="a"))
    assert [(point.recorded, point.state) for point in first.points] == [(True, "finished")] * 2
    assert scripted.asked == []
    again = sweeps.start(wanted, viewer="a", afresh=True)
    scripted.end()
    scripted.end()
    assert [point.recorded for point in over(sweeps, again).points] == [False, False]


def test_a_stop_in_the_middle_keeps_what_was_found_and_goes_on_from_there(scripted: ScriptedRuns, make_sweeps: MakeSweeps) -> None:
    sweeps = make_sweeps(scripted)
    sweep = sweeps.start(plan(values=(1, 2, 4)), viewer="a")
    scripted.end()
    wait_until(lambda: len(scripted.asked) == 2)
    sweeps.stop(sweep.sweep_id, "a stranger")
    assert sweeps.get(sweep.sweep_id).state == "running"  # type: ignore[union-attr]
    sweeps.stop(sweep.sweep_id, "a")
    stopped = sweeps.get(sweep.sweep_id)
    assert stopped is not None
    assert (stopped.state, stopped.done, stopped.left_s) == ("stopped", 1, 0.0)
    assert [point.state for point in stopped.points] == ["finished", "waiting", "waiting"]
    # Begun again before the old thread has looked: that one must not end the new one's run.
    sweeps.start(plan(values=(1, 2, 4)), viewer="a")
    wait_until(lambda: len(scripted.asked) == 3)
    assert [config.gpus for config in scripted.asked] == [1, 2, 2]
    scripted.end()
    scripted.end()
    assert over(sweeps, sweep).done == 3
    assert len(scripted.asked) == 4


def test_the_last_viewer_stops_a_shared_sweep(scripted: ScriptedRuns, make_sweeps: MakeSweeps) -> None:
    sweeps = make_sweeps(scripted)
    sweep = sweeps.start(plan(), viewer="a")
    assert sweeps.start(plan(), viewer="b").sweep_id == sweep.sweep_id
    sweeps.stop(sweep.sweep_id, "a")
    assert sweeps.of("a") is None
    assert sweeps.of("b") is not None
    sweeps.stop(sweep.sweep_id, "b")
    assert sweeps.get(sweep.sweep_id).state == "stopped"  # type: ignore[union-attr]
    wait_until(lambda: not any(scripted.viewers.values()), what="the run stopped too")


def test_limits_per_viewer_and_in_all(scripted: ScriptedRuns, make_sweeps: MakeSweeps) -> None:
    sweeps = make_sweeps(scripted, at_once=2)
    first = sweeps.start(plan(seed=1), viewer="a")
    with pytest.raises(SweepRefused, match="You have a sweep under way"):
        sweeps.start(plan(seed=2), viewer="a")
    sweeps.start(plan(seed=2), viewer="b")
    with pytest.raises(SweepRefused, match="2 sweeps are under way here already"):
        sweeps.start(plan(seed=3), viewer="c")
    sweeps.stop(first.sweep_id, "a")
    sweeps.start(plan(seed=3), viewer="c")
    assert sum(thread.name == "sweep" for thread in threading.enumerate()) <= 3


def test_a_failed_point_says_why_and_the_others_go_on(scripted: ScriptedRuns, make_sweeps: MakeSweeps) -> None:
    sweeps = make_sweeps(scripted)
    sweep = sweeps.start(plan(values=(1, 2)), viewer="a")
    scripted.end("failed", sentence="Rank 1 ended: no luck", summary=None)
    scripted.end()
    found = over(sweeps, sweep)
    assert [(point.state, point.reason) for point in found.points] == [("failed", "Rank 1 ended: no luck"), ("finished", "")]
    sweeps.start(plan(values=(1, 2)), viewer="a")
    scripted.end()
    assert [point.state for point in over(sweeps, sweep).points] == ["finished", "finished"]


def test_a_fault_of_ours_fails_its_point_and_frees_the_place(
    scripted: ScriptedRuns, make_sweeps: MakeSweeps, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Run:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(scripted, "start", broken)
    sweeps = make_sweeps(scripted)
    found = over(sweeps, sweeps.start(plan(values=(1, 2)), viewer="a"))
    assert [point.state for point in found.points] == ["failed", "failed"]
    assert sweeps.of("a") is None


def test_a_full_queue_is_waited_for_and_then_said(scripted: ScriptedRuns, make_sweeps: MakeSweeps) -> None:
    scripted.full = True
    sweeps = make_sweeps(scripted)
    patient = sweeps.start(plan(values=(1, 2)), viewer="a")
    scripted.full = False
    scripted.end()
    scripted.end()
    assert over(sweeps, patient).done == 2
    scripted.full = True
    hasty = make_sweeps(scripted, queue_patience_s=0.0)
    found = over(hasty, hasty.start(plan(values=(1, 2), seed=1), viewer="a"))
    assert {point.reason for point in found.points} == {"50 runs are waiting already. Please try again in a minute."}


def test_a_dead_launcher_ends_the_sweep_with_its_reason(make_runs: MakeRuns, make_sweeps: MakeSweeps) -> None:
    runs = make_runs(command=("/bin/false",))
    sweeps = make_sweeps(runs)
    found = over(sweeps, sweeps.start(plan(values=(1, 2)), viewer="a"))
    assert [point.state for point in found.points] == ["failed", "failed"]
    assert all(point.reason for point in found.points)


def test_a_visitors_run_starts_before_the_next_point(make_runs: MakeRuns, make_sweeps: MakeSweeps) -> None:
    runs = make_runs(command=PACED)
    sweeps = make_sweeps(runs)
    sweep = sweeps.start(plan("batch", (1, 2, 4, 8), gpus=2, steps=10), viewer="a")
    wait_until(lambda: sweeps.get(sweep.sweep_id).under_way)  # type: ignore[union-attr]
    visitor = runs.start(RunConfig.parse({"scenario": "sharded", "gpus": 2, "steps": 4, "seed": 9}), viewer="v")
    wait_until(lambda: runs.get(visitor.run_id).over, what="the visitor's run")  # type: ignore[union-attr]
    now = sweeps.get(sweep.sweep_id)
    assert now is not None
    assert now.done <= 2


def test_closing_leaves_no_thread_and_a_later_server_goes_on(scripted: ScriptedRuns, make_sweeps: MakeSweeps) -> None:
    sweeps = make_sweeps(scripted)
    sweep = sweeps.start(plan(values=(1, 2)), viewer="a")
    scripted.end()
    wait_until(lambda: len(scripted.asked) == 2)
    sweeps.close()
    assert not any(thread.name == "sweep" for thread in threading.enumerate())
    with pytest.raises(SweepRefused, match="being stopped"):
        sweeps.start(plan(), viewer="b")
    later = make_sweeps(scripted)
    found = later.get(sweep.sweep_id)
    assert found is not None
    assert (found.state, found.done) == ("interrupted", 1)
    later.start(found.plan, viewer="c")
    scripted.end()
    assert over(later, sweep).done == 2


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"plan": 3}', '{"plan": {"base": {"scenario": "sharded"}, "knob": "gpus", "values": [1, 2]}}']
)
def test_a_damaged_or_foreign_file_is_no_sweep(text: str, scripted: ScriptedRuns, make_sweeps: MakeSweeps) -> None:
    folder = scripted.settings.data_dir / "sweeps"
    folder.mkdir()
    (folder / f"{'a' * 24}.json").write_text(text)
    sweeps = make_sweeps(scripted)
    assert sweeps.get("a" * 24) is None
    assert sweeps.get("../../etc/passwd") is None
    assert sweeps.get("") is None
