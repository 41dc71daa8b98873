"""`python -m scenarios run`: one fresh run, as a live table per GPU with a progress bar, or as one JSON object.

Owns the terminal during a run. The run itself goes the way of every run: launcher, supervisor, record.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from scenarios.analysis.diagnosis import diagnose_run
from scenarios.analysis.measured_spans import breakdown_of_run
from scenarios.backend import Choice
from scenarios.cli_diagnose import print_breakdown, print_diagnosis
from scenarios.cli_trace import TraceTarget
from scenarios.config import WATCHED_EPOCHS, RunConfig
from scenarios.record import read_events
from scenarios.run_folder import end_data, last_end
from scenarios.runs import Run, Runs
from scenarios.settings import PREFIX, Settings

POLL_S = 0.1
STOP_LIMIT_S = 5.0
VIEWER = "terminal"
SOURCE_WORDS = {"virtual": "simulated timing, real DDP", "nvml": "real GPUs, NVML"}
COLUMNS = (
    ("GPU busy (nvidia-smi)", "util", "%", 0), ("Useful work", "useful", "%", 0), ("Waiting in a kernel", "spin", "%", 0),
    ("Memory", "mem", "GiB", 1), ("Power", "power", "W", 0),
)
MEANS = {"util": "gpu_util", "useful": "sm_active", "spin": "spin_pct", "mem": "memory_gib", "power": "power_w"}
"""What a summary calls the mean of each column."""


def run_command(choice: Choice, settings: Settings, *, as_json: bool, trace: TraceTarget | None) -> dict[str, Any]:
    """Run what `choice` has decided, print what was asked for, write the trace; returns the data of the run's `end`.

    The record stays where SHARDLAB_DATA_DIR names a folder, else it goes with the command. Raises ValueError for an unwritable trace.
    """
    with _data_dir() as data_dir, _ended_by_terminate():
        runs = Runs(settings if data_dir is None else settings.model_copy(update={"data_dir": data_dir}))
        config = choice.config
        try:
            run = runs.start(config, viewer=VIEWER, pace="fast" if as_json else "live", choice=choice)
            screen = None if as_json else _Screen(config)
            end = _follow(runs, run, screen.show if screen else lambda events: None, screen)
            if as_json:
                head = {"scenario": config.scenario, "backend_reason": choice.reason}
                said = {**head, **(end["summary"] or end), "diagnosis": diagnose_run(run.run_dir).as_dict}
                print(json.dumps(said), flush=True)
            if trace is not None:
                trace.write(run.run_dir)
            if data_dir is None and not as_json:
                print(f"Recorded as {run.run_id} in {settings.data_dir}.")
            return end
        finally:
            runs.close()


def _follow(runs: Runs, run: Run, show: Callable[[list[dict[str, Any]]], None], screen: _Screen | None) -> dict[str, Any]:
    """Wait for the end, showing new events; Ctrl-C stops the run and waits for its record."""
    seen = 0
    with screen or _nothing():
        while True:
            try:
                over = _now(runs, run).over
                events = read_events(run.run_dir, seen) if screen else []
                seen = events[-1]["id"] if events else seen
                show(events)
                if over:
                    break
                time.sleep(POLL_S)
            except KeyboardInterrupt:
                runs.stop(run.run_id, VIEWER)
                _wait(lambda: _now(runs, run).over, STOP_LIMIT_S)
                break
        end = last_end(run.run_dir) or _now(runs, run).unwritten_end or end_data("stopped", "Stopped.")
        if screen:
            screen.finish(end, run.run_dir)
    return end


def _now(runs: Runs, run: Run) -> Run:
    return runs.get(run.run_id) or run


class _Screen:
    """The live table: one row per GPU, the newest sample, and how far the run is."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._console = Console()
        self._progress = Progress(TextColumn("{task.description}"), BarColumn(bar_width=40), TextColumn("{task.fields[state]}"))
        gpu = "real GPU" if config.backend == "cuda" else config.gpu
        self._task = self._progress.add_task(f"{config.scenario}, {config.gpus} x {gpu}", total=1.0, state="Processes starting")
        self._live = Live(self._progress, console=self._console, refresh_per_second=8)
        self._head: dict[str, Any] = {}
        self._tick: dict[str, Any] | None = None

    def __enter__(self) -> _Screen:
        self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._live.__exit__(*error)

    def show(self, events: list[dict[str, Any]]) -> None:
        for event in events:
            if event["event"] == "head":
                self._head = event["data"]
            elif event["event"] == "tick":
                self._tick = event["data"]
        if self._tick is not None:
            tick = self._tick
            state = f"{tick['t_ms'] / 1000:.1f} s, step {tick['step']}, epoch {tick['epoch'] + 1} at {tick['epoch_pct']:.0f} %"
            self._progress.update(self._task, completed=self._share(tick), state=state)
            self._live.update(Group(self._table(tick), self._progress))

    def finish(self, end: dict[str, Any], run_dir: Path) -> None:
        """Leave the means on screen, where there are any, else the last sample, and say below what was seen."""
        done = end["outcome"] in ("finished", "out_of_memory") or bool(end.get("expected"))
        self._progress.update(self._task, completed=1.0 if done else None, state=end["outcome"].replace("_", " "))
        summary = end["summary"]
        means = _means(summary)
        if self._tick is not None:
            self._live.update(Group(self._table(means or self._tick, "means of the run" if means else "last sample"), self._progress))
        self._live.stop()
        if not self._console.is_terminal:
            self._console.print()
        if done:
            self._console.print(end["sentence"], highlight=False)
        if summary and summary["samples_per_second"] is not None:
            measured = "" if summary["epoch_measured"] else " at this rate"
            speed = summary["speedup_vs_one_gpu"]
            self._console.print(
                f"{summary['samples_per_second']:,.0f} samples/s, an epoch in {summary['epoch_seconds']:.1f} s{measured}"
                + ("." if speed is None else f", {speed:.1f}x the useful speed of one GPU."), highlight=False,
            )
        if done:
            print_breakdown(self._console, breakdown_of_run(run_dir), source=str(self._head.get("source", "unknown")))
            print_diagnosis(self._console, diagnose_run(run_dir), every=False)
        for message in (end.get("lanes") or {}).values():
            self._console.print(message, highlight=False)
        if self._head.get("source"):
            self._console.print(said_of(str(self._head["source"]), str(self._head.get("backend_reason", ""))), style="dim", highlight=False)

    def _share(self, tick: dict[str, Any]) -> float:
        """How much of the run is done, 0 to 1."""
        epochs = float(tick["epoch"] + tick["epoch_pct"] / 100)
        if self._config.steps is not None:
            return min(1.0, max(int(tick["step"]) / self._config.steps, epochs / (self._config.epochs or 1e9)))
        by_time = float(tick["t_ms"]) / 1000 / self._config.view_s if self._config.view_s else 0.0
        return min(1.0, max(by_time, epochs / (self._config.epochs or WATCHED_EPOCHS)))

    def _table(self, tick: dict[str, Any], what: str = "now") -> Table:
        source = str(self._head.get("source", ""))
        table = Table(title=f"{self._head.get('gpu', '')}, {what}: {SOURCE_WORDS.get(source, source)} ({source})")
        table.add_column("GPU", justify="right")
        for title, _, unit, _ in COLUMNS:
            table.add_column(f"{title}, {unit}", justify="right")
        for rank in range(len(tick["util"])):
            cells = [tick[field][rank] for _, field, _, _ in COLUMNS]
            digits = [places for *_, places in COLUMNS]
            table.add_row(str(rank), *("n/a" if cell is None else f"{cell:.{places}f}" for cell, places in zip(cells, digits, strict=True)))
        return table


def _means(summary: dict[str, Any] | None) -> dict[str, list[float | None]]:
    """The means of the whole run, as a table takes them; empty where it measured none. The sentence below speaks of these."""
    gpus = (summary or {}).get("gpus") or []
    if not any(gpu["gpu_util"] is not None for gpu in gpus):
        return {}
    return {field: [gpu[mean] for gpu in gpus] for field, mean in MEANS.items()}


def said_of(source: str, reason: str) -> str:
    """What the figures above are, and why these GPUs."""
    if source == "nvml":
        return f"Real GPUs{f', since {reason}' if reason else ''}: utilization, memory and power are NVML's readings."
    since = f", since {reason}" if reason else ""
    return f"Virtual GPUs{since}: the training code ran for real; times, memory and power are modelled."


def _wait(over: Callable[[], bool], limit_s: float) -> None:
    deadline_s = time.monotonic() + limit_s
    while not over() and time.monotonic() < deadline_s:
        time.sleep(POLL_S)


@contextmanager
def _data_dir() -> Iterator[Path | None]:
    """None where the user named a folder; else one of its own, removed afterwards."""
    if os.environ.get(PREFIX + "DATA_DIR"):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="shardlab-") as name:
        yield Path(name)


@contextmanager
def _ended_by_terminate() -> Iterator[None]:
    """SIGTERM ends the command as Ctrl-C does, so that nothing is left behind."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _nothing() -> Iterator[None]:
    yield
