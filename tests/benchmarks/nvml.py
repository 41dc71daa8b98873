"""NVML: CPU cost of sampling eight GPUs ten times a second, against opening NVML for every query, on the same stub of the library.

The stub answers at once, so this is the cost of asking, not of any driver. `per_query` is the way of tools that call `nvidia-smi` or
open NVML for each look: it reads the same counters of the moment, and so misses what happens between two looks.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _common import ROOT, arguments, report

from tests.nvml.build import library_folder

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

PER_QUERY = """
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

SAMPLER = (sys.executable, "-m", "scenarios.nvml.sampler")
ASKER = (sys.executable, "-c", PER_QUERY)


def cpu_s(pid: int) -> float:
    """Time on a processor so far, in nanoseconds' resolution."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def core_pct(command: tuple[str, ...], env: dict[str, str], seconds: int) -> float:
    """Percent of a core that the process takes once it is under way."""
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL) as process:
        try:
            time.sleep(WARM_UP_S)
            from_s, before = time.monotonic(), cpu_s(process.pid)
            time.sleep(seconds)
            return 100 * (cpu_s(process.pid) - before) / (time.monotonic() - from_s)
        finally:
            process.kill()


def main() -> None:
    options = arguments(__doc__, seconds=10)
    with tempfile.TemporaryDirectory() as folder:
        figures = {}
        for name, command, more in (
            ("sampler", SAMPLER, ""),
            ("sampler_without_gpm", SAMPLER, "gpu * capability 80\n"),
            ("per_query", ASKER, ""),
        ):
            script = Path(folder) / f"{name}.script"
            script.write_text(BUSY + more)
            env = {**os.environ, "LD_LIBRARY_PATH": str(library_folder()), "NVML_STUB_SCRIPT": str(script)}
            env.pop("CUDA_VISIBLE_DEVICES", None)
            figures[f"{name}_core_pct"] = round(core_pct(command, env, options.seconds), 2)
    report("nvml", {"gpus": GPUS, "hz": HZ, **figures, "target_core_pct": TARGET_PCT}, as_json=options.json)


if __name__ == "__main__":
    main()
