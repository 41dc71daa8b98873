"""Two nodes with a network of their own each: two namespaces, joined by one cable."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from scenarios.cluster.importing import import_folder
from scenarios.record import end_of
from tests.scenarios.cluster.collecting import free_port

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 150
ADDRESSES = ("10.77.0.1", "10.77.0.2")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True, timeout=20)


@dataclass(frozen=True)
class Node:
    """Where an agent runs: what its command begins with, its address and its network interface."""

    prefix: tuple[str, ...]
    address: str
    interface: str


@pytest.fixture
def nodes() -> Iterator[tuple[Node, Node]]:
    """Two namespaces that reach each other and nothing else; where this user may not make them, two ports of this machine have to do."""
    tag = str(os.getpid() % 100_000)
    names, ends = (f"shardlab-a{tag}", f"shardlab-b{tag}"), (f"sla{tag}", f"slb{tag}")
    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        for name, end, address in zip(names, ends, ADDRESSES, strict=True):
            ip("link", "set", end, "netns", name)
            ip("-n", name, "addr", "add", f"{address}/24", "dev", end)
            ip("-n", name, "link", "set", end, "up")
            ip("-n", name, "link", "set", "lo", "up")
        first, second = (
            Node(("ip", "netns", "exec", name), address, end) for name, end, address in zip(names, ends, ADDRESSES, strict=True)
        )
        yield first, second
    except (OSError, subprocess.SubprocessError):
        yield Node((), "127.0.0.1", "lo"), Node((), "127.0.0.1", "lo")
    finally:
        remove(names)


def remove(names: tuple[str, str]) -> None:
    for name in names:  # its end of the cable goes with it
        subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=20)


def test_two_nodes_meet_over_a_network_and_give_the_digest_of_one(
    nodes: tuple[Node, Node], tmp_path: Path, run_fresh: Callable[..., Path]
) -> None:
    agents = []
    endpoint = f"{nodes[0].address}:{free_port()}"
    for number, node in enumerate(nodes):
        torchrun = ["--nnodes", "2", "--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint]
        here = ["--rdzv-id", "two-nodes", "--rdzv-conf", f"is_host={'false' if number else 'true'}", "--local-addr", node.address]
        script = ["-m", "scenarios.catalog.sharded", "--steps", "6", "--record", str(tmp_path / "parts")]
        env = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": node.interface}
        command = [*node.prefix, sys.executable, "-m", "torch.distributed.run", *torchrun, *here, *script]
        with (tmp_path / f"node-{number}.log").open("w") as log:
            agents.append(subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True))
    try:
        assert [agent.wait(LIMIT_S) for agent in agents] == [0, 0], (tmp_path / "node-0.log").read_text()[-3000:]
    finally:
        for agent in agents:
            if agent.poll() is None:
                os.killpg(agent.pid, 9)
    _, end = import_folder(tmp_path / "parts", tmp_path / "data")
    assert end["outcome"] == "finished"
    assert [node["ranks"] for node in end["nodes"]] == [[0, 1], [2, 3]]
    alone = end_of(run_fresh(scenario="sharded", gpus=4, steps=6))
    assert alone is not None
    assert end["summary"]["digest"] == alone["summary"]["digest"]
