"""NVML: CPU cost of sampling eight GPUs ten times a second, against other ways of asking, on the same stub of the library.

The stub answers at once, so this is the cost of asking, not of any driver; opening a real one costs more than anything here.
`open_per_query` opens NVML for each look, in one Python process; `process_per_query` starts a process for each look, as scripts around
`nvidia-smi` do: a small C program here, so the least that can cost. Both read the moment and miss what happens between two looks.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _common import ROOT, arguments, report

from tests.nvml.build import library_folder, query_program

HZ = 10
GPUS = 8
WARM_UP_S = 2.0
TARGET_PCT = 1.0

BUSY = """
gpu * sample_us 20000
gpu * util 93
gpu * used_mib 60000
gpu * power_mw 640000
gpu * mhz 1755
gpu * reasons 0x4
gpu * gpm_sm 91
gpu * processes 4711:59000
"""

OPEN_PER_QUERY = """
import json, time
import pynvml as n

def look():
    n.nvmlInit()
    rows = []
    for index in range(n.nvmlDeviceGetCount()):
        gpu = n.nvmlDeviceGetHandleByIndex(index)
        rows.append([
            n.nvmlDeviceGetUUID(gpu), n.nvmlDeviceGetName(gpu),
            n.nvmlDeviceGetUtilizationRates(gpu).gpu, n.nvmlDeviceGetMemoryInfo(gpu).used,
            n.nvmlDeviceGetPowerUsage(gpu), n.nvmlDeviceGetClockInfo(gpu, n.NVML_CLOCK_SM), n.nvmlDeviceGetCurrentClocksEventReasons(gpu),
            n.nvmlDeviceGetCurrPcieLinkGeneration(gpu), n.nvmlDeviceGetCurrPcieLinkWidth(gpu),
            [[each.pid, each.usedGpuMemory] for each in n.nvmlDeviceGetComputeRunningProcesses_v3(gpu)],
        ])
    n.nvmlShutdown()
    print(json.dumps(rows), flush=True)

start = time.monotonic()
number = 0
while True:
    number += 1
    time.sleep(max(0.0, start + number / 10 - time.monotonic()))
    look()
"""

PROCESS_PER_QUERY = """
import os, sys, time
start = time.monotonic()
number = 0
while True:
    number += 1
    time.sleep(max(0.0, start + number / 10 - time.monotonic()))
    os.waitpid(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)
"""

SAMPLER = (sys.executable, "-m", "scenarios.nvml.sampler")
OPENER = (sys.executable, "-c", OPEN_PER_QUERY)
STARTER = (sys.executable, "-c", PROCESS_PER_QUERY, str(query_program()))


def cpu_s(pid: int) -> float:
    """Time on a processor so far, of this process alone."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def children_cpu_s(pid: int) -> float:
    """Time on a processor so far of the processes that it has started and that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def core_pct(command: tuple[str, ...], env: dict[str, str], seconds: int, clock: Callable[[int], float] = cpu_s) -> float:
    """Percent of a core that the process takes once it is under way."""
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL) as process:
        try:
            time.sleep(WARM_UP_S)
            from_s, before = time.monotonic(), clock(process.pid)
            time.sleep(seconds)
            return 100 * (clock(process.pid) - before) / (time.monotonic() - from_s)
        finally:
            process.kill()


def main() -> None:
    options = arguments(__doc__, seconds=10)
    with tempfile.TemporaryDirectory() as folder:
        figures = {}
        for name, command, more, clock in (
            ("sampler", SAMPLER, "", cpu_s),
            ("sampler_without_gpm", SAMPLER, "gpu * capability 80\n", cpu_s),
            ("open_per_query", OPENER, "", cpu_s),
            ("process_per_query", STARTER, "", children_cpu_s),
        ):
            script = Path(folder) / f"{name}.script"
            script.write_text(BUSY + more)
            env = {**os.environ, "LD_LIBRARY_PATH": str(library_folder()), "NVML_STUB_SCRIPT": str(script)}
            env.pop("CUDA_VISIBLE_DEVICES", None)
            figures[f"{name}_core_pct"] = round(core_pct(command, env, options.seconds, clock), 2)
    report("nvml", {"gpus": GPUS, "hz": HZ, **figures, "target_core_pct": TARGET_PCT}, as_json=options.json)


if __name__ == "__main__":
    main()
