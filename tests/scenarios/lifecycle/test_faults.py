"""What breaks, for real: killed ranks, supervisors, launchers and servers, a full disk. Real training runs, real signals."""

from __future__ import annotations

import contextlib
import json
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from scenarios.analysis.trace import chrome_trace
from scenarios.config import RunConfig
from scenarios.launcher_client import COMMAND
from scenarios.record import end_of, read_events, samples_csv, samples_of
from scenarios.runs import Run, Runs
from tests.scenarios.lifecycle.conftest import MakeRuns, alive, ended, paced, processes_below, wait_until

RANKS = 8
LIMIT_S = 5.0
"""Everything else of a broken run has ended by then."""


def long_run(seed: int = 0) -> RunConfig:
    return RunConfig.parse({"scenario": "sharded", "epochs": 20, "gpus": RANKS, "seed": seed})


def short_run(seed: int = 0) -> RunConfig:
    return RunConfig.parse({"scenario": "sharded", "gpus": 2, "steps": 6, "seed": seed})


def in_full_swing(runs: Runs, config: RunConfig) -> tuple[Run, list[psutil.Process]]:
    """A real run that has shown its first samples, and its processes: the supervisor, then the ranks in order."""
    run = runs.start(config, viewer="a")
    wait_until(lambda: samples_of(run.run_dir), 60, "first sample")
    assert runs.launcher_pid is not None
    processes = sorted(processes_below(runs.launcher_pid), key=lambda process: process.pid)
    assert len(processes) == 1 + RANKS
    return run, processes


def all_gone(processes: list[psutil.Process]) -> None:
    wait_until(lambda: not alive(processes), LIMIT_S, "every process of the run has ended")


def end_data(run: Run) -> dict[str, Any]:
    end = end_of(run.run_dir)
    assert end is not None
    return end


@pytest.fixture(scope="module")
def real_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    from scenarios.settings import Settings

    runs = Runs(Settings(data_dir=tmp_path_factory.mktemp("faults"), live_runs=1))
    yield runs
    runs.close()


def test_a_killed_rank_is_named_and_takes_the_run_with_it(real_runs: Runs) -> None:
    run, processes = in_full_swing(real_runs, long_run())
    killed = 3
    processes[1 + killed].kill()
    over = ended(real_runs, run, LIMIT_S)
    all_gone(processes)
    end = end_data(over)
    assert (over.state, end["rank"], end["expected"]) == ("failed", killed, False)
    assert end["sentence"].startswith("Rank 3 was killed by signal 9 (SIGKILL). Something outside ended the process: ")
    assert end["sentence"].endswith(end["meaning"])
    assert real_runs.recording(long_run()) is None


def test_a_killed_supervisor_leaves_no_rank_and_a_readable_record(real_runs: Runs) -> None:
    run, processes = in_full_swing(real_runs, long_run(1))
    processes[0].kill()
    over = ended(real_runs, run, LIMIT_S)
    all_gone(processes)
    assert over.state == "failed"
    assert end_data(over)["sentence"].startswith("The run's supervisor was killed by signal 9 (SIGKILL) at ")
    ids = [event["id"] for event in read_events(run.run_dir)]
    assert ids == list(range(1, len(ids) + 1))


def test_a_stopped_run_ends_in_good_order(real_runs: Runs) -> None:
    run, processes = in_full_swing(real_runs, long_run(2))
    real_runs.stop(run.run_id, "a")
    assert ended(real_runs, run, LIMIT_S).state == "stopped"
    all_gone(processes)
    assert end_data(run)["sentence"] == "Stopped before the end."


def test_a_killed_launcher_is_replaced_and_the_line_goes_on(real_runs: Runs) -> None:
    run, processes = in_full_swing(real_runs, long_run(3))
    waiting = real_runs.start(short_run(), viewer="b")
    assert waiting.state == "queued"
    assert real_runs.launcher_pid is not None
    launcher = psutil.Process(real_runs.launcher_pid)
    launcher.kill()
    over = ended(real_runs, run, LIMIT_S)
    all_gone(processes)
    assert over.state == "failed"
    assert end_data(over)["sentence"].startswith("The launcher of the runs was killed by signal 9 (SIGKILL). The run broke off at ")
    assert ended(real_runs, waiting, 30).state == "finished"
    assert real_runs.launcher_pid != launcher.pid


@pytest.mark.slow
def test_a_killed_server_leaves_no_process_and_an_interrupted_record(make_runs: MakeRuns, tmp_path: Path) -> None:
    script = str(Path(__file__).with_name("crashing_server.py"))
    with subprocess.Popen([sys.executable, script, str(tmp_path / "data")], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        run_id = json.loads(server.stdout.readline())["run_id"]
        processes = processes_below(server.pid)
        assert len(processes) == 2 + RANKS
        server.send_signal(signal.SIGKILL)
    all_gone(processes)
    runs = make_runs()
    run = runs.get(run_id)
    assert run is not None
    assert run.state == "interrupted"
    assert end_data(run)["sentence"].startswith("The server restarted at ")
    assert samples_of(run.run_dir)
    assert chrome_trace(run.run_dir)["traceEvents"]
    assert samples_csv(run.run_dir).startswith("source,time_s")
    assert runs.recording(long_run()) is None


@pytest.mark.slow
def test_a_disk_that_fills_during_a_run_is_named_and_costs_nothing_else(make_runs: MakeRuns) -> None:
    """Files of the launcher's side may grow to 40 KiB: what a full disk does to the supervisor, without filling one."""
    runs = make_runs(command=("sh", "-c", 'ulimit -f 80 && exec "$@"', "sh", *COMMAND))
    kept = ended(runs, runs.start(paced(4), viewer="a"), 60)
    assert kept.state == "finished"
    run = ended(runs, runs.start(long_run(), viewer="a", pace="fast"), 60)
    assert run.state == "failed"
    assert end_data(run)["sentence"].startswith("The disk is full: the run is recorded up to ")
    assert read_events(run.run_dir)[0]["event"] in ("head", "state")
    assert end_data(kept)["outcome"] == "finished"


@contextlib.contextmanager
def no_space() -> Iterator[None]:
    """This process cannot write a byte to a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_at_the_start_is_said_and_forgotten_when_there_is_room(make_runs: MakeRuns) -> None:
    runs = make_runs()
    with no_space():
        refused = runs.start(paced(4), viewer="a")
    assert refused.state == "failed"
    assert refused.unwritten_end is not None
    assert refused.unwritten_end["sentence"] == "The disk is full: the run could not be recorded. Free some space and run it again."
    assert not refused.run_dir.exists()
    assert ended(runs, runs.start(paced(4), viewer="a")).state == "finished"


def test_an_end_that_the_disk_refused_is_written_later(make_runs: MakeRuns) -> None:
    runs = make_runs()
    run = runs.start(paced(500), viewer="a")
    wait_until(lambda: samples_of(run.run_dir))
    assert runs.launcher_pid is not None
    supervisor = processes_below(runs.launcher_pid)[0]
    with no_space():
        supervisor.kill()
        over = ended(runs, run)
    assert over.state == "failed"
    assert over.unwritten_end is not None
    runs._index.retry_unwritten()
    assert end_data(run)["outcome"] == "failed"


@pytest.mark.slow
def test_a_launcher_that_cannot_start_is_given_up_with_its_reason(make_runs: MakeRuns) -> None:
    runs = make_runs(command=(sys.executable, "-c", "raise SystemExit('no torch here')"))
    run = ended(runs, runs.start(paced(4), viewer="a"))
    assert run.state == "failed"
    assert end_data(run)["sentence"] == "The launcher of the runs exited with status 1. no torch here"
    assert runs.health()["status"] == "degraded"


def test_a_launcher_that_hangs_is_replaced(make_runs: MakeRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scenarios.runs.LIMIT_GRACE_S", 0.2)
    monkeypatch.setattr("scenarios.runs.KILL_GRACE_S", 0.2)
    runs = make_runs(run_limit_s=0.5)
    run = runs.start(paced(1000), viewer="a")
    wait_until(lambda: samples_of(run.run_dir))
    assert runs.launcher_pid is not None
    hanging = psutil.Process(runs.launcher_pid)
    hanging.suspend()
    over = ended(runs, run, 5)
    assert over.state == "timeout"
    wait_until(lambda: runs.health()["launcher"] == "ready" and runs.launcher_pid != hanging.pid)
    time.sleep(0.05)
    assert ended(runs, runs.start(paced(4), viewer="a")).state == "finished"
