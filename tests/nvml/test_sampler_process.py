"""The sampler as the process it is: its lines, its end, and that it waits instead of spinning."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.nvml.build import ROOT

Env = Callable[..., dict[str, str]]
COMMAND = (sys.executable, "-m", "scenarios.nvml.sampler")


def run(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], cwd=ROOT, env=env, capture_output=True, text=True, timeout=30)


def events(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def gone(pid: int, limit_s: float = 10.0) -> bool:
    """Whether no process with this id is left but a zombie, in time."""
    until_s = time.monotonic() + limit_s
    while time.monotonic() < until_s:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


def test_it_says_what_it_samples_and_ends_in_order(nvml_env: Env) -> None:
    done = run(nvml_env("gpu * util 50\ngpu 2 capability 80\ngpu 1 lost 0.45"), "--seconds", "0.85")
    assert (done.returncode, done.stderr) == (0, "")
    said = events(done.stdout)
    assert [event["event"] for event in said if event["event"] != "tick"] == ["start", "lost", "end"]
    start = said[0]
    assert (start["source"], start["period_ns"], len(start["devices"])) == ("nvml", 200_000_000, 8)  # type: ignore[arg-type]
    assert start["gaps"] == {"2": {"sm_active": "this card has none (GPM came with Hopper)"}}
    ticks = [event for event in said if event["event"] == "tick"]
    assert [tick["end_ns"] for tick in ticks][:4] == [200_000_000 * (n + 1) for n in range(4)]
    assert {gpu["gpu_util"] for tick in ticks for gpu in tick["gpus"] if gpu is not None} == {50.0}  # type: ignore[attr-defined]
    assert ticks[-1]["gpus"][1] is None  # type: ignore[index]


def test_when_every_gpu_is_lost_it_fails(nvml_env: Env) -> None:
    done = run(nvml_env("gpus 2\ngpu * lost 0.3"))
    assert done.returncode == 1
    assert events(done.stdout)[-1] == {"event": "end", "reason": "every GPU was lost"}


@pytest.mark.parametrize(
    ("script", "visible", "words"),
    [
        ("init 9", None, "installed but not loaded"),
        ("init 4", None, "may not ask"),
        ("gpus 0", None, "the NVIDIA driver reports no GPU"),
        ("gpus 2", "7", "CUDA_VISIBLE_DEVICES=7: there is no GPU 7, only 0 to 1; CUDA reads no further"),
        ("gpus 2", "", "CUDA_VISIBLE_DEVICES is empty: CUDA shows no GPU"),
    ],
)
def test_nothing_to_sample_is_one_line_and_a_reason(nvml_env: Env, script: str, visible: str | None, words: str) -> None:
    done = run({**nvml_env(script), **({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})})
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert words in done.stderr
    assert words in str(events(done.stdout)[-1]["reason"])


def test_it_ends_at_sigterm_with_what_it_knows(nvml_env: Env) -> None:
    with subprocess.Popen([*COMMAND], cwd=ROOT, env=nvml_env("gpus 1"), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline(), process.stdout.readline()]
        process.send_signal(signal.SIGTERM)
        lines += process.stdout.readlines()
        assert process.wait(10) == 0
    assert [json.loads(line)["event"] for line in lines][:2] == ["start", "tick"]
    assert json.loads(lines[-1]) == {"event": "end", "reason": ""}


def test_it_ends_when_nobody_reads(nvml_env: Env) -> None:
    with subprocess.Popen(
        [*COMMAND], cwd=ROOT, env=nvml_env("gpus 1"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(10) == 0
        assert process.stderr.read() == ""


def test_it_ends_with_its_parent(nvml_env: Env) -> None:
    """The parent is killed, so it can tell nobody; the pipe stays open, so that it is not what ends the sampler."""
    parent = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen({list(COMMAND)!r})\n"
        "print(child.pid, file=sys.stderr, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent], cwd=ROOT, env=nvml_env("gpus 1"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        pid = int(process.stderr.readline())
        process.stdout.readline()  # it samples
        assert not gone(pid, 0.05)
        process.kill()
        assert gone(pid)


def test_it_waits_between_two_looks(nvml_env: Env) -> None:
    """Far below a core: a loop that spins would take all of it. How cheap it really is, the benchmark measures."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    once = run(nvml_env(), "--seconds", "0.2")
    middle = resource.getrusage(resource.RUSAGE_CHILDREN)
    longer = run(nvml_env(), "--seconds", "2.2")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert once.returncode == longer.returncode == 0

    def cpu_s(late: resource.struct_rusage, early: resource.struct_rusage) -> float:
        return late.ru_utime + late.ru_stime - early.ru_utime - early.ru_stime

    assert cpu_s(after, middle) - cpu_s(middle, before) < 0.5
