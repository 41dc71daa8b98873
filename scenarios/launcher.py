"""The launcher: a process that has imported torch once and forks a supervisor for each run, so that a click costs no import.

Run as `python -m scenarios.launcher` by the web server or the CLI, which talk to it in JSON lines over its standard input and
output. It has one thread, never touches a GPU, and ends everything it started when its input is closed: that is how runs end with
the server, however that died. Owns processes only; records, queues and viewers are not its business.

In:  {"start": run_id, "run_dir": path, "pace": "live"|"fast"}, {"stop": run_id} (SIGTERM), {"kill": run_id} (SIGKILL to its group)
Out: {"ready": true}, {"started": run_id, "pid": n}, {"ended": run_id, "status": exit status or -signal, "error": text or null}
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy and torch: their thread pools would forbid forking
os.environ["OPENBLAS_NUM_THREADS"] = "1"
# Asked whether there is CUDA, PyTorch starts the driver, and no fork could use a GPU any more; asked this way, it looks at NVML.
os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"

import gc
import importlib
import json
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig
from scenarios.costs.models import MODELS
from scenarios.costs.pricing import step_costs
from scenarios.processes import die_with_parent
from scenarios.run_ends import DISK_FULL_STATUS, is_disk_full
from scenarios.settings import Settings, load_settings

Supervise = Callable[..., int]
"""`supervise(config, run_dir, *, pace, settings) -> exit status` of scenarios/supervisor.py."""

SUPERVISOR_LOG = "supervisor.log"
PRELOADED = ("torch", "torch.distributed", "torch.nn.parallel", "torch._dynamo", "torch.optim", "torch.utils.data", "scenarios.worker")


def main() -> int:
    supervise = preload()
    return Launcher(supervise, load_settings()).serve()


def preload() -> Supervise:
    """Import all that a rank will need. Constructing DDP imports torch._dynamo and sympy: 800 modules, 11 s for eight ranks at once."""
    for name in PRELOADED:
        importlib.import_module(name)
    for scenario in SCENARIOS:
        importlib.import_module(f"scenarios.catalog.{scenario}")
    _fill_caches()
    supervise: Supervise = importlib.import_module("scenarios.supervisor").supervise
    return supervise


def _fill_caches() -> None:
    """What every rank of a default run would work out for itself: its costs, its data, and what torch looks up at the first seed and step.

    No backward pass and no collective: they would start threads.
    """
    import torch

    from scenarios.worker.data import ProxyNetwork, numbered_rows
    from scenarios.worker.exchange import Sketch

    for scenario in SCENARIOS:
        config = RunConfig.parse({"scenario": scenario})
        for seq_len in MODELS[config.model].batch_lengths:
            step_costs(
                model=config.model, gpu=config.gpu, precision=config.precision, batch=config.batch, world=config.gpus, seq_len=seq_len
            )
        numbered_rows(MODELS[config.model].epoch_samples)
    torch.manual_seed(0)
    parameters = list(ProxyNetwork().parameters())
    Sketch(parameters).take()
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    torch.optim.SGD(parameters, lr=0.1, momentum=0.9).step()


def threads() -> int:
    """Threads of this process, those of libraries included (Linux); elsewhere those Python knows."""
    try:
        return len(os.listdir("/proc/self/task"))
    except FileNotFoundError:
        return threading.active_count()


class Launcher:
    """Serves one client until end of input. `serve` may be called once."""

    def __init__(self, supervise: Supervise, settings: Settings) -> None:
        self._supervise = supervise
        self._settings = settings
        self._input_fd = os.dup(0)
        self._output_fd = os.dup(1)
        os.set_inheritable(self._input_fd, False)
        os.set_inheritable(self._output_fd, False)
        self._pid = os.getpid()
        self._runs: dict[str, int] = {}
        self._unread = b""
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)

    def serve(self) -> int:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(2, 1)  # whatever prints here must not end up among the messages
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._wake_write)
        gc.collect()
        gc.freeze()  # the forked ranks share these pages; collecting would copy them
        self._say({"ready": True})
        try:
            while self._wait():
                pass
        finally:
            for pid in self._runs.values():
                _kill_group(pid)
        return 0

    def _wait(self) -> bool:
        """One turn; False at the end of input."""
        readable, _, _ = select.select([self._input_fd, self._wake_read], [], [])
        if self._wake_read in readable:
            os.read(self._wake_read, 4096)
            self._reap()
        if self._input_fd in readable:
            data = os.read(self._input_fd, 65_536)
            if not data:
                return False
            *lines, self._unread = (self._unread + data).split(b"\n")
            for line in lines:
                self._obey(json.loads(line))
        return True

    def _obey(self, message: dict[str, Any]) -> None:
        if "start" in message:
            self._start(message["start"], Path(message["run_dir"]), message["pace"])
            return
        run_id = message.get("stop") or message.get("kill")
        pid = self._runs.get(run_id or "")
        if pid is not None and "stop" in message:
            os.kill(pid, signal.SIGTERM)
        elif pid is not None:
            _kill_group(pid)

    def _start(self, run_id: str, run_dir: Path, pace: str) -> None:
        count = threads()
        if count != 1:
            raise RuntimeError(f"the launcher has {count} threads: forking would copy a locked state")
        try:
            config = RunConfig.parse(json.loads((run_dir / "config.json").read_text())["config"])
            pid = os.fork()
        except (OSError, ValueError, KeyError) as error:
            self._say({"ended": run_id, "status": 1, "error": f"{type(error).__name__}: {error}"})
            return
        if pid == 0:
            self._become_supervisor(config, run_dir, pace)
        self._runs[run_id] = pid
        self._say({"started": run_id, "pid": pid})

    def _become_supervisor(self, config: RunConfig, run_dir: Path, pace: str) -> None:
        """In the forked child: leave the launcher's group, die with it, and never return."""
        status = 1
        try:
            die_with_parent()
            if os.getppid() != self._pid:
                os._exit(1)
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for fd in (self._input_fd, self._output_fd, self._wake_read, self._wake_write):
                os.close(fd)
            log_fd = os.open(run_dir / SUPERVISOR_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.dup2(log_fd, 1)
            os.dup2(log_fd, 2)
            os.close(log_fd)
            status = self._supervise(config, run_dir, pace=pace, settings=self._settings)
        except BaseException as error:
            if isinstance(error, OSError) and is_disk_full(error):
                status = DISK_FULL_STATUS
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(status)

    def _reap(self) -> None:
        """A supervisor that ended: its group first, while its id cannot yet be anyone else's, then itself."""
        for run_id, pid in list(self._runs.items()):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                continue
            _kill_group(pid)
            _, wait_status = os.waitpid(pid, 0)
            del self._runs[run_id]
            self._say({"ended": run_id, "status": os.waitstatus_to_exitcode(wait_status), "error": None})

    def _say(self, message: dict[str, Any]) -> None:
        try:
            os.write(self._output_fd, json.dumps(message).encode() + b"\n")
        except BrokenPipeError:  # the client is gone: the end of input follows
            return


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        try:
            os.kill(pid, signal.SIGKILL)  # it had no time to form a group
        except ProcessLookupError:
            return


if __name__ == "__main__":
    sys.exit(main())
