"""The real thing: two torchrun agents of four ranks each, meeting by c10d on this machine, keep and send what they report."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from scenarios.cluster.importing import import_folder
from scenarios.cluster.parts import part_path
from scenarios.record import end_of, read_events
from tests.scenarios.cluster.collecting import TOKEN, App, collecting_app, free_port
from tests.scenarios.lifecycle.conftest import alive, processes_below, wait_until

ROOT = Path(__file__).resolve().parents[3]
RUN = "two-nodes"
LIMIT_S = 100

StartNode = Callable[..., subprocess.Popen[str]]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with collecting_app(tmp_path / "data", gather_s=8.0) as app:
        yield app


@pytest.fixture
def start_node(tmp_path: Path, app: App) -> Iterator[StartNode]:
    """Starts one agent: `start_node(0, "--steps", "12")`."""
    port = free_port()
    agents: list[subprocess.Popen[str]] = []

    def start(node: int, *options: str) -> subprocess.Popen[str]:
        torchrun = ["--nnodes", "2", "--nproc-per-node", "4", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}"]
        here = ["--rdzv-id", RUN, "--rdzv-conf", f"is_host={'false' if node else 'true'}", "-m", "scenarios.catalog.sharded"]
        where = ["--record", str(tmp_path / "parts"), "--collect", app.address]
        env = {**os.environ, "SHARDLAB_COLLECT_TOKEN": TOKEN, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        log = (tmp_path / f"node-{node}.log").open("w")
        command = [sys.executable, "-m", "torch.distributed.run", *torchrun, *here, *options, *where]
        agents.append(subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=subprocess.STDOUT, text=True, start_new_session=True))
        return agents[-1]

    yield start
    for agent in agents:
        for process in (*processes_below(agent.pid), psutil.Process(agent.pid)) if agent.poll() is None else ():
            process.kill()
        agent.wait(10)


def test_two_nodes_give_the_digest_of_one(start_node: StartNode, app: App, tmp_path: Path, run_fresh: Callable[..., Path]) -> None:
    agents = [start_node(node, "--steps", "12") for node in (0, 1)]
    alone = end_of(run_fresh(scenario="sharded", steps=12))
    assert [agent.wait(LIMIT_S) for agent in agents] == [0, 0], (tmp_path / "node-0.log").read_text()[-3000:]
    assert alone is not None
    _, imported = import_folder(tmp_path / "parts", tmp_path / "imported")
    collected = wait_until(lambda: end_of(app.runs.folder.path(RUN)), 20, "the collected end")
    assert alone["summary"]["digest"] == imported["summary"]["digest"] == collected["summary"]["digest"]
    assert alone["summary"] == imported["summary"] == collected["summary"]
    assert [node["node"] for node in collected["nodes"]] == [0, 1]
    assert sorted(rank for node in collected["nodes"] for rank in node["ranks"]) == list(range(8))
    assert collected["nodes"][0]["host"] == collected["nodes"][1]["host"] != ""


def test_killing_one_nodes_agent_ends_the_run_on_all_nodes(start_node: StartNode, app: App, tmp_path: Path) -> None:
    agents = [start_node(node, "--steps", "20000") for node in (0, 1)]
    run_dir = app.runs.folder.path(RUN)
    wait_until(lambda: any(event["event"] == "tick" for event in read_events(run_dir)), LIMIT_S, "the run under way")
    processes = [process for agent in agents for process in processes_below(agent.pid)]
    assert len(processes) >= 16, "a rank and its reporter for each GPU"
    killed = agents[1]
    ranks = _ranks_of(killed.pid)
    os.kill(killed.pid, signal.SIGKILL)
    assert agents[0].wait(60) != 0
    wait_until(lambda: alive(processes) == [], 30, "no process left on either node")
    for end in (wait_until(lambda: end_of(run_dir), 30, "the end"), import_folder(tmp_path / "parts", tmp_path / "imported")[1]):
        assert end["outcome"] == "failed"
        assert end["node"]["ranks"] == ranks, end["error"]
        assert end["rank"] in ranks
        node = end["node"]
        assert end["sentence"].startswith(
            f"Node {node['node']} ({node['host']}, ranks {ranks[0]} to {ranks[-1]}) went away: its torchrun was killed."
        )
    assert part_path(tmp_path / "parts", 0).exists()


def _ranks_of(agent_pid: int) -> list[int]:
    """Which ranks an agent runs: who is node 0 is settled when the agents meet."""
    return sorted({int(process.environ()["RANK"]) for process in processes_below(agent_pid) if "RANK" in process.environ()})
