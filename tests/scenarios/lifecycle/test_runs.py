"""Single flight, queue, stopping, background work and recordings, with real processes that only keep time."""

from __future__ import annotations

import json
import shutil
import threading
import time
from pathlib import Path

import pytest

from scenarios.analysis.trace import trace_lines
from scenarios.record import append_event, csv_lines, end_of, read_events, samples_of
from scenarios.run_folder import RunFolder
from scenarios.run_index import LOOK_EVERY_S, RunIndex
from scenarios.runs import QueueFull, Run, Runs
from tests.scenarios.lifecycle.conftest import MakeRuns, ended, paced, wait_until
from tests.scenarios.lifecycle.paced_launcher import CRASHING, DEAF, WRONG


def state_of(runs: Runs, run: Run) -> str:
    now = runs.get(run.run_id)
    return now.state if now else "unknown"


def end_sentence(run: Run) -> str:
    end = end_of(run.run_dir)
    assert end is not None
    return str(end["sentence"])


def test_equal_configs_in_flight_share_one_run_and_a_later_one_is_fresh(make_runs: MakeRuns) -> None:
    runs = make_runs()
    first = runs.start(paced(20), viewer="a")
    assert runs.start(paced(20), viewer="b").run_id == first.run_id
    assert runs.start(paced(20, seed=1), viewer="c").run_id != first.run_id
    over = ended(runs, first)
    assert over.state == "finished"
    fresh = runs.start(paced(20), viewer="b")
    assert fresh.run_id != first.run_id
    assert fresh.recording in (first.run_id, None)


def test_the_last_viewer_ends_the_run(make_runs: MakeRuns) -> None:
    runs = make_runs()
    run = runs.start(paced(1000), viewer="a")
    runs.start(paced(1000), viewer="b")
    wait_until(lambda: state_of(runs, run) == "running")
    runs.stop(run.run_id, "a")
    runs.stop(run.run_id, "a")
    runs.stop(run.run_id, "a stranger")
    assert state_of(runs, run) == "running"
    runs.stop(run.run_id, "b")
    assert ended(runs, run, 3).state == "stopped"
    assert runs.recording(paced(1000)) is None


def test_a_waiting_run_sees_its_place_and_can_be_stopped(make_runs: MakeRuns) -> None:
    runs = make_runs()
    runs.start(paced(1000), viewer="a")
    second, third = (runs.start(paced(1000, seed=seed), viewer="b") for seed in (1, 2))
    assert (second.state, second.place, third.place) == ("queued", 1, 2)
    assert second.wait_s is not None
    assert third.wait_s is not None
    assert 0 < second.wait_s < third.wait_s
    runs.stop(second.run_id, "b")
    assert state_of(runs, second) == "stopped"
    assert end_sentence(second) == "Stopped before it began."
    now = runs.get(third.run_id)
    assert now is not None
    assert now.place == 1


def test_two_hundred_requests_at_once(make_runs: MakeRuns) -> None:
    """Half of them equal: one run. The others fill the queue to its limit, and the rest is refused with a message."""
    runs = make_runs(queue_limit=20)
    runs.start(paced(1000, seed=7), viewer="first")
    ids: list[str] = []
    refused: list[str] = []
    gate = threading.Barrier(200)

    def request(number: int) -> None:
        config = paced(1000, seed=0 if number % 2 else number + 100)
        gate.wait()
        try:
            ids.append(runs.start(config, viewer=f"v{number}").run_id)
        except QueueFull as error:
            refused.append(str(error))

    threads = [threading.Thread(target=request, args=(number,)) for number in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) + len(refused) == 200
    assert len(set(ids)) == 20, "one run for each waiting place"
    assert set(refused) == {"20 runs are waiting already. Please try again in a minute."}
    assert runs.health()["queued"] == 20
    shared = [run_id for run_id in set(ids) if ids.count(run_id) > 1]
    assert len(shared) <= 1


def test_measurements_wait_for_visitors_and_are_taken_up_again(make_runs: MakeRuns) -> None:
    runs = make_runs()
    config = paced(60)
    runs.measure_in_background([config, config])
    measured = wait_until(lambda: [run for run in runs_below(runs) if state_of(runs, run) == "running"])[0]
    visitor = runs.start(paced(5, seed=3), viewer="a")
    assert visitor.place in (1, None)
    assert ended(runs, measured, 3).state == "stopped"
    assert "gave way" in end_sentence(measured)
    assert ended(runs, visitor, 3).state == "finished"
    recording = wait_until(lambda: runs.recording(config))
    assert recording.pace == "fast"
    runs.measure_in_background([config])
    assert runs.health()["live"] == 0, "measured once per folder"


def runs_below(runs: Runs) -> list[Run]:
    found = [runs.get(path.name) for path in (runs.settings.data_dir / "runs").iterdir()]
    return [run for run in found if run is not None]


def test_a_visitor_is_given_a_live_run_in_place_of_a_measurement_of_the_same(make_runs: MakeRuns) -> None:
    runs = make_runs()
    runs.measure_in_background([paced(100)])
    measured = wait_until(lambda: [run for run in runs_below(runs) if state_of(runs, run) == "running"])[0]
    live = runs.start(paced(100), viewer="a")
    assert live.run_id != measured.run_id
    assert ended(runs, live).state == "finished"
    assert live.pace == "live"


def test_only_good_runs_are_offered_as_recordings(make_runs: MakeRuns) -> None:
    runs = make_runs()
    for seed, outcome in ((WRONG, "timeout"), (CRASHING, "failed")):
        assert ended(runs, runs.start(paced(5, seed=seed), viewer="a")).state == outcome
        assert runs.recording(paced(5, seed=seed)) is None
    good = ended(runs, runs.start(paced(5), viewer="a"))
    recording = runs.recording(paced(5))
    assert recording is not None
    assert recording.run_id == good.run_id
    blocked = runs.start(paced(500, seed=5), viewer="a")
    waiting = runs.start(paced(5), viewer="b")
    assert (waiting.state, waiting.recording) == ("queued", good.run_id)
    assert waiting.recorded_s == pytest.approx(good.created_s)
    runs.stop(blocked.run_id, "a")


def test_a_crash_is_told_with_its_last_line(make_runs: MakeRuns) -> None:
    runs = make_runs()
    run = ended(runs, runs.start(paced(5, seed=CRASHING), viewer="a"))
    end = end_of(run.run_dir)
    assert end is not None
    assert end["sentence"] == "The run's supervisor exited with status 1: RuntimeError: the recorder lost its pen"
    assert "Traceback" in end["error"]
    assert [event["id"] for event in read_events(run.run_dir)] == list(range(1, 10))


def test_a_supervisor_that_does_not_end_is_killed(make_runs: MakeRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scenarios.runs.LIMIT_GRACE_S", 0.3)
    monkeypatch.setattr("scenarios.runs.STOP_GRACE_S", 0.3)
    runs = make_runs(run_limit_s=0.5)
    overrun = runs.start(paced(10, seed=DEAF), viewer="a")
    over = ended(runs, overrun, 5)
    assert over.state == "timeout"
    assert end_sentence(over).startswith("The run took longer than 0 s")
    stopped = runs.start(paced(11, seed=DEAF), viewer="a")
    wait_until(lambda: state_of(runs, stopped) == "running")
    runs.stop(stopped.run_id, "a")
    assert ended(runs, stopped, 5).state == "stopped"


def test_old_records_go_except_the_newest_good_default(make_runs: MakeRuns) -> None:
    runs = make_runs(runs_kept=10)
    default = ended(runs, runs.start(paced(10).model_copy(update={"steps": None, "gpus": 8}), viewer="a"))
    others = [ended(runs, runs.start(paced(4, seed=seed), viewer="a")) for seed in range(14)]
    assert len(list((runs.settings.data_dir / "runs").iterdir())) == 10
    assert default.run_dir.exists()
    assert others[-1].run_dir.exists()
    assert not others[0].run_dir.exists()
    assert runs.get(others[0].run_id) is None


@pytest.mark.parametrize("run_id", ["", "../../etc/passwd", "a/b", "..", "x" * 100, "abc\x00defgh", "nosuchrun123"])
def test_odd_ids_are_unknown(make_runs: MakeRuns, run_id: str) -> None:
    assert make_runs().get(run_id) is None


def test_damaged_records_are_survived(make_runs: MakeRuns, tmp_path: Path) -> None:
    """A half-written line, no config, a config that is no config, no events: none stops the server or costs another record."""
    runs = make_runs()
    good = ended(runs, runs.start(paced(4), viewer="a"))
    cut = ended(runs, runs.start(paced(4, seed=1), viewer="a"))
    headless, broken, empty = (ended(runs, runs.start(paced(4, seed=seed), viewer="a")) for seed in (2, 3, 4))
    runs.close()
    events = cut.run_dir / "events.jsonl"
    events.write_bytes(events.read_bytes()[:-150])
    (headless.run_dir / "config.json").unlink()
    (broken.run_dir / "config.json").write_text('{"run_id": "x", "config": {"scenario": "sha')
    (empty.run_dir / "events.jsonl").write_bytes(b"\x00\xff not json\n")
    (RunFolder(tmp_path / "data").root / "a stray file").write_text("?")

    again = make_runs()
    assert again.get(good.run_id) is not None
    assert again.get(headless.run_id) is None
    assert again.get(broken.run_id) is None
    assert state_of(again, cut) == "interrupted"
    assert end_sentence(cut) == "The server restarted at 0.6 s; shown up to there."
    ids = [event["id"] for event in read_events(cut.run_dir)]
    assert ids == list(range(1, len(ids) + 1))
    assert state_of(again, empty) == "interrupted"
    assert again.recording(paced(4)) is not None


@pytest.mark.parametrize(
    "line",
    ['{"id":null,"event":"tick","data":{}}', '{"id":"4","event":"tick","data":{}}', '{"id":4}', '{"id":4,"event":"tick"}',
     '{"id":4,"event":"tick","data":{}}', '{"id":4,"event":"tick","data":{"t_ms":null,"util":[1]}}', '{"id":4,"event":"end","data":null}',
     '{"id":4,"event":"end"}', "[" * 100_000],
    ids=lambda line: line[:50],
)  # fmt: skip
def test_a_line_of_the_wrong_shape_stops_no_server_and_costs_only_itself(make_runs: MakeRuns, line: str) -> None:
    """JSON that is no event, in the middle of a record and as its last line, where the next server looks for the end."""
    runs = make_runs()
    cut = ended(runs, runs.start(paced(4), viewer="a"))
    runs.close()
    events = cut.run_dir / "events.jsonl"
    head, *others = events.read_bytes().splitlines(keepends=True)
    wrong = line.encode() + b"\n"
    events.write_bytes(b"".join([head, wrong, *others[:-1], wrong]))
    (cut.run_dir / "spans.jsonl").write_text('[0,"host","load",0,null,null,0,0]\n' + line + "\n")
    samples = len(samples_of(cut.run_dir))

    again = make_runs()
    assert state_of(again, cut) == "interrupted"
    assert end_sentence(cut) == "The server restarted at 0.8 s; shown up to there."
    assert len(list(csv_lines(cut.run_dir))) == 1 + samples > 8
    assert json.loads("".join(trace_lines(cut.run_dir)))["traceEvents"] == []


def test_a_data_folder_that_is_a_file_fails_each_run_and_no_server(make_runs: MakeRuns, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("?")
    runs = make_runs()
    run = runs.start(paced(4), viewer="a")
    assert run.state == "failed"
    assert run.unwritten_end is not None
    assert run.unwritten_end["sentence"] == "The run could not be recorded: Not a directory."
    assert state_of(runs, run) == "failed"
    assert (runs.health()["status"], runs.health()["records"]) == ("degraded", "not writable")


def test_a_second_server_leaves_the_runs_of_a_living_one_alone(make_runs: MakeRuns) -> None:
    runs = make_runs()
    run = runs.start(paced(30), viewer="a")
    other = make_runs()
    assert state_of(other, run) in ("starting", "running")
    assert ended(runs, run).state == "finished"
    assert state_of(other, run) == "finished"


def test_what_one_server_has_recorded_the_other_can_show(make_runs: MakeRuns) -> None:
    runs, other = make_runs(), make_runs()
    run = ended(runs, runs.start(paced(4), viewer="a"))
    wait_until(lambda: other.recording(paced(4)), what="the other one knows")
    newer = ended(other, other.start(paced(4), viewer="b"))
    wait_until(lambda: recorded(runs, 4) == newer.run_id, what="the newest counts")
    shutil.rmtree(newer.run_dir)
    wait_until(lambda: recorded(runs, 4) == recorded(other, 4) == run.run_id, what="a record that is gone is no recording")


def recorded(runs: Runs, ticks: int) -> str | None:
    found = runs.recording(paced(ticks))
    return None if found is None else found.run_id


def test_two_servers_keep_one_number_of_records_and_the_newest_good_default(make_runs: MakeRuns) -> None:
    runs, other = make_runs(runs_kept=10), make_runs(runs_kept=10)
    default = ended(runs, runs.start(paced(10).model_copy(update={"steps": None, "gpus": 8}), viewer="a"))
    for seed in range(1, 8):
        ended(runs, runs.start(paced(4, seed=seed), viewer="a"))
        ended(other, other.start(paced(4, seed=100 + seed), viewer="a"))
    folder = runs.settings.data_dir / "runs"
    wait_until(lambda: len(list(folder.iterdir())) == 10, what="10 records are left")
    time.sleep(1.5 * LOOK_EVERY_S)
    assert len(list(folder.iterdir())) == 10
    assert default.run_dir.exists()
    kept = {path.name for path in folder.iterdir()}
    for each in (runs, other):
        assert each.recording(default.config) is not None
        known = [each.recording(paced(4, seed=seed)) for seed in (*range(1, 8), *range(101, 108))]
        assert {run.run_id for run in known if run is not None} == kept - {default.run_id}, "nobody offers what is gone"


def test_what_a_dead_server_left_is_ended_by_those_that_live_once(make_runs: MakeRuns, tmp_path: Path) -> None:
    make_runs(), make_runs()
    dead = RunFolder(tmp_path / "data")
    dead.claim()
    entry = dead.new_entry(paced(30), "live")
    dead.create(entry)
    append_event(dead.path(entry.run_id), "tick", {"t_ms": 400})
    time.sleep(2.5 * LOOK_EVERY_S)
    assert end_of(dead.path(entry.run_id)) is None, "its server lives"
    assert dead._lock_file is not None
    dead._lock_file.close()
    wait_until(lambda: end_of(dead.path(entry.run_id)), what="an end")
    time.sleep(1.5 * LOOK_EVERY_S)
    (end,) = [event["data"] for event in read_events(dead.path(entry.run_id)) if event["event"] == "end"]
    assert (end["outcome"], end["sentence"]) == ("interrupted", "The server that computed it went away at 0.4 s; shown up to there.")


def test_one_server_at_a_time_ends_what_was_left(tmp_path: Path) -> None:
    """The other one is through between our look and our writing."""
    folder = RunFolder(tmp_path / "data")
    folder.claim()
    entry = folder.new_entry(paced(30), "live", owner="0123456789abcdef")
    folder.create(entry)
    indexes = [RunIndex(RunFolder(tmp_path / "data"), keep=10, default_keys=()) for _ in range(2)]
    for index in indexes:
        assert index._close_left(entry, "It is gone at {t}.").outcome == "interrupted"
    assert len(read_events(folder.path(entry.run_id))) == 1


def test_a_hidden_run_that_another_server_has_revealed_is_known(make_runs: MakeRuns) -> None:
    runs, other = make_runs(), make_runs()
    run = runs.start(paced(4), viewer="a", hidden=True)
    wait_until(lambda: runs.get(run.run_id, hidden=True).over)  # type: ignore[union-attr]
    time.sleep(1.5 * LOOK_EVERY_S)
    assert other.get(run.run_id) is None
    runs.reveal(run.run_id)
    assert other.get(run.run_id) is not None


def test_closing_marks_what_was_in_flight(make_runs: MakeRuns) -> None:
    runs = make_runs()
    live, waiting = runs.start(paced(1000), viewer="a"), runs.start(paced(1000, seed=1), viewer="a")
    wait_until(lambda: state_of(runs, live) == "running")
    runs.close()
    assert [state_of(runs, run) for run in (live, waiting)] == ["interrupted", "interrupted"]
    assert end_sentence(live).startswith("The server was stopped at")
    assert end_sentence(waiting) == "The server was stopped before this run began."


def test_one_viewer_cannot_fill_the_queue(make_runs: MakeRuns) -> None:
    runs = make_runs()
    mine = [runs.start(paced(1000, seed=seed), viewer="flood") for seed in range(8)]
    with pytest.raises(QueueFull, match="8 runs under way"):
        runs.start(paced(1000, seed=100), viewer="flood")
    assert runs.start(paced(1000, seed=0), viewer="flood").run_id == mine[0].run_id, "joining an equal run is no new one"
    assert runs.start(paced(1000, seed=100), viewer="another").state == "queued"


def test_a_hidden_run_is_nobodys_to_look_up_until_it_is_revealed(make_runs: MakeRuns) -> None:
    runs = make_runs()
    plain = runs.start(paced(20), viewer="a")
    hidden = runs.start(paced(20), viewer="a", hidden=True)
    assert hidden.run_id != plain.run_id, "equal to one in flight, and shared with nobody"
    assert runs.start(paced(20), viewer="b").run_id == plain.run_id
    assert runs.get(hidden.run_id) is None
    asked = wait_until(lambda: (now := runs.get(hidden.run_id, hidden=True)) and now.over and now, 5)
    assert (asked.hidden, asked.recording) == (True, None)
    recording = runs.recording(paced(20))
    assert recording is not None
    assert recording.run_id == plain.run_id
    runs.close()
    again = make_runs()
    assert again.get(hidden.run_id) is None, "after a restart too"
    again.reveal(hidden.run_id)
    again.reveal("nosuchrun123")
    shown = again.get(hidden.run_id)
    assert shown is not None
    assert (shown.hidden, shown.config) == (False, paced(20))
    again.close()
    assert make_runs().get(hidden.run_id) is not None


def test_a_run_in_flight_can_be_revealed(make_runs: MakeRuns) -> None:
    runs = make_runs()
    run = runs.start(paced(50), viewer="a", hidden=True)
    runs.reveal(run.run_id)
    assert runs.get(run.run_id) is not None
    assert ended(runs, run).state == "finished"
    runs.close()
    assert make_runs().get(run.run_id) is not None
